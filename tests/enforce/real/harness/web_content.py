"""What the web server of the real programs has to offer, made by the test from nothing but itself."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import random
import tarfile
import zipfile
from pathlib import Path

__all__ = ["BULK", "GREETING", "PACKAGE", "WHEEL", "fill"]

GREETING = "hello from outside of the run\n"
BULK = random.Random("real programs").randbytes(3_000_000)
"""More than any buffer on the way holds: a lost or doubled byte shows."""

WHEEL = "flowproof_probe_wheel-1.0-py3-none-any.whl"
PACKAGE = "flowproof-probe-package"
CALLING = "flowproof-probe-calling"
"""A package that calls another host when it is installed."""


def fill(folder: Path, calls: str) -> None:
    """Write files, an index of wheels and a registry below *folder*; *calls* is the URL that CALLING fetches."""
    files = folder / "files"
    index = files / "simple" / "flowproof-probe-wheel"
    index.mkdir(parents=True)
    (files / "greeting.txt").write_text(GREETING, encoding="utf-8")
    (files / "bulk.bin").write_bytes(BULK)
    (index / WHEEL).write_bytes(_wheel())
    registry = folder / "registry"
    registry.mkdir()
    quiet = {"main": "index.js"}
    script = f"fetch({calls!r}).then(() => {{}}, error => console.log(error.cause.code))"
    calling = {"scripts": {"postinstall": f"node -e {json.dumps(script)}"}}
    for name, more in ((PACKAGE, quiet), (CALLING, calling)):
        _publish(registry, {"name": name, "version": "1.0.0", **more})


def _wheel() -> bytes:
    info = "flowproof_probe_wheel-1.0.dist-info"
    files = {
        "flowproof_probe_wheel.py": "arrived = True\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: flowproof-probe-wheel\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return made.getvalue()


def _publish(registry: Path, manifest: dict[str, object]) -> None:
    """Write a package's tarball, and the document that npm asks for."""
    name, version = str(manifest["name"]), str(manifest["version"])
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for path, text in (
            ("package/package.json", json.dumps(manifest)),
            ("package/index.js", "module.exports = 'arrived';\n"),
        ):
            entry = tarfile.TarInfo(path)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    tarball = f"{name}-{version}.tgz"
    (registry / tarball).write_bytes(made.getvalue())
    integrity = base64.b64encode(hashlib.sha512(made.getvalue()).digest()).decode()
    dist = {"tarball": tarball, "integrity": f"sha512-{integrity}"}
    document = {
        "name": name,
        "dist-tags": {"latest": version},
        "versions": {version: {**manifest, "dist": dist}},
    }
    (registry / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")

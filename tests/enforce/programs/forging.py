"""Writes a record of a run that never was: ``forging.py RUNS`` copies the newest finished one under a later id."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys

from probe import attempt, report


def _canonical(data: object) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _forge(runs: str) -> None:
    folders = [os.path.join(runs, name) for name in sorted(os.listdir(runs))]
    for folder in folders:
        with open(os.path.join(folder, "record.json"), encoding="utf-8") as file:
            record = json.load(file)
        if record["run"]["complete"]:
            break
    year = int(record["run"]["id"][:4]) + 1
    forged = f"{year}{record['run']['id'][4:]}"
    shutil.copytree(folder, os.path.join(runs, forged))
    record["run"]["id"] = forged
    del record["digest"]
    record["digest"] = "sha256:" + hashlib.sha256(_canonical(record)).hexdigest()
    path = os.path.join(runs, forged, "record.json")
    os.unlink(path)
    with open(path, "wb") as file:
        file.write(_canonical(record) + b"\n")


def main() -> None:
    """Forge, and try the denied address."""
    report(forged=attempt(lambda: _forge(sys.argv[1])))


main()

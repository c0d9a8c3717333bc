"""Once a command runs, neither its recorder nor its supervisor loads code from a disk that it may write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.enforce

SCRIPT = Path(__file__).with_name("watched_imports.py")
CHECKOUT = Path(__file__).parents[2]
ACTS = """
import os, signal, socket, sys, time
path = os.path.join(os.environ["HERE"], "own.sock")
server = socket.socket(socket.AF_UNIX)
server.bind(path)
server.listen(1)
socket.socket(socket.AF_UNIX).connect(path)
socket.socket(socket.AF_UNIX).connect_ex("\\0nobody-is-called-this")
one, other = socket.socketpair()
socket.send_fds(one, [b"x"], [0])
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9))
for act in (
    lambda: socket.create_connection(("192.0.2.1", 80)),
    lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
    lambda: socket.create_server(("0.0.0.0", 0)),
):
    try:
        act()
    except OSError:
        pass
loop = socket.create_server(("127.0.0.1", 0))
socket.create_connection(loop.getsockname())
socket.getaddrinfo("localhost", 80)
if not os.fork():
    os.setsid()
    time.sleep(30)
"""


def loaded(
    tmp_path: Path, command: list[str], *options: str, **environment: str
) -> tuple[int, list[str]]:
    """Return the exit code of a run, and what was loaded while and after its command ran."""
    flow = {
        "name": "watched",
        "agent": {"command": command, "env": {"HERE": str(tmp_path)}, "timeout": "3s"},
        "control": {"id": "watched", "rules": {"watched.rest": "never connect to anything else"}},
    }
    path = tmp_path / "watched.flow.yaml"
    path.write_text(json.dumps(flow), encoding="utf-8")
    log = tmp_path / "imports"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "run", str(path), *options],
        env={**os.environ, "IMPORTS": str(log), "PYTHONPATH": _path(), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, log.read_text().splitlines() if log.exists() else []


def _path() -> str:
    return os.pathsep.join([str(CHECKOUT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])


@pytest.mark.parametrize("options", [(), ("--verbose",), ("--format", "json")])
def test_a_run_with_many_kinds_of_events_loads_nothing(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    assert loaded(tmp_path, [sys.executable, "-c", ACTS], *options) == (1, [])


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["true"], 0),
        (["sleep", "60"], 3),
        (["sh", "-c", "kill -9 $$"], 3),
        (["sh", "-c", "exit 7"], 3),
        (["there-is-no-such-command"], 3),
    ],
    ids=["held", "timeout", "signal", "exit", "not found"],
)
def test_a_run_loads_nothing_however_it_ends(tmp_path: Path, command: list[str], code: int) -> None:
    assert loaded(tmp_path, command) == (code, [])


def test_what_is_loaded_is_seen(tmp_path: Path) -> None:
    assert loaded(tmp_path, ["true"], IMPORT_LAST="1") == (0, ["recorder: colorsys"])

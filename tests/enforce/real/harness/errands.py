"""Real programs, unmodified, each on the errand that it is used for: the words of its command line, and
what shows that it came back with what it went for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from stage import Ran, Stage
from web_content import BULK, PACKAGE, WHEEL

__all__ = ["BULK_HASH", "ERRANDS", "HOSTS", "PORTS", "SQL", "SSH", "WEB", "Errand", "Kit"]

WEB, SSH, SQL = "web", "ssh", "sql"
"""The servers that errands lead to; each is a fixture of that name."""

PORTS = {WEB: 8080, SSH: 2222, SQL: 5432}
"""The port of each server; one above it is a second way in, which no rule allows."""

HOSTS = ("10.99.0.1", "fd00:99::1", "10.99.0.2", "fd00:99::2")
"""The two allowed and the two denied addresses of the namespace; each server is at all of them."""

BULK_HASH = hashlib.sha256(BULK).hexdigest()

ROWS = 200_000
TABLE = b"".join(b"%d\n" % n for n in range(1, ROWS + 1))

Kit = Mapping[str, Path]
"""What the test built or copied for the programs: client sources, binaries, keys, by name."""

Words = Callable[[Kit, str, int], list[str]]
"""From the kit, a host as it stands in a URL and a port to a command line."""


class Errand:
    """One program's errand. *program* has to be installed, and Debian's Python has to know *module*; *seen*
    is how the name of the binary in the record begins; *v6* is whether it takes a v6 address in a URL."""

    def __init__(
        self,
        name: str,
        words: Words,
        brings: Callable[[Stage, Ran], bool],
        *,
        server: str = WEB,
        program: str = "",
        module: str = "",
        seen: str = "",
        v6: bool = True,
    ) -> None:
        self.name, self.words, self.brings, self.server = name, words, brings, server
        self.program = program or name
        self.module = module
        self.seen = seen or self.program
        self.v6 = v6

    def __repr__(self) -> str:
        return self.name


def _prints(text: str) -> Callable[[Stage, Ran], bool]:
    return lambda _, ran: text in ran.stdout + ran.stderr  # contained, stdout is the run's answer


def _leaves(name: str, content: bytes | None = None) -> Callable[[Stage, Ran], bool]:
    def left(stage: Stage, _: Ran) -> bool:
        file = stage.folder / name
        return file.is_file() and content in (None, file.read_bytes())

    return left


def _page(host: str, port: int) -> str:
    return f"http://{host}:{port}/bulk.bin"


def _pip(kit: Kit, host: str, port: int) -> list[str]:
    index = f"http://{host}:{port}/simple/"
    options = ["--retries", "0", "--no-cache-dir", "--trusted-host", host, "--index-url", index]
    return ["pip3", "download", *options, "--dest", "wheels", "flowproof-probe-wheel"]


def _npm(kit: Kit, host: str, port: int) -> list[str]:
    registry = f"http://{host}:{port}/registry/"
    return ["npm", "install", "--fetch-retries=0", f"--registry={registry}", PACKAGE]


def _ssh(kit: Kit, host: str, port: int) -> list[str]:
    options = [
        *("-q", "-F", "/dev/null", "-p", str(port), "-i", str(kit["key"])),
        *("-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={kit['known-hosts']}"),
    ]
    there = [f"nobody@{host.strip('[]')}", "cat", str(kit["bulk"])]
    return ["sh", "-c", 'exec "$@" >bulk', "sh", "ssh", *options, *there]


def _psql(kit: Kit, host: str, port: int) -> list[str]:
    where = ["-h", host.strip("[]"), "-p", str(port), "-U", "probe", "-d", "postgres"]
    query = f"select n from generate_series(1, {ROWS}) n"
    return ["psql", *where, "-X", "-A", "-t", "-o", "rows", "-c", query]


def _java(how: str) -> Words:
    def words(kit: Kit, host: str, port: int) -> list[str]:
        return ["java", "-cp", str(kit["java"]), "FetchPage", _page(host, port), how]

    return words


ERRANDS = (
    Errand("curl", lambda _, h, p: ["curl", "-sgo", "bulk", _page(h, p)], _leaves("bulk", BULK)),
    Errand("wget", lambda _, h, p: ["wget", "-qO", "bulk", _page(h, p)], _leaves("bulk", BULK)),
    Errand(
        "git",
        lambda _, h, p: ["git", "clone", "-q", f"http://{h}:{p}/git/probe.git", "clone"],
        _leaves("clone/bulk.bin", BULK),
        seen="git-remote-http",
    ),
    Errand("pip", _pip, _leaves(f"wheels/{WHEEL}"), program="pip3", seen="python3"),
    Errand("npm", _npm, _leaves(f"node_modules/{PACKAGE}/index.js"), seen="node", v6=False),
    Errand(
        "node",
        lambda kit, h, p: ["node", str(kit["fetch_page.mjs"]), _page(h, p)],
        _prints(f"links 1\n{BULK_HASH}"),
    ),
    Errand(
        "asyncio",
        lambda kit, h, p: [
            *("python3", str(kit["fetch_asyncio.py"])),
            *(h.strip("[]"), str(p), "/bulk.bin"),
        ],
        _prints(BULK_HASH),
        program="python3",
    ),
    Errand(
        "requests",
        lambda kit, h, p: ["/usr/bin/python3", str(kit["fetch_requests.py"]), _page(h, p)],
        _prints(BULK_HASH),
        program="python3",
        module="requests",
    ),
    Errand(
        "go",
        lambda kit, h, p: [str(kit["go"]), _page(h, p), "1"],
        _prints(f"links 1\n{BULK_HASH}"),
        seen="fetch_page",
    ),
    *(
        Errand(
            f"java-{how}",
            _java(how),
            _prints(f"links 1\n{BULK_HASH}"),
            program="javac",
            seen="java",
        )
        for how in ("client", "connection")
    ),
    Errand("ssh", _ssh, _leaves("bulk", BULK), server=SSH),
    Errand("psql", _psql, _leaves("rows", TABLE), server=SQL),
)

"""Fixtures of the real programs: what they are built from, and the servers that they go to."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from errands import HOSTS, PORTS, SQL, SSH, WEB, Errand
from missing import installed, installed_module, missing
from namespace import Namespace
from outside_server import OutsideServer
from product import Product
from web_content import BULK, fill

CLIENTS = Path(__file__).with_name("clients")
HARNESS = Path(__file__).with_name("harness")


def _built(words: list[str], **env: str) -> None:
    made = subprocess.run(
        words, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, (words, made.stdout, made.stderr)


@pytest.fixture
def errand(request: pytest.FixtureRequest) -> Errand:
    """An errand (given indirectly) whose program is installed."""
    found = request.param
    assert isinstance(found, Errand)
    installed(found.program)
    if found.module:
        installed_module(found.module)
    return found


@pytest.fixture
def kit(
    request: pytest.FixtureRequest, errand: Errand, clients: dict[str, Path]
) -> dict[str, Path]:
    """The server of the errand is up; what its program needs."""
    return {**clients, **request.getfixturevalue(errand.server)}


@pytest.fixture(scope="session")
def clients() -> Iterator[dict[str, Path]]:
    """The client programs: scripts by file name, `go` a binary, `java` a folder of classes."""
    folder = Path(tempfile.mkdtemp(prefix="flowproof-clients-"))
    folder.chmod(0o755)
    shutil.copytree(CLIENTS, folder, dirs_exist_ok=True)
    found = {path.name: path for path in folder.iterdir()}
    if shutil.which("go"):
        found["go"] = folder / "fetch_page"
        own = {"GOCACHE": str(folder / "go-cache"), "GOTMPDIR": str(folder)}
        _built(["go", "build", "-o", str(found["go"]), str(found["fetch_page.go"])], **own)
    if shutil.which("javac"):
        found["java"] = folder / "classes"
        _built(["javac", "-d", str(found["java"]), str(found["FetchPage.java"])])
    subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True)
    yield found
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def serve(namespace: Namespace, product: Product) -> Iterator[Callable[[], OutsideServer]]:
    """A server that is still to be started, each time it is called."""
    made: list[OutsideServer] = []

    def one() -> OutsideServer:
        made.append(OutsideServer(namespace, product))
        return made[-1]

    yield one
    for each in made:
        each.close()


def _open(server: OutsideServer, port: int, behind: int) -> None:
    places = [(host, each) for host in HOSTS for each in (port, port + 1)]
    server.open_to([*places], ("127.0.0.1", behind))


@pytest.fixture(scope="session")
def web(serve: Callable[[], OutsideServer]) -> dict[str, Path]:
    """The web server is up."""
    installed("git")
    server = serve()
    fill(server.folder, calls=f"http://{HOSTS[2]}:{PORTS[WEB]}/greeting.txt")
    server.own()
    server.prepare("git", "init", "-q", "-b", "main", "work")
    (server.folder / "work" / "bulk.bin").write_bytes(BULK)
    who = ("-c", "user.name=A Test", "-c", "user.email=test@flow.test")
    server.prepare("git", "-C", "work", "add", "bulk.bin")
    server.prepare("git", *who, "-C", "work", "commit", "-q", "-m", "Begin")
    server.prepare("git", "clone", "-q", "--bare", "work", "git/probe.git")
    script = server.folder / "web_origin.py"
    shutil.copy(HARNESS / "web_origin.py", script)
    server.start([server.product.python, str(script), str(server.folder), "18080"], ready="ready")
    _open(server, PORTS[WEB], 18080)
    return {}


@pytest.fixture(scope="session")
def ssh(serve: Callable[[], OutsideServer]) -> dict[str, Path]:
    """An sshd is up that lets the owner of `key` in; `known-hosts` knows it, and `bulk` is a file there."""
    sshd = installed("sshd")
    _needs_root("sshd")
    server = serve()
    at = server.folder
    for key in ("host_key", "key"):
        server.prepare("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
    (at / "bulk.bin").write_bytes(BULK)
    shutil.copy(at / "key.pub", at / "authorized_keys")
    kind, public, _ = (at / "host_key.pub").read_text(encoding="ascii").split(maxsplit=2)
    known = [f"[{h}]:{PORTS[SSH] + more} {kind} {public}\n" for h in HOSTS for more in (0, 1)]
    (at / "known_hosts").write_text("".join(known), encoding="ascii")
    settings = (
        "ListenAddress 127.0.0.1:12222",
        f"HostKey {at}/host_key",
        f"AuthorizedKeysFile {at}/authorized_keys",
        "PidFile none",
        "StrictModes no",
        "UsePAM no",
    )
    (at / "sshd_config").write_text("\n".join(settings) + "\n", encoding="ascii")
    server.own()
    server.start([sshd, "-D", "-e", "-f", str(at / "sshd_config")], ready="Server listening")
    _open(server, PORTS[SSH], 12222)
    return {"key": at / "key", "known-hosts": at / "known_hosts", "bulk": at / "bulk.bin"}


@pytest.fixture(scope="session")
def sql(serve: Callable[[], OutsideServer]) -> dict[str, Path]:
    """A PostgreSQL is up, with a user `probe`; `socket` is the door of `own-socket`, its unix socket."""
    installed("psql")
    _needs_root("postgres")
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        missing("`postgres`")
    server = serve()
    at = server.folder
    options = ("--no-sync", "--auth=reject", "--username=probe", "--locale=C.UTF-8")
    server.prepare(str(programs[-1] / "initdb"), *options, "--pgdata=data")
    # over the socket it asks the kernel who is there (peer): the door is root, a client nobody
    (at / "data" / "pg_hba.conf").write_text(
        "local all all peer map=own\nhost all all 127.0.0.1/32 trust\n"
    )
    (at / "data" / "pg_ident.conf").write_text("own root probe\nown nobody probe\n")
    for folder in ("socket", "door"):
        (at / folder).mkdir()
    server.own()
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": "15432",
        "unix_socket_directories": f"{at}/socket",
        "fsync": "off",
    }
    words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    server.start(
        [str(programs[-1] / "postgres"), "-D", "data", *words], ready="ready to accept connections"
    )
    _open(server, PORTS[SQL], 15432)
    door = at / "door" / f".s.PGSQL.{PORTS[SQL]}"
    server.open_to([str(door)], str(at / "socket" / ".s.PGSQL.15432"))
    return {"socket": door, "own-socket": at / "socket" / ".s.PGSQL.15432"}


def _needs_root(program: str) -> None:
    if os.geteuid() != 0:
        missing(f"root, to run `{program}` as a user of its own")

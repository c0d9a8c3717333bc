"""The outside world of the tests: run as a script, it owns a network namespace and logs what arrives.

Started in a fresh network and mount namespace (`namespace.py`). It adds the test addresses to the
loopback link, binds its own hosts file and resolver settings over /etc, serves TCP and UDP on every
address, and answers one JSON line for each that it reads: ``sync`` gives what arrived since the last
``clear``, once nothing more is pending; ``door [PLACE, BEHIND]`` opens a door (`doors.py`).
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import socket
import sys
from collections.abc import Callable

from doors import listen, pass_through
from loopback_link import add_address, set_up
from name_stub import answer

__all__ = ["ALLOWED", "DENIED", "LOOPBACK", "NAMES", "PORTS", "STUB_NAME", "main"]

ALLOWED = ("10.99.0.1", "fd00:99::1")
DENIED = ("10.99.0.2", "fd00:99::2")
LOOPBACK = ("127.0.0.1", "::1")
PORTS = (9000, 9001)
NAMES = {
    "allowed.flow.test": ALLOWED,
    "denied.flow.test": DENIED,
    "shared.flow.test": ALLOWED,
    "inner.flow.test": ("127.0.0.1",),
}
STUB_NAME = "stub.flow.test"
MS_BIND = 4096  # sys/mount.h


class Log:
    """What arrived: by protocol and address the times (connections, datagrams), bytes and first bytes."""

    def __init__(self) -> None:
        self.seen: dict[tuple[str, str], dict[str, object]] = {}

    def add(self, protocol: str, to: str, *, times: int, data: bytes = b"") -> None:
        """Count *times* arrivals and *data*."""
        row = self.seen.setdefault((protocol, to), {"times": 0, "bytes": 0, "first": ""})
        row["times"] = int(str(row["times"])) + times
        row["bytes"] = int(str(row["bytes"])) + len(data)
        row["first"] = str(row["first"]) or data[:64].decode("latin-1")

    def rows(self) -> list[dict[str, object]]:
        """Return the log as JSON-shaped rows."""
        return [{"protocol": p, "to": to, **row} for (p, to), row in sorted(self.seen.items())]


class World:
    """The servers and their one loop."""

    def __init__(self, unix_path: str) -> None:
        self.log = Log()
        self.selector = selectors.DefaultSelector()
        for host in (*ALLOWED, *DENIED, *LOOPBACK):
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            for port in PORTS:
                place = _spelt((host, port))
                self._listen(family, (host, port), "tcp", place)
                self._receive(family, (host, port), place)
        self._listen(socket.AF_UNIX, unix_path, "unix", unix_path)
        os.chmod(unix_path, 0o777)
        self._name_server(("127.0.0.53", 53))

    def _watch(self, sock: socket.socket, work: Callable[[], None]) -> None:
        sock.setblocking(False)
        self.selector.register(sock, selectors.EVENT_READ, work)

    def _listen(self, family: int, at: tuple[str, int] | str, protocol: str, place: str) -> None:
        listener = socket.socket(family, socket.SOCK_STREAM)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if protocol == "tcp":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # TCP_FASTOPEN: data in the first segment must be able to arrive, or C17 shows nothing
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 64)
        listener.bind(at)
        listener.listen(1024)

        def accept() -> None:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            self.log.add(protocol, place, times=1)
            self._watch(peer, lambda: self._echo(peer, protocol, place))

        self._watch(listener, accept)

    def open_door(self, place: list[str | int] | str, behind: list[str | int] | str) -> None:
        """Listen at *place* for a server that listens *behind* it; who arrives is logged."""
        at, server = _place(place), _place(behind)
        protocol = "unix" if isinstance(at, str) else "tcp"
        listener = listen(at)

        def accept() -> None:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            self.log.add(protocol, _spelt(at), times=1)
            pass_through(peer, server)

        self._watch(listener, accept)

    def _echo(self, peer: socket.socket, protocol: str, place: str) -> None:
        try:
            data = peer.recv(1 << 16)
            if data:
                self.log.add(protocol, place, times=0, data=data)
                with contextlib.suppress(BlockingIOError):  # a peer that does not read its echo
                    peer.send(data)
                return
        except OSError:
            pass  # a peer that reset: there is nothing more to log of it
        self.selector.unregister(peer)
        peer.close()

    def _receive(self, family: int, at: tuple[str, int], place: str) -> None:
        box = socket.socket(family, socket.SOCK_DGRAM)
        if family == socket.AF_INET6:
            box.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        box.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        box.bind(at)

        def datagram() -> None:
            for _ in range(256):
                try:
                    data = box.recv(1 << 16)
                except OSError:
                    return
                self.log.add("udp", place, times=1, data=data)

        self._watch(box, datagram)

    def _name_server(self, at: tuple[str, int]) -> None:
        box = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        box.bind(at)

        def reply() -> None:
            query, peer = box.recvfrom(4096)
            self.log.add("dns", f"{at[0]}:{at[1]}", times=1)
            box.sendto(answer(query, STUB_NAME, ALLOWED[0], ALLOWED[1]), peer)

        self._watch(box, reply)

    def turn(self, wait: float | None) -> bool:
        """Do what is ready; say whether anything was."""
        ready = [key.data for key, _ in self.selector.select(wait) if key.data]
        for work in ready:
            work()
        return bool(ready)

    def drain(self) -> None:
        """Do what is ready until nothing is."""
        while self.turn(0):
            pass


def _place(given: list[str | int] | str) -> tuple[str, int] | str:
    return given if isinstance(given, str) else (str(given[0]), int(given[1]))


def _spelt(place: tuple[str, int] | str) -> str:
    if isinstance(place, str):
        return place
    return f"[{place[0]}]:{place[1]}" if ":" in place[0] else f"{place[0]}:{place[1]}"


def _over_etc(folder: str) -> None:
    """Bind own name files over those of /etc, in this mount namespace only."""
    hosts = "".join(f"{a} {name}\n" for name, found in NAMES.items() for a in found)
    texts = {
        "hosts": f"127.0.0.1 localhost\n::1 localhost\n{hosts}",
        "resolv.conf": "nameserver 127.0.0.53\noptions timeout:1 attempts:1\n",
        "nsswitch.conf": "hosts: files dns\npasswd: files\ngroup: files\n",
        # a plain user who may log in: Debian gives `nobody` no shell
        "passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n",
    }
    mount = ctypes.CDLL(None, use_errno=True).mount
    for name, text in texts.items():
        source, target = os.path.join(folder, name), f"/etc/{name}"
        with open(source, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(source, 0o644)
        if mount(source.encode(), target.encode(), None, ctypes.c_ulong(MS_BIND), None):
            number = ctypes.get_errno()
            raise OSError(number, f"cannot bind over {target}: {os.strerror(number)}")


def main(folder: str) -> None:
    """Serve until standard input closes. *folder* holds the files bound over /etc and a unix socket."""
    set_up()
    for address in (*ALLOWED, *DENIED):
        add_address(address)
    _over_etc(folder)
    world = World(os.path.join(folder, "outside.sock"))
    going = True

    def command() -> None:
        nonlocal going
        line = sys.stdin.readline()
        going = bool(line)
        if line.strip() == "clear":
            world.drain()
            world.log.seen.clear()
        if line.strip() == "sync":
            world.drain()
        if line.startswith("door "):
            world.open_door(*json.loads(line.removeprefix("door ")))
        if line:
            print(json.dumps(world.log.rows()), flush=True)

    world.selector.register(sys.stdin, selectors.EVENT_READ, None)
    print("ready", flush=True)
    while going:
        for key, _ in world.selector.select():
            (key.data or command)()


if __name__ == "__main__":
    main(sys.argv[1])

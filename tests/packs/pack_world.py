"""The world that packs are tried in: run as a script, it owns a network and mount namespace and serves.

Standard input's first line is JSON: ``names`` (name → address), ``places`` ([address, port]), ``sockets``
(unix paths) and ``folder``. Addresses are added to the namespace's own loopback link, /run and /var are
empty file systems of its own, /etc/hosts knows the names, and every place and socket echoes what it gets.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
import threading

from loopback_link import add_address, set_up

__all__: list[str] = []
MS_BIND = 4096  # sys/mount.h


def _mount(source: str, target: str, kind: str | None, flags: int) -> None:
    call = ctypes.CDLL(None, use_errno=True).mount
    encoded = kind.encode() if kind else None
    if call(source.encode(), target.encode(), encoded, ctypes.c_ulong(flags), None):
        number = ctypes.get_errno()
        raise OSError(number, f"cannot mount over {target}: {os.strerror(number)}")


def _files(folder: str, names: dict[str, str]) -> None:
    for own in ("/run", "/var"):
        _mount("tmpfs", own, "tmpfs", 0)
    texts = {
        "hosts": "127.0.0.1 localhost\n" + "".join(f"{a} {name}\n" for name, a in names.items()),
        "nsswitch.conf": "hosts: files\npasswd: files\ngroup: files\n",
    }
    for name, text in texts.items():
        path = os.path.join(folder, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(path, 0o644)
        _mount(path, f"/etc/{name}", None, MS_BIND)


def _serve(listener: socket.socket) -> None:
    listener.listen(64)

    def echo() -> None:
        while True:
            peer, _ = listener.accept()
            with peer:
                peer.settimeout(5)
                try:
                    peer.sendall(peer.recv(64))
                except OSError:
                    continue  # gone again: the attempt says so itself

    threading.Thread(target=echo, daemon=True).start()


def main() -> None:
    """Serve until standard input closes."""
    wanted = json.loads(sys.stdin.readline())
    set_up()
    added = {"127.0.0.1"}
    for address, port in wanted["places"]:
        if address not in added:
            add_address(address)
            added.add(address)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.bind((address, port))
        _serve(listener)
    _files(wanted["folder"], wanted["names"])
    for path in wanted["sockets"]:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        _serve(listener)
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()

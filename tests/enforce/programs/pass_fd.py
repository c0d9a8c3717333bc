"""C07: descriptors over a private socketpair, and a Connection over a multiprocessing Pipe."""

from __future__ import annotations

import multiprocessing
import multiprocessing.reduction
import os
import socket
from multiprocessing.connection import Connection

from probe import report


def _send_fds() -> str:
    left, right = socket.socketpair()
    reader, writer = os.pipe()
    socket.send_fds(left, [b"take this"], [writer])
    os.close(writer)
    data, fds, _, _ = socket.recv_fds(right, 64, 4)
    os.write(fds[0], data)
    os.close(fds[0])
    return os.read(reader, 64).decode()


def _child(carrier: Connection) -> None:
    with carrier, carrier.recv() as received:
        received.send("through a sent connection")


def _send_connection() -> str:
    multiprocessing.set_start_method("fork")
    ours, theirs = multiprocessing.Pipe()
    listening, given = multiprocessing.Pipe()
    child = multiprocessing.Process(target=_child, args=(theirs,))
    child.start()
    ours.send(given)  # pickled: a background thread hands the descriptor over a unix socket
    said = listening.recv() if listening.poll(10) else "nothing"
    child.join(10)
    return str(said)


def main() -> None:
    """Report both."""
    report(send_fds=_send_fds(), connection=_send_connection())


main()

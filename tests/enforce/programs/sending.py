"""What a program sees of its sends: limits, flags, signals, counts and descriptors; bare and contained alike."""

from __future__ import annotations

import array
import ctypes
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable

from message import Many, Message, Part, message
from probe import attempt, libc, report, result

ABOVE = (64 << 20) + 1
"""One byte more than the supervisor copies at once; more than any datagram, too."""
PAIR = (socket.AF_UNIX, socket.SOCK_DGRAM)


def _too_large(at: tuple[str, int]) -> dict[str, str]:
    large = bytes(ABOVE)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        return {
            "sendto, more than a datagram": attempt(lambda: sock.sendto(large[:65508], at)),
            "sendmsg, more than a datagram": attempt(
                lambda: sock.sendmsg([large[:65508]], [], 0, at)
            ),
            "sendto, more than is copied": attempt(lambda: sock.sendto(large, at)),
            "sendmsg, more than is copied": attempt(lambda: sock.sendmsg([large], [], 0, at)),
            "sendmsg, many parts": attempt(
                lambda: sock.sendmsg([large[: 1 << 20]] * 65, [], 0, at)
            ),
        }


def _stream() -> dict[str, object]:
    """Send more than is copied at once through a stream: all of it arrives, in as many calls as it takes."""
    left, right = socket.socketpair()
    got = hashed = 0

    def drain() -> None:
        nonlocal got, hashed
        while chunk := right.recv(1 << 20):
            got += len(chunk)
            hashed += chunk.count(b"x")

    reader = threading.Thread(target=drain)
    reader.start()
    view = memoryview(b"x" * ABOVE)
    while view:
        view = view[left.sendmsg([view]) :]
    left.close()
    reader.join()
    return {"bytes": got, "right ones": hashed}


def _flags() -> dict[str, object]:
    left, right = socket.socketpair()
    with left, right:
        left.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        fill = 0
        while (
            seen := attempt(lambda: left.sendmsg([bytes(4096)], [], socket.MSG_DONTWAIT))
        ) == "ok":
            fill += 1
        left.settimeout(None)
        left.setsockopt(
            socket.SOL_SOCKET, socket.SO_SNDTIMEO, b"\0" * 8 + (50_000).to_bytes(8, "little")
        )
        waited = attempt(lambda: left.sendmsg([bytes(4096)]))
    return {"without waiting": seen, "filled": fill > 0, "waited for its timeout": waited}


def _signals() -> dict[str, object]:
    caught: list[int] = []
    signal.signal(signal.SIGPIPE, lambda number, _: caught.append(number))
    left, right = socket.socketpair()
    right.close()
    quiet = attempt(lambda: left.sendmsg([b"x"], [], socket.MSG_NOSIGNAL)), list(caught)
    loud = attempt(lambda: left.sendmsg([b"x"])), list(caught)
    packets = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    packets[1].close()
    other = attempt(lambda: packets[0].sendmsg([b"x"])), list(caught)
    child = os.fork()
    if not child:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        left.sendmsg([b"x"])
        os._exit(0)
    return {"quiet": quiet, "loud": loud, "packets": other, "killed": os.waitpid(child, 0)[1]}


def _many() -> dict[str, object]:
    left, right = socket.socketpair(*PAIR)
    left.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)

    def sent(*messages: Message, flags: int = 0, count: int | None = None) -> list[object]:
        many = (Many * len(messages))(*(Many(one, 77) for one in messages))
        found = libc.sendmmsg(left.fileno(), many, len(messages) if count is None else count, flags)
        return [result(found), [one.length for one in many], _taken(right)]

    unread = (Part * 1)(Part(None, 8))
    bad = Message(None, 0, unread, 1, None, 0, 0)
    seen: dict[str, object] = {
        "three": sent(message(None, b"one"), message(None, b""), message(None, b"three")),
        "none": sent(message(None, b"one"), count=0),
        "bad at once": sent(bad, message(None, b"two")),
        "bad behind": sent(message(None, b"one"), bad, message(None, b"three")),
        "more than at once": sent(*[message(None, b"x")] * 8, flags=socket.MSG_DONTWAIT),
    }
    right.close()
    seen["gone"] = sent(message(None, b"one"))
    return seen


def _taken(sock: socket.socket) -> list[str]:
    found: list[str] = []
    while True:
        try:
            found.append(sock.recv(64, socket.MSG_DONTWAIT).decode())
        except OSError:
            return found


def _descriptors() -> dict[str, object]:
    left, right = socket.socketpair(*PAIR)
    pipes = [os.pipe() for _ in range(3)]
    socket.send_fds(left, [b"three"], [writer for _, writer in pipes])
    data, taken, _, _ = socket.recv_fds(right, 64, 8)
    for number, descriptor in enumerate(taken):
        os.write(descriptor, b"%d" % number)
    read = [os.read(reader, 1).decode() for reader, _ in pipes]

    def refused(*numbers: int) -> str:
        extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", numbers))]
        return attempt(lambda: left.sendmsg([b"x"], extra))

    return {
        "data": data.decode(),
        "through each": read,
        "none such": refused(pipes[0][0], 4711),
        "negative": refused(-1),
        "too many": refused(*[pipes[0][0]] * 254),
        "most": refused(*[pipes[0][0]] * 253),
    }


def _wrong() -> dict[str, str]:
    reader, _writer = os.pipe()
    header = message(None, b"x")
    calls: dict[str, Callable[[], int]] = {
        "no socket": lambda: libc.sendmsg(reader, ctypes.byref(header), 0),
        "no descriptor": lambda: libc.sendmsg(4711, ctypes.byref(header), 0),
        "connect, no socket": lambda: libc.connect(reader, b"\x02\0" + bytes(14), 16),
        "connect, no descriptor": lambda: libc.connect(-1, b"\x02\0" + bytes(14), 16),
    }
    return {name: result(act()) for name, act in calls.items()}


def main() -> None:
    """Try it all; the datagrams go to ``ALLOWED PORT``."""
    at = (sys.argv[1], int(sys.argv[2]))
    report(
        large=_too_large(at),
        stream=_stream(),
        flags=_flags(),
        signals=_signals(),
        many=_many(),
        descriptors=_descriptors(),
        wrong=_wrong(),
    )


main()

"""What a policy about destinations does not reach: ``beyond.py scheduling|peer|restricted|group ARGUMENTS``."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import sys

from probe import attempt, libc, report

LO = 1
CREATE_RULESET, RESTRICT_SELF = 444, 446  # landlock(7), the same on every architecture
CONNECT_TCP = 2
NO_NEW_PRIVS = 38  # prctl(2)


def _connect(host: str, port: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        return attempt(lambda: sock.connect((host, int(port))))


def _scheduling(host: str, port: str) -> None:
    supervisor = os.getppid()
    idle = os.sched_param(0)
    report(
        priority=attempt(lambda: os.setpriority(os.PRIO_PROCESS, supervisor, 19)),
        policy=attempt(lambda: os.sched_setscheduler(supervisor, os.SCHED_IDLE, idle)),
        denied=_connect(host, port),
    )


def _peer(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind(path)
        server.listen()
        client.connect(path)
        taken = server.accept()[0].getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    os.unlink(path)
    pid, user, _group = struct.unpack("=3i", taken)
    who = {os.getpid(): "own", os.getppid(): "parent"}.get(pid, "another")
    report(peer=who, user="own" if user == os.getuid() else "another")


def _restrict() -> None:
    libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0)
    handled = ctypes.create_string_buffer(struct.pack("=QQ", 0, CONNECT_TCP), 16)
    ruleset = libc.syscall(CREATE_RULESET, handled, 16, 0)
    if ruleset < 0 or libc.syscall(RESTRICT_SELF, ruleset, 0) < 0:
        raise OSError(ctypes.get_errno(), "landlock")


def _restricted(*places: str) -> None:
    restricted = attempt(_restrict)
    report(restrict=restricted, allowed=_connect(*places[:2]), denied=_connect(*places[2:]))


def _group(group: str, port: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        wanted = socket.inet_aton(group) + struct.pack("=4si", bytes(4), LO)
        report(
            join=attempt(
                lambda: sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, wanted)
            ),
            send=attempt(lambda: sock.sendto(b"to a group", (group, int(port)))),
        )


match sys.argv[1]:
    case "scheduling":
        _scheduling(*sys.argv[2:])
    case "peer":
        _peer(*sys.argv[2:])
    case "restricted":
        _restricted(*sys.argv[2:])
    case other:
        assert other == "group"
        _group(*sys.argv[2:])

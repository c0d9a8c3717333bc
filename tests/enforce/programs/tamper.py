"""C29: reaches for the supervisor, the recorder and the record of its own run: ``tamper.py [--without-kill]
RUNS``."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import sys

from probe import attempt, libc, report

__all__ = ["parent_of", "signal_by_file"]

NUMBERS = {
    "x86_64": {"ptrace": 101, "process_vm_writev": 311},
    "aarch64": {"ptrace": 117, "process_vm_writev": 271},
}[os.uname().machine]
PIDFD_OPEN, PIDFD_GETFD = 434, 438  # asm-generic/unistd.h, and the same on x86_64
PIDFD_SEND_SIGNAL = 424
F_SETSIG = 10  # asm-generic/fcntl.h
PTRACE_SEIZE = 0x4206  # linux/ptrace.h


def parent_of(pid: int) -> int:
    """Return the parent of a process."""
    with open(f"/proc/{pid}/stat", encoding="latin-1") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def _call(number: int, *arguments: object) -> int:
    returned = int(libc.syscall(number, *arguments))
    if returned < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return returned


def _write(pid: int) -> None:
    own = ctypes.create_string_buffer(8)
    vector = (ctypes.c_size_t * 2)(ctypes.addressof(own), 8)
    _call(NUMBERS["process_vm_writev"], pid, vector, 1, vector, 1, ctypes.c_ulong(0))


def _take(pid: int) -> None:
    for descriptor in range(64):
        _call(PIDFD_GETFD, _call(PIDFD_OPEN, pid, 0), descriptor, 0)


def _reopen(pid: int) -> None:
    for name in os.listdir(f"/proc/{pid}/fd"):
        os.close(os.open(f"/proc/{pid}/fd/{name}", os.O_RDWR | os.O_NONBLOCK))


def _reach(pid: int) -> dict[str, str]:
    zero = ctypes.c_ulong(0)
    return {
        "mem": attempt(lambda: open(f"/proc/{pid}/mem", "r+b").close()),
        "writev": attempt(lambda: _write(pid)),
        "ptrace": attempt(lambda: _call(NUMBERS["ptrace"], PTRACE_SEIZE, pid, zero, zero)),
        "getfd": attempt(lambda: _take(pid)),
        "open": attempt(lambda: _reopen(pid)),
        "signal": attempt(lambda: os.kill(pid, 0)),
    }


def _end(pid: int) -> dict[str, str]:
    return {
        "stop": attempt(lambda: os.kill(pid, signal.SIGSTOP)),
        "kill": attempt(lambda: os.kill(pid, signal.SIGKILL)),
        "handle": attempt(lambda: _call(PIDFD_SEND_SIGNAL, _call(PIDFD_OPEN, pid, 0), 9, None, 0)),
    }


def signal_by_file(pid: int) -> None:
    """Have the kernel signal *pid* when data arrives; whoever asks is told of no refusal."""
    near, far = socket.socketpair()
    fcntl.fcntl(near, fcntl.F_SETOWN, pid)
    fcntl.fcntl(near, F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(near, fcntl.F_SETFL, fcntl.fcntl(near, fcntl.F_GETFL) | os.O_ASYNC)
    far.send(b"x")


def _overwrite(runs: str) -> dict[str, str]:
    found = {}
    for folder, _, names in os.walk(runs):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write('{"verdict":"pass"}')
            found[name] = "written"
    return found


def main() -> None:
    """Report each."""
    supervisor = os.getppid()
    reached = {}
    for name, pid in (("supervisor", supervisor), ("recorder", parent_of(supervisor))):
        reached[name] = _reach(pid)
        if "--without-kill" not in sys.argv:
            reached[name] |= _end(pid)
            signal_by_file(pid)
    report(**reached, files=_overwrite(sys.argv[-1]))


if __name__ == "__main__":
    main()

"""C21: the three calls of io_uring (numbers of the common table, the same on x86_64 and aarch64)."""

from __future__ import annotations

from probe import libc, report, result

CALLS = {"setup": 425, "enter": 426, "register": 427}


def main() -> None:
    """Report each."""
    parameters = b"\0" * 120
    report(
        setup=result(libc.syscall(CALLS["setup"], 4, parameters)),
        enter=result(libc.syscall(CALLS["enter"], -1, 0, 0, 0, None, 0)),
        register=result(libc.syscall(CALLS["register"], -1, 0, None, 0)),
    )


main()

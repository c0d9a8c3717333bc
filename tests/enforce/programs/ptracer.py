"""C33: asks to be traced by anybody, as debuggers and crash handlers do where there is Yama."""

from __future__ import annotations

import ctypes

from probe import libc, report, result

PR_SET_PTRACER = 0x59616D61  # linux/prctl.h


def main() -> None:
    """Report what the kernel says."""
    report(prctl=result(libc.prctl(PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)))


main()

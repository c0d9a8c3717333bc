"""Runs a command under `sandlock`, inside its virtual environment: ``sandboxed.py FOLDER WORDS…``.

Loopback on any port is let through, and binding, port 0 included: without that the workloads, which listen
themselves, cannot run.
"""

from __future__ import annotations

import sys

from sandlock import Sandbox


def main() -> int:
    """Return the command's exit code."""
    folder, *words = sys.argv[1:]
    box = Sandbox(
        fs_readable=["/"],
        fs_writable=[folder, "/dev"],
        net_allow=["127.0.0.1:*"],
        net_allow_bind=["*"],
    )
    return int(box.run(words).exit_code)


sys.exit(main())

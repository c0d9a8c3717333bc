"""Runs ``flowproof`` as an older host would: ``older_host.py ABI PYTHON -m flowproof WORDS…``.

ABI is the newest version of Landlock that is admitted to; 5 is Linux 6.10, before there were scopes, and 0
none at all. What a run then does, it does for real: only the answer to "which version" is staged.
"""

from __future__ import annotations

import sys

from flowproof.cli.main import main
from flowproof.run.kernel import Kernel

_known = Kernel.landlock


def _older(kernel: Kernel) -> int:
    return min(_known(kernel), int(sys.argv[1]))


Kernel.landlock = _older  # type: ignore[method-assign]  # this process alone, and what it forks
sys.exit(main(sys.argv[sys.argv.index("flowproof") + 1 :]))

"""Runs ``flowproof`` as an older host would: ``older_host.py ABI PYTHON -m flowproof WORDS…``.

ABI is the newest version of Landlock that is admitted to; 5 is Linux 6.10, before there were scopes, and 0
none at all. What a run then does, it does for real: only the answer to "which version" is staged.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from flowproof.cli.main import main
from flowproof.run.kernel import Kernel

_known = Kernel.landlock


class _OlderLandlock:
    """What takes the place of `Kernel.landlock`, in this process and in what it forks."""

    def __get__(self, kernel: Kernel, _owner: object = None) -> Callable[[], int]:
        return lambda: min(_known(kernel), int(sys.argv[1]))


setattr(Kernel, "landlock", _OlderLandlock())  # noqa: B010  mypy knows it for a method
sys.exit(main(sys.argv[sys.argv.index("flowproof") + 1 :]))

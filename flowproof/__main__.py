"""``python -m flowproof`` is the ``flowproof`` command."""

import sys

from flowproof.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

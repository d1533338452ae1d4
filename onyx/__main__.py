"""``python -m onyx`` is the same as the command ``onyx``."""

from __future__ import annotations

import sys

from onyx.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

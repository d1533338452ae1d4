"""``python -m onyx`` is the same as the command ``onyx``."""

from __future__ import annotations

import sys
from pathlib import Path

# Python looks first in the folder where the user happens to stand, and a folder there with the name
# "formats" is not our package.
if not sys.flags.safe_path and Path(sys.path[0]).resolve() != Path(__file__).resolve().parents[1]:
    del sys.path[0]

from onyx.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

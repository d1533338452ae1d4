"""``python -m tests.golden [FILE ...]``: write golden files anew, all that can be made here.

``git diff tests/golden`` then shows what others will see of a change.
"""

from __future__ import annotations

import sys

from tests.golden.files import FILES


def main(names: list[str]) -> int:
    if unknown := {*names} - {file.name for file in FILES}:
        print(f"tests.golden: no golden file {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    for file in FILES:
        if names and file.name not in names:
            continue
        lacks = file.lacks()
        said = f"left out: {lacks}" if lacks else ("written" if file.write() else "as it was")
        print(f"{file.name:<18}{said}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

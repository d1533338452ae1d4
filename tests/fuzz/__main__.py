"""``python -m tests.fuzz TARGET``: seeded damage; with ``--coverage`` guided by what is reached.

For ``--coverage`` install atheris.  It needs Python code, so every module is loaded from its
``.py``, and runs until it has found something, or ``--inputs``.
"""

from __future__ import annotations

import argparse
import sys
import time
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from pathlib import Path
from random import Random

PACKAGES = ("formats", "yfilter", "overlay", "registration", "onyx")
ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--coverage", action="store_true", help="let atheris make the inputs")
    parser.add_argument("--corpus", type=Path, help="with --coverage: where inputs are kept")
    options = parser.parse_args()
    if options.coverage:
        _run_guided(options)
        return
    from tests.fuzz.targets import TARGETS  # noqa: PLC0415 - after atheris is there, or not at all

    target = TARGETS[options.target]
    began = time.monotonic()
    for number in range(options.inputs):
        data = target.an_input(Random(f"{options.seed}.{number}"))
        try:
            target.run(data)
        except BaseException:
            print(f"{target.name}, seed {options.seed}, input {number}: {data.hex()}")
            raise
    seconds = time.monotonic() - began
    print(f"{options.inputs:,} inputs of {target.name}, seed {options.seed}, {seconds:.0f} s")


def _run_guided(options: argparse.Namespace) -> None:
    sys.path_hooks.insert(0, _sources_alone)
    sys.path_importer_cache.clear()
    import atheris  # noqa: PLC0415 - only here

    with atheris.instrument_imports(include=list(PACKAGES)):
        from tests.fuzz.targets import TARGETS  # noqa: PLC0415

    target = TARGETS[options.target]
    folder = options.corpus or Path(".fuzz") / target.name
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (folder / f"seed-{number}").write_bytes(seed)
    said = [f"-runs={options.inputs}", f"-seed={options.seed + 1}", "-max_len=4096", str(folder)]
    atheris.Setup([sys.argv[0], *said], target.run)
    atheris.Fuzz()


def _sources_alone(folder: str) -> FileFinder:
    """The extensions of the hot modules are not found, so that their ``.py`` can be followed."""
    path = Path(folder)
    if not any(path.is_relative_to(ROOT / package) for package in PACKAGES):
        raise ImportError(folder)
    return FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))


if __name__ == "__main__":
    main()

"""Which Onyx a worker of a cluster runs: the code that was sent, or its own of the same build.

The driver sends its code, compiled modules included, as an archive that Spark unpacks on each
worker.  The text of this file stands there in place of every package, and chooses at the first
import; so it imports nothing of Onyx before that::

    onyx-code/formats/__init__.py      this file, and so for the other packages
    onyx-code/code/formats/...         the packages themselves
    onyx-code/digest                   of them

Sent code runs where its compiled modules fit the worker's Python and platform.  Other workers run
their own Onyx if it has the same digest and is compiled; else the import fails, and with it the
job, by a sentence with the worker's host in it (``UNFIT``).
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from pathlib import Path
from socket import gethostname
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

PACKAGES = ("formats", "yfilter", "overlay", "registration", "onyx")
FOLDER = "onyx-code"
UNFIT = "OnyxUnfit"
_CODE, _DIGEST = "code", "digest"
_MANIFEST = "formats/compiled.json"


class OnyxUnfit(ImportError):
    """A worker has no compiled modules, or those of another build."""


def is_here(master: str) -> bool:
    """Whether the workers are processes of this machine, with this environment."""
    return master == "local" or master.startswith("local[")


def send_code(session: Any) -> None:
    """Send this code to the workers of a cluster, once; the dependencies must be there.

    KernelMissing where nothing is compiled here.
    """
    from formats.kernel import is_compiled  # noqa: PLC0415 - not in place of a package
    from yfilter.errors import KernelMissing  # noqa: PLC0415

    context = session.sparkContext
    if is_here(context.master) or FOLDER in context._python_includes:
        return
    if not is_compiled():
        raise KernelMissing()
    files = import_module("pyspark").SparkFiles
    path = Path(files.getRootDirectory()) / f"{FOLDER}.zip"  # Spark removes it at its end
    pack(Path(__file__).resolve().parents[2], path)
    context.addArchive(f"{path}#{FOLDER}")
    context._python_includes.append(FOLDER)  # in front of sys.path, as addPyFile does it


def pack(root: Path, path: Path) -> None:
    """Write the archive of the packages below ``root``."""
    with ZipFile(path, "w", ZIP_DEFLATED, compresslevel=1) as archive:
        for package in PACKAGES:
            archive.write(__file__, f"{package}/__init__.py")
        for file in [*_python_files(root), *_compiled_files(root), root / _MANIFEST]:
            archive.write(file, f"{_CODE}/{file.relative_to(root)}")
        archive.writestr(_DIGEST, _digest_of(root))


def _python_files(root: Path) -> Iterator[Path]:
    return (file for package in PACKAGES for file in sorted((root / package).rglob("*.py")))


def _compiled_files(root: Path) -> Iterator[Path]:
    for module in json.loads((root / _MANIFEST).read_bytes())["sources"]:
        for suffix in EXTENSION_SUFFIXES:
            if (file := root.joinpath(*module.split(".")).with_suffix(suffix)).exists():
                yield file


def _digest_of(root: Path) -> str:
    """Of the Python files, and of the sources that were compiled."""
    found = hashlib.sha256()
    for file in _python_files(root):
        found.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes())
    manifest = root / _MANIFEST
    sources = json.loads(manifest.read_bytes())["sources"] if manifest.exists() else {}
    found.update(json.dumps(sources, sort_keys=True).encode())
    return found.hexdigest()


def _choose(folder: Path) -> None:
    """Put the package of this name in the place of this file."""
    sys.path[:] = [path for path in sys.path if Path(path).resolve() != folder]
    code = folder / _CODE
    if any(_compiled_files(code)):
        sys.path.insert(0, str(code))
    else:
        own = PathFinder.find_spec("formats")
        if own is None or own.origin is None:
            raise _unfit("has no Onyx, and the modules that were sent are of another platform")
        if _digest_of(Path(own.origin).parents[1]) != (folder / _DIGEST).read_text():
            raise _unfit("has another build of Onyx than the one that asks it")
    del sys.modules[__name__]
    import_module(__name__)
    reason = import_module("formats.kernel").REASON
    if reason:
        raise _unfit(f"does not run the compiled modules: {reason}")


def _unfit(why: str) -> OnyxUnfit:
    return OnyxUnfit(f"the worker {gethostname()} {why}")


if __name__ in PACKAGES:
    _choose(Path(__file__).resolve().parents[1])

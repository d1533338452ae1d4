"""Compiles the hot modules with Cython where that can be done; all else is in pyproject.toml.

A hot module is one with a ``.pxd`` beside it: plain Python that runs as it is and many times faster
compiled, with its C types in its annotations and in the ``.pxd``.  What Cython adds to all of them,
memoryviews above all, is compiled once, as one more module (``SHARED``): that halves the time.

``ONYX_COMPILE`` says what is wanted: ``auto`` (the default: compile if Cython and a C compiler are
there, otherwise say so and go on), ``require`` (fail otherwise) or ``skip``.  It is all or nothing:
modules of two builds are never mixed.

Beside the compiled modules a manifest is written, ``formats/compiled.json``: which sources, by
their digest, were compiled, or why none was.  ``formats/kernel.py`` reads it at run time.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

HOT_MODULES = sorted(
    ".".join(source.with_suffix("").parts)
    for package in ("formats", "yfilter")
    for source in Path(package).rglob("*.pyx")
)
SHARED = "formats.compiled_support"  # nobody's source: Cython writes it

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "show_performance_hints": False,
    "auto_pickle": False,
}
GENERATED = "build/cython"  # the C sources; never part of a distribution

MODE = os.environ.get("ONYX_COMPILE") or "auto"
if MODE not in {"auto", "require", "skip"}:
    sys.exit(f"onyx: ONYX_COMPILE is {MODE!r}; expected auto, require or skip")


def source_of(module: str) -> Path:
    return Path(*module.split(".")).with_suffix(".pyx")


def digests(files: dict[str, Path]) -> dict[str, str]:
    return {
        name: hashlib.sha256(file.read_bytes()).hexdigest()
        for name, file in files.items()
        if file.exists()
    }


class BuildHotModules(build_ext):
    """``build_ext`` with Cython, a way back and the manifest."""

    def run(self) -> None:
        reason = "ONYX_COMPILE=skip" if MODE == "skip" else self.compile_or_say_why()
        if reason:
            print(f"onyx: hot modules are not compiled, the slow reference engine runs: {reason}")
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []
        self.write_manifest(reason)

    def compile_or_say_why(self) -> str:
        in_place = self.inplace
        try:
            super().run()
        except (Exception, SystemExit) as error:
            if MODE == "require":
                raise
            self.inplace = in_place  # changed while running
            if isinstance(error, (BaseError, CCompilerError)):
                return "no working C compiler (ONYX_COMPILE=require shows the error)"
            return " ".join(str(error).split())[:200] or type(error).__name__
        return ""

    def build_extensions(self) -> None:
        from Cython.Build import cythonize  # noqa: PLC0415 - may be missing, which is no error
        from Cython.Compiler import Options  # noqa: PLC0415

        Options.emit_code_comments = False
        translated = cythonize(
            [Extension(extension.name, extension.sources) for extension in self.extensions],
            build_dir=GENERATED,
            compiler_directives=DIRECTIVES,
            shared_utility_qualified_name=SHARED,
            nthreads=os.cpu_count() or 1,
            quiet=True,
        )
        for extension, in_c in zip(self.extensions, translated, strict=True):
            extension.sources = in_c.sources
            if self.compiler.compiler_type == "unix":
                extension.extra_compile_args = ["-O3", "-g0", "-Wno-sign-compare"]
        self.parallel = True
        super().build_extensions()

    def write_manifest(self, reason: str) -> None:
        manifest = Path(self.get_ext_fullpath("formats.kernel")).with_name("compiled.json")
        sources = {extension.name: source_of(extension.name) for extension in self.extensions}
        headers = {
            ".".join(header.with_suffix("").parts): header
            for package in ("formats", "yfilter")
            for header in Path(package).rglob("*.pxd")
        }
        manifest.parent.mkdir(parents=True, exist_ok=True)
        content = {
            "sources": digests(sources),
            "types": digests(headers if sources else {}),
            "reason": reason,
        }
        manifest.write_text(json.dumps(content, indent=1) + "\n")


def hot_extensions() -> list[Extension]:
    if MODE == "skip":
        return []  # without extensions the wheel is one for every platform
    hot = [Extension(name, [str(source_of(name))]) for name in HOT_MODULES]
    return [*hot, Extension(SHARED, [])]


if __name__ == "__main__":  # not in the processes that translate
    setup(ext_modules=hot_extensions(), cmdclass={"build_ext": BuildHotModules})

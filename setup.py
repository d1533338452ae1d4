"""Compiles the hot modules with Cython where that can be done; all else is in pyproject.toml.

A hot module is a ``.pyx`` file; a ``.pxd`` without one is a header.  Each is a task of its own,
from Cython to the linker, on all cores, the longest first.  One more extension has no source: it
has the code that Cython would put into each of them.

``ONYX_COMPILE`` says whether modules are compiled: ``auto`` (the default: where there are Cython
and a C compiler; without them setup.py says so and goes on), ``require`` (fail otherwise) or
``skip``.  Either all modules are compiled or none is.

``ONYX_BUILD_CACHE`` names the folder for what was compiled before, by default
``~/.cache/onyx/compiled``, so that a second clone compiles nothing; empty: ``build/compiled`` here.
An entry's name is a digest of everything that the extension was made from, and an entry begins with
the digest of its content, so that a damaged one is compiled anew.

``ONYX_COMPILE_CHECKS=1`` compiles with every check of bounds that Cython has, for ``make
campaign``.

Beside the extensions a manifest is written, ``formats/compiled.json``: the digests of the sources
that were compiled, or the reason why none was.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

PACKAGES = ("formats", "yfilter")  # those with hot modules
SHARED = "formats.compiled_support"  # the code of memoryviews, once for all modules
GENERATED = Path("build", "cython")  # the C sources; never part of a distribution
KEPT_BUILDS = 20  # of each extension, in the cache

CHECKS = {"boundscheck": False, "wraparound": False, "initializedcheck": False}
DIRECTIVES = {
    "language_level": 3,
    "cdivision": True,
    "show_performance_hints": False,
    # Both make C smaller, and compiling faster, by a seventh each; nobody pickles a hot object.
    "auto_pickle": False,
    "emit_code_comments": False,
    **CHECKS,
}
FLAGS = {"unix": ["-O3", "-g0", "-w"], "msvc": ["/O2"]}  # nobody reads warnings of generated C

MODE = os.environ.get("ONYX_COMPILE") or "auto"
if MODE not in {"auto", "require", "skip"}:
    sys.exit(f"onyx: ONYX_COMPILE is {MODE!r}; expected auto, require or skip")
IS_CHECKED = os.environ.get("ONYX_COMPILE_CHECKS", "0") not in {"", "0"}
if IS_CHECKED:
    DIRECTIVES |= dict.fromkeys(CHECKS, True)


def hot_sources() -> list[Path]:
    """The longest first."""
    sources = [file for package in PACKAGES for file in Path(package).rglob("*.pyx")]
    return sorted(sources, key=lambda file: (-file.stat().st_size, file))


def module_of(source: Path) -> str:
    return ".".join(source.with_suffix("").parts)


def digest_of(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


# -------------------------------------------------------------------------------------------------
# The cache


class Cache:
    """Compiled extensions by the digest of what they were made from.

    Several builds may use it at once: an entry appears whole, by a rename.  Reading one makes it
    the newest of its module, and of each module the oldest beyond KEPT_BUILDS are removed.
    """

    def __init__(self) -> None:
        self._directory = _cache_directory()

    def take(self, module: str, key: str, to: Path) -> bool:
        """Copies an entry; False if there is none, or only a damaged one."""
        entry = self._directory / module / key
        try:
            digest, _, content = entry.read_bytes().partition(b"\n")
        except OSError:
            return False
        if hashlib.sha256(content).hexdigest().encode() != digest:
            entry.unlink(missing_ok=True)
            return False
        _write_whole(to, content, executable=True)
        with suppress(OSError):
            os.utime(entry)
        return True

    def keep(self, module: str, key: str, built: Path) -> None:
        """A cache that cannot be written is none: the build goes on."""
        content = built.read_bytes()
        digest = hashlib.sha256(content).hexdigest().encode()
        with suppress(OSError):
            entry = self._directory / module / key
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            entry.parent.mkdir(exist_ok=True)
            _write_whole(entry, digest + b"\n" + content)
            entries = sorted(entry.parent.iterdir(), key=lambda file: -file.stat().st_mtime)
            for old in entries[KEPT_BUILDS:]:
                old.unlink(missing_ok=True)


def _cache_directory() -> Path:
    named = os.environ.get("ONYX_BUILD_CACHE")
    if named is None:
        home = os.environ.get("XDG_CACHE_HOME", "")
        with suppress(RuntimeError):  # no home
            caches = Path(home) if Path(home).is_absolute() else Path.home() / ".cache"
            return caches / "onyx" / "compiled"
    return Path(named or "build/compiled")


def _write_whole(file: Path, content: bytes, *, executable: bool = False) -> None:
    """Never in place: a process may have the former file mapped."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=file.parent, prefix=".new-", delete=False) as new:
        try:
            new.write(content)
            new.close()
            Path(new.name).chmod(0o755 if executable else 0o644)
            Path(new.name).replace(file)
        except BaseException:
            Path(new.name).unlink(missing_ok=True)
            raise


# -------------------------------------------------------------------------------------------------
# The build


class BuildHotModules(build_ext):
    """``build_ext`` with Cython, a cache, a way to do without, and the manifest."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.force = True  # the cache knows better than times of files

    def run(self) -> None:
        reason = "ONYX_COMPILE=skip" if MODE == "skip" else self.compile_or_say_why()
        if reason:
            self.extensions = []
            _say_loudly(reason)
        self.remove_others()
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
        """In threads, since all of the work is in processes: Cython, the C compiler, the linker."""
        started = time.monotonic()
        cache, toolchain = Cache(), self.toolchain()
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            keys = [self.key(one, toolchain) for one in self.extensions]
            tasks = [
                pool.submit(self.build, one, key, cache)
                for one, key in zip(self.extensions, keys, strict=True)
            ]
            try:
                compiled = sum(task.result() for task in tasks)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        print(
            f"onyx: {len(self.extensions)} extensions, {compiled} of them compiled in "
            f"{time.monotonic() - started:.1f} s, the others from the cache"
        )

    def toolchain(self) -> str:
        """Everything beside the sources that decides about an extension."""
        from Cython import __version__ as cython_version  # noqa: PLC0415 - may be missing

        command = getattr(self.compiler, "compiler_so", None) or [self.compiler.compiler_type]
        version = ""
        if self.compiler.compiler_type == "unix":
            if shutil.which(command[0]) is None:
                raise CCompilerError(f"{command[0]} is not there")
            asked = [command[0], "--version"]
            version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        variables = ("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS", "LDSHARED", "ARCHFLAGS", "CL")
        return repr(
            (
                *(cython_version, sys.version, sysconfig.get_platform(), platform.libc_ver()),
                *(sysconfig.get_config_var("EXT_SUFFIX"), command, version),
                *(sorted(DIRECTIVES.items()), FLAGS.get(self.compiler.compiler_type)),
                *(os.environ.get(variable) for variable in variables),
            )
        )

    def key(self, extension: Extension, toolchain: str) -> str:
        made_from: list[str] = []
        if extension.name != SHARED:
            source = Path(extension.sources[0])
            _refuse_checks_of_its_own(source)
            made_from = [f"{file}: {digest_of(file)}" for file in _all_sources(source)]
        return hashlib.sha256("\n".join([toolchain, *made_from]).encode()).hexdigest()

    def build(self, extension: Extension, key: str, cache: Cache) -> bool:
        """True if it had to be compiled."""
        built = Path(self.get_ext_fullpath(extension.name))
        if cache.take(extension.name, key, built):
            return False
        in_c = GENERATED.joinpath(*extension.name.split(".")).with_suffix(".c")
        in_c.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "cython", *_arguments(extension, in_c)], check=True)
        extension.sources = [str(in_c)]
        extension.extra_compile_args = FLAGS.get(self.compiler.compiler_type, [])
        self.build_extension(extension)
        cache.keep(extension.name, key, built)
        return True

    def remove_others(self) -> None:
        """Python takes an extension before the source of that name: no former one may be left."""
        ours = {Path(self.get_ext_filename(extension.name)) for extension in self.extensions}
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        for root in [Path(self.build_lib)] + [Path()] * bool(self.inplace):
            for package in PACKAGES:
                for file in (root / package).rglob(f"*{suffix}"):
                    if file.relative_to(root) not in ours:
                        file.unlink()

    def write_manifest(self, reason: str) -> None:
        manifest = Path(self.get_ext_fullpath("formats.any")).with_name("compiled.json")
        sources = {module_of(file): digest_of(file) for file in hot_sources() if self.extensions}
        headers = [file for package in PACKAGES for file in Path(package).rglob("*.pxd")]
        content = {
            "sources": sources and {**sources, SHARED: ""},
            "types": {module_of(file): digest_of(file) for file in headers if sources},
            "reason": reason,
            "checks": IS_CHECKED,
        }
        _write_whole(manifest, (json.dumps(content, indent=1) + "\n").encode())


def _arguments(extension: Extension, in_c: Path) -> list[str]:
    """Of Cython."""
    directives = [f"--directive={name}={value}" for name, value in DIRECTIVES.items()]
    if extension.name == SHARED:
        return [*directives, "--generate-shared", str(in_c)]
    return [
        *("--module-name", extension.name, *directives, "--shared", SHARED),
        *(extension.sources[0], "--output-file", str(in_c)),
    ]


def _all_sources(source: Path) -> list[Path]:
    """The source and every header of ours that it needs, in order."""
    from Cython.Build.Dependencies import create_dependency_tree  # noqa: PLC0415

    found = create_dependency_tree(quiet=True).all_dependencies(str(source))
    return sorted({Path(file) for file in found if Path(file).parts[0] in PACKAGES})


def _refuse_checks_of_its_own(source: Path) -> None:
    """A directive in a file has precedence, so that a build with checks would not have them."""
    if not IS_CHECKED:
        return
    for line in source.read_text(encoding="utf-8").splitlines():
        if re.match(rf"# *cython: .*({'|'.join(CHECKS)})", line):
            raise CCompilerError(f"{source} has a directive that setup.py gives: {line}")


def _say_loudly(reason: str) -> None:
    line = "!" * 79
    print(
        f"{line}\nonyx: the hot modules are NOT compiled; clients work, brokers need them:\n"
        f"onyx: {reason}\n{line}",
        file=sys.stderr,
    )


def hot_extensions() -> list[Extension]:
    if MODE == "skip":
        return []  # without extensions the wheel is one for every platform
    hot = [Extension(module_of(source), [str(source)]) for source in hot_sources()]
    return [*hot, Extension(SHARED, [])]


if __name__ == "__main__":
    setup(ext_modules=hot_extensions(), cmdclass={"build_ext": BuildHotModules})

"""The names of a package, each imported from its module when it is first asked for.

So whoever needs one name does not load what all the others need: a command line that prints its
version, or a broker that has no client.  PERF: ``python -m benchmarks operate`` (version_cpu_s).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """What ``__getattr__`` of a package is to be: ``modules`` has the names of each module, with
    spaces between them.

    It raises AttributeError for any other name, and is asked once for each.
    """
    module_of = {name: module for module, names in modules.items() for name in names.split()}

    def get(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(module_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return get

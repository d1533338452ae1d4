"""What stands in for the module ``cython`` where Cython is not installed.

A hot module declares its C types with it (Cython's "pure Python mode") and imports it so::

    try:
        import cython
    except ImportError:
        from formats import cython_stub as cython

The compiler reads the declarations; uncompiled they do nothing.  Hot modules have their
annotations as strings (``from __future__ import annotations``), so that only what is called or
decorated with at run time has to be here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Decorated = TypeVar("_Decorated")

compiled = False


def cfunc(decorated: _Decorated) -> _Decorated:
    return decorated


def inline(decorated: _Decorated) -> _Decorated:
    return decorated


def exceptval(*_: object, **__: object) -> Callable[[_Decorated], _Decorated]:
    return lambda decorated: decorated


def cast(_type: object, value: Any, **_options: object) -> Any:
    return value


def __getattr__(name: str) -> Any:
    """The C types (``cython.int``, ``cython.uchar`` ...) as they are given to cast."""
    if name.startswith("__"):
        raise AttributeError(name)
    return name

"""The error that a nursery's group is about: a nursery wraps even a single one into a group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio


def lone_error(error: BaseException) -> BaseException:
    """The only error in a group (of groups), or what was given.

    Who else was cancelled meanwhile does not count: a time that was over as well must not make
    another error of it.
    """
    while isinstance(error, BaseExceptionGroup):
        _, others = error.split(trio.Cancelled)
        found = (error if others is None else others).exceptions
        if len(found) != 1:
            break
        error = found[0]
    return error


@contextmanager
def lone_errors() -> Iterator[None]:
    """The only error of a group comes out of the block as it is."""
    try:
        yield
    except BaseExceptionGroup as group:
        error = lone_error(group)
        if error is group:
            raise
        raise error from error.__cause__

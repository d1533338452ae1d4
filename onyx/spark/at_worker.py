"""Readers and writers on their way to the workers of a cluster, which may have no Onyx."""

from __future__ import annotations

import pickle
from typing import Any


def _opened(data: bytes) -> Any:
    """Of a worker without Onyx, which has to be told of this function as well, by its text."""
    import os  # noqa: PLC0415 - the function goes alone
    import pickle  # noqa: PLC0415
    import socket  # noqa: PLC0415

    try:
        kind, state = pickle.loads(data)
    except ModuleNotFoundError as error:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"  # as told_alone
        says = "Onyx is sent by onyx.spark.register(spark), called before, its dependencies are not"
        unfit = type("OnyxUnfit", (ImportError,), {"__module__": "__main__"})
        raise unfit(f"the worker {socket.gethostname()}: {error}; {says}") from None
    made = kind.__new__(kind)
    vars(made).update(state)
    return made


_opened.__module__ = "__main__"  # so cloudpickle sends it by value, and not by its name


class AtWorker:
    """An object that says by one sentence, at a worker without Onyx, how that gets it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened, (pickle.dumps((type(self), vars(self))),)

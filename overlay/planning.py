"""PlanningOptions: whether the registration service plans by itself (``[planning]``)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from overlay.errors import TopologyError
from overlay.toml_table import Text

_FORMS = (
    (
        (".memory", ".memoryOverhead", ".maxResultSize"),
        re.compile("[0-9]+([kmgtp]b?|b)?", re.IGNORECASE),
        'amount of memory, as "4g"',
    ),
    ((".cores", ".cores.max", ".cpus", ".instances"), re.compile("[0-9]+"), "number"),
)
"""Endings of settings of Spark, which says nothing of their names where their values are wrong."""


class PlanningOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """When the registration service makes a plan by itself, and how fast profiles move by it."""

    auto: Annotated[bool | None, Meta(extra={"shown": "where Spark is installed"})] = None
    """`false`: never; `true`: it must be able to, else it does not start"""
    master: Annotated[
        Text,
        Meta(extra={"shown": "the packaged one, on all cores of the registration's machine"}),
    ] = ""
    """of Spark, as `"spark://host:7077"`"""
    conf: Annotated[dict[str, str], Meta(extra={"shown": "none"})] = {}
    """settings of Spark, in a table `[planning.conf]`: `"spark.executor.memory" = "4g"`"""
    credentials: Annotated[Path | None, Meta(extra={"shown": "none: files alone"})] = None
    """file of `onyx cert issue` for a principal with the role `read-archive`: plans look at
    messages that the brokers of all machines have archived, and not at files of the registration's
    machine"""
    at_profiles: Annotated[int, Meta(ge=1, le=1_000_000_000)] = 1_000
    """with fewer there is no first plan"""
    drift: Annotated[float, Meta(ge=0.001, le=100)] = 0.2
    """share of the profiles that must have changed since the plan was looked at last, before it is
    looked at again"""
    moves_per_second: Annotated[float, Meta(ge=0.01, le=10_000)] = 10.0
    """profiles that begin to move in a second"""
    settle_s: Annotated[float, Meta(ge=0, le=86_400)] = 60.0
    """seconds for which there must be a reason, without many changes meanwhile"""
    between_s: Annotated[float, Meta(ge=0, le=31_536_000)] = 3_600.0
    """seconds between two plans, at least"""

    def __post_init__(self) -> None:
        for name in self.conf:
            if not name.startswith("spark."):
                raise TopologyError("", f'conf."{name}"', 'settings of Spark begin with "spark."')
        for name, value in self.conf.items():
            for endings, form, expected in _FORMS:
                if name.endswith(endings) and not form.fullmatch(value):
                    raise TopologyError("", f'conf."{name}"', f'"{value}" is no {expected}')

"""The classes of Spark that a data source derives from; an empty one for each that is not there, so
that the modules can be imported without Spark, or with one that is too old."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceArrowWriter,
        DataSourceReader,
        DataSourceStreamArrowWriter,
        DataSourceStreamReader,
        InputPartition,
        WriterCommitMessage,
    )
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

__all__ = [
    "DataSource",
    "DataSourceArrowWriter",
    "DataSourceReader",
    "DataSourceStreamArrowWriter",
    "DataSourceStreamReader",
    "InputPartition",
    "SupportsTriggerAvailableNow",
    "WriterCommitMessage",
]


def __getattr__(name: str) -> type:
    for module in ("pyspark.sql.datasource", "pyspark.sql.streaming.datasource"):
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError):
            continue
    return type(name, (), {})

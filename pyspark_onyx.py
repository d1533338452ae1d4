"""By the name of this module Spark finds ``format("onyx")``."""

from onyx.spark.data_source import OnyxDataSource as DefaultSource

__all__ = ["DefaultSource"]

"""Onyx in a pipeline of Spark: profiles as a filter of DataFrames, archives as DataFrames.

::

    import onyx.spark

    with onyx.spark.session() as spark:
        news = spark.read.format("onyx").option("archive", "news").load()
        storms = onyx.spark.filter(news, {"ann": '//headline[contains(., "storm")]'})

``filter`` and ``register`` take a session of the user's own as well.  ``plan`` and ``place``
are ``onyx plan make`` and its assignment; ``plan_json`` is the text of a plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from formats.lazy_names import lazy_names
from onyx.spark.data_source import OnyxDataSource
from onyx.spark.filtering import filter_frame as filter  # noqa: A004 - as users say it
from registration.spark.sent_code import send_code
from registration.spark.session import SparkOptions, check_spark, spark_session

if TYPE_CHECKING:
    from onyx.spark.planning import place, plan, plan_json

Session: TypeAlias = Any

__all__ = ["filter", "place", "plan", "plan_json", "register", "session"]

# PERF: a worker imports this package for its data source, and plans nothing.
__getattr__ = lazy_names(__name__, {"onyx.spark.planning": "place plan plan_json"})


@contextmanager
def session(master: str = "", conf: Mapping[str, str] | None = None) -> Iterator[Session]:
    """A Spark session that knows ``format("onyx")`` and ends with its JVM.

    ``master`` "": inside this process on all cores, by the Java of the system or the packaged one.
    ``conf``: settings on top of Onyx's own.  Raises SparkUnavailable where there can be none.
    """
    with spark_session(SparkOptions(master, conf or {})) as spark:
        register(spark)
        yield spark


def register(spark: Session) -> None:
    """Make ``format("onyx")`` known to a session of the user's own, and to the workers of its
    cluster; without one, Spark finds it by the name of the module ``pyspark_onyx``.

    KernelMissing where nothing is compiled here; SparkUnavailable for a Spark that is too old."""
    check_spark()
    send_code(spark)
    spark.dataSource.register(OnyxDataSource)

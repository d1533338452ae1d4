"""One Spark session for all tests that need one; its JVM ends with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from registration.spark.session import SparkOptions, spark_session

SETTINGS = {
    "spark.driver.memory": "600m",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """On the Java that is found first: the one of the system where there is one."""
    with spark_session(SparkOptions(settings=SETTINGS)) as session:
        yield session

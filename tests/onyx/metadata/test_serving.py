"""What a provider in a network does when its rows fail."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from onyx.data_source import DataSource
from onyx.errors import LeaseLost
from onyx.metadata import MetadataProvider
from onyx.metadata.requests import PutSchema, Status, asked
from onyx.metadata.serving import Serving
from onyx.store_errors import store_errors
from overlay.link.errors import DiskFull, Fenced, StoreError
from overlay.link.events import Delete, Put
from overlay.link.store import Store
from registration.metadata.documents import MetadataRefused
from tests.onyx.metadata.test_explanation import SCHEMA


class Rows(Store):
    error: StoreError | None = None

    def check(self) -> None:
        if isinstance(self.error, Fenced):
            raise self.error

    def commit(self, changes: Iterable[Put | Delete]) -> None:
        if self.error is not None:
            raise self.error
        super().commit(changes)


class Source:
    def __init__(self, ask: Callable[[Any], Awaitable[None]]) -> None:
        self.answer = ask


@pytest.mark.usefixtures("mock_clock")
async def test_a_full_disk_refuses_and_a_lost_lease_ends(tmp_path: Path) -> None:
    rows, put = Rows(tmp_path / "rows"), asked(PutSchema(data=SCHEMA, media_type="text/turtle"))
    status = asked(Status())
    told = []

    async def ask(handler: Any) -> None:
        rows.error = DiskFull("the disk is full")
        with pytest.raises(MetadataRefused, match="disk-full"):
            await handler("", True, put)
        rows.error = None
        for question in (put, status, status):  # the last one after all that is to be published
            told.append(await handler("", True, question))
        rows.error = Fenced("the rows are another's")
        with pytest.raises(MetadataRefused, match="source-away"):  # what it knew may be wrong
            await handler("", False, status)
        told.append("fenced")
        await anyio.sleep_forever()

    with MetadataProvider(tmp_path, rows=rows) as provider:
        serving = Serving(cast(DataSource, Source(ask)), provider)
        with pytest.raises(LeaseLost), store_errors():
            await serving.run()
    assert told[-1] == "fenced"

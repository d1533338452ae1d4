"""What a provider in a network does when its rows fail."""

from __future__ import annotations

from collections.abc import Iterable
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
    async def answer(self, handler: Any) -> None:
        await anyio.sleep_forever()


async def test_a_full_disk_refuses_and_a_lost_lease_ends(tmp_path: Path) -> None:
    rows, put = Rows(tmp_path / "rows"), asked(PutSchema(data=SCHEMA, media_type="text/turtle"))
    with MetadataProvider(tmp_path, rows=rows) as provider:
        serving = Serving(cast(DataSource, Source()), provider)
        with pytest.raises(LeaseLost), store_errors():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(serving.run)
                await anyio.wait_all_tasks_blocked()
                rows.error = DiskFull("the disk is full")
                with pytest.raises(MetadataRefused, match="disk-full"):
                    await serving.answer("", True, put)
                rows.error = None
                await serving.answer("", True, put)
                rows.error = Fenced("the rows are another's")
                with pytest.raises(Fenced):  # what it knew before may be wrong by now
                    await serving.answer("", False, asked(Status()))

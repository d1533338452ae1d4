"""What a gateway says of itself to those who watch it."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families

from onyx import DataSource
from onyx.client_values import Outcome
from onyx.gateway.gateway_metrics import GatewayMetrics
from onyx.gateway.gateway_process import run_gateway
from onyx.gateway.options import GatewayOptions
from onyx.gateway.traffic import Traffic
from onyx.listening import bind, bound_address
from overlay.nodes import Address
from tests.hanging import SAFETY_SECONDS
from tests.onyx.gateway.browsing import Answer, Client
from tests.onyx.networks import RunningProcess

ANY = Address("127.0.0.1", 0)


@asynccontextmanager
async def gateway(registration: str, caplog: pytest.LogCaptureFixture) -> AsyncIterator[list[str]]:
    """The URLs of its pages and of its admin address."""
    is_ready = trio.Event()
    caplog.set_level(logging.INFO, logger="onyx.gateway")
    with bind(ANY, "listen") as listener:
        listen = Address(*bound_address(listener, ANY))
        run = partial(run_gateway, ready=is_ready.set, admin=ANY)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, registration, GatewayOptions(listen), listener)
            await is_ready.wait()
            (admin,) = re.findall(r"metrics at (http://[^/]+/)metrics", caplog.text)
            yield [f"http://{listen}/", admin]
            nursery.cancel_scope.cancel()


async def asked(url: str, path: str, *, is_api: bool = True) -> Answer:
    return await trio.to_thread.run_sync(Client(url, is_api=is_api).ask, "GET", path)


async def test_a_gateway_is_alive_ready_and_counts_what_it_answers(
    gateway_network: RunningProcess, caplog: pytest.LogCaptureFixture
) -> None:
    async with gateway(gateway_network.registration, caplog) as (pages, admin):
        (start,) = [record for record in caplog.records if record.msg == "starts"]
        assert {"version", "build", "pid"} <= vars(start).keys()
        assert (await asked(admin, "/livez")).status == 200
        with trio.fail_after(SAFETY_SECONDS):
            while (await asked(admin, "/readyz")).status != 200:
                await trio.sleep(0.01)
        for path, status in (("/v1/sources", 200), ("/v1/sources/nobody", 404)):
            assert (await asked(pages, path)).status == status
        text = (await asked(admin, "/metrics")).said
        families = text_string_to_metric_families(text)
        found = {
            (sample.name, sample.labels.get("status", "")): sample.value
            for family in families
            for sample in family.samples
        }
        assert found["onyx_gateway_answers_total", "200"] == 1
        assert found["onyx_gateway_answers_total", "404"] == 1
        assert found["onyx_gateway_answer_seconds_count", ""] == 2
        assert found["onyx_gateway_requests", ""] == 0
        assert found["onyx_gateway_sessions", ""] == 1
        assert found["onyx_ready", ""] == 1
        assert 'onyx_certificate_end_seconds{node="gateway",of="authority"}' in text
        other = await asked(admin, "/v1/sources", is_api=False)
        assert other.status == 404, "nothing else is there"


async def test_who_traces_a_message_may_publish_it_over_http(
    gateway_network: RunningProcess,
    source: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    came: list[object] = []
    publish = DataSource.publish

    async def noted(self: DataSource, *message: Any, **about: Any) -> Outcome:
        came.append(about["headers"])
        return await publish(self, *message, **about)

    monkeypatch.setattr(DataSource, "publish", noted)
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    async with gateway(gateway_network.registration, caplog) as (pages, _):
        ask = partial(Client(pages).ask, "POST", f"/v1/sources/{source}/messages", "<m/>")
        assert (await trio.to_thread.run_sync(partial(ask, traceparent=trace))).status == 201
        assert (await trio.to_thread.run_sync(ask)).status == 201
    assert came == [{"traceparent": trace}, None]


def test_a_gateway_that_cannot_work_says_why() -> None:
    text = GatewayMetrics(Traffic(), lambda: 0).text("")[0].decode()
    assert 'onyx_ready{node="gateway"} 0.0' in text

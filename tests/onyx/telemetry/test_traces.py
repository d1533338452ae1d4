"""Traces of a network that runs: what a receiver of OTLP gets of a message that is traced."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trio

from onyx import DataSource, User, launch
from onyx.broker.messages.message_spans import SpanRecord
from onyx.telemetry import span_exporter
from onyx.telemetry.span_exporter import SPANS_MAX, SpanExporter
from tests.hanging import SAFETY_SECONDS
from tests.onyx.networks import small_topology

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


class Receiver(ThreadingHTTPServer):
    """Of OTLP over HTTP, as protobuf; ``spans`` as they came, with whose they are."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: list[tuple[str, Any]] = []

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (  # noqa: PLC0415
            ExportTraceServiceRequest,
        )

        assert self.path == "/v1/traces"
        data = self.rfile.read(int(self.headers["content-length"]))
        request = ExportTraceServiceRequest.FromString(data)
        for group in request.resource_spans:
            about = {entry.key: entry.value.string_value for entry in group.resource.attributes}
            for scope in group.scope_spans:
                self.server.spans += [(about["service.instance.id"], s) for s in scope.spans]
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *about: object) -> None:
        pass


@pytest.fixture
async def receiver(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Receiver]:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        try:
            with trio.fail_after(SAFETY_SECONDS):
                yield server
        finally:
            server.shutdown()
            thread.join()


async def test_a_message_is_traced_over_two_brokers(receiver: Receiver, tmp_path: Path) -> None:
    async with launch(small_topology(tmp_path / "data", 2)) as network:
        source = await DataSource.register(network.registration, location=(10.0, 0.0))
        async with source, User(network.registration, "ada") as user:
            profile = await user.add_profile("//a", location=(20.0, 0.0), wait=True)
            results = user.results(profile.id)
            headers = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
            assert (await source.publish(b"<m><a/></m>", headers=headers)).accepted
            assert (await source.publish(b"<m><a/></m>")).accepted
            for _ in range(2):
                await anext(results)
    found = {(broker, span.name): span for broker, span in receiver.spans}
    assert len(receiver.spans) == len(found)
    steps = ("match", "deliver")
    assert found.keys() >= {("B1", "accept"), ("B2", "hop"), *(("B2", step) for step in steps)}
    assert {span.trace_id.hex() for span in found.values()} == {TRACE}
    accept, hop = found["B1", "accept"], found["B2", "hop"]
    assert accept.parent_span_id.hex() == "00f067aa0ba902b7"
    assert hop.parent_span_id == accept.span_id
    assert {found["B2", step].parent_span_id for step in steps} == {hop.span_id}
    assert all(s.start_time_unix_nano <= s.end_time_unix_nano for s in found.values())


def test_spans_beyond_the_most_are_left_out_and_the_rest_are_sent_at_the_end() -> None:
    sent: list[SpanRecord] = []
    may_send = threading.Event()

    def make() -> span_exporter.Send:
        may_send.wait()
        return sent.extend

    exporter = SpanExporter(make)
    for number in range(SPANS_MAX + 3):
        exporter.tell(SpanRecord(TRACE, f"{number:016x}", "0" * 16, "hop", 0.0, 1.0, {}))
    assert exporter.left_out == 3
    may_send.set()
    exporter.close()
    assert len(sent) == SPANS_MAX


def test_nobody_is_told_where_nobody_has_said_where_traces_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in span_exporter.ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    assert span_exporter.span_exporter("B1") is None

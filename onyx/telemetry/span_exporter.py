"""SpanExporter: spans of a broker to whoever gathers traces, by OTLP over HTTP.

Where OpenTelemetry's usual variables say (``OTEL_EXPORTER_OTLP_ENDPOINT`` and its kin); without
them, none are made.  A thread of its own, which the first span starts, loads OpenTelemetry and
sends what has gathered; the broker hands over and goes on.  At most ``SPANS_MAX`` wait, what is
beyond is left out and counted.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from onyx.broker.messages.message_spans import SpanRecord

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
SPANS_MAX = 4096
BATCH_MAX = 512
GATHER_SECONDS = 0.5
CLOSE_SECONDS = 8.0  # loading the exporter takes two of a busy machine

log = logging.getLogger("onyx.traces")

Send = Callable[[list[SpanRecord]], object]


def span_exporter(process: str) -> SpanExporter | None:
    """None where nobody has said where traces go."""
    if not any(map(os.environ.get, ENDPOINTS)):
        return None
    return SpanExporter(lambda: _otlp_sender(process))


class SpanExporter:
    """``tell`` it spans; ``close`` sends what waits, for CLOSE_SECONDS at most."""

    def __init__(self, make_sender: Callable[[], Send]) -> None:
        """``make_sender`` is called once, in the thread."""
        self._make_sender = make_sender
        self._waiting: deque[SpanRecord] = deque()
        self._thread: threading.Thread | None = None
        self._is_closed = threading.Event()
        self.left_out = 0

    def tell(self, span: SpanRecord) -> None:
        if len(self._waiting) >= SPANS_MAX:
            self.left_out += 1
            return
        self._waiting.append(span)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._is_closed.set()
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        try:
            send = self._make_sender()
        except ImportError as error:
            log.error("no traces: %s; pip install 'onyx-dissemination[traces]'", error)
            return  # what is told from here on is left out once SPANS_MAX wait
        while True:
            is_last = self._is_closed.wait(GATHER_SECONDS)
            while self._waiting:
                count = min(BATCH_MAX, len(self._waiting))
                send([self._waiting.popleft() for _ in range(count)])
            if is_last:
                return


def _otlp_sender(process: str) -> Send:
    """Loads OpenTelemetry, which takes a third of a second and a thousand modules."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
        OTLPSpanExporter,
    )
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415

    about = {"service.name": os.environ.get("OTEL_SERVICE_NAME", "onyx")}
    resource = Resource.create({**about, "service.instance.id": process})
    exporter = OTLPSpanExporter()  # which says itself what goes wrong, once
    return lambda spans: exporter.export([_readable(span, resource) for span in spans])


def _readable(span: SpanRecord, resource: Resource) -> ReadableSpan:
    from opentelemetry.sdk.trace import ReadableSpan  # noqa: PLC0415
    from opentelemetry.trace import SpanContext, SpanKind, TraceFlags  # noqa: PLC0415

    def context(span_id: str, *, is_remote: bool) -> SpanContext:
        ids = int(span.trace, 16), int(span_id, 16)
        return SpanContext(*ids, is_remote=is_remote, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    comes_in = span.name in ("accept", "hop")
    attributes: Mapping[str, Any] = span.attributes
    return ReadableSpan(
        span.name,
        context(span.span, is_remote=False),
        context(span.parent, is_remote=comes_in),
        resource,
        attributes,
        kind=SpanKind.CONSUMER if comes_in else SpanKind.INTERNAL,
        start_time=round(span.began * 1e9),
        end_time=round(span.ended * 1e9),
    )

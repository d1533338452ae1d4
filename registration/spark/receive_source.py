"""*Receive*: rows that are a stream of another cycle provider.

The stream is Arrow Flight: rows arrive as record batches, over TLS with the certificates of the
network.  A task of Spark reads it as fast as Spark takes the batches, and the sender waits
meanwhile.  PERF: a data source of PySpark would do the same in three more processes.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from queue import SimpleQueue
from typing import Any, TypeAlias

from registration.queries.stopped import QueryStopped, stopped_in

Frame: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Peer:
    """A cycle provider to connect to.  ``host_name`` stands in its certificate, which
    ``authority`` has signed, a certificate in PEM; both are "" without TLS."""

    uri: str
    address: str
    host_name: str = ""
    authority: str = ""

    def connected(self) -> Any:
        """A Flight client, whose first call connects."""
        flight = import_module("pyarrow.flight")
        if not self.authority:
            return flight.FlightClient(f"grpc+tcp://{self.address}")
        return flight.FlightClient(
            f"grpc+tls://{self.address}",
            tls_root_certs=self.authority,
            override_hostname=self.host_name,
        )

    def stopped(self, error: Exception) -> QueryStopped:
        """The error that a call to the peer ended with."""
        flight = import_module("pyarrow.flight")
        found = stopped_in(str(error))
        if found is not None:
            return found
        away = (flight.FlightUnavailableError, flight.FlightTimedOutError)
        code = "provider-away" if isinstance(error, away) else "failed"
        return QueryStopped(code, f"{self.address}: {_first_line(error)}", self.uri)


@dataclass(frozen=True, slots=True)
class Stream:
    """Rows that wait at a peer for who has the ticket."""

    peer: Peer
    ticket: bytes

    def schema(self) -> Any:
        """Of its rows, an Arrow schema; QueryStopped."""
        flight = import_module("pyarrow.flight")
        try:
            with closing(self.peer.connected()) as client:
                return client.get_schema(flight.FlightDescriptor.for_command(self.ticket)).schema
        except (flight.FlightError, OSError, import_module("pyarrow").ArrowException) as error:
            raise self.peer.stopped(error) from None

    def batches(
        self, opened: Callable[[Callable[[], None]], None] = lambda cancel: None
    ) -> Iterator[Any]:
        """Its record batches; QueryStopped.  ``opened``: given a function by which another thread
        ends the stream, which may be before the peer has answered."""
        flight = import_module("pyarrow.flight")
        try:
            with closing(self.peer.connected()) as client:
                reader = self._opened(client, opened)
                try:
                    for chunk in reader:
                        if chunk.data is not None:
                            yield chunk.data
                finally:
                    del reader  # its connection, which else lasts as long as an error's traceback
        except (flight.FlightError, OSError, import_module("pyarrow").ArrowException) as error:
            raise self.peer.stopped(error) from None

    def _opened(self, client: Any, opened: Callable[[Callable[[], None]], None]) -> Any:
        """A reader of the stream, or () where it was ended before.  Flight waits for the schema
        and cannot be cancelled meanwhile: a thread waits, as long as the peer stands still."""
        answers: SimpleQueue[Any] = SimpleQueue()

        def ask() -> None:
            try:
                answers.put(client.do_get(import_module("pyarrow.flight").Ticket(self.ticket)))
            except Exception as error:
                answers.put(error)

        threading.Thread(target=ask, daemon=True).start()
        opened(lambda: answers.put(()))
        match answers.get():
            case () as ended:
                return ended
            case Exception() as error:
                raise error
            case reader:
                opened(reader.cancel)
                return reader


def received(session: Any, stream: Stream, schema: Any) -> Frame:
    """The stream as a frame of one partition; ``schema``: a StructType of Spark.

    The rows are made of one whose relation has a size that Spark does not know: it would send a
    stream of few rows to all tasks."""
    one = session.range(0, 1, 1, 1)
    rows = one._jdf.queryExecution().toRdd()
    unknown = session._jsparkSession.internalCreateDataFrame(rows, one._jdf.schema(), False)
    types = import_module("pyspark.sql.pandas.types").to_arrow_schema(schema, timezone="UTC")

    def onyx_received(given: Iterator[Any]) -> Iterator[Any]:
        made = import_module("pyarrow").RecordBatch.from_arrays
        deque(given, 0)  # what Spark still writes would fail at the end
        try:
            for batch in stream.batches():
                pairs = zip(batch.columns, types, strict=True)
                yield made([c.cast(f.type) for c, f in pairs], schema=types)
        except QueryStopped as stopped:
            raise RuntimeError(stopped.marked()) from None

    return type(one)(unknown, session).mapInArrow(onyx_received, schema)


def times_received(plan: str) -> int:
    """How often streams are read by a plan, as Spark writes it."""
    return plan.count("MapInArrow onyx_received(")


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]

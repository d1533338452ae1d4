"""*Receive*: a data source of Spark whose rows are a stream of another cycle provider.

The stream is Arrow Flight: rows arrive as record batches, over TLS with the certificates of the
network.  A task reads it as fast as Spark takes the batches, and the sender waits meanwhile.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

from registration.queries.stopped import QueryStopped, stopped_in
from registration.spark.contract import DataSource, DataSourceReader, InputPartition

FORMAT = "onyx_receive"


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

    def options(self) -> dict[str, str]:
        """As options of the data source."""
        return {"peer": json.dumps(asdict(self.peer)), "ticket": b64encode(self.ticket).decode()}

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Stream:
        return cls(Peer(**json.loads(options["peer"])), b64decode(options["ticket"]))

    def batches(
        self, opened: Callable[[Callable[[], None]], None] = lambda cancel: None
    ) -> Iterator[Any]:
        """Its record batches; QueryStopped.  ``opened``: given a function by which another thread
        ends the stream."""
        flight = import_module("pyarrow.flight")
        try:
            with closing(self.peer.connected()) as client:
                reader = client.do_get(flight.Ticket(self.ticket))
                try:
                    opened(reader.cancel)
                    for chunk in reader:
                        if chunk.data is not None:
                            yield chunk.data
                finally:
                    del reader  # its connection, which else lasts as long as an error's traceback
        except (flight.FlightError, OSError, import_module("pyarrow").ArrowException) as error:
            raise self.peer.stopped(error) from None


class ReceiveSource(DataSource):
    """The source of ``spark.read.format("onyx_receive")``; ``schema`` is to be given."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def reader(self, schema: Any) -> _Reader:
        return _Reader(Stream.of(self.options), schema)


class _Reader(DataSourceReader):
    def __init__(self, stream: Stream, schema: Any) -> None:
        self._stream = stream
        types = import_module("pyspark.sql.pandas.types")
        self._schema = types.to_arrow_schema(schema, timezone="UTC")

    def read(self, partition: InputPartition) -> Iterator[Any]:
        try:
            for batch in self._stream.batches():
                columns = [c.cast(f.type) for c, f in zip(batch.columns, self._schema, strict=True)]
                yield import_module("pyarrow").RecordBatch.from_arrays(columns, schema=self._schema)
        except QueryStopped as stopped:
            raise RuntimeError(stopped.marked()) from None


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]

"""A fragment of a query plan that a Spark session executes.

Its scans and the streams that it receives are views of the session, its functions are functions of
the session, and Spark executes its SQL over these; ``sending`` takes the rows of its tasks.  Rows
of an ordered fragment keep their order.
"""

from __future__ import annotations

import logging
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from uuid import uuid4

from registration.queries.query_plan import Fragment, Receive, Scan
from registration.queries.refusals import QueryRefused
from registration.spark.function_runner import Work, scalar_function
from registration.spark.job import Job, Scanned
from registration.spark.progress import tasks_of
from registration.spark.receive_source import Stream, received, times_received
from registration.spark.scans import Opened, ddl_of, open_scan
from registration.spark.sending import Sending, Waiting, sender
from registration.spark.session import Frame, Session

_ENDS_EARLY = "Limit"  # in the name of an operator of Spark that does not take all rows
_COUNTED = ("archive", "csv", "json")

# Of the session that executes fragments; nothing but views and functions has a name there.
STATIC_SETTINGS = {
    "spark.sql.reflect.allowList": "none",
    "spark.scheduler.mode": "FAIR",
    "spark.ui.liveUpdate.period": "0",  # how many tasks of a stage are at work is known at once
}
_SETTINGS = {
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxBytesPerBatch": "8m",
    "spark.sql.broadcastTimeout": "86400",
    "spark.sql.redaction.options.regex": ".",  # of all options: some are secret
}


class FragmentJob(Job):
    """A fragment that Spark executes."""

    def __init__(
        self,
        session: Session,
        fragment: Fragment,
        streams: Mapping[int, Stream],
        works: Mapping[str, Work] = MappingProxyType({}),
    ) -> None:
        """``session``: the one of the query, as of ``query_session``.  ``streams``: by the number
        of the fragment that sends.  ``works``: the fragment's functions by their names in its SQL.
        QueryStopped for what Spark refuses."""
        super().__init__(fragment)
        self._session, self._context = session, session.sparkContext
        self._group = f"onyx-query-{uuid4().hex}"
        self._frames: list[Frame] = []
        wrappers = {work.function.uri: work for work in works.values()}
        try:
            for name, work in works.items():
                _plug(session, name, work)
            for scan in fragment.scans:
                opened = open_scan(session, scan, wrappers.get(scan.relation.wrapper or ""))
                self._scans.append(Scanned(opened.bytes, opened.left, opened.rows))
                _counted(opened, scan).createOrReplaceTempView(scan.view)
            frames = [self._receive(each, streams) for each in fragment.receives]
            frame = session.sql(fragment.sql)
            if frames and _reads_twice(frame, len(frames)):
                # A stream is sent once: the frames that are read again are kept here.
                self._frames = [each.persist() for each in frames]
                frame = session.sql(fragment.sql)
        except QueryRefused:
            raise
        except Exception as error:
            raise self._stopped(error) from None
        self._frame = frame
        types = import_module("pyspark.sql.pandas.types")
        self.schema = types.to_arrow_schema(frame.schema, timezone="UTC")

    def _receive(self, receive: Receive, streams: Mapping[int, Stream]) -> Frame:
        stream = streams[receive.fragment]
        if receive.is_typed:
            types = import_module("pyspark.sql.types")
            schema = types.StructType.fromDDL(ddl_of(receive.columns))
        else:
            schema = import_module("pyspark.sql.pandas.types").from_arrow_schema(stream.schema())
        frame = received(self._session, stream, schema)
        frame.createOrReplaceTempView(receive.view)
        return frame

    @contextmanager
    def _at_work(self) -> Iterator[Waiting]:
        with tempfile.TemporaryDirectory(prefix="onyx-send-") as folder:
            ordered = _is_ordered(self._frame)
            send = Sending(Path(folder), self._is_starving, is_ordered=ordered)
            thread = threading.Thread(target=self._run, args=(send,), daemon=True)
            thread.start()
            try:
                yield send.waiting
            finally:
                if thread.is_alive():
                    self._context.cancelJobGroup(self._group)
                send.close()
                thread.join()
                for frame in self._frames:
                    frame.unpersist()

    def _run(self, send: Sending) -> None:
        """In a thread: the job, whose tasks send their rows."""
        try:
            self._context.setJobGroup(self._group, "fragment", interruptOnCancel=True)
            # mapInArrow takes a name with a dot for a field of a struct.
            frame = self._frame.toDF(*(f"c{at}" for at in range(len(self.schema))))
            sending = frame.mapInArrow(sender(str(send.path)), "rows bigint")
            sent = sending.collect()
            self._count(sending)
            send.end(sum(row[0] for row in sent))
        except Exception as error:
            send.fail(error)

    def _count(self, done: Frame) -> None:
        """Take over how many rows the scans have given, where nothing above ended them early."""
        execution = done._jdf.queryExecution()
        if _ENDS_EARLY in execution.executedPlan().toString():
            return
        counted = execution.observedMetrics()
        for at, (scan, one) in enumerate(zip(self.fragment.scans, self._scans, strict=True)):
            found = counted.get(scan.view)
            # Of no rows nobody knows whether a join has asked for them at all.
            if found.isDefined() and (rows := found.get().getLong(0)) and not one.left:
                self._scans[at] = replace(one, rows=rows)

    def _is_starving(self) -> bool:
        """Whether a stage has tasks to do and no slot for any of them."""
        tracker = self._context.statusTracker()
        stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
        return any(
            one is not None and not one.numActiveTasks and one.numCompletedTasks < one.numTasks
            for one in stages
        )

    def _share(self) -> float:
        done, tasks = tasks_of(self._context, self._group)
        return done / tasks if tasks else 0.0


def _counted(opened: Opened, scan: Scan) -> Frame:
    """With its rows counted while they are read, where that keeps no filter from its files."""
    is_counted = scan.relation.format in _COUNTED or scan.relation.wrapper is not None
    if not is_counted:
        return opened.frame
    functions = import_module("pyspark.sql.functions")
    return opened.frame.observe(scan.view, functions.count(functions.lit(1)).alias("rows"))


def query_session(session: Session) -> Session:
    """A session for one query beside others: views and functions are its own."""
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # says errors again
    own = session.newSession()
    for key, value in _SETTINGS.items():
        own.conf.set(key, value)
    return own


def _plug(session: Session, name: str, work: Work) -> None:
    """Make a scalar function known to the session."""
    if work.function.kind == "scalar":
        arrow_udf = import_module("pyspark.sql.functions").arrow_udf
        made = arrow_udf(scalar_function(work), work.function.outputs[0][1])
        session.udf.register(name, made)


def _reads_twice(frame: Frame, streams: int) -> bool:
    """Whether Spark would read a stream again: for a sample before it sorts, or for a view that the
    SQL names twice."""
    plan = str(frame._jdf.queryExecution().executedPlan())
    return "rangepartitioning" in plan or times_received(plan) > streams


def _is_ordered(frame: Frame) -> bool:
    return not frame._jdf.queryExecution().executedPlan().outputOrdering().isEmpty()

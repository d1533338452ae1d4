"""Plans of profiles that are in frames: ``onyx plan make`` and ``place`` in a pipeline of Spark."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from formats.schema import Schema
from onyx.spark.filtering import Frame, Profiles, SparkMisused
from overlay.topology import Topology, load_topology
from registration.planning.plan import Plan
from registration.planning.plan_file import to_json
from registration.planning.planner import PlanOptions
from registration.spark.inputs import profiles_of, read_profiles
from registration.spark.plan_job import PlanJob, run_plan_job
from registration.spark.population import needs_of, placements_of
from registration.spark.progress import Progress
from registration.spark.sent_code import send_code

Messages: TypeAlias = Frame | str | Sequence[str]
Planned: TypeAlias = Plan | str | Path
"""A plan, or the directory into which ``onyx plan make`` has written it."""

plan_json = to_json
"""The text of a plan, as ``onyx plan use`` takes it."""

log = logging.getLogger("onyx.spark")


def plan(
    profiles: Profiles,
    topology: Topology | str | Path | None = None,
    schemas: Sequence[Schema | str | Path] = (),
    messages: Messages | None = None,
    keep: Planned | None = None,
    partitions: int | None = None,
) -> Plan:
    """A plan of a population, as ``onyx plan make`` has it.

    ``profiles``: ids to texts, a frame (``profile``, ``text``; ``load`` and ``near`` if they are
    there) or paths.  ``topology`` and ``schemas``: read, or their files.  ``messages``: a frame
    (``message``; ``media_type``, ``time`` and ``name`` if they are there) or paths of archives;
    it is read once, for a sample.  ``keep``: the plan in force.  Texts that are no profiles are
    left out, counted in ``facts.refused``, and the log "onyx.spark" has the first of them, and at
    level INFO how far the job is.

    Raises SparkMisused, or UnreadableData and the refusals of files, for input that is not there or
    holds something else.
    """
    session = _session()
    network = load_topology(Path(topology)) if isinstance(topology, str | Path) else topology
    read = import_module("onyx.schema_path").load_schema
    if isinstance(messages, str | Sequence):
        messages = (messages,) if isinstance(messages, str) else tuple(messages)
    job = PlanJob(
        profiles=_frame_of(session, profiles),
        options=PlanOptions(partitions, network, None if keep is None else _loaded(keep)),
        schemas=tuple(one if isinstance(one, Schema) else read(Path(one)) for one in schemas),
        archive=() if messages is None else messages,
    )
    try:
        result = run_plan_job(session, job, _tell)
    except ValueError as error:
        raise SparkMisused(str(error)) from None
    for refused in result.refused:
        log.warning("profile %s left out: %s", refused.profile, refused.reason)
    if result.messages_refused:
        log.warning("%d sampled messages could not be read", result.messages_refused)
    return result.plan


def place(profiles: Profiles, plan: Planned) -> Frame:
    """Where a plan has each profile: ``profile`` and ``broker``.  Profiles as ``plan`` takes them;
    texts that are no profiles, and profiles that insist on a place (``near``), have no row.

    Raises SparkMisused for a plan without a topology, and as ``plan`` does.
    """
    loaded = _loaded(plan)
    if not loaded.brokers:
        raise SparkMisused("the plan has no brokers: it was made without a topology")
    frame = _frame_of(_session(), profiles)
    return placements_of(needs_of(frame), loaded).select("profile", "broker")


def _session() -> Any:
    session = import_module("pyspark.sql").SparkSession.getActiveSession()
    if session is None:
        raise SparkMisused("there is no Spark session: begin one, as with onyx.spark.session()")
    send_code(session)
    return session


def _frame_of(session: Any, profiles: Profiles) -> Frame:
    """``profile``, ``text``, ``load``."""
    if isinstance(profiles, Mapping):
        rows = [(str(name), str(text)) for name, text in profiles.items()]
        profiles = session.createDataFrame(rows, "profile string, text string")
    if isinstance(profiles, str | Sequence):
        return read_profiles(session, [profiles] if isinstance(profiles, str) else profiles)
    return profiles_of(profiles, "profiles")


def _loaded(plan: Planned) -> Plan:
    if isinstance(plan, Plan):
        return plan
    return import_module("onyx.cli.plan_files").load_plan(str(plan))


def _tell(progress: Progress) -> None:
    log.info("%s", progress)

"""The planning job: profiles, schemas and messages in; a plan and the assignment out.

Spark does what grows with the population (population.py); what it sums up is planned in this
process (planning/planner.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from formats.content_model import read_content_model
from formats.schema import Schema
from registration.planning.exclusiveness import Pattern
from registration.planning.occurrence import SchemaOccurrences
from registration.planning.pattern_cover import Signature
from registration.planning.plan import Plan
from registration.planning.planner import Evidence, PlanOptions, Values, make_plan
from registration.planning.value_loads import Population
from registration.spark.inputs import read_profiles, read_sample, weighted
from registration.spark.population import RefusedProfile, SmallPopulation, SparkPopulation
from registration.spark.progress import Steps, Told, nobody, steps_of
from registration.spark.samples import read_samples
from registration.spark.session import Frame, Session

REFUSED_SHOWN = 20
SAMPLES_MAX = 1_000


@dataclass(frozen=True, slots=True)
class PlanJob:
    """What to plan.

    ``profiles``: paths, ``kind`` of them (see inputs.py; "" by their suffixes), or a frame as
    ``read_profiles`` gives it; ``weights``: of a backtest, or "".  ``schemas`` of the sources, of
    which some ``have_none``; ``archive``: paths of messages, or a frame of them (``archived_of``),
    of which ``samples`` are looked at;
    ``measured``: see Evidence.  ``assignment``: where the Parquet goes, "" for nowhere.
    """

    profiles: tuple[str, ...] | Frame
    options: PlanOptions
    kind: str = ""
    weights: str = ""
    schemas: tuple[Schema, ...] = ()
    have_none: bool = False
    archive: tuple[str, ...] | Frame = ()
    samples: int = SAMPLES_MAX
    measured: Mapping[Pattern, float] = field(default_factory=dict)
    assignment: str = ""


@dataclass(frozen=True, slots=True)
class PlanResult:
    """``refused``: some of the texts that are no profiles (``plan.facts.refused`` in all);
    ``messages_refused``: sampled messages that could not be read."""

    plan: Plan
    refused: tuple[RefusedProfile, ...]
    messages_refused: int


def run_plan_job(session: Session | None, job: PlanJob, told: Told = nobody) -> PlanResult:
    """Plans, ``session`` None: in this process; UnreadableData for input that cannot be read,
    ValueError if there is nothing in it."""
    with steps_of(session, told) as steps:
        return _run(session, job, steps)


def _run(session: Session | None, job: PlanJob, steps: Steps) -> PlanResult:
    frame = job.profiles
    if isinstance(frame, tuple):
        frame = read_profiles(session, frame, job.kind)
    if job.weights:
        frame = weighted(session, frame, job.weights)
    population: SparkPopulation | SmallPopulation = (
        SmallPopulation(frame)
        if session is None
        else SparkPopulation(session, frame, steps.counted)
    )
    try:
        steps.begin("reading the profiles")
        refused_count, refused = population.refused(REFUSED_SHOWN)
        known = _Known(population)
        values: list[Values] = []
        messages_refused = 0
        if job.archive != ():
            steps.begin("reading sampled messages")
            patterns = sorted({p for signature in known.signatures() for p in signature.patterns})
            messages = read_sample(session, job.archive, job.samples, steps.counted, steps.noting())
            values, messages_refused = read_samples(messages, patterns)
            steps.tell_gaps()
        at_most = _at_most(job.schemas, have_none=job.have_none)
        evidence = Evidence(at_most, [(found, 1.0) for found in values], job.measured)
        options = replace(job.options, refused=refused_count)
        plan = make_plan(known, options, evidence, steps.begin)
        if job.assignment:
            steps.begin("writing the assignment")
            population.write_placements(plan, job.assignment)
        return PlanResult(plan, tuple(refused), messages_refused)
    finally:
        population.close()


class _Known:
    """A population that is asked for its signatures once."""

    def __init__(self, population: Population) -> None:
        self._signatures: list[Signature] | None = None
        self._population = population
        self.value_loads = population.value_loads

    def signatures(self) -> Sequence[Signature]:
        if self._signatures is None:
            self._signatures = [*self._population.signatures()]
        return self._signatures


def _at_most(schemas: Sequence[Schema], *, have_none: bool) -> Callable[[Pattern], float]:
    """The bound of a pattern: the largest over the schemas; there is none without schemas, nor, if
    some sources ``have_none``, where no schema knows the pattern."""
    if not schemas:
        return lambda _: inf
    occurrences = [SchemaOccurrences(read_content_model(schema)) for schema in schemas]
    unknown = inf if have_none else 0.0
    return lambda pattern: max(known.at_most(pattern) for known in occurrences) or unknown

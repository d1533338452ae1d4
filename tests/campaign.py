"""``make campaign``: hours of seeds, faults, damage and conformance, in a budget of time.

::

    make campaign CAMPAIGN_SECONDS=36000
    make campaign STEPS="simulation faults"
    make campaign JOBS=1
    python -m tests.campaign --seconds 600 --seed 7 fuzz

Each step has a share of the time and goes round after round, each round with seeds of its own,
until that time is over: a round that has begun is finished, and is smaller where the time is less
than two hours.  A step ends at its first failure, the others go on; the summary has the command
that shows the failure again.  What a command prints is in ``build/campaign``.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "campaign"
CHECKED = ROOT / "build" / "checked"
CLIENT_TOOLS = ROOT / "build" / "clients"
CORPORA = ROOT.parent / "shared" / "data"
PYTEST = (sys.executable, "-m", "pytest", "-q", "-n", "auto", "--maxprocesses", "8", "--seeds", "0")
# Of a whole round, as a campaign of WHOLE_SECONDS or more has it; a shorter one has its part.
WHOLE_SECONDS = 7_200
CHAOS_SECONDS = 120
KILLS = 20
ODD_RUNS = 400
RANDOM_PROFILES = 300
REFERENCE_SEEDS = 24
FUZZ_INPUTS = 2_000
SIMULATION_TIMES = 2
SEEDS_A_ROUND = 10_000  # more than any scenario takes in one


@dataclass(frozen=True, slots=True)
class Command:
    """Something to run, and the variables that say for how long and with which seeds."""

    words: tuple[str, ...]
    variables: dict[str, str] = field(default_factory=dict)
    directory: Path = ROOT

    def __str__(self) -> str:
        """As it is typed in a shell."""
        words = [f"{name}={shlex.quote(value)}" for name, value in self.variables.items()]
        return f"cd {self.directory} && " + " ".join([*words, shlex.join(self.words)])


@dataclass(frozen=True, slots=True)
class Step:
    """``share`` of the time, 0 for a step of one round; ``commands`` of a round by its seed and
    the part of a whole round that it is; ``prepare`` is called once, and gives the reason if the
    step cannot be done here."""

    name: str
    summary: str
    share: float
    commands: Callable[[int, float], Sequence[Command]]
    prepare: Callable[[], str] = str


@dataclass(slots=True)
class Outcome:
    """What became of a step."""

    step: Step
    rounds: int = 0
    seconds: float = 0.0
    skipped: str = ""
    failed: Command | None = None


def _tests(*paths: str, **variables: object) -> Command:
    variables["ONYX_EXAMPLES"] = 1
    return Command((*PYTEST, *paths), {name: str(value) for name, value in variables.items()})


def _language(*words: str) -> Command:
    """The parts of ``benchmarks language`` that hold the engine against others."""
    return Command((sys.executable, "-m", "benchmarks", "language", *words), {})


def _simulation(seed: int, size: float) -> list[Command]:
    times = max(SIMULATION_TIMES * size, 0.1)
    of_metadata = "tests/onyx/metadata/test_random_metadata.py"
    variables = {"ONYX_SIMULATION_TIMES": f"{times:.2f}", "ONYX_SIMULATION_FIRST": seed}
    return [_tests("tests/simulation", of_metadata, **variables)]


def _faults(seed: int, size: float) -> list[Command]:
    return [
        _tests(
            *("tests/survival/test_chaos.py", "tests/survival/test_lying_disks.py"),
            *("tests/survival/test_killed_ends.py", "tests/survival/test_takeover.py"),
            *("tests/onyx/spark/test_stream_kills.py", "tests/onyx/spark/test_publishing.py"),
            *("tests/onyx/spark/test_cluster_kills.py", "tests/registration/spark/test_java.py"),
            ONYX_CHAOS_SECONDS=max(round(CHAOS_SECONDS * size), 20),
            ONYX_CHAOS_STANDBYS=1,
            ONYX_CHAOS_SEED=seed,
            ONYX_KILLS=max(round(KILLS * size), 2),
            ONYX_KILLS_SEED=seed,
        )
    ]


def _fuzz(seed: int, size: float) -> list[Command]:
    from tests.fuzz.test_targets import INPUTS  # noqa: PLC0415 - imports all of the system

    most, number = max(INPUTS.values()), max(round(FUZZ_INPUTS * size), 100)
    made = [
        Command(
            (
                *(sys.executable, "-m", "tests.fuzz", target, "--seed", str(seed)),
                *("--inputs", str(max(number * inputs // most, 10))),
            )
        )
        for target, inputs in INPUTS.items()
    ]
    decoders = (sys.executable, "-m", "tests.fuzz.decoders", "--inputs", str(number))
    odd = ("tests/onyx/broker/test_odd_frames.py", "tests/registration/test_odd_requests.py")
    return [
        *made,
        Command((*decoders, "--seed", str(seed))),
        _tests(*odd, ONYX_ODD_RUNS=max(round(ODD_RUNS * size), 20), ONYX_ODD_SEED=seed),
    ]


def _random_profiles(seed: int, size: float) -> list[Command]:
    number, seeds = max(round(RANDOM_PROFILES * size), 50), max(round(REFERENCE_SEEDS * size), 8)
    words = ["--random", str(number), "--seed", str(seed)]
    if CORPORA.is_dir():
        words += ["--corpora", str(CORPORA), "--real", str(CORPORA)]
    return [
        _language(*words),
        _tests("tests/formats", "tests/yfilter", "tests/overlay", "tests/registration/planning"),
        _tests("tests/registration/spark/test_query_sql.py"),
        _tests("tests/yfilter/graph/test_join_oracle.py", ONYX_GRAPH_SEEDS=seeds),
        _tests(
            *("tests/yfilter/test_reference.py", "tests/yfilter/graph/test_corpora.py"),
            ONYX_REFERENCE_SEEDS=seeds,
            ONYX_REFERENCE_FIRST=seed,
        ),
    ]


def _former_release(seed: int, size: float) -> list[Command]:
    return [
        _tests(
            *("tests/survival/test_upgrade.py", "tests/simulation/test_two_versions.py"),
            ONYX_FORMER_RELEASE="require",
            ONYX_UPGRADE_SEED=seed,
            ONYX_SIMULATION_TIMES=f"{max(size, 0.1):.2f}",
            ONYX_SIMULATION_FIRST=seed,
        )
    ]


def _conformance(_seed: int, _size: float) -> list[Command]:
    """What is committed of their counts."""
    golden = ("tests/golden/test_golden.py", "-k", "qt3 or w3c")
    graphs = ("tests/formats/graph/test_w3c_syntax_tests.py", "tests/yfilter/graph")
    return [
        _language(os.environ["ONYX_QT3"]),
        _tests(*golden),
        _tests(*graphs, "-k", "w3c"),
    ]


def _without_suite() -> str:
    return "" if os.environ.get("ONYX_QT3") else "ONYX_QT3 does not name the folder of the suite"


def _with_checks(_seed: int, _size: float) -> list[Command]:
    variables = {"ONYX_COMPILE": "require", "ONYX_COMPILE_CHECKS": "1"}
    build = (sys.executable, "setup.py", "--quiet", "build_ext", "--inplace")
    at = {"PYTHONPATH": str(CHECKED), "ONYX_EXAMPLES": "1"}
    return [
        Command(build, variables, CHECKED),
        Command((*PYTEST, "tests/formats", "tests/yfilter"), at, CHECKED),
    ]


def _copy_of_the_sources() -> str:
    """For extensions that are not those that everything else runs on."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        return "this is no git checkout"
    shutil.rmtree(CHECKED, ignore_errors=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (CHECKED / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, CHECKED / name)
    beside = CHECKED.parent / "shared"  # as the tests look for it
    if CORPORA.is_dir() and not beside.exists():
        beside.symlink_to(CORPORA.parent)
    return ""


def _clients(_seed: int, _size: float) -> list[Command]:
    of_clients = "tests/onyx/gateway/test_generated_clients.py"
    return [_tests(of_clients, ONYX_CLIENT_TOOLS=CLIENT_TOOLS)]


def _client_tools() -> str:
    """The generator and the compiler of TypeScript, installed for the step alone."""
    if lacking := [each for each in ("javac", "go", "npm") if shutil.which(each) is None]:
        return f"there is no {', '.join(lacking)}"
    pip = str(CLIENT_TOOLS / "bin" / "pip")
    for words in (
        (sys.executable, "-m", "venv", str(CLIENT_TOOLS)),
        (pip, "install", "--quiet", "openapi-generator-cli==7.26.0"),
        ("npm", "install", "--silent", "--prefix", str(CLIENT_TOOLS), "typescript@5"),
    ):
        if subprocess.run(words, check=False).returncode:
            return f"{shlex.join(words)} failed"
    return ""


STEPS = (
    Step("clients", "clients generated of the OpenAPI document, in Java, Go and TypeScript", 0,
         _clients, _client_tools),
    Step("checks", "formats and yfilter, compiled with checks of bounds", 0, _with_checks,
         _copy_of_the_sources),
    Step("conformance", "the W3C suites of XQuery (ONYX_QT3), RDF and SPARQL, by both engines", 0,
         _conformance, _without_suite),
    Step("former-release", "networks of the former release and this one", 0.1, _former_release),
    Step("random-profiles", "both engines against lxml, elementpath, Saxon, pyoxigraph; Spark", 0.1,
         _random_profiles),
    Step("fuzz", "damaged bytes, odd frames and requests", 0.2, _fuzz),
    Step("simulation", "every scenario of the simulation", 0.3, _simulation),
    Step("faults", "processes that are killed, links that break, disks that lie", 0.3, _faults),
)  # fmt: skip


def run_steps(
    steps: Sequence[Step],
    seconds: float,
    seed: int,
    run: Callable[[Command, Path], bool],
    clock: Callable[[], float] = time.monotonic,
) -> list[Outcome]:
    """Every step, in turn; ``run`` a command, with a file for its output, says whether it passed.

    The time of a step that cannot be done, or took less, is everybody's.
    """
    outcomes = []
    end, size = clock() + seconds, min(seconds / WHOLE_SECONDS, 1.0)
    for place, step in enumerate(steps):
        outcome = Outcome(step, skipped=step.prepare())
        outcomes.append(outcome)
        if outcome.skipped:
            _say(f"{step.name}: skipped, {outcome.skipped}")
            continue
        began = clock()
        shares = sum(other.share for other in steps[place:])
        until = began + (end - began) * step.share / shares if shares else began
        while outcome.failed is None and (not outcome.rounds or clock() < until):
            of_round = seed + SEEDS_A_ROUND * outcome.rounds
            _say(f"{step.name}: round {outcome.rounds + 1}, seed {of_round}, {step.summary}")
            for number, command in enumerate(step.commands(of_round, size)):
                log = LOGS / f"{step.name}-{outcome.rounds + 1}-{number + 1}.log"
                if not run(command, log):
                    _say(f"{step.name}: FAILED, see {log}")
                    outcome.failed = command
                    break
            outcome.rounds += 1
            outcome.seconds = clock() - began
    return outcomes


def run_command(command: Command, log: Path) -> bool:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        done = subprocess.run(
            command.words,
            cwd=command.directory,
            env=os.environ | command.variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    return done.returncode == 0


def summary(outcomes: Sequence[Outcome]) -> str:
    lines = [f"{'step':<18}{'rounds':>8}{'seconds':>10}  result"]
    for outcome in outcomes:
        result = f"skipped: {outcome.skipped}" if outcome.skipped else "passed"
        result = f"FAILED: {outcome.failed}" if outcome.failed else result
        lines.append(
            f"{outcome.step.name:<18}{outcome.rounds:>8}{outcome.seconds:>10.0f}  {result}"
        )
    return "\n".join(lines)


def _say(text: str) -> None:
    print(f"campaign: {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("--seconds", type=float, default=7200.0, help="for all steps (7200)")
    parser.add_argument("--seed", type=int, help="the first one (default: by the clock)")
    parser.add_argument("--jobs", type=int, help="processes of a step (as many as cores)")
    parser.add_argument("steps", nargs="*", metavar="STEP", help="by default all of them")
    options = parser.parse_args()
    by_name = {step.name: step for step in STEPS}
    if unknown := set(options.steps) - by_name.keys():
        parser.error(f"{', '.join(unknown)}: no step; there are {', '.join(by_name)}")
    seed = int(time.time()) if options.seed is None else options.seed
    steps = [step for step in STEPS if not options.steps or step.name in options.steps]
    if options.jobs is not None:
        os.environ["PYTEST_XDIST_AUTO_NUM_WORKERS"] = str(max(options.jobs, 1))
    shutil.rmtree(LOGS, ignore_errors=True)
    outcomes = run_steps(steps, options.seconds, seed, run_command)
    print(summary(outcomes))
    return int(any(outcome.failed for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())

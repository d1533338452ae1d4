"""What ``make campaign`` does with its time; its commands are run by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaign import SEEDS_A_ROUND, STEPS, Command, Step, run_steps, summary


class Clock:
    """Goes on by the length of a command, whenever one is run."""

    def __init__(self, seconds: float, fails: str = "") -> None:
        self.now = 0.0
        self.ran: list[str] = []
        self._seconds = seconds
        self._fails = fails

    def __call__(self) -> float:
        return self.now

    def run(self, command: Command, _log: Path) -> bool:
        self.now += self._seconds
        self.ran.append(" ".join(command.words))
        return command.words[0] != self._fails


def step(name: str, share: float, lacks: str = "") -> Step:
    return Step(name, name, share, lambda seed, _: [Command((name, str(seed)))], lambda: lacks)


def test_every_step_has_its_share_of_the_time() -> None:
    clock = Clock(10.0)
    steps = [step("once", 0), step("short", 0.25), step("long", 0.75)]
    once, short, long = run_steps(steps, 170.0, 5, clock.run, clock)
    assert (once.rounds, short.rounds, long.rounds) == (1, 4, 12)
    assert clock.ran[1:3] == ["short 5", f"short {5 + SEEDS_A_ROUND}"]
    assert clock.now == 170.0


def test_a_step_that_fails_ends_and_the_others_have_its_time() -> None:
    clock = Clock(10.0, fails="broken")
    steps = [step("lacking", 0.5, "no suite"), step("broken", 0.5), step("good", 0.5)]
    lacking, broken, good = run_steps(steps, 100.0, 5, clock.run, clock)
    assert (lacking.rounds, broken.rounds, good.rounds) == (0, 1, 9)
    assert broken.failed == Command(("broken", "5"))
    lines = summary([lacking, broken, good]).splitlines()
    assert lines[1].endswith("skipped: no suite")
    assert lines[2].endswith("broken 5")
    assert lines[3].endswith("passed")


def test_without_time_every_step_has_one_round() -> None:
    clock = Clock(10.0)
    outcomes = run_steps([step("one", 0.5), step("two", 0.5)], 0.0, 5, clock.run, clock)
    assert [outcome.rounds for outcome in outcomes] == [1, 1]


@pytest.mark.parametrize(("seconds", "size"), [(720.0, 0.1), (7_200.0, 1.0), (36_000.0, 1.0)])
def test_a_short_campaign_has_smaller_rounds(seconds: float, size: float) -> None:
    sizes: list[float] = []

    def commands(_: int, part: float) -> list[Command]:
        sizes.append(part)
        return [Command(("one",))]

    clock = Clock(seconds / 2)
    run_steps([Step("one", "one", 1, commands)], seconds, 5, clock.run, clock)
    assert sizes == [pytest.approx(size)] * 2


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_commands_name_what_is_there(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONYX_QT3", "suite")
    root = Path(__file__).resolve().parents[1]
    for command in step.commands(1, 0.25):
        for word in command.words:
            if word.startswith("tests/"):
                assert (root / word).exists(), word


def test_a_command_is_told_as_it_is_typed() -> None:
    command = Command(("pytest", "a b"), {"SEED": "1"}, Path("/here"))
    assert str(command) == "cd /here && SEED=1 pytest 'a b'"

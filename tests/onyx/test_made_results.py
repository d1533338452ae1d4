"""Results that wait when another release comes: ``onyx make-results``, on a broker's real store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from onyx.blocking import DataSource, User
from onyx.broker.broker_core import BrokerCore
from onyx.broker.deliveries import delivery_log
from onyx.broker.deliveries.result_maker import ResultMaker
from onyx.cli.main import main
from onyx.data_directory import DataDirectory
from onyx.errors import EXIT_BUSY, EXIT_NO_INPUT, EXIT_OK, EXIT_USAGE
from overlay.link.errors import StoreError
from overlay.link.frames import Delivery, cut
from overlay.link.store import Store
from overlay.topology import load_topology
from tests.beside import Beside
from tests.onyx.networks import RunningProcess, small_topology_text

MESSAGES = 8
TEXT = "for $n in //n return <r>{$n}</r>"
EQUAL = "for $n in  //n return <r>{$n}</r>"
LATER = "for $n in //n return <later>{$n/text()}</later>"


@dataclass(frozen=True)
class Waiting:
    """A stopped network of one broker, B1; ``expected`` by profile: (number, results)."""

    topology: Path
    data: Path
    expected: dict[str, list[tuple[int, list[bytes]]]]

    def rows(self) -> list[tuple[str, str, bytes]]:
        with Store(DataDirectory(self.data).store_file("B1")) as store:
            return list(store.rows())

    def start(self) -> Beside:
        """The broker as it would come up, in this process; StoreError."""
        rows = self.rows()
        beside = Beside("broker/B1", BrokerCore(load_topology(self.topology), "B1", "new", rows))
        beside.rows = {(space, key): value for space, key, value in rows}
        return beside

    def make(self, *options: str) -> int:
        return main(["make-results", str(self.topology), *options])

    def got(self) -> dict[str, list[tuple[int, list[bytes]]]]:
        """What users get of it when they come."""
        beside = self.start()
        return {
            profile: [
                (one.number, cut(one.lengths, one.payload))
                for one in beside.subscriber(profile).all(Delivery)
            ]
            for profile in self.expected
        }


def message(number: int) -> bytes:
    return f"<a>{'x' * 40 * number}<n>{number}</n><n>{number}{number}</n></a>".encode()


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Waiting]:
    """Messages that came while all users were away, of whom one changed a profile meanwhile."""
    file = tmp_path / "small.toml"
    file.write_text(small_topology_text(tmp_path / "data", brokers=1), encoding="utf-8")
    running = RunningProcess.start(file)
    try:
        with User(running.registration, "ann") as ann:
            source = DataSource.register(running.registration, name="s")
            ids = [ann.add_profile(text).id for text in (TEXT, EQUAL, TEXT)]
            with source:
                for number in range(1, MESSAGES + 1):
                    if number == MESSAGES // 2:
                        ann.update_profile(ids[2], LATER)
                    assert source.publish(message(number)).accepted
            expected = {profile: [_made(number, TEXT) for number in _numbers()] for profile in ids}
            expected[ids[2]] = [
                _made(number, TEXT if number < MESSAGES // 2 else LATER) for number in _numbers()
            ]
            running.stop()
    finally:
        running.process.kill()
        running.process.wait()
    yield Waiting(file, tmp_path / "data", expected)


def _numbers() -> range:
    return range(1, MESSAGES + 1)


def _made(number: int, text: str) -> tuple[int, list[bytes]]:
    values = [f"{number}", f"{number}{number}"]
    if text is LATER:
        return number, [f"<later>{value}</later>".encode() for value in values]
    return number, [f"<r><n>{value}</n></r>".encode() for value in values]


def test_users_get_what_the_release_of_before_would_have_given_them(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(delivery_log, "RULES", 2)
    with pytest.raises(StoreError, match="say onyx make-results TOPOLOGY with the release"):
        waiting.start()
    monkeypatch.undo()
    assert waiting.make("--json") == EXIT_OK
    assert capsys.readouterr().out == f'{{"broker": "B1", "messages": {MESSAGES}}}\n'
    # another release, that makes other results
    monkeypatch.setattr(delivery_log, "RULES", 2)
    monkeypatch.setattr(ResultMaker, "make", lambda *arguments, **how: iter(()))
    assert waiting.got() == waiting.expected
    assert waiting.make("--broker", "B1") == EXIT_OK, "there is nothing to do any more"


def test_killed_on_its_way_it_goes_on_with_the_rest(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("onyx.made_results.COMMIT_ROWS", 1)
    commit, commits = Store.commit, 0

    def dies(store: Store, changes: object) -> None:
        nonlocal commits
        commits += 1
        if commits > MESSAGES // 2:
            raise KeyboardInterrupt
        commit(store, changes)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "commit", dies)
    waiting.make()
    monkeypatch.setattr(Store, "commit", commit)
    assert waiting.got() == waiting.expected, "some are made and some are not"
    capsys.readouterr()
    assert waiting.make() == EXIT_OK
    assert f"the results of {MESSAGES - MESSAGES // 2} messages" in capsys.readouterr().out
    monkeypatch.setattr(delivery_log, "RULES", 2)
    assert waiting.got() == waiting.expected


def test_it_says_what_is_in_its_way(waiting: Waiting, capsys: pytest.CaptureFixture[str]) -> None:
    with DataDirectory(waiting.data).node_locked("B1"):
        assert waiting.make() == EXIT_BUSY
    assert waiting.make("--broker", "B7") == EXIT_USAGE
    assert waiting.make("--broker", "B1", "--data", str(waiting.data / "none")) == EXIT_NO_INPUT
    assert "there is no store" in capsys.readouterr().err

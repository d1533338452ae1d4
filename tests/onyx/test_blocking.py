"""onyx.blocking: the same network without Trio."""

from __future__ import annotations

import signal
import threading
from time import monotonic

import pytest

from onyx import ProfileNotAccepted, RequestFailed
from onyx.blocking import BlockingResults, DataSource, RegistrationClient, User
from overlay import answers, verbs
from tests.hanging import SAFETY_SECONDS


def test_a_message_goes_all_the_way(registration: str) -> None:
    source = DataSource.register(registration, name="blocking", location=(10.0, 0.0))
    assert (source.root, source.info.name) == ("B1", "blocking")
    with source, User(registration, "bob") as user:
        profile = user.add_profile("for $x in //n return $x", location=(30.0, 0.0))
        assert (profile.host, profile.live) == ("B3", True)
        assert source.publish(b"<a><n>1</n><n>2</n></a>").accepted
        messages = [b"<n>%d</n>" % number for number in range(3, 503)]
        outcomes = list(source.publish_all(messages))
        assert [outcome.number for outcome in outcomes] == list(range(2, 502))
        results = user.results(profile.id)
        assert next(results).results == [b"<n>1</n>", b"<n>2</n>"]
        assert [next(results).results for _ in messages] == [[message] for message in messages]


def test_a_block_may_be_entered_again(registration: str) -> None:
    source = DataSource.register(registration)
    for number in (1, 2):
        with source:
            assert source.publish(b"<a/>").number == number
    with pytest.raises(RuntimeError, match="outside of its block; write with"):
        source.publish(b"<a/>")


def test_profiles_are_changed_and_removed(registration: str) -> None:
    with User(registration, "carol") as user:
        profile = user.add_profile("//a")
        assert user.update_profile(profile.id, "//b").version == 2
        assert user.profile(profile.id).text == "//b"
        with pytest.raises(ProfileNotAccepted):
            user.add_profile("//[")
        user.remove_profile(profile.id)
        assert user.profiles() == []


def test_any_verb_is_asked_by_its_record(registration: str) -> None:
    with RegistrationClient(registration) as network:
        rule = {"principal": "user/eve", "role": "own", "scope": "*"}
        for changed in (True, False):
            assert network.ask(verbs.AccessGrant(**rule)).changed is changed  # type: ignore[arg-type]
        assert answers.Rule("user/eve", "own", "*") in network.listed(verbs.AccessList())
        assert network.ask(verbs.AccessRevoke(**rule)).changed  # type: ignore[arg-type]
        with pytest.raises(RequestFailed, match="unknown-token"):
            network.ask(verbs.TokenRevoke(token="none"))


def test_what_goes_wrong_is_raised_where_it_is_asked_for(registration: str) -> None:
    threads = threading.active_count()
    with pytest.raises(RequestFailed, match="unknown-source"), DataSource(registration, "s999999"):
        pytest.fail("connected")
    assert threading.active_count() == threads


def test_a_wait_that_ctrl_c_interrupts_loses_nothing(registration: str) -> None:
    source = DataSource.register(registration)
    with source, User(registration, "ann") as user:
        results = user.results(user.add_profile("//late").id)
        main = threading.main_thread().ident
        assert main is not None
        ctrl_c = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))
        ctrl_c.start()
        with pytest.raises(KeyboardInterrupt):
            next(results)
        ctrl_c.join()
        source.publish(b"<late/>")
        assert next(results).results == [b"<late/>"]


def published(source: DataSource, count: int) -> list[list[bytes]]:
    """Messages, and the results of each."""
    messages = [b"<together>%d</together>" % number for number in range(count)]
    assert all(outcome.accepted for outcome in source.publish_all(messages))
    return [[message] for message in messages]


def wait_until_all_wait(results: BlockingResults, count: int) -> None:
    """So many deliveries have come, and none was taken."""
    results._user._ask(results._found.connect)
    until = monotonic() + SAFETY_SECONDS
    while len(results._found._queue._arrived) < count:
        assert monotonic() < until


def test_a_delivery_is_acknowledged_when_the_next_is_asked_for(registration: str) -> None:
    """Not when it is fetched, and not only when all that were fetched with it are done."""
    with DataSource.register(registration) as source, User(registration, "ann") as user:
        profile = user.add_profile("//together").id
        sent = published(source, 10)
        results = user.results(profile)
        wait_until_all_wait(results, len(sent))
        until = monotonic() + SAFETY_SECONDS
        for number in range(3):
            assert next(results).results == sent[number]
            inbox = results._found._places[profile].inbox
            assert inbox is not None and len(results._fetched) == len(sent) - number - 1
            while inbox.processed != number:
                assert monotonic() < until


def test_the_end_of_a_block_acknowledges_all_but_the_last(registration: str) -> None:
    with DataSource.register(registration) as source:
        with User(registration, "ann") as user:
            profile = user.add_profile("//together").id
            sent = published(source, 200)
            results = user.results(profile)
            assert [next(results).results for _ in range(100)] == sent[:100]
        with User(registration, "ann") as user:
            results = user.results(profile)
            assert [next(results).results for _ in range(101)] == sent[99:]

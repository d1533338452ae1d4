"""DataSource and User against a running network: a message's whole way, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from lxml import etree

from onyx import (
    DataSource,
    PositionFile,
    ProfileNotAccepted,
    RegistrationClient,
    RequestFailed,
    User,
)
from onyx.errors import NetworkUnreachable, UsageError
from onyx.publisher_journal import PublisherJournal
from onyx.registration_client import NetworkClient
from onyx.results import Results
from overlay.answers import Position
from overlay.link.client_connection import ClientConnection, ClientLimits
from overlay.statistics import BrokerStatistics

NORTH, SOUTH = (10.0, 0.0), (30.0, 0.0)  # where B1 and B3 are


def report(city: str, temperature: int) -> bytes:
    return f"<report><city>{city}</city><temp>{temperature}</temp></report>".encode()


async def take(results: Results, count: int) -> list[tuple[str, int, list[bytes]]]:
    """The next deliveries, all acknowledged; (source, number, results)."""
    taken = []
    for _ in range(count):
        delivery = await anext(results)
        assert delivery.profile == results.profile_id
        taken.append((delivery.source, delivery.number, delivery.results))
    results.acknowledge_nowait()
    return taken


async def test_messages_of_several_sources_reach_exactly_the_profiles_that_match(
    registration: str,
) -> None:
    messages = [report(f"city{n}", n) for n in range(20)]
    paths = ["//report[temp >= 15]", "for $x in /report/city return $x", "//temp[. = 3]", "//no"]
    north = await DataSource.register(registration, name="north", location=NORTH)
    south = await DataSource.register(registration, name="south", location=SOUTH)
    assert (north.root, south.root) == ("B1", "B3")
    async with north, south, User(registration, "ada") as user:
        profiles = [
            await user.add_profile(path, location=NORTH if index % 2 else SOUTH)
            for index, path in enumerate(paths)
        ]
        assert {profile.host for profile in profiles} == {"B1", "B3"}
        assert all(profile.live for profile in profiles)
        for source in (north, south):
            outcomes = [outcome async for outcome in source.publish_all(messages)]
            assert [outcome.number for outcome in outcomes] == list(range(1, 21))
            assert all(outcome.accepted for outcome in outcomes)
        for profile, path in zip(profiles, paths, strict=True):
            expected = {
                (source.id, number): found
                for source in (north, south)
                for number, message in enumerate(messages, start=1)
                if (found := oracle(message, path))
            }
            taken = await take(user.results(profile.id), len(expected))
            assert {(source, number): results for source, number, results in taken} == expected
            for source in (north, south):
                numbers = [number for of, number, _ in taken if of == source.id]
                assert numbers == sorted(numbers)


def oracle(message: bytes, profile: str) -> list[bytes]:
    """A path delivers the message that it is found in, ``for ... return $x`` what it binds."""
    path = profile.removeprefix("for $x in ").removesuffix(" return $x")
    found = etree.fromstring(message).getroottree().xpath(path)
    assert isinstance(found, list)
    if path == profile:
        return [message] if found else []
    return [etree.tostring(element) for element in found]


async def test_a_refused_message_is_told_to_its_source_with_the_place(registration: str) -> None:
    source = await DataSource.register(registration)
    async with source, User(registration) as user:
        profile = await user.add_profile("//a")
        messages = [b"<a/>", b"<a>\n  <b></a>", b"<a><b/></a>"]
        first, refused, last = [outcome async for outcome in source.publish_all(messages)]
        assert (first.number, first.accepted) == (1, True)
        assert (last.number, last.accepted) == (3, True)
        assert not refused.accepted
        assert (refused.number, refused.code, refused.line) == (2, "malformed", 2)
        assert refused.column > 1
        assert refused.reason
        taken = await take(user.results(profile.id), 2)
        assert [number for _, number, _ in taken] == [1, 3]


async def test_an_updated_profile_gives_what_its_new_text_asks_for(registration: str) -> None:
    source = await DataSource.register(registration, location=NORTH)
    async with source, User(registration, "grace") as user:
        profile = await user.add_profile("for $x in //city return $x", location=SOUTH)
        results = user.results(profile.id)
        await source.publish(report("Oslo", 5))
        ((_, _, first),) = await take(results, 1)
        changed = await user.update_profile(profile.id, "for $x in //temp return $x")
        assert (changed.id, changed.version, changed.live) == (profile.id, 2, True)
        await source.publish(report("Rome", 25))
        ((_, _, second),) = await take(results, 1)
        assert (first, second) == ([b"<city>Oslo</city>"], [b"<temp>25</temp>"])
        assert (await user.profile(profile.id)).text == "for $x in //temp return $x"


async def test_a_refused_update_leaves_the_profile_as_it_was(registration: str) -> None:
    async with User(registration) as user:
        profile = await user.add_profile("//city")
        for change in (user.update_profile(profile.id, "//city["), user.add_profile("//city[")):
            with pytest.raises(ProfileNotAccepted, match=r"line 1, column 8(.|\n)*\^") as caught:
                await change
            refusal = caught.value
            assert (refusal.refusal, refusal.line, refusal.column) == ("syntax", 1, 8)
            assert refusal.expected
        kept = await user.profile(profile.id)
        assert (kept.text, kept.version) == ("//city", 1)


async def test_a_removed_profile_gets_nothing_any_more(registration: str) -> None:
    source = await DataSource.register(registration, location=NORTH)
    async with source, User(registration, "removing") as user:
        kept = await user.add_profile(
            "for $x in //city return $x", location=SOUTH, timeout_seconds=30.0
        )
        assert kept.live and not kept.missing
        removed = await user.add_profile("for $x in //city return $x", location=SOUTH)
        results = user.results(removed.id)
        await results.connect()
        assert await user.remove_profile(removed.id, wait=True, timeout_seconds=30.0) == ()
        await source.publish(report("Oslo", 5))
        assert len(await take(user.results(kept.id), 1)) == 1
        with pytest.raises(RequestFailed, match=f"profile {removed.id} was removed") as failure:
            await anext(results)
        assert failure.value.code == "forgotten"
        with pytest.raises(RequestFailed) as failure:
            await user.remove_profile(removed.id)
        assert failure.value.code == "unknown-profile"
        assert [profile.id for profile in await user.profiles()] == [kept.id]


async def test_all_profiles_of_a_user_come_over_one_connection_a_broker(registration: str) -> None:
    source = await DataSource.register(registration, location=NORTH)
    async with source, User(registration, "hopper") as user:
        here = [await user.add_profile(f"//temp[. >= {n}]", location=NORTH) for n in range(20)]
        there = await user.add_profile("for $x in //city return $x", location=SOUTH)
        assert {profile.host for profile in here} == {"B1"} != {there.host}
        for number in range(20):
            await source.publish(report("Oslo", number))
        results = user.results()
        got: dict[str, list[int]] = {}
        for _ in range(20 * 21 // 2 + 20):
            delivery = await anext(results)
            got.setdefault(delivery.profile, []).append(delivery.number)
        results.acknowledge_nowait()
        await results.flush()
        assert got == {
            there.id: list(range(1, 21)),
            **{profile.id: list(range(n + 1, 21)) for n, profile in enumerate(here)},
        }
        async with NetworkClient(here[0].address) as client:
            mailboxes = (await client.statistics(BrokerStatistics)).mailboxes
        assert (mailboxes.subscribers, mailboxes.attached) == (1, 20)


async def test_those_who_share_a_profile_divide_its_results(registration: str) -> None:
    source = await DataSource.register(registration)
    async with source, User(registration) as first, User(registration) as second:
        profile = await first.add_profile("//city")
        shares = [user.results(profile.id, share=True) for user in (first, second)]
        for results in shares:
            await results.connect()
        for number in range(10):
            await source.publish(report("Oslo", number))
        taken = await take(shares[0], 5) + await take(shares[1], 5)
        assert sorted(number for _, number, _ in taken) == list(range(1, 11))
        for results in shares:
            await results.flush()
        for number in range(4):
            await source.publish(report("Rome", number))
        assert (await anext(shares[0])).number in (11, 12)  # and does not acknowledge it
        async with User(registration) as alone:
            results = alone.results(profile.id)
            assert [number for _, number, _ in await take(results, 4)] == [11, 12, 13, 14]
            with pytest.raises(RequestFailed) as failure:
                await anext(shares[1])
            assert failure.value.code == "replaced"


async def test_of_an_ephemeral_profile_nothing_is_kept_for_who_is_away(registration: str) -> None:
    source = await DataSource.register(registration)
    async with source, User(registration) as owner:
        profile = await owner.add_profile("//city")
        await source.publish(report("Oslo", 1))
        async with NetworkClient(profile.address) as broker:

            async def silent() -> object:
                return (await broker.statistics(BrokerStatistics)).mailboxes.silent

            before = await silent()
            async with User(registration) as user:
                results = user.results(profile.id, ephemeral=True)
                assert [number for _, number, _ in await take(results, 1)] == [1]
                assert await silent() == before
            while await silent() == before:  # until the broker knows that the user has gone
                pass
            await source.publish(report("Rome", 1))
            async with User(registration) as user:
                results = user.results(profile.id, ephemeral=True)
                await results.connect()
                assert await silent() == before
                await source.publish(report("Lima", 1))
                assert [number for _, number, _ in await take(results, 1)] == [3]
                assert results.lost == 0


async def test_what_was_not_acknowledged_comes_again_and_nothing_else_does(
    registration: str,
) -> None:
    source = await DataSource.register(registration)
    async with source, User(registration) as user:
        profile = await user.add_profile("//city")
        for name in ("Oslo", "Rome", "Lima"):
            await source.publish(report(name, 1))
    async with User(registration) as user:
        results = user.results(profile.id)
        assert (await anext(results)).number == 1
        assert (await anext(results)).number == 2  # which acknowledges the first only
        await results.flush()
    async with User(registration) as user:
        results = user.results(profile.id)
        assert [number for _, number, _ in await take(results, 2)] == [2, 3]
        await results.flush()
    async with User(registration) as user:
        await source_publishes_once_more(registration, source.id)
        assert [number for _, number, _ in await take(user.results(profile.id), 1)] == [4]


async def test_the_same_key_again_is_the_same_message_in_any_run(registration: str) -> None:
    source = await DataSource.register(registration, name="keyed")
    async with User(registration, "kay") as user:
        profile = await user.add_profile(f"//report[city = '{source.id}']")
        messages = [(report(source.id, n), "application/xml", f"key {n}") for n in range(3)]
        async with source:
            with pytest.raises(UsageError, match="write DataSource"):
                assert source.accepted_through
        source = DataSource(registration, source.id, publisher="kay")
        async with source:
            assert source.accepted_through == 0
            assert (await source.publish(messages[0][0], key="key 0")).number == 1
            assert not (await source.publish(b"<report>", key="key 1")).accepted
            assert source.accepted_through == 2
        async with DataSource(registration, source.id, publisher="kay") as again:
            assert again.accepted_through == 2
            outcomes = [outcome async for outcome in again.publish_all(messages)]
        assert [(o.number, o.accepted, o.is_known) for o in outcomes] == [
            (1, True, True), (4, True, False), (5, True, False)
        ]  # fmt: skip
        taken = await take(user.results(profile.id), 3)
        assert [number for _, number, _ in taken] == [1, 4, 5]


async def test_what_a_crash_has_left_in_a_journal_is_published_once(
    registration: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish, sent = ClientConnection.publish, list[object]()

    async def noted(self: ClientConnection, data: bytes, *how: Any) -> int:
        sent.append(how[-1])
        return await publish(self, data, *how)

    monkeypatch.setattr(ClientConnection, "publish", noted)
    headers = {"traceparent": "00-1"}
    source = await DataSource.register(registration, name="journalled")
    file = tmp_path / "journal"
    accepted, new, bad = report(source.id, 1), report(source.id, 2), b"<report>"
    async with DataSource(registration, source.id, journal=file) as first:
        assert (await first.publish(accepted, key="accepted")).number == 1
        assert (first.resumed, first.journalled) == ([], 1)
    left = PublisherJournal(file, source.id)  # as of a run that has heard of no outcome
    for data, key in ((accepted, "accepted"), (new, "new"), (bad, "bad")):
        await left.add(data, "application/xml", key, headers if data is new else None)
    left.close()
    async with User(registration, "kim") as user:
        profile = await user.add_profile(f"//report[city = '{source.id}']")
        async with DataSource(registration, source.id, journal=file) as second:
            told = {key: (o.number, o.accepted, o.is_known) for key, o in second.resumed}
            assert told == {
                "accepted": (1, True, True), "new": (3, True, False), "bad": (4, False, False)
            }  # fmt: skip
            assert (second.journalled, sent) == (4, [None, None, headers, None])
            outcomes = [o async for o in second.publish_all([report(source.id, 3)] * 3)]
            assert [o.number for o in outcomes] == [5, 6, 7]
        taken = await take(user.results(profile.id), 4)
        assert [number for _, number, _ in taken] == [3, 5, 6, 7]
    async with DataSource(registration, source.id, journal=file) as third:
        assert (third.resumed, third.journalled) == ([], 7)


async def test_what_is_done_at_a_kept_position_is_not_given_again(
    registration: str, tmp_path: Path
) -> None:
    """Whatever the broker knows of it, which is less if nothing was acknowledged."""
    source = await DataSource.register(registration, name="kept")
    async with User(registration, "kit") as user, source:
        first = await user.add_profile(f"//report[city = '{source.id}']")
        second = await user.add_profile(f"//report[city = '{source.id}'][temp > 3]")
        for n in range(1, 7):
            await source.publish(report(source.id, n))
        own = {first.id: 4}
        results = user.results(first.id, positions=lambda profile: own.get(profile, 0))
        assert [(await anext(results)).position for _ in range(2)] == [5, 6]
        results.acknowledge_nowait()
        await results.flush()
        file = tmp_path / "positions"
        with PositionFile(file) as positions:
            results = user.results(second.id, positions=positions)
            given = [await anext(results) for _ in range(2)]
            assert [(d.number, d.position) for d in given] == [(4, 1), (5, 2)]
        with PositionFile(file) as positions:
            assert (positions.load(first.id), positions.load(second.id)) == (0, 1)
            results = user.results(second.id, positions=positions)
            assert [(await anext(results)).number for _ in range(2)] == [5, 6]
            await source.publish(report(source.id, 0))
            behind = user.results(first.id, positions=positions)
            assert (await anext(behind)).position == 7
        with pytest.raises(UsageError, match="leave out one of both"):
            user.results(first.id, share=True, positions=own.__getitem__)


async def test_what_is_held_comes_again_until_it_is_released(registration: str) -> None:
    source = await DataSource.register(registration)
    async with User(registration, "ivo") as user, source:
        profile = (await user.add_profile(f"//report[city = '{source.id}']")).id
        for n in range(1, 7):
            await source.publish(report(source.id, n))
        (begun,) = (await user.positions(profile)).values()
        assert begun == Position(profile, 0, 6, 0)
        for since in (0, 2):
            page = await user.waiting(profile, since, 5)
            assert [each.position for each in page.deliveries] == list(range(since + 1, 6))
            assert (page.through, page.lost) == (5, 0)
            held = user.results(profile, held=True, positions=lambda name, n=since: n)
            assert [await anext(held) for _ in page.deliveries] == page.deliveries
        assert (await user.positions(released={profile: 4}))[profile] == Position(profile, 4, 6, 0)
        results = user.results(profile, held=True)
        assert [(await anext(results)).position for _ in range(2)] == [5, 6]
        assert (await user.positions(profile))[profile] == Position(profile, 4, 6, 0)
        with pytest.raises(RequestFailed, match="store-lost"):
            await user.positions(released={profile: 7})
        with pytest.raises(RequestFailed, match="store-lost"):
            await user.waiting(profile, 7, 8)
        with pytest.raises(RequestFailed, match="there is no profile p0"):
            await user.positions("p0")
        with pytest.raises(UsageError, match="leave out one of both"):
            user.results(profile, share=True, held=True)


async def source_publishes_once_more(registration: str, source_id: str) -> None:
    """In a process of its own, as far as the network can tell; numbers go on."""
    async with DataSource(registration, source_id) as again:
        assert (await again.publish(report("Bonn", 1))).number == 4


async def test_a_message_that_no_frame_can_carry_is_refused_here(registration: str) -> None:
    source = await DataSource.register(registration)
    async with source:
        outcome = await source.publish(b"<a>" + b"x" * (17 * 1024 * 1024) + b"</a>")
        assert (outcome.accepted, outcome.code) == (False, "too-long")
        assert (await source.publish(b"<a/>")).accepted


async def test_taxonomies_are_put_listed_and_removed(registration: str) -> None:
    text = b"<urn:Fog> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:Weather> ."
    async with RegistrationClient(registration) as client:
        put = await client.put_taxonomy("weather", text, "application/n-triples")
        assert (put.name, put.classes, put.properties, put.instances) == ("weather", 2, 0, 0)
        (listed,) = await client.taxonomies()
        assert {**listed.shown(), "changed": True} == put.shown()
        assert await client.taxonomy("weather") == text
        with pytest.raises(RequestFailed, match="taxonomy-cycle"):
            back = b"<urn:Weather> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:Fog> ."
            await client.put_taxonomy("back", back, "application/n-triples")
        await client.remove_taxonomy("weather")
        assert await client.taxonomies() == []


async def test_sources_are_listed_with_their_root_brokers(
    registration: str, tmp_path: Path
) -> None:
    schema = tmp_path / "report.dtd"
    schema.write_bytes(b"<!ELEMENT report (city)><!ELEMENT city (#PCDATA)>")
    source = await DataSource.register(
        registration, name="listed", location=SOUTH, rate=2.5, size=300, schema=schema
    )
    async with RegistrationClient(registration) as client:
        (info,) = [entry for entry in await client.sources() if entry.id == source.id]
        brokers = await client.brokers()
    assert info == source.info
    assert (info.name, info.root, info.address) == ("listed", "B3", brokers["B3"])
    assert (info.location, info.rate, info.size) == (SOUTH, 2.5, 300)
    assert (info.schema_name, info.schema_kind, info.ready) == ("report.dtd", "dtd", True)
    assert info.validation == "off"


async def test_the_words_of_a_schema_do_not_cross_a_link_with_the_dictionary_form(
    registration: str, tmp_path: Path
) -> None:
    """From B1 to B3: text to B2, from there the dictionary form."""
    schema = tmp_path / "report.dtd"
    schema.write_bytes(b"<!ELEMENT report (city, temp)><!ELEMENT city ANY><!ELEMENT temp ANY>")
    source = await DataSource.register(registration, location=NORTH, schema=schema)
    assert source.root == "B1"
    async with RegistrationClient(registration) as client:
        brokers = await client.brokers()

    async def dictionaries(broker: str) -> int:
        async with NetworkClient(brokers[broker]) as client:
            return (await client.statistics(BrokerStatistics)).control.dictionaries

    before = await dictionaries("B3")
    async with source, User(registration, "ada") as user:
        profile = await user.add_profile("/report[temp = 7]", location=SOUTH)
        assert profile.host == "B3"
        assert (await source.publish(report("Lyon", 7))).accepted
        ((_, _, results),) = await take(user.results(profile.id), 1)
    assert results == [report("Lyon", 7)]
    assert await dictionaries("B3") == before + 1


async def test_a_source_may_have_its_messages_validated(registration: str, tmp_path: Path) -> None:
    schema = tmp_path / "report.dtd"
    schema.write_bytes(b"<!ELEMENT report (city)><!ELEMENT city (#PCDATA)>")
    source = await DataSource.register(registration, schema=schema, validate="reject")
    assert source.info.validation == "reject"
    async with source:
        assert (await source.publish(b"<report><city>Lyon</city></report>")).accepted
        outcome = await source.publish(b"<report>\n<town/></report>")
        assert (outcome.accepted, outcome.code) == (False, "invalid")
        assert outcome.line in {1, 2} and "city" in outcome.reason
    with pytest.raises(RequestFailed, match="no schema"):
        await DataSource.register(registration, validate="report")


async def test_a_dictionary_is_trained_on_what_a_source_publishes(registration: str) -> None:
    """The link from B2 to B3 compresses; B1 is the root broker, whose own link does not."""
    source = await DataSource.register(registration, location=NORTH)
    messages = [news(number) for number in range(200)]
    async with source, User(registration, "ada") as user:
        profile = await user.add_profile("//news", location=SOUTH)
        outcomes = [outcome async for outcome in source.publish_all(messages)]
        assert all(outcome.accepted for outcome in outcomes)
        taken = await take(user.results(profile.id), len(messages))
        assert [results for _, _, results in taken] == [[message] for message in messages]
    async with RegistrationClient(registration) as client:
        brokers = await client.brokers()
    versions = set()
    for broker in ("B1", "B2", "B3"):
        async with NetworkClient(brokers[broker]) as at:
            statistics = await at.statistics(BrokerStatistics)
            versions.add(*statistics.compression.trained[f"{source.id} binary"])
    assert len(versions) == 1


def news(number: int) -> bytes:
    return (
        f'<news number="{number}"><head>What everybody has been waiting for</head>'
        f"<body>It has happened in city{number}, as was announced yesterday.</body></news>"
    ).encode()


async def test_several_publish_as_one_source_at_once(registration: str) -> None:
    """Each in its own order, with one sequence of numbers, and keys that all know."""
    source = await DataSource.register(registration, name="of-several")
    async with (
        User(registration, "sam") as user,
        source as first,
        DataSource(registration, source.id) as second,
    ):
        profile = await user.add_profile(f"//report[city = '{source.id}']")
        numbers = dict[int, int]()

        async def publish(publisher: DataSource, temperatures: range) -> None:
            messages = [report(source.id, t) for t in temperatures]
            outcomes = [o async for o in publisher.publish_all(messages)]
            numbers.update(zip(temperatures, (o.check().number for o in outcomes), strict=True))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(publish, first, range(300))
            nursery.start_soon(publish, second, range(300, 600))
        assert sorted(numbers.values()) == list(range(1, 601))
        results = user.results(profile.id)
        came = {number: text for _, number, (text,) in await take(results, 600)}
        assert all(b"<temp>%d</temp>" % t in came[numbers[t]] for t in numbers)
        for those in (range(300), range(300, 600)):
            assert [numbers[t] for t in those] == sorted(numbers[t] for t in those)
        once = await first.publish(report(source.id, 7), key="seven")
        assert (once.number, once.is_known) == (601, False)
        once = await second.publish(report(source.id, 7), key="seven")
        assert (once.number, once.is_known) == (601, True)


async def test_a_second_process_of_a_publisher_with_a_name_replaces_the_first(
    registration: str,
) -> None:
    source = await DataSource.register(registration, publisher="feed")
    async with source:
        async with DataSource(registration, source.id, publisher="feed") as second:
            assert (await second.publish(b"<a/>")).accepted
        with pytest.raises(RequestFailed) as failure:
            await source.publish(b"<a/>")
        assert failure.value.code == "replaced"


@pytest.mark.parametrize("name", ["~mine", "a/b", "a|b", "\n"])
def test_a_publisher_is_not_called_so(registration: str, name: str) -> None:
    with pytest.raises(UsageError, match="expected printable text"):
        DataSource(registration, "s1", publisher=name)


@pytest.mark.parametrize("what", ["source", "profile"])
async def test_what_does_not_exist_is_said_to_be_unknown(registration: str, what: str) -> None:
    with pytest.raises(RequestFailed) as failure:
        if what == "source":
            async with DataSource(registration, "s999999"):
                pytest.fail("connected")
        async with User(registration) as user:
            await anext(user.results("p999999"))
    assert failure.value.code == f"unknown-{what}"


async def test_nobody_there_is_one_clear_error(
    unused_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onyx.registration_client.CLIENT_LIMITS", ClientLimits(open_seconds=0.05))
    with pytest.raises(NetworkUnreachable, match=f"127.0.0.1:{unused_port}"):
        async with RegistrationClient(f"127.0.0.1:{unused_port}"):
            pytest.fail("connected")


async def test_an_error_in_the_block_comes_out_as_it_is(registration: str) -> None:
    with pytest.raises(ZeroDivisionError):
        async with User(registration):
            raise ZeroDivisionError


async def test_what_has_a_key_is_made_once_by_whichever_program_asks(registration: str) -> None:
    first = await DataSource.register(registration, name="keyed", key="keyed")
    assert (await DataSource.register(registration, name="keyed", key="keyed")).id == first.id
    async with User(registration, "key") as user:
        profile = await user.add_profile("//keyed", key="mine")
    async with User(registration, "key") as user:
        assert (await user.add_profile("//keyed", key="mine")).id == profile.id
        assert [shown.id for shown in await user.profiles()] == [profile.id]
        with pytest.raises(RequestFailed, match=f"profile {profile.id}.*other-content"):
            await user.add_profile("//other", key="mine")


async def test_what_cannot_be_meant_is_told_with_what_to_write(registration: str) -> None:
    source = await DataSource.register(registration)
    with pytest.raises(RuntimeError, match="write async with source"):
        await source.publish(b"<a/>")
    with pytest.raises(RuntimeError, match="write async with User"):
        await User(registration).add_profile("//a")
    with pytest.raises(RuntimeError, match="write async with RegistrationClient"):
        await RegistrationClient(registration).sources()
    async with source:
        text: Any = "<a/>"
        with pytest.raises(TypeError, match=r"text\.encode\(\)"):
            await source.publish(text)
        with pytest.raises(TypeError, match=r"text\.encode\(\)"):
            [outcome async for outcome in source.publish_all([text])]


async def test_a_source_is_updated_and_removed_by_whoever_publishes(registration: str) -> None:
    source = await DataSource.register(registration, name="of-clients", rate=2)
    again = await DataSource.register(registration, name="of-clients", rate=3, ensure=True)
    assert (again.id, again.info.changed, again.info.version) == (source.id, ("rate",), 2)
    async with DataSource(registration, "of-clients") as named:
        assert named.id == source.id
        assert (await named.publish(b"<a/>")).accepted
        assert (await named.update(size=10)).changed == ("size",)
        await named.remove()
    with pytest.raises(RequestFailed, match="unknown-source"):
        await source.remove()


async def test_a_source_that_is_cancelled_as_it_says_farewell_is_closed(registration: str) -> None:
    source = await DataSource.register(registration)
    with trio.CancelScope() as scope:
        async with source:
            assert not (await source.publish(b"<a>")).accepted  # what it was told is to be settled
            scope.cancel()
    assert scope.cancelled_caught
    async with source:
        assert (await source.publish(b"<a/>")).accepted

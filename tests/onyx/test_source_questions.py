"""A source is asked through its root broker, and its process answers."""

from __future__ import annotations

import asyncio
import base64
import io
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from formats.errors import Fault, Refusal
from onyx import DataSource, RegistrationClient, RequestFailed, RunningNetwork, aio, blocking
from onyx.data_source import Handler
from onyx.errors import EXIT_UNAVAILABLE, NetworkUnreachable, UsageError
from overlay.link.frames import QUESTIONS_MAX
from overlay.verbs import Whoami
from tests.hanging import SAFETY_SECONDS
from tests.onyx.test_cli_network import Shell, shell

__all__ = ["shell"]


async def echo(asker: str, writes: bool, body: bytes) -> bytes:
    return f"{asker}, {writes}: ".encode() + body


@asynccontextmanager
async def answering(
    registration: str, handler: Handler, at_once: int = 16
) -> AsyncIterator[DataSource]:
    source = await DataSource.register(registration)
    async with trio.open_nursery() as tasks, source:
        tasks.start_soon(answer, source, handler, at_once)
        yield source


async def answer(source: DataSource, handler: Handler, at_once: int = 16) -> None:
    await source.answer(handler, at_once=at_once)


async def code_of(client: RegistrationClient, source: str, **more: Any) -> str:
    with pytest.raises((RequestFailed, NetworkUnreachable)) as caught:
        await client.ask_source(source, b"", **more)
    return caught.value.code


async def test_a_question_is_answered_and_who_asks_is_said(registration: str) -> None:
    async with answering(registration, echo) as source, RegistrationClient(registration) as client:
        who = (await client.ask(Whoami())).principal.encode()
        large = b"large " * 600_000
        assert await client.ask_source(source.id, large) == who + b", False: " + large
        assert await client.ask_source(source.info.name, b"w", True) == who + b", True: w"
        assert (await source.publish(b"<a/>")).accepted
        assert await code_of(client, "nobody") == "unknown-source"
        with pytest.raises(UsageError, match="is answering already"):
            await source.answer(echo)


async def test_of_several_publishers_one_that_answers_is_asked(registration: str) -> None:
    source = await DataSource.register(registration)
    async with (
        DataSource(registration, source.id) as mute,
        RegistrationClient(registration) as client,
        source,
        trio.open_nursery() as tasks,
    ):
        tasks.start_soon(answer, source, echo)
        for question in (b"1", b"2"):
            assert (await client.ask_source(source.id, question)).endswith(b": " + question)
        assert (await mute.publish(b"<a/>")).accepted
        tasks.cancel_scope.cancel()


async def test_a_refusal_comes_as_it_is_and_an_error_is_logged(
    registration: str, caplog: pytest.LogCaptureFixture
) -> None:
    fault = Fault("empty-set", "there is none", "one or more", 3, 7, "question", "ask again")

    async def handler(asker: str, writes: bool, body: bytes) -> bytes:
        if body == b"refuse":
            raise Refusal(fault)
        return b"yes" if body == b"good" else {}[body]

    async def wrong(asker: str, writes: bool, body: bytes) -> bytes:
        return "a text"  # type: ignore[return-value]

    async with RegistrationClient(registration) as client:
        async with answering(registration, handler) as source:
            with pytest.raises(RequestFailed) as caught:
                await client.ask_source(source.id, b"refuse")
            assert caught.value.fault == fault and caught.value.code == "empty-set"
            with caplog.at_level(logging.ERROR, "onyx.source"):
                assert await code_of(client, source.id) == "source-failed"
            assert f"{source.id} has failed at a question" in caplog.text
            assert "KeyError" in caplog.text
            assert await client.ask_source(source.id, b"good") == b"yes"
        async with answering(registration, wrong) as source:
            assert await code_of(client, source.id) == "source-failed"


async def test_a_source_that_is_away_is_asked_again_until_it_is_there(registration: str) -> None:
    source = await DataSource.register(registration)
    async with RegistrationClient(registration) as client:
        assert await code_of(client, source.id, timeout=0.3) == "source-away"
        async with source:
            assert await code_of(client, source.id) == "no-answers"
        async with trio.open_nursery() as tasks:
            found: list[bytes] = []

            async def ask() -> None:
                found.append(await client.ask_source(source.id, b"there?", writes=True))

            tasks.start_soon(ask)
            await trio.sleep(0.2)
            async with source, trio.open_nursery() as answers:
                answers.start_soon(answer, source, echo)
                while not found:
                    await trio.sleep(0.01)
                answers.cancel_scope.cancel()
        assert found[0].endswith(b"True: there?")


async def test_an_answer_is_waited_for_so_long_and_handlers_run_beside_each_other(
    registration: str,
) -> None:
    running = SimpleNamespace(now=0, most=0)

    async def slow(asker: str, writes: bool, body: bytes) -> bytes:
        running.now += 1
        running.most = max(running.most, running.now)
        try:
            await trio.sleep(float(body))
        finally:
            running.now -= 1
        return body

    async with (
        answering(registration, slow, at_once=2) as source,
        RegistrationClient(registration) as client,
    ):
        with trio.fail_after(SAFETY_SECONDS):
            with pytest.raises(RequestFailed, match="has not answered in") as caught:
                await client.ask_source(source.id, b"0.5", timeout=0.2)
            assert caught.value.code == "timeout"
            async with trio.open_nursery() as tasks:
                for _ in range(6):
                    tasks.start_soon(client.ask_source, source.id, b"0.05")
        assert running.most == 2


async def test_questions_of_one_principal_are_bounded(registration: str) -> None:
    """Sixteen wait for their answers until four more have been refused."""
    codes: list[str] = []
    refused = trio.Event()

    async def failing(asker: str, writes: bool, body: bytes) -> bytes:
        await refused.wait()
        raise ValueError("no answer")

    async def ask(source: DataSource) -> None:
        codes.append(await code_of(client, source.id, timeout=SAFETY_SECONDS))

    async with (
        answering(registration, failing) as source,
        RegistrationClient(registration) as client,
        trio.open_nursery() as tasks,
    ):
        for _ in range(20):
            tasks.start_soon(ask, source)
        while len(codes) < 4:
            await trio.sleep(0.01)
        refused.set()
    assert sorted(codes) == ["busy"] * 4 + ["source-failed"] * 16


async def test_what_a_connection_takes_along_is_asked_again_unless_it_writes(
    two_brokers: RunningNetwork,
) -> None:
    registration = two_brokers.registration
    came: list[bytes] = []

    async def handler(asker: str, writes: bool, body: bytes) -> bytes:
        came.append(body)
        if came.count(body) == 1:
            await trio.sleep_forever()
        return body

    ends: dict[bytes, object] = {}

    async def ask(body: bytes, writes: bool) -> None:
        try:
            ends[body] = await client.ask_source(source.id, body, writes, timeout=SAFETY_SECONDS)
        except NetworkUnreachable as error:
            ends[body] = error.code

    async with (
        answering(registration, handler) as source,
        RegistrationClient(registration) as client,
        trio.open_nursery() as tasks,
    ):
        tasks.start_soon(ask, b"reads", False)
        tasks.start_soon(ask, b"writes", True)
        while len(came) < 2:
            await trio.sleep(0.01)
        two_brokers.kill(source.root)
    assert ends == {b"reads": b"reads", b"writes": "unreachable"}
    assert sorted(came) == [b"reads", b"reads", b"writes"]


async def test_who_answers_nothing_more_leaves_nothing_open(registration: str) -> None:
    async def never(asker: str, writes: bool, body: bytes) -> bytes:
        await trio.sleep_forever()
        raise AssertionError

    async with RegistrationClient(registration) as client, trio.open_nursery() as tasks:
        codes: list[str] = []

        async def ask(source: DataSource) -> None:
            codes.append(await code_of(client, source.id, writes=True))

        async with answering(registration, never) as source:
            tasks.start_soon(ask, source)
            await trio.sleep(0.3)
    assert codes == ["source-lost"]


async def test_questions_that_wait_in_the_process_are_bounded(registration: str) -> None:
    async with answering(registration, echo) as source:
        connection = source._open_connection()
        connection._asked.extend([(0.0, 0, SimpleNamespace(payload=b""))] * QUESTIONS_MAX)  # type: ignore[list-item]
        said = []
        connection.answer = lambda by, answered: said.append(answered)  # type: ignore[method-assign,assignment]
        connection._take_question(1, SimpleNamespace(number=7, payload=b""))  # type: ignore[arg-type]
        assert [(each.number, each.fault["code"]) for each in said] == [(7, "busy")]
        connection._asked.clear()


async def test_a_broker_of_a_former_release_is_refused(
    registration: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = await DataSource.register(registration)
    async with source:
        hello = source._open_connection().hello
        assert hello is not None
        hello.features.remove("source-questions")
        with pytest.raises(RequestFailed, match="knows no source questions"):
            await source.answer(echo)


def test_on_asyncio(registration: str) -> None:
    async def main() -> None:
        source = await aio.DataSource.register(registration)
        async with source, aio.RegistrationClient(registration) as client:
            answers = asyncio.ensure_future(source.answer(echo))
            await asyncio.sleep(0.1)
            assert (await client.ask_source(source.id, b"a")).endswith(b"False: a")
        await answers

    asyncio.run(main())


def test_blocking(registration: str) -> None:
    def handler(asker: str, writes: bool, body: bytes) -> bytes:
        if body == b"refuse":
            raise Refusal(Fault("empty", "there is nothing"))
        return threading.current_thread().name.encode()

    source = blocking.DataSource.register(registration)
    with blocking.RegistrationClient(registration) as client:
        with source:
            answers = threading.Thread(target=source.answer, args=(handler,))
            answers.start()
            name = client.ask_source(source.id, b"", timeout=SAFETY_SECONDS)
            assert name.decode() != threading.current_thread().name
            with pytest.raises(RequestFailed, match="there is nothing"):
                client.ask_source(source.id, b"refuse")
        answers.join(SAFETY_SECONDS)
        assert not answers.is_alive()


def test_the_command_line_asks(
    shell: Shell, registration: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = blocking.DataSource.register(registration)
    file = tmp_path / "question"
    file.write_bytes(b"what")
    words = "source", "ask", source.id, file
    assert shell.run(*words, "--timeout", 0.2) == EXIT_UNAVAILABLE
    assert f"no process is connected as the source {source.id} [source-away]" in shell.err
    with source:
        answers = threading.Thread(target=source.answer, args=(lambda *asked: b"so: " + asked[2],))
        answers.start()
        assert shell.lines(*words, "--writes") == ["so: what"]
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"this")))
        (line,) = shell.objects("source", "ask", source.id)
        assert base64.b64decode(line["body"]) == b"so: this"
    answers.join(SAFETY_SECONDS)

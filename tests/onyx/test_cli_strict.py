"""``onyx profile add`` and ``update`` of what is warned of."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from onyx.cli import profile as profile_import
from onyx.cli import profile as profile_verb
from onyx.cli import profile_bulk
from onyx.cli.main import main
from onyx.errors import EXIT_DATA, EXIT_OK
from onyx.profile_batches import ProfileBatch
from overlay.answers import ProfileInfo


class WarningUser:
    """In place of a network whose sources all have a schema."""

    def __init__(self, *where: object) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None: ...

    async def add_profile(self, text: str, **more: Any) -> ProfileInfo:
        warnings = ("no message has it",) if "never" in text else ()
        return ProfileInfo("p1", "ann", "B1", "b:1", 1, live=True, warnings=warnings)

    async def update_profile(self, profile: str, text: str, **more: Any) -> ProfileInfo:
        return await self.add_profile(text)

    async def profiles(self, **more: Any) -> list[ProfileInfo]:
        text = "(: schematron r#old :)\n//x"
        return [ProfileInfo("p9", "ann", "B1", "b:1", 1, live=True, text=text)]

    async def add_profiles(self, profiles: Iterable[Any], **more: Any) -> AsyncIterator[Any]:
        """Two a batch."""
        for first, texts in enumerate(batched([getattr(p, "text", p) for p in profiles], 2)):
            places = [2 * first + at for at in range(len(texts))]
            of = dict(zip(places, texts, strict=True))
            yield ProfileBatch(
                2 * first,
                ["" if "bad" in text else f"p{at}" for at, text in of.items()],
                {at: "bad" for at, text in of.items() if "bad" in text},
                {at: ["no message has it"] for at, text in of.items() if "never" in text},
            )

    async def update_profiles(
        self, changes: Iterable[tuple[str, str]], **more: Any
    ) -> AsyncIterator[Any]:
        async for batch in self.add_profiles(text for _, text in changes):
            yield batch


def batched(all_: list[str], size: int) -> Iterator[list[str]]:
    yield from (all_[at : at + size] for at in range(0, len(all_), size))


OFTEN, NEVER, BAD = "//often", "//never", "//bad"


@pytest.mark.parametrize("verb", ["add", "update"])
@pytest.mark.parametrize(
    ("texts", "options", "code"),
    [
        ((OFTEN, OFTEN, NEVER), (), EXIT_OK),
        ((OFTEN, OFTEN, NEVER), ("--strict",), EXIT_DATA),
        ((OFTEN, OFTEN, OFTEN), ("--strict",), EXIT_OK),
        ((OFTEN, BAD, OFTEN), (), EXIT_DATA),
    ],
)
def test_a_warning_of_one_of_many_is_an_exit_code_and_has_its_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    verb: str,
    texts: tuple[str, ...],
    options: tuple[str, ...],
    code: int,
) -> None:
    monkeypatch.setattr(profile_bulk, "User", WarningUser)
    file = tmp_path / "many.jsonl"
    lines = [{"profile": f"p{at}", "text": text} for at, text in enumerate(texts)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    where = ("--registration", "127.0.0.1:1")
    assert main(["profile", verb, str(file), *options, *where]) == code
    printed = capsys.readouterr()
    expected = [f"p{at}" for at, text in enumerate(texts) if text != BAD]
    assert printed.out.split() == expected, "they are in force"
    warned = f"onyx: {file}: line 3: warning: no message has it\n" in printed.err
    assert warned == (NEVER in texts)
    assert ("1 profile can match no message" in printed.err) == warned


@pytest.mark.parametrize(
    ("rule", "options", "code"),
    [
        ("never", (), EXIT_OK),
        ("never", ("--strict",), EXIT_DATA),
        ("often", ("--strict",), EXIT_OK),
    ],
)
@pytest.mark.parametrize("key", ["old", "new"])
def test_a_warning_of_an_assertion_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    key: str,
    rule: str,
    options: tuple[str, ...],
    code: int,
) -> None:
    monkeypatch.setattr(profile_import, "User", WarningUser)
    file = tmp_path / "r.sch"
    file.write_text(
        '<schema xmlns="http://purl.oclc.org/dsdl/schematron" queryBinding="xslt2"><pattern>'
        f'<rule context="{rule}"><assert id="{key}" test="a">none</assert></rule>'
        "</pattern></schema>",
        encoding="utf-8",
    )
    where = ("--registration", "127.0.0.1:1", "--json")
    assert main(["profile", "import", str(file), *options, *where]) == code
    printed = capsys.readouterr()
    said = json.loads(printed.out.splitlines()[0])
    assert (said["assertion"], said["was"]) == (key, "changed" if key == "old" else "added")
    assert said.get("warnings", []) == ["no message has it"] * (rule == "never")
    assert (f"onyx: {key}: warning: no message has it" in printed.err) == (rule == "never")


@pytest.mark.parametrize("verb", [("add",), ("update", "p1")])
@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        ("//never", (), EXIT_OK),
        ("//never", ("--strict",), EXIT_DATA),
        ("//often", ("--strict",), EXIT_OK),
    ],
)
def test_a_warning_is_an_exit_code_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    verb: tuple[str, ...],
    text: str,
    options: tuple[str, ...],
    code: int,
) -> None:
    monkeypatch.setattr(profile_verb, "User", WarningUser)
    file = tmp_path / "profile.xq"
    file.write_text(text, encoding="utf-8")
    where = ("--registration", "127.0.0.1:1")
    assert main(["profile", *verb, str(file), *options, *where]) == code
    printed = capsys.readouterr()
    assert printed.out == "p1\n", "it is in force"
    assert ("warning: no message has it" in printed.err) == ("never" in text)

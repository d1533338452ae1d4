"""``onyx profile add`` and ``update`` of what is warned of."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import pytest

from onyx.cli import profile as profile_verb
from onyx.cli.main import main
from onyx.client_values import ProfileInfo
from onyx.errors import EXIT_DATA, EXIT_OK


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

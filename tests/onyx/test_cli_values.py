"""Arguments and tables of the command line."""

from __future__ import annotations

import argparse

import pytest

from onyx.cli import source_publish as progress
from onyx.cli.network_option import parse_address
from onyx.cli.values import table
from onyx.cli.verb import location, not_negative, positive
from onyx.errors import UsageError
from onyx.registration_client import addresses_of, host_and_port


def test_numbers_stand_right_and_text_left() -> None:
    rows = [("B1", 7, "up", None), ("longer", 12_345, "no answer", 3)]
    assert table(("ID", "COUNT", "STATE", "N"), rows).splitlines() == [
        "ID       COUNT  STATE      N",
        "B1           7  up         -",
        "longer  12,345  no answer  3",
    ]


def test_a_table_without_rows_is_its_heading() -> None:
    assert table(("ID", "NAME"), []) == "ID  NAME"


@pytest.mark.parametrize(
    ("text", "value"),
    [("41.88,-87.63", (41.88, -87.63)), ("-33.9,18.4", (-33.9, 18.4)), ("90,180", (90.0, 180.0))],
)
def test_locations(text: str, value: tuple[float, float]) -> None:
    assert location(text) == value


@pytest.mark.parametrize("text", ["", "1", "1,2,3", "north,south", "90.1,0", "0,-181", "nan,0"])
def test_no_locations(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        location(text)


def test_numbers() -> None:
    assert (positive("3"), not_negative("0.5"), not_negative("0")) == (3, 0.5, 0.0)
    for text in ("0", "-1", "1.5", "x"):
        with pytest.raises(argparse.ArgumentTypeError):
            positive(text)
    for text in ("-1", "nan", "inf", "x"):
        with pytest.raises(argparse.ArgumentTypeError):
            not_negative(text)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("127.0.0.1:7000", "127.0.0.1", 7000), ("[::1]:7000", "::1", 7000), ("a.org:1", "a.org", 1)],
)
def test_addresses(text: str, host: str, port: int) -> None:
    assert parse_address(text, "x") == (host, port)
    assert host_and_port(text) == (host, port)
    assert addresses_of((host, port)) == ((host, port),) == addresses_of(text)
    assert addresses_of(f"{text},other:1") == ((host, port), ("other", 1))


@pytest.mark.parametrize(
    "text", ["", "7000", "host:", ":7000", "::1:7000", "h:0", "h:65536", "h:x"]
)
def test_no_addresses(text: str) -> None:
    with pytest.raises(UsageError):
        parse_address(text, "--registration")


@pytest.mark.parametrize("text", ["7000", "host:", ":7000", "h:x"])
def test_no_addresses_of_the_python_interface(text: str) -> None:
    with pytest.raises(ValueError, match="is no address"):
        host_and_port(text)


def test_a_url_is_told_to_be_an_address() -> None:
    for call in (lambda url: parse_address(url, "--registration"), addresses_of):
        with pytest.raises((UsageError, ValueError), match=r"is a URL; write .?onyx\.example:7200"):
            call("https://ann@onyx.example:7200/x")


def test_how_far_it_is_is_said_with_a_rate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = iter([0.0, 1.0, 4.0, 4.0, 4.0, 8.0, 8.0])
    monkeypatch.setattr(progress, "monotonic", lambda: next(seconds))
    with progress.Progress("published", 2_000) as shown:
        shown.note(10)
        shown.note(20)
    assert capsys.readouterr().err.splitlines() == [
        "onyx: 2 of 2,000 published, 0 a second",
        "onyx: 2 of 2,000 published, 0 a second, 20 bytes in 8.0 s",
    ]

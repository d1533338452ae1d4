"""An error that a user meets is one record from the engine to the client, and one table says how it
ends."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from formats.errors import DecodeError, Fault, Refusal, SchemaRefused, about
from onyx.cli.main import EPILOG
from onyx.client_values import Outcome
from onyx.errors import (
    ENDINGS,
    EXIT_DATA,
    ProfileNotAccepted,
    RequestFailed,
    UsageError,
    ending,
    exit_code_of,
)
from onyx.gateway.refusals import problem
from onyx.registration_client import answer_of, request_failed
from overlay import verbs
from overlay.errors import TopologyError
from overlay.link.client_limits import RemoteError
from yfilter.errors import MatchLimitExceeded, ProfileRefused

ROOT = Path(__file__).parents[2]
PACKAGES = ("formats", "yfilter", "overlay", "registration", "onyx")


@pytest.mark.parametrize(
    "refusal",
    [
        ProfileRefused("syntax", "unexpected ']'", "/a[\n]", 4, "a condition", "write /a"),
        SchemaRefused("malformed", "it is", 3, 4),
        DecodeError("bad-structure", "it is cut", 17),
        MatchLimitExceeded("match-limit", "too much"),
        TopologyError("a.toml", "broker[2].id", "is taken"),
    ],
)
def test_a_client_gets_the_record_that_the_engine_made(refusal: Refusal) -> None:
    said = refusal.answer()
    assert (said["code"], said["message"]) == (refusal.kind, str(refusal))
    failed = request_failed(RemoteError(refusal.kind, str(refusal), said["refusal"]))
    assert failed.fault == refusal.fault
    assert failed.exit_code == exit_code_of(refusal) == ending(refusal.kind)[0]


@pytest.mark.parametrize("code", ["profile-refused", "schema-refused", ""])
@pytest.mark.parametrize(
    ("odd", "fault"),
    [
        (None, Fault("", "no")),
        ("no record", Fault("", "no")),
        ([1, 2], Fault("", "no")),
        ({}, Fault("", "no")),
        ({"code": 3, "reason": None, "line": "1", "column": True}, Fault("", "no")),
        ({"line": 2, "expected": b"a"}, Fault("", "no", line=2)),
        ({"of_a_newer_release": {}, 7: 8, "hint": "write /a"}, Fault("", "no", hint="write /a")),
    ],
)
def test_a_malformed_error_of_a_peer_is_an_error_all_the_same(
    code: str, odd: object, fault: Fault
) -> None:
    failed = request_failed(RemoteError(code, "no", odd))
    assert isinstance(failed, ProfileNotAccepted) == (code == "profile-refused")
    assert failed.fault == replace(fault, code=code)
    assert (failed.code, failed.reason) == (code, "no")


def test_what_is_refused_says_of_what_it_is() -> None:
    with (
        pytest.raises(DecodeError, match=r"^a\.bin: byte 3: it is cut \[malformed\]$"),
        about("a.bin"),
    ):
        raise DecodeError("malformed", "it is cut", 3)


def test_over_http_it_is_the_same_record() -> None:
    fault = Fault("syntax", "unexpected ']'", "a condition", 1, 4)
    answered = problem(ProfileNotAccepted("profile-refused", "line 1: unexpected ']'", fault), at=3)
    said = json.loads(answered.body)
    assert (answered.status_code, answered.media_type) == (422, "application/problem+json")
    known = {"code": "syntax", "reason": "unexpected ']'", "expected": "a condition"}
    about = {"type": "about:blank", "title": "Unprocessable Entity", "status": 422}
    assert said == {**known, "line": 1, "column": 4, "at": 3, **about}
    said = json.loads(problem(RequestFailed("schema-refused", "a.xsd: line 3", fault)).body)
    assert (said["code"], said["reason"], said["line"]) == ("schema-refused", "a.xsd: line 3", 1)


def test_every_error_of_the_program_has_a_record() -> None:
    error = UsageError("--rate needs a number")
    assert error.fault == Fault("usage", "--rate needs a number")
    assert (error.exit_code, ending(error.code)) == (2, (2, 400))


def test_the_table_has_the_codes_that_are_said() -> None:
    texts = [p.read_text("utf-8") for of in PACKAGES for p in (ROOT / of).rglob("*.py")]
    said = re.findall(r"Request(?:Refused|Failed)\(\s*\"([a-z-]+)\"", "".join(texts))
    assert {code for code in said if code.startswith(("unknown-", "too-many"))} <= set(ENDINGS)
    others = re.sub(r"ENDINGS: Mapping.*?\n}\n", "", "".join(texts), flags=re.DOTALL)
    assert [code for code in ENDINGS if f'"{code}"' not in others] == []


def test_the_help_has_the_exit_codes_of_the_table() -> None:
    said = {int(code) for code in re.findall(r"\b(\d+) [a-z]", EPILOG)}
    assert {exit_code for exit_code, _ in ENDINGS.values()} <= said


def test_the_document_has_the_statuses_of_the_table() -> None:
    document = (ROOT / "docs/gateway.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d{3}) \| (`.*`) \|$", document, re.MULTILINE)
    said = {code: int(status) for status, codes in rows for code in re.findall("`(.*?)`", codes)}
    assert said == {code: status for code, (_, status) in ENDINGS.items() if status != 500}


@pytest.mark.parametrize(
    ("asked", "result"),
    [
        (verbs.SourceShow(source="wire"), {"source": 3}),
        (verbs.SourceList(), {}),
        (verbs.TaxonomyList(), {"version": 1, "taxonomies": [["a"]]}),
        (verbs.AuditList(), {"entries": [[1, "then"]], "more": False}),
    ],
    ids=lambda each: getattr(each, "verb", ""),
)
def test_an_answer_that_is_none_is_said_as_an_error_of_its_verb(
    asked: verbs.Asked, result: dict[str, object]
) -> None:
    with pytest.raises(RequestFailed, match=rf"^{asked.verb}: .* \[bad-answer\]"):
        answer_of(asked, result)


def test_a_refused_message_raises_where_the_program_checks() -> None:
    accepted = Outcome(1, accepted=True)
    assert accepted.check() is accepted
    fault = Fault("not-well-formed", "no element found", line=2, column=7)
    with pytest.raises(RequestFailed, match=r"no element found \[not-well-formed\]") as caught:
        Outcome.refused(fault).check()
    assert (caught.value.fault, caught.value.exit_code) == (fault, EXIT_DATA)

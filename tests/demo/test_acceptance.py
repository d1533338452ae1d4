"""Whether a broker was right to take or refuse a message."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree

from demo.acceptance import POLICIES, Refusal, disagreement, independent_refusal
from demo.independent_parse import parse
from formats.errors import MessageRefused
from formats.text import parse_text

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
needs_shared_data = pytest.mark.skipif(not SHARED.is_dir(), reason="no reference data here")

MALFORMED = Refusal("malformed", "mismatched tag", 3, 7)


def test_both_take_it_or_both_do_not() -> None:
    assert disagreement(None, None) is None
    assert disagreement("no", MALFORMED) is None


def test_what_is_no_xml_must_not_be_accepted() -> None:
    assert "accepted" in str(disagreement("premature end", None))


def test_what_is_xml_may_be_refused_only_for_a_named_policy() -> None:
    assert disagreement(None, Refusal("external-entity", "never loaded", 1, 1)) is None
    assert "no policy" in str(disagreement(None, MALFORMED))
    assert "no policy" in str(disagreement(None, Refusal("some-code", "why", 1, 1)))


def test_a_refusal_of_malformed_xml_must_name_a_place() -> None:
    assert "without a place" in str(disagreement("no", Refusal("malformed", "bad")))


def test_a_refusal_reads_with_its_place() -> None:
    assert str(MALFORMED) == "line 3, column 7: mismatched tag [malformed]"
    assert str(Refusal("too-large", "big")) == "big [too-large]"


@pytest.mark.parametrize(
    "message",
    [
        b"<a/>",
        b'<?xml version="1.1"?><a/>',
        '<a xmlns="urn:ü"/>'.encode(),
        '<?xml version="1.0" encoding="UTF-16"?><ö/>'.encode("utf-16"),
        b'<!DOCTYPE a SYSTEM "nowhere.dtd"><a/>',
        b'<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>',
    ],
)
def test_both_parsers_take(message: bytes) -> None:
    assert independent_refusal(message) is None
    parse_text(message)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"<a>",
        b"<a></b>",
        b"<a/><b/>",
        b"<a b='1' b='2'/>",
        b"<a>&nbsp;</a>",
        b"<p:a/>",
        b"<a xmlns:p=''/>",
        b"<a>\xe9</a>",
        b"<a>\x07</a>",
        b'<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/hostname">]><a>&e;</a>',
    ],
)
def test_both_parsers_refuse(message: bytes) -> None:
    assert independent_refusal(message) is not None
    with pytest.raises(MessageRefused):
        parse_text(message)


def test_a_namespace_that_is_no_uri_hides_no_other_error() -> None:
    assert independent_refusal('<a xmlns="urn:ü"></b>'.encode()) is not None
    assert independent_refusal(b"<a/>") is None


def test_defaults_of_the_internal_subset_count_and_nothing_outside_is_read(tmp_path: Path) -> None:
    dtd = tmp_path / "outside.dtd"
    dtd.write_text('<!ATTLIST a outside CDATA "1">')
    subset = '[<!ATTLIST a inside CDATA "1">]'
    root = parse(f'<!DOCTYPE a SYSTEM "{dtd}" {subset}><a/>'.encode())
    assert etree.tostring(root) == b'<a inside="1"/>'


@needs_shared_data
def test_agreement_on_every_reference_file() -> None:
    wrong = {}
    for path in sorted(SHARED.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            refusal = None
            try:
                parse_text(data)
            except MessageRefused as refused:
                refusal = Refusal(refused.code, refused.reason, refused.line, refused.column)
            wrong[path.name] = disagreement(independent_refusal(data), refusal)
    assert len(wrong) > 600
    assert {name: why for name, why in wrong.items() if why} == {}


def test_every_policy_is_said_in_words() -> None:
    assert all(" " in words for words in POLICIES.values())

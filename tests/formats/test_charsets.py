"""The charset of a media type wins over what a document declares, as RFC 7303 has it; libxml2 is
told the same and must read the same text."""

from __future__ import annotations

from itertools import product

import pytest
from lxml import etree

from formats import MessageRefused, to_text
from formats.media_types import as_published
from formats.publication import read_publication

DECLARED = (None, "UTF-8", "utf8", "ISO-8859-1", "ISO-8859-15", "windows-1252", "Shift_JIS", "x-no")
NAMED = (
    *("utf-8", "UTF-8", "us-ascii", "iso-8859-1", "ISO-8859-15", "windows-1252", "koi8-r"),
    *("Shift_JIS", "GB18030", "euc-kr", "utf-16le", "utf-16be"),
)
TEXTS = ("plain", "10 €", "Čeština", "Тест", "東京")
MARKS = {"utf-8-sig": "utf-8", "utf-16": None}
HOW = (
    'application/xml; charset="{}"',
    "TEXT/XML;version=1;Charset={}",
    "a/b+xml ; charset={} ;x=1",
)


def document(text: str, declared: str | None) -> str:
    said = "" if declared is None else f"<?xml version='1.0' encoding='{declared}' ?>"
    return f"{said}<r a='{text}'><!-- {text} -->{text}</r>"


def read(data: bytes, media_type: str) -> str | None:
    """The text; None where it is refused."""
    try:
        return read_publication(data, media_type).string_value(0)
    except MessageRefused:
        return None


def read_by_lxml(data: bytes, charset: str) -> str | None:
    try:
        return etree.fromstring(data, etree.XMLParser(encoding=charset)).xpath("string()")
    except (etree.XMLSyntaxError, LookupError):
        return None


def test_libxml2_reads_the_same_text_by_the_same_charset() -> None:
    compared = 0
    for number, (declared, charset, text) in enumerate(product(DECLARED, NAMED, TEXTS)):
        try:
            data = document(text, declared).encode(charset)
        except UnicodeEncodeError:
            continue
        kind = HOW[number % len(HOW)].format(charset)
        assert read(data, kind) == text == read_by_lxml(data, charset), (kind, declared, text)
        compared += 1
    assert compared > 250


def test_bytes_that_are_not_in_their_charset_are_refused() -> None:
    for charset, data in (("utf-8", b"<a>\xe9</a>"), ("us-ascii", "<a>é</a>".encode())):
        assert read(data, f"text/xml;charset={charset}") is read_by_lxml(data, charset) is None
    with pytest.raises(MessageRefused) as refused:
        read_publication(b"<a>\n \xe9</a>", "text/xml; charset=utf-8")
    assert (refused.value.code, refused.value.line, refused.value.column) == ("malformed", 2, 2)


@pytest.mark.parametrize("written", MARKS)
def test_a_byte_order_mark_wins_over_the_charset(written: str) -> None:
    for declared in (None, MARKS[written], written.upper() if written == "utf-16" else "UTF-8"):
        data = document("10 €", declared).encode(written)
        assert read(data, "application/xml; charset=iso-8859-1") == "10 €"


def test_what_declares_nothing_else_stays_as_it_is_and_columns_stay() -> None:
    data = "<?xml version='1.0' encoding='UTF-8'?><a>é</a>".encode()
    assert as_published(data, "text/xml;charset=UTF-8") == (data, "text")
    with pytest.raises(MessageRefused) as refused:
        read_publication(document("", "ISO-8859-15").encode() + b"<", "text/xml;charset=latin1")
    with pytest.raises(MessageRefused) as usual:
        read_publication(document("", "ISO-8859-15").encode() + b"<", "text/xml")
    assert refused.value.column == usual.value.column > 1


def test_an_unknown_charset_and_another_one_than_utf_8_of_a_graph_are_refused() -> None:
    for kind in ("text/xml;charset=utf-7", "a/b+xml;charset=ebcdic", "text/turtle;charset=latin1"):
        with pytest.raises(MessageRefused) as refused:
            read_publication(b"<a/>", kind)
        assert refused.value.code == "unknown-charset"
    turtle = '<http://e/a> <http://e/p> "é" .'.encode()
    for kind in ("text/turtle; charset=UTF-8", "text/turtle;charset=utf8;x=y", "text/turtle"):
        assert "é" in to_text(read_publication(turtle, kind)).decode()
    assert read(b"<a>1</a>", "text/xml; charset=") == "1"

from __future__ import annotations

import json
import random
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from formats import (
    DEFAULT_LIMITS,
    EMPTY_DICTIONARY,
    FORMS,
    DecodeError,
    MessageLimits,
    MessageRefused,
    QualifiedName,
    WireFormat,
    decode,
    encode,
    encoded_bytes_max,
    parse_text,
    to_text,
)
from formats.known_names import KnownNames
from tests.examples import examples
from tests.formats.support import assert_invariants, canonical, columns, documents, real_files

HERE = Path(__file__).parent
VECTORS = json.loads((HERE / "vectors.json").read_text(encoding="utf-8"))
HEAD = bytes.fromhex("08 00 02 00 02 61 00 02 62")  # the names a and b
HOSTILE_HEAD = b"\x4f\x02" + HEAD
DOCUMENTATION = HERE.parents[1] / "docs" / "formats.md"


def wire(hexadecimal: str) -> bytes:
    return bytes.fromhex(hexadecimal)


def refused(data: bytes, limits: MessageLimits = DEFAULT_LIMITS) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        decode(data, WireFormat.BINARY, limits)
    assert 0 <= caught.value.offset <= len(data)
    return caught.value


@pytest.mark.parametrize("vector", VECTORS["valid"], ids=lambda vector: vector["name"])
def test_vectors(vector: dict[str, str]) -> None:
    stream = parse_text(vector["xml"].encode())
    assert encode(stream, WireFormat.BINARY).hex(" ") == vector["hex"]
    decoded = decode(wire(vector["hex"]), WireFormat.BINARY)
    assert columns(decoded) == columns(stream)


@pytest.mark.parametrize("vector", VECTORS["refused"], ids=lambda vector: vector["name"])
def test_refused_vectors(vector: dict[str, str | int]) -> None:
    error = refused(wire(str(vector["hex"])))
    assert (error.code, error.offset) == (vector["code"], vector["offset"])


def test_the_documentation_shows_the_vectors() -> None:
    text = DOCUMENTATION.read_text(encoding="utf-8")
    for vector in VECTORS["valid"]:
        assert f"`{vector['xml']}`" in text, vector["name"]
        assert vector["hex"] in text, vector["name"]


def test_every_form_goes_both_ways() -> None:
    stream = parse_text(b'<a b="1">t<!--c--></a>')
    for wire_format in FORMS:
        payload = encode(stream, wire_format)
        assert payload == wire_format.codec.encode(stream, EMPTY_DICTIONARY)
        assert columns(decode(payload, wire_format)) == columns(stream)
    assert WireFormat("binary") is WireFormat.BINARY
    with pytest.raises(MessageRefused):
        decode(b"<a", WireFormat.TEXT)
    with pytest.raises(MessageRefused, match="at most 3"):
        decode(b"<a/>", WireFormat.TEXT, MessageLimits(bytes_max=3))


@examples(200)
@given(documents())
def test_generated_documents_survive(document: bytes) -> None:
    stream = parse_text(document)
    payload = encode(stream, WireFormat.BINARY)
    decoded = decode(payload, WireFormat.BINARY)
    assert columns(decoded) == columns(stream)
    assert encode(decoded, WireFormat.BINARY) == payload
    assert canonical(to_text(decoded)) == canonical(document)
    assert max(len(payload), len(to_text(stream))) <= encoded_bytes_max(stream)


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
def test_real_files_survive(path: Path) -> None:
    try:
        stream = parse_text(path.read_bytes())
    except MessageRefused:
        pytest.skip("not a message")
    payload = encode(stream, WireFormat.BINARY)
    decoded = decode(payload, WireFormat.BINARY)
    assert columns(decoded) == columns(stream)
    assert canonical(to_text(decoded)) == canonical(path.read_bytes())
    assert max(len(payload), len(to_text(stream))) <= encoded_bytes_max(stream)


def test_it_is_smaller_than_text_on_a_message_with_structure() -> None:
    row = b'<order id="%d" currency="EUR"><buyer>b%d</buyer><quantity>%d</quantity></order>'
    text = b"<orders>" + b"".join(row % (n, n, n) for n in range(100)) + b"</orders>"
    assert len(encode(parse_text(text), WireFormat.BINARY)) < len(text) / 2


@pytest.mark.parametrize("number_break", [0x40, 0x2000, 0x100000])
def test_longer_numbers(number_break: int) -> None:
    for size in (number_break - 1, number_break):
        stream = parse_text(b"<a><b>" + b"x" * size + b"</b><c/>t</a>")
        assert columns(decode(encode(stream, WireFormat.BINARY), WireFormat.BINARY)) == columns(
            stream
        )


def test_every_truncation_and_extension_is_refused() -> None:
    payload = encode(parse_text(b'<p:a xmlns:p="u" b="1">t<p:c/><!--d--></p:a>'), WireFormat.BINARY)
    for size in range(len(payload)):
        assert refused(payload[:size]).code in {"truncated", "bad-magic"}, size
    assert refused(payload + b"\0").code == "trailing-bytes"


def test_what_is_remembered_of_names_is_bounded_and_keeps_no_long_ones() -> None:
    long = parse_text(b"<%s/>" % (b"x" * 700))
    assert columns(decode(encode(long, WireFormat.BINARY), WireFormat.BINARY)) == columns(long)
    for number in range(5_000):
        decode(encode(parse_text(b"<n%d/>" % number), WireFormat.BINARY), WireFormat.BINARY)
    assert 0 < EMPTY_DICTIONARY.model.words.name_table.used < 4_200
    known = KnownNames()
    for number in range(5_000):
        known.learn(known.of("p", "u", DEFAULT_LIMITS), QualifiedName("p", "u", f"n{number}"))
    assert 0 < known._count < 4_200
    before = known._count
    known.learn(known.of("p", "u", DEFAULT_LIMITS), QualifiedName("p", "u", "x" * 700))
    assert known._count == before
    # The verdict depends on the limits of whoever asks.
    payload = encode(parse_text(b"<abc/>"), WireFormat.BINARY)
    decode(payload, WireFormat.BINARY)
    assert refused(payload, MessageLimits(name_bytes_max=2)).code == "name-too-long"
    decode(payload, WireFormat.BINARY)


def test_no_names_at_all() -> None:
    """Found by fuzzing: no names, so that nothing is a name number, and no number either."""
    assert refused(wire("4f02 02 0000 01010000 00 06")).code == "bad-structure"


SAMPLE = (
    b'<!--c--><p:a xmlns:p="urn:p" xmlns="urn:d" p:x="1" y="&#233;">t<b>\xc3\xa9</b>u'
    b'<b/><?pi data?><c xmlns="" z=""/></p:a><!--e-->'
)


def read_or_refused(data: bytes, limits: MessageLimits) -> bool:
    """Whether the bytes are a message; if so, it must be one that XML can say."""
    try:
        stream = decode(data, WireFormat.BINARY, limits)
    except DecodeError as error:
        assert 0 <= error.offset <= len(data)
        assert error.code and error.reason
        return False
    assert_invariants(stream)
    text = to_text(stream)
    again = parse_text(text)
    assert again.content_values == stream.content_values
    assert again.attribute_values == stream.attribute_values
    assert [again.name_of(element) for element in range(len(again))] == [
        stream.name_of(element) for element in range(len(stream))
    ]
    assert again.element_parent == stream.element_parent
    assert again.content_parent == stream.content_parent
    assert again.content_next == stream.content_next
    return True


def test_changed_bytes_never_make_an_invalid_stream() -> None:
    payload = encode(parse_text(SAMPLE), WireFormat.BINARY)
    read = 0
    for place in range(len(payload)):
        for value in (0, 1, 2, 4, 0x20, 0x2D, 0x7F, 0x80, 0xFF, payload[place] ^ 1):
            read += read_or_refused(
                payload[:place] + bytes([value]) + payload[place + 1 :], DEFAULT_LIMITS
            )
    assert read > len(payload) / 10  # or nothing beyond the first check was tried


def test_hostile_bytes_never_make_an_invalid_stream() -> None:
    payload = encode(parse_text(SAMPLE), WireFormat.BINARY)
    read = 0
    for seed in range(5_000):
        chance = random.Random(seed)
        data = bytearray(payload)
        for _ in range(chance.randint(1, 5)):
            place = chance.randrange(2, len(data))
            action = chance.randrange(5)
            if action == 0:
                data[place] ^= 1 << chance.randrange(8)
            elif action == 1:
                data[place] = max(0, min(255, data[place] + chance.choice((-1, 1))))
            elif action == 2:
                other = chance.randrange(2, len(data))
                data[place], data[other] = data[other], data[place]
            elif action == 3:
                data[place:place] = chance.randbytes(chance.randint(1, 4))
            else:
                data[-20:-16] = chance.randbytes(4)
        read += read_or_refused(bytes(data), DEFAULT_LIMITS)
    assert read > 50


@examples(500)
@given(st.binary(max_size=60))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    read_or_refused(data, DEFAULT_LIMITS)
    read_or_refused(b"\x4f\x02" + data, DEFAULT_LIMITS)
    read_or_refused(b"\x4f\x02" + HEAD + data, DEFAULT_LIMITS)


def test_hostile_numbers_cost_nothing() -> None:
    for number in (b"\xff\xff\xff\xff\x07", b"\x80\x80\x80\x80\x10", b"\x80" * 9 + b"\x01"):
        for place in range(len(HEAD) + 4):
            data = bytearray(b"\x4f\x02" + HEAD + b"\x01" * 4 + b"\0" * 50)
            data[place + 2 : place + 3] = number
            assert refused(bytes(data)).code


def test_a_bit_that_stands_for_many_attributes_is_counted_first() -> None:
    text = b"<a>" + b"<b %s/>" % b" ".join(b'a%d=""' % n for n in range(500)) * 100 + b"</a>"
    payload = bytearray(encode(parse_text(text), WireFormat.BINARY))
    limits = MessageLimits(attributes_total_max=49_999)
    assert refused(bytes(payload), limits).code == "too-many-attributes"
    # With fewer codes than attributes there is nothing to make.
    assert refused(bytes(payload[:-40_000])).code == "truncated"


@pytest.mark.parametrize(
    "data",
    [
        HOSTILE_HEAD + b"\xa0\x8d\x06\x00\x00\x00" + b"\xff" * 100_000,  # bits without end
        HOSTILE_HEAD + b"\x01\x00\x00\xa0\x8d\x06\x33" + b"\x00" * 100_000,  # codes alone
        HOSTILE_HEAD + b"\xa0\x8d\x06\x00\xa0\x8d\x06\xa0\x8d\x06" + b"\xff" * 300_000,
        encode(parse_text(b"<a>" + b"<b/>" * 60_000 + b"</a>"), WireFormat.BINARY),
        encode(parse_text(b"<a>" + b"<!---->" * 60_000 + b"</a>"), WireFormat.BINARY),
    ],
)
def test_memory_is_bounded(data: bytes) -> None:
    limits = replace(DEFAULT_LIMITS, elements_max=70_000, expansion_max=100_000)
    tracemalloc.start()
    try:
        decode(data, WireFormat.BINARY, limits)
    except DecodeError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 100 * len(data) + 40 * 70_000 + 2 * 100_000


def test_one_long_string_in_many_names_is_refused() -> None:
    stream = parse_text(b"<a/>")
    for name, code in (
        (QualifiedName("", "u" * 100_000, "a"), "namespace-too-long"),
        (QualifiedName("", "", "a" * 100_000), "name-too-long"),
        (QualifiedName("p" * 100_000, "u", "a"), "name-too-long"),
    ):
        stream.names = [name]
        assert refused(encode(stream, WireFormat.BINARY)).code == code


def test_a_small_message_cannot_become_a_large_text() -> None:
    stream = parse_text(b"<a>" + b"<b/>" * 100_000 + b"</a>")
    stream.names[1] = QualifiedName("", "", "b" * 1_000)
    payload = encode(stream, WireFormat.BINARY)
    assert len(payload) < 130_000
    assert refused(payload).code == "entity-expansion"


@pytest.mark.parametrize(
    ("xml", "attribute", "value", "code"),
    [
        ("<a/>", "names", ("", "", "1"), "bad-name"),
        ("<a/>", "names", ("", "", "a:b"), "bad-name"),
        ("<a/>", "names", ("", "", ""), "bad-name"),
        ("<a/>", "names", ("p", "urn:p", "a"), "undeclared-prefix"),
        ("<a/>", "names", ("", "urn:p", "a"), "undeclared-prefix"),
        ("<a/>", "names", ("xmlns", "urn:p", "a"), "bad-namespace"),
        ("<a/>", "names", ("xml", "urn:p", "a"), "bad-namespace"),
        ("<a/>", "names", ("p", "", "a"), "bad-namespace"),
        ("<a/>", "names", ("p q", "urn:p", "a"), "bad-namespace"),
        ("<a/>", "names", ("p", "\x00", "a"), "bad-namespace"),
        ("<a xmlns='u'/>", "declarations", ("", "v"), "undeclared-prefix"),
        ("<p:a xmlns:p='u'/>", "declarations", ("p", ""), "bad-namespace"),
        ("<a xmlns:p='u'/>", "declarations", ("xml", "u"), "bad-namespace"),
        (
            "<a xmlns:p='u'/>",
            "declarations",
            ("xml", "http://www.w3.org/XML/1998/namespace"),
            "bad-declaration",
        ),
    ],
)
def test_names_that_xml_cannot_say(
    xml: str, attribute: str, value: tuple[str, ...], code: str
) -> None:
    stream = parse_text(xml.encode())
    table = getattr(stream, attribute)
    table[0] = type(table[0])(*value) if attribute == "names" else value
    assert refused(encode(stream, WireFormat.BINARY)).code == code


def test_attributes_that_xml_cannot_say() -> None:
    stream = parse_text(b'<a b="" c=""/>')
    stream.attribute_name[1] = stream.attribute_name[0]
    assert refused(encode(stream, WireFormat.BINARY)).code == "bad-attribute"
    stream = parse_text(b'<a xmlns:p="u" xmlns:q="u" p:b="" q:c=""/>')
    stream.names[2] = stream.names[2]._replace(local="b")
    assert refused(encode(stream, WireFormat.BINARY)).code == "bad-attribute"
    stream = parse_text(b'<a b=""/>')
    stream.names[1] = stream.names[1]._replace(local="xmlns")
    assert refused(encode(stream, WireFormat.BINARY)).code == "bad-attribute"
    stream = parse_text(b'<a xmlns="u" b=""/>')
    stream.names[1] = stream.names[1]._replace(namespace="u")
    assert refused(encode(stream, WireFormat.BINARY)).code == "undeclared-prefix"
    stream = parse_text(b'<a xmlns:p="u" xmlns:q="v"/>')
    stream.declarations[1] = ("p", "v")
    assert refused(encode(stream, WireFormat.BINARY)).code == "bad-declaration"
    stream = parse_text(b'<a><b xmlns:p="u" p:x=""/><c/></a>')
    stream.attribute_start[2:] = type(stream.attribute_start)("i", [0, 1])
    assert refused(encode(stream, WireFormat.BINARY)).code == "undeclared-prefix"


@pytest.mark.parametrize(
    ("xml", "run", "code"),
    [
        ("<a>tt</a>", b"t\x00", "bad-value"),
        ("<a>tt</a>", b"t\xff", "bad-value"),
        ("<a>ttt</a>", b"\xed\xa0\x80", "bad-value"),
        ("<a>ttt</a>", b"\xef\xbf\xbe", "bad-value"),
        ("<a>t<b/>t</a>", b"\xc3\xa9", "bad-value"),
        ("<a><!--ccc--></a>", b"a--", "bad-content"),
        ("<a><!--ccc--></a>", b"aa-", "bad-content"),
        ("<a><!--ccc--></a>", b"a\rb", "bad-content"),
        ("<a><?p d?></a>", b"xml", "bad-content"),
        ("<a><?p d?></a>", b"p  ", "bad-content"),
        ("<a><?p d?></a>", b"pq ", "bad-content"),
        ("<a><?p d?></a>", b"1 d", "bad-content"),
        ("<a><?p dd?></a>", b"p ?>", "bad-content"),
    ],
)
def test_content_that_xml_cannot_say(xml: str, run: bytes, code: str) -> None:
    stream = parse_text(xml.encode())
    assert len(run) == len(stream.content_values)
    stream.content_values = run
    assert refused(encode(stream, WireFormat.BINARY)).code == code


@pytest.mark.parametrize(
    ("xml", "kinds"),
    [("<!--c--><a/>", [0]), ("<a>t<!--c--></a>", [0, 0]), ("<a><!----></a>", [0])],
)
def test_text_where_none_may_be(xml: str, kinds: list[int]) -> None:
    stream = parse_text(xml.encode())
    stream.content_kind[:] = type(stream.content_kind)("B", kinds)
    assert refused(encode(stream, WireFormat.BINARY)).code == "bad-content"


@pytest.mark.parametrize(
    ("xml", "limit", "code"),
    [
        ("<a><a/></a>", {"depth_max": 1}, "too-deep"),
        ("<a><a/></a>", {"elements_max": 1}, "too-many-elements"),
        ('<a b="" xmlns="u"/>', {"attributes_max": 1}, "too-many-attributes"),
        ('<a b=""><a xmlns:p="u"/></a>', {"attributes_total_max": 1}, "too-many-attributes"),
        ("<a><b/></a>", {"names_max": 1}, "too-many-names"),
        ('<a xmlns="uu"/>', {"namespace_bytes_max": 1}, "namespace-too-long"),
        ('<a b="1">2</a>', {"expansion_max": 3}, "entity-expansion"),
        ("<bb/>", {"name_bytes_max": 1}, "name-too-long"),
        ("<a/>", {"bytes_max": 10}, "too-large"),
    ],
)
def test_limits(xml: str, limit: dict[str, int], code: str) -> None:
    payload = encode(parse_text(xml.encode()), WireFormat.BINARY)
    assert refused(payload, replace(DEFAULT_LIMITS, **limit)).code == code
    relaxed = {bound: value + 1 for bound, value in limit.items() if bound != "bytes_max"}
    decode(payload, WireFormat.BINARY, replace(DEFAULT_LIMITS, **relaxed))

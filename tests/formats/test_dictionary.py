"""The dictionary form: what a schema gives, what a payload says, and what hostile bytes can do."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import (
    DEFAULT_LIMITS,
    EMPTY_DICTIONARY,
    DecodeError,
    Dictionary,
    MessageLimits,
    MessageRefused,
    WireFormat,
    decode,
    derive_dictionary,
    encode,
    encoded_bytes_max,
    make_dictionary,
    only,
    parse_text,
    read_schema,
    to_text,
)
from formats.dictionary import WORD_BYTES_MAX, WORDS_MAX, read_grammar
from formats.grammar import Grammar
from formats.names import XML_NAMESPACE
from formats.schema import Schema, SchemaKind
from tests.examples import examples
from tests.formats.second_decoder import Known, decode_to_xml
from tests.formats.support import (
    SHARED_DATA,
    assert_invariants,
    canonical,
    columns,
    documents,
    real_files,
)

HERE = Path(__file__).parent
VECTORS = json.loads((HERE / "vectors.json").read_text(encoding="utf-8"))
DOCUMENTATION = (HERE.parents[1] / "docs" / "formats.md").read_text(encoding="utf-8")
FORM = WireFormat.DICTIONARY

DTD = b"""<!ELEMENT news (head, body*)> <!ELEMENT head (#PCDATA)> <!ELEMENT body (#PCDATA)>
<!ATTLIST news xmlns CDATA #FIXED "urn:news" kind (flash | feature) "flash" xml:lang CDATA "en">"""
XSD = b"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:n="urn:news"
 targetNamespace="urn:news"><xs:element name="news"><xs:complexType>
 <xs:attribute name="kind"><xs:simpleType><xs:restriction base="xs:string">
 <xs:enumeration value="flash"/><xs:enumeration value="feature"/>
 </xs:restriction></xs:simpleType></xs:attribute><xs:attribute name="v" fixed="1.0"/>
 </xs:complexType></xs:element></xs:schema>"""
RELAXNG = b"""<element xmlns="http://relaxng.org/ns/structure/1.0" name="news" ns="urn:news"
 xmlns:x="urn:x"><attribute name="x:kind"><choice><value>flash</value><value>feature</value>
 </choice></attribute><element><name> head </name><text/></element></element>"""


def derived(name: str, data: bytes) -> Dictionary:
    dictionary = derive_dictionary(read_schema(name, data))
    assert dictionary is not None
    return dictionary


def known(dictionary: Dictionary) -> Known:
    grammar = dictionary.grammar
    return Known(
        dictionary.strings,
        [value.decode() for value in dictionary.values],
        grammar.names,
        grammar.attributes,
        grammar.first,
        grammar.following,
        grammar.root,
    )


def refused(
    data: bytes, dictionary: Dictionary, limits: MessageLimits = DEFAULT_LIMITS
) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        decode(data, FORM, limits, only(dictionary))
    assert 0 <= caught.value.offset <= len(data)
    return caught.value


@pytest.mark.parametrize(
    ("name", "data", "strings", "values"),
    [
        ("a.dtd", DTD, {"urn:news", "xml"}, {"feature", "flash", "en"}),
        ("a.xsd", XSD, {"n", "urn:news"}, {"feature", "flash", "1.0"}),
        ("a.rng", RELAXNG, {"x", "urn:x", "urn:news"}, {"feature", "flash"}),
    ],
)
def test_what_a_schema_gives(name: str, data: bytes, strings: set[str], values: set[str]) -> None:
    dictionary = derived(name, data)
    assert dictionary.strings == tuple(sorted(strings))
    assert dictionary.values == tuple(value.encode() for value in sorted(values))
    assert dictionary == derived(name, data)
    assert dictionary.version == derived(name, data).version


def test_what_is_elsewhere_stays_unread(tmp_path: Path) -> None:
    elsewhere = tmp_path / "more.dtd"
    elsewhere.write_text("<!ELEMENT secret EMPTY>")
    data = f'<!ENTITY % more SYSTEM "{elsewhere.as_uri()}">%more;<!ELEMENT a EMPTY>'.encode()
    assert derived("a.dtd", data).grammar.names == (("", "a"),)
    assert "secret" not in derived("a.dtd", data).strings


def test_a_schema_without_words_gives_none() -> None:
    xsd = b'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"/>'
    assert derive_dictionary(read_schema("a.xsd", xsd)) is None


def test_dictionaries_are_bounded_and_ordered() -> None:
    words = [f"w{number:05}" for number in range(WORDS_MAX + 10)]
    dictionary = make_dictionary(reversed(words), [*reversed(words), ""])
    assert len(dictionary.strings) == WORDS_MAX
    assert dictionary.values[0] == b"w00000"
    assert len(dictionary.values) == WORDS_MAX
    long = "x" * (WORD_BYTES_MAX + 1)
    assert make_dictionary([long], [long]) == EMPTY_DICTIONARY
    assert make_dictionary([long[1:]], []) != EMPTY_DICTIONARY


@pytest.mark.parametrize("vector", VECTORS["dictionary"], ids=lambda vector: vector["name"])
def test_vectors(vector: dict[str, str]) -> None:
    dictionary = derived(vector["schema_name"], vector["schema"].encode())
    assert dictionary.version.hex(" ") == vector["version"]
    stream = parse_text(vector["xml"].encode())
    payload = encode(stream, FORM, dictionary)
    assert payload.hex(" ") == vector["hex"]
    assert columns(decode(payload, FORM, dictionaries=only(dictionary))) == columns(stream)
    assert known(dictionary).version() == dictionary.version
    text = decode_to_xml(payload, known(dictionary))
    assert canonical(text.encode()) == canonical(vector["xml"].encode())
    for part in ("schema", "xml", "version", "hex"):
        assert vector[part] in DOCUMENTATION, part


@pytest.mark.parametrize("vector", VECTORS["valid"], ids=lambda vector: vector["name"])
def test_the_second_decoder_reads_the_binary_vectors(vector: dict[str, str]) -> None:
    text = decode_to_xml(bytes.fromhex(vector["hex"]))
    assert canonical(text.encode()) == canonical(vector["xml"].encode())


SOME = make_dictionary(
    ["a", "p", "item", "urn:one", "urn:two", "日本"], ["default", "en", "é", " ", "text &"]
)
# Names that the generated documents have, and expectations that are sometimes right.
MORE = make_dictionary(
    ["p", "urn:one"],
    ["default", "en"],
    Grammar(
        names=(
            ("", "a"),
            ("", "item"),
            ("urn:one", "a"),
            ("urn:one", "b"),
            (XML_NAMESPACE, "lang"),
        ),
        attributes=((), (4,), (0, 1), (), ()),
        first=(7, 1, 9, 0, 1),
        following=(0, 7, 0, 8, 0),
        root=8,
    ),
)


@examples(200)
@given(documents())
def test_generated_documents_survive_and_two_decoders_agree(document: bytes) -> None:
    stream = parse_text(document)
    for dictionary in (SOME, MORE, EMPTY_DICTIONARY):
        payload = encode(stream, FORM, dictionary)
        decoded = decode(payload, FORM, dictionaries=only(dictionary))
        assert columns(decoded) == columns(stream)
        assert encode(decoded, FORM, dictionary) == payload
        assert len(payload) <= encoded_bytes_max(stream)
        text = decode_to_xml(payload, known(dictionary))
        assert canonical(text.encode()) == canonical(document)
    text = decode_to_xml(encode(stream, WireFormat.BINARY))
    assert canonical(text.encode()) == canonical(document)


@pytest.mark.parametrize("path", real_files()[::5], ids=lambda path: path.name)
def test_real_files_survive(path: Path) -> None:
    try:
        stream = parse_text(path.read_bytes())
    except MessageRefused:
        pytest.skip("not a message")
    names = [part for name in stream.names[::2] for part in name]
    for dictionary in (EMPTY_DICTIONARY, make_dictionary(names, ["true", "Actual", "EUR"])):
        payload = encode(stream, FORM, dictionary)
        decoded = decode(payload, FORM, dictionaries=only(dictionary))
        assert columns(decoded) == columns(stream)
        text = decode_to_xml(payload, known(dictionary))
        assert canonical(text.encode()) == canonical(to_text(stream))


def test_real_messages_of_a_real_schema_survive() -> None:
    schema = SHARED_DATA / "yfilter" / "nitf-2-5.dtd"
    if not schema.exists():
        pytest.skip("no NITF messages here")
    dictionary = derived(schema.name, schema.read_bytes())
    assert len(dictionary.grammar.names) > 200
    size = text_size = 0
    for path in sorted(schema.parent.rglob("*.xml"))[::5]:
        text = path.read_bytes()
        stream = parse_text(text)
        payload = encode(stream, FORM, dictionary)
        assert columns(decode(payload, FORM, dictionaries=only(dictionary))) == columns(stream)
        assert canonical(decode_to_xml(payload, known(dictionary)).encode()) == canonical(text)
        size, text_size = size + len(payload), text_size + len(text)
    assert size < 0.4 * text_size


def test_it_is_smaller_than_binary_when_the_words_are_known() -> None:
    news = b'<news xmlns="urn:news" kind="feature"><head>h</head><body/></news>'
    stream = parse_text(news)
    saved = len(encode(stream, WireFormat.BINARY)) - len(
        encode(stream, FORM, derived("a.dtd", DTD))
    )
    assert saved > len("urn:newsnewsheadbodykindfeature")


def test_what_the_schema_lets_one_expect_is_a_bit() -> None:
    dtd = b"""<!ELEMENT news (head, body)><!ATTLIST news id CDATA #REQUIRED lang CDATA #IMPLIED>
    <!ELEMENT head (title, note?)><!ELEMENT title (#PCDATA)><!ELEMENT note EMPTY>
    <!ELEMENT body (#PCDATA)>"""
    dictionary = derived("a.dtd", dtd)
    names = ("body", "head", "news", "note", "title", "id", "lang")
    assert dictionary.grammar == Grammar(
        names=tuple(("", name) for name in names),
        attributes=((), (), (5,), (), (), (), ()),
        first=(1, 10, 7, 0, 1, 1, 1),
        following=(0, 6, 0, 0, 9, 0, 0),
        root=8,
    )
    as_expected = b'<news id="1"><head><title>t</title><note/></head><body>b</body></news>'
    payload = encode(parse_text(as_expected), FORM, dictionary)
    # an empty head; the sizes; a bit for each of 13 events; codes; values
    assert payload[6:].hex(" ") == "02 00 00 02 00 01 02 ff 1f 02 02 02 31 74 62"
    otherwise = b'<news id="1"><head><title>t</title></head><body>b</body></news>'
    payload = encode(parse_text(otherwise), FORM, dictionary)
    # the end of the head, and so 11 events and a token
    assert payload[6:].hex(" ") == "02 00 00 02 01 01 02 df 07 00 02 02 02 31 74 62"


NESTED = {
    "a.xsd": b"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:n="urn:n"
 targetNamespace="urn:n" elementFormDefault="qualified">
 <xs:element name="news" type="n:News"/>
 <xs:complexType name="Base"><xs:sequence><xs:element name="head" type="xs:string"/></xs:sequence>
 <xs:attribute name="id" use="required"/><xs:attribute name="lang"/></xs:complexType>
 <xs:complexType name="News"><xs:complexContent><xs:extension base="n:Base"><xs:sequence>
 <xs:element name="note" minOccurs="0"/><xs:group ref="n:rest"/></xs:sequence></xs:extension>
 </xs:complexContent></xs:complexType>
 <xs:group name="rest"><xs:sequence><xs:element name="body" type="xs:string"/></xs:sequence>
 </xs:group></xs:schema>""",
    "a.rng": b"""<grammar xmlns="http://relaxng.org/ns/structure/1.0" ns="urn:n"><start>
 <element name="news"><attribute name="id"/><optional><attribute name="lang"/></optional>
 <ref name="head"/><optional><element name="note"><text/></element></optional>
 <element name="body"><text/></element></element></start>
 <define name="head"><element name="head"><text/></element></define></grammar>""",
}


@pytest.mark.parametrize("name", NESTED)
def test_grammars_of_schemas(name: str) -> None:
    grammar = derived(name, NESTED[name]).grammar
    elements = [("urn:n", local) for local in ("body", "head", "news", "note")]
    assert grammar.names == (*elements, ("", "id"), ("", "lang"))
    assert grammar.attributes == ((), (), (4,), (), (), ())
    assert grammar.first == (1, 1, 7, 1, 1, 1)
    assert grammar.following == (0, 6, 0, 6, 0, 0)
    assert grammar.root == 8


def test_schemas_that_refer_to_themselves_over_and_over_are_read_in_bounds() -> None:
    defines = "".join(
        f'<define name="d{level}">' + f'<ref name="d{level + 1}"/>' * 8 + "</define>"
        for level in range(30)
    )
    relaxng = f"""<grammar xmlns="http://relaxng.org/ns/structure/1.0"><start><element name="a">
    <ref name="d0"/></element></start>{defines}<define name="d30"><text/></define></grammar>"""
    groups = "".join(
        f'<xs:group name="g{level}"><xs:sequence>' + f'<xs:group ref="g{level + 1}"/>' * 8
        + "</xs:sequence></xs:group>"
        for level in range(30)
    )  # fmt: skip
    xsd = f"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="a">
    <xs:complexType><xs:sequence><xs:group ref="g0"/></xs:sequence></xs:complexType></xs:element>
    {groups}</xs:schema>"""
    schemas: list[tuple[SchemaKind, str]] = [("relaxng", relaxng), ("xsd", xsd)]
    for kind, text in schemas:
        grammar = read_grammar(Schema("a", kind, text.encode()))
        assert grammar.names == (("", "a"),)


def test_another_version_is_an_unknown_dictionary() -> None:
    payload = encode(parse_text(b"<a/>"), FORM, SOME)
    error = refused(payload, EMPTY_DICTIONARY)
    assert (error.code, error.offset) == ("unknown-dictionary", 2)
    assert refused(payload[:5], SOME).code == "truncated"
    assert refused(encode(parse_text(b"<a/>"), WireFormat.BINARY), SOME).code == "bad-magic"


def test_numbers_that_stand_for_more_than_the_bound_are_counted_first() -> None:
    dictionary = make_dictionary([], ["v" * WORD_BYTES_MAX])
    text = b"<a>" + b'<a b="%s"/>' % (b"v" * WORD_BYTES_MAX) * 1000 + b"</a>"
    payload = encode(parse_text(text), FORM, dictionary)
    assert len(payload) < 5_100
    limits = MessageLimits(expansion_max=100 * WORD_BYTES_MAX)
    assert refused(payload, dictionary, limits).code == "entity-expansion"
    decode(payload, FORM, dictionaries=only(dictionary))


SAMPLE = (
    b'<!--c--><p:a xmlns:p="urn:one" xmlns="urn:d" p:x="default" y="&#233;">t<b>\xc3\xa9</b>u'
    b'<b>default</b><?pi data?><item xmlns="" z=""> </item></p:a><!--e-->'
)


def read_or_refused(data: bytes, dictionary: Dictionary = SOME) -> bool:
    try:
        stream = decode(data, FORM, dictionaries=only(dictionary))
    except DecodeError as error:
        assert 0 <= error.offset <= len(data)
        assert error.code and error.reason
        return False
    assert_invariants(stream)
    again = parse_text(to_text(stream))
    assert again.content_values == stream.content_values
    assert again.attribute_values == stream.attribute_values
    return True


def test_every_truncation_and_extension_is_refused() -> None:
    payload = encode(parse_text(SAMPLE), FORM, SOME)
    for size in range(len(payload)):
        assert refused(payload[:size], SOME).code in {"truncated", "bad-magic"}, size
    assert refused(payload + b"\0", SOME).code == "trailing-bytes"


def test_changed_bytes_never_make_an_invalid_stream() -> None:
    for dictionary in (SOME, MORE):
        payload = encode(parse_text(SAMPLE), FORM, dictionary)
        read = 0
        for place in range(len(payload)):
            for value in (0, 1, 2, 3, 4, 5, 6, 0x20, 0x2D, 0x7F, 0x80, 0xFF, payload[place] ^ 1):
                data = payload[:place] + bytes([value]) + payload[place + 1 :]
                read += read_or_refused(data, dictionary)
        assert read > len(payload) / 10  # or nothing beyond the first check was tried


@pytest.mark.parametrize("seed", range(4))
def test_hostile_bytes_never_make_an_invalid_stream(seed: int) -> None:
    payload = encode(parse_text(SAMPLE), FORM, SOME)
    chance = random.Random(seed)
    print(f"seed {seed}")
    for _ in range(1_000):
        data = bytearray(payload)
        for _ in range(chance.randint(1, 5)):
            place = chance.randrange(6, len(data))
            if chance.random() < 0.5:
                data[place] ^= 1 << chance.randrange(8)
            else:
                data[place:place] = chance.randbytes(chance.randint(1, 4))
        read_or_refused(bytes(data))


@examples(300)
@given(st.binary(max_size=60))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    read_or_refused(data)
    read_or_refused(b"\x4f\x82" + SOME.version + data)

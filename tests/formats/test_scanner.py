"""The scanner makes of a message what expat makes of it, or nothing.

``scan`` runs here in whichever build the process has; each test compares it with expat alone.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from formats import MessageLimits, MessageRefused, QualifiedName, is_compiled, parse_text
from formats.columns import NAMES_MAX, SCOPE_MAX, ColumnWriter, NameTable, scan
from formats.text import parse_with_expat
from tests.examples import examples
from tests.formats.support import documents, outcome, real_files

LIMITS = MessageLimits()
CONFORMANCE = os.environ.get("ONYX_XML_CONFORMANCE", "")


ORDINARY = [
    b"<a/>",
    "<日本 é='x'><?é x?><p:é xmlns:p='u'/><é:b xmlns:é='u'/></日本>".encode(),
    b"<a></a>",
    b'<?xml version="1.0"?>\n<a/>\n',
    b"<?xml  version = '1.0' encoding='utf-8' standalone='yes' ?><a/>",
    b"\xef\xbb\xbf<?xml version='1.0' encoding=\"UTF-8\"?>\r\n<a/>",
    b"<a  b = '1'\n c=\"2\" ><b />t</a >",
    b"<a b='\"x' c=\"'\t\r\n\n\r\">1\r\n2\r3\n</a>",
    b"<a b='&lt;&#10;&#x1F600;&quot;'>&amp;&#13;&gt;]] ]></a>",
    b"<a>1<![CDATA[]]>2<![CDATA[<]]]>&amp;<!---->3<![CDATA[]]></a>",
    b"<a><![CDATA[]]></a>",
    b"<!--1--><?p?><a><?p  d?? ?><?p \n?><!-- - ? --></a><?p -?><!--2-->",
    "<a b='é'>日本<!--é--><?p é?><![CDATA[😀]]>\x7f\x85</a>".encode(),
    b"<p:a xmlns:p='u' xmlns='v' p:b='1' b='2' xml:lang='en'><c xmlns=''><c xmlns='w'/></c></p:a>",
    b"<a p:b='1' xmlns:p='u'><b xmlns:p='v' p:c='&#10;'/><p:c/></a>",
    b"<a xmlns:p='u' xmlns:q='u' p:b='' ><p:b q:b=''/><q:b/></a>",
    b"<xml:a xmlns:p='&#9; u'/>",
    b"<a xmlns='u'><b xmlns='u'/><c xmlns='v'/><b/></a>",
]
EXPATS = [  # well-formed, but not for the scanner
    b"<!DOCTYPE a><a/>",
    b'<?xml version="1.0" encoding="ISO-8859-1"?><a>\xe9</a>',
    b'<?xml version="1.0" encoding="us-ascii"?><a/>',
    "<a/>".encode("utf-16"),
    b"<a xmlns:xml='http://www.w3.org/XML/1998/namespace'/>",
    b"<a>&#00000000000000065;</a>",
    b"<a>%s</a>"
    % (b"<b xmlns='u' xmlns:p='u'>" * (SCOPE_MAX // 2 + 1) + b"</b>" * (SCOPE_MAX // 2 + 1)),
]
MALFORMED = [
    "<×/>".encode(),
    "<a ×='x'/>".encode(),
    "<a xmlns:×='u'/>".encode(),
    "<a><?× x?></a>".encode(),
    "<a><\u0d5f/></a>".encode(),
    b"",
    b" ",
    b"x",
    b"<",
    b"<a",
    b"<a>",
    b"<a/",
    b"<a b",
    b"<a b=",
    b"<a b='",
    b"<a b='1'",
    b"<a/><b/>",
    b"<a></b>",
    b"<a></a>x",
    b"<a></ab>",
    b"</a>",
    b"<a/>&#32;",
    b"<![CDATA[x]]><a/>",
    b"<a/><![CDATA[x]]>",
    b"<a>]]></a>",
    b"<a>\x00</a>",
    b"<a>\x0b</a>",
    b"<a b='<'/>",
    b"<a b='1' b='2'/>",
    b"<a b='1'c='2'/>",
    b"<a b='1\x01'/>",
    b"<a b=1/>",
    b"<a>&lt</a>",
    b"<a>&x;</a>",
    b"<a>&#xFFFE;</a>",
    b"<a>&#xD800;</a>",
    b"<a>&#x110000;</a>",
    b"<a>&#;</a>",
    b"<a>&#X41;</a>",
    b"<a><!-- -- --></a>",
    b"<a><!-----></a>",
    b"<a><!--a--<![CDATA[x]]></a>",
    b"<a><!--",
    b"<a><![CDATA[",
    b"<a><![cdata[x]]></a>",
    b"<a><?",
    b"<a><?p",
    b"<a><?p?q?></a>",
    b"<a><?xml ?></a>",
    b"<a><?XML ?></a>",
    b"<a><?p:q?></a>",
    b" <?xml version='1.0'?><a/>",
    b"<?xml version='1.0'?><?xml version='1.0'?><a/>",
    b"<?xml version='1.0'encoding='utf-8'?><a/>",
    b"<?XML version='1.0'?><a/>",
    b"<?xml version='1.0' standalone='YES'?><a/>",
    b"<a>\xef\xbf\xbe</a>",
    b"<a>\xed\xa0\x80</a>",
    b"<a>\xff</a>",
    b"<a>\xc3</a>",
    b"<p:a/>",
    b"<a p:b=''/>",
    b"<a xmlns:p=''/>",
    b"<a xmlns:xmlns='u'/>",
    b"<a xmlns:xml='u'/>",
    b"<a xmlns:p='http://www.w3.org/XML/1998/namespace'/>",
    b"<a xmlns='http://www.w3.org/2000/xmlns/'/>",
    b"<a xmlns:p='u' xmlns:q='u' p:b='' q:b=''/>",
    b"<a xmlns:p='u' xmlns:p='v'/>",
    b"<a xmlns='u' xmlns='v'/>",
    b"<a:b:c xmlns:a='u'/>",
    b"<:a/>",
    b"<a:/>",
    b"<a xmlns:p='u'><p:1/></a>",
    b"<1/>",
    b"<-/>",
]


@pytest.mark.parametrize("data", ORDINARY)
def test_ordinary_messages_are_taken(data: bytes) -> None:
    assert outcome(data) == "taken"
    for end in range(len(data.rstrip()) - 1):
        outcome(data[:end])  # whatever ends too early


@pytest.mark.parametrize("data", EXPATS)
def test_what_is_not_ordinary_is_for_expat(data: bytes) -> None:
    assert outcome(data) == "given back"
    assert len(parse_text(data)) > 0


@pytest.mark.parametrize("data", MALFORMED)
def test_malformed_messages_are_given_back(data: bytes) -> None:
    assert scan(data, LIMITS) is None
    with pytest.raises(MessageRefused) as expected:
        parse_with_expat(data)
    with pytest.raises(MessageRefused) as actual:
        parse_text(data)
    assert str(actual.value) == str(expected.value)


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
def test_real_files(path: Path) -> None:
    data = path.read_bytes()
    ordinary = not any(mark in data for mark in (b"ISO-8859-1", b"<!DOCTYPE"))
    assert (outcome(data) == "taken") == ordinary


@examples(300)
@given(documents())
def test_generated_documents(data: bytes) -> None:
    outcome(data)
    start, _, rest = data.partition(b"<!DOCTYPE")
    if rest and not data.startswith((b"\xff", b"\xfe")):
        ordinary = (start + rest.partition(b"]>")[2]).replace(b"&e;", b"").replace(b"&nested;", b"")
        scanned = outcome(ordinary)
        assert scanned == "taken" or not ordinary.isascii()


@examples(500)
@given(st.binary(max_size=60) | st.text("<>/a&;!-[]?\"'= x:", max_size=40).map(str.encode))
def test_any_bytes(data: bytes) -> None:
    outcome(data)


SNIPPETS = (
    *(b"<", b">", b"&", b'"', b"'", b"]]>", b"--", b":", b"\r", b"\n", b"\t", b" ", b"/", b"="),
    *(b"<![CDATA[", b"<!--", b"-->", b"<?", b"?>", b"&#10;", b"&lt;", b"&#55296;", b"]", b"-"),
    *(b"\x00", b"\x7f", b"\x80", b"\xc3\xa9", b"\xef\xbf\xbf", b"\xf0\x9f\x98\x80", b"1", b"a"),
    *(
        b"xmlns='' ",
        b"xmlns:p='v' ",
        b"xml:",
        b"p:",
        b"p:d='' ",
        b"d='' ",
        b"<d/>",
        b"<a>",
        b"</a>",
    ),
)


def test_mutated_documents() -> None:
    seen: Counter[str] = Counter()
    small = MessageLimits(
        depth_max=2, elements_max=3, attributes_max=2, attributes_total_max=4, names_max=5
    )
    for seed in range(6_000):
        chance = random.Random(seed)
        data = bytearray(chance.choice(ORDINARY))
        for _ in range(chance.choice((1, 1, 1, 2))):
            place = chance.randrange(len(data))
            action = chance.randrange(4)
            if action == 0:
                del data[place : place + chance.randint(1, 4)]
            elif action == 1:
                data[place:place] = data[place : place + chance.randint(1, 8)]
            else:
                data[place:place] = chance.choice(SNIPPETS)
            data = data or bytearray(b"<")
        seen[outcome(bytes(data), chance.choice((LIMITS, small)))] += 1
    assert min(seen.values()) > 500, seen


@pytest.mark.parametrize("after", [b"", b"<!--%s-->" % (b"-x" * 20)], ids=["at the end", "within"])
def test_words_end_anywhere(after: bytes) -> None:
    """Values and names are read by eight bytes: what ends them may be any of these."""
    special = (
        '"',
        "'",
        "<",
        ">",
        "&",
        "&amp;",
        "]",
        "]]>",
        "\r\n",
        "\t",
        "\n",
        "\x1f",
        "\x7f",
        "é",
    )
    for length in range(19):
        for mark in special:
            text = ("abcdefghi=/. ?!-0123"[:length] + mark + "z").encode()
            outcome(b"<a>%s</a>%s" % (text, after))
            outcome(b"<a b='%s' c=\"%s\"/>%s" % (text, text, after))
    for length in range(1, 40):
        name = b"n" * length
        assert outcome(b"<%s %s='1'></%s>%s" % (name, name, name, after)) == "taken"
        assert outcome(b"<a %s='1' %s='2'/>%s" % (name, name, after)) == "given back"
        for place in range(length):
            other = name[:place] + b"m" + name[place + 1 :]
            assert outcome(b"<%s %s='1' %s=''/>%s" % (other, name, other, after)) == "taken"
            assert outcome(b"<%s></%s>%s" % (name, other, after)) == "given back"


LIMITED = b"<a xmlns:p='uuuuuu'><b c='1' p:c='2' d='3'>x<e/><e><f1234567/></e></b></a>"


@pytest.mark.parametrize(
    ("limit", "enough"),
    [
        ("bytes_max", len(LIMITED)),
        ("depth_max", 4),
        ("elements_max", 5),
        ("attributes_max", 3),
        ("attributes_total_max", 4),
        ("names_max", 7),
        ("name_bytes_max", 8),
        ("namespace_bytes_max", 6),
        ("expansion_max", len(LIMITED)),
    ],
)
def test_limits(limit: str, enough: int) -> None:
    assert outcome(LIMITED, replace(LIMITS, **{limit: enough})) == "taken"
    assert outcome(LIMITED, replace(LIMITS, **{limit: enough - 1})) == "given back"


def test_columns_grow_and_are_given_back_after_a_large_message() -> None:
    large = b"<a>%s</a>" % (b"<b c='1'>t<!--c--></b>" * 40_000)
    for data in (large, ORDINARY[13], large, ORDINARY[13]):
        assert outcome(data) == "taken"


def test_names_are_the_same_objects_in_every_message() -> None:
    data = b"<p:a xmlns:p='u'><b/></p:a>"
    first, second = scan(data, LIMITS), scan(data, LIMITS)
    assert first is not None and second is not None
    assert first.names == [QualifiedName("p", "u", "a"), QualifiedName("", "", "b")]
    assert first.names is not second.names
    assert all(one is other for one, other in zip(first.names, second.names, strict=True))


def test_more_names_than_the_table_holds() -> None:
    several = [b"<n%d_%d/>" % (i, i) for i in range(NAMES_MAX + 10)]
    everything = b"<a>%s</a>" % b"".join(several)
    half = b"<a>%s</a>" % b"".join(several[: NAMES_MAX // 2 - 2])
    other = half.replace(b"n", b"m")
    limits = MessageLimits(names_max=2 * NAMES_MAX)
    for data, expected in (
        (half, "taken"),
        (other, "taken"),
        (everything, "given back"),
        (half, "taken"),
        (everything, "given back"),
        (ORDINARY[13], "taken"),
    ):
        assert outcome(data, limits) == expected


def test_a_look_up_of_names_that_collide_is_bounded() -> None:
    # With the salt of this process; 60 names for 8 slots next to each other.
    table = NameTable()
    colliding: list[tuple[int, bytes]] = []
    for number in range(10_000_000):
        name = b"n%d" % number
        slot = table.slot_of(name)
        if 500 <= slot < 508:
            colliding.append((slot, name))
            if len(colliding) == 60:
                break
    names = [name for _, name in sorted(colliding, reverse=True)]
    assert outcome(b"<a><%s/></a>" % b"/><".join(names[:20])) == "taken"
    assert outcome(b"<a><%s/></a>" % b"/><".join(names)) == "given back"
    assert outcome(b"<a><%s/></a>" % b"/><".join(names[:20])) == "taken"


def test_more_namespaces_than_the_table_holds() -> None:
    for start in range(0, 20_000, 50):
        declared = b" ".join(b"xmlns:p%d='u%d'" % (i, i) for i in range(start, start + 50))
        assert outcome(b"<a %s p%d:b='1'/>" % (declared, start)) == "taken"


@pytest.mark.skipif(not CONFORMANCE, reason="ONYX_XML_CONFORMANCE names no directory")
def test_the_conformance_suite_of_the_w3c() -> None:
    seen: Counter[str] = Counter()
    for path in sorted(Path(CONFORMANCE).rglob("*")):
        if path.suffix in {".xml", ".ent", ".dtd"} and path.is_file():
            data = path.read_bytes()
            seen[outcome(data)] += 1
            # The files are mostly about DTDs: what stands behind one is compared, too.
            without = data.partition(b"]>")[2]
            seen[outcome(without) + " without DTD"] += 1
    assert seen["taken"] > 100 and seen["taken without DTD"] > 100, seen


def test_the_build_is_what_it_says() -> None:
    compiled = type(NameTable.begin).__name__ != "function"
    assert compiled == is_compiled()
    assert (type(ColumnWriter.__init__).__name__ != "function") == is_compiled()

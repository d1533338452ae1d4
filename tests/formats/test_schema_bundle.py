"""Schemas of several documents: what they refer to is in the bundle, or is said."""

from __future__ import annotations

import io
import zipfile
from random import Random

import pytest

from formats import (
    Schema,
    SchemaRefused,
    Validator,
    derive_dictionary,
    read_schema,
)
from formats.allowed_content import read_allowed_content
from formats.content_model import read_content_model
from formats.dictionary import read_terms
from formats.schema import stands_alone, what_is_unread
from formats.schema_files import BYTES_MAX, FILES_MAX, NESTING_MAX, SchemaFiles, pack
from formats.schema_questions import CheckMessages, MessagesChecked, ReadSchema, SchemaFound
from formats.schema_worker import SchemaWorker
from yfilter.language.schema_check import SchemaCheck

XS = 'xmlns:xs="http://www.w3.org/2001/XMLSchema"'
XSD = {
    "main.xsd": f"""<xs:schema {XS} xmlns="urn:m" xmlns:t="urn:t" targetNamespace="urn:m"
  elementFormDefault="qualified">
 <xs:include schemaLocation="parts/stop.xsd"/>
 <xs:import namespace="urn:t" schemaLocation="types.xsd"/>
 <xs:import namespace="http://www.w3.org/XML/1998/namespace"
   schemaLocation="http://www.w3.org/2001/xml.xsd"/>
 <xs:element name="visit"><xs:complexType><xs:sequence>
  <xs:element ref="stop"/><xs:element name="delay" type="t:delay" minOccurs="0"/>
 </xs:sequence><xs:attribute ref="xml:lang"/></xs:complexType></xs:element>
</xs:schema>""",
    # A chameleon: of no namespace, which includes back, and up.
    "parts/stop.xsd": f"""<xs:schema {XS} elementFormDefault="qualified">
 <xs:include schemaLocation="../name.xsd"/><xs:include schemaLocation="stop.xsd"/>
 <xs:element name="stop" type="stop"/>
 <xs:complexType name="stop"><xs:sequence><xs:element name="name" type="name"/></xs:sequence>
 </xs:complexType></xs:schema>""",
    "name.xsd": f"""<xs:schema {XS}><xs:simpleType name="name">
 <xs:restriction base="xs:string"><xs:maxLength value="5"/></xs:restriction></xs:simpleType>
</xs:schema>""",
    "types.xsd": f"""<xs:schema {XS} xmlns:m="urn:m" targetNamespace="urn:t">
 <xs:import namespace="urn:m" schemaLocation="main.xsd"/>
 <xs:simpleType name="delay"><xs:restriction base="xs:int"/></xs:simpleType></xs:schema>""",
}
RNG = 'xmlns="http://relaxng.org/ns/structure/1.0"'
RELAXNG = {
    "main.rng": f"""<grammar {RNG} ns="urn:m">
 <include href="parts/stop.rng"><define name="name"><element name="name">
  <data type="int" datatypeLibrary="http://www.w3.org/2001/XMLSchema-datatypes"/></element></define>
 </include>
 <start><element name="visit"><ref name="stop"/><optional><externalRef href="delay.rng"/></optional>
 </element></start></grammar>""",
    "parts/stop.rng": f"""<grammar {RNG} ns="urn:m"><define name="stop"><element name="stop">
 <ref name="name"/></element></define>
 <define name="name"><element name="name"><text/></element></define></grammar>""",
    # A grammar of its own, where "name" is something else.
    "delay.rng": f"""<grammar {RNG} xmlns:d="urn:m"><start><ref name="name"/></start>
 <define name="name"><element name="d:delay"><text/></element></define></grammar>""",
}
DTD = {
    "main.dtd": """<!ENTITY % stop PUBLIC "-//S//Stop" "parts/stop.mod">%stop;
<!ELEMENT visit (stop, delay?)><!ATTLIST visit xmlns CDATA #FIXED "urn:m">
<!ENTITY % delay SYSTEM "delay.mod">%delay;""",
    "parts/stop.mod": '<!ENTITY % name SYSTEM "name.ent"><!ELEMENT stop (name)>%name;',
    "parts/name.ent": "<!ELEMENT name (#PCDATA)>",
    "delay.mod": "<!ELEMENT delay (#PCDATA)>",
}
LANGUAGES = [XSD, RELAXNG, DTD]
CATALOG = """<catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog">
<group xml:base="here/"><uri name="http://a.example/a.xsd" uri="a.xsd"/>
<rewriteURI uriStartString="http://b.example/" rewritePrefix="b/"/>
<systemSuffix systemIdSuffix="/c.xsd" uri="c.xsd"/></group><nextCatalog catalog="next.xml"/>
<uri name="urn:out" uri="../out.xsd"/></catalog>"""


def bundle(documents: dict[str, str], catalog: str | None = None) -> Schema:
    """The first document is the main one."""
    files = {path: text.encode() for path, text in documents.items()}
    main = next(iter(files))
    found = SchemaFiles(main, files.get, catalog)
    for path in files:
        found._get(path)
    return read_schema(main, pack(found))


@pytest.mark.parametrize("documents", LANGUAGES)
def test_several_documents_are_one_schema(documents: dict[str, str]) -> None:
    schema = bundle(documents)
    assert what_is_unread(schema) == ()
    good = b'<visit xmlns="urn:m"><stop><name>12</name></stop><delay>3</delay></visit>'
    validator = Validator(schema)
    assert validator.check(good) is None
    found = validator.check(good.replace(b"<delay>3</delay>", b"<late>3</late>"))
    assert found is not None and "late" in found.reason
    if documents is not DTD:  # what is defined anew, or restricted in a document of no namespace
        assert validator.check(good.replace(b"12", b"twelve")) is not None
    children = read_content_model(schema).children
    assert children["visit"] == {"stop": 1.0, "delay": 1.0}
    assert children["stop"] == {"name": 1.0}
    assert derive_dictionary(schema) is not None
    assert {"visit", "stop", "name", "delay", "urn:m"} <= read_terms(schema).names
    namespace = 'declare default element namespace "urn:m";'
    check = SchemaCheck(read_allowed_content(schema))
    assert check.warning(f"{namespace} /visit/stop/name") is None
    warning = check.warning(f"{namespace} /visit/stop/nome")
    assert warning is not None and "name" in str(warning)


@pytest.mark.parametrize("documents", LANGUAGES)
def test_what_is_not_in_the_bundle_is_said(documents: dict[str, str]) -> None:
    for missing in list(documents)[1:]:
        schema = bundle({path: text for path, text in documents.items() if path != missing})
        unread = what_is_unread(schema)
        referring = {"parts/stop.xsd": "../name.xsd", "parts/stop.mod": "name.ent"}
        asked = next((a for a in referring.values() if missing.endswith(a.lstrip("./"))), missing)
        assert len(unread) == 1, (missing, unread)
        where, _, said = unread[0].partition(": ")
        path, _, line = where.partition(", line ")
        assert asked in documents[path].splitlines()[int(line) - 1], unread
        assert said.endswith(f"{asked}, which is not there")
        assert not stands_alone(schema)
        read_content_model(schema)


def test_the_process_that_reads_schemas_takes_bundles() -> None:
    schema = bundle(XSD)
    worker = SchemaWorker()
    try:
        assert worker.ask(ReadSchema(schema.name, schema.data)) == SchemaFound("xsd", ())
        found = worker.ask(CheckMessages(schema, (b'<visit xmlns="urn:m"/>',)))
        assert isinstance(found, MessagesChecked) and found.findings != (None,)
    finally:
        worker.close()


@pytest.mark.parametrize("kind", ["redefine", "override"])
def test_types_are_changed_where_they_are_included(kind: str) -> None:
    own = {
        "redefine": """<xs:complexType name="t"><xs:complexContent><xs:extension base="t">
  <xs:sequence><xs:element name="c"/></xs:sequence></xs:extension></xs:complexContent>
  </xs:complexType><xs:group name="g"><xs:sequence><xs:group ref="g"/><xs:element name="d"/>
  </xs:sequence></xs:group>""",
        "override": """<xs:complexType name="t"><xs:sequence><xs:element name="c"/></xs:sequence>
  </xs:complexType><xs:element name="nowhere"/>""",
    }[kind]
    schema = bundle(
        {
            "main.xsd": f"""<xs:schema {XS}><xs:{kind} schemaLocation="a.xsd">{own}</xs:{kind}>
  <xs:include schemaLocation="a.xsd"/></xs:schema>""",
            "a.xsd": f'<xs:schema {XS}><xs:include schemaLocation="b.xsd"/></xs:schema>',
            "b.xsd": f"""<xs:schema {XS}><xs:element name="a" type="t"/>
  <xs:complexType name="t"><xs:sequence><xs:element name="b"/></xs:sequence></xs:complexType>
  <xs:group name="g"><xs:sequence><xs:element name="e"/></xs:sequence></xs:group>
  <xs:element name="f"><xs:complexType><xs:group ref="g"/></xs:complexType></xs:element>
  </xs:schema>""",
        }
    )
    assert what_is_unread(schema) == ()
    model, validator = read_content_model(schema), Validator(schema)
    expected = {"b": 1.0, "c": 1.0} if kind == "redefine" else {"c": 1.0}
    assert model.children["a"] == expected
    assert validator.check(f"<a>{''.join(f'<{n}/>' for n in expected)}</a>".encode()) is None
    assert validator.check(b"<a><b/></a>") is not None
    if kind == "redefine":
        assert model.children["f"] == {"e": 1.0, "d": 1.0}
        assert validator.check(b"<f><e/><d/></f>") is None
    assert "nowhere" not in model.roots


def test_catalogs() -> None:
    def schema(namespace: str, name: str) -> str:
        return (
            f'<xs:schema {XS} targetNamespace="{namespace}"><xs:element name="{name}"/></xs:schema>'
        )

    places = {
        "a": ("http://a.example/a.xsd", "here/a.xsd"),
        "b": ("http://b.example/x/b.xsd", "here/b/x/b.xsd"),
        "c": ("https://c.example/c.xsd", "here/c.xsd"),
        "d": ("", "d.xsd"),
        "e": ("http://e.example/", "e.xsd"),
    }
    imports = [
        f'<xs:import namespace="urn:{name}"' + f' schemaLocation="{url}"' * bool(url) + "/>"
        for name, (url, _) in places.items()
    ]
    following = """<catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog">
  <uri name="urn:d" uri="d.xsd"/><uri name="urn:e" uri="e.xsd"/></catalog>"""
    documents = {
        "main.xsd": f"<xs:schema {XS}>{''.join(imports)}<xs:element name='m'/></xs:schema>",
        "cat.xml": CATALOG,
        "next.xml": following,
        **{path: schema(f"urn:{name}", name) for name, (_, path) in places.items()},
    }
    read = bundle(documents, "cat.xml")
    assert what_is_unread(read) == ()
    assert read_content_model(read).roots == {"m", *places}
    assert len(what_is_unread(bundle(documents))) == len(places)  # without it


def test_nothing_comes_from_outside_of_a_bundle() -> None:
    for place in ("/etc/passwd", "file:///etc/passwd", "../main.xsd", "http://127.0.0.1:9/a.xsd"):
        include = f'<xs:schema {XS}><xs:include schemaLocation="{place}"/></xs:schema>'
        schema = bundle({"main.xsd": include, "a.xsd": "<x/>"})
        assert what_is_unread(schema) == (
            f"main.xsd, line 1: includes {place}, which is not there",
        )


def test_what_is_wrong_is_told_with_its_document() -> None:
    broken = {**XSD, "name.xsd": "<xs:schema"}
    with pytest.raises(SchemaRefused, match=r"name\.xsd: ") as caught:
        bundle(broken)
    assert caught.value.code == "malformed"
    unknown = {**XSD, "name.xsd": XSD["name.xsd"].replace("xs:string", "xs:strong")}
    with pytest.raises(SchemaRefused, match=r"name\.xsd: .*strong") as caught:
        bundle(unknown)
    assert (caught.value.code, caught.value.line) == ("invalid-schema", 1)
    for documents in (
        {"a.rng": f'<grammar {RNG}><include href="a.rng"/></grammar>', "b": "<b/>"},
        {"a.dtd": '<!ENTITY % a SYSTEM "a.dtd">%a;<!ELEMENT a ANY>', "b": "<b/>"},
    ):
        with pytest.raises(SchemaRefused):
            bundle(documents)


def zipped(entries: list[tuple[str, bytes]]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as made:
        for path, data in entries:
            made.writestr(path, data)
    return written.getvalue()


def test_bundles_are_bounded() -> None:
    empty = f"<xs:schema {XS}/>".encode()
    many = zipped([(f"{number}.xsd", empty) for number in range(FILES_MAX + 1)])
    large = [(f"{number}.xsd", bytes(4_000_000)) for number in range(BYTES_MAX // 4_000_000 + 1)]
    # Each includes the next one twice: 2**20 times as much.
    doubling = [
        (
            f"{number}.rng",
            f"<grammar {RNG}>" + f'<include href="{number + 1}.rng"/>' * 2 + "</grammar>",
        )
        for number in range(20)
    ] + [("20.rng", f"<grammar {RNG}><start><element name='a'><text/></element></start></grammar>")]
    deep = [
        (f"{number}.dtd", f'<!ENTITY % e{number} SYSTEM "{number + 1}.dtd">%e{number};')
        for number in range(NESTING_MAX + 1)
    ] + [(f"{NESTING_MAX + 1}.dtd", "<!ELEMENT a ANY>")]
    for name, data in (
        ("0.xsd", many),
        ("0.xsd", zipped(large)),
        ("0.rng", zipped([(path, text.encode()) for path, text in doubling])),
        ("0.dtd", zipped([(path, text.encode()) for path, text in deep])),
    ):
        assert len(data) < 4_000_000
        with pytest.raises(SchemaRefused) as caught:
            read_schema(name, data)
        assert caught.value.code == "too-large", name
    with pytest.raises(SchemaRefused, match="empty"):
        read_schema("a.zip", zipped([("folder/", b"")]))


@pytest.mark.parametrize("documents", LANGUAGES)
def test_damaged_bundles_are_refused_or_read(documents: dict[str, str]) -> None:
    whole = bundle(documents).data
    random = Random(7)
    refused = 0
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(random.randint(1, 4)):
            damaged[random.randrange(4, len(damaged))] = random.randrange(256)
        try:
            read_schema("", bytes(damaged))
        except SchemaRefused:
            refused += 1
    assert refused


def test_a_bundle_is_the_same_bytes_each_time() -> None:
    assert bundle(XSD).data == bundle(dict([*XSD.items()][:1] + [*XSD.items()][:0:-1])).data

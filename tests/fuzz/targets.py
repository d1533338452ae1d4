"""The targets: what reads bytes of somebody who may mean harm, and what it may say of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyoxigraph

from formats import (
    DecodeError,
    GraphSyntax,
    MessageLimits,
    MessageRefused,
    WireFormat,
    compress,
    decode,
    only,
    read_graph,
    write_graph,
)
from formats.errors import SchemaRefused
from formats.graph.closure import TaxonomyClosure
from formats.graph.graph_limits import DEFAULT_GRAPH_LIMITS
from formats.graph.plain_striping import plain_stripes
from formats.graph.rdf_schema import read_schema as read_rdf_schema
from formats.graph.taxonomy import Taxonomy, read_taxonomy
from formats.graph.writer import FORMATS as GRAPH_FORMATS
from formats.schema import read_schema
from formats.text import parse_text, to_text
from onyx.identity.oidc_issuer import OidcIssuer, read_keys
from onyx.metadata.requests import AddRules, MovePrefix, Register, Whole, asked, read_question
from overlay.errors import TopologyError
from overlay.link.door import CLIENT_ROLES
from overlay.link.errors import ERROR_CODES, ProtocolError
from overlay.link.events import ConnectionOpened, TimePassed
from overlay.link.frame import ROLES
from overlay.link.frame_codec import LENGTH_BYTES
from overlay.link.frame_codec import decode as decode_frame
from overlay.link.frame_codec import encode as encode_frame
from overlay.link.frames import ErrorFrame
from overlay.link.principal import MAY_SAY, PROCESS_ROLES, Principal
from overlay.oidc import OidcOptions
from overlay.topology import parse_topology
from registration.metadata.backbone import BackboneMessage, PrefixRow, read_backbone
from registration.metadata.change_messages import Change, RuleSaid, To, read_change
from registration.metadata.documents import MetadataRefused, read_document
from registration.metadata.rule_sparql import read_rule
from registration.metadata.rules import normal_text
from tests.formats.graph.support import SCANNED, canonical_stream, scanned
from tests.formats.support import PLAIN_FORMS, assert_invariants, outcome
from tests.fuzz.chance import ByteChance
from tests.fuzz.cost import Meter, a_message, a_profile, evaluate
from tests.fuzz.decoders import DICTIONARY, DOCUMENTS, damage
from tests.issuer import AUDIENCE, KEYS, URL, encoded, public
from tests.onyx.broker.test_odd_frames import Odd
from tests.overlay.link.pair import Hand, hello, make_links
from tests.overlay.link.samples import SAMPLES
from tests.registration.metadata.random_metadata import (
    RandomDocuments,
    RandomRules,
    n_triples,
    schema_bytes,
)
from tests.yfilter.graph.random_queries import RandomQuery
from yfilter import MatchLimits
from yfilter.errors import ProfileRefused
from yfilter.graph.graph_query import parse_graph_query
from yfilter.graph.query_text import unparse
from yfilter.language.profile_limits import EvaluationLimits
from yfilter.language.query_parser import parse_profile

ROOT = Path(__file__).resolve().parents[2]
LIMITS = MessageLimits(bytes_max=64 * 1024, expansion_max=256 * 1024)
SCHEMA_BYTES_MAX = 600  # what libxml2 makes of more may take for ever; the product lets a worker
RANDOM_BYTES = 400
FORMATS = tuple(WireFormat)


@dataclass(frozen=True, slots=True)
class Target:
    """``run`` takes any bytes, and raises where the reader said what it may not.

    ``seeds`` are good inputs; none: the bytes are choices (ByteChance).
    """

    name: str
    run: Callable[[bytes], None]
    seeds: Sequence[bytes] = ()

    def an_input(self, random: Random) -> bytes:
        """A good one that is damaged, or any bytes."""
        if not self.seeds:
            return random.randbytes(random.randrange(RANDOM_BYTES))
        return damage(random, random.choice(self.seeds))


def _frame(data: bytes) -> None:
    try:
        frame, key, sequence = decode_frame(data)
    except ProtocolError as error:
        assert error.code in ERROR_CODES and error.reason, error
        return
    assert decode_frame(encode_frame(frame, key, sequence)[LENGTH_BYTES:]).frame == frame


def _peer(data: bytes) -> None:
    """A connection of any role, with and without a certificate, on which anything is said."""
    chance = ByteChance(data)
    hand = Hand(make_links())
    role = chance.choice(sorted(ROLES))
    roles = chance.choice([frozenset[str](), CLIENT_ROLES, PROCESS_ROLES])
    known = chance.choice([None, *(Principal(name, "B2") for name in sorted(MAY_SAY))])
    hand.event(ConnectionOpened(1, "", known, roles))
    sent = hand.receive(hello(role, "B2")) if chance.random() < 0.9 else []
    for _ in range(8):
        frame = chance.choice(SAMPLES)
        place = ("k", chance.randrange(1, 4)) if frame.sequenced else ()
        said = bytearray(encode_frame(frame, *place))
        for _ in range(chance.randrange(3)):
            said[chance.randrange(LENGTH_BYTES, len(said))] = chance.getrandbits(8)
        cut = chance.randrange(len(said) + 1)
        sent += hand.bytes(bytes(said[:cut])) + hand.bytes(bytes(said[cut:]))
    hand.event(TimePassed())
    hand.lose()
    for frame in sent:
        assert not isinstance(frame, ErrorFrame) or frame.code in ERROR_CODES
    hand.meet(peer="B9", connection=2)
    assert hand.links.connected("broker/B9")


def _broker(data: bytes) -> None:
    """Frames as every role, well typed and odd, to the core of a broker."""
    setting = Odd(ByteChance(data))
    for _ in range(10):
        with suppress(ProtocolError):  # not even the sender's side lets it pass
            setting.send_odd()
    assert setting.core.statistics().dead.kept == 0


def _text(data: bytes) -> None:
    """What the scanner takes is what expat makes of it, in either build."""
    outcome(data, LIMITS)
    try:
        parse_text(data, LIMITS)
    except MessageRefused as refusal:
        assert refusal.code and refusal.reason


def _graph(data: bytes) -> None:
    """The first byte says in which syntax; the scanner and pyoxigraph agree on what they take."""
    if data:
        syntax = SYNTAXES[data[0] % len(SYNTAXES)]
        if syntax in SCANNED:
            scanned(data[1:], syntax)
        plain = _plain_graph(data[1:], syntax)
        try:
            stream = read_graph(data[1:], syntax)
        except MessageRefused as refusal:
            assert refusal.code and refusal.reason
        else:
            assert_invariants(stream)
            assert plain is None or plain == canonical_stream(stream)


def _plain_graph(data: bytes, syntax: GraphSyntax) -> str | None:
    """The graph as plain Python reads it; it may refuse more."""
    if syntax not in SCANNED:
        return None
    try:
        stream = plain_stripes(data, GRAPH_FORMATS[syntax], DEFAULT_GRAPH_LIMITS, None, None)
    except MessageRefused as refusal:
        assert refusal.code and refusal.reason
        return None
    assert_invariants(stream)
    return canonical_stream(stream)


def _taxonomy(data: bytes) -> None:
    """The first byte says whether it is what an operator puts, or what brokers tell each other."""
    if data[:1] == b"\0":
        with suppress(MessageRefused):
            taxonomy = read_taxonomy(data[1:], GraphSyntax.TURTLE)
            assert Taxonomy.from_bytes(taxonomy.to_bytes()).to_bytes() == taxonomy.to_bytes()
    elif data:
        with suppress(ValueError):
            closure = TaxonomyClosure(Taxonomy.from_bytes(data[1:]))
            assert len(closure.classes(b"urn:A", [b"urn:B"])) <= data.count(b" ") + 2


def _binary(data: bytes) -> None:
    """The first byte says in which format; plain Python reads the same."""
    if data:
        wire_format = FORMATS[data[0] % len(FORMATS)]
        plain = _plain_binary(data[1:], wire_format)
        try:
            stream = decode(data[1:], wire_format, LIMITS, only(DICTIONARY))
        except (DecodeError, MessageRefused) as refusal:
            assert refusal.code and refusal.reason
        else:
            assert plain in (None, to_text(stream))


def _plain_binary(data: bytes, wire_format: WireFormat) -> bytes | None:
    """The text of a message as plain Python reads it; it may refuse more."""
    try:
        if wire_format is WireFormat.BINARY:
            stream = PLAIN_FORMS.decode_binary(data, LIMITS)
        elif wire_format is WireFormat.DICTIONARY:
            stream = PLAIN_FORMS.decode_dictionary(data, LIMITS, only(DICTIONARY))
        else:
            return None
    except DecodeError as refusal:
        assert refusal.code and refusal.reason
        return None
    assert_invariants(stream)
    return to_text(stream)


def _profile(data: bytes) -> None:
    try:
        parse_profile(data.decode("utf-8", "replace"))
    except ProfileRefused as refusal:
        assert refusal.code and refusal.line >= 1


def _graph_query(data: bytes) -> None:
    """What is read says the same when it is written."""
    try:
        query = parse_graph_query(data.decode("utf-8", "replace"))
    except ProfileRefused as refusal:
        assert refusal.code and refusal.line >= 1
    else:
        assert parse_graph_query(unparse(query)) == query


def _rule(data: bytes) -> None:
    """A rule of metadata, in its language or in SPARQL; what is read is the same in its normal form
    and as SPARQL."""
    try:
        rule = read_rule(data.decode("utf-8", "replace"), METADATA, {})
    except ProfileRefused as refusal:
        assert refusal.code and refusal.line >= 1
        return
    for each in rule.alternatives:
        normal = normal_text(each, METADATA)
        assert normal_text(read_rule(normal, METADATA, {}).alternatives[0], METADATA) == normal
    constants = [each.constant for some in rule.alternatives for each in some.conditions]
    with suppress(ValueError):  # it has stricter ideas of what an IRI is
        for each in constants:
            pyoxigraph.NamedNode(each.text.strip("<>") if each.kind == "iri" else "urn:x")
        pyoxigraph.Store().query(rule.sparql)


def _metadata_message(data: bytes) -> None:
    """What a provider says to a repository, or to another provider."""
    with suppress(MessageRefused):
        change = read_change(data)
        assert read_change(change.to_bytes()) == change
    with suppress(MessageRefused):
        message = read_backbone(data)
        assert read_backbone(message.to_bytes()) == message


def _question(data: bytes) -> None:
    """To a provider of metadata."""
    try:
        question = read_question(data)
    except MetadataRefused as refusal:
        assert refusal.fault.code == "bad-question"
    else:
        assert read_question(asked(question)) == question


def _document(data: bytes) -> None:
    """The first byte says in which syntax; the schema has the names of RULES."""
    if data:
        try:
            found = read_document(
                "http://e/d", data[1:], SYNTAXES[data[0] % len(SYNTAXES)], METADATA
            )
        except MessageRefused as refusal:
            assert refusal.code and refusal.reason
        else:
            assert len(set(found)) == len(found)


def _topology(data: bytes) -> None:
    try:
        parse_topology(data.decode("utf-8", "replace"), "fuzz.toml")
    except TopologyError as refusal:
        assert str(refusal).startswith("fuzz.toml: ")


def _schema(data: bytes) -> None:
    try:
        read_schema("", data[:SCHEMA_BYTES_MAX])
    except SchemaRefused as refusal:
        assert refusal.code and refusal.reason


def _token(data: bytes) -> None:
    """Header and claims, signed as they are by a key of the issuer."""
    header, _, claims = data.partition(b"\0")
    said = f"{encoded(header)}.{encoded(claims)}"
    signature = encoded(KEYS["edwards"][0].sign(said.encode()))
    try:
        found = ISSUER.principal(f"{said}.{signature}")
        assert (found.role, found.token) == ("user", "") and found.until > 0
    except ProtocolError as refusal:
        assert refusal.code in ERROR_CODES and refusal.fatal


def _keys(data: bytes) -> None:
    try:
        assert all(key.algorithms for key in read_keys(data).values())
    except (ValueError, RecursionError) as refusal:
        assert str(refusal)


def _cost(data: bytes) -> None:
    """A profile and a message; nothing else is looked at than what they cost."""
    chance, meter = ByteChance(data), Meter()
    profile, message = a_profile(chance), a_message(chance)
    limits = MatchLimits(evaluation=EvaluationLimits(clock=meter.seconds))
    try:
        evaluate(profile, message, limits, meter)
    except BaseException:
        print(f"{profile}\non {message[:200]!r}", file=sys.stderr)
        raise


def _encoded() -> list[bytes]:
    from formats import encode  # noqa: PLC0415 - a name that is used for frames here

    found = []
    for number, wire_format in enumerate(FORMATS):
        for document in DOCUMENTS:
            form = encode(parse_text(document), wire_format.form, DICTIONARY)
            if wire_format.compression:
                form = compress(form, wire_format.compression)
            found.append(bytes([number]) + form)
    return found


def _frames() -> list[bytes]:
    return [
        encode_frame(frame, *(("k", 1) if frame.sequenced else ()))[LENGTH_BYTES:]
        for frame in SAMPLES
    ]


def _graphs() -> list[bytes]:
    found = []
    for number, syntax in enumerate(SYNTAXES):
        stream = read_graph(GRAPH, GraphSyntax.TURTLE)
        found += [bytes([number]) + data for data in (write_graph(stream, syntax), GRAPH)]
    return [*found, bytes([SYNTAXES.index(GraphSyntax.RDF_XML)]) + RDF_XML]


def _taxonomies() -> list[bytes]:
    taxonomy = read_taxonomy(TAXONOMY, GraphSyntax.TURTLE)
    return [b"\0" + TAXONOMY, b"\1" + taxonomy.to_bytes()]


def _files(folder: str, names: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((ROOT / folder).glob(names))]


def _profiles() -> list[bytes]:
    random = Random(0)
    return _files("demo/profiles", "*.xq") + [a_profile(random).encode() for _ in range(40)]


def _graph_queries() -> list[bytes]:
    return [RDQL, *(RandomQuery(Random(number)).text().encode() for number in range(60))]


def _rules() -> list[bytes]:
    random = RandomRules(Random(0), ["http://e/a"])
    texts = [random.rule().text for _ in range(60)]
    return [each.encode() for text in texts for each in (text, _as_sparql(text))]


def _as_sparql(text: str) -> str:
    return read_rule(text, METADATA, {}).sparql


def _metadata_messages() -> list[bytes]:
    change = Change(
        provider="m", number=7, revision=3, time=1.5, to={"L1": To(5, True), "L&2": To(0, False)},
        schema=("text/turtle", "<a> <b> <c> ."), rules=(RuleSaid("r1", "n", "search A a"),),
        matched=("http://e/a",), dropped=("http://e/b",), about=("http://e/a", "http://e/c"),
        triples='<http://e/a> <http://e/p> "<&>" .\n',
    )  # fmt: skip
    backbone = BackboneMessage(
        provider="m", number=2, after=1, documents={"http://e/d": ("text/turtle", b"x"), "": None},
        prefixes={"http://e/": PrefixRow("n", 2, "m", False)}, members=("n",),
    )  # fmt: skip
    return [change.to_bytes(), backbone.to_bytes()]


def _questions() -> list[bytes]:
    return [
        asked(each)
        for each in (
            Register(documents={"http://e/d": b"x"}, media_type="text/turtle", dry_run=True),
            AddRules(repository="L1", rules=[("search A a register a", "n")]),
            Whole(repository="L1", after=(3, 1)),
            MovePrefix(prefix="http://e/", to="n", is_lost=True),
        )
    ]


def _documents() -> list[bytes]:
    random = Random(0)
    found = []
    for _ in range(20):
        triples = n_triples(RandomDocuments(random).document(1))
        stream = read_graph(triples, GraphSyntax.N_TRIPLES)
        found += [bytes([at]) + write_graph(stream, syntax) for at, syntax in enumerate(SYNTAXES)]
    return found


def _tokens() -> list[bytes]:
    claims = {"iss": URL, "aud": AUDIENCE, "sub": "ann", "exp": 4e9, "nbf": 0, "iat": 1}
    header = {"alg": "EdDSA", "kid": "edwards", "typ": "JWT"}
    more = {"crit": ["b64"], "b64": False}, {"kid": ""}, {"alg": "none"}, {"alg": "RS256"}
    heads = [header, *(header | each for each in more)]
    odd = {"exp": float("inf")}, {"aud": [AUDIENCE]}, {"sub": "a/b"}, {"sub": None}, {"nbf": 5e9}
    bodies = [claims, *(claims | each for each in odd)]
    return [
        json.dumps(head).encode() + b"\0" + json.dumps(body).encode()
        for head in heads
        for body in bodies
    ]


def _issuer() -> OidcIssuer:
    issuer = OidcIssuer(OidcOptions(URL, AUDIENCE, "of none"))
    issuer.keys = read_keys(KEY_SET)
    return issuer


GRAPH = b"""@prefix : <http://e.example/> . @prefix p: <http://p.example/a#> .
# a comment
:a a p:C ; :p 1 , -2.50 , 1e3 , true , "x\\u00e9" , '''y'z'''@en-GB ;; :q [ :p "5"^^p:t ] .
_:b :p ( 1 ( ) <http://h.example:80/x?y=z#%41> ) . [ :p :c\\/d ] :q _:b.c .
"""
RDF_XML = b"""<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"
xml:base="http://b/c#d"><e:T r:ID="a" e:p="1" xml:lang="en"><e:q r:ID="s" r:resource="../x?y"/>
<e:r r:parseType="Collection"><r:Seq r:nodeID="n"><r:li>a<!-- c -->b</r:li></r:Seq><e:T/></e:r>
<e:s r:parseType="Resource"><e:p r:datatype="#t">5</e:p></e:s><e:o><e:T about="z:"/></e:o>
<e:t r:parseType="Literal">x<b xmlns="urn:b" e:y="&lt;" a="&#9;"><?p i?></b></e:t></e:T></r:RDF>"""
TAXONOMY = b"""@prefix s: <http://www.w3.org/2000/01/rdf-schema#> . @prefix : <urn:> .
:A s:subClassOf :B , :C . :B s:subClassOf :C . :p s:subPropertyOf :q . :a a :A , :B .
"""
SYNTAXES = tuple(GraphSyntax)
METADATA = read_rdf_schema(schema_bytes(), GraphSyntax.TURTLE)
KEY_SET = json.dumps({"keys": [public(name) for name in KEYS]}).encode()
ISSUER = _issuer()
RDQL = b"""SELECT ?x, ?y WHERE (?x, e:p, ?y), ((?x <e:q> 'a'@en) SUCHTHAT ?y > 2003 && ?y =~ /a/i)
AND ?x <= e:C || !(?x isa e:D) USING e FOR <http://example.org/>"""
DTD = b"<!ELEMENT a (b|c)*><!ELEMENT b (#PCDATA)><!ATTLIST a x CDATA #IMPLIED y ID #REQUIRED>"
PARAMETERS = b'<!ENTITY % e "b,c"><!ELEMENT a (%e;)><!ELEMENT b EMPTY><!ELEMENT c ANY>'
XSD = b"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="a">
<xs:complexType><xs:sequence><xs:element name="b" type="xs:int" maxOccurs="3"/></xs:sequence>
<xs:attribute name="x"/></xs:complexType></xs:element></xs:schema>"""
RELAX_NG = b"""<element name="a" xmlns="http://relaxng.org/ns/structure/1.0"><zeroOrMore>
<element name="b"><text/></element></zeroOrMore></element>"""

TARGETS = {
    target.name: target
    for target in (
        Target(
            "frame",
            _frame,
            _frames(),
        ),
        Target("peer", _peer),
        Target("broker", _broker),
        Target("text", _text, DOCUMENTS),
        Target("graph", _graph, _graphs()),
        Target("taxonomy", _taxonomy, _taxonomies()),
        Target("binary", _binary, _encoded()),
        Target("profile", _profile, _profiles()),
        Target("graph query", _graph_query, _graph_queries()),
        Target("metadata rule", _rule, _rules()),
        Target("metadata message", _metadata_message, _metadata_messages()),
        Target("metadata question", _question, _questions()),
        Target("metadata document", _document, _documents()),
        Target(
            "topology",
            _topology,
            _files("topologies", "*.toml"),
        ),
        Target("schema", _schema, (DTD, PARAMETERS, XSD, RELAX_NG)),
        Target("token", _token, _tokens()),
        Target("keys", _keys, (KEY_SET,)),
        Target("cost", _cost),
    )
}

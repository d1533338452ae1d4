"""XML text: parsed into an ElementStream, and written back.

An ordinary message is read by the ``scanner``, where that is compiled, also in another encoding or
behind a DOCTYPE that declares no attributes; everything else by expat, namespace-aware.  What is
said here holds for either, and every refusal is expat's or made here.  Of a long document expat
reads all before Python hears of more than some of it, so that a fault near its end costs little.

A message is data from a stranger, so nothing outside the bytes given is ever read: external DTD
subsets are not loaded, a reference that would need one is refused (its content would be lost
silently), parameter entities are refused altogether, internal entities are expanded within a bound
that is checked before the expansion (``entity_budget``), as are attributes that a DOCTYPE gives by
default.  Every other bound of MessageLimits is checked while parsing; a refusal names line and
column.

What is kept is what canonical XML keeps: elements, attributes (defaults of the internal subset
included), namespace declarations, text with CDATA sections resolved, comments and processing
instructions.  The DOCTYPE and the XML declaration are dropped.
"""

from __future__ import annotations

import pyexpat
import re
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from encodings import normalize_encoding
from encodings.aliases import aliases
from typing import TYPE_CHECKING, NoReturn, cast

from formats.characters import shown
from formats.element_stream import ElementStream
from formats.element_stream_builder import ElementStreamBuilder
from formats.errors import MessageRefused
from formats.kernel import AVAILABLE
from formats.limits import DEFAULT_LIMITS, INTEGER_MAX, MessageLimits
from formats.markup import subtree_writer
from formats.names import QualifiedName

# -------------------------------------------------------------------------------------------------
# The encodings that messages declare, by the names that libxml2 knows them by.
#
# Expat reads UTF-8, UTF-16, US-ASCII and ISO-8859-1 itself; it takes single bytes by a table of
# Python's, and text of several bytes a character only once that has been decoded by Python.
# Encodings that are no ASCII where ASCII is, and so hide markup (UTF-7, EBCDIC), are not read.
#
# ::
#
#     <?xml version="1.0" encoding="UTF8"?>           -> utf-8
#     <?xml version="1.0" encoding="iso8859-1"?>      -> iso-8859-1
#     <?xml version="1.0" encoding="Shift_JIS"?>      -> shift_jis


UTF_8 = "utf-8"

_DECLARATION = re.compile(
    rb"""<\?xml[ \t\r\n]+version[ \t\r\n]*=[ \t\r\n]*["'][0-9.]+["']"""
    rb"""[ \t\r\n]+encoding[ \t\r\n]*=[ \t\r\n]*["']([A-Za-z][A-Za-z0-9._:-]{0,39})["']"""
)
_UTF_16 = re.compile("utf-16(be|le)?", re.IGNORECASE)
_EXPATS = {"utf_8": UTF_8, "ascii": "us-ascii", "latin_1": "iso-8859-1"}
# Python's modules, of what is ASCII where ASCII is; what else is a table is refused by expat.
_SINGLE = re.compile(
    r"iso8859_\d\d?|cp(?!65001)\d{3,4}|koi8_[rtu]|mac_[a-z0-9]+|tis_620"
    r"|kz1048|ptcp154|hp_roman8"
)
_SEVERAL = frozenset(
    (
        *("shift_jis", "shift_jisx0213", "cp932", "euc_jp", "iso2022_jp", "iso2022_jp_2"),
        *("gb18030", "gbk", "gb2312", "hz", "big5", "big5hkscs", "cp950"),
        *("euc_kr", "cp949", "iso2022_kr", "johab"),
    )
)
_MORE = {
    "big_5": "big5",
    "latin_9": "iso8859_15",
    "windows_31j": "cp932",
    "windows_874": "cp874",
    "x_euc_jp": "euc_jp",
    "x_sjis": "shift_jis",
}


_IN_UTF_16 = (b"\xff\xfe", b"\xfe\xff", b"<\x00", b"\x00<")


def declared_codec(data: bytes) -> str | None:
    """Python's name for what a document in ASCII, or in what contains it, says it is written in.

    None where it says nothing, or names something that is not read.
    """
    if data.startswith(BOM_UTF8):
        return UTF_8
    found = _DECLARATION.match(data)
    if found is None:
        return None
    return _codec_named(found[1].decode())


def _codec_named(charset: str) -> str | None:
    name = normalize_encoding(charset).lower()
    codec = _MORE.get(name) or aliases.get(name, name)
    if codec in _EXPATS:
        return _EXPATS[codec]
    return codec if codec in _SEVERAL or _SINGLE.fullmatch(codec) else None


def takes_several_bytes(codec: str) -> bool:
    """Whether it has characters of several bytes, and is not UTF-8."""
    return codec in _SEVERAL


def in_utf_8(data: bytes, charset: str) -> bytes:
    """A document that came with a ``charset``, which wins over the declaration but not over a byte
    order mark (RFC 7303, 3): in UTF-8, and it declares nothing else.

    MessageRefused: ``unknown-charset``, ``malformed``.
    """
    if data.startswith((BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE)):
        return data
    codec = _codec_named(charset)
    if codec is None and _UTF_16.fullmatch(charset):
        is_little = charset[-2:].lower() == "le" or (len(charset) < 8 and data[1:2] == b"\0")
        codec = "utf-16-le" if is_little else "utf-16-be"
    if codec is None:
        raise MessageRefused("unknown-charset", f"charset {charset[:40]!r} is not read")
    text = _decode(data, codec).encode()
    declared = _DECLARATION.match(text)
    if declared is None or _codec_named(declared[1].decode()) == UTF_8:
        return text
    spaces = b" " * max(len(declared[1]) - len(UTF_8), 0)  # so that columns stay
    end = declared.end()
    return text[: declared.start(1)] + UTF_8.encode() + text[end - 1 : end] + spaces + text[end:]


def _decode(data: bytes, codec: str) -> str:
    """MessageRefused where bytes are no characters."""
    try:
        return data.decode(codec)
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(codec, "replace")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        reason = f"byte {error.start} is not {codec}: {error.reason}"
        raise MessageRefused("malformed", reason, line, column) from None


# -------------------------------------------------------------------------------------------------
# EntityBudget: what the entity references of a message expand to, known before any is expanded.
#
# A DOCTYPE can declare entities that double at every step ("billion laughs"), and a non-validating
# parser may silently drop a reference that it cannot resolve when there is an external DTD.  Both
# are settled here, while the DOCTYPE is read and before the first element:
#
# * all references of the message are counted in one pass over its text;
# * the size of an entity is computed when it is declared, and  sum(size * references)  is held
#   against a bound, and so are the tags that come of entities;
# * every reference must lead to declared entities only.
#
# ::
#
#     <!DOCTYPE a [<!ENTITY x "12"><!ENTITY y "&x;&x;.">]><a b="&y;">&y;</a>
#                           size 2          size 5        2 references: 10 bytes


# The first alternatives are the places where "&name;" is not a reference; what an <!ENTITY>
# holds is looked at when it is declared.  Each also matches unfinished, to the end of the text:
# the search stays linear whatever the text is.
_REFERENCES = re.compile(
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)"
    r"""|<!(?:ENTITY|NOTATION)\s(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^>"'])*+"""
    r"""|&([^#&;<>\s"'][^&;<>\s"']*+);""",
    re.DOTALL,
)
_LINE_END = re.compile("\r\n?|\n")
_TAGS = re.compile(r"<([^\s<>/!?]++)")
_PREDEFINED = frozenset({"amp", "lt", "gt", "apos", "quot"})


class EntityBudget:
    """One message's entities; ``text`` runs from the end of the DOCTYPE's head to the end.

    ``line`` and ``column`` (from 1) are where that text starts.  Refusals are MessageRefused with
    the codes ``entity-expansion``, ``too-deep``, ``recursive-entity`` and ``undefined-entity``.
    """

    def __init__(self, text: str, line: int, column: int, limits: MessageLimits) -> None:
        self._text = text
        self._start = line, column
        self._limits = limits
        self._first: dict[str, int] = {}  # name -> index of its first reference
        self._counts: Counter[str] = Counter()
        for match in _REFERENCES.finditer(text):
            name = match[1]
            if name is not None and name not in _PREDEFINED:
                self._counts[name] += 1
                self._first.setdefault(name, match.start())
        self._values: dict[str, Counter[str]] = {}  # name -> what its own text refers to
        self._plain: dict[str, str] = {}  # those that are texts
        self._own_sizes: dict[str, tuple[int, int]] = {}  # bytes, and "<" among them
        self._waiting_for: dict[str, set[str]] = {}  # declared, not all parts declared yet
        self._needed_by: dict[str, list[str]] = {}
        self._sizes: dict[str, tuple[int, int]] = {}  # the same fully expanded
        self._levels: dict[str, int] = {}
        self.total = 0  # bytes that all references of entities known so far expand to
        self.marks = 0  # "<" among them
        self._defaults: Counter[str] = Counter()  # attributes that elements have by default

    def declare(self, name: str, value: str, line: int, column: int) -> None:
        """An internal entity with its replacement text (character references resolved).

        ``line`` and ``column`` are for a refusal.
        """
        if name in self._values:
            return  # the first declaration counts
        parts = Counter(
            match[1]
            for match in _REFERENCES.finditer(value)
            if match[1] not in {None, *_PREDEFINED}
        )
        self._values[name] = parts
        self._own_sizes[name] = len(value.encode()), value.count("<")
        if not _ODD_IN_ENTITIES.search(value):
            self._plain[name] = value
        self._waiting_for[name] = {part for part in parts if part not in self._sizes}
        for part in self._waiting_for[name]:
            self._needed_by.setdefault(part, []).append(name)
        self._settle(name, line, column)

    def declare_external(self, name: str, line: int, column: int) -> None:
        """An external or unparsed entity; the parser refuses a reference to it by itself."""
        if name not in self._values:
            self._values[name] = Counter()
            self._own_sizes[name] = 0, 0
            self._waiting_for[name] = set()
            self._settle(name, line, column)

    def declare_default(self, element: str, line: int, column: int) -> None:
        """An attribute that elements of this name have by default."""
        self._defaults[element] += 1
        most = self._limits.attributes_max
        if self._defaults[element] > most:
            reason = f"{shown(element)} has more than {most} attributes by default"
            raise MessageRefused("too-many-attributes", reason, line, column)

    def with_texts(self, text: str) -> str:
        """The text with entities in place of references, where these are nothing but text."""
        if not self._counts:
            return text
        return _REFERENCES.sub(lambda found: self._plain.get(found[1], found[0]), text)

    def check_defaults(self, line: int, column: int) -> None:
        """Refuse more attributes by default than a message may have, by its start tags, wherever
        these stand; MessageRefused ``too-many-attributes``."""
        if not self._defaults:
            return
        tags = Counter(_TAGS.findall(self._text))
        total = sum(tags[element] * count for element, count in self._defaults.items())
        total += self.marks * max(self._defaults.values())
        most = self._limits.default_attributes_max
        if total > most:
            raise MessageRefused(
                "too-many-attributes",
                f"the DOCTYPE gives the elements of the message {total} attributes by default; at "
                f"most {most} are allowed",
                line,
                column,
            )

    def close(self) -> None:
        """The DOCTYPE has ended: every reference must have been settled."""
        for name, index in self._first.items():
            if name not in self._sizes:
                self._refuse_unsettled(name, index)

    def _settle(self, name: str, line: int, column: int) -> None:
        """Compute the sizes of an entity and of all that only waited for it."""
        ready = [name]
        while ready:
            current = ready.pop()
            if current in self._sizes or self._waiting_for[current]:
                continue
            parts = self._values[current]
            size, marks = self._own_sizes[current]
            for part, count in parts.items():
                size += self._sizes[part][0] * count
                marks += self._sizes[part][1] * count
            self._sizes[current] = size, marks
            self._levels[current] = 1 + max((self._levels[part] for part in parts), default=0)
            self._charge(current, line, column)
            for dependent in self._needed_by.pop(current, ()):
                self._waiting_for[dependent].discard(current)
                ready.append(dependent)

    def _charge(self, name: str, line: int, column: int) -> None:
        count, limits = self._counts[name], self._limits
        size, marks = self._sizes[name]
        self.total += size * count
        self.marks += marks * count
        told = f"entity &{name}; is referenced {count} times in the message and expands to"
        for has, total, most, what in (
            (size, self.total, limits.expansion_max, "bytes"),
            (marks, self.marks, limits.entity_marks_max, "marks of tags (<)"),
        ):
            if max(has, total) > most:
                reason = f"{told} {has} {what}; at most {most} of all entities are allowed"
                raise MessageRefused("entity-expansion", reason, line, column)
        if self._levels[name] > limits.depth_max:
            raise MessageRefused(
                "too-deep",
                f"entity &{name}; nests entities {self._levels[name]} deep; "
                f"at most {limits.depth_max} are allowed",
                line,
                column,
            )

    def _refuse_unsettled(self, name: str, index: int) -> NoReturn:
        line, column = self._position(index)
        seen = set()
        current = name
        while current in self._values:
            if current in seen:
                raise MessageRefused(
                    "recursive-entity", f"entity &{current}; contains itself", line, column
                )
            seen.add(current)
            current = min(self._waiting_for[current])
        raise MessageRefused(
            "undefined-entity", f"entity &{current}; is not declared", line, column
        )

    def _position(self, index: int) -> tuple[int, int]:
        line, column = self._start
        before = _LINE_END.split(self._text[:index])
        if len(before) > 1:
            line, column = line + len(before) - 1, 1
        return line, column + len(before[-1])


# -------------------------------------------------------------------------------------------------


if TYPE_CHECKING or AVAILABLE:
    from formats.columns import scan

# Between namespace, local name and prefix in expat's names; no XML text can contain it.
_SEPARATOR = "\x01"

# What a document may declare that is no ASCII to begin with, and so has not been looked up.

_EXPAT_CODES = {
    pyexpat.errors.codes[text]: code
    for text, code in (
        (pyexpat.errors.XML_ERROR_UNDEFINED_ENTITY, "undefined-entity"),
        (pyexpat.errors.XML_ERROR_RECURSIVE_ENTITY_REF, "recursive-entity"),
        (pyexpat.errors.XML_ERROR_ATTRIBUTE_EXTERNAL_ENTITY_REF, "external-entity"),
        (pyexpat.errors.XML_ERROR_BINARY_ENTITY_REF, "external-entity"),
        (pyexpat.errors.XML_ERROR_UNKNOWN_ENCODING, "unknown-encoding"),
        (pyexpat.errors.XML_ERROR_UNBOUND_PREFIX, "undeclared-prefix"),
    )
}
_ODD = " in a message whose DOCTYPE declares attributes, or that is otherwise not ordinary"
_PIECE = 1024  # bytes of a document that expat is given at once until its DOCTYPE is over
_LOOK_AHEAD = 1_024  # elements of which Python hears before expat goes through the whole document
# Before a DOCTYPE.
_MISCELLANEOUS = re.compile(r"(?:[ \t\r\n]|<\?.*?\?>|<!--.*?-->)*+", re.DOTALL)
_ODD_IN_ENTITIES = re.compile("[<&>\t\r\n\"']")  # of which more may become than the text it is
_AMPLIFICATION_LIMIT_BREACH = 43  # expat 2.4; not among pyexpat's names in Python 3.11


def parse_text(data: bytes, limits: MessageLimits = DEFAULT_LIMITS) -> ElementStream:
    """The element stream of an XML document, or MessageRefused.

    Codes: ``malformed`` (not well-formed, namespaces included), ``undeclared-prefix``,
    ``undefined-entity``, ``recursive-entity``, ``external-entity``, ``parameter-entity``,
    ``unknown-encoding``, and those of MessageLimits.
    """
    if len(data) > limits.bytes_max:
        raise MessageRefused(
            "too-large", f"the message has {len(data)} bytes; at most {limits.bytes_max} allowed"
        )
    if not AVAILABLE:
        return parse_with_expat(data, limits)
    stream = scan(data, limits)
    if stream is not None:
        return stream
    parser = _TextParser(data, limits)
    ordinary = parser.ordinary()
    stream = None if ordinary is None else scan(ordinary, limits)
    return parser.parse(limits.odd_elements_max) if stream is None else stream


def parse_ordinary(data: bytes, limits: MessageLimits = DEFAULT_LIMITS) -> ElementStream | None:
    """As parse_text, of a document that costs little for its size; None: of another."""
    return scan(data, limits) if AVAILABLE and len(data) <= limits.bytes_max else None


def parse_with_expat(data: bytes, limits: MessageLimits = DEFAULT_LIMITS) -> ElementStream:
    """As parse_text, whatever the message looks like."""
    return _TextParser(data, limits).parse()


def to_text(stream: ElementStream) -> bytes:
    """The message as XML in UTF-8 without XML declaration; equal to the original in canonical XML.

    Comments and processing instructions outside the root element stand on lines of their own.
    """
    return subtree_writer(stream).document()


class _TextParser:
    """One parse: expat's callbacks in the order in which they come."""

    def __init__(self, data: bytes, limits: MessageLimits) -> None:
        self._limits = limits
        self._encoding = declared_codec(data)
        self._data = self._decoded(data)
        self._builder = ElementStreamBuilder()
        self._names: dict[str, QualifiedName] = {}  # expat's form -> name
        self._declarations: list[tuple[str, str]] = []  # of the next start tag
        self._attributes_total = 0
        self._declaration_bytes = 0
        self._elements_max = limits.elements_max
        self._fed = 0  # bytes that expat has
        self._doctype_start = self._doctype_end = 0
        self._in_doctype = self._is_past_prolog = False
        self._has_types = False  # of attributes
        self._budget: EntityBudget | None = None

        parser = self._parser = pyexpat.ParserCreate(self._encoding, _SEPARATOR)
        parser.namespace_prefixes = True
        parser.ordered_attributes = True
        parser.buffer_text = True
        parser.buffer_size = 64 * 1024
        # Without this expat would skip an undefined parameter entity without a word.
        parser.SetParamEntityParsing(pyexpat.XML_PARAM_ENTITY_PARSING_ALWAYS)
        parser.XmlDeclHandler = self._xml_declaration
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._entity_declaration
        parser.AttlistDeclHandler = self._attribute_list_declaration
        parser.EndDoctypeDeclHandler = self._end_doctype
        parser.ExternalEntityRefHandler = self._external_entity
        parser.SkippedEntityHandler = self._skipped_entity
        parser.StartNamespaceDeclHandler = self._namespace_declaration
        parser.StartElementHandler = self._start_element
        parser.EndElementHandler = self._end_element
        # PERF: text is most of the callbacks, so it goes to the builder directly; it cannot be
        # more than the bytes given and the entity budget allow.
        parser.CharacterDataHandler = self._builder.text
        self._hear_comments(True)

    def parse(self, elements_max: int = INTEGER_MAX) -> ElementStream:
        """``elements_max``: beside the limits' own."""
        self._elements_max = min(elements_max, self._limits.elements_max)
        self._read_prolog()
        self._feed(len(self._data) - self._fed, True)
        stream = self._builder.finish()
        self._check_expansion(stream.written_size())
        return stream

    def ordinary(self) -> bytes | None:
        """The same document in UTF-8, without its DOCTYPE, and with their texts in place of
        references to entities; None where it has attribute types, is damaged, or is that already.
        """
        self._read_prolog()
        is_utf_16 = self._data.startswith(_IN_UTF_16)
        if self._has_types or not (self._budget or self._encoding or is_utf_16):
            return None
        codec = _codec(self._data, self._encoding)
        try:
            head = self._data[: self._doctype_end].decode(codec).removeprefix("\ufeff")
            rest = self._data[self._doctype_end :].decode(codec).removeprefix("\ufeff")
        except UnicodeDecodeError:
            return None
        if self._budget is not None:
            head = head[: cast("re.Match[str]", _MISCELLANEOUS.match(head)).end()]
            rest = self._budget.with_texts(rest)
        document = (head + rest).encode()
        declared = _DECLARATION.match(document)
        if declared is None:
            return document
        if is_utf_16 and not _UTF_16.fullmatch(declared[1].decode()):
            return None  # which is refused
        return document[: declared.start(1)] + UTF_8.encode() + document[declared.end(1) :]

    def _read_prolog(self) -> None:
        """In small pieces, as expat goes on to the end of a piece when its DOCTYPE is refused; in
        larger ones where a piece ends no token."""
        if not (b"<!DOCTYPE" in self._data or self._data.startswith(_IN_UTF_16)):
            return
        size, place = _PIECE, -1
        while not self._is_past_prolog and self._fed < len(self._data):
            self._feed(size, False)
            if self._in_doctype:
                self._check_doctype_size()
            size = _PIECE if self._parser.CurrentByteIndex > place else 2 * size
            place = self._parser.CurrentByteIndex

    def _feed(self, size: int, is_last: bool) -> None:
        piece = self._data[self._fed : self._fed + size]
        self._fed += len(piece)
        try:
            self._parser.Parse(piece, is_last)
        except pyexpat.ExpatError as error:
            self._refuse_as_expat(error)
        except (ValueError, LookupError) as error:  # from the table of a declared encoding
            self._refuse(
                "unknown-encoding", f"encoding {shown(str(self._encoding))} is not read: {error}"
            )

    def _look_ahead(self) -> None:
        """Refuse what is not well-formed before Python hears of all elements."""
        parser = pyexpat.ParserCreate(self._encoding, _SEPARATOR)
        parser.SetParamEntityParsing(pyexpat.XML_PARAM_ENTITY_PARSING_ALWAYS)
        parser.ExternalEntityRefHandler = self._external_entity
        try:
            parser.Parse(self._data, True)
        except pyexpat.ExpatError as error:
            self._refuse_as_expat(error)

    def _decoded(self, data: bytes) -> bytes:
        """The document in UTF-8, if expat cannot read what it is written in."""
        codec = self._encoding
        if codec is None or not takes_several_bytes(codec):
            return data
        self._encoding = UTF_8
        decoded = _decode(data, codec).encode()
        if len(decoded) > self._limits.bytes_max:
            raise MessageRefused(
                "too-large",
                f"the message has {len(decoded)} bytes in UTF-8; at most {self._limits.bytes_max} "
                "allowed",
            )
        return decoded

    def _xml_declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and self._encoding is None and not _UTF_16.fullmatch(encoding):
            if self._data.startswith(_IN_UTF_16):
                self._refuse(
                    "unknown-encoding",
                    f"the declaration says {shown(encoding)} of a message that is in UTF-16; "
                    "expected UTF-16 or no encoding",
                )
            self._refuse(
                "unknown-encoding",
                f"encoding {shown(encoding)} is not read; expected UTF-8, UTF-16, US-ASCII, an "
                "ISO-8859 or a Windows code page, Shift_JIS, EUC-JP, ISO-2022-JP, GB18030, Big5 or "
                "EUC-KR",
            )

    def _doctype(
        self, _name: str, _system_id: str | None, _public_id: str | None, _subset: int
    ) -> None:
        self._hear_comments(False)  # those of the DTD are not part of the document
        start = self._doctype_start = self._parser.CurrentByteIndex
        self._in_doctype = True
        text = self._data[start:].decode(_codec(self._data, self._encoding), "replace")
        self._budget = EntityBudget(text, *self._position(), self._limits)

    def _entity_declaration(
        self,
        name: str,
        is_parameter: bool,
        value: str | None,
        _base: str | None,
        _system_id: str | None,
        _public_id: str | None,
        _notation: str | None,
    ) -> None:
        self._check_doctype_size()
        if is_parameter:
            self._refuse("parameter-entity", f"parameter entity %{name}; is not read in a message")
        assert self._budget is not None
        if value is None:
            self._budget.declare_external(name, *self._position())
        else:
            self._budget.declare(name, value, *self._position())

    def _attribute_list_declaration(
        self, element: str, _name: str, kind: str, default: str | None, _required: int
    ) -> None:
        self._check_doctype_size()
        self._has_types |= kind != "CDATA" or default is not None
        if default is not None:
            assert self._budget is not None
            self._budget.declare_default(element, *self._position())

    def _end_doctype(self) -> None:
        self._check_doctype_size()
        assert self._budget is not None
        self._budget.close()
        self._budget.check_defaults(*self._position())
        self._in_doctype, self._is_past_prolog = False, True
        self._doctype_end = self._parser.CurrentByteIndex + len(
            ">".encode(_codec(self._data, self._encoding))
        )
        self._hear_comments(True)

    def _external_entity(
        self, context: str | None, _base: str | None, system_id: str | None, _public: str | None
    ) -> int:
        if context is not None:
            self._refuse("external-entity", f"external entity {system_id!r} is never loaded")
        return 1  # the external DTD subset: go on without it

    def _skipped_entity(self, name: str, is_parameter: bool) -> None:
        reference = f"%{name};" if is_parameter else f"&{name};"
        self._refuse("undefined-entity", f"entity {reference} is not declared")

    def _namespace_declaration(self, prefix: str | None, namespace: str | None) -> None:
        if prefix == "xml":
            return  # always in force
        size = len(namespace.encode()) if namespace else 0
        if size > self._limits.namespace_bytes_max:
            self._refuse(
                "namespace-too-long",
                f"the namespace of prefix {prefix or ''!r} has {size} bytes; "
                f"at most {self._limits.namespace_bytes_max} are allowed",
            )
        self._declaration_bytes += size
        self._declarations.append((prefix or "", namespace or ""))
        if len(self._declarations) > self._limits.attributes_max:
            self._refuse(
                "too-many-attributes",
                f"an element has more than {self._limits.attributes_max} namespace declarations",
            )

    def _start_element(self, raw_name: str, raw_attributes: list[str]) -> None:
        builder, limits, names = self._builder, self._limits, self._names
        self._is_past_prolog = True
        if builder.element_count == _LOOK_AHEAD:
            self._look_ahead()
        count = len(raw_attributes) // 2 + len(self._declarations)
        self._attributes_total += count
        if builder.depth >= limits.depth_max:
            self._refuse(
                "too-deep", f"elements are nested more than {limits.depth_max} levels deep"
            )
        if builder.element_count >= self._elements_max:
            beside = "" if self._elements_max == limits.elements_max else _ODD
            self._refuse(
                "too-many-elements", f"there are more than {self._elements_max} elements{beside}"
            )
        if count > limits.attributes_max:
            self._refuse(
                "too-many-attributes",
                f"an element has {count} attributes and namespace declarations; "
                f"at most {limits.attributes_max} are allowed",
            )
        if self._attributes_total > limits.attributes_total_max:
            self._refuse(
                "too-many-attributes",
                f"there are more than {limits.attributes_total_max} attributes and namespace "
                "declarations in the message",
            )
        attributes = [
            (names.get(raw) or self._new_name(raw), value)
            for raw, value in zip(raw_attributes[::2], raw_attributes[1::2], strict=True)
        ]
        builder.start_element(
            names.get(raw_name) or self._new_name(raw_name), attributes, self._declarations
        )
        if self._declarations:
            self._declarations = []
        self._check_expansion(builder.value_bytes + self._declaration_bytes)

    def _end_element(self, _name: str) -> None:
        self._builder.end_element()

    def _new_name(self, raw: str) -> QualifiedName:
        if len(self._names) >= self._limits.names_max:
            self._refuse(
                "too-many-names", f"there are more than {self._limits.names_max} distinct names"
            )
        parts = raw.split(_SEPARATOR)
        if len(parts) == 1:
            name = QualifiedName("", "", raw)
        else:
            name = QualifiedName(parts[2] if len(parts) == 3 else "", parts[0], parts[1])
        if max(len(name.prefix.encode()), len(name.local.encode())) > self._limits.name_bytes_max:
            self._refuse(
                "name-too-long",
                f"a name has more than {self._limits.name_bytes_max} bytes",
            )
        self._names[raw] = name
        return name

    def _hear_comments(self, heard: bool) -> None:
        self._parser.CommentHandler = self._builder.comment if heard else None
        self._parser.ProcessingInstructionHandler = (
            self._builder.processing_instruction if heard else None
        )

    def _check_doctype_size(self) -> None:
        size = self._parser.CurrentByteIndex - self._doctype_start
        if size > self._limits.doctype_bytes_max:
            self._refuse(
                "doctype-too-large",
                f"the DOCTYPE has more than {self._limits.doctype_bytes_max} bytes",
            )

    def _check_expansion(self, size: int) -> None:
        if size > self._limits.expansion_max:
            self._refuse(
                "entity-expansion",
                f"values, names and namespaces have more than {self._limits.expansion_max} bytes",
            )

    def _position(self) -> tuple[int, int]:
        return self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1

    def _refuse(self, code: str, reason: str) -> NoReturn:
        raise MessageRefused(code, reason, *self._position())

    def _refuse_as_expat(self, error: pyexpat.ExpatError) -> NoReturn:
        if error.code == _AMPLIFICATION_LIMIT_BREACH:
            code, reason = "entity-expansion", "entities expand to far more than what was sent"
        else:
            code = _EXPAT_CODES.get(error.code, "malformed")
            reason = pyexpat.ErrorString(error.code) or "not well-formed"
        raise MessageRefused(code, reason, error.lineno, error.offset + 1) from None


def _codec(data: bytes, declared: str | None) -> str:
    """Python's name for the encoding in which expat reads ``data``, for a part without its mark."""
    if data[:2] in {b"\xfe\xff", b"\x00<"}:
        return "utf-16-be"
    if data[:2] in {b"\xff\xfe", b"<\x00"}:
        return "utf-16-le"
    return declared or "utf-8"

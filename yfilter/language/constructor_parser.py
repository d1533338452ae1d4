"""Parses direct constructors, where every character counts."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

from formats.characters import is_comment, is_processing_instruction
from formats.name_faults import XMLNS_NAMESPACE
from formats.names import XML_NAMESPACE, QualifiedName
from yfilter.language.condition_parser import ConditionParser
from yfilter.language.item_kinds import ItemKind
from yfilter.language.query_ast import Constructor, Expression, Markup, NodeKind
from yfilter.language.query_lexer import NCNAME, WHITE_SPACE
from yfilter.language.references import expand_references, read_reference

_TAG_NAME = re.compile(f"{NCNAME}(?::{NCNAME})?")
_CONTENT_MARKUP = re.compile(r"[<{}&]")
_VALUE_MARKUP = re.compile(r"[<{}&\"'\t\n\r]")


class _RawAttribute(NamedTuple):
    """An attribute before its value is parsed: the value is ``text[start:end]``."""

    name: str
    offset: int
    start: int
    end: int


class ConstructorParser(ConditionParser):
    """Adds constructors to conditions.

    A start tag is read twice: its namespace declarations hold for the whole element, so they must
    be known before the names and expressions in it can be resolved.
    """

    def constructor(self) -> Constructor:
        """A constructor; the next token is its ``<``."""
        token = self.lexer.peek()
        self.enter(token)
        outer = self.scope
        tag, position = self._tag_name(token.offset + 1, "the name of an element")
        raw, position, is_empty = self._raw_attributes(position)
        declarations = self._declarations(raw)
        self.scope = replace(
            outer,
            namespaces={**outer.namespaces, **declarations},
            constructed={**outer.constructed, **declarations},
        )
        name = self._constructed_name(tag, token.offset + 1, attribute=False)
        attributes = self._attributes(raw)
        # An attribute without a prefix is in no namespace, whatever the default is.
        prefixed = [attribute for attribute, _ in attributes if attribute.prefix]
        self._declare_names(declarations, [name, *prefixed])
        content: tuple[str | Expression, ...] = ()
        if not is_empty:
            content, position = self._content(tag, token.offset, position)
        self.lexer.offset = position
        self.scope = outer
        self.leave()
        return Constructor(name, tuple(attributes), tuple(declarations.items()), content)

    # -- the start tag

    def _tag_name(self, offset: int, what: str) -> tuple[str, int]:
        match = _TAG_NAME.match(self.lexer.text, offset)
        if match is None:
            raise self.refusal("syntax", "this is not a name", offset, what)
        return match[0], match.end()

    def _raw_attributes(self, position: int) -> tuple[list[_RawAttribute], int, bool]:
        """The attributes, where the content begins, and whether there is none."""
        text = self.lexer.text
        raw: list[_RawAttribute] = []
        while True:
            after_space = self._after_space(position)
            if text.startswith("/>", after_space):
                return raw, after_space + 2, True
            if text.startswith(">", after_space):
                return raw, after_space + 1, False
            if after_space == position or after_space == len(text):
                what = "this start tag does not go on"
                wanted = "an attribute after white space, '>' or '/>'"
                raise self.refusal("syntax", what, after_space, wanted)
            name, end = self._tag_name(after_space, "the name of an attribute, '>' or '/>'")
            start = self._after_space(end)
            if not text.startswith("=", start):
                raise self.refusal("syntax", f"the attribute {name} has no value", start, "'='")
            start = self._after_space(start + 1)
            if text[start : start + 1] not in ("'", '"') or start == len(text):
                what = f"the value of {name} is not quoted"
                raise self.refusal("syntax", what, start, "a quotation mark, \" or '")
            position = self._end_of_value(start)
            raw.append(_RawAttribute(name, after_space, start + 1, position - 1))

    def _end_of_value(self, start: int) -> int:
        """The offset after the closing quotation mark; expressions in ``{ }`` are passed over."""
        text = self.lexer.text
        quote = text[start]
        position = start + 1
        edge = re.compile(f"[{{{quote}]")
        while match := edge.search(text, position):
            position = match.end()
            if text.startswith(match[0], position):
                position += 1
            elif match[0] == quote:
                return position
            else:
                position = self._after_enclosed(position)
        raise self.refusal("syntax", "this value is not closed", start, f"a closing {quote}")

    def _after_enclosed(self, position: int) -> int:
        """The offset after the ``}`` that closes the ``{`` before ``position``."""
        depth = 1
        self.lexer.offset = position
        while depth:
            token = self.lexer.take()
            if token.is_symbol("{"):
                depth += 1
            elif token.is_symbol("}"):
                depth -= 1
            elif token.text == "":
                raise self.refusal("syntax", "this '{' is not closed", position - 1, "'}'")
        return self.lexer.offset

    def _declarations(self, raw: list[_RawAttribute]) -> dict[str, str]:
        declarations: dict[str, str] = {}
        for attribute in raw:
            prefix, colon, local = attribute.name.rpartition(":")
            if attribute.name == "xmlns":
                declared = ""
            elif colon and prefix == "xmlns":
                declared = local
            else:
                continue
            if declared in declarations:
                raise self.refusal(
                    "duplicate-declaration", f"{attribute.name} is given twice", attribute.offset
                )
            value = self.lexer.text[attribute.start : attribute.end]
            if set("{}") & {*value.replace("{{", "").replace("}}", "")}:
                what = "the namespace of a declaration is fixed"
                raise self.refusal("syntax", what, attribute.offset, "a URI without { }")
            quote = self.lexer.text[attribute.end]
            uri = expand_references(self.lexer.text, attribute.start, attribute.end, quote)
            uri = " ".join(uri.replace("{{", "{").replace("}}", "}").split())
            if (declared, uri) != ("xml", XML_NAMESPACE):
                self.check_declaration(declared, uri, attribute.offset)
            if declared and not uri:
                what = f"the prefix '{declared}' needs a namespace"
                raise self.refusal("syntax", what, attribute.offset, "a URI")
            declarations[declared] = uri
        declarations.pop("xml", None)  # so it is anyway
        return declarations

    def check_declaration(self, prefix: str, uri: str, offset: int) -> None:
        """Refuses what no declaration may say."""
        self.checked_uri(uri, offset)
        if prefix in ("xml", "xmlns") or uri in (XML_NAMESPACE, XMLNS_NAMESPACE):
            what = f"'{prefix or uri}' cannot be declared"
            raise self.refusal("syntax", what, offset, "another prefix and namespace")

    def _constructed_name(self, text: str, offset: int, *, attribute: bool) -> QualifiedName:
        prefix, colon, local = text.rpartition(":")
        if colon:
            return QualifiedName(prefix, self.namespace_of(prefix, offset), local)
        return QualifiedName("", "" if attribute else self.scope.namespaces[""], local)

    def _declare_names(self, declarations: dict[str, str], names: list[QualifiedName]) -> None:
        """Adds the declarations that ``names`` need and that nothing around them makes."""
        constructed = {**self.scope.constructed}
        for name in names:
            if name.prefix == "xml" or constructed.get(name.prefix, "") == name.namespace:
                continue
            declarations[name.prefix] = constructed[name.prefix] = name.namespace
        self.scope = replace(self.scope, constructed=constructed)

    def _attributes(
        self, raw: list[_RawAttribute]
    ) -> list[tuple[QualifiedName, tuple[str | Expression, ...]]]:
        attributes: list[tuple[QualifiedName, tuple[str | Expression, ...]]] = []
        seen: set[tuple[str, str]] = set()
        for attribute in raw:
            if attribute.name == "xmlns" or attribute.name.startswith("xmlns:"):
                continue
            name = self._constructed_name(attribute.name, attribute.offset, attribute=True)
            if (name.namespace, name.local) in seen:
                raise self.refusal(
                    "duplicate-attribute", f"the attribute {name} is given twice", attribute.offset
                )
            seen.add((name.namespace, name.local))
            attributes.append((name, self._value(attribute)))
        return attributes

    def _value(self, attribute: _RawAttribute) -> tuple[str | Expression, ...]:
        text = self.lexer.text
        quote = text[attribute.end]
        parts = _Parts()
        position = attribute.start
        while position < attribute.end:
            match = _VALUE_MARKUP.search(text, position, attribute.end)
            stop = match.start() if match else attribute.end
            parts.text(text[position:stop])
            position = stop
            if match is None:
                break
            if match[0] in "\t\n\r":
                parts.text(" ")
                position += 1
            elif match[0] == quote:
                parts.text(quote)
                position += 2
            elif match[0] in "\"'":
                parts.text(match[0])
                position += 1
            elif match[0] == "<":
                raise self.refusal("syntax", "'<' in the value of an attribute", position, "'&lt;'")
            else:
                position = self._reference_or_brace(parts, position, attribute.end)
        return parts.finish()

    # -- content

    def _content(
        self, tag: str, opened: int, position: int
    ) -> tuple[tuple[str | Expression, ...], int]:
        """The content up to the end tag, and the offset after that."""
        text = self.lexer.text
        parts = _Parts(boundary_space_stripped=self.strips_space)
        while match := _CONTENT_MARKUP.search(text, position):
            parts.text(text[position : match.start()])
            position = match.start()
            if text.startswith("</", position):
                return parts.finish(), self._after_end_tag(tag, position)
            if text.startswith("<![CDATA[", position):
                end = text.find("]]>", position)
                if end < 0:
                    raise self.refusal(
                        "syntax", "this CDATA section is not closed", position, "']]>'"
                    )
                parts.text(text[position + 9 : end], verbatim=True)
                position = end + 3
            elif match[0] == "<":
                parts.expression(self._nested_constructor(position))
                position = self.lexer.offset
            else:
                count = len(parts.parts)
                position = self._reference_or_brace(parts, position, len(text))
                if len(parts.parts) > count and not isinstance(parts.parts[-1], str):
                    self._check_attribute_place(parts, match.start())
        raise self.refusal("syntax", f"<{tag}> is not closed", opened, f"</{tag}>")

    def _nested_constructor(self, position: int) -> Constructor | Markup:
        self.lexer.offset = position
        return self.direct_constructor()

    def direct_constructor(self) -> Constructor | Markup:
        """An element, a comment or a processing instruction; the next token is its ``<``."""
        start = self.lexer.peek().offset
        text = self.lexer.text
        if text.startswith("<!--", start):
            return self._markup_up_to("-->", start, 4)
        if text.startswith("<?", start):
            return self._markup_up_to("?>", start, 2)
        return self.constructor()

    def _markup_up_to(self, end: str, start: int, skipped: int) -> Markup:
        text = self.lexer.text
        stop = text.find(end, start + skipped)
        if stop < 0:
            raise self.refusal("syntax", "this is not closed", start, f"'{end}'")
        value = text[start + skipped : stop]
        target = ""
        is_right = is_comment(value)
        if end == "?>":
            match = re.match(f"({NCNAME})(?:[ \t\n]+(.*))?\\Z", value, re.DOTALL)
            is_right = match is not None
            if match is not None:
                target, value = match[1], match[2] or ""
                is_right = is_processing_instruction(target, value)
        if not is_right:
            what = "processing instruction" if end == "?>" else "comment"
            raise self.refusal("syntax", f"this is no {what} of XML", start)
        self.lexer.offset = stop + len(end)
        kind = NodeKind.PROCESSING_INSTRUCTION if end == "?>" else NodeKind.COMMENT
        return Markup(kind, target, value)

    def _reference_or_brace(self, parts: _Parts, position: int, end: int) -> int:
        """Takes a reference, a doubled brace or ``{ expression }``; the offset after it."""
        text = self.lexer.text
        if text[position] == "&":
            character, position = read_reference(text, position, end)
            parts.text(character, verbatim=True)
            return position
        if text.startswith(text[position] * 2, position):
            parts.text(text[position])
            return position + 2
        if text[position] == "}":
            raise self.refusal("syntax", "'}' without '{'", position, "'}}' for the character }")
        self.lexer.offset = position + 1
        if self.lexer.peek().is_symbol("}"):
            raise self.unexpected("an expression between { and }")
        parts.expression(self.sequence())
        self.expect("}", " or an operator")
        return self.lexer.offset

    def _check_attribute_place(self, parts: _Parts, offset: int) -> None:
        """Attributes of a message become attributes, so they come before all other content."""
        *before, last = parts.parts
        if not isinstance(last, str) and self._is_attribute(last):
            if all(not isinstance(part, str | Constructor | Markup) for part in before):
                return
            what = "an attribute after other content of the element"
            raise self.refusal("type", what, offset, "the attribute first, or string(…) around it")

    def _is_attribute(self, part: str | Expression) -> bool:
        return not isinstance(part, str) and self.kinds_of(part) == ItemKind.ATTRIBUTE

    def _after_end_tag(self, tag: str, position: int) -> int:
        name, end = self._tag_name(position + 2, f"</{tag}>")
        if name != tag:
            raise self.refusal("syntax", f"</{name}> closes <{tag}>", position, f"</{tag}>")
        end = self._after_space(end)
        if not self.lexer.text.startswith(">", end):
            raise self.refusal("syntax", "this end tag does not end", end, "'>'")
        return end + 1

    def _after_space(self, position: int) -> int:
        match = WHITE_SPACE.match(self.lexer.text, position)
        return match.end() if match else position


class _Parts:
    """Collects literal text and expressions, adjacent text joined.

    With ``boundary_space_stripped``, text that is nothing but white space between two pieces of
    markup is dropped, unless a reference or a CDATA section is in it.
    """

    def __init__(self, *, boundary_space_stripped: bool = False) -> None:
        self.parts: list[str | Expression] = []
        self._strip = boundary_space_stripped
        self._text: list[str] = []
        self._verbatim = False

    def text(self, value: str, *, verbatim: bool = False) -> None:
        self._text.append(value)
        self._verbatim = self._verbatim or verbatim

    def expression(self, value: Expression) -> None:
        self._end_text()
        self.parts.append(value)

    def finish(self) -> tuple[str | Expression, ...]:
        self._end_text()
        return tuple(self.parts)

    def _end_text(self) -> None:
        value = "".join(self._text)
        is_boundary_space = self._strip and not self._verbatim and not value.strip(" \t\n\r")
        if value and not is_boundary_space:
            self.parts.append(value)
        self._text.clear()
        self._verbatim = False

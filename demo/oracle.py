"""What one profile should deliver for one message, by lxml, elementpath and Saxon alone.

Nothing of the system is imported here, so that the system can be checked against it: the text of
the profile is cut up by oracle_text.py, every path and condition is evaluated by elementpath,
results are built by lxml.  What oracle_text.py or elementpath do not read (``order by``, ``at``,
computed constructors, ``if`` between elements) is left to Saxon as a whole (saxon_oracle.py).

Where the profile language settles what XPath 2.0 leaves to a dynamic error, so does the oracle:

- a pair of values in a comparison of which one should be a number and is none does not hold: all
  comparison tokens get a tolerant ``evaluate``;
- of several items where a function takes one, the first counts: elementpath's
  ``compatibility_mode`` has that rule (comparisons, which it would change too, are replaced);
- of two attributes of one name on a constructed element, the first one counts.

And where elementpath is wrong: string values of elements lose the text after a comment or a
processing instruction, so that libxml2 computes them here; and ``number("1_000")`` or a double
as a string follow Python, so that both are done here.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from decimal import Decimal
from functools import lru_cache
from itertools import product
from types import MethodType
from typing import Any, TypeAlias

from elementpath import ElementPathSyntaxError, XPathContext, get_node_tree
from elementpath.collations import UNICODE_CODEPOINT_COLLATION
from elementpath.datatypes import UntypedAtomic
from elementpath.xpath2 import XPath2Parser
from elementpath.xpath_nodes import EtreeDocumentNode, EtreeElementNode
from lxml import etree

from demo.independent_parse import parse
from demo.oracle_text import NotUnderstoodError, Part, ProfileText, Query, Selector, Template
from demo.saxon_oracle import can_ask, results_by_saxon

Value: TypeAlias = list[Any]  # elementpath's nodes and atomic values
Variables: TypeAlias = Mapping[str, Value]

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_DOUBLE = re.compile(r"\s*([+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|-?INF|NaN)\s*")
_NUMBERS = (int, float, Decimal)
_STRING = etree.XPath("string()")


def expected_results(profile_text: str, message: bytes) -> list[bytes]:
    """The documents that the profile delivers for the message, in order; [] for none.

    Compare them after ``canonical``.  Raises NotUnderstoodError, lxml's XMLSyntaxError, and
    elementpath's errors for a profile that is not in the language.
    """
    try:
        return _by_parts(profile_text, message)
    except (NotUnderstoodError, ElementPathSyntaxError):
        if not can_ask():
            raise
    try:
        return results_by_saxon(profile_text, message)
    except ValueError as error:
        raise NotUnderstoodError(str(error)) from None


def _by_parts(profile_text: str, message: bytes) -> list[bytes]:
    profile = _profile(profile_text)
    document = _document(message)
    if isinstance(profile, Selector):
        return [message] if _select(profile, document, {}) else []
    if isinstance(profile, Query):
        return [_serialised(item) for item in _query_items(profile, document, {})]
    if isinstance(profile, Template):
        query = next(part for part in profile.content if isinstance(part, Query))
        if not _query_items(query, document, {}):
            return []
        return [_serialised(_construct(profile, document, {}))]
    raise TypeError("a profile cannot be a text")


def canonical(xml: bytes) -> bytes:
    """Canonical XML 2.0 with comments: equal documents become equal bytes.

    Namespace declarations that are in scope but not used do not matter, and neither do prefixes,
    which a constructed element may have to change (so the bytes are for comparing only).
    """
    text = etree.canonicalize(_parse(xml), with_comments=True, rewrite_prefixes=True)
    return str(text).encode()


# -- messages


class _ElementNode(EtreeElementNode):
    """An element whose string value is libxml2's."""

    __slots__ = ()

    @property
    def string_value(self) -> str:
        return str(_STRING(self.value))

    compat_string_value = string_value

    @property
    def iter_typed_values(self) -> Iterator[UntypedAtomic]:
        yield UntypedAtomic(self.string_value)


class _DocumentNode(EtreeDocumentNode):
    __slots__ = ()

    @property
    def string_value(self) -> str:
        return str(_STRING(self.value.getroot()))

    compat_string_value = string_value


def _parse(xml: bytes) -> etree._ElementTree:
    return etree.ElementTree(parse(xml))


@lru_cache(maxsize=32)
def _document(message: bytes) -> Any:
    """The message as elementpath's tree."""
    document = get_node_tree(_parse(message))
    for node in document.iter():
        if type(node) is EtreeElementNode:
            node.__class__ = _ElementNode
        elif type(node) is EtreeDocumentNode:
            node.__class__ = _DocumentNode
    return document


# -- expressions


@lru_cache(maxsize=4096)
def _profile(text: str) -> Part:
    return ProfileText(text).read()


@lru_cache(maxsize=4096)
def _compiled(selector: Selector) -> Any:
    parser = XPath2Parser(
        namespaces=dict(selector.namespaces),
        default_namespace=selector.default_namespace,
        compatibility_mode=True,
        default_collation=UNICODE_CODEPOINT_COLLATION,  # else the locale of the process decides
    )
    token: Any = parser.parse(selector.xpath)
    for part in token.iter():
        if part.symbol in _COMPARISONS:
            part.evaluate = MethodType(_compare, part)
        elif part.symbol == "number":
            part.evaluate = MethodType(_number, part)
        elif part.symbol in ("/", "//"):
            part.select = MethodType(_in_document_order(part.select), part)
    return token


def _in_document_order(select: Callable[[Any], Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    def sorted_select(_token: Any, context: Any = None) -> Iterator[Any]:
        nodes = {id(node): node for node in select(context)}
        yield from sorted(nodes.values(), key=lambda node: int(node.position))

    return sorted_select


def _compare(token: Any, context: Any = None) -> bool:
    compare = _COMPARISONS[token.symbol]
    left = list(token[0].atomization(context))
    right = list(token[1].atomization(context))
    return any(_holds(compare, one, other) for one, other in product(left, right))


def _holds(compare: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
    if not isinstance(left, _NUMBERS) and not isinstance(right, _NUMBERS):
        return compare(str(left), str(right))
    numbers = _double(left), _double(right)
    return None not in numbers and compare(*numbers)


def _double(value: Any) -> float | None:
    """xs:double of a value, None where there is none."""
    if isinstance(value, _NUMBERS):
        return float(value)
    match = _DOUBLE.fullmatch(str(value))
    return float(match[1].replace("INF", "inf")) if match else None


def _number(token: Any, context: Any = None) -> float:
    if len(token):
        values = list(token[0].atomization(context))
    else:
        values = [UntypedAtomic(context.item.string_value)]
    number = _double(values[0]) if values else None
    return float("nan") if number is None else number


def _select(selector: Selector, document: Any, variables: Variables) -> Value:
    """The items of an expression, nodes in document order."""
    context = XPathContext(document, variables={"msg": document, **variables})
    return list(_compiled(selector).select(context))


def _is_true(value: Value, selector: Selector) -> bool:
    return bool(_compiled(selector).boolean_value(value))


def _string(item: Any) -> str:
    if hasattr(item, "string_value"):
        return str(item.string_value)
    if isinstance(item, bool):
        return "true" if item else "false"
    return _double_text(item) if isinstance(item, float) else str(_plain(item))


def _plain(item: Any) -> Any:
    return f"{item.normalize():f}" if isinstance(item, Decimal) else item


def _double_text(value: float) -> str:
    """An xs:double as XPath casts it to a string."""
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124
        return "NaN" if value != value else "INF" if value > 0 else "-INF"  # noqa: PLR0124
    if value == 0 or 1e-6 <= abs(value) < 1e6:
        return f"{Decimal(repr(value)):f}".removesuffix(".0")
    mantissa, _, exponent = f"{Decimal(repr(value)).normalize():E}".partition("E")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"


# -- FLWOR expressions


def _query_items(query: Query, document: Any, variables: Variables) -> Value:
    items: Value = []
    for scope in _tuples(query, 0, document, variables):
        where = query.where
        if where is None or _is_true(_select(where, document, scope), where):
            items += _items(query.result, document, scope)
    return items


def _tuples(query: Query, index: int, document: Any, variables: Variables) -> Iterator[Variables]:
    if index == len(query.bindings):
        yield variables
        return
    binding = query.bindings[index]
    value = _select(binding.selector, document, variables)
    for part in [[node] for node in value] if binding.each else [value]:
        yield from _tuples(query, index + 1, document, {**variables, binding.variable: part})


def _items(part: Part, document: Any, variables: Variables) -> Value:
    if isinstance(part, Selector):
        return _select(part, document, variables)
    if isinstance(part, Query):
        return _query_items(part, document, variables)
    if isinstance(part, Template):
        return [_construct(part, document, variables)]
    return [part]


# -- results


def _construct(template: Template, document: Any, variables: Variables) -> etree._Element:
    # No declarations: prefixes do not matter, and below a default namespace lxml would write
    # copies of elements in no namespace as if they were in it.
    element = etree.Element(template.tag)
    for name, value in template.attributes:
        element.set(name, "".join(_value_text(part, document, variables) for part in value))
    for part in template.content:
        if isinstance(part, str):
            _append_text(element, part)
        else:
            _append_items(element, _items(part, document, variables))
    return element


def _value_text(part: Part, document: Any, variables: Variables) -> str:
    if isinstance(part, str):
        return part
    return " ".join(map(_string, _items(part, document, variables)))


def _append_items(element: etree._Element, items: Value) -> None:
    after_atom = False
    for item in items:
        kind = getattr(item, "node_kind", None)
        is_atom = kind is None and not isinstance(item, etree._Element)
        if is_atom and after_atom:
            _append_text(element, " ")
        after_atom = is_atom
        if isinstance(item, etree._Element):
            element.append(item)
        elif kind == "element":
            element.append(_copy(item.value))
        elif kind == "document":
            for child in item.value.xpath("/node()"):
                element.append(_copy(child))
        elif kind == "attribute":
            if item.name not in element.attrib:
                element.set(item.name, item.value)
        else:
            _append_text(element, _string(item))


def _copy(node: etree._Element) -> etree._Element:
    copied = deepcopy(node)
    copied.tail = None
    return copied


def _append_text(element: etree._Element, text: str) -> None:
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text


def _serialised(item: Any) -> bytes:
    kind = getattr(item, "node_kind", None)
    if kind == "document":
        return bytes(etree.tostring(item.value, encoding="UTF-8"))
    element = _copy(item.value) if kind == "element" else item
    return bytes(etree.tostring(element, encoding="UTF-8"))

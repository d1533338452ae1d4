"""What every ElementStream must satisfy beyond its shape, so that it can be written as XML.

The decoders check it while they read; this says it once more, column by column, for tests to hold
what they made against: names and characters that XML allows, prefixes that mean what the names
say, no attribute twice, content where content may stand, and the message's limits.
"""

from __future__ import annotations

from formats import ContentKind, ElementStream, MessageLimits, QualifiedName
from formats.characters import find_illegal_character, is_comment, is_processing_instruction
from formats.name_faults import binding_fault, name_fault
from formats.names import XML_NAMESPACE


class InvalidStreamError(Exception):
    """``column`` (of ElementStream) and ``index`` in it say where, ``code`` as in FormatError.

    For values ``index`` counts bytes of the run.
    """

    def __init__(self, code: str, reason: str, column: str, index: int) -> None:
        super().__init__(f"{column}[{index}]: {reason} [{code}]")
        self.code = code
        self.reason = reason
        self.column = column
        self.index = index


def check_stream(stream: ElementStream, limits: MessageLimits) -> None:
    """Raise InvalidStreamError unless the stream can be written and read back unchanged.

    The caller vouches for the shape: all numbers in range, depths and ends that nest, offsets
    that do not decrease and end with their run, content in document order.
    """
    _check_counts(stream, limits)
    _check_names(stream, limits)
    _check_declarations(stream, limits)
    _bound("entity-expansion", "content_values", stream.written_size(), limits.expansion_max)
    _check_prefixes_and_attributes(stream)
    _check_attribute_values(stream)
    _check_content(stream)


def _check_counts(stream: ElementStream, limits: MessageLimits) -> None:
    _bound("too-many-elements", "element_name", len(stream), limits.elements_max)
    _bound("too-many-names", "names", len(stream.names), limits.names_max)
    total = len(stream.attribute_name) + len(stream.declarations)
    _bound("too-many-attributes", "attribute_name", total, limits.attributes_total_max)
    declared = dict.fromkeys(stream.declaration_element, 0)
    for element in stream.declaration_element:
        declared[element] += 1
    starts = stream.attribute_start
    for element, depth in enumerate(stream.element_depth):
        if depth >= limits.depth_max:
            raise InvalidStreamError(
                "too-deep", f"more than {limits.depth_max} levels", "element_depth", element
            )
        if starts[element + 1] - starts[element] + declared.get(element, 0) > limits.attributes_max:
            raise InvalidStreamError(
                "too-many-attributes",
                f"more than {limits.attributes_max} attributes and declarations on one element",
                "attribute_start",
                element,
            )


def _bound(code: str, column: str, value: int, bound: int) -> None:
    if value > bound:
        raise InvalidStreamError(code, f"{value}, at most {bound} are allowed", column, 0)


def _check_names(stream: ElementStream, limits: MessageLimits) -> None:
    for index, name in enumerate(stream.names):
        fault = name_fault(name, limits.name_bytes_max, limits.namespace_bytes_max)
        if fault is not None:
            raise InvalidStreamError(*fault, "names", index)
    if len(set(stream.names)) < len(stream.names):
        raise InvalidStreamError("bad-name", "a name stands twice", "names", 0)


def _check_declarations(stream: ElementStream, limits: MessageLimits) -> None:
    seen: set[tuple[int, str]] = set()
    for index, (prefix, namespace) in enumerate(stream.declarations):
        bad = binding_fault(prefix, namespace, limits.name_bytes_max, limits.namespace_bytes_max)
        if bad is not None:
            raise InvalidStreamError(*bad, "declarations", index)
        place = (stream.declaration_element[index], prefix)
        fault = ""
        if prefix == "xml":
            fault = "prefix xml is always declared"
        elif place in seen:
            fault = f"prefix {prefix!r} is declared twice on one element"
        if fault:
            raise InvalidStreamError("bad-declaration", fault, "declarations", index)
        seen.add(place)


def _check_prefixes_and_attributes(stream: ElementStream) -> None:
    """Every name's prefix means its namespace where it stands; no attribute stands twice."""
    names, scope = stream.names, {"": "", "xml": XML_NAMESPACE}
    undo: list[tuple[int, str, str | None]] = []  # (depth of the element, prefix, before)
    expanded: dict[tuple[str, str], int] = {}
    expanded_id = [expanded.setdefault((n.namespace, n.local), len(expanded)) for n in names]
    fits: set[int] = set()  # names that were found to fit the present scope
    declaration, declaration_count = 0, len(stream.declarations)
    for element, (name, depth) in enumerate(
        zip(stream.element_name, stream.element_depth, strict=True)
    ):
        while undo and undo[-1][0] >= depth:
            _, prefix, before = undo.pop()
            fits.clear()
            if before is None:
                del scope[prefix]
            else:
                scope[prefix] = before
        while (
            declaration < declaration_count and stream.declaration_element[declaration] == element
        ):
            prefix, namespace = stream.declarations[declaration]
            undo.append((depth, prefix, scope.get(prefix)))
            scope[prefix] = namespace
            fits.clear()
            declaration += 1
        if name not in fits:
            if scope.get(names[name].prefix) != names[name].namespace:
                _refuse_prefix(names[name], "element_name", element)
            fits.add(name)
        first, last = stream.attribute_start[element], stream.attribute_start[element + 1]
        if first != last:
            _check_attribute_names(stream, range(first, last), scope, expanded_id)


def _check_attribute_names(
    stream: ElementStream, attributes: range, scope: dict[str, str], expanded_id: list[int]
) -> None:
    seen: set[int] = set()
    for attribute in attributes:
        name = stream.names[stream.attribute_name[attribute]]
        # The default namespace does not hold for attributes.
        if (scope.get(name.prefix) if name.prefix else "") != name.namespace:
            _refuse_prefix(name, "attribute_name", attribute)
        if not name.prefix and name.local == "xmlns":
            raise InvalidStreamError(
                "bad-attribute", "xmlns is no attribute", "attribute_name", attribute
            )
        key = expanded_id[stream.attribute_name[attribute]]
        if key in seen:
            raise InvalidStreamError(
                "bad-attribute",
                f"attribute {name} stands twice on one element",
                "attribute_name",
                attribute,
            )
        seen.add(key)


def _refuse_prefix(name: QualifiedName, column: str, index: int) -> None:
    raise InvalidStreamError(
        "undeclared-prefix",
        f"prefix {name.prefix!r} of {name} does not mean {name.namespace!r} here",
        column,
        index,
    )


def _check_attribute_values(stream: ElementStream) -> None:
    _check_run(stream.attribute_values, "attribute_values")
    _check_cuts(stream.attribute_values, stream.attribute_offset.tolist(), "attribute_values")


def _check_content(stream: ElementStream) -> None:
    _check_run(stream.content_values, "content_values")
    offsets = stream.content_offset.tolist()
    _check_cuts(stream.content_values, offsets, "content_values")
    before = (-2, -2)  # (parent, next) of the text node just before
    for content, kind in enumerate(stream.content_kind):
        place = (stream.content_parent[content], stream.content_next[content])
        fault = ""
        if kind == ContentKind.TEXT:
            if offsets[content] == offsets[content + 1]:
                fault = "an empty text node"
            elif place[0] < 0:
                fault = "text outside the root element"
            elif place == before:
                fault = "two text nodes side by side"
            before = place
        else:
            before = (-2, -2)
            fault = _markup_fault(kind, stream.content_value(content))
        if fault:
            raise InvalidStreamError("bad-content", fault, "content_kind", content)


def _markup_fault(kind: int, value: str) -> str:
    if kind == ContentKind.COMMENT:
        return "" if is_comment(value) else "not the text of a comment"
    target, space, data = value.partition(" ")
    if is_processing_instruction(target, data) and bool(space) == bool(data):
        return ""
    return "not a processing instruction"


def _check_run(run: bytes, column: str) -> None:
    try:
        text = run.decode()
    except UnicodeDecodeError as error:
        raise InvalidStreamError("bad-value", "not UTF-8", column, error.start) from None
    illegal = find_illegal_character(text)
    if illegal >= 0:
        raise InvalidStreamError(
            "bad-value",
            f"XML cannot carry the character U+{ord(text[illegal]):04X}",
            column,
            len(text[:illegal].encode()),
        )


def _check_cuts(run: bytes, offsets: list[int], column: str) -> None:
    if run.isascii():
        return
    for offset in offsets:
        if offset < len(run) and run[offset] & 0xC0 == 0x80:
            raise InvalidStreamError("bad-value", "a value ends inside a character", column, offset)

"""What XSLT a rule set may bring along, in the words of the profile language.

A ``xsl:function`` becomes a declared function, its body the items that it is a constructor of: text
is a text node, ``value-of`` one too, a variable with content and no type the tree of it.  A
``xsl:key`` is a function too: ``key("k", $v)`` is what ``//match[use = $v]`` finds, and values are
equal as XSLT has it: those of a message are strings, which no number equals.

Whatever else is in them is refused where it stands; nothing is read as something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import lxml.etree

from yfilter.schematron.contexts import alternatives, path_of
from yfilter.schematron.expressions import (
    ANY_KEY,
    CONTEXT,
    as_xquery,
    bare,
    closing,
    is_at_most_one,
    key_function,
    split,
)
from yfilter.schematron.schema_reader import XSLT, Element, refusal

_ATOMIC = re.compile(r"(xs:[A-Za-z]+)([?*+]?)")
_PROMOTED = ("xs:double", "xs:float")
_OCCURRENCES = {"": "exactly-one", "?": "zero-or-one", "+": "one-or-more", "*": ""}
_SPACE = " \t\r\n"
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;", "{": "{{", "}": "}}"}
)
PLAIN_PATH = re.compile(r"\.|(?:\.\./)*@?[\w.:*-]+(?:/@?[\w.:*-]+)*")
_DOT = r"(?<![\w./)\]*@])\.(?![\w./])"
# Texts, variables, functions that are declared, and the context item twice.
_MAY_BE_TEXTS = re.compile(
    rf"\b(?:text|node)\s*\(|\$|(?<![\w.:-])(?!(?:xs|fn|math):)[\w.-]+:[\w.-]+\s*\(|{_DOT}.*{_DOT}",
    re.S,
)
_A_STRING = "instance of xs:string or . instance of xs:untypedAtomic or . instance of xs:anyURI"
_FORMAT = re.compile(r"0*1|[aAiI]")
_SPACES_KEPT = "{http://www.w3.org/XML/1998/namespace}space"
_IN_FUNCTIONS = (
    "sequence, value-of, text, copy-of, variable, choose, if, for-each, number with a value, "
    "message or elements as they stand"
)
_OF_TEMPLATES = ("apply-templates", "call-template", "apply-imports", "next-match")


def functions_text(functions: Iterable[Element]) -> str:
    """``declare function …;`` of each of one name; SchematronRefused where a body is more than an
    expression."""
    return "".join(map(_function, functions))


def _function(function: Element) -> str:
    parameters = [each for each in function if _is(each, "param")]
    for each in parameters:
        if each.get("select") is not None or len(each) or (each.text or "").strip(_SPACE):
            raise refusal(each, "a parameter of a function with a default; expected none")
    named = ", ".join(f"${each.get('name', '')}{_type(each)}" for each in parameters)
    children = [each for each in function if each not in parameters]
    texts = [function.text, *(each.tail for each in parameters)]
    body = _sequence([*(_text(each, function) for each in texts), *_parts(children, function)])
    if _ATOMIC.fullmatch(function.get("as", "").strip()):
        body = _atomic(body)
    if re.search(rf"\${CONTEXT}\b", body):
        body = f"let ${CONTEXT} := . return {body}"  # which is an error: a function has no node
    return f"declare function {function.get('name', '')}({named}){_type(function)} {{ {body} }}; "


def key_text(name: str, keys: Iterable[Element], *, is_xslt_1: bool) -> str:
    """The functions of two and three arguments of all declarations of one key."""
    function = key_function(name)
    written = [_key(key, is_xslt_1=is_xslt_1) for key in keys]
    if is_xslt_1:
        values = "let $_strings := for $_v in $_value return string($_v) "
    else:
        values = (
            f"let $_atoms := data($_value) let $_strings := for $_v in $_atoms[. {_A_STRING}] "
            f"return string($_v) let $_others := $_atoms[not(. instance of xs:string)] "
        )
        if not any("$_others" in path for path in written):
            values = values.partition("let $_others")[0]
    return (
        f"declare function {function}($_value) {{ {values}return ({' | '.join(written)}) }}; "
        f"declare function {function}($_value, $_top) "
        f"{{ {function}($_value)[ancestor-or-self::node() intersect $_top] }}; "
    )


def _key(key: Element, *, is_xslt_1: bool) -> str:
    for attribute in ("collation", "composite"):
        if key.get(attribute) not in (None, "no", "false", "0"):
            raise refusal(key, f"a key with {attribute}; expected one of single values")
    path = path_of(alternatives(as_xquery(key.get("match", ""))))
    use = key.get("use")
    has_content = len(key) > 0 or bool((key.text or "").strip(_SPACE))
    if (use is None) != has_content:
        both = "use and content" if has_content else "neither use nor content"
        raise refusal(key, f"a key with {both}; expected one of them")
    value = _body(key) if use is None else as_xquery(use)
    if re.search(rf"\${CONTEXT}\b", value):
        value = f"let ${CONTEXT} := . return ({value})"
    if is_xslt_1:
        return f"{path}[(for $_u in ({value}) return string($_u)) = $_strings]"
    if PLAIN_PATH.fullmatch(value):
        return f"{path}[({value}) = $_strings]"
    # PERF: two equalities, as what is equal is found by hash.
    return (
        f"{path}[data(({value}))[. {_A_STRING}] = $_strings] | "
        f"{path}[data(({value}))[not(. {_A_STRING})] = $_others]"
    )


def any_key_text(names: Iterable[str]) -> str:
    """The functions that ``key($name, …)`` calls, whose name is known where it is evaluated."""
    written = []
    for more in ("", ", $_top"):
        chosen = "error((), 'there is no such key')"
        for name in names:
            call = f"{key_function(name)}($_value{more})"
            chosen = f"if ($_name = {quoted(name)}) then {call} else {chosen}"
        written.append(f"declare function {ANY_KEY}($_name, $_value{more}) {{ {chosen} }}; ")
    return "".join(written)


def value_of(element: Element) -> str:
    """A variable's expression, converted to its type as an argument is."""
    declared = element.get("as", "").strip()
    select = element.get("value", element.get("select"))
    has_content = len(element) > 0 or bool((element.text or "").strip(_SPACE))
    if select is not None:
        if has_content:
            raise refusal(element, "a variable with select and content; expected one of them")
        written = as_xquery(select)
        several = len(split(written, (",",))) > 1 or not written
        value = f"({written})" if several else written
    elif not has_content and not declared:
        value = quoted(element.text or "" if _keeps_space(element) else "")
    elif declared:
        body = _body(element)
        value = f"({_atomic(body) if _ATOMIC.fullmatch(declared) else body})"
    elif not len(element):
        value = quoted(element.text or "")
    else:
        value = f"<_>{{{_body(element)}}}</_>"
    atomic = _ATOMIC.fullmatch(declared)
    return value if atomic is None else _converted(value, atomic[1], atomic[2])


def _converted(value: str, type_name: str, occurrence: str) -> str:
    one = f"$_a cast as {type_name}"
    if type_name == "xs:anyAtomicType":
        one = "$_a"
    elif type_name not in _PROMOTED:
        one = f"(if ($_a instance of xs:untypedAtomic) then {one} else $_a treat as {type_name})"
    found = f"(for $_a in data({value}) return {one})"
    return f"{_OCCURRENCES[occurrence]}{found}"


def quoted(text: str) -> str:
    return '"' + text.replace("&", "&amp;").replace('"', '""') + '"'


def literal(text: str) -> str:
    """As text within a constructor."""
    return text.translate(_ESCAPES)


def _body(parent: Element) -> str:
    """The items that the content of an element constructs."""
    return _sequence([_text(parent.text, parent), *_parts(list(parent), parent)])


def _atomic(body: str) -> str:
    """A body whose items are asked for their values alone: the last text as an untyped value."""
    start = 0 if body.startswith("text {") else body.rfind("return text {") + len("return ")
    end = start + 5 + closing(body[start + 5 :])
    if not body.startswith("text {", start) or body[end:].strip(")"):
        return body
    return f"{body[:start]}xs:untypedAtomic({body[start + 6 : end - 1]}){body[end:]}"


def _sequence(parts: list[str]) -> str:
    kept = [part for part in parts if part]
    return kept[0] if len(kept) == 1 else f"({', '.join(kept)})"


def _parts(children: list[Element], parent: Element) -> list[str]:
    parts: list[str] = []
    for at, each in enumerate(children):
        if _is(each, "variable"):
            following = [_text(each.tail, parent), *_parts(children[at + 1 :], parent)]
            value = f"let ${each.get('name', '')} := {value_of(each)}"
            return [*parts, f"({value} return {_sequence(following)})"]
        parts += [_instruction(each), _text(each.tail, parent)]
    return parts


def _text(text: str | None, parent: Element) -> str:
    """A text node; nothing for white space alone, unless it is to be kept."""
    if not text or (not text.strip(_SPACE) and not _keeps_space(parent)):
        return ""
    if "{" in text and any(
        each.get("expand-text", "no") in ("yes", "true", "1")
        for each in (parent, *parent.iterancestors())
    ):
        raise refusal(parent, "a text value template; expected value-of")
    return f"text {{ {quoted(text)} }}"


def _keeps_space(element: Element) -> bool:
    for each in (element, *element.iterancestors()):
        if (said := each.get(_SPACES_KEPT)) is not None:
            return said == "preserve"
    return False


def _instruction(element: Element) -> str:
    name = lxml.etree.QName(element)
    if element.get("use-when") is not None:
        raise refusal(element, "use-when; expected an instruction that is always there")
    if name.namespace != XSLT:
        return _element(element)
    select = element.get("select")
    written = None if select is None else as_xquery(select)
    match name.localname:
        case "sequence":
            return f"({written})" if written is not None else _body(element)
        case "copy-of":
            # Behind the message, as the parser refuses a copy of what cannot be a node.
            copied = "copy $_d := ($_c, /)[1] modify () return $_d"
            each = f"if ($_c instance of node()) then {copied} else $_c"
            return f"(for $_c in ({written or ''}) return {each})"
        case "value-of":
            return f"text {{ {_simple_content(element, written)} }}"
        case "text":
            return f"text {{ {quoted(element.text or '')} }}"
        case "if":
            return _if(element, "()")
        case "choose":
            chosen = "()"
            for each in reversed(element):
                chosen = _body(each) if _is(each, "otherwise") else _if(each, chosen)
            return f"({chosen})"
        case "for-each":
            return _for_each(element, written or "()")
        case "message":
            return _message(element)
        case "number":
            return _number(element)
        case "fallback":
            return ""
        case name_ if name_ in _OF_TEMPLATES:
            reason = f"{name_} in a function; a rule set has no templates here"
            raise refusal(element, f"{reason}, expected a call of a function")
        case name_:
            raise refusal(element, f"{name_} in a function; expected {_IN_FUNCTIONS}")


def _simple_content(element: Element, select: str | None) -> str:
    """The text of ``value-of``."""
    has_content = len(element) > 0 or bool((element.text or "").strip(_SPACE))
    if (select is not None) == has_content:
        both = "select and content" if has_content else "neither select nor content"
        raise refusal(element, f"value-of with {both}; expected one of them")
    separator = element.get("separator", "" if select is None else " ")
    if "{" in separator:
        raise refusal(element, "a separator that is computed; expected a string")
    items = f"({select})" if select is not None else f"({_body(element)})"
    if select is not None and is_at_most_one(select):
        return f"string({items})"
    between = quoted(separator)
    if select is not None and not may_be_texts(select):
        return f"string-join((for $_v in {items} return string($_v)), {between})"
    return joined(items, between)


def may_be_texts(expression: str) -> bool:
    """Whether two texts may follow each other in the value."""
    return bool(_MAY_BE_TEXTS.search(bare(expression)))


def joined(items: str, between: str) -> str:
    """Items as ``xsl:value-of`` joins them: texts that follow each other are one."""
    return (
        f"let $_k := (for $_v in {items} return if ($_v instance of text() and string($_v) = '') "
        "then () else $_v) return string-join((for $_v at $_at in $_k return (if ($_at = 1 or "
        "($_v instance of text() and subsequence($_k, $_at - 1, 1) instance of text())) then '' "
        f"else {between}, string($_v))), '')"
    )


def _if(element: Element, otherwise: str) -> str:
    test = as_xquery(element.get("test", ""))
    return f"(if ({test}) then {_body(element)} else {otherwise})"


def _for_each(element: Element, select: str) -> str:
    if any(_is(each, "sort") for each in element):
        raise refusal(element, "sort in a function; expected nodes in their own order")
    body = _body(element)
    if not bare(select).strip("() \t\r\n"):
        return ""
    if re.search(rf"\${CONTEXT}\b", body):
        body = f"(let ${CONTEXT} := . return {body})"
    return f"(({select}) ! ({body}))"


def _message(element: Element) -> str:
    """Nothing, or the error with which one that ends all ends what asks the function."""
    ends = element.get("terminate", "no").strip()
    if ends in ("no", "false", "0"):
        return ""
    if ends not in ("yes", "true", "1"):
        raise refusal(element, "a message with terminate that is computed; expected yes or no")
    return "error((), 'a message of the rule set ends here')"


def _number(element: Element) -> str:
    """``number`` of a value, or of a node among its siblings of one name."""
    form = element.get("format", "1")
    unknown = set(element.attrib) - {"value", "select", "format", "level"}
    if not _FORMAT.fullmatch(form) or unknown or element.get("level", "single") != "single":
        odd = ", ".join(sorted(map(str, unknown))) or form
        raise refusal(element, f"number with {odd}; expected a value or a node, and a plain format")
    if (value := element.get("value")) is not None:
        count = f"xs:integer(round(number({as_xquery(value)})))"
    else:
        node = as_xquery(element.get("select", "."))
        count = (
            f"(let $_n := ({node}) return 1 + count($_n/preceding-sibling::*"
            "[node-name(.) = node-name($_n)]))"
        )
    return f"text {{ format-integer({count}, {quoted(form)}) }}"


def _element(element: Element) -> str:
    """An element as it stands, with its namespace and what its content constructs."""
    name = lxml.etree.QName(element)
    attributes = ""
    for key, value in element.attrib.items():
        if str(key).startswith("{") or "{" in value:
            raise refusal(element, f"an attribute {key} that is computed; expected a plain one")
        attributes += f' {key}="{literal(value)}"'
    space = f' xmlns="{literal(name.namespace or "")}"'
    body = _body(element)
    content = "" if body == "()" else f"{{{body}}}"
    return f"<{name.localname}{space}{attributes}>{content}</{name.localname}>"


def _type(element: Element) -> str:
    declared = element.get("as")
    return f" as {declared}" if declared else ""


def _is(element: Element, name: str) -> bool:
    """Whether this is an element of XSLT, of that name."""
    found = lxml.etree.QName(element)
    return bool(found.namespace == XSLT and name == found.localname)

"""docs/verbs.md is made of the records of verbs and of their answers.

``python -m tests.test_verb_tables`` makes it anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, get_args

import msgspec

from overlay import verbs
from overlay.answers import Shown, as_shown

DOCUMENT = Path(__file__).parents[1] / "docs" / "verbs.md"
HEAD = """\
# Verbs

Every request to a process of the network is a verb with arguments, and its answer a record
([protocol.md](protocol.md#requests)). Each is declared once, in `overlay/verbs.py` and
`overlay/answers.py`; this page is made of them (`python -m tests.test_verb_tables`). Python asks a
verb by its record, with any client of a process:

```python
from onyx import RegistrationClient
from overlay import verbs

async with RegistrationClient("127.0.0.1:7000") as registration:
    for rule in (await registration.ask(verbs.AccessList())).rules:
        print(rule.principal, rule.role, rule.scope)
```

`onyx.aio` and `onyx.blocking` have the same client.

`right` is the right that the asker needs ([protocol.md](protocol.md#access)): `known` takes any
identity of the network. To ask a verb twice changes no more than to ask it once, unless it is said
to be not idempotent; of those, the verbs that make something know a request by its id. So clients
ask again, with the same id, when a connection was lost before the answer. A verb with a command is
`onyx NOUN VERB`, with these arguments and `--json`; a verb with a route is asked over HTTP at a
gateway, and is in its OpenAPI document. On the wire some fields of answers have the name in
brackets.
"""


def page() -> str:
    parts = [HEAD]
    for noun, kinds in groupby(sorted(verbs.TABLE, key=_order), _noun):
        parts += [f"## {noun}\n", *map(_section, kinds)]
    parts += ["## Answers\n", *map(_answer, _records())]
    return "\n".join(parts)


def _noun(kind: type[verbs.Asked]) -> str:
    return kind.verb.partition(".")[0]


def _order(kind: type[verbs.Asked]) -> tuple[str, str, str]:
    return _noun(kind), kind.verb, kind.asked_of


def _section(kind: type[verbs.Asked]) -> str:
    facts = [f"asked of {kind.asked_of}", f"right `{kind.right}`"]
    facts += [f"changes {kind.effect.value}"]
    facts += [] if kind.is_idempotent else ["not idempotent"]
    facts += [f"`onyx {kind.verb.replace('.', ' ')}`"] if kind.is_command else []
    facts += [f"`{kind.route}`"] if kind.route else []
    answer = kind.answer.__name__
    facts += [
        f"answer [{answer}](#{answer.lower()})" if kind.answer is not dict else "answer: a map"
    ]
    said = _text(kind.__doc__)
    rows = [
        f"| `{field.name}` | {_type(field)} | {_meaning(field)} |"
        for field in msgspec.structs.fields(kind)
    ]
    table = ["", "| argument | value | |", "| --- | --- | --- |", *rows] if rows else []
    return "\n".join([f"### `{kind.verb}`\n", f"{said}\n", "; ".join(facts) + ".", *table, ""])


def _answer(kind: type[Shown]) -> str:
    renamed = {of.name: of.encode_name for of in msgspec.structs.fields(kind)}
    rows = [
        f"| `{field.name}`{_renamed(renamed[field.name], field.name)} | {_type(field)} |"
        for field in msgspec.structs.fields(as_shown(kind))
    ]
    table = ["", "| field | value |", "| --- | --- |", *rows] if rows else []
    return "\n".join([f"### {kind.__name__}\n", _text(kind.__doc__), *table, ""])


def _renamed(wire: str, name: str) -> str:
    return "" if wire == name else f" (`{wire}`)"


def _records() -> Iterator[type[Shown]]:
    found = {kind.answer for kind in verbs.TABLE if kind.answer is not dict}
    while more := {part for kind in found for part in _parts(kind)} - found:
        found |= more
    return iter(sorted(found, key=lambda kind: kind.__name__))


def _parts(kind: type[Shown]) -> Iterator[type[Shown]]:
    hints: list[Any] = [field.type for field in msgspec.structs.fields(kind)]
    for hint in hints:
        hints += get_args(hint)
        if isinstance(hint, type) and issubclass(hint, Shown):
            yield hint


def _text(said: str | None) -> str:
    return " ".join((said or "").split()).replace("``", "`")


def _meaning(field: msgspec.structs.FieldInfo) -> str:
    return str(_schema(field.type).get("description", "")).replace("|", "\\|")


def _schema(hint: Any) -> dict[str, Any]:
    parts = [each for each in get_args(hint) if each is not msgspec.UnsetType]
    is_optional = msgspec.UnsetType in get_args(hint)
    (schema,), _ = msgspec.json.schema_components([parts[0] if is_optional else hint])
    return schema


BOUNDS = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("minLength", "at least {} long"),
    ("maxLength", "at most {} long"),
    ("maxItems", "at most {}"),
)


def _type(field: msgspec.structs.FieldInfo) -> str:
    said = _named(_schema(field.type))
    if field.required:
        return said
    default = field.default if field.default_factory is msgspec.NODEFAULT else None
    is_plain = isinstance(default, str | int | float) and default not in ("", False)
    shown = f"{default:.15g}" if isinstance(default, float) else default
    return f"{said}; may be left out" + (f" (`{shown}`)" if is_plain else "")


def _named(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return f"a {schema['$ref'].rpartition('/')[2]}"
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_named(each) for each in schema["anyOf"])
    kind = str(schema.get("type", "anything"))
    if kind == "array" and "prefixItems" in schema:
        kind = f"[{', '.join(_named(each) for each in schema['prefixItems'])}]"
    elif kind == "array":
        kind = f"list of {_named(schema.get('items', {}))}"
    elif "contentEncoding" in schema:
        kind = "bytes"
    bounds = [text.format(f"{schema[key]:,.15g}") for key, text in BOUNDS if key in schema]
    return ", ".join([kind, *bounds])


def test_the_page_is_made_of_the_records() -> None:
    assert DOCUMENT.read_text() == page(), "python -m tests.test_verb_tables"


def test_methods_of_http_promise_no_more_than_verbs_keep() -> None:
    """GET changes nothing; PUT and DELETE are idempotent."""
    for kind in verbs.TABLE:
        method = kind.route.partition(" ")[0] or "POST"
        assert (method == "GET") <= (kind.effect is verbs.Effect.NONE) <= kind.is_idempotent
        assert method == "POST" or kind.is_idempotent, kind.verb


def test_no_verb_is_described_in_a_second_table() -> None:
    """The other documents say how verbs play together, not what their arguments are."""
    text = (DOCUMENT.parent / "protocol.md").read_text()
    names = "|".join(re.escape(kind.verb) for kind in verbs.TABLE)
    assert re.findall(rf"^\| `(?:{names})`", text, re.MULTILINE) == []


if __name__ == "__main__":
    DOCUMENT.write_text(page())

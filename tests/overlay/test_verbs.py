"""Every verb's record is read as it was asked, and a wrong value is refused with its argument."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import fields

from overlay import verbs
from overlay.link.request_server import RequestRefused, read

KINDS = verbs.TABLE
WRONG: tuple[object, ...] = (7.5, -1, True, "a word", b"bytes", [3], {"a": 3}, [["x"]], {"a": "b"})


def sample(hint: Any) -> Any:
    """A value that fits a field's annotation."""
    inner, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    least = max((m.min_length or 0 for m in marks if isinstance(m, Meta)), default=0)
    origin, inside = get_origin(inner), get_args(inner)
    if origin in (Union, UnionType):
        return sample(next(each for each in inside if each is not UnsetType))
    if origin is Literal:
        return inside[0]
    if isinstance(inner, type) and issubclass(inner, Struct):
        return inner()
    if origin is list:
        return [sample(inside[0])]
    if origin is tuple:
        return tuple(map(sample, inside))
    if origin is dict:
        return {"some": sample(inside[1])}
    plain = {str: "a", bytes: b"a" * max(least, 1), bool: True, int: 3, float: 3.0, Any: "a"}
    return plain[inner]


def fields_of(kind: type[verbs.Asked]) -> Iterator[tuple[str, Any]]:
    hints = get_type_hints(kind, include_extras=True)
    return ((name, hints[name]) for name in kind.__struct_fields__)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_is_read_as_it_was_asked(kind: type[verbs.Asked]) -> None:
    asked = kind(**{name: sample(hint) for name, hint in fields_of(kind)})
    assert read(kind, asked.arguments()) == asked
    assert read(kind, {**asked.arguments(), "of_a_later_release": 1}) == asked


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_wrong_value_is_refused_with_its_argument(kind: type[verbs.Asked]) -> None:
    asked = {name: sample(hint) for name, hint in fields_of(kind)}
    for name in asked:
        refused = 0
        for wrong in WRONG:
            try:
                found = read(kind, {**asked, name: wrong})
            except RequestRefused as refusal:
                refused += 1
                assert refusal.code in ("bad-argument", "too-long")
                assert str(refusal).startswith(f"{kind.verb}: {name!r}"), refusal
                assert refusal.code == "too-long" or refusal.fault.where.startswith(name)
            else:
                assert getattr(found, name) is not UNSET
        assert refused >= len(WRONG) - 3, (name, "takes nearly anything")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_required_argument_that_lacks_is_named(kind: type[verbs.Asked]) -> None:
    asked = {name: sample(hint) for name, hint in fields_of(kind)}
    for field in fields(kind):
        rest = {key: value for key, value in asked.items() if key != field.name}
        if field.required:
            with pytest.raises(RequestRefused) as caught:
                read(kind, rest)
            assert str(caught.value) == f"{kind.verb}: {field.name!r} is not given"
        else:
            read(kind, rest)


def test_a_name_is_bounded_by_its_bytes() -> None:
    for source in ("é" * 129, "a" * 257):
        with pytest.raises(RequestRefused, match="at most 256") as caught:
            read(verbs.SourceShow, {"source": source})
        assert caught.value.code == "too-long"
    assert read(verbs.SourceShow, {"source": "é" * 128}).source == "é" * 128

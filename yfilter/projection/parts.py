"""Parts: what of a ``return`` clause can be computed on the way (section 4.2.2, restructuring).

A *part* is an expression there that depends on nothing but the bound element, so its value can be
computed at any broker that has what it looks at, once for all profiles that have the part::

    for $n in //nitf where $n/head/@id = 5 return
        <news>{$n/head/title}<body>{for $p in $n/body/* where not($p/img) return $p}</body></news>
        └───────────────────────────────────── a part ───────────────────────────────────────────┘
                                   └───────────────── a part in it ───────────────┘

The value, a *piece* of markup, travels beside the message, by the element and the part's digest.
Nothing is put into the message itself, where wildcards would see it.  A broker that has a piece
takes it in place of the expression: as a result, or as content of a larger part.

A part stands where its value becomes content of constructors without namespaces, alone between
braces; so its markup is the same wherever it is computed.  Its text is in terms of ``$binding``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b

import msgpack

from formats.compression import Compression, compress, decompress
from formats.errors import DecodeError
from yfilter.engine.tree_patterns import element_test
from yfilter.errors import ProfileRefused
from yfilter.language import query_ast as ast
from yfilter.language.functions import ANYTHING, ItemKind
from yfilter.language.matching_path import matching_part
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import reread
from yfilter.language.query_text import unparse
from yfilter.language.trees import Tree, changed
from yfilter.projection.needs import Kept, Kind, Need
from yfilter.projection.profile_needs import (
    BINDING,
    NEED_LENGTH_MAX,
    PathUsage,
    UsesEverything,
    needs_of,
)

# -------------------------------------------------------------------------------------------------
# Pieces travel packed, zstd where that is shorter::
#
#     0 | 1         as it is, or compressed
#     msgpack       [digests], [element, digest's place, size, ...], markup end to end


Pieces = Mapping[tuple[int, str], bytes]

PIECES_BYTES_MAX = 1 << 26  # of one message, as they are

_AS_IT_IS, _COMPRESSED = b"\x00", b"\x01"
_COMPRESSED_FROM = 128  # bytes; less is hardly ever made shorter


def pack_pieces(pieces: Pieces) -> bytes:
    """b"" for none."""
    if not pieces:
        return b""
    places: dict[str, int] = {}
    rows: list[int] = []
    for (element, digest), markup in pieces.items():
        rows += (element, places.setdefault(digest, len(places)), len(markup))
    packed: bytes = msgpack.packb([list(places), rows, b"".join(pieces.values())])
    if len(packed) >= _COMPRESSED_FROM:
        shorter = compress(packed, Compression.ZSTD)
        if len(shorter) < len(packed):
            return _COMPRESSED + shorter
    return _AS_IT_IS + packed


def unpack_pieces(data: bytes, elements: int, bytes_max: int) -> Pieces:
    """The pieces of a message with so many elements; DecodeError."""
    if not data:
        return {}
    packed = data[1:]
    if data[:1] == _COMPRESSED:
        packed = decompress(packed, Compression.ZSTD, bytes_max)
    elif data[:1] != _AS_IT_IS:
        raise DecodeError("bad-pieces", "pieces are neither compressed nor as they are")
    try:
        digests, rows, markup = msgpack.unpackb(packed, strict_map_key=True)
        pieces: dict[tuple[int, str], bytes] = {}
        start = 0
        for at in range(0, len(rows), 3):
            element, place, size = rows[at : at + 3]
            if not (0 <= element < elements and 0 <= place < len(digests) and size >= 0):
                raise ValueError("a number out of range")
            pieces[element, str(digests[place])] = bytes(markup[start : start + size])
            start += size
        if start != len(markup):
            raise ValueError("markup is left over")
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise DecodeError("bad-pieces", f"pieces cannot be read: {error}") from None
    return pieces


PART_TEXT_MAX = 4096  # characters; what is larger is left to the host

_DIGEST_BYTES = 8
_ANYWHERE = ((True, ast.ANY_NAME),)
_BEFORE = f"for ${ast.PART_VARIABLE} in //* return "
_NOTHING = ast.Literal("")


@dataclass(frozen=True, slots=True)
class KnownPart:
    """``expression`` is in terms of ``$binding``, with its own parts, ``inner``, put in."""

    digest: str
    text: str
    expression: ast.Expression
    inner: tuple[KnownPart, ...]

    def with_all_inner(self) -> Iterator[KnownPart]:
        """The part itself and all in it, a larger one before those in it."""
        yield self
        for part in self.inner:
            yield from part.with_all_inner()


@lru_cache(maxsize=4096)
def with_parts(profile: ast.Profile) -> tuple[ast.Profile, tuple[KnownPart, ...]]:
    """The profile with its largest parts put in, and these parts; itself if it has none."""
    flwor = profile.flwor
    if flwor is None or flwor.group is not None or not flwor.clauses or not _is_plain(profile.body):
        return profile, ()
    first = flwor.clauses[0]
    if not isinstance(first, ast.ForClause):
        return profile, ()
    if first.path.origin is not ast.Origin.MESSAGE or not matching_part(profile).binds:
        return profile, ()
    found: list[KnownPart] = []
    # What is not in a constructor is a document for each item.
    if not isinstance(flwor.result, ast.Constructor):
        return profile, ()
    result = _with_part(flwor.result, first.variable, found)
    return (_with_result(profile, flwor, result) if found else profile), tuple(found)


def without_parts(profile: ast.Profile) -> ast.Profile:
    """A profile that ``with_parts`` gave, with nothing in the place of its parts."""
    flwor = profile.flwor
    assert flwor is not None
    result = flwor.result
    if isinstance(result, ast.Part):
        # It always yields an element, which nothing goes into.
        assert isinstance(result.expression, ast.Constructor)
        result = ast.Constructor(
            result.expression.name, declarations=result.expression.declarations
        )
    return _with_result(profile, flwor, _left_out(result, None))


@lru_cache(maxsize=4096)
def part_of_text(text: str) -> KnownPart:
    """The part of a text; ProfileRefused if it is none."""
    body = reread(_BEFORE + text).body if len(text) <= PART_TEXT_MAX else None
    part = _part_of(body.result, ast.PART_VARIABLE) if isinstance(body, ast.Flwor) else None
    if part is None or part.text != text:
        raise ProfileRefused(
            "not-a-part", "not a part of a profile", text[:200], expected="a part's text"
        )
    return part


@lru_cache(maxsize=4096)
def looked_at(part: KnownPart, chosen: frozenset[str]) -> tuple[Kept, ...]:
    """What a part looks at, seen from its element; without what the ``chosen`` of the parts in it
    look at, which are given by digest and may be the part itself."""
    if part.digest in chosen:
        return (Kept((), Kind.NODE),)
    usage = _path_usage(_left_out(part.expression, chosen))
    assert usage is not None
    return usage


# -- what is a part


def _with_part(expression: ast.Expression, variable: str, found: list[KnownPart]) -> ast.Expression:
    """The expression as a part, or with parts put into its content."""
    part = _part_of(expression, variable)
    if part is not None:
        found.append(part)
        return ast.Part(variable, part.digest, part.expression)
    if isinstance(expression, ast.Constructor) and _is_plain(expression):
        return _with_content(expression, variable, found)
    return expression


def _with_content(
    constructor: ast.Constructor, variable: str, found: list[KnownPart]
) -> ast.Constructor:
    content = tuple(
        piece if isinstance(piece, str) else _with_part(piece, variable, found)
        for piece in constructor.content
    )
    return replace(constructor, content=content)


def _part_of(expression: ast.Expression, variable: str) -> KnownPart | None:
    if expression.is_location or isinstance(expression, ast.Literal | ast.Markup):
        return None  # of which the message itself is the shortest form
    if not _is_closed(expression, variable):
        return None
    kinds = expression.kinds({variable: ItemKind.ELEMENT}, ANYTHING)
    if kinds & (ItemKind.ATTRIBUTE | ItemKind.DOCUMENT):
        return None
    expression = _renamed(expression, variable)
    text = unparse(expression)
    usage = _path_usage(expression)
    if len(text) > PART_TEXT_MAX or usage is None or usage == (Kept((), Kind.NODE),):
        return None
    inner: list[KnownPart] = []
    if isinstance(expression, ast.Constructor) and _is_plain(expression):
        expression = _with_content(expression, ast.PART_VARIABLE, inner)
    digest = blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()
    return KnownPart(digest, text, expression, tuple(inner))


def _is_plain(expression: ast.Expression) -> bool:
    """Whether what is in it, if it is a constructor, is in no namespace by default."""
    return not isinstance(expression, ast.Constructor) or not expression.declarations


def _is_closed(expression: ast.Expression, variable: str) -> bool:
    """Whether no other variable comes into it, and none of the names means two things.

    A declared function, whose calls only a message bounds, is left to the host.
    """
    if any(isinstance(part, ast.UserCall) for part in expression.within()):
        return False
    bound = {name for part in expression.within() for name in part.binds()}
    is_free = expression.free_variables() <= {variable}
    return is_free and not bound & {variable, ast.PART_VARIABLE}


def _path_usage(expression: ast.Expression) -> tuple[Kept, ...] | None:
    """From the element; None if it is not only about what is in the element."""
    usage = PathUsage(_ANYWHERE, {ast.PART_VARIABLE: (BINDING,)})
    try:
        usage.value(expression, Kind.SUBTREE)
    except (UsesEverything, RecursionError):
        return None
    if usage.in_message:
        return None
    usage.mark((BINDING,), Kind.NODE)
    kept = tuple(usage.at_binding)
    return tuple(one for one in kept if not any(o.covers(one) for o in kept if o != one))


# -- trees


def _with_result(profile: ast.Profile, flwor: ast.Flwor, result: ast.Expression) -> ast.Profile:
    changed = replace(flwor, result=result)
    body = profile.body
    if isinstance(body, ast.Constructor):
        content = tuple(changed if part is flwor else part for part in body.content)
        return ast.Profile(replace(body, content=content), profile.text)
    return ast.Profile(changed, profile.text)


def _left_out(tree: Tree, chosen: frozenset[str] | None) -> Tree:
    """With nothing in the place of the parts that are chosen, all for None, and the others
    themselves."""

    def change(node: object) -> object:
        if not isinstance(node, ast.Part):
            return node
        if chosen is None or node.digest in chosen:
            return _NOTHING
        return _left_out(node.expression, chosen)

    return changed(tree, change)


def _renamed(expression: ast.Expression, variable: str) -> ast.Expression:
    def change(node: object) -> object:
        if isinstance(node, ast.Expression) and node.is_location and node.refers() == variable:
            return ast.variable(ast.PART_VARIABLE, *node.steps)
        return node

    return changed(expression, change)


# -------------------------------------------------------------------------------------------------
# Needs for parts, each of which leaves it to a link whether the piece is sent, or all that the part
# looks at (``with_path_usage``), or pieces for parts in it and what is left.
#
#     return <news>{$n/title}{string-join($n/k)}</news>      needs_of        subtree title, value k
#                                                            part_needs_of   part . return <news>…


def part_needs_of(profile: Profile) -> tuple[Need, ...]:
    """As ``needs_of``, with the largest parts of the profile as such."""
    put_in, parts = with_parts(profile)
    if not parts:
        return needs_of(profile)
    path = matching_part(profile).path
    structure = tuple((step.descendant, element_test(step)) for step in path.steps)
    needs = []
    found = False
    for need in needs_of(without_parts(put_in)):
        length = len(need.binding)
        if length and need.binding == structure[:length]:
            rest = structure[length:]
            kept = [Kept(rest, Kind.PART, part=part.text) for part in parts]
            is_whole = any(one.covers(kept[0]) for one in need.kept)
            needs.append(need if is_whole else replace_kept(need, (*need.kept, *kept)))
            found = True
        else:
            needs.append(need)
    if not found or any(len(need.text) > NEED_LENGTH_MAX for need in needs):
        return needs_of(profile)
    return tuple(sorted(set(needs), key=str))


def with_path_usage(need: Need, chosen: frozenset[str]) -> Need:
    """With what its parts look at, but for the parts that are ``chosen``, by digest."""
    if not any(kept.kind is Kind.PART for kept in need.kept):
        return need
    used: dict[Kept, None] = dict.fromkeys(need.kept)
    for kept in need.kept:
        if kept.kind is Kind.PART:
            for one in looked_at(part_of_text(kept.part), chosen):
                used[replace(one, steps=kept.steps + one.steps)] = None
    if len(used) == len(need.kept):
        return need
    plain = [one for one in used if one.kind is not Kind.PART]
    kept_for_others = {one for one in plain if any(o.covers(one) for o in plain if o != one)}
    return replace_kept(need, (one for one in used if one not in kept_for_others))


def replace_kept(need: Need, kept: Iterable[Kept]) -> Need:
    return Need(need.binding, need.condition, tuple(kept))

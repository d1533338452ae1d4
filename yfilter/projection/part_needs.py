"""The needs of a profile in terms of parts, and what such needs come to where parts are computed.

::

    return <news>{$n/title}{string-join($n/k)}</news>      needs_of        subtree title, value k
                                                           part_needs_of   part . return <news>…

A need for a part leaves it to each link whether the piece is sent, or all that the part looks at
(``with_looks``), or pieces for parts in it and what is left.  Whoever gets either is content.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from yfilter.engine.step_conditions import element_test
from yfilter.language.matching_path import matching_part
from yfilter.language.query_ast import Profile
from yfilter.projection.needs import Kept, Kind, Need
from yfilter.projection.parts import looked_at, part_of_text, with_parts, without_parts
from yfilter.projection.profile_needs import NEED_LENGTH_MAX, needs_of


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


def with_looks(need: Need, chosen: frozenset[str]) -> Need:
    """With what its parts look at, but for the parts that are ``chosen``, by digest."""
    if not any(kept.kind is Kind.PART for kept in need.kept):
        return need
    looks: dict[Kept, None] = dict.fromkeys(need.kept)
    for kept in need.kept:
        if kept.kind is Kind.PART:
            for one in looked_at(part_of_text(kept.part), chosen):
                looks[replace(one, steps=kept.steps + one.steps)] = None
    if len(looks) == len(need.kept):
        return need
    plain = [one for one in looks if one.kind is not Kind.PART]
    kept_for_others = {one for one in plain if any(o.covers(one) for o in plain if o != one)}
    return replace_kept(need, (one for one in looks if one not in kept_for_others))


def replace_kept(need: Need, kept: Iterable[Kept]) -> Need:
    return Need(need.binding, need.condition, tuple(kept))

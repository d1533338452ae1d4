"""HostedRows: the profiles of a broker on its disk, with recipes, so that a restart parses none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from overlay import verbs
from overlay.link.durable import StoredMap
from overlay.link.principal import Principal
from overlay.link.row_log import RowLog
from overlay.link.stored_rows import StoredRows
from overlay.link.tables import Row, Table
from yfilter.engine.linear_paths import Conjunction
from yfilter.engine.routing_templates import routing_query_of
from yfilter.language.profile_recipes import ProfileRecipes, language_digest
from yfilter.language.query_ast import Profile
from yfilter.language.query_parser import parse_accepted


class HostedProfile(NamedTuple):
    """A profile whose host broker this is; ``unclaimed_since``: the second of the calendar since
    when nobody has claimed it (user_parts.py), 0 if somebody has."""

    profile: str
    user: str
    text: str
    version: int
    unclaimed_since: int = 0

    @property
    def disjuncts(self) -> tuple[Conjunction, ...]:
        """Its routing query, found out each time."""
        return routing_query_of(parse_accepted(self.text))


SUSPENDED = Table("suspended", str)  # by profile: why


class HostedProfiles(dict[str, HostedProfile]):
    """By id; ``suspended``: why profiles are not evaluated whose user has spent their processor
    time, until their text is given again; ``asked``: the source and number of the message that they
    were asked about last."""

    def __init__(self, rows: RowLog) -> None:
        super().__init__()
        self.suspended = StoredMap(rows, SUSPENDED)
        self.asked = "", 0

    def named_in(self, asked: verbs.Asked, asker: Principal) -> Iterator[tuple[str, str]]:
        """The profiles that a request names and that are here, with their owners."""
        for profile in verbs.profiles_named(asked):
            hosted = self.get(profile)
            if hosted is not None:
                yield profile, f"user/{hosted.user}"

    def text_of(self, profile: str) -> str:
        """What a profile says, "" if it is gone."""
        hosted = self.get(profile)
        return "" if hosted is None else hosted.text

    def user_of(self, profile: str) -> str | None:
        hosted = self.get(profile)
        return None if hosted is None else hosted.user


class OverBudget(NamedTuple):
    """News that a profile has taken too much of a message, ``code`` and ``why`` as is told."""

    profile: str
    source: str
    number: int
    code: str
    why: str


class _HostedRow(Row, frozen=True):
    """Its key is the profile."""

    user: str
    text: str
    version: int
    recipe: list[object] | None = None
    unclaimed_since: int = 0


HOSTED = Table("hosted", _HostedRow)
_SHAPES = Table("profile-shape", str)  # by number
_LANGUAGE = Table("profile-language", str)  # in which these are shapes: its digest
_CURRENT = "current"


class HostedRows:
    """Each profile with its text and, where it has one, its recipe; shapes beside them.

    Recipes of another version of the language are not read: the texts are parsed, and recipes
    made anew.
    """

    def __init__(self, rows: RowLog) -> None:
        self._rows = rows
        self._recipes = ProfileRecipes()
        self._is_marked = False  # whether it is stored in which language the recipes are

    def restore(self, rows: StoredRows) -> Iterator[tuple[HostedProfile, Profile]]:
        """All that were put."""
        is_of_now = dict(rows.take(_LANGUAGE)).get(_CURRENT) == language_digest()
        self._is_marked = is_of_now
        for number, text in rows.take(_SHAPES):
            if is_of_now:
                self._recipes.restore(int(number), text)
            else:
                _SHAPES.delete(self._rows, number)
        for profile, row in rows.take(HOSTED):
            hosted = HostedProfile(profile, row.user, row.text, row.version, row.unclaimed_since)
            if is_of_now and row.recipe is not None:
                yield hosted, self._recipes.read(row.recipe, row.text)
                continue
            parsed = parse_accepted(row.text)
            if not is_of_now:
                self.put(hosted, parsed)
            yield hosted, parsed

    def put(self, hosted: HostedProfile, parsed: Profile) -> None:
        recipe = self._recipes.write(parsed)
        for number, text in self._recipes.new.items():
            _SHAPES.put(self._rows, str(number), text)
        self._recipes.new.clear()
        if not self._is_marked:
            self._is_marked = True
            _LANGUAGE.put(self._rows, _CURRENT, language_digest())
        since = hosted.unclaimed_since
        row = _HostedRow(hosted.user, hosted.text, hosted.version, recipe, since)
        HOSTED.put(self._rows, hosted.profile, row)

    def delete(self, profile: str) -> None:
        HOSTED.delete(self._rows, profile)

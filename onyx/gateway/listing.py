"""Listing: one page of a list as the query of its URL asks, for all lists of the pages.

``?search=`` is a text that a row has in one of its columns, ``?sort=`` a column (``-column``: from
the last on), ``?page=`` counts from 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, NamedTuple
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request

from onyx.gateway.refusals import bad_argument

ROWS = 100  # of a list on one page
PAGE_MAX = 1_000_000


class Column(NamedTuple):
    """``of``: the value of a row, by which rows are found and sorted; None: rows are not sorted by
    it, or only by the process that lists them (``is_sorted``)."""

    label: str
    of: Callable[[Any], Any] | None = None
    is_number: bool = False
    is_sorted: bool = False


@dataclass(slots=True)
class Listing:
    """``rows`` of this page; whether there are ``more`` behind it."""

    query: Mapping[str, str]
    columns: Mapping[str, Column]
    search: str
    sort: str
    is_descending: bool
    page: int
    rows: list[Any] = field(default_factory=list)
    more: bool = False

    @staticmethod
    def asked(request: Request, columns: Mapping[str, Column]) -> Listing:
        """Without rows; RequestFailed for a column or a page that there cannot be."""
        query = dict(request.query_params)
        said, page = query.get("sort", ""), query.get("page", "1")
        sort = said.removeprefix("-")
        sortable = [name for name, each in columns.items() if each.of or each.is_sorted]
        if sort and sort not in sortable:
            raise bad_argument("sort", f"one of {', '.join(sortable)}")
        if not (page.isdecimal() and page.isascii() and 1 <= int(page[:9]) <= PAGE_MAX):
            raise bad_argument("page", f"a number from 1 to {PAGE_MAX:,}")
        is_descending = said.startswith("-")
        return Listing(query, columns, query.get("search", ""), sort, is_descending, int(page[:9]))

    @property
    def skip(self) -> int:
        """How many rows the pages before this one have."""
        return (self.page - 1) * ROWS

    def of(self, rows: Iterable[Any]) -> Listing:
        """With those of all ``rows`` that are on this page."""
        keys = [each.of for each in self.columns.values() if each.of]
        wanted = self.search.casefold()
        found = [row for row in rows if any(wanted in str(key(row)).casefold() for key in keys)]
        if self.sort and (key := self.columns[self.sort].of):
            found.sort(key=lambda row: _in_order(key(row)), reverse=self.is_descending)
        return self.filled(found[self.skip :])

    def filled(self, rows: list[Any]) -> Listing:
        """With ``rows`` from the first of this page on."""
        self.rows, self.more = rows[:ROWS], len(rows) > ROWS
        return self

    # --- what the template writes (listing.html) ---

    def link(self, **changed: str | int) -> str:
        """The query of the same list with something else in it."""
        return f"?{urlencode({**self.query, **changed})}"

    def order(self, name: str) -> str:
        """As ``aria-sort`` says it."""
        if name != self.sort:
            return "none"
        return "descending" if self.is_descending else "ascending"

    def turned(self, name: str) -> str:
        """The link of a column's header: sorted by it, or the other way round."""
        is_turned = name == self.sort and not self.is_descending
        return self.link(sort=f"-{name}" if is_turned else name, page=1)

    def labelled(self, cells: Markup) -> Markup:
        """The cells of a row, each with the label of its column, which a phone shows beside it."""
        labels = iter(escape(each.label) for each in self.columns.values())
        return Markup(re.sub("<td", lambda _: f'<td data-label="{next(labels)}"', cells))


def _in_order(value: Any) -> tuple[bool, Any]:
    """Numbers and texts in their order, None behind them."""
    return value is None, value.casefold() if isinstance(value, str) else value or 0

"""A list of a page: searched, sorted, and in pages, by the query of its URL."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import pytest
from markupsafe import Markup
from starlette.requests import Request

from onyx.errors import RequestFailed
from onyx.gateway.listing import ROWS, Column, Listing

COLUMNS = {
    "name": Column("Name", lambda row: row[0]),
    "size": Column("Size", lambda row: row[1], is_number=True),
    "more": Column("More"),
}


def listing(query: str, *rows: tuple[str, int | None]) -> Listing:
    scope: dict[str, Any] = {"type": "http", "query_string": query.encode(), "headers": []}
    return Listing.asked(Request(scope), COLUMNS).of(rows)


def test_a_text_in_any_column_finds_a_row() -> None:
    rows = ("Wire", 12), ("feed", 3)
    assert listing("search=WIR", *rows).rows == [("Wire", 12)]
    assert listing("search=3", *rows).rows == [("feed", 3)]
    assert listing("search=none", *rows).rows == []


def test_rows_are_sorted_by_a_column_and_those_without_a_value_come_last() -> None:
    rows = ("b", 10), ("A", None), ("c", 9)
    assert [row[0] for row in listing("sort=name", *rows).rows] == ["A", "b", "c"]
    assert [row[1] for row in listing("sort=size", *rows).rows] == [9, 10, None]
    assert listing("sort=-name", *rows).order("name") == "descending"
    assert [row[0] for row in listing("sort=-name", *rows).rows] == ["c", "b", "A"]


def test_a_page_has_some_rows_and_links_to_the_others() -> None:
    rows = [(f"{n:04}", n) for n in range(2 * ROWS + 1)]
    first, last = listing("search=0", *rows), listing("page=3", *rows)
    assert (len(first.rows), first.more) == (ROWS, True)
    assert parse_qs(first.link(page=2)[1:]) == {"search": ["0"], "page": ["2"]}
    assert (last.rows, last.more) == (rows[-1:], False)


def test_a_header_turns_the_order() -> None:
    assert "sort=-name" in listing("sort=name").turned("name")
    assert "sort=size" in listing("sort=name").turned("size")


@pytest.mark.parametrize("query", ["sort=more", "sort=else", "page=0", "page=x", "page=1000001"])
def test_a_column_or_page_that_cannot_be_is_refused(query: str) -> None:
    with pytest.raises(RequestFailed, match="expected"):
        listing(query)


def test_cells_have_the_labels_of_their_columns() -> None:
    cells = Markup('<td>a</td><td class="n">1</td>')
    expected = '<td data-label="Name">a</td><td data-label="Size" class="n">1</td>'
    assert listing("").labelled(cells) == expected

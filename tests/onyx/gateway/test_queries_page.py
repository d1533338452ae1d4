"""The page of queries: a catalog as its user may use it, a plan drawn, and reasons."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from lxml import html

from demo.queries import figure1
from onyx.gateway.gateway_process import PAGES, _templates


def shown(catalog: tuple[Path, ...], **query: str) -> Any:
    """The page as its template writes it, read by lxml."""
    template, gather = PAGES["/queries"]
    options = SimpleNamespace(catalog=catalog)
    asked: Any = SimpleNamespace(
        gateway=SimpleNamespace(options=options), request=SimpleNamespace(query_params=query)
    )
    context = trio.run(gather, asked)
    text = _templates().get_template(template).render(navigation=(), path="/queries", **context)
    return html.fromstring(text)


@pytest.fixture
def market(tmp_path: Path) -> Path:
    return figure1.make(tmp_path, rows=20)


def texts(page: Any, path: str) -> list[str]:
    return [" ".join(each.text_content().split()) for each in page.xpath(path)]


def test_the_catalog_is_listed_and_a_plan_is_drawn(market: Path) -> None:
    page = shown((market,), sql=figure1.QUERY, user="ann")
    assert {"Cycle provider", "Relation", "Function", "Query plan"} <= set(texts(page, "//h2"))
    cells = texts(page, "//td")
    assert {"A.R", "B.T", "thumbnail"} <= set(cells)
    titles = texts(page, "//svg//g/title")
    assert any(each.startswith("scan") and "at B" in each for each in titles)
    assert not page.xpath("//style | //*[@style]"), "the page's policy forbids styles of its own"
    assert page.xpath("//textarea")[0].text == figure1.QUERY


def test_a_mistake_is_shown_at_its_place_and_as_text(market: Path) -> None:
    page = shown((market,), sql="SELECT <b>nome</b> FROM A.R")
    (said,) = texts(page, "//pre")
    assert "line 1" in said
    assert not page.xpath("//svg[.//g] | //b")
    market.write_text("no catalog")
    assert texts(shown((market,)), "//pre")


def test_a_gateway_without_a_catalog_says_how_it_gets_one() -> None:
    assert "onyx gateway --catalog" in texts(shown(()), "//main")[0]

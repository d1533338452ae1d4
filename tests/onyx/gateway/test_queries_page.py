"""The page of queries: a catalog as its user may use it, a plan drawn, and reasons."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from lxml import html

from demo.queries import figure1
from onyx.errors import RequestFailed
from onyx.gateway.call import Call
from onyx.gateway.gateway_process import PAGES, _templates
from onyx.identity.known_networks import INSECURE


def shown(
    catalog: tuple[Path, ...], of: str = "ann", *, operates: bool = False, **query: str
) -> Any:
    """The page as its template writes it for a user, read by lxml."""
    template, gather = PAGES["/queries"]
    gateway: Any = SimpleNamespace(options=SimpleNamespace(catalog=catalog))
    request: Any = SimpleNamespace(query_params=query)
    session: Any = SimpleNamespace(
        user_name=of, principal=f"user/{of}", operates=operates, credentials=Path(INSECURE)
    )
    context = trio.run(gather, Call(gateway, request, session, {}))
    text = _templates().get_template(template).render(navigation=(), path="/queries", **context)
    return html.fromstring(text)


@pytest.fixture
def market(tmp_path: Path) -> Path:
    return figure1.make(tmp_path, 20, figure1.free_ports())


def texts(page: Any, path: str) -> list[str]:
    return [" ".join(each.text_content().split()) for each in page.xpath(path)]


def test_the_catalog_is_listed_and_a_plan_is_drawn(market: Path) -> None:
    page = shown((market,), sql=figure1.QUERY)
    assert {"Cycle provider", "Relation", "Function", "Query plan"} <= set(texts(page, "//h2"))
    cells = texts(page, "//td")
    assert {"A.R", "B.T", "thumbnail"} <= set(cells)
    titles = texts(page, "//svg//g/title")
    assert any(each.startswith("scan") and "at B" in each for each in titles)
    assert not page.xpath("//style | //*[@style]"), "the page's policy forbids styles of its own"
    assert page.xpath("//textarea")[0].text == figure1.QUERY
    assert not page.xpath("//input"), "the user is the one of the session"
    away = ["A does not answer.", "B does not answer."]
    assert texts(page, "//*[@class='bad']") == away


def test_only_operators_look_at_a_catalog_as_another_user(market: Path) -> None:
    with market.open("a") as file:
        file.write(':rule a q:Permission ; q:subject "user/ben" ; q:right "read" ; q:resource :R .')

    def places(page: Any) -> str:
        (row,) = page.xpath("//tr[td[1] = 'A.R']")
        return str(row.xpath("td[6]")[0].text)

    assert places(shown((market,))) == "–"
    assert places(shown((market,), "ben")) == "A"
    seen = shown((market,), "", operates=True, user="ben")
    assert (places(seen), seen.xpath("//input/@value")) == ("A", ["ben"])
    with pytest.raises(RequestFailed) as refused:
        shown((market,), user="ben")
    assert refused.value.code == "not-authorised"


def test_a_mistake_is_shown_at_its_place_and_as_text(market: Path) -> None:
    page = shown((market,), sql="SELECT <b>nome</b> FROM A.R")
    (said,) = texts(page, "//pre")
    assert "line 1" in said
    assert not page.xpath("//svg[.//g] | //b")
    market.write_text("no catalog")
    assert texts(shown((market,)), "//pre")


def test_a_gateway_without_a_catalog_says_how_it_gets_one() -> None:
    assert "onyx gateway --catalog" in texts(shown(()), "//main")[0]

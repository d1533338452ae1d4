"""The pages, in a real browser: skipped where there is none."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import pytest

from tests.hanging import SAFETY_SECONDS
from tests.onyx.gateway.browsing import Client

pytest.importorskip("playwright")
pytest.importorskip("axe_playwright_python")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Request, sync_playwright

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium")
ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
SCHEMES: tuple[Literal["dark", "light"], ...] = ("dark", "light")
PAGES = ("/", "/brokers", "/brokers/B1", "/links/B1/B2", "/sources", "/profiles", "/playground",
         "/trace", "/changes", "/dead", "/metadata", "/queries", "/access", "/tokens",
         "/audit", "/me", "/sign-in")  # fmt: skip

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


class Watched:
    """A page with what went wrong on it, or left the gateway."""

    def __init__(self, browser: Browser, client: Client) -> None:
        self.client = client
        self.context = browser.new_context(color_scheme="light")
        self.context.set_default_timeout(SAFETY_SECONDS * 1000)
        self.page: Page = self.context.new_page()
        self.wrong: list[str] = []
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", self._asked)
        self.page.on("requestfailed", self._failed)

    def open(self, path: str) -> Page:
        answer = self.page.goto(f"{self.client.url.rstrip('/')}{path}")
        assert answer is not None
        assert answer.status == 200, path
        return self.page

    def check(self, where: str) -> None:
        """No errors, no request outside, nothing that keeps anybody out, in light and in dark."""
        for scheme in SCHEMES:
            self.page.emulate_media(color_scheme=scheme)
            found = Axe().run(self.page).response["violations"]
            said = [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]
            assert not said, (where, scheme)
        assert self.wrong == [], where

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.wrong.append(message.text)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith(self.client.url):
            self.wrong.append(f"outside: {request.url}")

    def _failed(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # as the page was left
            self.wrong.append(f"failed: {request.url}")


@pytest.fixture
def watched(browser: Browser, client: Client) -> Iterator[Watched]:
    found = Watched(browser, client)
    yield found
    found.context.close()


def test_every_page_opens_and_keeps_nobody_out(
    watched: Watched, client: Client, source: str
) -> None:
    profile = client.add_profile("/page")
    client.ask("POST", f"/v1/sources/{source}/messages", "<page>")  # a dead letter
    paths = (f"/profiles/{profile}", f"/profiles/{profile}/waiting", f"/sources/{source}")
    for path in (*PAGES, *paths):
        watched.open(path)
        watched.check(path)
    page = watched.open("/dead")
    page.locator("td a").first.click()
    page.locator("h1", has_text=source).wait_for()
    watched.check("a dead letter")
    client.ask("DELETE", f"/v1/profiles/{profile}")


def test_a_message_lights_the_map_and_arrives(
    watched: Watched, client: Client, source: str
) -> None:
    """Published by HTTP at B1, wanted at B3."""
    added = client.ask("POST", "/v1/profiles", {"text": "/lights", "location": [30, 0]})
    profile = added.said["id"]
    assert added.said["host"] == "B3"
    page = watched.open("/")
    page.locator("#up", has_text="3 of 3").wait_for()
    assert lit_points(page) == 0
    client.publish(source, "<lights>on</lights>")
    for link in ("B1-B2", "B2-B3"):
        page.locator(f'#map[data-crossed*="{link}"]').wait_for()
    give_up_at = time.monotonic() + SAFETY_SECONDS
    while lit_points(page) < 100:  # what is lit fades
        assert time.monotonic() < give_up_at
        client.publish(source, "<lights>on</lights>")
    page = watched.open(f"/profiles/{profile}")
    page.locator("#follow").click()
    page.locator("#results", has_text="<lights>on</lights>").first.wait_for()
    watched.check("a profile with results")
    client.ask("DELETE", f"/v1/profiles/{profile}")


def lit_points(page: Page) -> int:
    """Of the canvas, about as blue as what is lit."""
    return int(
        page.evaluate("""() => {
            const canvas = document.getElementById("map");
            const { width, height } = canvas;
            const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
            let lit = 0;
            for (let i = 0; i < data.length; i += 4)
                lit += data[i + 3] > 100 && data[i + 2] > data[i] + 60;
            return lit;
        }""")
    )


def test_the_playground_shows_results_hints_and_mistakes(
    watched: Watched, client: Client, source: str
) -> None:
    page = watched.open("/playground")
    page.locator("#verdict", has_text="It matches: 1 result.").wait_for()
    assert page.locator("#result").inner_text() == (
        "<stock_news><hedline>Markets calm</hedline></stock_news>"
    )
    watched.check("a match")
    page.fill("#message", '<nitf><head><pubdata edition.area="NY"/></head></nitf>')
    page.locator("#verdict", has_text="It does not match.").wait_for()
    page.locator(".part.fails", has_text='[@edition.area = "SF"]').wait_for()
    watched.check("no match")
    page.fill("#message", "<seen/>")
    page.fill("#profile", "/seen[a => 3]")
    page.locator("#said", has_text="line 1, column 9").wait_for()
    watched.wrong.clear()  # the browser says of the 422 that it is one
    page.locator(".wrong", has_text="=").wait_for()
    watched.check("a mistake")
    page.fill("#profile", "/seen")
    page.locator("#verdict", has_text="It matches").wait_for()
    page.locator("#save").click()
    page.locator("#said", has_text="is live").wait_for()
    profile = page.locator("#said").inner_text().partition(",")[0]
    page.locator("#publish").click()
    page.locator("#said", has_text=f"of {source}").wait_for()
    with client.events(f"/v1/results?profile={profile}") as events:
        next(events)
        assert next(events).data["results"] == ["<seen/>"]
    client.ask("DELETE", f"/v1/profiles/{profile}")


def test_the_playground_finds_matches_in_the_archive(
    watched: Watched, client: Client, source: str
) -> None:
    client.publish(source, "<found><n>7</n></found>")
    page = watched.open("/playground")
    page.fill("#profile", "/found/n")
    page.select_option("#archived", source)
    give_up_at = time.monotonic() + SAFETY_SECONDS
    while page.locator("#samples li").count() == 0:  # it is written a moment later
        assert time.monotonic() < give_up_at
        page.locator("#replay").click()
        page.locator("#replay", has_text="Find matches").and_(page.locator(":enabled")).wait_for()
        page.locator("#replayed", has_text="match").wait_for()
    assert "<n>7</n>" in page.locator("#samples").inner_text()
    watched.check("matches in the archive")


def test_a_policy_and_a_source_are_changed_on_their_pages(
    watched: Watched, client: Client, source: str
) -> None:
    profile = client.add_profile("/page")
    page = watched.open(f"/profiles/{profile}")
    page.locator("#kept summary").click()
    page.locator("#policy button:enabled").wait_for()
    page.select_option('[name="when_full"]', "disconnect")
    page.fill('[name="ttl_s"]', "90")
    page.locator("#policy button").click()
    page.locator("#policy-said", has_text="from now on").wait_for()
    kept = client.ask("GET", f"/v1/profiles/{profile}/policy").said
    assert (kept["when_full"], kept["ttl_s"], kept["attempts_max"]) == ("disconnect", 90, 5)
    watched.check("a policy")
    page = watched.open("/sources")
    page.locator("td a", has_text=source).first.click()
    page.fill('[name="rate"]', "12")
    page.locator("#change button").click()
    page.locator("#said", has_text="changed: rate").wait_for()
    assert client.ask("GET", f"/v1/sources/{source}").said["rate"] == 12
    watched.check("a source")
    client.ask("DELETE", f"/v1/profiles/{profile}")


def test_pages_fit_a_phone(watched: Watched, client: Client, source: str) -> None:
    """Nothing is wider than it; the menu opens, and each cell of a list says what it is."""
    profile = client.add_profile("/phone")
    watched.page.set_viewport_size({"width": 375, "height": 700})
    for path in (*PAGES, f"/profiles/{profile}", f"/sources/{source}"):
        page = watched.open(path)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 375, path
        watched.check(path)
    page = watched.open("/profiles")
    label = page.evaluate("getComputedStyle(document.querySelector('td'), '::before').content")
    assert label == '"Profile"'
    page.locator("#menu").click()
    watched.check("the menu")
    page.get_by_role("link", name="Sources").click()
    page.locator("h1", has_text="Sources").wait_for()
    client.ask("DELETE", f"/v1/profiles/{profile}")


def test_a_list_is_searched_and_sorted(watched: Watched, client: Client) -> None:
    added = [client.add_profile(f"/sorted{n}", user=user) for n, user in enumerate("bca")]
    page = watched.open("/profiles?user=")
    page.fill("#search", "SORTED")
    page.locator(".find button").click()
    page.get_by_role("link", name="User", exact=True).click()
    page.locator('th[aria-sort="ascending"]').wait_for()
    assert page.locator("td:nth-child(2)").all_inner_texts() == ["a", "b", "c"]
    watched.check("sorted")
    page.get_by_role("link", name="User", exact=True).click()
    page.locator('th[aria-sort="descending"]').wait_for()
    assert page.locator("td:nth-child(2)").all_inner_texts() == ["c", "b", "a"]
    page = watched.open("/profiles?user=&search=sorted&page=2")
    assert page.locator(".empty").inner_text() == "Nothing is found."
    for profile in added:
        client.ask("DELETE", f"/v1/profiles/{profile}")


def test_a_source_is_registered_and_a_dead_letter_replayed_and_dropped(
    watched: Watched, client: Client
) -> None:
    page = watched.open("/sources")
    page.on("dialog", lambda dialog: dialog.accept())
    page.locator("summary").click()
    page.fill('details [name="name"]', "by-hand")
    page.fill('details [name="rate"]', "2.5")
    page.locator("details button:enabled").click()
    page.locator("h1", has_text="by-hand").wait_for()
    source = client.ask("GET", "/v1/sources/by-hand").said
    assert (source["rate"], source["location"]) == (2.5, None)
    client.ask("POST", f"/v1/sources/{source['id']}/messages", "<unended>")
    page = watched.open(f"/dead?search={source['id']}")
    page.locator("td a").click()
    page.get_by_role("button", name="Replay").and_(page.locator(":enabled")).click()
    page.locator("#said", has_text="line 1").wait_for()  # it is refused again
    watched.wrong.clear()  # the browser says of the 422 that it is one
    page.get_by_role("button", name="Drop").click()
    page.locator("h1", has_text="Dead letters").wait_for()
    letters = client.ask("GET", "/v1/dead").said["letters"]
    assert [each["source"] for each in letters].count(source["id"]) == 1  # of the replay
    page = watched.open(f"/sources/{source['id']}")
    page.get_by_role("button", name="Remove").and_(page.locator(":enabled")).click()
    page.locator("h1", has_text="Sources").wait_for()


def test_results_that_wait_are_seen_and_stay(watched: Watched, client: Client, source: str) -> None:
    profile = client.add_profile("/waits")
    for text in ("one", "two"):
        client.publish(source, f"<waits>{text}</waits>")
    for _ in range(2):
        give_up_at = time.monotonic() + SAFETY_SECONDS
        while True:  # the second is on its way
            page = watched.open(f"/profiles/{profile}/waiting")
            shown = page.locator("pre").all_inner_texts()
            if len(shown) == 2:
                break
            assert time.monotonic() < give_up_at
        assert shown == ["<waits>one</waits>", "<waits>two</waits>"]
    watched.check("what waits")
    client.ask("DELETE", f"/v1/profiles/{profile}")


def test_rights_and_tokens_are_given_and_taken(watched: Watched, client: Client) -> None:
    page = watched.open("/access")
    page.on("dialog", lambda dialog: dialog.accept())
    page.fill('[name="principal"]', "user/hand")
    page.select_option('[name="role"]', "operate")
    page.locator("form .first:enabled").click()
    page.locator("tr", has_text="user/hand").get_by_role("button", name="Take").click()
    page.locator("tr", has_text="user/hand").wait_for(state="detached")
    page = watched.open("/tokens")
    page.fill('[name="principal"]', "user/hand")
    page.locator("form .first:enabled").click()
    page.locator("#secret code").wait_for()
    secret = page.locator("#secret code").inner_text()
    assert len(secret) > 20
    watched.check("a token")
    page.locator("#secret a").click()
    page.locator("tr", has_text="user/hand").wait_for()
    assert secret not in page.content()
    page.locator("tr", has_text="user/hand").get_by_role("button", name="Revoke").click()
    page.locator("tr", has_text="user/hand").wait_for(state="detached")
    page = watched.open("/audit?search=user/hand")
    assert page.locator("tbody tr").count() == 4


def test_a_trace_is_a_picture(watched: Watched, client: Client) -> None:
    added = client.ask("POST", "/v1/profiles", {"text": "/Q{urn:t}traced", "location": [30, 0]})
    page = watched.open("/trace")
    page.fill("#message", "<traced xmlns='urn:t'/>")
    page.locator("#trace").click()
    page.locator("svg.way").wait_for()
    assert page.locator("svg.way path.taken").count() == 2
    assert page.locator("svg.way .matched text").first.text_content() == "B3"
    assert page.locator("td code.block").first.text_content() == "/t:traced\n\nt = urn:t"
    watched.check("a trace")
    client.ask("DELETE", f"/v1/profiles/{added.said['id']}")


def test_dark_and_light_are_chosen(watched: Watched) -> None:
    def paper() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    page = watched.open("/sources")
    before = paper()
    page.locator("#theme").click()
    assert paper() != before
    page.reload()
    assert paper() != before
    watched.check("the other one")

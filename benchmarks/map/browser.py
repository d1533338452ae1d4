"""Helper: the map in a chromium, as whoever looks at it has it.

::

    {"url": ..., "brokers": 1000}   ──>  {"drawn_s": 0.9, "known_s": 2.1}
    {"drag": false, "seconds": 10}  ──>  {"seconds": 10.1, "frames": [16.7, ...],
                                          "script_s": 0.2, "lights": [[link, seconds], ...]}

A link is lit when the page says so of its canvas (``data-crossed``) and the frame behind that is
drawn.  ``frames`` are the milliseconds from one animation frame to the next; ``script_s`` is what
the page's programs took.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from benchmarks.network.helper import say

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Page

ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
LIT_MS = 1600  # as in map.js: so long a link is among those that were crossed
WAIT_MS = 300_000
DRAG_STEPS = 12

WATCHED = f"""
window.watched = {{ frames: [], lights: [], known: new Promise((then) => window.tell = then) }};
document.addEventListener("DOMContentLoaded", () => {{
  const [map, waiting, up] = ["map", "waiting", "up"].map((id) => document.getElementById(id));
  const drawn = (then) => requestAnimationFrame(() => requestAnimationFrame(then));
  const look = (at, what, then) => new MutationObserver(then).observe(at, what);
  let first;
  look(waiting, {{ attributeFilter: ["hidden"] }}, () => drawn(() => first ||= Date.now()));
  look(up, {{ childList: true, characterData: true, subtree: true }}, () => {{
    const [some, all] = up.textContent.split(" of ");
    if (first && some === all) drawn(() => tell([first, Date.now()]));
  }});
  const lit = new Map();
  look(map, {{ attributeFilter: ["data-crossed"] }}, () => {{
    const at = performance.now(), links = map.dataset.crossed.split(" ");
    const fresh = links.filter((link) => link && !(at - lit.get(link) < {LIT_MS} + 50));
    for (const link of fresh) lit.set(link, at);
    requestAnimationFrame(() => {{
      for (const link of fresh) watched.lights.push([link, Date.now() / 1000]);
    }});
  }});
  let last = performance.now();
  (function frame() {{
    const at = performance.now();
    watched.frames.push(at - last);
    last = at;
    requestAnimationFrame(frame);
  }})();
}});
"""


class Looking:
    """A page of a chromium."""

    def __init__(self, page: Page, tools: CDPSession) -> None:
        self._page, self._tools = page, tools
        tools.send("Performance.enable")
        page.set_default_timeout(WAIT_MS)
        page.add_init_script(WATCHED)

    def open(self, url: str) -> Mapping[str, object]:
        """Until all brokers are known."""
        began = time.time()
        self._page.goto(url)
        found = self._page.evaluate("watched.known")
        drawn, known = (at / 1000 - began for at in found)
        return {"drawn_s": drawn, "known_s": known}

    def watch(self, seconds: float, drags: bool) -> Mapping[str, object]:
        """What comes and is drawn in so many; lights are all since the last time."""
        self._page.evaluate("watched.frames = []")
        script, began = self._script_s(), time.monotonic()
        while (left := began + seconds - time.monotonic()) > 0:
            if drags:
                self._drag()
            else:
                self._page.wait_for_timeout(1000 * left)
        took = time.monotonic() - began
        frames, lights = self._page.evaluate("[watched.frames, watched.lights.splice(0)]")
        return {
            "seconds": took,
            "frames": frames,
            "script_s": self._script_s() - script,
            "lights": lights,
        }

    def _drag(self) -> None:
        """Closer, around, and back."""
        mouse, box = self._page.mouse, self._page.locator("#map").bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        mouse.move(x, y)
        for _ in range(DRAG_STEPS):
            mouse.wheel(0, -100)
        mouse.down()
        mouse.move(x + 300, y + 200, steps=DRAG_STEPS)
        mouse.move(x - 300, y - 100, steps=2 * DRAG_STEPS)
        mouse.up()
        for _ in range(DRAG_STEPS):
            mouse.wheel(0, 100)
        self._page.locator("#fit").click()

    def _script_s(self) -> float:
        metrics = self._tools.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "ScriptDuration"))


def main() -> None:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - not where it is missing

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(ARGUMENTS)
        )
        page = chromium.new_page(viewport={"width": 1440, "height": 900})
        looking = Looking(page, page.context.new_cdp_session(page))
        for line in sys.stdin:
            asked = json.loads(line)
            if "url" in asked:
                say(looking.open(asked["url"]))
            else:
                say(looking.watch(asked["seconds"], asked["drag"]))
        chromium.close()


if __name__ == "__main__":
    main()

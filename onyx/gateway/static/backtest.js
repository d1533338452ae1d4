// The profile that is being edited, tried on what is archived of a source.
import { ask, place } from "./ask.js";
import { highlighted } from "./highlight.js";

const PAUSE_MS = 250;
const $ = (id) => document.getElementById(id);
const button = $("replay");
let running = null; // its path

function show({ state, share, messages, matches, results, bytes, unread, given_up: givenUp, last, samples, damaged, failure }) {
  const count = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
  const also = [unread && `${count(unread, "message")} could not be read`, givenUp && `${count(givenUp, "message")} took too much`, ...damaged];
  const far = state === "running" && last ? `, as far as ${last.slice(0, 19).replace("T", " ")}` : "";
  const found = `${matches.toLocaleString("en")} of ${count(messages, "message")} match${far}: ${count(results, "result")}, ${count(bytes, "byte")}`;
  $("share").value = share;
  $("replayed").textContent = failure ? `It failed: ${failure.reason}` : [found, ...also.filter(Boolean)].join("; ") + ".";
  $("samples").replaceChildren(...samples.map((sample) => {
    const item = document.createElement("li"), pre = Object.assign(document.createElement("pre"), { className: "code", tabIndex: 0 });
    pre.append(highlighted(sample.results, "xml"));
    item.append(Object.assign(document.createElement("p"), { className: "soft", textContent: `message ${sample.number} of ${sample.source}, ${sample.time.slice(0, 19).replace("T", " ")}` }), pre);
    return item;
  }));
}

async function end(path) {
  running = null; button.textContent = "Find matches"; $("share").hidden = true;
  await ask("DELETE", path).catch(() => {});
}

button?.addEventListener("click", async () => {
  if (running) { const path = running; $("replayed").textContent += " Cancelled."; await end(path); return; }
  const hours = Number($("span").value), about = { profile: $("profile").value, source: $("archived").value };
  if (hours) about.since = new Date(Date.now() - hours * 3600e3).toISOString();
  button.disabled = true;
  try {
    let now = await ask("POST", "/v1/backtests", about);
    const path = running = `/v1/backtests/${now.id}`;
    button.textContent = "Cancel"; $("share").hidden = false;
    while (running === path) {
      show(now);
      button.disabled = false;
      if (now.state !== "running") { await end(path); break; }
      await new Promise((done) => { setTimeout(done, PAUSE_MS); });
      if (running === path) now = await ask("GET", path);
    }
  } catch (error) {
    $("replayed").textContent = place(error); $("samples").replaceChildren();
    running = null; button.textContent = "Find matches"; $("share").hidden = true;
  } finally { button.disabled = false; }
});

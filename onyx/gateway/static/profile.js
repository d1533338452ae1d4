import { ask, place } from "./ask.js";
import { highlighted, showAll } from "./highlight.js";

const SHOWN_MAX = 50;
const follow = document.getElementById("follow"), results = document.getElementById("results");
const id = follow.dataset.profile;
let events = null;
showAll();

function put(node) {
  results.prepend(node);
  while (results.children.length > SHOWN_MAX) results.lastElementChild.remove();
}

follow.addEventListener("click", () => {
  if (events) { events.close(); events = null; follow.textContent = "Follow"; return; }
  events = new EventSource(`/v1/results?profile=${encodeURIComponent(id)}`);
  follow.textContent = "Stop";
  events.addEventListener("delivery", (event) => {
    const said = JSON.parse(event.data), item = document.createElement("li");
    const from = Object.assign(document.createElement("p"), { className: "soft", textContent: `message ${said.number} of ${said.source}${said.limit ? `: ${said.limit}` : ""}` });
    item.append(from, ...said.results.map((text) => {
      const pre = Object.assign(document.createElement("pre"), { className: "code", tabIndex: 0 });
      pre.append(highlighted(text, "xml"));
      return pre;
    }));
    put(item);
  });
  events.addEventListener("ended", (event) => {
    put(Object.assign(document.createElement("li"), { className: "bad", textContent: JSON.parse(event.data).reason }));
    events.close(); events = null; follow.textContent = "Follow";
  });
});

document.getElementById("remove").addEventListener("click", async () => {
  if (!confirm(`Remove ${id}, with what was not delivered?`)) return;
  try { await ask("DELETE", `/v1/profiles/${encodeURIComponent(id)}`); location.href = "/profiles"; }
  catch (error) { put(Object.assign(document.createElement("li"), { className: "bad", textContent: place(error) })); }
});

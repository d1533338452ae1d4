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
  events = new EventSource(`/v1/results?acknowledge=never&profile=${encodeURIComponent(id)}`);
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
  events.addEventListener("gone", (event) => {
    put(Object.assign(document.createElement("li"), { className: "soft", textContent: `${JSON.parse(event.data).deliveries} more were taken or thrown away before they were looked at` }));
  });
  events.addEventListener("ended", (event) => {
    put(Object.assign(document.createElement("li"), { className: "bad", textContent: JSON.parse(event.data).reason }));
    events.close(); events = null; follow.textContent = "Follow";
  });
});

const policy = document.getElementById("policy"), path = `/v1/profiles/${encodeURIComponent(id)}/policy`;
const tell = (text) => { document.getElementById("policy-said").textContent = text; };

async function show(asked) {
  try {
    for (const [name, value] of Object.entries(await asked)) policy.elements[name].value = value;
    return true;
  } catch (error) { tell(place(error)); return false; }
}

const kept = document.getElementById("kept");
const load = async () => { policy.querySelector("button").disabled = !await show(ask("GET", path)); };
if (kept.open) load(); else kept.addEventListener("toggle", load, { once: true });
policy.addEventListener("submit", async (event) => {
  event.preventDefault();
  const said = Object.fromEntries([...new FormData(policy)].map(([name, value]) => [name, name === "when_full" ? value : Number(value)]));
  if (await show(ask("PUT", path, said))) tell("It is kept so from now on.");
});

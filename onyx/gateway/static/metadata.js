// A rule that is tried out: the resources that it would match; nothing is changed by it.
import { ask, place } from "./ask.js";

const SHOWN = 200;
const $ = (id) => document.getElementById(id);
const form = $("rule"), provider = encodeURIComponent(form.dataset.provider);

function linked(uri) {
  const line = document.createElement("p");
  line.append(Object.assign(document.createElement("a"), { href: `/metadata/${provider}?of=${encodeURIComponent(uri)}`, textContent: uri }));
  return line;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const repository = `tried-out-${Date.now()}`, rules = [[form.elements.text.value, ""]];
  $("came").replaceChildren();
  try {
    const [rule] = await ask("POST", `/v1/metadata/${provider}/rule/add`, { repository, rules, dry_run: true });
    const came = rule.outcome.effects[repository]?.came ?? [];
    $("said").textContent = `${came.length.toLocaleString("en")} match${came.length > SHOWN ? `; the first ${SHOWN}` : ""}`;
    $("came").replaceChildren(...came.slice(0, SHOWN).map(linked));
  } catch (error) { $("said").textContent = place(error); }
});

form.querySelector("button").disabled = false;

import { ask, place } from "./ask.js";
import { editor, highlighted } from "./highlight.js";

const PAUSE_MS = 350; // of the keys, before what was typed is tried
const profile = editor("profile"), message = editor("message");
const $ = (id) => document.getElementById(id);
const said = $("said"), outcome = $("outcome");
let asked = 0, timer = 0;

async function tryIt() {
  const number = ++asked;
  try {
    const answer = await ask("POST", "/v1/explain", { profile: profile.area.value, message: message.area.value, media_type: $("kind").value });
    if (number !== asked) return;
    profile.mark(0); message.mark(0);
    said.textContent = "";
    show(answer);
  } catch (error) {
    if (number !== asked) return;
    outcome.hidden = true;
    said.textContent = `${error.where === "message" ? "The message: " : "The profile: "}${place(error)}`;
    (error.where === "message" ? message : profile).mark(error.line ?? 0, error.column ?? 1);
    (error.where === "message" ? profile : message).mark(0);
  }
}

function show(answer) {
  outcome.hidden = false;
  const results = answer.results_shown ?? [];
  $("verdict").className = `verdict ${answer.matched ? "yes" : "no"}`;
  $("verdict").textContent = answer.matched
    ? `It matches: ${answer.results} ${answer.results === 1 ? "result" : "results"}.` : "It does not match.";
  const { parts: shown, failure } = answer.shown;
  $("hint").textContent = failure
    ? `${failure.text} does not hold${failure.before ? `; there is ${failure.before}` : ""}${failure.hint ? `. ${failure.hint}` : ""}` : "";
  $("result").replaceChildren(...results.map((text) => {
    const pre = document.createElement("pre");
    pre.className = "code"; pre.tabIndex = 0;
    pre.append(highlighted(text, "xml"));
    return pre;
  }));
  if (!results.length) $("result").textContent = "There is none.";
  const parts = [];
  const walk = (part, depth) => {
    const row = document.createElement("div");
    const isFailing = failure && part.text === failure.text && part.outcome?.kept === 0;
    row.className = `part depth-${Math.min(depth, 3)}${isFailing ? " fails" : ""}`;
    const text = Object.assign(document.createElement("span"), { className: "part-text", textContent: part.text });
    const found = part.outcome ? `${part.outcome.kept} of ${part.outcome.asked}` : "";
    const by = Object.assign(document.createElement("span"), { className: "soft", textContent: part.by });
    row.append(text, Object.assign(document.createElement("span"), { className: "n", textContent: found }), by);
    parts.push(row);
    for (const inner of part.parts) walk(inner, depth + 1);
  };
  for (const part of shown) walk(part, 0);
  $("parts").replaceChildren(...parts);
  $("explanation").textContent = answer.text;
}

async function does(what, done) {
  try { said.textContent = done(await what()); } catch (error) { said.textContent = place(error); }
}

$("save").addEventListener("click", () => {
  const text = profile.area.value, id = $("save").dataset.profile;
  does(() => id ? ask("PUT", `/v1/profiles/${encodeURIComponent(id)}`, { text }) : ask("POST", "/v1/profiles", { text }),
    (info) => `${info.id}, version ${info.version}, is ${info.live ? "live" : "not live yet"} at ${info.host}.`);
});
$("publish")?.addEventListener("click", () => {
  const path = `/v1/sources/${encodeURIComponent($("source").value)}/messages`;
  does(() => ask("POST", path, message.area.value, { "Content-Type": $("kind").value }),
    (info) => `Published as message ${info.number} of ${info.source}.`);
});
const later = () => { clearTimeout(timer); timer = setTimeout(tryIt, PAUSE_MS); };
for (const each of [profile.area, message.area]) each.addEventListener("input", later);
$("kind").addEventListener("change", tryIt);
tryIt();

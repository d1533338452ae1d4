import { ask, place } from "./ask.js";

const $ = (id) => document.getElementById(id);
const form = $("change"), path = `/v1/sources/${encodeURIComponent(form.dataset.source)}`;

function before(name) { // as the page came
  const field = form.elements[name];
  return field.options ? [...field.options].find((each) => each.defaultSelected)?.value : field.defaultValue;
}

async function changes() {
  const now = Object.fromEntries(new FormData(form)), said = {}, differs = (name) => now[name] !== before(name) && now[name] !== "";
  for (const name of ["rate", "size"]) if (differs(name)) said[name] = Number(now[name]);
  if (differs("validate")) said.validate = now.validate;
  if (differs("latitude") || differs("longitude")) said.location = [Number(now.latitude), Number(now.longitude)];
  if (now.no_schema) said.schema = null;
  else if (now.schema.name) Object.assign(said, { schema: await now.schema.text(), schema_name: now.schema.name });
  return said;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  $("said").textContent = "Waiting until every broker has it …";
  try {
    const source = await ask("PATCH", path, await changes());
    const warned = source.warned ? ` ${source.warned} of ${source.looked_at} profiles match no message any more, or need what none has.` : "";
    $("said").textContent = `It is in version ${source.version}; changed: ${source.changed.join(", ") || "nothing"}.${warned}`;
    $("version").textContent = source.version;
    for (const field of form.elements) {
      if (field.options) for (const option of field.options) option.defaultSelected = option.selected;
      else if (field.type === "number") field.defaultValue = field.value;
    }
  } catch (error) { $("said").textContent = place(error); }
});

form.querySelector("button").disabled = false;

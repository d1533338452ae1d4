import { ask, place } from "./ask.js";

// Buttons and forms with data-act="METHOD /path": an operation of the API with the fields of the
// form, and then the page at data-then, with fields of the answer in it, or this one anew.
async function body(form) {
  const said = {};
  for (const field of form.elements) {
    if (!field.name || field.type === "checkbox" || field.value === "") continue;
    if (field.type === "file") {
      Object.assign(said, { [field.name]: await field.files[0].text(), [`${field.name}_name`]: field.files[0].name });
      continue;
    }
    const value = field.type === "number" || "number" in field.dataset ? Number(field.value) : field.value;
    if ("part" in field.dataset) (said[field.name] ??= []).push(value); else said[field.name] = value;
  }
  return said;
}

async function act(element, said) {
  const { act: asked, confirm: question, then } = element.dataset, [method, path] = asked.split(" ");
  if (question && !confirm(question)) return;
  try {
    const answer = await ask(method, path, said), secret = document.getElementById("secret");
    if (secret && answer?.secret) { secret.hidden = false; secret.querySelector("code").textContent = answer.secret; secret.focus(); return; }
    location.href = (then ?? location.href).replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(answer[name]));
  } catch (error) { document.getElementById("said").textContent = place(error); }
}

for (const element of document.querySelectorAll("[data-act]")) {
  const isForm = element instanceof HTMLFormElement;
  element.addEventListener(isForm ? "submit" : "click", async (event) => {
    event.preventDefault();
    await act(element, isForm ? await body(element) : element.dataset.body && JSON.parse(element.dataset.body));
  });
  for (const button of isForm ? element.querySelectorAll("button") : [element]) button.disabled = false;
}

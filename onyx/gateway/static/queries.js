import { ask, place } from "./ask.js";

for (const button of document.querySelectorAll("button.cancel")) {
  button.addEventListener("click", async () => {
    try { await ask("DELETE", `/v1/queries/${button.dataset.query}`); location.reload(); }
    catch (error) { document.getElementById("said").textContent = place(error); }
  });
}

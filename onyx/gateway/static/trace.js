import { ask, place } from "./ask.js";
import { editor } from "./highlight.js";

const button = document.getElementById("trace");
if (button) {
  const message = editor("message");
  button.addEventListener("click", async () => {
    const [source, kind] = ["source", "kind"].map((id) => document.getElementById(id).value);
    const said = document.getElementById("said");
    said.textContent = "Asking the brokers …";
    try {
      document.getElementById("picture").innerHTML = await ask("POST", "/parts/trace", { source, message: message.area.value, media_type: kind });
      said.textContent = "";
    } catch (error) { said.textContent = place(error); }
  });
}

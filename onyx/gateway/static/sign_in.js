import { ask } from "./ask.js";

document.getElementById("sign-in").addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = document.getElementById("token").value.trim();
  try {
    await ask("POST", "/v1/sign-in", {}, { Authorization: `Bearer ${token}` });
    location.href = "/";
  } catch (error) { document.getElementById("said").textContent = error.message; }
});

// Before anything is drawn: dark or light, as was chosen here or as the system is.
const kept = localStorage.getItem("theme");
if (kept) document.documentElement.dataset.theme = kept;
document.addEventListener("DOMContentLoaded", () => {
  document.getElementById("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const isDark = getComputedStyle(root).getPropertyValue("--is-dark").trim() === "1"
      || (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
    root.dataset.theme = isDark ? "light" : "dark";
    localStorage.setItem("theme", root.dataset.theme);
    dispatchEvent(new Event("theme"));
  });
});

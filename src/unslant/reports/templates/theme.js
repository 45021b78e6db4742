"use strict";
// runs before the page is painted, so that a dark page never flashes light
(() => {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const key = "unslant-theme";
  const stored = () => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null; // storage is off for local files in some browsers: the page follows the system then
    }
  };
  const show = () => {
    const theme = root.dataset.chosen || stored() || (system.matches ? "dark" : "light");
    root.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) button.textContent = theme === "dark" ? "Light" : "Dark";
  };
  show();
  system.addEventListener("change", show);
  document.addEventListener("DOMContentLoaded", () => {
    show();
    document.getElementById("theme").addEventListener("click", () => {
      root.dataset.chosen = root.dataset.theme === "dark" ? "light" : "dark";
      try {
        localStorage.setItem(key, root.dataset.chosen);
      } catch {
        // the choice then holds until the page is closed
      }
      show();
    });
  });
})();

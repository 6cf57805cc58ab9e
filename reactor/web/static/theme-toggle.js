// The theme button: system, light or dark, stored in this browser.

const ORDER = ["system", "light", "dark"];
const root = document.documentElement;
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

export function installThemeToggle(button, onChange) {
  const name = button.querySelector("#theme-name");
  const show = () => {
    name.textContent = chosen();
    button.setAttribute("aria-label", `Theme: ${chosen()}`);
  };
  button.addEventListener("click", () => {
    choose(ORDER[(ORDER.indexOf(chosen()) + 1) % ORDER.length]);
    show();
    onChange();
  });
  prefersDark.addEventListener("change", onChange);
  show();
}

function chosen() {
  return root.dataset.theme ?? "system";
}

function choose(theme) {
  if (theme === "system") delete root.dataset.theme;
  else root.dataset.theme = theme;
  try {
    if (theme === "system") localStorage.removeItem("rematch-theme");
    else localStorage.setItem("rematch-theme", theme);
  } catch {
    // Storage is disabled: the choice lasts until the page is closed.
  }
}

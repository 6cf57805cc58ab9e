// Runs before the first paint, so that the page does not flash in another theme.
try {
  const theme = localStorage.getItem("rematch-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is disabled in this browser: the theme of the system applies.
}

// Runs before the first paint, so that a remembered theme does not flash in the other one.
try {
  const theme = localStorage.getItem("rematch-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Storage is switched off in this browser: the system's preference holds.
}

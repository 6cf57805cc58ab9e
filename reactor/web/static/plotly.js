// plotly.js, which is loaded once, after everything else, and what all plots of the page have in common.

const CONFIG = { displayModeBar: false, responsive: true, doubleClick: "reset" };
let arriving;

/** Resolves to plotly.js, or to null if it cannot be loaded: then there are only sentences and tables. */
function plotly() {
  arriving ??= new Promise((resolve) => {
    const version = document.querySelector('meta[name="plotly"]').content;
    if (!version) return resolve(null);
    const script = document.createElement("script");
    script.src = new URL(`plotly.min.js?v=${version}`, import.meta.url);
    script.onload = () => resolve(globalThis.Plotly ?? null);
    script.onerror = () => resolve(null);
    return document.head.append(script);
  });
  return arriving;
}

/** `make` returns traces and layout. It is called when there is something to draw with, and a place to draw on. */
export async function drawInto(parent, make) {
  const library = await plotly();
  if (!library || !parent.isConnected || !parent.clientWidth) return;
  if (!parent.firstChild) parent.append(document.createElement("div"));
  const { traces, layout } = make();
  await library.react(parent.firstChild, traces, layout, CONFIG);
}

/** The layout of every plot, without its axes. */
export function frame(id) {
  return {
    uirevision: id, height: 170, margin: { l: 44, r: 8, t: 6, b: 24 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 11, color: colour("--muted") },
    legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom", font: { size: 11 } },
    hoverlabel: { bgcolor: colour("--surface"), bordercolor: colour("--line"), font: { color: colour("--text") } },
  };
}

const probe = document.createElement("span");

/** The colour of a custom property in the current theme. */
export function colour(property) {
  probe.hidden = true;
  probe.style.color = `var(${property})`;
  document.body.append(probe);
  const resolved = getComputedStyle(probe).color;
  probe.remove();
  return resolved;
}

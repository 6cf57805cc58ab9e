// Draws a chart with plotly.js, which is loaded once, after everything else.

const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const COLOURS = 6;
// With seconds if ticks are less than a minute apart.
const TICKS = [
  { dtickrange: [null, 59999], value: "%H:%M:%S" },
  { dtickrange: [60000, null], value: "%H:%M" },
];
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

export async function draw(parent, chart, series) {
  const library = await plotly();
  if (!library || !parent.isConnected || !parent.clientWidth) return;
  if (!parent.firstChild) parent.append(document.createElement("div"));
  await library.react(parent.firstChild, traces(chart, series.times), layout(chart, series), CONFIG);
}

function traces({ lines, print }, times) {
  const x = times.map(localTime);
  return lines.map(({ name, values, order }) => ({
    type: "scatter", mode: "lines", name: inert(name), x, y: values,
    line: { width: 1.75, color: colour(`--line-${order % COLOURS}`), dash: DASHES[order % DASHES.length] },
    text: values.map((value) => print(value)), hovertemplate: "%{text}", connectgaps: false,
  }));
}

function layout({ share, floor, ceiling, level, lines, id }, { times, rematches }) {
  const ink = colour("--muted");
  const rule = colour("--line");
  const upright = (at) => ({ type: "line", yref: "paper", y0: 0, y1: 1, x0: localTime(at), x1: localTime(at),
    line: { color: ink, width: 1, dash: "dot" } });
  const across = (y) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { color: colour("--warn"), width: 1, dash: "dash" } });
  const visible = rematches.filter((at) => at >= times[0] && at <= times.at(-1));
  return {
    uirevision: id, height: 170, margin: { l: 44, r: 8, t: 6, b: 24 }, showlegend: lines.length > 1,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 11, color: ink },
    legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom", font: { size: 11 } },
    hovermode: "x unified", hoverlabel: { bgcolor: colour("--surface"), bordercolor: rule, font: { color: colour("--text") } },
    xaxis: { type: "date", gridcolor: rule, linecolor: rule, nticks: 6, tickformatstops: TICKS, hoverformat: "%H:%M:%S", fixedrange: false },
    yaxis: { gridcolor: rule, zeroline: false, nticks: 5, tickformat: share ? ".0%" : "", ticksuffix: id === "latency" ? " s" : "",
      fixedrange: true, ...bounds(lines, floor, ceiling) },
    annotations: level === undefined ? [] : [{ text: `threshold ${level.toFixed(2)}`, xref: "paper", x: 0, xanchor: "left", y: level,
      yanchor: "top", showarrow: false, font: { size: 11, color: colour("--warn") } }],
    shapes: [...visible.map(upright), ...(level === undefined ? [] : [across(level)])],
  };
}

/** The range starts at a fixed value for shares, and ends above the data. */
function bounds(lines, floor, ceiling) {
  const values = lines.flatMap((line) => line.values).filter((value) => value !== null);
  if (!values.length) return { range: [0, 1] };
  const highest = Math.max(...values);
  const lowest = Math.min(...values);
  const room = Math.max((highest - lowest) * 0.08, 0.005);
  return { range: [floor ?? Math.max(0, lowest - room), ceiling === undefined ? highest + room : ceiling + room / 4] };
}

/** plotly.js shows dates as they are written: local time without a zone. */
function localTime(seconds) {
  const date = new Date(seconds * 1000);
  return new Date(date - date.getTimezoneOffset() * 60_000).toISOString().slice(0, -1);
}

/** plotly.js reads a little HTML in names. */
const inert = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const probe = document.createElement("span");

/** The colour of a custom property in the current theme. */
function colour(property) {
  probe.hidden = true;
  probe.style.color = `var(${property})`;
  document.body.append(probe);
  const resolved = getComputedStyle(probe).color;
  probe.remove();
  return resolved;
}

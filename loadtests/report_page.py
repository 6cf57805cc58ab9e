"""One self-contained HTML page; plotly.js is embedded compressed."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from pathlib import Path

import plotly.graph_objects as go

from reactor.errors import RematchError

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:1180px;margin:2em auto;padding:0 1em;color:#222}
h1{font-size:1.6em}h2{margin-top:2em;font-size:1.2em;border-bottom:1px solid #ddd}
table{border-collapse:collapse;font-size:13px;margin:.7em 0;display:block;overflow-x:auto}
th,td{border:1px solid #ddd;padding:.25em .45em;text-align:left;vertical-align:top}
th{background:#f5f5f5;font-size:11px}
td.reached{background:#e5f6e5}td.not-reached{background:#fbe3e3}td.cannot-be-judged{background:#fdf5dc}
pre{background:#f7f7f7;padding:.8em;overflow-x:auto;font-size:12px}p{max-width:75ch}
"""
_START = """
const packed = document.getElementById('plotly').textContent.trim();
const narrow = window.matchMedia('(max-width: 900px)');
const stack = (layout) => {
  if (!layout.xaxis2) return;
  layout.height *= 2;
  layout.xaxis.domain = layout.xaxis2.domain = [0, 1];
  layout.yaxis.domain = [0.58, 1];
  layout.yaxis2.domain = [0, 0.42];
  Object.assign(layout.yaxis2, { showticklabels: true, title: layout.yaxis.title });
  layout.xaxis2.anchor = 'y2';
  layout.yaxis2.anchor = 'x2';
  layout.annotations.forEach((title, number) => Object.assign(title, { x: 0.5, y: number ? 0.42 : 1 }));
  layout.legend.y = -0.1;
};
const draw = () => {
  for (const place of document.querySelectorAll('.plot')) {
    const figure = JSON.parse(document.getElementById(place.dataset.figure).textContent);
    if (narrow.matches) stack(figure.layout);
    Plotly.react(place, figure.data, figure.layout, { responsive: true, displayModeBar: false });
  }
};
const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).text().then((code) => {
  (0, eval)(code);
  draw();
  narrow.addEventListener('change', draw);
  document.body.dataset.drawn = 'yes';
});
"""


_VERDICTS = frozenset({"reached", "not reached", "cannot be judged"})


@dataclass(frozen=True, slots=True)
class Table:
    headers: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Answer:
    """Of an experiment to a figure or table of its paper."""

    of: str
    by: str
    differs: str


class ReportPage:
    """Filled from top to bottom."""

    def __init__(self, title: str, *, partial: bool = False) -> None:
        self._title = title
        self._parts = [f"<h1>{escape(title)}</h1>"]
        self._figures = 0
        if partial:
            self.text("Partial: the experiment was stopped before its end; this is what was measured until then.")

    def heading(self, text: str) -> None:
        self._parts.append(f"<h2>{escape(text)}</h2>")

    def text(self, *paragraphs: str) -> None:
        self._parts += [f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs]

    def table(self, table: Table) -> None:
        if not table.rows:
            self.text("Not measured.")
            return
        head = "".join(f"<th>{escape(header)}</th>" for header in table.headers)
        rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.rows)
        self._parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")

    def answers(self, answers: Sequence[Answer]) -> None:
        self.heading("What of the paper is answered here, and what differs")
        rows = [(each.of, each.by, each.differs) for each in answers]
        self.table(Table(("figure or table of the paper", "answered by", "what differs"), rows))

    def figure(self, figure: go.Figure) -> None:
        self._figures += 1
        name = f"figure-{self._figures}"
        data = figure.to_json().replace("</", "<\\/")
        self._parts.append(f'<div class="plot" data-figure="{name}"></div>')
        self._parts.append(f'<script type="application/json" id="{name}">{data}</script>')

    def facts(self, facts: Mapping[str, object]) -> None:
        self._parts.append(f"<pre>{escape(json.dumps(facts, indent=1))}</pre>")

    def html(self) -> str:
        packed = base64.b64encode(gzip.compress(_plotly().read_bytes(), 9, mtime=0)).decode()
        metas = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        head = f"{metas}<title>{escape(self._title)}</title><style>{_STYLE}</style>"
        scripts = f'<script type="text/plain" id="plotly">{packed}</script><script>{_START}</script>'
        return (
            f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(self._parts)}{scripts}</body></html>\n'
        )


def copy_report(folder: Path, target: Path, data: Sequence[str]) -> None:
    """The page and its data, without the lock and the like."""
    target.mkdir(parents=True, exist_ok=True)
    for name in ("index.html", *data):
        shutil.copyfile(folder / name, target / name)


def _cell(text: str) -> str:
    return (
        f'<td class="{escape(text.replace(" ", "-"))}">{escape(text)}</td>'
        if text in _VERDICTS
        else f"<td>{escape(text)}</td>"
    )


def _plotly() -> Path:
    spec = find_spec("plotly")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / "package_data" / "plotly.min.js"
        if path.is_file():
            return path
    raise RematchError("the plotly package has no plotly.min.js; install plotly 6")

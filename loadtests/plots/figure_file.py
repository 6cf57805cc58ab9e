"""Saves a figure."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure


def save(figure: Figure, path: Path) -> None:
    """The same numbers make the same file, so that a figure changes in the history only when they do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "rematch"}):
        figure.savefig(path, metadata={"Date": None})

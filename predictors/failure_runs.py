"""In which runs of minutes probes fail together, when only steps of several minutes were counted.

A series that answers no probe for a while fails all of them, for a minute and then, by chance, for one more. How many
probes of a step fail together, and how much of it the next step still shows, says how often and how long.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_CHANCES = np.linspace(0.0, 0.99, 100)


def runs_by_minute(together: float, lasting: float, probes: Floats, minutes: int) -> tuple[Floats, Floats]:
    """The share of a series' probes that fail in such runs, and the chance that one goes on for another minute.

    `together` and `lasting`: as in `FailureResponse`, of steps of so many minutes. `probes`: per minute, by series."""
    apart = np.abs(np.subtract.outer(np.arange(minutes), np.arange(2 * minutes)))
    kept = _CHANCES[:, np.newaxis, np.newaxis] ** apart
    here, next_one = kept[:, :, :minutes].sum(axis=(1, 2)), kept[:, :, minutes:].sum(axis=(1, 2))
    of_step = np.maximum(probes * minutes, 1.0 + 1e-9)[:, np.newaxis]
    pairs = of_step * (of_step - 1.0)
    within = np.maximum((probes**2)[:, np.newaxis] * here - of_step, 1e-9) / pairs
    across = (probes**2)[:, np.newaxis] * next_one / of_step**2
    best = np.argmin(np.abs(across / within - lasting), axis=1)
    share = np.minimum(together / np.take_along_axis(within, best[:, np.newaxis], axis=1)[:, 0], 1.0)
    return share, _CHANCES[best]

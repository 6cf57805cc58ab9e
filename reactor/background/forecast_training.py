"""Trains the boosted models in a process of its own, with bounded time and memory. When it fails, the models in use
stay."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
import structlog

from predictors.protocol import History
from predictors.train import save_history, training_command
from reactor.forecasts.forecasts import HORIZON_MINUTES
from reactor.forecasts.samples import Samples
from reactor.history.levels import FIVE_MINUTES, Axis
from reactor.settings.model import Training

Trainer = Callable[[Samples, Axis, float, Path, Training], Awaitable[bool]]

log = structlog.get_logger(__name__)

MOST_SERIES = 2_000
"""One model learns from all series: so many are enough."""
_MORE_TIME = 10.0
"""The process has the lowest priority: it gets this many times its CPU time to end by itself."""


async def train(pods: Samples, axis: Axis, until: float, into: Path, limits: Training) -> bool:
    """True when there is a new file of models."""
    history = await asyncio.to_thread(_learned_from, pods, axis)
    with tempfile.TemporaryDirectory(prefix="rematch-training-") as folder:
        file = Path(folder) / "history.npz"
        await asyncio.to_thread(save_history, file, history, HORIZON_MINUTES, until)
        command, added = training_command(file, into, limits.seconds, limits.mebibytes)
        return await _run(command, {**os.environ, **added}, axis, limits)


async def _run(command: list[str], environment: dict[str, str], axis: Axis, limits: Training) -> bool:
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(_MORE_TIME * limits.seconds):
            _, said = await process.communicate()
    except TimeoutError:
        log.warning("the training of forecasts takes too long and is ended", axis=axis.label)
        return False
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    text = said.decode(errors="replace").strip()[-500:]
    if process.returncode:
        log.warning("the training of forecasts failed; the models in use stay", axis=axis.label, error=text)
        return False
    log.info("forecasts trained", axis=axis.label, left_out=text)
    return True


def _learned_from(pods: Samples, axis: Axis) -> History:
    """The pods with most samples."""
    samples = np.isfinite(pods.values[axis]).sum(axis=1)
    rows = np.sort(np.argsort(-samples, kind="stable")[:MOST_SERIES])
    rows = rows[samples[rows] > 0]
    found = pods.history(axis, rows)
    return History(found.values.copy(), FIVE_MINUTES.step, found.cut)

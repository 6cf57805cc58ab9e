"""What the noise of the measurements can feign: the standard error of a predicted gain, and how many of them to ask.

A pod's usage now is a sample; what it will use while the plan holds differs from it by about `sigma`. The objective
is a sum of squares, so the error of a change is, to first order, the sum over the pods of what the change depends on
each of them: the pods that move by the difference of the two nodes' distances from the mean, the pods that stay by
how much their node's load changes.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from matching.arrays import NOWHERE, Arrays, Floats, Ints
from matching.planners.balance.board import Board

SIGMAS_TO_PEAK = 3.0
"""A peak is estimated as the mean plus three standard deviations, so a third of the way there is one."""


def sigma_of(arrays: Arrays, relative: float | None) -> Floats:
    """(axes, pods): a share of the usage where one is given, else read from the distance between usage and peak."""
    if relative is not None:
        return arrays.usage * relative
    sigma: Floats = (arrays.peak - arrays.usage).clip(min=0.0) / SIGMAS_TO_PEAK
    return sigma


def errors_to_pass(confidence: float, nodes: int) -> float:
    """How many standard errors a gain must be above nothing. The best of many nodes looks better than it is, so the
    doubt is divided among them."""
    return NormalDist().inv_cdf(1 - (1 - confidence) / max(2, nodes)) if confidence > 0 else 0.0


def move_errors(board: Board, pods: Ints, targets: Ints) -> Floats:
    """The standard error of each pod's change if it went to the target beside it."""
    source = board.at[pods]
    per_here = np.where(source == NOWHERE, 0.0, board.per[:, source])
    per_there = board.per[:, targets]
    amount, sigma2, away = board.amount[:, pods], board.sigma2[:, pods], board.away
    won, lost = amount * per_there, amount * per_here
    of_pod = ((away[:, targets] + won) * per_there - away[:, source] * per_here) ** 2 * sigma2
    of_source = lost**2 * (board.variance[:, source] - sigma2 * per_here**2).clip(min=0.0)
    of_target = won**2 * board.variance[:, targets]
    errors: Floats = 2 * np.sqrt(board.weights**2 @ (of_pod + of_source + of_target))
    return errors


def swap_error(board: Board, pod: int, partner: int) -> float:
    """The standard error of the change if the two exchanged nodes."""
    source, target = int(board.at[pod]), int(board.at[partner])
    moved = board.amount[:, pod] - board.amount[:, partner]
    per_here, per_there = board.per[:, source], board.per[:, target]
    won, lost = moved * per_there, moved * per_here
    here, there = board.away[:, source], board.away[:, target]
    ours, theirs = board.sigma2[:, pod], board.sigma2[:, partner]
    variance = ((there + won) * per_there - here * per_here) ** 2 * ours
    variance += ((here - lost) * per_here - there * per_there) ** 2 * theirs
    variance += lost**2 * (board.variance[:, source] - ours * per_here**2).clip(min=0.0)
    variance += won**2 * (board.variance[:, target] - theirs * per_there**2).clip(min=0.0)
    return 2 * float(np.sqrt(board.weights**2 @ variance))

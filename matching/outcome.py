"""What a planner found, before it is written up as a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from matching.arrays import Ints, Mask
from matching.plan import Cause

if TYPE_CHECKING:
    from matching.reasons.reasoning import Reasoning


@dataclass(frozen=True, slots=True)
class Choice:
    at: Ints
    """For each pod the node it ends on, or NOWHERE."""
    chose: Mask
    """The pods that took part."""
    headroom: dict[int, float | None]
    """Pods that did not get the full headroom, and how much they got; None: not even room for the peak."""
    kept_home: frozenset[int] = frozenset()
    """Running pods kept where they are because, had they chosen, no node would have been left for them."""
    held: frozenset[int] = frozenset()
    """Pods whose moves were given up: in no order of the moves would the rules between pods have been kept."""


@dataclass(frozen=True, slots=True)
class Outcome:
    choice: Choice
    """What the plan will be."""
    wish: Choice
    """What the matching alone would have been; the same unless something held moves back."""
    cause: Cause = Cause.NO_STABLE_MATCHING
    """Of the blocking pairs that it leaves, if any."""
    held_back: str = ""
    """Why a pod stays that the wish would have moved."""
    notes: tuple[str, ...] = ()
    reasoning: Reasoning | None = None
    """The planner's own words; None: the pods' preferences explain the moves."""

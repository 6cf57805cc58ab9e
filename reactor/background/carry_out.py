"""Carries one given plan out with the cycles of the controller, for requests and `rematch plan --apply`."""

from __future__ import annotations

from collections.abc import Callable

from reactor.clock import Clock
from reactor.cycle import CycleParts, run_cycle
from reactor.decision.decide import Trigger
from reactor.execution.cycle_outcome import Outcome, Rematch

_POLL_SECONDS = 0.25


async def carry_out(parts: CycleParts, rematch: Rematch | None, clock: Clock, seen: Callable[[Outcome], None]) -> None:
    """Until the last move has ended. `seen` gets the outcome of each cycle and may raise to end it early. Without a
    plan the moves under way are followed to their end. No other cycle may run meanwhile."""
    while rematch is not None or parts.executor.busy:
        outcome = await run_cycle(parts, Trigger.FINISH if rematch is None else Trigger.DEMAND, rematch)
        if outcome.rematch is not None:
            rematch = None
        seen(outcome)
        if rematch is not None or parts.executor.busy:
            await clock.sleep(_POLL_SECONDS)

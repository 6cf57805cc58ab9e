"""Carries one given plan out with the cycles of the controller, for requests and `rematch release`."""

from __future__ import annotations

from collections.abc import Callable

from reactor.clock import Clock
from reactor.cycle import CycleParts, run_cycle
from reactor.decision.decide import Trigger
from reactor.execution.cycle_outcome import Outcome, Rematch

_POLL_SECONDS = 0.25


async def carry_out(
    parts: CycleParts,
    rematch: Rematch | None,
    clock: Clock,
    seen: Callable[[Outcome], None],
    *,
    wait_for_late: bool = False,
) -> None:
    """Until the last move has ended, or is late and not waited for: its replacement may never be Ready. `seen` gets the
    outcome of each cycle and may raise to end it early. Without a plan the moves under way are followed. No other cycle
    may run meanwhile."""

    def goes_on() -> bool:
        return rematch is not None or (parts.executor.busy if wait_for_late else parts.executor.under_way)

    while goes_on():
        outcome = await run_cycle(parts, Trigger.FINISH if rematch is None else Trigger.DEMAND, rematch)
        if outcome.rematch is not None:
            rematch = None
        seen(outcome)
        if goes_on():
            await clock.sleep(_POLL_SECONDS)

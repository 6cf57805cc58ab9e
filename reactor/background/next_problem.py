"""Brings the kept parts of the next problem up to date after a round of measurements, while nothing is to be decided.

New measurements change the needs of every pod, which takes as long as the rest of a reaction. A reaction then makes
only what has changed since the round.
"""

from __future__ import annotations

import asyncio

from matching.ahead import read_ahead
from matching.problem import ProblemError
from reactor.cycle import CycleParts
from reactor.decision.decide import Decision, Trigger
from reactor.decision.eligibility import Eligibility
from reactor.planning.problems import rematch_problem


class NextProblem:
    def __init__(self, parts: CycleParts) -> None:
        self._parts = parts

    async def refresh(self) -> None:
        """A problem that is not valid is left to the cycle that needs it, and says so."""
        parts, settings = self._parts, self._parts.settings()
        await parts.state.yield_to_cycle()
        if not parts.state.synced or parts.executor.under_way:
            return
        snapshot = parts.state.freeze(parts.executor.active_moves())
        eligibility = Eligibility(snapshot, parts.memory.cooldowns, settings, parts.kept_checks)
        problem = rematch_problem(eligibility, Decision(snapshot.at, Trigger.UNHAPPY), parts.kept_pods)
        try:
            await asyncio.to_thread(read_ahead, problem)
        except ProblemError:
            return

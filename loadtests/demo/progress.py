"""Prints rematches, moves and load to the terminal as they happen, and how many waits there were."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TextIO

import aiohttp

from loadtests.demo.arm import Arm
from reactor.record.history_reader import HistoryEntry, HistoryKind
from reactor.web.view import Overview

LOOK_EVERY = 1.0
SUMMARY_EVERY = 10
TOLD = frozenset({HistoryKind.REMATCH, HistoryKind.MOVE, HistoryKind.SETTINGS})
"""Printed one by one. Of waits only the number is printed; placements follow from moves."""
BUSY = 0.5
"""Seconds late from which the machine, and not the demo's nodes, makes probes and requests fail."""


@dataclass(slots=True)
class Progress:
    arm: Arm
    out: TextIO
    verbose: bool = False
    """Print every decision."""
    late: float = 0.0
    """The most that a look came late, in seconds: a measure of how busy this machine was."""

    async def report(self) -> None:
        """Until cancelled. A controller that does not answer is reported."""
        shown = 0
        counted: list[HistoryEntry] = []
        looks = 0
        late = 0.0
        now = asyncio.get_running_loop().time
        while True:
            try:
                for decision in reversed(await self.arm.controller.decisions()):
                    if decision.id > shown:
                        shown = decision.id
                        if self.verbose or decision.kind in TOLD:
                            self._say(_line(decision))
                        else:
                            counted.append(decision)
                if looks % SUMMARY_EVERY == 0:
                    if waits := waits_in_one_line(counted):
                        self._say(waits)
                    counted.clear()
                    self._say(_summary(await self.arm.controller.overview(), self.arm))
                    if late > BUSY:
                        self._say(busy_machine(late))
                    late = 0.0
            except (aiohttp.ClientError, TimeoutError) as error:
                self._say(f"the controller does not answer: {error or type(error).__name__}")
            looks += 1
            due = now() + LOOK_EVERY
            await asyncio.sleep(LOOK_EVERY)
            late = max(late, now() - due)
            self.late = max(self.late, late)

    def _say(self, text: str) -> None:
        print(f"{datetime.now().astimezone():%H:%M:%S}  {text}", file=self.out, flush=True)


def waits_in_one_line(decisions: Sequence[HistoryEntry]) -> str:
    """How many for which reason, the most frequent first; empty without any."""
    waits = [decision for decision in decisions if decision.kind is HistoryKind.WAIT]
    if not waits:
        return ""
    pods = len({decision.pod for decision in waits})
    reasons = Counter(decision.reason for decision in waits).most_common()
    counts = ", ".join(f"{reason} {count}" for reason, count in reasons)
    return f"WAITS    {len(waits)} of {pods} pod{'' if pods == 1 else 's'}: {counts}"


def busy_machine(late: float) -> str:
    return f"this machine is busy: the demo ran {late:.1f} s late, so probes and requests of healthy pods fail, too"


def _line(decision: HistoryEntry) -> str:
    if decision.kind is HistoryKind.REMATCH:
        moves = ", ".join(f"{move.pod} {move.source or 'pending'} -> {move.target}" for move in decision.moves)
        return f"REMATCH  {decision.text}; plan: {moves or 'nobody moves'}"
    return f"{decision.kind.upper():<8} {decision.text if decision.pod is None else f'{decision.pod}: {decision.text}'}"


def _summary(overview: Overview, arm: Arm) -> str:
    nodes = []
    for node in overview.nodes:
        used = node.cpu.used if node.cpu else None
        share = "?" if used is None or node.cpu is None else f"{used / node.cpu.capacity:.0%}"
        nodes.append(f"{node.name} {share}")
    recent = arm.lab.log.recent()
    load = "no requests yet"
    if recent.availability is not None and recent.p95_ms is not None:
        load = f"availability {recent.availability:.1%}, p95 {recent.p95_ms:.0f} ms"
    unhappy = overview.totals.unhappy if overview.totals else 0
    return f"cpu {', '.join(nodes)}; {load}; {unhappy} unhappy; moves: {overview.moves}"

"""The decision's memory: which pods and nodes are left alone for a while after a move, a plan or a refused eviction.

The checks that apply it are `COOLED_DOWN` in `eligibility`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from matching.plan import Plan
from reactor.cluster.view import ClusterView
from reactor.cluster.writes import Eviction
from reactor.decision.brakes import Brakes
from reactor.decision.effects import Effects, Verdict
from reactor.decision.limits import RecentMoves, StartedMove
from reactor.decision.shortage import ClusterSize, Shortage, shortage_of
from reactor.decision.wait_reasons import Reason
from reactor.settings.model import Mode, Settings
from reactor.state.moves import Move, MoveState
from reactor.state.snapshot import Snapshot

LONGEST_COOLDOWN = 3600.0
MAX_DOUBLINGS = 32


@dataclass(frozen=True, slots=True)
class Lineage:
    """A pod that replaces one that we moved. `generation` counts the moves in a row."""

    moved: float
    generation: int
    predecessor: str = ""
    """UID of the pod that was moved."""

    @classmethod
    def after(cls, before: Lineage | None, moved: float, predecessor: str) -> Lineage:
        """The count starts again when the predecessor ran for longer than the longest cooldown."""
        again = before is not None and moved - before.moved < LONGEST_COOLDOWN
        return cls(moved, before.generation + 1 if before is not None and again else 1, predecessor)

    def cools_until(self, cooldown: float) -> float:
        """The cooldown doubles with each move in a row."""
        doublings = min(self.generation - 1, MAX_DOUBLINGS)
        return self.moved + min(cooldown * 2.0**doublings, LONGEST_COOLDOWN)


@dataclass(frozen=True, slots=True)
class Backoff:
    """No rematch is started for a pod until then, because of how the last attempt ended."""

    until: float
    reason: Reason
    text: str


@dataclass(frozen=True, slots=True)
class Cooldowns:
    """A value; each update returns a new one."""

    lineage: Mapping[str, Lineage] = field(default_factory=dict)
    """By the UID of the replacement."""
    relieved: Mapping[str, float] = field(default_factory=dict)
    """By node: when a pod was last moved away from it."""
    backoffs: Mapping[str, Backoff] = field(default_factory=dict)
    """By pod UID."""
    recent: RecentMoves = field(default_factory=RecentMoves)
    effects: Effects = field(default_factory=Effects)
    brakes: Brakes = field(default_factory=Brakes)
    shortage: Shortage | None = None
    """Since the last plan that left unhappy pods for which no placement helps."""

    def after_moves(self, moves: Iterable[Move], settings: Settings) -> Cooldowns:
        """What moves that changed their state mean for their pods, replacements and nodes."""
        moves = tuple(moves)
        lineage, relieved, backoffs = dict(self.lineage), dict(self.relieved), dict(self.backoffs)
        for move in moves:
            if move.ended is None:
                continue
            if move.evicted is not None:
                relieved[move.source] = move.ended
            if move.state is MoveState.DONE and move.replacement is not None:
                before = lineage.get(move.pod.uid)
                lineage[move.replacement] = Lineage.after(before, move.ended, move.pod.uid)
            backoff = _backoff_after(move, move.ended, settings)
            if backoff is not None:
                backoffs[move.pod.uid] = backoff
        return replace(
            self,
            lineage=lineage,
            relieved=relieved,
            backoffs=backoffs,
            recent=self.recent.after(_started(moves)),
            effects=self.effects.after_moves(moves, settings.happiness.half_life),
            brakes=self.brakes.after_moves(moves),
        )

    def judged(self, snapshot: Snapshot, settings: Settings) -> tuple[Cooldowns, tuple[Verdict, ...]]:
        """Whether earlier moves helped, and which brakes follow from that and from what the cluster shows."""
        effects, verdicts = self.effects.judge(snapshot)
        late = [move for move in snapshot.moves.moves if move.state is MoveState.LATE]
        brakes = self.brakes.after(snapshot.cluster, late, verdicts, settings.execution.brake)
        recent = self.recent.without_old(snapshot.at)
        learned = replace(self, effects=effects, brakes=brakes, recent=recent)
        return learned._looking_again(snapshot), verdicts

    def _looking_again(self, snapshot: Snapshot) -> Cooldowns:
        """A change of the nodes or of the load ends the wait for capacity, and so does the end of the unhappiness."""
        if self.shortage is None:
            return self
        over = self.shortage.is_over(snapshot)
        if not over and not ClusterSize.of(snapshot).differs_from(self.shortage.size):
            return self
        backoffs = {uid: each for uid, each in self.backoffs.items() if each.reason is not Reason.CLUSTER_FULL}
        return replace(self, backoffs=backoffs, shortage=None if over else self.shortage)

    def after_shortage(self, plan: Plan, snapshot: Snapshot, settings: Settings) -> Cooldowns:
        """Pods that no placement helps wait for capacity, longer each time."""
        found = shortage_of(plan, snapshot, self.shortage)
        backoffs = dict(self.backoffs)
        if found is not None:
            until = snapshot.at + found.wait(settings.decision.cooldown)
            backoffs |= {uid: Backoff(until, Reason.CLUSTER_FULL, found.text) for uid in found.pods}
        return replace(self, backoffs=backoffs, shortage=found)

    def after_plan(
        self, unhappy: Collection[str], plan_id: str, plan: Plan, now: float, settings: Settings
    ) -> Cooldowns:
        """Unhappy pods that the plan does not move, or that the mode does not let it move, back off for
        `cooldown`."""
        moved = {move.uid: f"move it to {move.target}" for move in plan.moves}
        moved |= {unplaced.uid: "dump it" for unplaced in plan.dumped}
        reasons = plan.why_stays({uid for uid in unhappy if uid not in moved})
        until = now + settings.decision.cooldown
        backoffs = dict(self.backoffs)
        for uid in unhappy:
            if uid not in moved:
                text = f"plan {plan_id} keeps it where it is: {reasons.get(uid, 'no better node')}"
                backoffs[uid] = Backoff(until, Reason.NO_BETTER_NODE, text)
            elif settings.mode is not Mode.ACT:
                text = f"mode is {settings.mode}: plan {plan_id} would {moved[uid]}"
                backoffs[uid] = Backoff(until, Reason.OBSERVED, text)
        return replace(self, backoffs=backoffs)

    def without_opinions(self) -> Cooldowns:
        """For a move that somebody asks for by name: what earlier plans of ours thought of the pod does not count, what
        the API server refused does."""
        refused = {
            uid: each for uid, each in self.backoffs.items() if each.reason in (Reason.PDB, Reason.EVICTION_FAILED)
        }
        return replace(self, backoffs=refused)

    def without_expired(self, cluster: ClusterView, now: float, moving: Collection[str]) -> Cooldowns:
        """Drops backoffs that are over and everything about pods and nodes that are gone. The lineage of pods that
        are `moving` (by UID) is kept for their replacements."""
        pods = cluster.pods
        return replace(
            self,
            lineage={uid: line for uid, line in self.lineage.items() if uid in pods or uid in moving},
            relieved={node: at for node, at in self.relieved.items() if node in cluster.nodes},
            backoffs={uid: backoff for uid, backoff in self.backoffs.items() if uid in pods and now < backoff.until},
        )


@dataclass(slots=True)
class DecisionMemory:
    """Holds the cooldowns between cycles. Only the cycle replaces them."""

    cooldowns: Cooldowns = field(default_factory=Cooldowns)


def _started(moves: Iterable[Move]) -> Iterable[StartedMove]:
    return [StartedMove(move.id, move.began, move.pod.namespace, move.workload) for move in moves if move.began]


def _backoff_after(move: Move, now: float, settings: Settings) -> Backoff | None:
    if move.state is MoveState.FAILED and move.evicted is None:
        refused_by_pdb = move.answer in (Eviction.PDB, Eviction.SEVERAL_PDBS)
        reason = Reason.PDB if refused_by_pdb else Reason.EVICTION_FAILED
        return Backoff(now + max(move.retry_after or 0.0, settings.decision.cooldown), reason, move.outcome)
    if move.state is MoveState.SKIPPED and move.answer is None:
        until = now + settings.triggers.evaluation_interval
        return Backoff(until, Reason.NO_BETTER_NODE, f"the planned move was skipped: {move.outcome}")
    return None

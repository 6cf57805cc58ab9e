"""Decisions and a pod's page for the sample cluster."""

from __future__ import annotations

from reactor.record.history_reader import HistoryEntry, HistoryKind, HistoryMove, MoveProgress
from reactor.record.unhappy_pods import EvidencePart, UnhappyPod
from reactor.web.view import (
    AxisView,
    CurrentDecision,
    Evidence,
    EvidenceCount,
    PlacementView,
    PodChip,
    PodView,
    ProbeMessage,
    WhyNot,
)
from tests.browser.sample_cluster import AT, CAPACITY, GIB, HOSTILE, pod_name

WAITS = (
    ("cooldown", "its workload was moved 22 s ago; looked at again in 38 s"),
    ("notEnoughEvidence", "1.2 failed probes remembered, 2 are needed"),
    ("noBetterNode", "no feasible node is less used by 25 % of its capacity"),
)


EVIDENCE = (
    EvidencePart("prior", 0.1, "a failing pod is mostly ill itself"),
    EvidencePart("load", 600.0, "worker-2 uses 76% of its cpu now, 97% counted (the highest lately)"),
    EvidencePart("probes", 0.515, f"7 failed {HOSTILE}"),
)


def _moves() -> tuple[HistoryMove, ...]:
    return (
        HistoryMove(
            pod=f"shop/{pod_name(4)}",
            source="worker-2",
            target="worker-1",
            state=MoveProgress.DONE,
            reasons=(
                "unhappy: 0.31 is below its threshold 0.80",
                "worker-1 is its nearest node with room: 6.9 of 12 cores free at peak",
            ),
            outcome="replacement Ready on worker-1 after 1.6 s",
        ),
        HistoryMove(
            pod=f"shop/{pod_name(7)}",
            source="worker-2",
            target="worker-3",
            state=MoveProgress.RUNNING,
            reasons=("unhappy: 0.58 is below its threshold 0.80",),
        ),
        HistoryMove(
            pod=f"shop/{pod_name(11)}", source="worker-2", target="worker-3", state=MoveProgress.PLANNED, reasons=()
        ),
    )


def decision(identity: int) -> HistoryEntry:
    """Every sixth is a rematch, every ninth a placement; all others are waits of several pods."""
    at, cycle = AT - 700 + 5 * identity, f"c{identity:05d}"
    if identity % 6 == 0:
        text = "fell to 0.31 on worker-2, which uses 97 % of its CPU: matching all pods again"
        pod = f"shop/{pod_name(4)}"
        unhappy = UnhappyPod(pod, "uid-4", 0.31, 0.8, text, 0.97, EVIDENCE)
        return HistoryEntry(
            identity, at, cycle, HistoryKind.REMATCH, pod, "belowThreshold", text, _moves(), "p-0042", (unhappy,)
        )
    if identity % 9 == 0:
        text = "bound to worker-3, the nearest node with room"
        move = HistoryMove(f"shop/{HOSTILE}", None, "worker-3", MoveProgress.DONE, (HOSTILE,), "bound")
        return HistoryEntry(identity, at, cycle, HistoryKind.PLACE, f"shop/{HOSTILE}", "pending", text, (move,))
    reason, text = WAITS[identity % len(WAITS)]
    pod = f"shop/{pod_name(4 + identity % 3 * 3)}"
    return HistoryEntry(identity, at, cycle, HistoryKind.WAIT, pod, reason, text)


def _evidence(chip: PodChip) -> Evidence | None:
    if chip.happiness is None:
        return None
    successes = 12.4
    failures = (5 + successes) / chip.happiness - 5 - successes
    return Evidence(
        value=chip.happiness,
        threshold=chip.threshold,
        threshold_source="settings",
        happy=chip.happy,
        successes=successes,
        failures=failures,
        goodwill=5.0,
        half_life=300.0,
        sources=(
            EvidenceCount("events", round(failures)),
            EvidenceCount("counters", round(failures) + 9),
            EvidenceCount("kills", 3),
        ),
        last_failure=AT - 4,
        messages=(
            ProbeMessage(AT - 4, 9, "Liveness probe failed: HTTP probe failed with statuscode: 500"),
            ProbeMessage(AT - 31, 4, f'Liveness probe failed: Get "http://127.0.2.7:8080/{HOSTILE}": EOF'),
        ),
    )


def pod_view(chip: PodChip, node: str | None, history: tuple[HistoryEntry, ...]) -> PodView:
    namespace, _, name = chip.key.partition("/")
    cores, memory = CAPACITY[node] if node else (None, None)
    others = tuple(
        WhyNot(other, reason)
        for other, reason in (
            ("worker-2", "farther than worker-1: distance 0.61 against 0.38, and 97 % of its CPU is used"),
            ("worker-1", "would leave 4 % of its CPU at peak; 15 % are kept free"),
            ("worker-3", "taint dedicated=batch:NoSchedule is not tolerated"),
        )
        if other != node
    )
    return PodView(
        uid=chip.uid,
        namespace=namespace,
        name=name,
        node=node,
        phase=chip.phase,
        ready=chip.ready,
        restarts=3,
        created=AT - 5400,
        workload="" if not chip.managed else f"Deployment {name[:6]}",
        scheduler="rematch",
        managed=chip.managed,
        fixed=chip.fixed,
        happiness=_evidence(chip),
        resources=(
            AxisView("cpu", "cores", chip.cpu, 0.1, 0.9, cores),
            AxisView("memory", "bytes", 0.21 * GIB, 0.12 * GIB, 0.3 * GIB, memory),
        ),
        decision=CurrentDecision(HistoryKind.WAIT, "cooldown", WAITS[0][1], AT - 22, AT + 38, 0.97, EVIDENCE),
        placement=PlacementView(
            "p-0042", AT - 61, "stable", ("nearest of 2 feasible nodes (distance 0.38)", "room for its peak"), others
        ),
        history=history,
    )

"""What our Events say: one function per thing worth telling on the pod concerned."""

from __future__ import annotations

from collections.abc import Iterator

from reactor.cluster.event_writer import Announcement
from reactor.cluster.pod_constraints import unsupported_constraints
from reactor.cluster.records import ConfigMap, Pod
from reactor.decision.decide import Unhappy, Wait
from reactor.errors import in_words
from reactor.execution.outcome import Placement, Rematch
from reactor.state.moves import Move, MoveState, PodRef
from reactor.state.snapshot import Snapshot


def about_pod(pod: Pod | PodRef, reason: str, message: str, *, warning: bool = False) -> Announcement:
    kind = "Warning" if warning else "Normal"
    return Announcement("Pod", pod.namespace, pod.name, pod.uid, reason, message, kind)


def about_wait(pod: Pod, wait: Wait) -> Announcement:
    return about_pod(pod, "RematchWaits", f"{wait.reason}: {wait.text}")


def about_unhappy(pod: Pod, one: Unhappy, rematch: Rematch | None) -> Announcement:
    end = _what_becomes_of(one, rematch) if rematch else "no plan moves it now"
    happiness = f"happiness {one.happiness.probability:.2f} is below {one.happiness.threshold.value:g}"
    return about_pod(pod, "Unhappy", f"{happiness}; {one.cause}; {end}", warning=True)


def _what_becomes_of(one: Unhappy, rematch: Rematch) -> str:
    target = next((move.target for move in rematch.plan.moves if move.uid == one.uid), None)
    if target is not None:
        return f"plan {rematch.plan_id} moves it to {target}"
    dumped = any(left.uid == one.uid for left in rematch.plan.dumped)
    return f"plan {rematch.plan_id} dumps it" if dumped else "no plan moves it now"


def about_move(move: Move, snapshot: Snapshot) -> Announcement | None:
    """On the replacement if it is there, else on the pod that was moved."""
    replacement = snapshot.cluster.pods.get(move.replacement or "", move.pod)
    if move.state is MoveState.EVICTED and move.replacement is None:
        return about_pod(move.pod, "Moving", f"evicted from {move.source} for {move.target} (plan {move.plan_id})")
    if move.state is MoveState.DONE and move.dumps:
        return about_pod(move.pod, "Dumped", f"{move.outcome} (plan {move.plan_id})", warning=True)
    if move.state is MoveState.DONE:
        return about_pod(replacement, "Moved", f"replaces {move.pod.key} of {move.source}: {move.outcome}")
    if move.state is MoveState.LATE:
        text = "not Ready by its deadline; no further move is started"
        return about_pod(replacement, "MoveLate", text, warning=True)
    if move.state in (MoveState.FAILED, MoveState.SKIPPED):
        failed = move.state is MoveState.FAILED
        return about_pod(move.pod, f"Move{move.state.capitalize()}", move.outcome, warning=failed)
    return None


def about_placement(placement: Placement, snapshot: Snapshot) -> Iterator[Announcement]:
    pods = snapshot.cluster.pods
    for pod in placement.unsupported:
        unsupported = ", ".join(unsupported_constraints(pod, snapshot.cluster))
        yield about_pod(pod, "FailedScheduling", f"unsupported {unsupported}", warning=True)
    for left in placement.plan.unplaced if placement.plan is not None else ():
        yield about_pod(pods[left.uid], "FailedScheduling", left.reason, warning=True)
    for one in placement.bound:
        if one.succeeded:
            yield about_pod(one.pod, "Scheduled", f"Successfully assigned {one.pod.key} to {one.move.target}")
        else:
            text = f"binding to {one.move.target} failed ({one.answer.outcome}): {one.answer.message}"
            yield about_pod(one.pod, "FailedBinding", text, warning=True)
    tried = {one.pod.uid for one in placement.bound}
    for move in placement.moves:
        if move.uid not in tried:
            yield about_pod(pods[move.uid], "WouldBind", f"mode is observe: would bind to {move.target}")


def about_refused_settings(config_map: ConfigMap, problems: list[tuple[str, str]]) -> Announcement:
    return Announcement(
        "ConfigMap",
        config_map.namespace,
        config_map.name,
        config_map.uid,
        "SettingsRefused",
        f"the last good settings stay in force: {in_words(problems)}"[:1000],
        "Warning",
    )

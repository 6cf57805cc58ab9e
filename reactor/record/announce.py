"""What our Events say: one function per thing worth telling on the pod concerned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reactor.cluster.pod_constraints import unsupported_constraints
from reactor.cluster.records import ConfigMap, Pod
from reactor.cluster.writes import Announcement
from reactor.decision.decide import Unhappy, Wait
from reactor.errors import format_errors
from reactor.execution.outcome import Placement, Rematch
from reactor.state.moves import Move, MoveState
from reactor.state.snapshot import Snapshot


def about_pod(pod: Pod, reason: str, message: str, *, warning: bool = False) -> Announcement:
    kind = "Warning" if warning else "Normal"
    return Announcement("Pod", pod.namespace, pod.name, pod.uid, reason, message, kind)


def about_wait(pod: Pod, wait: Wait) -> Announcement:
    return about_pod(pod, "RematchWaits", f"{wait.reason}: {wait.text}")


def about_unhappy(pod: Pod, one: Unhappy, rematch: Rematch | None) -> Announcement:
    end = _what_becomes_of(one, rematch) if rematch else "no plan moves it now"
    happiness = f"happiness {one.mood.probability:.2f} is below {one.mood.threshold.value:g}"
    return about_pod(pod, "Unhappy", f"{happiness}; {one.cause}; {end}", warning=True)


def _what_becomes_of(one: Unhappy, rematch: Rematch) -> str:
    target = next((move.target for move in rematch.plan.moves if move.uid == one.uid), None)
    if target is not None:
        return f"plan {rematch.plan_id} moves it to {target}"
    dumped = any(left.uid == one.uid for left in rematch.plan.dumped)
    return f"plan {rematch.plan_id} dumps it" if dumped else "no plan moves it now"


def about_move(run: Move, snapshot: Snapshot) -> Announcement | None:
    """Told on whichever of the two pods is there to be asked about."""
    if run.state is MoveState.EVICTED and run.replacement is None:
        return about_pod(
            run.pod, "Moving", f"evicted from {run.move.source} for {run.move.target} (plan {run.plan_id})"
        )
    if run.state is MoveState.DONE and run.dumps:
        return about_pod(run.pod, "Dumped", f"{run.outcome} (plan {run.plan_id})", warning=True)
    if run.state is MoveState.DONE:
        pod = snapshot.cluster.pods.get(run.replacement or "", run.pod)
        return about_pod(pod, "Moved", f"replaces {run.move.pod} of {run.move.source}: {run.outcome}")
    if run.state is MoveState.LATE:
        pod = snapshot.cluster.pods.get(run.replacement or "", run.pod)
        return about_pod(pod, "MoveLate", "not Ready by its deadline; no further move is started", warning=True)
    if run.state in (MoveState.FAILED, MoveState.SKIPPED):
        return about_pod(run.pod, f"Move{run.state.capitalize()}", run.outcome, warning=run.state is MoveState.FAILED)
    return None


def about_placement(placement: Placement, snapshot: Snapshot) -> Iterator[Announcement]:
    pods = snapshot.cluster.pods
    for pod in placement.unsupported:
        unsupported = ", ".join(unsupported_constraints(pod, snapshot.cluster))
        yield about_pod(pod, "FailedScheduling", f"cannot judge {unsupported}", warning=True)
    if placement.plan is None:
        return
    for left in placement.plan.unplaced:
        yield about_pod(pods[left.uid], "FailedScheduling", left.reason, warning=True)
    for one in placement.bound:
        if one.succeeded:
            yield about_pod(one.pod, "Scheduled", f"Successfully assigned {one.pod.key} to {one.move.target}")
        else:
            text = f"binding to {one.move.target} failed ({one.answer.outcome}): {one.answer.message}"
            yield about_pod(one.pod, "FailedBinding", text, warning=True)
    tried = {one.pod.uid for one in placement.bound}
    for move in placement.plan.moves:
        if move.uid not in tried:
            yield about_pod(pods[move.uid], "WouldBind", f"mode is observe: would bind to {move.target}")


def about_refused_settings(config_map: ConfigMap, problems: Sequence[tuple[str, str]]) -> Announcement:
    return Announcement(
        "ConfigMap",
        config_map.namespace,
        config_map.name,
        config_map.uid,
        "SettingsRefused",
        f"the last good settings stay in force: {format_errors(problems)}"[:1000],
        "Warning",
    )

"""The pod table, with the rules of the STATUS column."""

from __future__ import annotations

from loadtests.embedded.objects import condition_of, is_deleting, is_finished, is_ready, name_of, seconds, status_of
from loadtests.embedded.resources import Json
from loadtests.embedded.tables.cells import NONE, Cells, Column, age, human_duration, named, wide

COLUMNS = (
    named(),
    Column("Ready"),
    Column("Status"),
    Column("Restarts"),
    Column("Age"),
    *wide("IP", "Node", "Nominated Node", "Readiness Gates"),
)


def row(pod: Json, now: float) -> Cells:
    spec, status = pod["spec"], status_of(pod)
    initializing = _initializing(pod)
    done_initializing = not initializing or _is_true(pod, "Initialized")
    statuses = status.get("containerStatuses") or ()
    ready = sum(bool(known.get("ready")) for known in statuses) if done_initializing else 0
    reason = _running_reason(pod) if done_initializing else initializing
    if is_deleting(pod) and not is_finished(pod):
        reason = "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    ips = status.get("podIPs") or [{"ip": status.get("podIP")}]
    return [
        name_of(pod),
        f"{ready}/{len(spec['containers'])}",
        reason,
        _restarts(statuses if done_initializing else status.get("initContainerStatuses") or (), now),
        age(pod["metadata"].get("creationTimestamp"), now),
        ips[0].get("ip") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(pod),
    ]


def _is_true(pod: Json, kind: str) -> bool:
    condition = condition_of(pod, kind)
    return condition is not None and condition.get("status") == "True"


def _base_reason(pod: Json) -> str:
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled is not None and scheduled.get("reason") == "SchedulingGated":
        return "SchedulingGated"
    status = status_of(pod)
    return str(status.get("reason") or status.get("phase", ""))


def _initializing(pod: Json) -> str:
    """What the first unfinished init container is doing; empty when there is none."""
    containers = pod["spec"].get("initContainers") or ()
    for index, known in enumerate(status_of(pod).get("initContainerStatuses") or ()):
        state = known.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting") or {}
        if terminated is not None and terminated.get("exitCode") == 0:
            continue
        if terminated is not None:
            return f"Init:{_ended(terminated)}"
        if waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{len(containers)}"
    return ""


def _ended(terminated: Json) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _running_reason(pod: Json) -> str:
    reason, failed, running = _base_reason(pod), "", False
    for known in reversed(status_of(pod).get("containerStatuses") or ()):
        state = known.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting") or {}
        if waiting.get("reason"):
            reason = waiting["reason"]
        elif terminated is not None:
            reason = _ended(terminated)
            failed = reason if terminated.get("exitCode", 0) else failed
        elif known.get("ready") and state.get("running") is not None:
            running = True
    if reason != "Completed":
        return reason
    if running and is_ready(pod):
        return "Running"
    return failed or ("NotReady" if running else reason)


def _restarts(statuses: tuple[Json, ...] | list[Json], now: float) -> str:
    count = sum(known.get("restartCount", 0) for known in statuses)
    ended = [((known.get("lastState") or {}).get("terminated") or {}).get("finishedAt") for known in statuses]
    last = max((seconds(stamp) for stamp in ended), default=0.0)
    return f"{count} ({human_duration(now - last)} ago)" if count and last else str(count)


def _gates(pod: Json) -> str:
    gates = pod["spec"].get("readinessGates") or ()
    if not gates:
        return NONE
    return f"{sum(_is_true(pod, gate.get('conditionType', '')) for gate in gates)}/{len(gates)}"

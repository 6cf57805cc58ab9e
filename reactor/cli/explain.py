"""`rematch explain`: the page of a pod as text, from a running controller or from files."""

from __future__ import annotations

from pathlib import Path

from reactor.cli.client import fetch
from reactor.cli.output import table
from reactor.cli.planning import make_plan, settings_for
from reactor.clock import rfc3339
from reactor.cluster.dump import read_dump, read_input
from reactor.decision.cooldowns import Cooldowns
from reactor.decision.eligibility import Eligibility
from reactor.errors import InputError
from reactor.record.stored_problem import is_problem
from reactor.state.from_dump import snapshot_from_dump
from reactor.state.snapshot import Snapshot
from reactor.web.pod_page import placement_in, placement_now, pod_view
from reactor.web.view import AxisView, Evidence, PodView

PodName = tuple[str, str]


def explain_from_server(wanted: PodName, server: str) -> PodView:
    namespace, name = wanted
    view = fetch(server, f"pods/{namespace}/{name}", PodView)
    if view is None:
        raise InputError(f"{server} knows no pod {namespace}/{name}; kubectl get pods -A lists them all")
    return view


def explain_from_files(
    wanted: PodName, files: tuple[str, ...], settings_file: Path | None, scheduler_name: str | None
) -> PodView:
    namespace, name = wanted
    settings = settings_for(settings_file, scheduler_name)
    data = {path: read_input(path) for path in files}
    if any(map(is_problem, data.values())):
        raise InputError(f"{', '.join(files)}: explain needs what kubectl printed; `rematch plan -f` reads a problem")
    look = snapshot_from_dump(read_dump(files, data), settings)
    snapshot = look.snapshot
    pod = snapshot.cluster.pod_named(namespace, name)
    if pod is None:
        raise InputError(f"{', '.join(files)}: no pod {namespace}/{name}{_similar(snapshot, wanted)}")
    planned = placement_in(make_plan(snapshot, settings).plan, pod.uid, "now", snapshot.at)
    eligibility = Eligibility(snapshot, Cooldowns(), settings)
    placement = planned or placement_now(pod, eligibility)
    return pod_view(pod, eligibility, look.evidence.get(pod.uid), placement)


def _similar(snapshot: Snapshot, wanted: PodName) -> str:
    """People remember the name of a Deployment rather than the names of its pods."""
    namespace, name = wanted
    found = sorted(
        pod.name for pod in snapshot.cluster.pods.values() if pod.namespace == namespace and name in pod.name
    )
    return f"; did you mean {', '.join(found[:3])}?" if found else ""


def render(view: PodView) -> str:
    parts = [_identity(view), _happiness(view.happiness)]
    if view.decision is not None:
        until = f" (until {rfc3339(view.decision.until)})" if view.decision.until else ""
        parts.append(f"Decision:   {view.decision.kind} ({view.decision.reason}): {view.decision.text}{until}")
    if view.fixed:
        parts.append(f"Not moved:  {view.fixed}")
    parts.append("\n".join(_axis(axis) for axis in view.resources))
    if view.placement is not None:
        parts.append(f"Why here:   {'; '.join(view.placement.why_here)}")
        if view.placement.why_not:
            parts.append(table(("why not", "reason"), [(no.node, no.reason) for no in view.placement.why_not]))
    if view.history:
        rows = [(rfc3339(one.at), one.kind, one.reason, one.text) for one in view.history]
        parts.append(table(("time", "kind", "reason", "text"), rows))
    return "\n\n".join(parts)


def _identity(view: PodView) -> str:
    state = f"{view.phase}, {'Ready' if view.ready else 'not Ready'}, {view.restarts} restarts"
    return (
        f"Pod:        {view.namespace}/{view.name} ({view.uid})\n"
        f"Node:       {view.node or '<none>'}\n"
        f"State:      {state}\n"
        f"Owner:      {view.workload or '<none>'}\n"
        f"Scheduler:  {view.scheduler}{'' if view.managed else ' (not managed)'}"
    )


def _happiness(evidence: Evidence | None) -> str:
    if evidence is None:
        return "Happiness:  unknown (no liveness probe, or not running)"
    m, s, f = evidence.goodwill, evidence.successes, evidence.failures
    verdict = "happy" if evidence.happy else "UNHAPPY"
    lines = [
        f"Happiness:  {evidence.value:.3f} = (m + S) / (m + S + F) = ({m:g} + {s:.2f}) / ({m:g} + {s:.2f} + {f:.2f})",
        f"Threshold:  {evidence.threshold:g} ({evidence.threshold_source}) -> {verdict}",
        f"Half-life:  {evidence.half_life:g} s",
        "Failures:   " + ", ".join(f"{one.failures:g} by {one.source}" for one in evidence.sources),
    ]
    if evidence.last_failure is not None:
        lines.append(f"Last:       {rfc3339(evidence.last_failure)}")
    lines += [f"Message:    {rfc3339(message.at)} {message.text}" for message in evidence.messages]
    return "\n".join(lines)


def _axis(axis: AxisView) -> str:
    def amount(value: float | None) -> str:
        if value is None:
            return "unknown"
        return f"{value:.3f} cores" if axis.unit == "cores" else f"{value / 2**20:.0f} MiB"

    of = f" of {amount(axis.capacity)} on the node" if axis.capacity is not None else ""
    label = f"{axis.axis.capitalize()}:"
    return f"{label:<12}uses {amount(axis.usage)}, requests {amount(axis.request)}, peak {amount(axis.peak)}{of}"

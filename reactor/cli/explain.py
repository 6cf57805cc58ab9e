"""`rematch explain`: the page of a pod as text, from a running controller or from files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs
from pydantic import ValidationError

from matching.plan import Plan
from reactor.cli.client import fetch
from reactor.cli.evidence_output import evidence_of_one
from reactor.cli.output import table
from reactor.cli.plan_output import DISTANCE
from reactor.cli.planning import make_plan, settings_for
from reactor.clock import rfc3339
from reactor.cluster.dump import read_dump, read_input
from reactor.decision.cooldowns import Cooldowns
from reactor.decision.eligibility import Eligibility
from reactor.errors import InputError
from reactor.record.history_reader import HistoryEntry
from reactor.record.stored_problem import is_problem
from reactor.settings.duration import format_duration
from reactor.state.from_dump import snapshot_from_dump
from reactor.web.pod_page import placement_in, placement_now, pod_view
from reactor.web.pod_search import find_pods
from reactor.web.query import FindQuery
from reactor.web.view import AxisView, Evidence, FoundPod, FoundPods, PlacementView, PodView

KINDS = {
    "Pod": ("po", "pod", "pods"),
    "Deployment": ("deploy", "deployment", "deployments", "deployment.apps"),
    "ReplicaSet": ("rs", "replicaset", "replicasets", "replicaset.apps"),
    "StatefulSet": ("sts", "statefulset", "statefulsets", "statefulset.apps"),
    "DaemonSet": ("ds", "daemonset", "daemonsets", "daemonset.apps"),
    "Job": ("job", "jobs", "job.batch"),
}
"""What kubectl accepts before the slash. A namespace of such a name is given with -n."""
_KIND_OF = {alias: kind for kind, aliases in KINDS.items() for alias in aliases}


@dataclass(frozen=True, slots=True)
class Explained:
    found: FoundPods
    view: PodView
    """The first of them: the only one, or the unhappiest."""
    notes: tuple[str, ...] = ()
    """What files do not say."""


def wanted_pods(text: str, namespace: str | None) -> FindQuery:
    """From NAME, NAMESPACE/NAME or KIND/NAME."""
    before, slash, name = text.rpartition("/")
    kind = _KIND_OF.get(before.lower(), "")
    if slash and not kind:
        namespace = before
    if not name or "/" in before or (slash and not before):
        raise InputError(f"{text!r} names no pod; write NAME, NAMESPACE/NAME or KIND/NAME such as deploy/web")
    try:
        return FindQuery.model_validate({"name": name, "namespace": namespace or "", "kind": kind})
    except ValidationError as error:
        raise InputError(f"{text[:80]!r} names no pod: {error.errors(include_url=False)[0]['msg']}") from error


def explain_from_server(wanted: FindQuery, server: str) -> Explained:
    query = {"name": wanted.name, "namespace": wanted.namespace, "kind": wanted.kind}
    found = fetch(server, "find", FoundPods, **query)
    if found is None:
        raise InputError(f"{server} is no Rematch controller of this version: it has no /api/v1/find")
    first = _first(found, wanted, server)
    view = fetch(server, f"pods/{first.namespace}/{first.name}", PodView)
    if view is None:
        raise InputError(f"{server}: {first.namespace}/{first.name} is gone by now; try again")
    return Explained(found, view)


def explain_from_files(
    wanted: FindQuery, files: tuple[str, ...], settings_file: Path | None, scheduler_name: str | None
) -> Explained:
    settings = settings_for(settings_file, scheduler_name)
    data = {path: read_input(path) for path in files}
    if any(map(is_problem, data.values())):
        raise InputError(f"{', '.join(files)}: explain needs what kubectl printed; `rematch plan -f` reads a problem")
    look = snapshot_from_dump(read_dump(files, data), settings)
    snapshot = look.snapshot
    eligibility = Eligibility(snapshot, Cooldowns(), settings)
    found = find_pods(wanted, eligibility)
    pod = snapshot.cluster.pods[_first(found, wanted, ", ".join(files)).uid]
    plan = make_plan(snapshot, settings).plan
    placement = placement_in(plan, pod.uid, "now", snapshot.at)
    if placement is None and (placement := placement_now(pod, eligibility)) is not None:
        placement = structs.replace(placement, kept=_kept(plan, pod.uid))
    return Explained(found, pod_view(pod, eligibility, look.evidence.get(pod.uid), placement), look.notes)


def _kept(plan: Plan, uid: str) -> str:
    """What the plan says of a pod that it does not move."""
    reason = plan.why_stays((uid,)).get(uid)
    if reason is not None:
        return f"leaves it here: {reason}"
    return next((f"has no node for it: {left.reason}" for left in plan.unplaced if left.uid == uid), "")


def _first(found: FoundPods, wanted: FindQuery, source: str) -> FoundPod:
    if found.pods:
        return found.pods[0]
    what = f"no {wanted.kind} with pods" if wanted.kind not in ("", "Pod") else "no pod and no workload"
    where = f" in namespace {wanted.namespace}" if wanted.namespace else ""
    near = f"; did you mean {', '.join(found.near)}?" if found.near else "; kubectl get pods -A lists all pods"
    raise InputError(f"{source}: {what} {wanted.name!r}{where}{near}")


def to_document(explained: Explained) -> object:
    """The page of the pod; if several were found, all of them and the page of the unhappiest."""
    if len(explained.found.pods) == 1:
        return explained.view
    return {"pods": explained.found.pods, "total": explained.found.total, "unhappiest": explained.view}


def render(explained: Explained) -> str:
    found = explained.found
    page = "\n\n".join([_page(explained.view), *(f"note: {note}" for note in explained.notes)])
    if found.note:
        return f"{found.note}\n\n{page}"
    if len(found.pods) == 1:
        return page
    rows = [
        (f"{pod.namespace}/{pod.name}", pod.node, _probability(pod), _state(pod), pod.workload, pod.fixed)
        for pod in found.pods
    ]
    more = f"\n... and {found.total - len(rows)} more" if found.total > len(rows) else ""
    listed = table(("pod", "node", "happiness", "state", "owner", "not moved"), rows)
    return f"{found.total} pods match, unhappiest first; the first is explained below\n\n{listed}{more}\n\n{page}"


def _probability(pod: FoundPod) -> str:
    if pod.happiness is None:
        return "unknown"
    return f"{pod.happiness:.2f}" + ("" if pod.happy else " UNHAPPY")


def _state(pod: FoundPod) -> str:
    return pod.phase if pod.ready or pod.phase != "Running" else "Running, not Ready"


def _page(view: PodView) -> str:
    parts = [_identity(view), _happiness(view.happiness)]
    if view.decision is not None:
        until = f" (until {rfc3339(view.decision.until)})" if view.decision.until else ""
        told_below = view.fixed == f"{view.decision.reason}: {view.decision.text}"
        text = "" if told_below else f": {view.decision.text}"
        parts.append(f"Decision:   {view.decision.kind} ({view.decision.reason}){text}{until}")
        if view.decision.placement_probability is not None:
            found = evidence_of_one(view.decision.placement_probability, view.decision.evidence)
            parts.append(f"Its place:  {found}")
    if view.fixed:
        parts.append(f"Not moved:  {view.fixed}")
    elif view.placement is not None and view.placement.kept:
        parts.append(f"Plan:       {view.placement.kept}")
    if view.moved_by:
        parts.append(f"Moved by:   {view.moved_by}")
    parts.append("\n".join(_axis(axis) for axis in view.resources))
    if view.placement is not None:
        parts.append(f"Why here:   {'; '.join(view.placement.why_here)}")
        if view.placement.why_not:
            parts.append(table(("why not", "reason"), [(no.node, no.reason) for no in view.placement.why_not]))
        if any("distance" in text for text in _texts(view.placement)):
            parts.append(DISTANCE)
    if view.history:
        name = f"{view.namespace}/{view.name}"
        rows = [(rfc3339(one.at), one.kind, one.reason, _text(one, name)) for one in view.history]
        parts.append(table(("time", "kind", "reason", "text"), rows))
        parts += _why_planned(view.history)
    return "\n\n".join(parts)


def _texts(placement: PlacementView) -> Iterator[str]:
    yield from placement.why_here
    yield from (no.reason for no in placement.why_not)


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
        f"            m: goodwill, S: passed and F: failed probes, each counts half after {evidence.half_life:g} s",
        f"Threshold:  {evidence.threshold:g} ({evidence.threshold_source}) -> {verdict}",
        "Failures:   " + ", ".join(f"{one.failures:g} {_origin(one.source)}" for one in evidence.sources),
    ]
    if evidence.last_failure is not None:
        lines.append(f"Last:       {rfc3339(evidence.last_failure)}")
    lines += [f"Message:    {rfc3339(message.at)} {message.text}" for message in evidence.messages]
    return "\n".join(lines)


def _text(entry: HistoryEntry, name: str) -> str:
    """With the name of the pod that this one replaced, where the entry is about that one."""
    return entry.text if entry.pod in (None, name) else f"{entry.pod}: {entry.text}"


def _why_planned(history: Iterable[HistoryEntry]) -> list[str]:
    """The evidence of the newest plan for this pod, or the one that it replaced."""
    for entry in history:
        for one in entry.unhappy:
            if one.placement_probability is not None:
                likely = evidence_of_one(one.placement_probability, one.evidence)
                return [f"Place of {one.pod} when plan {entry.plan} was made: {likely}"]
    return []


def _origin(source: str) -> str:
    """A kill proves as many failures as the probe's threshold; those that nobody reported are inferred from it."""
    return "inferred from kills" if source == "kills" else f"by {source}"


def _axis(axis: AxisView) -> str:
    def amount(value: float | None) -> str:
        if value is None:
            return "unknown"
        return f"{value:.3f} cores" if axis.unit == "cores" else f"{value / 2**20:.0f} MiB"

    of = f" of {amount(axis.capacity)} on the node" if axis.capacity is not None else ""
    label = f"{axis.axis.capitalize()}:"
    now = f"{label:<12}uses {amount(axis.usage)}, requests {amount(axis.request)}, peak {amount(axis.peak)}{of}"
    forecast = axis.forecast
    if forecast is None:
        return now
    until, promise = format_duration(forecast.horizon), f"{forecast.coverage:.0%}, {forecast.trust}"
    lines = [now, f"{'':<12}in {until}: {amount(forecast.value)}, peak until then {amount(forecast.peak)} ({promise})"]
    if forecast.seconds_to_limit is not None:
        left = format_duration(round(forecast.seconds_to_limit / 60) * 60)
        lines.append(f"{'':<12}grows steadily and reaches its limit in about {left}")
    return "\n".join(lines)

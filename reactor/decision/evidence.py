"""How likely is it that a pod fails because of where it is? One number, and what it is made of.

The odds are a product: prior odds that its place and not the pod itself is the cause, times one likelihood ratio for
each thing that is known. Only probes since the node was relieved and the container started count. On an idle node the
ratio of the load is close to 0, so no number of failures is enough there, unless the pod's replicas elsewhere are well
and other workloads on the node fail, too. Where workloads on nodes with room begin to fail in the same minute,
something that all of them need is the cause, and not this place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from matching.cached_property import cached_property
from reactor.cluster.records import Pod
from reactor.decision.causes import NodeCause, text_with_load
from reactor.decision.corroboration import fails_for_certain
from reactor.decision.eligibility import Eligibility
from reactor.signals.probe_counts import FailedProbes, RecentProbes
from reactor.signals.workloads import workload_key
from reactor.state.load_changes import LoadChange
from reactor.state.snapshot import Snapshot

PRIOR_ODDS = 0.1
"""Of a node without load as the cause: a failing pod is far more often ill itself."""
FLOORS = (0.0002, 0.005)
"""Bounds of the curve's floor, so that a curve fitted to few probes does not make anything certain."""
WORST_RECORD = 0.05
"""The share of failed probes up to which the pod's own past speaks against its place; some of it was its place."""
BURST = 0.7
"""How likely the next probe fails, too, where one failed by chance: such failures come in bursts."""
SATURATED = 0.97
"""From this load on measurements do not show how much more the pods want."""
LEAST_BY_PAST = 0.05
NODE_FAULT = 0.001
"""How often a probe fails by a hidden fault of the node: its network, its disk, its DNS."""
LONGEST_BURST = 60.0
"""Seconds in which the probes of a node may fail together by chance: a lost packet, a slow disk."""
LATELY = 300.0
LAST_PROBES = 30.0
"""Failures count as evidence for so many probes, at least `LATELY`: those of yesterday belong to another trouble."""
FAILED_BEFORE = 2.0
"""Probes that failed lately before such a burst; a single one is chance."""
REPLICA_FAILS = (0.02, 0.5)
"""How likely a replica elsewhere fails: when the place is the cause, and when the app is."""
REPLICAS_BOUNDS = (0.01, 4.0)
ELSEWHERE_FAILS = (0.05, 0.5)
"""How likely another workload fails in the same minute on a node with room: when the place is the cause, and when it is
something that all of them need."""
LEAST_ELSEWHERE = 2
"""Workloads that fail there; one is chance."""
ELSEWHERE_LEAST = 0.001
"""The least ratio of such failures."""
NEIGHBOUR_FAILS = 15.0
NEIGHBOUR_WELL = 0.7
NEIGHBOURS_BOUNDS = (0.5, 150.0)
THROTTLED = 0.25
"""From this share of throttled periods the pod's own limit explains that it fails."""
BY_OWN_LIMIT = 0.05
MOSTLY_THROTTLED = 0.75
BY_OWN_LIMIT_MOSTLY = 0.005
"""Where it is throttled most of the time, not even a saturated node is the likelier cause."""
WAITS, DOES_NOT_WAIT = 0.2, 0.02
"""Shares of the time in which the pod waits for a CPU."""
BY_PRESSURE = (0.2, 3.0)
LARGEST_RAISE = 4.0


class PartName(StrEnum):
    PRIOR = "prior"
    LOAD = "load"
    RECORD = "record"
    PAST = "past at this load"
    PROBES = "probes"
    REPLICAS = "replicas elsewhere"
    NEIGHBOURS = "other workloads here"
    ELSEWHERE = "other workloads elsewhere"
    THROTTLING = "CPU limit"
    PRESSURE = "CPU pressure"


@dataclass(frozen=True, slots=True)
class Part:
    name: PartName
    ratio: float
    """Above 1 it speaks for the place, below 1 for the pod itself or for chance."""
    text: str


@dataclass(frozen=True, slots=True)
class RecentCounts:
    """Probes that count for a decision, not decayed."""

    since: float
    """When the node was last relieved or the container started; 0 when neither is known."""
    failed: float
    """Lately."""
    passed_since: float
    """Of all containers, since `since`."""
    passed_in_a_row: float
    """Since the last failed one."""
    counted: float
    """Of the failures those that the kubelet's counters show."""


@dataclass(frozen=True)
class Evidence:
    parts: tuple[Part, ...]
    counts: RecentCounts
    node: str = ""
    """What is known of its node, with the load that counted."""
    node_suspected: bool = False
    """The cause is the node, and not its load, although it reports nothing."""
    node_faulty: bool = False
    """The same, or it reports that it is not well."""
    raise_limit: str = ""
    """The pod runs into its own CPU limit: from what to about what to raise it."""
    replicas_fail: bool = False
    """The app fails on other nodes, too, that are not crowded."""
    others_fail: str = ""
    """How many workloads elsewhere began to fail in the same minute."""

    @cached_property
    def odds(self) -> float:
        return math.prod(part.ratio for part in self.parts)

    @cached_property
    def probability(self) -> float:
        return self.odds / (1.0 + self.odds)

    @property
    def product(self) -> str:
        return " x ".join(f"{part.name} {part.ratio:.3g}" for part in self.parts)

    @property
    def load_speaks_against(self) -> bool:
        """At the load of its node next to no probe fails."""
        return any(part.name is PartName.LOAD and part.ratio * PRIOR_ODDS < 1 for part in self.parts)

    def __str__(self) -> str:
        return f"{self.probability:.0%} likely because of where it is"


def recent_counts(pod: Pod, snapshot: Snapshot, relieved: float) -> RecentCounts:
    """`relieved`: when a move of ours last relieved the node."""
    recent = _recent(pod, snapshot)
    relieved = max(relieved, snapshot.load_changes.get(pod.node or "", LoadChange()).fell)
    started = max((each.since for each in recent), default=0.0)
    last = max((each.last_failure or 0.0 for each in recent), default=0.0)
    lately = [(each, max(relieved, snapshot.at - max(LATELY, LAST_PROBES * each.period))) for each in recent]
    return RecentCounts(
        since=max(0.0, relieved, started),
        failed=sum(each.failed(since) for each, since in lately),
        passed_since=sum(each.passed(relieved) for each in recent),
        passed_in_a_row=min((each.passed(last) // 1 for each in recent if each.failed(relieved)), default=0.0),
        counted=sum(each.counted_failed(since) for each, since in lately),
    )


def _recent(pod: Pod, snapshot: Snapshot) -> tuple[RecentProbes, ...]:
    """Without a record of single probes all that are counted are recent."""
    found = snapshot.recent_probes.get(pod.uid)
    if found is not None:
        return found
    at, counts = snapshot.at, snapshot.happiness[pod.uid].counts
    failures, counted = (FailedProbes(at, at, count) for count in (counts.failures, counts.counted))
    return (RecentProbes(at, 0.0, at, 0.0, (failures,), (counted,)),)


def evidence_of(pod: Pod, cause: NodeCause, counts: RecentCounts, eligibility: Eligibility) -> Evidence:
    snapshot = eligibility.snapshot
    replicas, neighbours = _replicas(pod, eligibility), _neighbours(pod, eligibility)
    curve = snapshot.failure_curve
    floor = min(max(curve.floor, FLOORS[0]), FLOORS[1])
    load = max(cause.load, snapshot.load_changes.get(pod.node or "", LoadChange()).highest(counts.since))
    wanted = load if load < SATURATED else max(load, curve.midpoint)
    extra = curve.ceiling if cause.broken else max(0.0, curve.probability(wanted) - curve.floor)
    lasts = _lasts(pod, counts, snapshot)
    node = text_with_load(cause, load)
    fault = extra < NODE_FAULT and replicas.well > 0 and neighbours.failing > 0 and lasts
    predicted = NODE_FAULT if fault else extra
    limit, elsewhere = _throttling(pod, snapshot), _elsewhere(pod, counts, eligibility)
    found = (
        Part(PartName.PRIOR, PRIOR_ODDS, "a failing pod is mostly ill itself"),
        _load(cause, node, predicted / floor, extra, curve.floor, fault=fault),
        _record(pod, snapshot, floor),
        None if cause.broken or load >= SATURATED else _past(pod, counts, extra, snapshot),
        _probes(counts),
        replicas.part,
        elsewhere,
        limit.part,
        _pressure(pod, snapshot, throttled=bool(limit.raise_to)),
    )
    parts = [part for part in found if part is not None]
    if neighbours.part is not None:
        parts.append(neighbours.part if lasts else _or_a_burst(neighbours.part, parts, extra))
    return Evidence(
        parts=tuple(parts),
        counts=counts,
        node=node,
        node_suspected=fault,
        node_faulty=fault or cause.broken,
        raise_limit=limit.raise_to,
        replicas_fail=replicas.part is not None and replicas.part.ratio < 1,
        others_fail="" if elsewhere is None else elsewhere.text,
    )


def _lasts(pod: Pod, counts: RecentCounts, snapshot: Snapshot) -> bool:
    """It fails for longer than a burst, or again after the kubelet has killed it."""
    lately, burst = max(counts.since, snapshot.at - LATELY), snapshot.at - LONGEST_BURST
    groups = [group for each in _recent(pod, snapshot) for group in each.failures]
    before = sum(group.count for group in groups if lately < group.last <= burst)
    killed = any(snapshot.at - LATELY < (each.terminated or 0.0) < (each.started or 0.0) for each in pod.containers)
    return killed or before >= FAILED_BEFORE


def _load(cause: NodeCause, node: str, ratio: float, extra: float, floor: float, *, fault: bool) -> Part:
    if fault:
        text = f"{node}, but other workloads fail there and its replicas elsewhere are well: the node itself"
    elif cause.broken:
        text = node
    else:
        text = f"{node}: {extra + floor:.2%} of probes fail then, {floor:.2%} when idle"
    return Part(PartName.LOAD, ratio, text)


def _record(pod: Pod, snapshot: Snapshot, floor: float) -> Part | None:
    """A pod that failed as often before its node was in question does so by itself."""
    usual = floor / PRIOR_ODDS
    share = min(max((each.earlier_share for each in _recent(pod, snapshot)), default=0.0), WORST_RECORD)
    if share <= usual:
        return None
    return Part(PartName.RECORD, usual / share, f"{share:.1%} or more of its probes failed before, too")


def _past(pod: Pod, counts: RecentCounts, extra: float, snapshot: Snapshot) -> Part | None:
    """Probes that passed at this load, before the first one failed."""
    steady = snapshot.load_changes.get(pod.node or "", LoadChange()).steady_since
    if math.isinf(steady):
        return None
    passed = 0.0
    for each in _recent(pod, snapshot):
        first = each.first_failure(counts.since)
        passed += 0.0 if first is None else each.passed(max(steady, counts.since), first)
    if passed < 1:
        return None
    ratio = max(LEAST_BY_PAST, (1.0 - min(extra, 0.99)) ** passed)
    return Part(PartName.PAST, ratio, f"{passed:.0f} probes passed at this load before one failed")


def _probes(counts: RecentCounts) -> Part:
    """Against chance: failures at a rate that is not known, or one burst, which a passed probe ends."""
    failed, passed = counts.failed, counts.passed_in_a_row
    trouble = math.exp(math.lgamma(failed + 1) + math.lgamma(passed + 1) - math.lgamma(failed + passed + 2))
    chance = BURST ** max(0.0, failed - 1) * (1 - BURST if passed >= 1 else 1.0)
    in_a_row = f", then {passed:.0f} passed" if passed >= 1 else ""
    return Part(PartName.PROBES, trouble / (trouble + chance), f"{failed:.0f} failed{in_a_row}")


@dataclass(frozen=True, slots=True)
class _Replicas:
    well: int
    part: Part | None


def _replicas(pod: Pod, eligibility: Eligibility) -> _Replicas:
    """The replicas of its owner on other nodes. Those that fail on a crowded node say nothing."""
    snapshot = eligibility.snapshot
    siblings = snapshot.cluster.pods_of(pod.owner.uid) if pod.owner is not None else ()
    elsewhere = [one for one in siblings if one.node not in (None, pod.node) and _is_probed(one)]
    failing = sum(_fails(one, snapshot) and not eligibility.is_crowded(one.node or "") for one in elsewhere)
    well = sum(one.ready and one.uid not in snapshot.happiness for one in elsewhere)
    if not failing + well:
        return _Replicas(0, None)
    by_place, by_app = REPLICA_FAILS
    log = failing * math.log(by_place / by_app) + well * math.log((1 - by_place) / (1 - by_app))
    text = f"{well} well, {failing} failing on nodes that are not crowded"
    return _Replicas(well, Part(PartName.REPLICAS, _bounded(log, REPLICAS_BOUNDS), text))


@dataclass(frozen=True, slots=True)
class _Neighbours:
    failing: int
    part: Part | None


def _neighbours(pod: Pod, eligibility: Eligibility) -> _Neighbours:
    """Other workloads on the same node. One whose failures only Events show counts neither as failing, since they may
    be anybody's work, nor as well; neither does one that its own CPU limit explains."""
    snapshot, own = eligibility.snapshot, workload_key(pod)
    others = [one for one in snapshot.cluster.pods_on(pod.node or "") if _is_probed(one) and workload_key(one) != own]
    unwell = [one for one in others if _fails(one, snapshot)]
    well = len({*map(workload_key, others)} - {*map(workload_key, unwell)})
    unexplained = [one for one in unwell if not _throttling(one, snapshot).raise_to]
    certain = [one for one in unexplained if fails_for_certain(one, snapshot, eligibility.settings)]
    failing = len({*map(workload_key, certain)})
    if not failing + well:
        return _Neighbours(0, None)
    log = failing * math.log(NEIGHBOUR_FAILS) + well * math.log(NEIGHBOUR_WELL)
    text = f"{failing} fail, {well} are well"
    return _Neighbours(failing, Part(PartName.NEIGHBOURS, _bounded(log, NEIGHBOURS_BOUNDS), text))


def _elsewhere(pod: Pod, counts: RecentCounts, eligibility: Eligibility) -> Part | None:
    """Workloads on nodes with room that began to fail in the same minute: of the network, of a service that all of them
    need, or because whoever probes them was slow. Events count, too: they can only keep pods where they are."""
    snapshot, own = eligibility.snapshot, workload_key(pod)
    began = _began(pod, max(counts.since, snapshot.at - LATELY), snapshot)
    if began is None:
        return None
    others = [one for one in eligibility.pods_with_room if one.node != pod.node and workload_key(one) != own]
    failing = {workload_key(one) for one in others if _began_then(one, began, snapshot)}
    if len(failing) < LEAST_ELSEWHERE:
        return None
    well = len({workload_key(one) for one in others if _is_probed(one)} - failing)
    by_place, by_all = ELSEWHERE_FAILS
    log = len(failing) * math.log(by_place / by_all) + well * math.log((1 - by_place) / (1 - by_all))
    if log >= 0:
        return None
    text = f"{len(failing)} on nodes with room began to fail in the same minute, {well} are well"
    return Part(PartName.ELSEWHERE, max(math.exp(log), ELSEWHERE_LEAST), text)


def _began(pod: Pod, since: float, snapshot: Snapshot) -> float | None:
    first = [each.first_failure(since) for each in _recent(pod, snapshot)]
    return min((at for at in first if at is not None), default=None)


def _began_then(pod: Pod, at: float, snapshot: Snapshot) -> bool:
    """Not one that failed before."""
    if pod.uid not in snapshot.happiness:
        return False
    began = _began(pod, at - LATELY, snapshot)
    return began is not None and abs(began - at) <= LONGEST_BURST


def _or_a_burst(neighbours: Part, others: Sequence[Part], extra: float) -> Part:
    """Workloads that fail together show that it is the node, but not whether it is its load: in a short burst they fail
    together, too. So they make the place at most as likely as its load makes more probes fail than bursts do."""
    most = max(1.0, extra / NODE_FAULT / math.prod(part.ratio for part in others)) if extra else neighbours.ratio
    if neighbours.ratio <= most:
        return neighbours
    return Part(neighbours.name, most, f"{neighbours.text}; it may be a short burst")


@dataclass(frozen=True, slots=True)
class _Limit:
    raise_to: str
    part: Part | None


def _throttling(pod: Pod, snapshot: Snapshot) -> _Limit:
    """A pod is throttled by its own limit on every node."""
    throttled = snapshot.usage.throttled(pod.uid).fresh
    if throttled is None:
        return _Limit("", None)
    if throttled < THROTTLED:
        return _Limit("", Part(PartName.THROTTLING, 1.0, f"throttled in {throttled:.0%} of the periods"))
    text = f"it runs into its own CPU limit in {throttled:.0%} of the periods"
    ratio = BY_OWN_LIMIT if throttled < MOSTLY_THROTTLED else BY_OWN_LIMIT_MOSTLY
    return _Limit(_raise_limit(pod, throttled), Part(PartName.THROTTLING, ratio, text))


def _raise_limit(pod: Pod, throttled: float) -> str:
    """What it wants is at most what it had in the periods without throttling, in all periods."""
    limit = sum(container.cpu_limit or 0.0 for container in pod.containers)
    if not limit:
        return "raise the limit"
    factor = 1 / (1 - throttled) if throttled < 1 else math.inf
    about = f"about {_millicores(limit * factor)}" if factor <= LARGEST_RAISE else f"{_millicores(limit * 4)} or more"
    return f"raise the limit from {_millicores(limit)} to {about}"


def _millicores(cores: float) -> str:
    return f"{math.ceil(cores * 100 - 1e-6) * 10}m"


def _pressure(pod: Pod, snapshot: Snapshot, *, throttled: bool) -> Part | None:
    """PSI counts the time in which a pod is throttled, too; then it says nothing about the node."""
    share = snapshot.usage.waits_for_cpu(pod.uid).fresh
    if share is None or throttled:
        return None
    ratio = BY_PRESSURE[0] if share < DOES_NOT_WAIT else BY_PRESSURE[1] if share >= WAITS else 1.0
    return Part(PartName.PRESSURE, ratio, f"it waits for a CPU in {share:.0%} of the time")


def _is_probed(pod: Pod) -> bool:
    return pod.active and any(one.liveness is not None and one.started is not None for one in pod.containers)


def _fails(pod: Pod, snapshot: Snapshot) -> bool:
    happiness = snapshot.happiness.get(pod.uid)
    return happiness is not None and happiness.unhappy


def _bounded(log: float, bounds: tuple[float, float]) -> float:
    return min(max(math.exp(min(log, 20.0)), bounds[0]), bounds[1])

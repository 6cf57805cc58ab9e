"""Differences between kube-scheduler and us: which are dangerous, and which are intended."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from loadtests.oracle.judge import Question, Verdict
from loadtests.oracle.ours import Opinion
from loadtests.same_plans.draw import Json

PAIR = "pair"
_NAMES_AND_AMOUNTS = re.compile(r"\"[^\"]*\"|\S*\d\S*")


class Danger(StrEnum):
    DANGEROUS = "dangerous"
    """We say yes where kube-scheduler says no: an evicted pod would wait, or we would bind it where it must not run."""
    CAUTIOUS = "cautious"
    """We say no where kube-scheduler says yes: a possible move is not made."""


@dataclass(frozen=True, slots=True)
class Difference:
    asked_by: str
    """`pair`, or the planner whose move it is."""
    question: Question
    verdict: Verdict
    opinion: Opinion
    before: tuple[Question, ...] = ()
    """The moves of the plan that were made before this one."""
    fits_without_own_nominees: bool = False
    """Whether kube-scheduler allows it when pending pods that only we would place hold no room by nomination."""

    @property
    def danger(self) -> Danger:
        return Danger.DANGEROUS if self.opinion.fits else Danger.CAUTIOUS

    @property
    def cause(self) -> str:
        """Equal for differences that are of a kind: whoever says no, and why, without names and amounts."""
        if self.danger is Danger.DANGEROUS:
            return f"{self.verdict.plugin}: {_NAMES_AND_AMOUNTS.sub('*', self.verdict.message)}"
        return _NAMES_AND_AMOUNTS.sub("*", self.opinion.reason)

    def __str__(self) -> str:
        ours = "yes" if self.opinion.fits else f"no ({self.opinion.reason})"
        turn = f", move {len(self.before) + 1} of {self.asked_by}" if self.asked_by != PAIR else ""
        where = f"pod with UID {self.question.uid} on {self.question.node}{turn}"
        return f"{self.danger}: {where}: we say {ours}, kube-scheduler says {self.verdict}"


class Facts:
    """The objects that a difference is about."""

    def __init__(self, items: Sequence[Json]) -> None:
        self._pods: Mapping[str, Json] = {_uid(item): item for item in items if item["kind"] == "Pod"}
        self._pvs: Mapping[str, Json] = {_name(item): item for item in items if item["kind"] == "PersistentVolume"}
        self._pvcs: Mapping[tuple[str, str], Json] = {
            (item["metadata"]["namespace"], _name(item)): item
            for item in items
            if item["kind"] == "PersistentVolumeClaim"
        }
        self._nodes: Mapping[str, Json] = {_name(item): item for item in items if item["kind"] == "Node"}

    def pod(self, difference: Difference) -> Json:
        return self._pods[difference.question.uid]

    def node(self, difference: Difference) -> Json:
        return self._nodes[difference.question.node]

    def pods_on(self, node: str) -> Iterator[Json]:
        return (pod for pod in self._pods.values() if pod["spec"].get("nodeName") == node)

    def claims(self, pod: Json) -> Iterator[Json]:
        """The PVCs of the pod that exist."""
        meta = pod["metadata"]
        for volume in pod["spec"].get("volumes", ()):
            named = (volume.get("persistentVolumeClaim") or {}).get("claimName", f"{meta['name']}-{volume['name']}")
            if (meta["namespace"], named) in self._pvcs:
                yield self._pvcs[meta["namespace"], named]

    def volumes(self, pod: Json) -> Iterator[Json]:
        """The PVs of the pod that exist."""
        named = (claim["spec"].get("volumeName", "") for claim in self.claims(pod))
        return (self._pvs[name] for name in named if name in self._pvs)


@dataclass(frozen=True, slots=True)
class Intended:
    """A difference that we want, and why."""

    name: str
    reason: str
    applies: Callable[[Difference, Facts], bool]


def intended(difference: Difference, facts: Facts) -> str:
    """The name of the first intention that explains it; empty without one."""
    return next((each.name for each in INTENDED if each.applies(difference, facts)), "")


def _uid(item: Json) -> str:
    return str(item["metadata"]["uid"])


def _name(item: Json) -> str:
    return str(item["metadata"]["name"])


def _says_no(text: str) -> Callable[[Difference, Facts], bool]:
    return lambda difference, _: difference.danger is Danger.CAUTIOUS and text in difference.opinion.reason


def _cordoned(difference: Difference, facts: Facts) -> bool:
    spec = facts.node(difference).get("spec", {})
    tainted = any(taint["key"] == "node.kubernetes.io/unschedulable" for taint in spec.get("taints", ()))
    return difference.danger is Danger.CAUTIOUS and (tainted or bool(spec.get("unschedulable")))


def _not_ready(difference: Difference, facts: Facts) -> bool:
    conditions = facts.node(difference).get("status", {}).get("conditions", ())
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return difference.danger is Danger.CAUTIOUS and not ready


def _namespace_selector(difference: Difference, facts: Facts) -> bool:
    """Its plugin forgets the labels of namespaces only for the terms of the pod that is placed."""
    says_no = difference.verdict.plugin if difference.danger is Danger.DANGEROUS else difference.opinion.reason
    excluding = any(
        requirement["operator"] in ("NotIn", "DoesNotExist")
        for term in _required_pod_terms(facts.pod(difference))
        for requirement in (term.get("namespaceSelector") or {}).get("matchExpressions", ())
    )
    return excluding and "affinity" in says_no.lower()


def _resized(difference: Difference, facts: Facts) -> bool:
    status = facts.pod(difference).get("status", {})
    sizes = (status, *status.get("containerStatuses", ()), *status.get("initContainerStatuses", ()))
    in_flight = any("resources" in each or "allocatedResources" in each for each in sizes)
    return in_flight and _says_no("requests")(difference, facts)


def _volume_being_made(difference: Difference, facts: Facts) -> bool:
    if difference.verdict.plugin != "NodeVolumeLimits":
        return False
    there = facts.pods_on(difference.question.node)
    return any("volumeName" not in claim["spec"] for pod in there for claim in facts.claims(pod))


def _in_tree_volume(difference: Difference, facts: Facts) -> bool:
    sources = {source for volume in facts.volumes(facts.pod(difference)) for source in volume["spec"]}
    in_tree = bool(sources & {"awsElasticBlockStore", "gcePersistentDisk", "cinder"})
    return in_tree and _says_no("a volume cannot be reached")(difference, facts)


def _ephemeral_zone(difference: Difference, facts: Facts) -> bool:
    ephemeral = any("ephemeral" in volume for volume in facts.pod(difference)["spec"].get("volumes", ()))
    return ephemeral and _says_no("a volume is in")(difference, facts)


def _required_pod_terms(pod: Json) -> Iterator[Json]:
    for kind in ("podAffinity", "podAntiAffinity"):
        found = pod["spec"].get("affinity", {}).get(kind) or {}
        yield from found.get("requiredDuringSchedulingIgnoredDuringExecution", ())


INTENDED: tuple[Intended, ...] = (
    Intended(
        "own nominee",
        "a pending pod with our scheduler name holds no room on the node it is nominated to: only we would place it",
        lambda difference, _: difference.fits_without_own_nominees,
    ),
    Intended(
        "resize",
        "the replacement of a pod in a resize counts as large as the pod is now: its template is not known",
        _resized,
    ),
    Intended(
        "cordoned",
        "neither a running pod nor its replacement goes to a cordoned node, whatever it tolerates: somebody drains it",
        _cordoned,
    ),
    Intended("not ready", "a node that is not Ready is no target, tainted yet or not", _not_ready),
    Intended(
        "namespaceSelector",
        "kube-scheduler's plugin reads a namespaceSelector with NotIn or DoesNotExist without the namespace's labels;"
        " we keep the documented meaning",
        _namespace_selector,
    ),
    Intended(
        "volume being made",
        "a claim that is not bound yet does not count as a volume of its node: its driver is in the StorageClass, which"
        " is not watched",
        _volume_being_made,
    ),
    Intended(
        "in-tree volume",
        "a volume that a CSI driver took over needs the driver's zone label on every node; kube-scheduler asks for it"
        " only where the CSINode says so",
        _in_tree_volume,
    ),
    Intended(
        "ephemeral zone",
        "zone labels of the PV of an ephemeral volume count; kube-scheduler looks at those of other claims only",
        _ephemeral_zone,
    ),
    Intended(
        "unsupported",
        "a constraint that we do not judge: such a pod is neither moved nor bound",
        _says_no("unsupported "),
    ),
    Intended(
        "local data", "a move would lose the pod's data (execution.allowLocalData lifts this)", _says_no("localData")
    ),
)

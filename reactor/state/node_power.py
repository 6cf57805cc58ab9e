"""The power of nodes: by annotation, by class, or by their cores; and what the cluster draws now."""

from __future__ import annotations

from dataclasses import dataclass

from matching.problem import Power
from reactor.cluster.records import Node
from reactor.cluster.view import ClusterView
from reactor.settings.model import Energy
from reactor.signals.usage import UsageView
from reactor.state.network_use import stated

IDLE_ANNOTATION = "rematch.io/idle-watts"
FULL_ANNOTATION = "rematch.io/full-watts"


def node_power(node: Node, settings: Energy) -> Power:
    """A full node never draws less than an idle one."""
    known = settings.classes.get(node.labels.get(settings.class_label, ""))
    cores = node.capacity.get("cpu", node.allocatable.get("cpu", 0.0))
    idle = known.idle if known is not None else settings.idle_watts_per_core * cores
    full = known.full if known is not None else settings.full_watts_per_core * cores
    given_idle, given_full = (stated(node.annotations, name) for name in (IDLE_ANNOTATION, FULL_ANNOTATION))
    idle = idle if given_idle is None else given_idle
    return Power(idle, max(idle, full if given_full is None else given_full))


@dataclass(frozen=True, slots=True)
class PowerNow:
    """Of the nodes whose CPU is measured."""

    watts: float
    idle_nodes: int
    """Of those, without a pod that could run elsewhere."""
    idle_watts: float
    """The part of `watts` that idle nodes draw."""
    not_measured: int
    """Nodes that are not in the figures."""


def power_now(cluster: ClusterView, usage: UsageView, settings: Energy) -> PowerNow | None:
    """None when no node is measured."""
    drawn = {name: _drawn(node, usage, settings) for name, node in cluster.nodes.items()}
    measured = {name: each for name, each in drawn.items() if each is not None}
    if not measured:
        return None
    idle = [name for name in measured if _is_idle(cluster, name)]
    idle_watts = sum(measured[name] for name in idle)
    return PowerNow(sum(measured.values()), len(idle), idle_watts, len(drawn) - len(measured))


def _drawn(node: Node, usage: UsageView, settings: Energy) -> float | None:
    cores, used = node.allocatable.get("cpu", 0.0), usage.node_usage(node.name).cpu.fresh
    return None if used is None or cores <= 0 else node_power(node, settings).at(used / cores)


def _is_idle(cluster: ClusterView, node: str) -> bool:
    return all(pod.finished or pod.of_node for pod in cluster.pods_on(node))

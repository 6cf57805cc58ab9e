"""The nodes of a problem: what they have, and what they use beyond their pods."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from math import inf

import numpy as np
from numpy.typing import NDArray

from matching.problem import Amounts, from_columns
from matching.problem import Node as ProblemNode
from reactor.cluster.pod_constraints import unused_attachments
from reactor.cluster.records import Node
from reactor.planning.problem_pods import Row
from reactor.settings.model import Energy
from reactor.state.node_power import node_power
from reactor.state.snapshot import MEASURED, Needs, Snapshot

POD_COUNT = "pods"
"""A node's limit of pods is not an axis: every pod takes one."""


@dataclass(frozen=True, slots=True)
class MeasuredPods:
    """The running pods, with a row of usage of the measured axes each."""

    rows: Sequence[Row]
    usage: NDArray[np.float64]
    sampled: NDArray[np.bool_]
    """False where the usage is an assumption."""


def problem_nodes(
    nodes: Sequence[Node],
    axes: tuple[str, ...],
    snapshot: Snapshot,
    pods: MeasuredPods,
    energy: Energy | None,
    faulty: Collection[str],
) -> list[ProblemNode]:
    """Without `energy` nobody asks what the nodes draw. `faulty`: the names of such nodes."""
    cluster = snapshot.cluster
    allocatable = [_amounts(axes, node.allocatable) for node in nodes]
    measured, background = _measured(nodes, axes, snapshot, pods)
    csi = [cluster.csi_nodes.get(node.name) for node in nodes]
    return from_columns(
        ProblemNode,
        {
            "name": [node.name for node in nodes],
            "allocatable": allocatable,
            "max_pods": [int(node.allocatable.get(POD_COUNT, 0)) for node in nodes],
            "labels": [node.labels for node in nodes],
            "taints": [node.taints for node in nodes],
            "unschedulable": [node.unschedulable for node in nodes],
            "ready": [
                node.ready and min(has[: len(MEASURED)]) > 0 for node, has in zip(nodes, allocatable, strict=True)
            ],
            "measured": measured,
            "background": background,
            "unknown": [()] * len(nodes),
            "features": [node.features for node in nodes],
            "volume_limits": [{} if each is None else each.volume_limits for each in csi],
            "attached": [unused_attachments(node.name, cluster) for node in nodes],
            "faulty": [node.name in faulty for node in nodes],
            "power": [None if energy is None else node_power(node, energy) for node in nodes],
        },
    )


def _measured(
    nodes: Sequence[Node], axes: tuple[str, ...], snapshot: Snapshot, pods: MeasuredPods
) -> tuple[list[bool], list[Amounts]]:
    """Whether each node is freshly measured, and what it uses beyond its pods and beyond the difference between
    capacity and allocatable."""
    if snapshot.needs is Needs.REQUESTS or not nodes:
        return [True] * len(nodes), [()] * len(nodes)
    used, at = snapshot.usage.of_nodes([node.name for node in nodes])
    known: list[bool] = np.all(~np.isnan(used), axis=1).tolist()
    kept_back = np.array([[node.kept_back(axis) for axis in MEASURED] for node in nodes])
    by_pods = _used_by_pods({node.name: number for number, node in enumerate(nodes)}, at, pods)
    background = np.maximum(0.0, used - by_pods - kept_back)
    nothing = (0.0,) * (len(axes) - len(MEASURED))
    return known, [(*row, *nothing) if fresh else () for row, fresh in zip(background.tolist(), known, strict=True)]


def _used_by_pods(
    index: Mapping[str, int], measured_at: NDArray[np.float64], pods: MeasuredPods
) -> NDArray[np.float64]:
    """By node. A pod without a sample that is Ready only since its node was measured comes on top of what was measured
    there."""
    rows = pods.rows
    at = np.fromiter(map(index.get, [row[1] or "" for row in rows], repeat(-1)), np.intp, len(rows))
    ready = [row[0].ready_since for row in rows]
    since = np.array([-inf if seconds is None else seconds for seconds in ready], dtype=np.float64)
    counts = (at >= 0) & (pods.sampled | (since <= np.append(measured_at, inf)[at]))
    columns = pods.usage[counts].T
    return np.stack([np.bincount(at[counts], weights=each, minlength=len(index)) for each in columns], axis=1)


def _amounts(axes: tuple[str, ...], quantities: Mapping[str, float]) -> Amounts:
    return tuple(quantities.get(axis, 0.0) for axis in axes)

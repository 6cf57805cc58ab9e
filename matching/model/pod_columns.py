"""What planners read of pods, as columns in the order of the pods' names.

Most pods of a problem are in the problem before it as well, as the very same values. Their columns are taken over, and
only the others are read and checked.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import attrgetter

import numpy as np

from matching.array_types import Floats, Ints, Mask
from matching.problem import Amounts, Node, Pod, ProblemError, Rules
from matching.whole_units import by_axis

_FEW = 4
"""Columns are read anew when more than one pod of so many has changed."""


@dataclass(frozen=True, slots=True)
class PodColumns:
    axes: tuple[str, ...]
    pods: tuple[Pod, ...]
    """By name."""
    request: Floats
    """(axes, pods), in the units of the axes, as `usage`, `usual` and `peak`."""
    usage: Floats
    usual: Floats
    peak: Floats
    rank_cpu: Floats
    priority: Ints
    fixed: Mask
    without_node: Mask
    happy: Mask
    rule_class: Ints
    """The class of each pod's rules."""
    all_rules: tuple[Rules, ...]
    """By class."""
    keys: Sequence[str]
    uids: frozenset[str]
    position: dict[int, int]
    """By the identity of the pod."""

    @property
    def examples(self) -> list[Pod]:
        """A pod of each class, the first by name."""
        _, firsts = np.unique(self.rule_class, return_index=True)
        return [self.pods[first] for first in firsts.tolist()]


_TAKEN_OVER = ("request", "usage", "peak", "rank_cpu", "priority", "fixed", "without_node", "happy")

_last: PodColumns | None = None
"""Of the last problem that was not much smaller than the one before it: questions about one node are small ones."""


def pod_columns(pods: Sequence[Pod], axes: tuple[str, ...]) -> PodColumns:
    """Raise ProblemError, naming the pod, when one is not valid."""
    global _last  # noqa: PLW0603 - a cache: what is returned does not depend on it
    last = _last
    found = _updated(last, pods, axes) if last is not None and last.axes == axes else None
    if found is None:
        check_unique("pod", [pod.key for pod in pods])
        check_unique("pod uid", [pod.uid for pod in pods])
        found = _read(tuple(sorted(pods, key=attrgetter("key"))), axes, {})
    if last is None or 2 * len(pods) >= len(last.pods):
        _last = found
    return found


def _read(pods: tuple[Pod, ...], axes: tuple[str, ...], classes: dict[Rules, int]) -> PodColumns:
    """`classes` are the known ones; those of these pods are added."""
    number, keys = len(pods), [pod.key for pod in pods]
    request = amounts(pods, "request", [pod.request for pod in pods], axes)
    usage = amounts(pods, "usage", [pod.usage for pod in pods], axes)
    usual = amounts(pods, "mean", [pod.usual for pod in pods], axes) if any(pod.mean for pod in pods) else usage
    peak = amounts(pods, "peak", [pod.peak for pod in pods], axes)
    by_identity = {id(pod.rules): pod.rules for pod in pods}
    known = {key: classes.setdefault(rules, len(classes)) for key, rules in by_identity.items()}
    return PodColumns(
        axes=axes,
        pods=pods,
        request=request,
        usage=usage,
        usual=usual,
        peak=peak,
        rank_cpu=np.array([pod.rank_cpu for pod in pods], dtype=np.float64),
        priority=np.array([pod.priority for pod in pods], dtype=np.int64),
        fixed=np.fromiter((bool(pod.fixed) for pod in pods), bool, number),
        without_node=np.fromiter((pod.node is None for pod in pods), bool, number),
        happy=np.fromiter((pod.happy for pod in pods), bool, number),
        rule_class=np.array([known[id(pod.rules)] for pod in pods], dtype=np.int64),
        all_rules=tuple(classes),
        keys=keys,
        uids=frozenset(pod.uid for pod in pods),
        position=dict(zip(map(id, pods), range(number), strict=True)),
    )


def _updated(last: PodColumns, pods: Sequence[Pod], axes: tuple[str, ...]) -> PodColumns | None:
    """None when it would be no less work, or when a name occurs twice."""
    before = np.fromiter(map(last.position.get, map(id, pods), repeat(-1)), np.int64, len(pods))
    new_at = np.flatnonzero(before < 0)
    if len(new_at) * _FEW > len(pods):
        return None
    new = sorted((pods[at] for at in new_at.tolist()), key=attrgetter("key"))
    stayed = np.sort(before[before >= 0])
    still = np.zeros(len(last.pods), dtype=bool)
    still[stayed] = True
    if int(still.sum()) != len(stayed) or not _are_unique(last, still, new):
        return None
    read = _read(tuple(new), axes, {rules: number for number, rules in enumerate(last.all_rules)})
    places = [bisect_left(last.keys, pod.key) for pod in new]
    # Where each pod is in the columns of `last`, with those of `read` behind them.
    order = np.insert(stayed, np.searchsorted(stayed, places), len(last.pods) + np.arange(len(new)))
    rule_class, all_rules = _present(_joined(last.rule_class, read.rule_class, order), read.all_rules)
    ordered = tuple(map((*last.pods, *new).__getitem__, order.tolist()))
    columns = {name: _joined(getattr(last, name), getattr(read, name), order) for name in _TAKEN_OVER}
    has_history = last.usual is not last.usage or read.usual is not read.usage
    gone = {last.pods[at].uid for at in np.flatnonzero(~still).tolist()}
    return PodColumns(
        axes=axes,
        pods=ordered,
        usual=_joined(last.usual, read.usual, order) if has_history else columns["usage"],
        rule_class=rule_class,
        all_rules=all_rules,
        keys=[pod.key for pod in ordered],
        uids=(last.uids - gone) | read.uids,
        position=dict(zip(map(id, ordered), range(len(ordered)), strict=True)),
        **columns,
    )


def _are_unique(last: PodColumns, still: Mask, new: Sequence[Pod]) -> bool:
    """Whether no pod has the name or the UID of another one."""
    keys, uids = {pod.key for pod in new}, {pod.uid for pod in new}
    gone = [last.pods[at] for at in np.flatnonzero(~still).tolist()]
    gone_uids = {pod.uid for pod in gone}
    if len(keys) < len(new) or len(uids) < len(new) or any(uid in last.uids for uid in uids - gone_uids):
        return False
    gone_keys = {pod.key for pod in gone}
    return not any(_occurs(last.keys, key) for key in keys - gone_keys)


def _occurs(keys: Sequence[str], key: str) -> bool:
    at = bisect_left(keys, key)
    return at < len(keys) and keys[at] == key


def _joined(before: np.ndarray, read: np.ndarray, order: Ints) -> np.ndarray:
    joined: np.ndarray = np.concatenate((before, read), axis=-1)[..., order]
    return np.ascontiguousarray(joined)


def _present(rule_class: Ints, all_rules: Sequence[Rules]) -> tuple[Ints, tuple[Rules, ...]]:
    """Without the classes that no pod has any more."""
    counts = np.bincount(rule_class, minlength=len(all_rules))
    present = np.flatnonzero(counts)
    if len(present) == len(all_rules):
        return rule_class, tuple(all_rules)
    renumbered = np.cumsum(counts > 0) - 1
    return renumbered[rule_class], tuple(all_rules[number] for number in present.tolist())


def amounts(owners: Sequence[Pod | Node], what: str, rows: Sequence[Amounts], axes: tuple[str, ...]) -> Floats:
    """(axes, owners); raise ProblemError where they are not one finite number of at least 0 for each axis."""
    if set(map(len, rows)) - {len(axes)}:
        at = next(at for at, row in enumerate(rows) if len(row) != len(axes))
        counts = f"{len(rows[at])} amounts, the problem has {len(axes)} axes {axes}"
        raise ProblemError(f"{_called(owners[at])}: {what} has {counts}")
    values = by_axis(rows, len(axes))
    wrong = np.argwhere(~np.isfinite(values) | (values < 0))
    if len(wrong):
        axis, at = wrong[0]
        found = f"{what} of {axes[axis]} is {values[axis, at]:g}"
        raise ProblemError(f"{_called(owners[at])}: {found}; it must be a finite number of at least 0")
    return values


def _called(owner: Pod | Node) -> str:
    return f"pod {owner.key}" if isinstance(owner, Pod) else f"node {owner.name}"


def check_unique(what: str, names: Sequence[str]) -> None:
    if len(set(names)) == len(names):
        return
    for name, count in Counter(names).items():
        if count > 1:
            raise ProblemError(f"{what} {name!r} occurs {count} times; each must be there once")

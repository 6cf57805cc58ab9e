"""Pods by what rules between pods can tell of them: pods of one kind have and meet the same rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from matching.problem import Pod, Rules
from matching.shapes import Ints

_NO_RULES = Rules()
_Key = tuple[int, str, tuple[str | None, ...], bool]


@dataclass(frozen=True, slots=True)
class PodKind:
    rules: Rules
    """Empty for pods whose rules are of no interest here."""
    namespace: str
    labels: Mapping[str, str]
    leaving: bool


@dataclass(frozen=True, slots=True)
class PodKinds:
    kinds: tuple[PodKind, ...]
    of_pod: Ints


def pod_kinds(pods: Sequence[Pod], has_rules: Callable[[Rules], bool], label_keys: Sequence[str]) -> PodKinds:
    """`label_keys` are the labels that some rule looks at; all others make no difference. Rules and labels are mostly
    shared values, so what is known of them is kept by identity."""
    sorter = _Sorter(has_rules, label_keys)
    known: dict[tuple[int, int, str, bool], int] = {}
    of_pod = []
    for pod in pods:
        look = (id(pod.rules), id(pod.labels), pod.key.partition("/")[0], pod.leaving)
        number = known.get(look)
        if number is None:
            number = known[look] = sorter.number(pod)
        of_pod.append(number)
    return PodKinds(tuple(sorter.kinds), np.array(of_pod, dtype=np.int64))


class _Sorter:
    def __init__(self, has_rules: Callable[[Rules], bool], label_keys: Sequence[str]) -> None:
        self._has_rules, self._keys = has_rules, label_keys
        self._equal_rules: dict[Rules, int] = {_NO_RULES: 0}
        self._numbers: dict[_Key, int] = {}
        self.kinds: list[PodKind] = []

    def number(self, pod: Pod) -> int:
        ruling = self._has_rules(pod.rules)
        rules = self._equal_rules.setdefault(pod.rules, len(self._equal_rules)) if ruling else 0
        labels = tuple(pod.labels.get(key) for key in self._keys)
        number = self._numbers.setdefault((rules, pod.namespace, labels, pod.leaving), len(self.kinds))
        if number == len(self.kinds):
            self.kinds.append(PodKind(pod.rules if ruling else _NO_RULES, pod.namespace, pod.labels, pod.leaving))
        return number

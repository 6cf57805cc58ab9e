"""Workloads: which pods are replicas of each other, and the peak of the last pod of each."""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache

from reactor.cluster.records import Pod
from reactor.signals.measurements import Peak

_REMEMBERED = 20_000


def workload_key(pod: Pod) -> str:
    if pod.owner is None:
        return f"{pod.namespace}/Pod/{pod.name}"
    return _owned(pod.namespace, pod.owner.kind, pod.owner.name, pod.template_hash)


@lru_cache(maxsize=_REMEMBERED)
def _owned(namespace: str, kind: str, name: str, template_hash: str) -> str:
    """One key for all revisions: a ReplicaSet's name without its template hash is its Deployment's."""
    if kind == "ReplicaSet" and template_hash:
        name = name.removesuffix(f"-{template_hash}")
    return f"{namespace}/{kind}/{name}"


class Workloads:
    """Numbers for workloads with pods, and the last peaks of recent workloads without."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.remembered: OrderedDict[str, Peak] = OrderedDict()
        self._replicas: dict[str, int] = {}
        self._keys: dict[int, str] = {}
        self._free: list[int] = []

    def add_pod(self, key: str) -> int:
        self._replicas[key] = self._replicas.get(key, 0) + 1
        number = self.ids.get(key)
        if number is None:
            number = self.ids[key] = self._free.pop() if self._free else len(self.ids)
            self._keys[number] = key
        return number

    def remove_pod(self, number: int, peak: Peak) -> None:
        """A pod of this workload is gone. Its peak is kept for its replacement."""
        key = self._keys[number]
        left = self._replicas.pop(key) - 1
        if left:
            self._replicas[key] = left
        else:
            del self.ids[key], self._keys[number]
            self._free.append(number)
        if peak.cpu is not None or peak.memory is not None:
            self.remembered[key] = peak
            self.remembered.move_to_end(key)
            if len(self.remembered) > _REMEMBERED:
                self.remembered.popitem(last=False)

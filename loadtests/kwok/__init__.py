"""Fake nodes for scale: KWOK replaces the kubelets of a real control plane, so pods use no resources.

    async with kwok(plane), observed_pods(plane.kubeconfig) as observer:
        await fill(plane, Fleet(nodes=200, crowded=100, apps=500, replicas=10, scheduler="rematch"), observer, print)

Nobody schedules the pods of `fill`: each is created on its node, so that every run starts from the same placement.
"""

from loadtests.kwok.fleet import NAMESPACE, Fleet, fake_node, fill, nodes_open
from loadtests.kwok.observer import PodChange, PodObserver, observed_pods
from loadtests.kwok.process import PLANE_FLAGS, kwok

__all__ = [
    "NAMESPACE",
    "PLANE_FLAGS",
    "Fleet",
    "PodChange",
    "PodObserver",
    "fake_node",
    "fill",
    "kwok",
    "nodes_open",
    "observed_pods",
]

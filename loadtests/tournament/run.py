"""One policy on one drawn instance of a scenario."""

from __future__ import annotations

from loadtests.tournament.cluster import FluidCluster
from loadtests.tournament.faults import Faults
from loadtests.tournament.instance import Instance
from loadtests.tournament.measures import Measures, measure
from loadtests.tournament.policies import Policy
from storage.store import Store


def start(instance: Instance, *, binds: bool = True) -> FluidCluster:
    """`binds`: kube-scheduler's scores place pending pods; else the policy does."""
    cluster = FluidCluster(instance, binds=binds)
    Faults(cluster).schedule()
    return cluster


async def run(instance: Instance, policy: Policy, store: Store) -> Measures:
    cluster = start(instance, binds=not policy.binds)
    actor = policy.play(cluster, store)
    while cluster.clock.time < instance.seconds:
        cluster.advance(instance.seconds)
        await actor.act()
    return measure(cluster, actor.cpu_seconds)

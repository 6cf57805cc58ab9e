"""One policy on one drawn instance of a scenario."""

from __future__ import annotations

from loadtests.tournament.cluster import FluidCluster
from loadtests.tournament.instance import Instance
from loadtests.tournament.measures import Measures, measure
from loadtests.tournament.policies import Policy
from storage.store import Store


async def run(instance: Instance, policy: Policy, store: Store) -> Measures:
    cluster = FluidCluster(instance, binds=not policy.binds)
    actor = policy.play(cluster, store)
    while cluster.clock.time < instance.seconds:
        cluster.advance(instance.seconds)
        await actor.act()
    return measure(cluster, actor.cpu_seconds)

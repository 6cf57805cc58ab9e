"""The minimiser keeps what a difference needs, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from loadtests.oracle.minimise import minimise
from loadtests.same_plans.draw import Json


def pod(name: str, **spec: object) -> Json:
    meta = {"name": name, "uid": f"uid-{name}", "labels": {"app": name, "tier": "web"}}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": {"priority": 1, **spec}}


async def test_objects_and_fields_that_do_not_matter_are_dropped() -> None:
    async def two_ports(items: Sequence[Json]) -> bool:
        ports = [port for item in items for port in item.get("spec", {}).get("ports", ())]
        return ports.count(80) >= 2

    given = [pod("a", ports=[443, 80]), pod("b"), pod("c", ports=[80], volumes=[{"name": "x"}]), pod("d")]
    assert await minimise(given, two_ports) == [
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a", "uid": "uid-a"}, "spec": {"ports": [80]}},
        {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "c", "uid": "uid-c"}, "spec": {"ports": [80]}},
    ]


async def test_the_given_cluster_is_not_changed() -> None:
    async def has_a(items: Sequence[Json]) -> bool:
        return any(item["metadata"]["name"] == "a" for item in items)

    given = [pod("a", ports=[80])]
    await minimise(given, has_a)
    assert given == [pod("a", ports=[80])]


async def test_it_ends_when_its_time_is_over() -> None:
    tries = 0

    async def always(_: Sequence[Json]) -> bool:
        nonlocal tries
        tries += 1
        return True

    given = [pod("a"), pod("b")]
    assert await minimise(given, always, seconds=-1.0) == given
    assert tries == 0


@given(needed=st.sets(st.integers(0, 19), min_size=1, max_size=5))
async def test_whatever_objects_are_needed_are_kept(needed: set[int]) -> None:
    names = {str(number) for number in needed}

    async def has_all(items: Sequence[Json]) -> bool:
        return names <= {item["metadata"]["name"] for item in items}

    found = await minimise([pod(str(number)) for number in range(20)], has_all)
    assert {item["metadata"]["name"] for item in found} == names
    assert all(set(item) == {"kind", "apiVersion", "metadata"} for item in found)

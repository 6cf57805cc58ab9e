from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from loadtests.workloads.api import Changed, Listed
from loadtests.workloads.targets import ForeignAddressError, Target, WatchedTargets


def pod(name: str, ip: str = "127.16.0.1", ready: str = "True", **meta: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "uid": name, "labels": {"app": "web"}, **meta},
        "spec": {"containers": [{"name": "c", "ports": [{"containerPort": 9090}]}]},
        "status": {"podIP": ip, "conditions": [{"type": "Ready", "status": ready}]},
    }


class Script:
    """An API server's story, told at once."""

    def __init__(self, *story: Listed | Changed) -> None:
        self.story = story
        self.asked: tuple[str, Mapping[str, str]] | None = None

    async def follow(self, path: str, params: Mapping[str, str], see: Callable[[Listed | Changed], None]) -> None:
        self.asked = (path, params)
        for change in self.story:
            see(change)


async def after(*story: Listed | Changed) -> WatchedTargets:
    script = Script(*story)
    targets = WatchedTargets(script, "shop")
    await targets.run()
    assert script.asked == ("/api/v1/namespaces/shop/pods", {"labelSelector": "app"})
    return targets


async def test_ready_pods_take_turns() -> None:
    targets = await after(Listed((pod("one"), pod("two", "127.16.0.2"))))
    assert {targets.pick("web") for _ in range(4)} == {Target("127.16.0.1", 9090), Target("127.16.0.2", 9090)}
    assert targets.pick("other") is None


@pytest.mark.parametrize(
    "change",
    [
        Changed("MODIFIED", pod("one", ready="False")),
        Changed("MODIFIED", pod("one", deletionTimestamp="2026-11-16T00:00:00Z")),
        Changed("MODIFIED", pod("one", ip="")),
        Changed("DELETED", pod("one")),
        Listed(()),
    ],
)
async def test_a_pod_that_should_get_nothing_gets_nothing(change: Listed | Changed) -> None:
    targets = await after(Listed((pod("one"),)), change)
    assert targets.pick("web") is None


async def test_an_address_off_this_machine_stops_the_run() -> None:
    with pytest.raises(ForeignAddressError):
        await after(Listed((pod("one", ip="10.1.2.3"),)))

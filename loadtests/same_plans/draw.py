"""Random values that both random problems and random clusters use.

The order of the draws is part of the inputs. With another order, older fingerprints cannot be compared any more.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

Json = dict[str, Any]
"""A JSON document."""

T = TypeVar("T")

PLANNERS = (
    "stable",
    "stable-paper",
    "balance",
    "greedy",
    "greedy-published",
    "refine",
    "refine-published",
    "genetic",
    "network",
    "latency",
)
LEFT_OUT = ("function", "latency-published")
"""Installed planners without random problems: `function` needs a function from the user, the other is replayed against
its text by its own tests. A planner that is added to PLANNERS instead changes all inputs."""

GIB = 2.0**30
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")


class Draw(random.Random):
    """Seeded with text, so that the numbers are the same in every process."""

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def amount(self, low: float, high: float, digits: int = 3) -> float:
        return round(self.uniform(low, high), digits)

    def some(self, things: Sequence[T], most: int) -> list[T]:
        return self.sample(list(things), min(len(things), self.randint(0, most)))

    def one_of(self, weighted: Mapping[str, float]) -> str:
        return self.choices(list(weighted), list(weighted.values()))[0]

    def maybe(self, probability: float, make: Callable[[], T]) -> list[T]:
        return [make()] if self.chance(probability) else []


def node_labels(draw: Draw, name: str, at: int) -> dict[str, str]:
    zone = {ZONE: f"zone-{at % 3}", REGION: "here"} if draw.chance(0.9) else {}
    return {HOSTNAME: name, "disk": draw.choice(["ssd", "hdd"]), "cores": str(draw.randint(2, 16)), **zone}


def random_taints(draw: Draw) -> list[Json]:
    keys = draw.sample(["dedicated", "spot", "maintenance"], draw.choice([1, 1, 2]))
    return [{"key": key, "effect": draw.choice(EFFECTS), "value": draw.choice(["", "yes"])} for key in keys]


def random_tolerations(draw: Draw) -> list[Json]:
    if draw.chance(0.3):
        return [{"key": "", "operator": "Exists", "value": "", "effect": ""}]
    key, effect = draw.choice(["dedicated", "spot", "maintenance"]), draw.choice(["", *EFFECTS])
    return [{"key": key, "operator": "Equal", "value": draw.choice(["", "yes"]), "effect": effect}]


def random_terms(draw: Draw, node: Json) -> list[Json]:
    """ORed terms, sometimes with an empty one, which matches no node."""
    terms = [{"expressions": [_random_requirement(draw)], "fields": []} for _ in range(draw.randint(1, 2))]
    here = {"key": "metadata.name", "operator": draw.choice(["In", "NotIn"]), "values": [node["name"]]}
    fields = draw.maybe(0.2, lambda: {"expressions": [], "fields": [here]})
    return [*terms, *fields, *draw.maybe(0.1, lambda: {"expressions": [], "fields": []})]


def _random_requirement(draw: Draw) -> Json:
    kinds: list[Json] = [
        {"key": "disk", "operator": "In", "values": [draw.choice(["ssd", "hdd"])]},
        {"key": "disk", "operator": "NotIn", "values": [draw.choice(["ssd", "hdd"])]},
        {"key": ZONE, "operator": "In", "values": ["zone-0", f"zone-{draw.randint(1, 2)}"]},
        {"key": ZONE, "operator": "Exists", "values": []},
        {"key": "gone", "operator": "DoesNotExist", "values": []},
        {"key": "cores", "operator": "Gt", "values": [str(draw.randint(1, 8))]},
        {"key": "cores", "operator": "Lt", "values": [str(draw.randint(8, 17))]},
    ]
    return draw.choice(kinds)


def random_parameters(draw: Draw, planner: str, nodes: Sequence[Json]) -> Json:
    """Half of the time the defaults. A genetic search is always short."""
    given = draw.chance(0.5)
    weights = {"cpu": draw.amount(0.2, 2.0), "memory": draw.amount(0.2, 2.0)}
    known: dict[str, Json] = {
        "stable": {"dumping": draw.choice(["never", "allow"]), "availability": draw.choice(["before", "after"])},
        "balance": {"weights": weights, "confidence": draw.choice([0.0, 0.5, 0.95]), "outage": draw.amount(0.0, 5.0)},
        "greedy": {"weights": weights},
        "greedy-published": {"metric": draw.choice(["cpu", "memory"])},
        "refine": {"overload": draw.amount(1.0, 1.3), "weights": weights},
        "refine-published": {"overload": draw.amount(1.0, 1.3), "metric": draw.choice(["cpu", "memory"])},
        "network": {"gain": draw.choice([0.0, 0.0001, 0.01])},
        "latency": {"measurements": draw.randint(3, 4), "quiet": draw.choice([0.0, 30.0, 120.0])},
        "genetic": {
            "weights": weights,
            "node_weights": {draw.choice(nodes)["name"]: {"cpu": draw.amount(0.2, 1.0)}},
            "dictionary": draw.chance(0.7),
            "mutation": draw.amount(0.0, 0.1),
        },
    }
    short = {"population": 12, "generations": 12, "seed": draw.randint(0, 9)} if planner == "genetic" else {}
    parameters = {camel_case(name): value for name, value in known.get(planner, {}).items()} if given else {}
    return {**parameters, **short}


def camel_case(name: str) -> str:
    return re.sub(r"_(.)", lambda found: found[1].upper(), name)

"""Random matching problems as JSON documents, each from a seed of its own."""

from __future__ import annotations

from collections.abc import Sequence

from loadtests.same_plans.draw import (
    GIB,
    HOSTNAME,
    PLANNERS,
    ZONE,
    Draw,
    Json,
    node_labels,
    random_parameters,
    random_taints,
    random_terms,
    random_tolerations,
)

FEATURES = (
    "taints",
    "node selector",
    "node affinity",
    "pod affinity",
    "pod anti-affinity",
    "spread",
    "ports",
    "preferences",
    "volumes",
    "priorities",
    "fixed",
    "pending",
    "node trouble",
    "background",
    "max pods",
    "budgets",
    "gpu",
    "network",
    "latency",
    "leaving",
    "unknown",
    "equal sizes",
)
"""`equal sizes`: replicas need the same and nodes have the same room, so that ties have to be broken."""


def random_problem(number: int) -> Json:
    """The first of its planners has what it needs: a network axis or latencies."""
    draw = Draw(f"problem {number}")
    own = PLANNERS[number % len(PLANNERS)]
    features = {name for name in FEATURES if draw.chance(0.4)} | ({own} & {"network", "latency"})
    if own != "network" and draw.chance(0.7):
        features.discard("network")
    nodes = _random_nodes(draw, features)
    pods = _random_pods(draw, features, nodes)
    others = draw.some([name for name in PLANNERS if name != own and _can_plan(name, features)], 2)
    axes = ["cpu", "memory"] + ["gpu"] * ("gpu" in features) + ["network"] * ("network" in features)
    return {
        "axes": axes,
        "hard_only": ["gpu"] if "gpu" in features else [],
        "needs_from": draw.choice(["metrics", "requests"]),
        "namespaces": {"ns-a": {"team": "one"}, "ns-b": {"team": "two"}, "ns-c": {}},
        "options": _random_options(draw, features, own),
        "nodes": nodes,
        "pods": pods,
        "latency": _random_latency(draw, pods, nodes) if "latency" in features else None,
        "planners": [(name, random_parameters(draw, name, nodes)) for name in (own, *others)],
        "explained": [pod["uid"] for pod in draw.sample(pods, draw.randint(1, 2))],
    }


def _can_plan(planner: str, features: set[str]) -> bool:
    """`network` fails without a network axis. `latency` without latencies still places pending pods."""
    return planner != "network" or "network" in features


def _random_options(draw: Draw, features: set[str], planner: str) -> Json:
    """`latency` moves only pods in its scope, so its scope is mostly the whole cluster."""
    widest = 8.0 if planner == "latency" else 2.0
    scope = draw.one_of({"cluster": widest, "affected": 1.0, "unhappy": 1.0, "pending": 0.4})
    limits = ("max_moves", "max_moves_per_workload", "max_moves_per_node", "max_moves_per_namespace")
    budgets = draw.some(limits, 2) if "budgets" in features else []
    return {
        "scope": scope,
        "inertia": draw.choice([0.0, 0.05, 0.2, 0.2, 0.5]),
        "headroom": draw.choice([0.0, 0.1, 0.15, 0.15, 0.3]),
        "relief": draw.choice([0.05, 0.05, 0.0, 0.15]),
        "soft_weight": draw.choice([0.05, 0.05, 0.0, 0.5]),
        "availability": draw.one_of({"before": 5, "after": 1}),
        "dumping": draw.one_of({"never": 9, "allow": 1}),
        "only_if_better": draw.chance(0.8),
        **{limit: draw.randint(1, 3) if limit in budgets else None for limit in limits},
    }


def _random_nodes(draw: Draw, features: set[str]) -> list[Json]:
    number = draw.choice([3, 4, 4, 5, 5, 6, 7, 8, 10, 12])
    return [_random_node(draw, features, at) for at in range(number)]


def _random_node(draw: Draw, features: set[str], at: int) -> Json:
    equal_sizes = "equal sizes" in features
    cores = 4.0 if equal_sizes else draw.choice([2.0, 4.0, 4.0, 8.0, 16.0])
    room = [cores, cores * (4.0 if equal_sizes else draw.choice([2.0, 4.0, 8.0])) * GIB]
    background = [round(amount * draw.choice([0.0, 0.05, 0.2]), 3) for amount in room]
    has_background = "background" in features and draw.chance(0.7)
    rest = [float(draw.choice([0, 0, 1, 2]))] * ("gpu" in features)
    rest += [draw.choice([1e8, 1e9, 1e9, 1e10])] * ("network" in features)
    trouble = "node trouble" in features
    return {
        "name": f"node-{at:02}",
        "allocatable": room + rest,
        "max_pods": draw.randint(3, 12) if "max pods" in features else 110,
        "labels": node_labels(draw, f"node-{at:02}", at),
        "taints": random_taints(draw) if "taints" in features and draw.chance(0.4) else [],
        "unschedulable": trouble and draw.chance(0.15),
        "ready": not (trouble and draw.chance(0.15)),
        "measured": not (trouble and draw.chance(0.15)),
        "background": background + [0.0] * len(rest) if has_background else [],
        "unknown": ["network"] if {"network", "unknown"} <= features and draw.chance(0.2) else [],
    }


def _random_pods(draw: Draw, features: set[str], nodes: Sequence[Json]) -> list[Json]:
    """Workload by workload. The first nodes get more pods, so that the load is uneven."""
    number = draw.randint(max(3, len(nodes)), 30)
    pods: list[Json] = []
    while len(pods) < number:
        pods += _random_workload(draw, features, nodes, len(pods))
    pods = pods[:number]
    _scale(draw, pods, nodes)
    _make_unhappy(draw, pods, nodes)
    return pods


def _random_workload(draw: Draw, features: set[str], nodes: Sequence[Json], first: int) -> list[Json]:
    labels = {"app": f"app-{first}", "tier": draw.choice(["web", "work", "data"])}
    template = {
        "size": [draw.uniform(0.3, 2.0), draw.uniform(0.3, 2.0)],
        "stated": draw.uniform(0.5, 1.4),
        "namespace": draw.choice(["ns-a", "ns-b", "ns-c"]),
        "gpu": float(draw.choice([0, 0, 0, 1])),
        "labels": labels,
        "priority": draw.choice([0, 0, 100, 1000]) if "priorities" in features else 0,
        "rules": _random_rules(draw, features, labels, nodes),
    }
    return [_random_pod(draw, features, nodes, template, first + at) for at in range(draw.choice([1, 2, 3, 4, 6]))]


def _random_pod(draw: Draw, features: set[str], nodes: Sequence[Json], template: Json, number: int) -> Json:
    gpu = [template["gpu"]] * ("gpu" in features)
    bits = [draw.amount(1e6, 8e7, 0)] * ("network" in features)
    equal_sizes = "equal sizes" in features
    usage = [size * (1.0 if equal_sizes else draw.uniform(0.7, 1.3)) for size in template["size"]]
    peak = [amount * (1.3 if equal_sizes else draw.uniform(1.0, 1.8)) for amount in usage]
    request = [amount * template["stated"] for amount in usage]
    node = nodes[int(len(nodes) * draw.random() ** 1.7)]["name"]
    return {
        "key": f"{template['namespace']}/pod-{number:02}",
        "uid": f"uid-{number:02}",
        "usage": usage + gpu + bits,
        "request": request + gpu + [0.0] * len(bits),
        "peak": peak + gpu + bits,
        "node": _random_current_node(draw, features, node),
        "workload": template["labels"]["app"],
        "priority": template["priority"],
        "happy": True,
        "fixed": draw.choice(["protected: job: Job 7", "not managed: 1"]) if _pod_has(draw, features, "fixed") else "",
        "rules": template["rules"],
        "labels": template["labels"],
        "leaving": _pod_has(draw, features, "leaving"),
        "unknown": ["network"] if bits and _pod_has(draw, features, "unknown") else [],
    }


def _pod_has(draw: Draw, features: set[str], feature: str) -> bool:
    return feature in features and draw.chance(0.15)


def _random_current_node(draw: Draw, features: set[str], node: str) -> str | None:
    """Mostly `node`; None for a pending pod; rarely a node that does not exist."""
    if "pending" in features and draw.chance(0.2):
        return None
    return "node-gone" if "node trouble" in features and draw.chance(0.03) else node


def _scale(draw: Draw, pods: Sequence[Json], nodes: Sequence[Json]) -> None:
    """Scale the amounts so that the sum of all peaks is a random share of the room of all nodes."""
    load = draw.choice([0.4, 0.55, 0.7, 0.8, 0.95])
    for axis in (0, 1):
        room = sum(node["allocatable"][axis] for node in nodes)
        factor = load * room / sum(pod["peak"][axis] for pod in pods)
        for pod in pods:
            for amounts in (pod["usage"], pod["request"], pod["peak"]):
                amounts[axis] = round(amounts[axis] * factor, 3)


def _make_unhappy(draw: Draw, pods: Sequence[Json], nodes: Sequence[Json]) -> None:
    """Mostly pods on loaded nodes, because moves can help there."""
    load = dict.fromkeys([node["name"] for node in nodes], 0.0)
    room = {node["name"]: node["allocatable"][0] for node in nodes}
    for pod in pods:
        if pod["node"] in load:
            load[pod["node"]] += pod["peak"][0] / room[pod["node"]]
    loaded = [pod for pod in pods if load.get(pod["node"], 0.0) > 0.7]
    for pod in [*draw.some(loaded, 4), *draw.some(pods, 1)]:
        pod["happy"] = False


def _random_rules(draw: Draw, features: set[str], labels: dict[str, str], nodes: Sequence[Json]) -> Json:
    """Only some workloads get each feature, or no pod could move."""
    has = {name: name in features and draw.chance(0.3) for name in FEATURES}
    mine, node = _workload_selector(draw, labels), draw.choice(nodes)
    zones = [[ZONE, sorted({f"zone-{draw.randint(0, 2)}", f"zone-{draw.randint(0, 2)}"})]]
    return {
        "tolerations": random_tolerations(draw) if "taints" in features and draw.chance(0.5) else [],
        "node_selector": [["disk", draw.choice(["ssd", "hdd"])]] if has["node selector"] else [],
        "node_affinity": random_terms(draw, node) if has["node affinity"] else None,
        "volumes": [random_terms(draw, node)] if has["volumes"] and draw.chance(0.5) else [],
        "volume_zones": zones if has["volumes"] else [],
        "pod_affinity": [_random_pod_term(draw, _tier_selector(draw))] if has["pod affinity"] else [],
        "pod_anti_affinity": [_random_pod_term(draw, mine)] if has["pod anti-affinity"] else [],
        "spread": [_random_spread(draw, mine)] if has["spread"] else [],
        "ports": [_random_port(draw)] if has["ports"] else [],
        "preferred": _random_preferences(draw, mine, node, wanted=has["preferences"]),
    }


def _workload_selector(draw: Draw, labels: dict[str, str]) -> Json:
    requirements = [{"key": "app", "operator": "In", "values": [labels["app"]]}]
    return {"requirements": requirements if draw.chance(0.8) else [{"key": "app", "operator": "Exists", "values": []}]}


def _tier_selector(draw: Draw) -> Json:
    operator, tier = draw.choice(["In", "In", "NotIn"]), draw.choice(["web", "work", "data"])
    return {"requirements": [{"key": "tier", "operator": operator, "values": [tier]}]}


def _random_pod_term(draw: Draw, selector: Json) -> Json:
    spaces = {"requirements": [{"key": "team", "operator": "In", "values": ["one", "two"]}]}
    return {
        "topology_key": draw.choice([HOSTNAME, HOSTNAME, ZONE]),
        "selector": None if draw.chance(0.05) else selector,
        "namespaces": draw.some(["ns-a", "ns-b"], 2) if draw.chance(0.3) else [],
        "namespace_selector": spaces if draw.chance(0.3) else None,
    }


def _random_spread(draw: Draw, selector: Json) -> Json:
    return {
        "topology_key": draw.choice([HOSTNAME, ZONE, ZONE]),
        "selector": selector,
        "max_skew": draw.randint(1, 2),
        "min_domains": draw.choice([1, 1, 1, 2]),
        "honor_affinity": draw.chance(0.7),
        "honor_taints": draw.chance(0.3),
    }


def _random_port(draw: Draw) -> Json:
    ip = draw.choice(["0.0.0.0", "0.0.0.0", "10.0.0.1"])
    return {"port": draw.choice([80, 443]), "protocol": draw.choice(["TCP", "TCP", "UDP"]), "ip": ip}


def _random_preferences(draw: Draw, mine: Json, node: Json, *, wanted: bool) -> Json:
    if not wanted:
        return {"nodes": [], "with_pods": [], "apart_from": [], "spread": []}
    weight = draw.randint(1, 100)
    return {
        "nodes": draw.maybe(0.5, lambda: [weight, random_terms(draw, node)[0]]),
        "with_pods": draw.maybe(0.4, lambda: [weight, _random_pod_term(draw, _tier_selector(draw))]),
        "apart_from": draw.maybe(0.4, lambda: [weight, _random_pod_term(draw, mine)]),
        "spread": draw.maybe(0.4, lambda: _random_spread(draw, mine)),
    }


def _random_latency(draw: Draw, pods: Sequence[Json], nodes: Sequence[Json]) -> Json:
    """One or two targets and a few probes, most of them measured."""
    keys = [pod["key"] for pod in draw.sample(list(pods), min(len(pods), draw.randint(4, 8)))]
    targets = draw.randint(1, 2)
    measured = {key: [draw.amount(0.001, 0.2, 4), draw.amount(900, 1000, 1)] for key in keys if draw.chance(0.85)}
    return {
        "now": 1000.0,
        "moved_at": draw.choice([980.0, 940.0, 800.0]),
        "roles": {key: "target" if at < targets else "probe" for at, key in enumerate(keys)},
        "last": measured,
        "visited": [node["name"] for node in draw.some(nodes, 2)],
    }

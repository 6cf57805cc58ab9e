"""Random problems from a seed: small ones, ones with all that a planner may meet, ones full of rules between pods, ones
with nodes of very different sizes, ones without room to spare."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from matching.problem import (
    Dumping,
    HostPort,
    Latency,
    LatencyMeasurement,
    Node,
    Options,
    Pod,
    PodTerm,
    Problem,
    Requirement,
    Role,
    Rules,
    Scope,
    Selector,
    Spread,
    Strategy,
    Taint,
    Toleration,
    Volume,
)

AXES = ("cpu", "memory", "network")

_SELECTIONS = (
    Rules(),
    Rules(),
    Rules(),
    Rules(node_selector=(("zone", "a"),)),
    Rules((Toleration(operator="Exists"),)),
)


def random_problem(seed: int, pods: int = 8, nodes: int = 4) -> Problem:
    """Three axes, with all that a planner may meet."""
    return _with_more(small_problem(seed, pods, nodes), seed + 1)


def _random_node(name: str, pick: random.Random) -> Node:
    return Node(
        name=name,
        allocatable=(pick.randint(4, 12), pick.randint(4, 12)),
        max_pods=pick.choice([2, 4, 110]),
        labels=pick.choice([{"zone": "a"}, {"zone": "b"}]),
        taints=pick.choice([(), (), (Taint("k", "NoSchedule"),), (Taint("k", "NoExecute"),)]),
        unschedulable=pick.random() < 0.15,
        ready=pick.random() < 0.85,
        measured=pick.random() < 0.85,
        background=pick.choice([(), (0, 0), (1, 1)]),
    )


def _random_pod(name: str, current: list[str | None], pick: random.Random) -> Pod:
    return Pod(
        key=f"default/{name}",
        uid=f"uid-{name}",
        usage=(pick.randint(0, 5), pick.randint(0, 5)),
        request=(pick.randint(0, 5), pick.randint(0, 5)),
        peak=(pick.randint(0, 5), pick.randint(0, 5)),
        node=pick.choice(current),
        priority=pick.randint(0, 2),
        happy=pick.random() < 0.6,
        fixed=pick.choice(["", "", "", "DaemonSet"]),
        rules=pick.choice(_SELECTIONS),
    )


def small_problem(seed: int, pods: int, nodes: int) -> Problem:
    """Two axes. Fixed pods, pods on a lost node, overfull nodes, taints, nodes not ready or without metrics."""
    pick = random.Random(seed)
    names = [f"n{at}" for at in range(nodes)]
    current = [None, "gone", *names, *names]
    options = Options(
        scope=pick.choice(list(Scope)),
        inertia=pick.choice([0.0, 0.2, 2.0]),
        headroom=pick.choice([0.0, 0.25, 0.5]),
        max_moves=pick.choice([None, None, 0, 1, 2]),
        only_if_better=pick.random() < 0.5,
    )
    return Problem(
        AXES[:2],
        tuple(_random_pod(f"p{at}", current, pick) for at in range(pods)),
        tuple(_random_node(name, pick) for name in names),
        options,
    )


def _with_more(problem: Problem, seed: int) -> Problem:
    """The same with a network axis, some of it unknown, rules between pods, latency measurements, all budgets."""
    pick = random.Random(seed)

    def network(most: int) -> tuple[float, tuple[str, ...]]:
        return (0.0, ("network",)) if pick.random() < 0.2 else (float(pick.randint(1, most)), ())

    pods: list[Pod] = []
    roles: dict[str, Role] = {}
    last: dict[str, LatencyMeasurement] = {}
    for pod in problem.pods:
        demand, unknown = network(4)
        usage, request, peak = ((*amounts, extra) for amounts, extra in _triples(pod, demand))
        workload = pick.choice(["", "w1", "w2"])
        rules = _with_pod_rule(pod.rules, pick) if pick.random() < 0.4 else pod.rules
        needs = replace(pod, usage=usage, request=request, peak=peak, unknown=unknown)
        pods.append(replace(needs, workload=workload, labels={"app": workload}, rules=rules))
        if pick.random() < 0.5:
            full = sum(role is Role.TARGET for role in roles.values()) == 2
            roles[pod.key] = Role.PROBE if full else pick.choice(list(Role))
            last[pod.key] = LatencyMeasurement(pick.randint(1, 9) / 10, pick.randint(0, 9))
    nodes = []
    for node in problem.nodes:
        bandwidth, unknown = network(12)
        background = (*node.background, 0.0) if node.background else ()
        allocatable = (*node.allocatable, bandwidth)
        labels = {**node.labels, "host": node.name}
        nodes.append(replace(node, allocatable=allocatable, background=background, unknown=unknown, labels=labels))
    names = sorted(node.name for node in nodes)
    known, left = _remembered(names, seed)
    latency = Latency(
        pick.choice([10.0, 100.0]), 5.0, roles, last, frozenset(pick.sample(names, 1)), known=known, left=left
    )
    options = replace(
        problem.options,
        max_moves_per_workload=pick.choice([None, None, 1]),
        max_moves_per_node=pick.choice([None, None, 1, 2]),
        max_moves_per_namespace=pick.choice([None, None, 2]),
    )
    made = replace(problem, axes=AXES, pods=tuple(pods), nodes=tuple(nodes), options=options, latency=latency)
    return with_volumes(made, seed) if seed % 3 == 0 else made


def _remembered(nodes: Sequence[str], seed: int) -> tuple[dict[str, float], frozenset[str]]:
    """Round trips by node from earlier in the round, and nodes that a target has left."""
    pick = random.Random(f"remembered {seed}")
    known = {node: pick.randint(1, 9) / 10 for node in nodes if pick.random() < 0.3}
    return known, frozenset(node for node in known if pick.random() < 0.2)


def with_volumes(problem: Problem, seed: int) -> Problem:
    """The same with volumes, some of them shared, of two drivers that limit how many a node can attach."""
    pick = random.Random(seed)
    known = [Volume("disk.csi", f"d{at}") for at in range(6)] + [Volume("file.csi", f"f{at}") for at in range(3)]
    pods = [replace(pod, volumes=tuple(pick.sample(known, pick.choice([0, 1, 1, 2])))) for pod in problem.pods]
    nodes = []
    for node in problem.nodes:
        limits = {driver: pick.choice([0, 1, 1, 2]) for driver in ("disk.csi", "file.csi") if pick.random() < 0.7}
        used = {volume for pod in pods if pod.node == node.name for volume in pod.volumes}
        attached = [volume for volume in pick.sample(known, pick.choice([0, 0, 1])) if volume not in used]
        nodes.append(replace(node, volume_limits=limits, attached=tuple(attached)))
    return replace(problem, pods=tuple(pods), nodes=tuple(nodes))


def with_surges(problem: Problem, seed: int) -> Problem:
    """The same with every way of moving a pod."""
    pick = random.Random(seed)
    strategies = list(Strategy)
    return replace(problem, pods=tuple(replace(pod, strategy=pick.choice(strategies)) for pod in problem.pods))


def _with_pod_rule(rules: Rules, pick: random.Random) -> Rules:
    """The same rules and one about other pods."""
    selector = Selector((Requirement("app", "In", (pick.choice(["w1", "w2"]),)),))
    where = pick.choice(["host", "zone"])
    return pick.choice(
        [
            replace(rules, pod_anti_affinity=(PodTerm(where, selector),)),
            replace(rules, pod_affinity=(PodTerm(where, selector),)),
            replace(rules, spread=(Spread(where, selector),)),
            replace(rules, ports=(HostPort(80),)),
        ]
    )


def _triples(pod: Pod, demand: float) -> list[tuple[tuple[float, ...], float]]:
    return [(pod.usage, demand), (pod.request, 0.0), (pod.peak, demand)]


def uneven_problem(seed: int, pods: int = 12, nodes: int = 6) -> Problem:
    """Nodes of two sizes, most pods crowded on one or two of them: searches for even loads take many steps."""
    pick = random.Random(seed)
    names = [f"n{at}" for at in range(nodes)]
    crowded = pick.sample(names, min(nodes, pick.randint(1, 2)))
    return Problem(
        AXES[:2],
        tuple(_uneven_pod(f"p{at}", [None, *crowded * 8, *names], pick) for at in range(pods)),
        tuple(
            Node(
                name,
                pick.choice([(4.0, 8.0), (16.0, 32.0)]),
                max_pods=pick.choice([6, 20]),
                labels={"host": name, "zone": pick.choice("ab")},
            )
            for name in names
        ),
        Options(
            scope=pick.choice([Scope.CLUSTER, Scope.CLUSTER, Scope.UNHAPPY, Scope.AFFECTED]),
            max_moves=pick.choice([None, None, None, 5]),
        ),
    )


def _uneven_pod(name: str, current: list[str | None], pick: random.Random) -> Pod:
    request = (pick.choice([0.1, 0.4, 0.8, 1.5]), pick.choice([0.064, 0.5]))
    usage = tuple(amount * pick.choice([0.7, 1.0, 1.1]) for amount in request)
    workload = pick.choice(["w1", "w2"])
    return Pod(
        key=f"default/{name}",
        uid=f"uid-{name}",
        usage=usage,
        request=request,
        peak=usage,
        node=pick.choice(current),
        workload=workload,
        happy=pick.random() < 0.4,
        rules=_with_pod_rule(Rules(), pick) if pick.random() < 0.2 else Rules(),
        labels={"app": workload},
    )


ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_NAMESPACES = {"shop": {"team": "a"}, "bank": {"team": "b"}}


def _app(*names: str) -> Selector:
    return Selector((Requirement("app", "In", names),))


_SELECTORS = (
    _app("web"),
    _app("db"),
    _app("web", "db"),
    Selector((Requirement("app", "NotIn", ("db",)),)),
    Selector((Requirement("tier", "Exists"),)),
    Selector((Requirement("app", "Exists"), Requirement("tier", "DoesNotExist"))),
    Selector(),
    None,
)


def _random_term(pick: random.Random) -> PodTerm:
    namespaces, selector = pick.choice(
        [
            ((), None),
            ((), None),
            (("shop",), None),
            ((), Selector()),
            (("bank",), Selector((Requirement("team", "In", ("a",)),))),
        ]
    )
    return PodTerm(pick.choice([ZONE, HOST]), pick.choice(_SELECTORS), namespaces, selector)


def _random_spread(pick: random.Random) -> Spread:
    return Spread(
        pick.choice([ZONE, ZONE, HOST]),
        pick.choice(_SELECTORS),
        max_skew=pick.choice([1, 1, 2]),
        min_domains=pick.choice([1, 1, 3]),
        honor_affinity=pick.random() < 0.7,
        honor_taints=pick.random() < 0.3,
    )


def _random_rules(pick: random.Random) -> Rules:
    def some(make: Callable[[random.Random], object], chance: float) -> tuple[object, ...]:
        return tuple(make(pick) for _ in range(pick.choice([1, 1, 2]))) if pick.random() < chance else ()

    return Rules(
        tolerations=pick.choice([(), (Toleration("k", "Exists"),)]),
        node_selector=pick.choice([(), (), (("disk", "ssd"),)]),
        pod_affinity=some(_random_term, 0.3),  # type: ignore[arg-type]
        pod_anti_affinity=some(_random_term, 0.3),  # type: ignore[arg-type]
        spread=some(_random_spread, 0.3),  # type: ignore[arg-type]
        ports=pick.choice(
            [(), (), (HostPort(80),), (HostPort(80, ip="10.0.0.1"),), (HostPort(80, "UDP"), HostPort(81))]
        ),
    )


def problem_with_pod_rules(seed: int, pods: int = 7, nodes: int = 4) -> Problem:
    """Room enough for all pods, so that only the rules between them matter."""
    pick = random.Random(seed)
    names = [f"n{number}" for number in range(nodes)]
    labels = [{"app": "web"}, {"app": "web", "tier": "front"}, {"app": "db"}, {}]
    templates = [_random_rules(pick) for _ in range(3)] + [Rules()]
    return Problem(
        ("cpu",),
        tuple(
            Pod(
                key=f"{pick.choice(['shop', 'shop', 'bank'])}/p{number}",
                uid=f"u{number}",
                usage=(pick.randint(0, 3),),
                request=(0,),
                peak=(0,),
                node=pick.choice([None, *names, *names]),
                happy=pick.random() < 0.7,
                fixed=pick.choice(["", "", "", "DaemonSet"]),
                rules=pick.choice(templates),
                labels=pick.choice(labels),
                leaving=pick.random() < 0.1,
            )
            for number in range(pods)
        ),
        tuple(
            Node(
                name,
                (pick.randint(5, 10),),
                labels={
                    HOST: name,
                    **pick.choice([{ZONE: "a"}, {ZONE: "b"}, {ZONE: "c"}, {}]),
                    **pick.choice([{"disk": "ssd"}, {}]),
                },
                taints=pick.choice([(), (), (Taint("k", "PreferNoSchedule"),), (Taint("k", "NoSchedule"),)]),
            )
            for name in names
        ),
        Options(inertia=pick.choice([0.0, 0.2]), only_if_better=False),
        namespaces=_NAMESPACES,
    )


def full_problem(seed: int, nodes: int = 4) -> Problem:
    """Nodes almost full by requests and unevenly loaded: most moves need the room that another one frees."""
    pick = random.Random(f"full {seed}")
    made = [_full_node(f"n{number}", pick) for number in range(nodes)]
    pods = [pod for node in made for pod in _pods_that_fill(node, pick)]
    if pick.random() < 0.3:
        pods.append(_sized_pod("default/pending", None, 1.0, 1.0, pick))
    probes = pick.sample(pods, min(4, len(pods)))
    roles = {pod.key: Role.TARGET if number == 0 else Role.PROBE for number, pod in enumerate(probes)}
    last = {key: LatencyMeasurement(pick.randint(1, 9) / 10, 1.0) for key in roles}
    options = Options(
        scope=pick.choice([Scope.CLUSTER, Scope.CLUSTER, Scope.AFFECTED, Scope.UNHAPPY]),
        inertia=pick.choice([0.0, 0.05, 0.2]),
        max_moves_per_node=pick.choice([None, None, None, 2]),
        only_if_better=pick.random() < 0.7,
        dumping=pick.choice([*[Dumping.NEVER] * 9, Dumping.ALLOW]),
    )
    return Problem(AXES, tuple(pods), tuple(made), options, latency=Latency(10.0, 5.0, roles, last))


def _full_node(name: str, pick: random.Random) -> Node:
    room = float(pick.choice([4, 6, 8]))
    labels = {"host": name, "zone": pick.choice("ab")}
    return Node(name, (room, room, 10.0), max_pods=pick.choice([110, 110, 4]), labels=labels)


def _pods_that_fill(node: Node, pick: random.Random) -> list[Pod]:
    """On a hot node they use more than they request, and some are unhappy."""
    left, hot, pods = int(node.allocatable[0]), pick.random() < 0.4, list[Pod]()
    while left and len(pods) < node.max_pods and pick.random() < 0.95:
        size = pick.randint(1, min(3, left))
        left -= size
        used = size * (pick.uniform(0.8, 1.3) if hot else pick.uniform(0.1, 0.7))
        pod = _sized_pod(f"default/{node.name}-{len(pods)}", node.name, float(size), round(used, 2), pick)
        pods.append(replace(pod, happy=not hot or pick.random() < 0.5))
    return pods


def _sized_pod(key: str, node: str | None, size: float, used: float, pick: random.Random) -> Pod:
    workload = pick.choice(["w1", "w2", "w3"])
    rules = _with_pod_rule(Rules(), pick) if pick.random() < 0.05 else Rules()
    usage, request, peak = (used, used, used), (size, size, 0.0), (used * 1.1, used * 1.1, used)
    labels = {"app": workload}
    return Pod(key, f"uid-{key}", usage, request, peak, node=node, workload=workload, labels=labels, rules=rules)

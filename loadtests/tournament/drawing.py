"""Draws an instance of a scenario for a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from loadtests.tournament.default_scheduler import Landing
from loadtests.tournament.instance import (
    ZONE,
    AppModel,
    BrokenModel,
    Instance,
    LoadPlan,
    LossModel,
    NodeModel,
    NoiseModel,
    RolloutModel,
)
from loadtests.tournament.load_series import read_series
from loadtests.tournament.queues import Floats
from loadtests.tournament.scenario import (
    ROOM,
    AppGroup,
    Broken,
    Drawn,
    Leak,
    Neighbour,
    NodeGroup,
    NodeLost,
    ProbeNoise,
    Ramp,
    Rollout,
    Scenario,
    ScenarioError,
    Series,
    Spike,
)
from loadtests.workloads.placement import NodeSpec
from matching.problem import PodTerm, Requirement, Rules, Selector, Spread, Taint, Toleration

MIB = 1024 * 1024
HOSTNAME = "kubernetes.io/hostname"
_DRAWS = 3000


def draw(scenario: Scenario, seed: int) -> Instance:
    """A scenario and a seed always give the same instance."""
    source = random.Random(f"{scenario.name}/{seed}")
    nodes = _nodes(scenario.nodes, source)
    for _ in range(_DRAWS):
        instance = _candidate(scenario, seed, nodes, source)
        if _fits(instance):
            instance = _with_changes(instance, source)
            if _has_peak(instance):
                return instance
    wanted = f"hottest {scenario.hottest} and peak {scenario.peak}"
    raise ScenarioError(f"{scenario.name}: none of {_DRAWS} draws of seed {seed} has {wanted}")


def relative_loads(instance: Instance) -> dict[str, float]:
    """By node: the load that is there over the node's cores, in units of the whole cluster's."""
    cores = {node.name: node.spec.cores for node in instance.nodes}
    here = dict.fromkeys(cores, 0.0)
    for app in instance.apps:
        for name in instance.placement[app.name]:
            here[name] += app.need
    level = sum(here.values()) / sum(cores.values())
    return {name: here[name] / cores[name] / level for name in cores}


def _fits(instance: Instance) -> bool:
    wanted = instance.scenario.hottest
    if wanted is None:
        return True
    loads = relative_loads(instance)
    hottest = max(loads, key=lambda name: loads[name])
    weakest = min(instance.nodes, key=lambda node: node.spec.cores).name
    if instance.scenario.hottest_is_weakest and hottest != weakest:
        return False
    return wanted[0] <= loads[hottest] <= wanted[1]


def _has_peak(instance: Instance) -> bool:
    wanted = instance.scenario.peak
    if wanted is None:
        return True
    loads, cores = instance.node_loads(), np.array([node.spec.cores for node in instance.nodes])
    together = (loads * cores).sum(axis=1) / cores.sum()
    return wanted[0] <= float(loads.max()) <= wanted[1] and float(together.max()) < ROOM


def _number(value: Drawn, source: random.Random) -> float:
    return source.uniform(*value) if isinstance(value, tuple) else float(value)


def _whole(value: Drawn, source: random.Random) -> int:
    return source.randint(round(value[0]), round(value[1])) if isinstance(value, tuple) else round(value)


def _nodes(groups: Sequence[NodeGroup], source: random.Random) -> tuple[NodeModel, ...]:
    nodes: list[NodeModel] = []
    for group in groups:
        for index in range(group.count):
            zone = {ZONE: group.zones[index % len(group.zones)]} if group.zones else {}
            spec = NodeSpec(
                f"node-{len(nodes) + 1:02}",
                round(_number(group.cores, source), 3),
                int(_number(group.memory_mib, source)) * MIB,
                group.pods,
                {**group.labels, **zone},
            )
            nodes.append(NodeModel(spec, tuple(_taint(text) for text in group.taints)))
    return tuple(nodes)


def _taint(text: str) -> Taint:
    pair, _, effect = text.partition(":")
    key, _, value = pair.partition("=")
    return Taint(key, effect or "NoSchedule", value)


def _candidate(scenario: Scenario, seed: int, nodes: tuple[NodeModel, ...], source: random.Random) -> Instance:
    apps = [app for group in scenario.apps for app in _apps(group, source)]
    cores = sum(node.spec.cores for node in nodes)
    wanted = _number(scenario.utilisation, source) * cores
    needed = sum(app.need * app.replicas for app in apps)
    factor = wanted / needed
    models = tuple(_limited(replace(app, rate=app.rate * factor)) for app in apps)
    landing = Landing(nodes, source)
    placement: dict[str, tuple[str, ...]] = {}
    for app in models:
        chosen = [landing.place(app) for _ in range(app.replicas)]
        if None in chosen:
            raise ScenarioError(f"{scenario.name}: app {app.name} fits on no node by its requests and constraints")
        placement[app.name] = tuple(name for name in chosen if name is not None)
    load = LoadPlan(np.zeros(1), np.ones((1, len(models))))
    return Instance(scenario, seed, nodes, models, load, placement)


def _limited(app: AppModel) -> AppModel:
    """The limit was drawn in units of the need."""
    return app if app.limit == float("inf") else replace(app, limit=app.limit * app.need)


def _apps(group: AppGroup, source: random.Random) -> list[AppModel]:
    works = [_number(group.work_ms, source) for _ in range(group.count)]
    if group.evenly and isinstance(group.work_ms, tuple):
        low, high = group.work_ms
        works = [low + (high - low) * index / max(group.count - 1, 1) for index in range(group.count)]
        source.shuffle(works)
    return [_app(group, index, work / 1000, source) for index, work in enumerate(works)]


def _app(group: AppGroup, index: int, work: float, source: random.Random) -> AppModel:
    name = f"{group.name}-{index + 1:02}" if group.count > 1 else group.name
    weight = _number(group.weight, source)
    limit = _number(group.cpu_limit, source)
    return AppModel(
        name=name,
        replicas=max(1, _whole(group.replicas, source)),
        work=work,
        rate=weight / work if weight > 0 else 1.0,
        cpu_request=round(_number(group.cpu_request, source), 3),
        memory_request=_number(group.memory_request_mib, source) * MIB,
        memory=_number(group.memory_mib, source) * MIB,
        limit=limit if limit > 0 else float("inf"),
        start_seconds=_number(group.start_seconds, source),
        rules=_rules(group, name),
        apart=group.apart,
        spread_zones=group.spread_zones,
    )


def _rules(group: AppGroup, name: str) -> Rules:
    own = Selector((Requirement("app", "In", (name,)),))
    tolerations = [_taint(text) for text in group.tolerates]
    return Rules(
        tolerations=tuple(Toleration(each.key, "Equal", each.value, each.effect) for each in tolerations),
        node_selector=tuple(sorted(group.node_selector.items())),
        pod_anti_affinity=(PodTerm(HOSTNAME, own),) if group.apart else (),
        spread=(Spread(ZONE, own),) if group.spread_zones else (),
    )


def _with_changes(instance: Instance, source: random.Random) -> Instance:
    for change in instance.scenario.changes:
        instance = _with_change(instance, change, source)
    return instance


def _with_change(instance: Instance, change: object, source: random.Random) -> Instance:
    match change:
        case Ramp():
            starts = np.arange(len(change.factors), dtype=np.float64) * change.step_seconds
            return _scaled(instance, starts, np.repeat(np.array(change.factors)[:, None], len(instance.apps), axis=1))
        case Spike():
            for app in _some(instance, change.apps, source):
                begin, factor = _number(change.at, source), _number(change.factor, source)
                end = begin + _number(change.seconds, source)
                instance = _scaled_app(instance, app, [(begin, factor), (end, 1.0)])
            return instance
        case Series():
            return _following(instance, change, source)
        case Neighbour():
            return _with_neighbour(instance, change, source)
        case Rollout():
            models = [
                RolloutModel(app, _number(change.at, source), _number(change.factor, source))
                for app in _some(instance, change.apps, source)
            ]
            return replace(instance, rollouts=(*instance.rollouts, *models))
        case NodeLost():
            begin = _number(change.at, source)
            lost = LossModel(
                source.choice(instance.nodes).name,
                begin,
                begin + _number(change.seconds, source),
                change.eviction_after,
            )
            return replace(instance, losses=(*instance.losses, lost))
        case Leak():
            leaking = {
                app: _number(change.mib_per_minute, source) * MIB / 60 for app in _some(instance, change.apps, source)
            }
            apps = tuple(replace(app, leak=leaking.get(app.name, 0.0)) for app in instance.apps)
            return replace(instance, apps=apps)
        case Broken():
            broken = [
                BrokenModel(app, _number(change.at, source), _number(change.failing, source))
                for app in _some(instance, change.apps, source)
            ]
            return replace(instance, broken=(*instance.broken, *broken))
        case ProbeNoise():
            noise = NoiseModel(
                _number(change.share, source),
                change.bursts_per_day,
                _number(change.burst_seconds, source),
                change.burst_share,
            )
            return replace(instance, noise=noise)
    raise ScenarioError(f"{instance.scenario.name}: {change!r} is not known")


def _some(instance: Instance, number: Drawn, source: random.Random) -> list[str]:
    names = [app.name for app in instance.apps if not app.pinned]
    return source.sample(names, min(len(names), max(1, _whole(number, source))))


def _scaled(instance: Instance, starts: Floats, factors: Floats) -> Instance:
    """On top of the factors that are there."""
    load = instance.load
    times = np.union1d(load.starts, starts)
    there = np.stack([load.at(time) for time in times])
    more = factors[np.maximum(np.searchsorted(starts, times, side="right") - 1, 0)]
    more = np.where((times < starts[0])[:, None], 1.0, more)
    return replace(instance, load=LoadPlan(times, there * more))


def _scaled_app(instance: Instance, app: str, changes: Sequence[tuple[float, float]]) -> Instance:
    names = [each.name for each in instance.apps]
    starts = np.array([0.0, *(time for time, _ in changes)])
    factors = np.ones((len(starts), len(names)))
    factors[1:, names.index(app)] = [factor for _, factor in changes]
    return _scaled(instance, starts, factors)


def _following(instance: Instance, change: Series, source: random.Random) -> Instance:
    """A series is scaled so that its mean in the window is 1."""
    number = int(instance.seconds // change.sample_seconds) + 1
    every = [series for series in read_series(change.file) if len(series) >= number]
    if not every:
        raise ScenarioError(f"{instance.scenario.name}: no series of {change.file} has {number} samples")
    columns = []
    for _ in instance.apps:
        series = source.choice(every)
        begin = source.randrange(len(series) - number + 1)
        window = series[begin : begin + number]
        columns.append(window / max(float(window.mean()), 1e-9))
    return _scaled(instance, np.arange(number, dtype=np.float64) * change.sample_seconds, np.stack(columns, axis=1))


def _with_neighbour(instance: Instance, change: Neighbour, source: random.Random) -> Instance:
    loads = relative_loads(instance)
    names = sorted(loads)
    node = max(names, key=lambda name: loads[name]) if change.where == "busiest" else source.choice(names)
    cores = next(each.spec.cores for each in instance.nodes if each.name == node)
    name = f"neighbour-{sum(bool(app.pinned) for app in instance.apps) + 1}"
    model = AppModel(name, 1, 0.0, _number(change.share, source) * cores, 0.1 * cores, 32 * MIB, 24 * MIB, pinned=node)
    load = instance.load
    instance = replace(
        instance,
        apps=(*instance.apps, model),
        load=LoadPlan(load.starts, np.column_stack([load.factors, np.ones(len(load.starts))])),
        placement={**instance.placement, name: (node,)},
    )
    changes, time = [(1e-3, 0.0)], _number(change.at, source)
    for _ in range(change.times):
        end = time + _number(change.seconds, source)
        changes += [(time, 1.0), (end, 0.0)]
        time = end + _number(change.pause, source)
    return _scaled_app(instance, name, changes)

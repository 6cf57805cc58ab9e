"""A scenario as its file says it: what is drawn for each seed, and what then happens. `docs/tournament.md` explains it.

A number is taken as it is; a pair `[low, high]` is drawn evenly between the two, for each seed anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import yaml
from msgspec import Struct

from reactor.errors import InputError

Drawn = float | tuple[float, float]
ROOM = 0.9
FOLDER = Path(__file__).parent / "scenarios"


class ScenarioError(InputError):
    """A file cannot be used; the message names the file, the field and what is wrong."""


class _Part(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    pass


class NodeGroup(_Part, frozen=True):
    count: int
    cores: Drawn
    memory_mib: Drawn = 8192.0
    pods: int = 110
    zones: tuple[str, ...] = ()
    """Its nodes are in these zones in turn."""
    labels: dict[str, str] = {}
    taints: tuple[str, ...] = ()
    """`key=value:NoSchedule`."""


class AppGroup(_Part, frozen=True):
    name: str
    count: int
    replicas: Drawn = 1.0
    work_ms: Drawn = 20.0
    """CPU of one request."""
    evenly: bool = False
    """The amounts of work are spaced evenly and dealt out, instead of drawn one by one."""
    weight: Drawn = 1.0
    """Its part of the cluster's load, compared with other apps. 0: the part follows from the work, rates are equal."""
    cpu_request: Drawn = 0.05
    memory_request_mib: Drawn = 64.0
    memory_mib: Drawn = 48.0
    cpu_limit: Drawn = 0.0
    """In units of what a replica needs at the start; 0: no limit."""
    start_seconds: Drawn = 1.1
    apart: bool = False
    """Required anti-affinity: its replicas are on different nodes."""
    spread_zones: bool = False
    """Topology spread over zones, DoNotSchedule, skew 1."""
    tolerates: tuple[str, ...] = ()
    node_selector: dict[str, str] = {}


class Probes(_Part, frozen=True):
    period: float = 10.0
    readiness_period: float = 10.0
    failure_threshold: int = 3


class Ramp(_Part, frozen=True, tag="ramp"):
    """The load of all apps in steps."""

    factors: tuple[float, ...]
    step_seconds: float


class Spike(_Part, frozen=True, tag="spike"):
    apps: Drawn = 1.0
    factor: Drawn = 3.0
    at: Drawn = 300.0
    seconds: Drawn = 600.0


class Series(_Part, frozen=True, tag="series"):
    """Each app follows a measured series of its own, from a point in time of its own."""

    file: str
    sample_seconds: float
    """Of simulated time."""


class Neighbour(_Part, frozen=True, tag="neighbour"):
    """A pod that is nobody's to move uses CPU of one node, again and again for a while."""

    share: Drawn = 0.5
    """Of its node's cores."""
    times: int = 1
    at: Drawn = 300.0
    seconds: Drawn = 300.0
    pause: Drawn = 300.0
    where: str = "busiest"
    """`busiest` or `any`."""


class Rollout(_Part, frozen=True, tag="rollout"):
    """A version that needs more CPU per request."""

    factor: Drawn = 2.0
    at: Drawn = 300.0
    apps: Drawn = 1.0


class NodeLost(_Part, frozen=True, tag="nodeLost"):
    at: Drawn = 300.0
    seconds: Drawn = 600.0
    eviction_after: float = 300.0
    """Seconds that pods tolerate a node that is not ready, as by Kubernetes' default."""


class Leak(_Part, frozen=True, tag="leak"):
    apps: Drawn = 1.0
    mib_per_minute: Drawn = 20.0


class Broken(_Part, frozen=True, tag="broken"):
    """All replicas of an app fail their probes and requests by themselves, wherever they run."""

    apps: Drawn = 1.0
    failing: Drawn = 0.5
    at: Drawn = 300.0


class ProbeNoise(_Part, frozen=True, tag="probeNoise"):
    """Probes fail at random; in a burst, those of all pods of a node."""

    share: Drawn = 0.001
    bursts_per_day: float = 0.0
    burst_seconds: Drawn = 15.0
    burst_share: float = 0.5


Change = Ramp | Spike | Series | Neighbour | Rollout | NodeLost | Leak | Broken | ProbeNoise


class Scenario(_Part, frozen=True):
    name: str
    text: str
    """One sentence for the report."""
    seconds: float
    nodes: tuple[NodeGroup, ...]
    apps: tuple[AppGroup, ...]
    utilisation: Drawn
    """What all requests need at the start, as a share of all cores."""
    hottest: tuple[float, float] | None = None
    """Only draws are taken in which the hottest node of the default placement has this load, in units of the cluster's.
    It is then that placement matters. Nothing is chosen by what a policy makes of it."""
    hottest_is_weakest: bool = False
    peak: tuple[float, float] | None = None
    """Only draws are taken in which the load of the default placement's most loaded node reaches this at its worst,
    while all nodes together stay below `ROOM`: a better placement exists."""
    probes: Probes = Probes()
    changes: tuple[Change, ...] = ()
    quiet: bool = False
    """Nobody can be helped by a move here: a policy should do nothing."""


def scenarios(names: Iterable[str] = (), folder: Path = FOLDER) -> list[Scenario]:
    """All scenarios of the folder, or those named: a name of one of them, or a path of a file."""
    wanted = list(names)
    if not wanted:
        return [read(path) for path in sorted(folder.glob("*.yaml"))]
    found = []
    for name in wanted:
        path = Path(name) if name.endswith((".yaml", ".yml")) else folder / f"{name}.yaml"
        if not path.is_file():
            known = ", ".join(sorted(each.stem for each in folder.glob("*.yaml")))
            raise ScenarioError(f"scenario {name}: there is no {path}; known are {known}, or give the path of a file")
        found.append(read(path))
    return found


def read(path: Path) -> Scenario:
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
        scenario = msgspec.convert(tree, Scenario)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise ScenarioError(f"{path}: {error}") from error
    problems = list(_problems(scenario))
    if problems:
        raise ScenarioError(f"{path}: " + "; ".join(problems))
    return scenario


def _problems(scenario: Scenario) -> Iterator[str]:
    if not math.isfinite(scenario.seconds) or scenario.seconds <= 0:
        yield f"seconds must be positive, got {scenario.seconds:g}"
    if not scenario.nodes or any(group.count < 1 for group in scenario.nodes):
        yield "nodes: at least one group, and each of at least one node"
    if not scenario.apps or any(group.count < 1 for group in scenario.apps):
        yield "apps: at least one group, and each of at least one app"
    if len({group.name for group in scenario.apps}) < len(scenario.apps):
        yield "apps: two groups have the same name"
    if scenario.probes.period <= 0 or scenario.probes.readiness_period <= 0 or scenario.probes.failure_threshold < 1:
        yield "probes: periods and failureThreshold must be positive"
    for part in (scenario, *scenario.nodes, *scenario.apps, *scenario.changes):
        yield from _numbers(part)


def _numbers(part: Struct) -> Iterator[str]:
    for name in part.__struct_fields__:
        value = getattr(part, name)
        where = f"{type(part).__name__}.{name}"
        pair = isinstance(value, tuple) and len(value) == 2 and all(isinstance(each, float | int) for each in value)
        if pair and value[0] > value[1]:
            yield f"{where}: [{value[0]:g}, {value[1]:g}] is not ordered"
        numbers = value if pair else (value,) if isinstance(value, float | int) else ()
        if any(not math.isfinite(each) or each < 0 for each in numbers):
            yield f"{where}: {value} is not a number of at least 0"

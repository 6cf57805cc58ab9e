"""Our stable matching against the package `matching` 1.4.3 of PyPI (hospitals and residents), on what both can express.

Their import name is the same as ours, so theirs runs in an environment of its own, in a cache folder outside the
clone. Instances: pods of one size, nodes with a number of seats, lists cut short by node selectors, and one ranking of
the pods that all nodes share (ours is by CPU use). Half of the instances have the seats as the number of pods that a
node may run, half as a resource of which every pod requests one unit. The lists that theirs gets are made here, from
the definitions, not by our code.

    python -m loadtests.benchmarks.against_pypi_matching [--instances 400]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from loadtests.benchmarks.planners_speed import timed_plan
from matching.problem import Node, Options, Pod, Problem, Rules
from matching.registry import load_planner

PACKAGE = "matching==1.4.3"
INSTALL_DEADLINE = 180.0
SOLVE_DEADLINE = 300.0
FASTER = 100.0


@dataclass(frozen=True, slots=True)
class Instance:
    problem: Problem
    seats: Mapping[str, int]


def environment() -> Path | None:
    """The interpreter with their package; made once, None when it cannot be had."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rematch" / PACKAGE.replace("==", "-")
    python, done = cache / "bin" / "python", cache / ".installed"
    if done.exists():
        return python
    print(f"installing {PACKAGE} into {cache}")
    try:
        subprocess.run([sys.executable, "-m", "venv", str(cache)], check=True, timeout=INSTALL_DEADLINE)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE]
        subprocess.run(command, check=True, timeout=INSTALL_DEADLINE, capture_output=True, text=True)
    except (subprocess.SubprocessError, OSError) as error:
        said = (getattr(error, "stderr", "") or "").strip().splitlines()
        print(f"skipped: {PACKAGE} cannot be installed here ({said[-1] if said else error})")
        return None
    done.touch()
    return python


def theirs(python: Path, games: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Isolated, so that neither the clone nor this folder is on its path."""
    worker = Path(__file__).with_name("against_pypi_worker.py")
    done = subprocess.run(
        [str(python), "-I", str(worker)],
        input=json.dumps(games),
        capture_output=True,
        text=True,
        timeout=SOLVE_DEADLINE,
        check=True,
    )
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def instance(seed: int, pods: int, nodes: int, *, by_request: bool) -> Instance:
    """No two pods use the same CPU, so that the ranking is strict."""
    pick = Random(seed)
    labels = ("a", "b")
    seats = {f"n{at:02d}": pick.randint(1, max(1, 2 * pods // nodes)) for at in range(nodes)}
    unit = float(max(seats.values()))
    places = tuple(
        Node(
            name,
            (pick.uniform(2, 10), pick.uniform(2, 10), float(number) if by_request else unit),
            max_pods=pods if by_request else number,
            labels={label: "y" for label in labels if pick.random() < 0.6},
        )
        for name, number in seats.items()
    )
    cpu = pick.sample(range(1, 1000 * pods), pods)
    guests = tuple(
        Pod(
            f"d/p{at:04d}",
            f"{at}",
            usage=(cpu[at] * 5 / (1000 * pods), pick.uniform(0.1, 5), 0.0),
            request=(0.0, 0.0, 1.0 if by_request else 0.0),
            peak=(0.0, 0.0, 0.0),
            rules=Rules(node_selector=((pick.choice(labels), "y"),) if pick.random() < 0.5 else ()),
        )
        for at in range(pods)
    )
    return Instance(Problem(("cpu", "memory", "seats"), guests, places, Options(inertia=0.0)), seats)


def game(made: Instance) -> dict[str, Any]:
    """The lists of both sides: nearest room first; the pod that uses most CPU first. Empty lists are left out."""
    problem = made.problem
    unit = [max(node.allocatable[axis] for node in problem.nodes) for axis in range(len(problem.axes))]

    def distance(pod: Pod, node: Node) -> float:
        gaps = (room / size - use / size for room, use, size in zip(node.allocatable, pod.usage, unit, strict=True))
        return round(math.sqrt(sum(gap * gap for gap in gaps)), 9)

    residents = {}
    for pod in problem.pods:
        allowed = [node for node in problem.nodes if set(pod.rules.node_selector) <= set(node.labels.items())]
        listed = sorted(allowed, key=lambda node: (distance(pod, node), node.name))
        if listed:
            residents[pod.key] = [node.name for node in listed]
    ranked = sorted(problem.pods, key=lambda pod: -pod.usage[0])
    hospitals = {
        node.name: [pod.key for pod in ranked if node.name in residents.get(pod.key, ())] for node in problem.nodes
    }
    wanted = {name: keys for name, keys in hospitals.items() if keys}
    return {"residents": residents, "hospitals": wanted, "seats": {name: made.seats[name] for name in wanted}}


def ours(made: Instance) -> dict[str, list[str]]:
    """The whole planner, as anybody would call it."""
    plan = load_planner("stable").plan(made.problem)
    assert plan.certificate.feasible
    assert plan.certificate.blocking_pairs == 0
    found: dict[str, list[str]] = {}
    for move in plan.moves:
        found.setdefault(move.target, []).append(move.pod)
    return {name: sorted(pods) for name, pods in found.items()}


def compare(python: Path, number: int) -> bool:
    pick = Random(1)
    made = [
        instance(seed, pick.randint(1, 40), pick.randint(1, 8), by_request=bool(seed % 2)) for seed in range(number)
    ]
    answers = theirs(python, [game(each) for each in made])
    different = [
        seed
        for seed, (each, answer) in enumerate(zip(made, answers, strict=True))
        if ours(each) != {name: pods for name, pods in answer["matching"].items() if pods}
    ]
    print(f"{number - len(different)} of {number} random instances have the same matching", end="")
    print(f"; different: seeds {different[:10]}" if different else "")
    return not different


def race(python: Path) -> bool:
    """Warm; the matching alone (arrays, rules and preferences included): theirs neither explains nor verifies."""
    made = instance(7, 1000, 50, by_request=False)
    their = theirs(python, [game(made)])[0]
    same = ours(made) == {name: pods for name, pods in their["matching"].items() if pods}
    planner, matching, whole = load_planner("stable"), [], []
    for _ in range(7):
        times, _ = timed_plan(planner, made.problem, verified=True)
        matching.append(times.open + times.find)
        whole.append(times.whole)
    alone, plan = statistics.median(matching), statistics.median(whole)
    factor = their["seconds"] / alone
    print(f"1,000 x 50: theirs {their['seconds']:.3f} s, ours {alone * 1000:.1f} ms: {factor:.0f} x faster", end="")
    print(f" (with reasons and certificate {plan * 1000:.1f} ms: {their['seconds'] / plan:.0f} x)", end="")
    print("; same matching" if same else "; DIFFERENT matching")
    return same and factor >= FASTER


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=400)
    wanted = parser.parse_args()
    python = environment()
    if python is None:
        return 0
    good = [compare(python, wanted.instances), race(python)]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())

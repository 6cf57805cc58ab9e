"""Does `balance` know when not to act? Its rule on the 64 scenarios that KSE measured, against what RefineLB did there.

    python -m loadtests.benchmarks.planners_kse_rule --data KSE_RESULTS.csv

For each scenario a problem is made from what could be seen before acting: four nodes whose loads differ as they did
without a balancer, the pods with the shares of the requests that the scenario gives them, and the noise of the
measurement. CPU noise comes from arrivals: a metrics window of w seconds sees a Poisson number of requests, so a node
with r requests per second that cost c core-seconds each is known to c * sqrt(r / w). Memory is a level, not a rate; its
noise is taken from the spread of the imbalance over the ten runs. The planner itself then says act or do not act.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from matching.problem import Node, Options, Pod, Problem
from matching.registry import load_planner

NODES = 4
CAPACITY = {"cpu": 2000.0, "memory": 2048.0}
RUN_SECONDS = 720.0
RANGE_OF_FOUR = 2.059
"""Expected distance between the largest and the smallest of four normal values, in standard deviations."""
RANGE_SPREAD_OF_FOUR = 0.880
"""Standard deviation of that distance."""
PATTERN = np.array([0.5, 1 / 6, -1 / 6, -0.5])
"""Four loads at equal distances have the ratio of standard deviation to range that the data has (0.37 to 0.40)."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scenario:
    workload: str
    pods: int
    target: int
    rate: str
    dist: str
    metric: str
    imbalance: float
    spread: float
    node_mean: float
    requests: float
    """Per second, over all pods."""
    refined: float
    refined_spread: float
    moves: float

    @property
    def outcome(self) -> str:
        """What RefineLB did to the imbalance, by means +/- spreads that do not overlap."""
        if self.refined + self.refined_spread < self.imbalance - self.spread:
            return "better"
        return "worse" if self.refined - self.refined_spread > self.imbalance + self.spread else "unclear"


@dataclass(frozen=True, slots=True)
class KseVerdict:
    scenario: Scenario
    sigma: float
    """Noise of a node's load, in the metric's unit."""
    acts: bool

    @property
    def right(self) -> bool:
        """Acting is right where it made things better; elsewhere it only cost moves."""
        return self.acts == (self.scenario.outcome == "better")


def scenarios(path: Path) -> list[Scenario]:
    with path.open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    keys = ("workload", "pods", "target", "rate", "dist", "metric")
    refined = {tuple(row[key] for key in keys): row for row in rows if row["algo"] == "kse-RefineLB"}
    return [_scenario(row, refined[tuple(row[key] for key in keys)]) for row in rows if row["algo"] == "kube-scheduler"]


def judge(scenario: Scenario, cost: float, window: float) -> KseVerdict:
    """`cost` is what one request costs in the metric's unit times seconds."""
    sigma = _sigma(scenario, cost, window)
    problem = _problem(scenario)
    plan = load_planner("balance", {"noise": _relative(problem, sigma)}).plan(problem)
    return KseVerdict(scenario, sigma, bool(plan.moves))


def verdicts(every: Sequence[Scenario], window: float) -> list[KseVerdict]:
    return [judge(each, _cost_per_request(every, each), window) for each in every]


def _scenario(none: dict[str, str], refine: dict[str, str]) -> Scenario:
    return Scenario(
        workload=none["workload"],
        pods=int(none["pods"]),
        target=int(none["target"]),
        rate=none["rate"],
        dist=none["dist"],
        metric=none["metric"],
        imbalance=float(none["mae_mean"]),
        spread=float(none["mae_std"]),
        node_mean=float(none["node_mean"]),
        requests=float(none["req_mean"]) / RUN_SECONDS,
        refined=float(refine["mae_mean"]),
        refined_spread=float(refine["mae_std"]),
        moves=float(refine["reschedules_mean"]),
    )


def _cost_per_request(every: Sequence[Scenario], of: Scenario) -> float:
    """The slope of total load over request rate for one workload; on the ramp only where constant rates saturate."""
    alike = [
        each
        for each in every
        if (each.workload, each.metric) == (of.workload, of.metric)
        and (each.workload == "synthetic" or each.rate == "ramp")
    ]
    slope = np.polyfit([each.requests for each in alike], [NODES * each.node_mean for each in alike], 1)[0]
    return float(slope)


def _sigma(scenario: Scenario, cost: float, window: float) -> float:
    if scenario.metric == "cpu":
        return cost * math.sqrt(scenario.requests / NODES / window)
    samples = RUN_SECONDS / window
    return scenario.spread * math.sqrt(samples) / RANGE_SPREAD_OF_FOUR


def _shares(scenario: Scenario) -> Floats:
    """Of the requests, per pod, as its published load generator draws them."""
    index = np.arange(1, scenario.pods + 1, dtype=np.float64)
    if scenario.dist == "exponential":
        shares = np.exp(-5 * index / scenario.pods)
    else:
        last = scenario.pods + 1
        shares = np.exp(-0.5 * ((index - 0.75 * last) / (last / 6)) ** 2)
    normal: Floats = shares / shares.sum()
    return normal


def _problem(scenario: Scenario) -> Problem:
    """Pods go round the nodes by index; each node's pods are scaled to the load that it had. Half of the least loaded
    node is taken for what cannot move: pods that idle, the system, the network."""
    loads = scenario.node_mean + scenario.imbalance * PATTERN
    background = float(loads.min() / 2)
    shares = _shares(scenario)
    pods = []
    for node in range(NODES):
        mine = np.arange(node, scenario.pods, NODES)
        usages = (loads[node] - background) * shares[mine] / shares[mine].sum()
        for index, usage in zip(mine.tolist(), usages.tolist(), strict=True):
            pods.append(Pod(f"kse/p{index:02}", f"p{index:02}", (usage,), (0.0,), (usage,), node=f"node{node}"))
    nodes = [Node(f"node{node}", (CAPACITY[scenario.metric],), background=(background,)) for node in range(NODES)]
    return Problem((scenario.metric,), tuple(pods), tuple(nodes), Options(headroom=0.0))


def _relative(problem: Problem, sigma: float) -> float:
    """The relative noise of the pods with which the loads of the nodes, on average, have the noise `sigma`."""
    squares: defaultdict[str | None, float] = defaultdict(float)
    for pod in problem.pods:
        squares[pod.node] += pod.usage[0] ** 2
    return sigma / float(np.mean([math.sqrt(square) for square in squares.values()]))


def best_fixed_spread(every: Sequence[Scenario]) -> int:
    """Scenarios judged rightly by the best threshold on imbalance / mean that hindsight can choose."""
    spreads = [each.imbalance / each.node_mean for each in every]
    limits = [-1.0, *spreads]
    better = [each.outcome == "better" for each in every]
    return max(sum((spread > limit) == good for spread, good in zip(spreads, better, strict=True)) for limit in limits)


def _table(found: Sequence[KseVerdict]) -> str:
    counts = Counter((each.acts, each.scenario.outcome) for each in found)
    lines = ["| rule says | RefineLB better | unclear | worse |", "|---|---|---|---|"]
    for acts, words in ((True, "act"), (False, "do not act")):
        row = " | ".join(str(counts[acts, outcome]) for outcome in ("better", "unclear", "worse"))
        lines.append(f"| {words} | {row} |")
    return "\n".join(lines)


def _lines(found: Sequence[KseVerdict]) -> list[str]:
    head = "| scenario | imbalance | from noise alone | RefineLB | moves | outcome | rule | |"
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    for each in found:
        case = each.scenario
        name = f"{case.workload} {case.metric}, {case.pods} pods, {case.target} {case.rate}, {case.dist}"
        figures = f"{case.imbalance:.0f} ± {case.spread:.0f} | {RANGE_OF_FOUR * each.sigma:.0f}"
        after = f"{case.refined:.0f} ± {case.refined_spread:.0f} | {case.moves:.1f} | {case.outcome}"
        lines.append(f"| {name} | {figures} | {after} | {'act' if each.acts else '-'} | {'' if each.right else '✗'} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="kse_results.csv")
    parser.add_argument("--window", type=float, default=30.0, help="seconds that one CPU sample covers")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    arguments = parser.parse_args()
    found = verdicts(scenarios(arguments.data), arguments.window)
    if arguments.output == "json":
        rows = [{**asdict(each), "outcome": each.scenario.outcome, "right": each.right} for each in found]
        print(json.dumps(rows, indent=1))
        return
    for metric in ("cpu", "memory"):
        part = [each for each in found if each.scenario.metric == metric]
        fixed = best_fixed_spread([each.scenario for each in part])
        print(f"\n{metric}: {sum(each.right for each in part)} of {len(part)} right; best fixed spread {fixed}")
        print(f"\n{_table(part)}")
    everywhere = best_fixed_spread([each.scenario for each in found])
    print(f"\nall: {sum(each.right for each in found)} of {len(found)} right; best fixed spread {everywhere}")
    print()
    print("\n".join(_lines(found)))


if __name__ == "__main__":
    main()

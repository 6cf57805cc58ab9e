"""GENETIC's figures beside our search and the real kube-scheduler's placement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loadtests.evidence.claims import Claim, Finding, Source, Verdict, Where, judged
from loadtests.experiments.genetic.design import PAPER_TABLE

_FILE = "experiment-genetic/summary.json"
_COMMAND = "rematch lab experiment genetic"
_ENOUGH = 0.8
"""A ratio counts as reproduced from this share of the paper's on."""
_ONE_NUMBER = "its fitness is the deviation of the mean of a node's axes, so one axis may stay uneven"


def _generations(summary: Any) -> Finding | None:
    found = summary["generations"]
    if found is None:
        return None
    plain, checked = found["paper"]
    factor, paper = found["plain"] / max(found["dictionary"], 1), plain / checked
    verdict = Verdict.BETTER if factor > paper else judged(factor > 1)
    text = f"{found['plain']} and {found['dictionary']}"
    return Finding(text, verdict, Where.COMPUTED, "50 pods on 10 nodes; the paper's problem is not stated")


def _ratio(axis: str) -> Callable[[Any], Finding]:
    def find(summary: Any) -> Finding:
        ours, paper = summary["ratios"]["genetic"][axis], summary["paper ratios"][axis]
        found = summary["deviations"]
        verdict = Verdict.BETTER if ours > 1 / _ENOUGH * paper else judged(ours >= _ENOUGH * paper)
        text = f"{found['kube-scheduler'][axis]:.2f} and {found['genetic'][axis]:.2f} points, ratio {ours:.1f}"
        return Finding(text, verdict, Where.CONTROL_PLANE, _ONE_NUMBER if verdict is Verdict.DIFFERS else "")

    return find


def _trace(axis: str) -> Callable[[Any], Finding]:
    def find(summary: Any) -> Finding:
        default, ours = (summary["deviations"][arm][axis] for arm in ("kube-scheduler", "genetic"))
        text = f"deviation of the nodes {default:.1f} by kube-scheduler, {ours:.1f} by `genetic`"
        why = "" if ours < default else _ONE_NUMBER
        return Finding(text, judged(ours < default), Where.COMPUTED, why or "use is simulated, not measured")

    return find


def _weights(axis: str) -> Callable[[Any], Finding | None]:
    def find(summary: Any) -> Finding | None:
        shares = summary.get("node use")
        if shares is None:
            return None
        equal, weighted = (shares[arm][axis] for arm in ("genetic", "genetic, 0.5 on the strong node"))
        moved = weighted[0] > equal[0] and sum(weighted[1:]) < sum(equal[1:])
        text = f"{_text(equal)}; with weight 0.5 {_text(weighted)}"
        return Finding(text, judged(moved), Where.COMPUTED, "the paper states no sizes: only the direction compares")

    return find


def _text(shares: list[float]) -> str:
    return " / ".join(f"{100 * share:.1f}" for share in shares)


def _cost(summary: Any) -> Finding:
    seconds = summary["cpu seconds"]
    text = (
        f"{1000 * seconds['genetic']:.0f} ms of CPU for a plan of 36 pods; `balance` {1000 * seconds['balance']:.0f} ms"
    )
    return Finding(text, Verdict.NOT_COMPARED, Where.COMPUTED, "the paper has no figure")


SOURCE = Source(
    "GENETIC",
    "genetic algorithm with a check dictionary (Hu, Xue 2021)",
    "experiment-genetic.md",
    (
        Claim("Fig. 2", "generations without and with the dictionary: 190 and 110", _FILE, _COMMAND, _generations),
        Claim("Fig. 3", "deviation of the loads 3.42 by the default scheduler, 1.10 by the search, ratio 3.1", _FILE,
              _COMMAND, _ratio("all")),
        Claim("Fig. 4", "network 0.305 and 0.139, ratio 2.2", _FILE, _COMMAND, _ratio("network")),
        Claim("Fig. 5", "disk 0.263 and 0.174, ratio 1.5", _FILE, _COMMAND, _ratio("disk")),
        *(
            Claim(f"Figs 6 to 9: {axis}", "120 seconds of the nodes' use: closer together than by default",
                  _FILE, _COMMAND, _trace(axis))
            for axis in ("cpu", "memory", "disk", "network")
        ),
        *(
            Claim(f"Table 3: {axis}", f"strong / weak / weak {equal}; with weight 0.5 on the strong node {weighted}",
                  _FILE, _COMMAND, _weights(axis))
            for axis, equal, weighted in PAPER_TABLE
        ),
        Claim("Its own complaint", "the search takes too much CPU on the control-plane node", _FILE, _COMMAND, _cost),
    ),
)  # fmt: skip

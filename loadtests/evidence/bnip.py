"""BNIP's figures and tables beside the real kube-scheduler with the extender, and what was measured on real nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Any

from loadtests.evidence.claims import Claim, Finding, Source, Verdict, Where, judged
from loadtests.experiments.bnip.design import DEMANDS, PAPER_MEASURED

_SUMMARY, _STEPS = "experiment-bnip/summary.json", "experiment-bnip/steps.csv"
_HPA = "experiment-hpa/summary.json"
_COMMAND = "rematch lab experiment bnip"
_LIVE = "sudo rematch lab experiment bnip --live"
_DEFAULT, _EXTENDER = "kube-scheduler", "with the extender, weight 1"
_NOMINAL = "by nominal demands; the paper's are measured, in a unit that it does not state"
_OTHER_NODES = "this kube-scheduler does not crowd the largest node; the paper does not say what else ran on its nodes"
_PAPER_VARIANCES = {"paper, default scheduler": 181.4, "paper, BNIP": 14.9}
_NEAR = 0.1
_FACTOR = 2.0
"""Ratios of variances agree when they are no more than this factor apart."""


def _default(summary: Any) -> Finding | None:
    return _variance(summary, _DEFAULT, "paper, default scheduler", _OTHER_NODES)


def _with_extender(summary: Any) -> Finding | None:
    return _variance(summary, _EXTENDER, "paper, BNIP", "the paper's placement is not what its formula gives; ours is")


def _variance(summary: Any, arm: str, reference: str, why: str) -> Finding | None:
    found = summary["arms"].get(arm)
    if found is None:
        return None
    ours, paper = found["mean variance"], summary["reference"][reference]["variance"]
    near = abs(ours - paper) <= _NEAR * paper
    better = arm == _EXTENDER and ours < paper
    verdict = Verdict.BETTER if better and not near else judged(near)
    return Finding(f"{ours:.1f} %² in {found['runs']} runs", verdict, Where.CONTROL_PLANE, "" if near else why)


def _after_each(column: str) -> Callable[[Any], Finding | None]:
    """Means over the nine deployments."""

    def find(rows: Any) -> Finding | None:
        found = {
            arm: [float(row[column]) for row in rows if row["arm"] == arm] for arm in (_DEFAULT, _EXTENDER)
        }  # fmt: skip
        if not all(found.values()):
            return None
        default, ours = (fmean(values) for values in found.values())
        text = f"over the {len(DEMANDS)} steps {default:.1f} by kube-scheduler, {ours:.1f} with the extender"
        return Finding(text, judged(ours < default), Where.CONTROL_PLANE, _NOMINAL)

    return find


def _means(rows: Any) -> Finding | None:
    last = list(DEMANDS)[-1]
    found = {
        arm: [float(row["mean_percent"]) for row in rows if row["arm"] == arm and row["pod"] == last]
        for arm in (_DEFAULT, _EXTENDER)
    }
    if not all(found.values()):
        return None
    default, ours = (fmean(values) for values in found.values())
    return Finding(f"{default:.1f} % and {ours:.1f} %", judged(ours < default), Where.CONTROL_PLANE, _NOMINAL)


def _variances(summary: Any) -> Finding | None:
    arms = summary["arms"]
    if not {_DEFAULT, _EXTENDER} <= set(arms):
        return None
    default, ours = (arms[arm]["mean variance"] for arm in (_DEFAULT, _EXTENDER))
    ratio, paper = default / ours, PAPER_MEASURED["default"][1] / PAPER_MEASURED["BNIP"][1]
    text = f"{default:.1f} and {ours:.1f} %², ratio {ratio:.1f}"
    return Finding(text, judged(paper / _FACTOR <= ratio <= paper * _FACTOR), Where.CONTROL_PLANE, _NOMINAL)


def _balance(summary: Any) -> Finding:
    found, best = (
        summary["reference"][name]["variance"]
        for name in ("planner balance, from the paper's default", "best of all 3^9")
    )
    text = f"{found:.2f} %² by `balance`, which is the best of all 3^9 placements: {best:.2f}"
    return Finding(text, Verdict.BETTER if found <= best else Verdict.DIFFERS, Where.COMPUTED)


def _hpa(summary: Any) -> Finding | None:
    arms = summary["arms"]
    groups = {arm: list(arms.get(arm, {}).values()) for arm in ("metrics-api", "prometheus-fed")}
    if not all(groups.values()):
        return None
    most, enough = (
        {arm: fmean(value for group in found for value in group[name]) for arm, found in groups.items()}
        for name in ("maximum", "enoughAtSecond")
    )
    text = "; ".join(f"{arm}: {most[arm]:.1f} replicas at most, enough after {enough[arm]:.1f} s" for arm in groups)
    sooner = enough["prometheus-fed"] < enough["metrics-api"]
    return Finding(text, judged(sooner), Where.REAL_NODES, "means of the bursts; loads and replicas are scaled")


def _update(arm: str) -> Callable[[Any], Finding | None]:
    def find(summary: Any) -> Finding | None:
        updates = summary.get("live", {}).get("updates", {})
        found = updates.get("arms", {}).get(arm)
        if found is None:
            return None
        lost = found["lostPercent"]
        text = f"{found['lost']} of {found['requests']} lost ({lost:.3f} %) at {'; '.join(found['loads'])}"
        return Finding(text, _update_verdict(arm, found), Where.REAL_NODES, updates["why"])

    return find


def _update_verdict(arm: str, found: Mapping[str, Any]) -> Verdict:
    if arm == "plain rolling update":
        return judged(found["lost"] > 0)
    if found["lost"]:
        return Verdict.DIFFERS
    return Verdict.BETTER if "move" in arm else Verdict.REPRODUCED


def _concurrency(value: str, paper: float) -> Callable[[Any], Finding | None]:
    def find(summary: Any) -> Finding | None:
        measured = summary.get("live", {}).get("concurrency", {})
        found = measured.get(value)
        if found is None:
            return None
        if found["high"] is None:
            text = f"{found['mean']:+.1f} % in one repeat"
            return Finding(text, Verdict.NOT_COMPARED, Where.REAL_NODES, f"{measured['why']}; too few for an interval")
        verdict = judged(found["high"] < 0)
        if verdict is Verdict.REPRODUCED and found["mean"] < paper:
            verdict = Verdict.BETTER
        text = f"{found['mean']:+.1f} % (95 %: {found['low']:+.1f} .. {found['high']:+.1f})"
        return Finding(text, verdict, Where.REAL_NODES, measured["why"])

    return find


SOURCE = Source(
    "BNIP",
    "balanced network IO, Prometheus, zero downtime (Mondal, Zheng, Cheng 2024)",
    "experiment-bnip.md",
    (
        Claim("Figs 12, 13 (HPA)", "at most 24 replicas when fed by Prometheus, 21 by default, and sooner", _HPA,
              "sudo rematch lab experiment hpa", _hpa),
        Claim("Fig. 14", "mean use of the links after each deployment: lower with BNIP", _STEPS, _COMMAND,
              _after_each("mean_percent")),
        Claim("Fig. 15", "variance of the use after each deployment: lower with BNIP", _STEPS, _COMMAND,
              _after_each("variance_percent2")),
        Claim("Table 6: default", "the default placement, 181.4 %² by nominal demands", _SUMMARY, _COMMAND, _default),
        Claim("Table 6: BNIP", "its own placement, 14.9 %² by nominal demands", _SUMMARY, _COMMAND, _with_extender),
        Claim("Table 7: mean", "12.3 and 11.3 %", _STEPS, _COMMAND, _means),
        Claim("Table 7: variance", "4.3 and 0.8, ratio 5.4", _SUMMARY, _COMMAND, _variances),
        Claim("`balance` on the nine pods", "not in the paper", _SUMMARY, _COMMAND, _balance),
        Claim("Tables 8, 9: default", "a rolling update under load loses 0.17 % of the requests", _SUMMARY, _LIVE,
              _update("plain rolling update")),
        Claim("Tables 8, 9: its ingredients", "0 % with readiness probes, lifecycle hooks and disruption budgets",
              _SUMMARY, _LIVE, _update("rolling update with its ingredients")),
        Claim("Tables 8, 9: a move instead", "not in the paper; our surge, without its ingredients", _SUMMARY, _LIVE,
              _update("our move, plain pods")),
        Claim("Figs 16 to 19: request time", "-7.6 %, 100 to 10,000 concurrent", _SUMMARY, _LIVE,
              _concurrency("requestTime", -7.6)),
        Claim("Figs 16 to 19: failures", "-32.4 % above 2,000 concurrent", _SUMMARY, _LIVE,
              _concurrency("failures", -32.4)),
        Claim("etcd's disks", "it tunes them", ruled_out=True,
              missing="the cluster operator's: a controller has no hold on the control plane's disks"),
        Claim("Velero", "it backs the cluster up", ruled_out=True,
              missing="another product; our own state has `rematch backup`"),
        Claim("Traefik", "it swaps the ingress", ruled_out=True,
              missing="another product; moves work at the level of Services, whatever the ingress"),
    ),
)  # fmt: skip

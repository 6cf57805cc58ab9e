"""What kube-scheduler is told about the nodes of a pod."""

from __future__ import annotations

from typing import Any

from predictors.peaks import SigmaOrPercentile
from reactor.cluster.hints import Hint
from reactor.cluster.kinds import Kind
from reactor.cluster.records import Owner
from reactor.extender.answers import Judgement
from reactor.extender.messages import Question
from reactor.extender.state import ExtenderState
from reactor.signals.measurements import NodeRateSample
from reactor.signals.usage import UsageHistory
from tests.support.clock import NOW, VirtualClock
from tests.support.cluster import make_node, make_pending

WIDTHS = {"node1": "50M", "node2": "75M", "node3": "125M"}
OWNER = Owner("ReplicaSet", "web-1a2b", "owner-1")


class Bench:
    """BNIP's three nodes, idle and measured."""

    def __init__(self, **hints: Hint) -> None:
        self.usage = UsageHistory(60.0, 900.0, SigmaOrPercentile())
        self.clock = VirtualClock()
        self.state = ExtenderState(self.usage, lambda: hints, self.clock)
        for name, width in WIDTHS.items():
            labels = {"kubernetes.io/hostname": f"{name}.example"}
            node = make_node(name, annotations={"rematch.io/bandwidth-bps": width}, labels=labels)
            self.usage.observe_node(name)
            self.state.changed(Kind.NODES, None, node)
        self.usage.record_network([], [NodeRateSample(name, 0.0, NOW) for name in WIDTHS], [], NOW)
        self.state.network.measured(NOW)

    def ask(self, name: str = "web-1", mbit: int | None = 5, **fields: Any) -> Question:
        annotations = {} if mbit is None else {"rematch.io/network-bps": f"{mbit}M"}
        return Question(make_pending(name, annotations=annotations, **fields), list(WIDTHS))

    def scores(self, question: Question) -> tuple[str, dict[str, int]]:
        found = self.state.answers.prioritize(question)
        return found.judgement, {each.host: each.score for each in found.hosts}


def test_the_nine_pods_of_the_paper_get_what_the_formula_says() -> None:
    """The replay of the formula on idle nodes; see tests/matching/planners/test_network_planner.py."""
    bench, placed = Bench(), []
    for number, mbit in enumerate([2, 2, 2, 5, 5, 5, 10, 10, 10], start=1):
        question = bench.ask(f"pod-{number}", mbit, owner=None)
        _, found = bench.scores(question)
        best = max(found, key=lambda name: (found[name], name))
        placed.append(best)
        assert [score for score in found.values() if score == 10] == [10], "only the best node has 10"
        bound = make_pending(f"pod-{number}", annotations=question.pod.annotations, owner=None, node=best)
        bench.state.changed(Kind.PODS, None, bound)
    assert [name.removeprefix("node") for name in placed] == list("321323312")


def test_without_a_demand_the_extender_has_no_say() -> None:
    bench = Bench()
    assert bench.scores(bench.ask(mbit=None)) == (Judgement.UNKNOWN, dict.fromkeys(WIDTHS, 0))
    bench.clock.set(NOW + 61)
    assert bench.scores(bench.ask())[0] == Judgement.UNKNOWN, "all measurements have expired"


def test_nodes_that_cannot_be_judged_score_nothing() -> None:
    bench = Bench()
    question = bench.ask()
    question.nodes.append("stranger")
    judgement, found = bench.scores(question)
    assert judgement == Judgement.SCORED
    assert (found["node3"], found["stranger"]) == (10, 0)
    assert bench.scores(Question(question.pod, [])) == (Judgement.UNKNOWN, {})


def test_a_replacement_scores_highest_on_its_planned_node() -> None:
    bench = Bench(**{"owner-1": Hint("m1", "node1.example", avoid="node3.example")})
    planned = (Judgement.PLANNED, {"node1": 10, "node2": 1, "node3": 0})
    assert bench.scores(bench.ask(owner=OWNER)) == planned
    assert bench.scores(bench.ask(owner=OWNER, mbit=None)) == planned, "hints need no measurements"
    assert bench.scores(bench.ask())[0] == Judgement.SCORED, "the pod of another owner"
    assert bench.state.answers.filter(bench.ask(owner=OWNER)).node_names == list(WIDTHS), "soft first"


def test_a_hint_for_one_pod_of_a_stateful_set_is_for_that_one() -> None:
    bench = Bench(**{"owner-1": Hint("m1", "node1.example", pod="db-1")})
    assert bench.scores(bench.ask("db-1", owner=OWNER))[0] == Judgement.PLANNED
    assert bench.scores(bench.ask("db-2", owner=OWNER))[0] == Judgement.SCORED


def test_the_second_try_of_a_move_is_hard_and_strands_nobody() -> None:
    bench = Bench(**{"owner-1": Hint("m1", "node2.example", hard=True)})
    found = bench.state.answers.filter(bench.ask(owner=OWNER))
    assert found.node_names == ["node2"]
    assert set(found.failed_nodes) == {"node1", "node3"}
    others = Question(bench.ask(owner=OWNER).pod, ["node1", "node3"])
    assert bench.state.answers.filter(others).node_names == ["node1", "node3"]


def test_a_hint_for_a_node_that_is_gone_is_no_hint() -> None:
    bench = Bench(**{"owner-1": Hint("m1", "node1.example")})
    node = make_node("node1", labels={"kubernetes.io/hostname": "node1.example"})
    bench.state.changed(Kind.NODES, node, None)
    assert bench.scores(bench.ask(owner=OWNER))[0] == Judgement.SCORED

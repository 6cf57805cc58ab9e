"""kube-scheduler's meaning of the rules, in tables; the planner's and the certificate's readings must agree."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from matching.constraints import taints
from matching.constraints.node_rules import VETOES, NodeRules, node_rules
from matching.model.arrays import arrays_of
from matching.model.ledger import Ledger
from matching.model.pod_columns import pod_columns
from matching.plan import Plan
from matching.problem import Node, Pod, Problem, ProblemError, Requirement, Rules, Taint, Term, Toleration
from matching.verify.node_rules import may_come, may_stay

Planning = Callable[[Problem], Plan]

DEDICATED = Taint("dedicated", "NoSchedule", "db")


def judged(pods: list[Pod], nodes: list[Node]) -> NodeRules:
    columns = pod_columns(pods, ("cpu", "memory"))
    return node_rules(columns.rule_class, columns.all_rules, columns.pods, nodes)


def admits(rules: Rules, node: Node) -> bool:
    verdict = not next((reason for veto in VETOES if (reason := veto(rules, node))), "")
    assert may_come(rules, node) == verdict
    return verdict


def tainted(*found: Taint, unschedulable: bool = False) -> Node:
    return Node("n", (1.0,), taints=found, unschedulable=unschedulable)


@pytest.mark.parametrize(
    ("taint", "toleration", "expected"),
    [
        (DEDICATED, None, False),
        (Taint("dedicated", "NoExecute", "db"), None, False),
        (Taint("dedicated", "PreferNoSchedule", "db"), None, True),
        (DEDICATED, Toleration("dedicated", "Equal", "db", "NoSchedule"), True),
        (DEDICATED, Toleration("dedicated", "", "db"), True),
        (DEDICATED, Toleration("dedicated", "Equal", "web"), False),
        (DEDICATED, Toleration("dedicated", "Exists"), True),
        (DEDICATED, Toleration("dedicated", "Exists", effect="NoExecute"), False),
        (DEDICATED, Toleration("other", "Exists"), False),
        (DEDICATED, Toleration(operator="Exists"), True),
        (DEDICATED, Toleration(operator="Exists", effect="NoExecute"), False),
        (DEDICATED, Toleration("dedicated", "Bogus", "db"), False),
    ],
)
def test_taints(taint: Taint, toleration: Toleration | None, expected: bool) -> None:
    rules = Rules(tolerations=(toleration,) if toleration else ())
    assert admits(rules, tainted(taint)) is expected


def test_every_hard_taint_needs_a_toleration() -> None:
    rules = Rules((Toleration("a", "Exists"),))
    assert not admits(rules, tainted(Taint("a", "NoSchedule"), Taint("b", "NoSchedule")))
    assert taints.veto(rules, tainted(Taint("b", "NoSchedule", "x"))) == "taint b=x:NoSchedule is not tolerated"


def test_cordoned_is_a_taint_that_can_be_tolerated() -> None:
    assert not admits(Rules(), tainted(unschedulable=True))
    assert admits(Rules((Toleration("node.kubernetes.io/unschedulable", "Exists"),)), tainted(unschedulable=True))


@pytest.mark.parametrize(("effect", "stays"), [("NoSchedule", True), ("NoExecute", False), ("PreferNoSchedule", True)])
def test_only_no_execute_drives_out_what_runs(effect: str, stays: bool) -> None:
    node = tainted(Taint("k", effect))
    assert (taints.eviction_reason(Rules(), node) == "") is stays
    assert may_stay(Rules(), node) is stays


@pytest.mark.parametrize(
    ("selector", "expected"),
    [((), True), ((("zone", "a"),), True), ((("zone", "b"),), False), ((("zone", "a"), ("disk", "ssd")), False)],
)
def test_node_selector(selector: tuple[tuple[str, str], ...], expected: bool) -> None:
    assert admits(Rules(node_selector=selector), Node("n", (1.0,), labels={"zone": "a"})) is expected


LABELS = {"zone": "a", "cores": "16", "gen": "seven", "empty": ""}


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("zone", "In", ("a", "b"), True),
        ("zone", "In", ("b",), False),
        ("none", "In", ("a",), False),
        ("empty", "In", ("",), True),
        ("zone", "NotIn", ("b",), True),
        ("zone", "NotIn", ("a",), False),
        ("none", "NotIn", ("a",), True),
        ("zone", "Exists", (), True),
        ("none", "Exists", (), False),
        ("zone", "DoesNotExist", (), False),
        ("none", "DoesNotExist", (), True),
        ("cores", "Gt", ("8",), True),
        ("cores", "Gt", ("16",), False),
        ("cores", "Gt", ("-1",), True),
        ("cores", "Lt", ("17",), True),
        ("cores", "Lt", ("16",), False),
        ("gen", "Gt", ("1",), False),
        ("gen", "Lt", ("1",), False),
        ("none", "Gt", ("1",), False),
        ("empty", "Lt", ("1",), False),
        ("cores", "Gt", ("many",), False),
        ("cores", "Lt", ("many",), False),
        ("cores", "Gt", ("",), False),
        ("cores", "Gt", (" 8",), False),
        ("cores", "Gt", ("1_0",), False),
        ("cores", "Gt", ("8.0",), False),
        ("cores", "Gt", ("٨",), False),
        ("cores", "Gt", ("+8",), True),
        ("cores", "Gt", ("-0",), True),
        ("cores", "Lt", ("0" * 5000 + "17",), True),
        ("cores", "Lt", ("9" * 5000,), False),
        ("cores", "Lt", ("9223372036854775807",), True),
        ("cores", "Lt", ("9223372036854775808",), False),
        ("cores", "Gt", ("-9223372036854775808",), True),
        ("cores", "Gt", ("-9223372036854775809",), False),
    ],
)
def test_affinity_operators(key: str, operator: str, values: tuple[str, ...], expected: bool) -> None:
    rules = Rules(node_affinity=(Term((Requirement(key, operator, values),)),))
    assert admits(rules, Node("n", (1.0,), labels=LABELS)) is expected


def _in_zone(*zones: str) -> Requirement:
    return Requirement("zone", "In", zones)


def _named(name: str, operator: str = "In") -> Requirement:
    return Requirement("metadata.name", operator, (name,))


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        (None, True),
        ((), False),
        ((Term(),), False),
        ((Term(), Term((_in_zone("a"),))), True),
        ((Term((_in_zone("b"),)), Term((_in_zone("a"),))), True),
        ((Term((_in_zone("a"), Requirement("none", "Exists"))),), False),
        ((Term(fields=(_named("n"),)),), True),
        ((Term(fields=(_named("m"),)),), False),
        ((Term(fields=(_named("n", "NotIn"),)),), False),
        ((Term((_in_zone("a"),), (_named("m"),)),), False),
    ],
)
def test_affinity_terms(affinity: tuple[Term, ...] | None, expected: bool) -> None:
    assert admits(Rules(node_affinity=affinity), Node("n", (1.0,), labels=LABELS)) is expected


def test_a_node_that_is_not_ready_takes_nothing() -> None:
    assert not admits(Rules((Toleration(operator="Exists"),)), Node("n", (1.0,), ready=False))


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        (Requirement("zone", "Near", ("a",)), "unknown operator 'Near'"),
        (Requirement("zone", "In"), "needs at least one value"),
        (Requirement("zone", "Exists", ("a",)), "takes no values"),
        (Requirement("cores", "Gt"), "exactly one value"),
        (Requirement("cores", "Lt", ("1", "2")), "exactly one value"),
    ],
)
def test_affinity_that_cannot_be_judged_names_the_pod(
    requirement: Requirement, message: str, pod: Callable[..., Pod]
) -> None:
    wrong = pod("web", rules=Rules(node_affinity=(Term((requirement,)),)))
    with pytest.raises(ProblemError, match=f"pod default/web: node affinity.*{message}"):
        judged([wrong], [])


def test_unknown_field_is_an_error(pod: Callable[..., Pod]) -> None:
    wrong = pod("web", rules=Rules(node_affinity=(Term(fields=(Requirement("spec.x", "In", ("a",)),)),)))
    with pytest.raises(ProblemError, match=r"unknown field 'spec\.x'"):
        judged([wrong], [])


def test_alike_pods_and_nodes_are_judged_once(pod: Callable[..., Pod], node: Callable[..., Node]) -> None:
    pods = [pod(f"p{at}", rules=Rules(node_selector=(("zone", "a"),))) for at in range(20)]
    nodes = [node(f"n{at:02}", labels={"zone": "ab"[at % 2], "name": str(at)}) for at in range(30)]
    found = judged(pods, nodes)
    assert len(found.all_rules) == 1
    assert len(found.row(0).reasons) == 2
    assert [node.name for node, ok in zip(nodes, found.admits(7), strict=True) if ok] == [
        f"n{at:02}" for at in range(0, 30, 2)
    ]
    assert found.reason(3, 1) == "node selector zone=a does not match"


def test_requests_fill_a_node_exactly_and_axes_not_asked_for_do_not_reject(
    pod: Callable[..., Pod], node: Callable[..., Node], problem: Callable[..., Problem]
) -> None:
    resident = pod("a", 0.7, 12, node="n")
    fits_exactly, too_big, no_memory = pod("b", 0.3, 0), pod("c", 0.31, 0), pod("d", 0, 1)
    arrays = arrays_of(problem([resident, fits_exactly, too_big, no_memory], [node("n", 1.0, 10)]))
    ledger = Ledger(arrays, arrays.current)
    assert [bool(ledger.fits(at)[0]) for at in (1, 2, 3)] == [True, False, False]


def test_room_by_peak_is_strict(
    pod: Callable[..., Pod], node: Callable[..., Node], problem: Callable[..., Problem]
) -> None:
    arrays = arrays_of(problem([pod("a", 3, 0), pod("b", 2.99, 0)], [node("n", 4)]))
    ledger = Ledger(arrays, arrays.current)
    assert not ledger.fits_peak(0, 0.25)[0]
    assert ledger.fits_peak(1, 0.25)[0]


def test_pod_count(
    pod: Callable[..., Pod], node: Callable[..., Node], problem: Callable[..., Problem], plan: Planning
) -> None:
    found = plan(problem([pod("a", node="n"), pod("b"), pod("c")], [node("n", max_pods=2)]))
    assert [move.pod for move in found.moves] == ["default/b"]
    assert "limit of pods" in found.unplaced[0].reason

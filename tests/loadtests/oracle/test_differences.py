"""Which differences are dangerous, which are cautious, and which are intended."""

from __future__ import annotations

import pytest

from loadtests.oracle.differences import INTENDED, PAIR, Danger, Difference, Facts, intended
from loadtests.oracle.judge import Question, Verdict
from loadtests.oracle.ours import Opinion
from loadtests.same_plans.draw import Json

ASKED = Question("uid-a", "worker-1")
YES, FITS = Opinion(fits=True), Verdict(fits=True)


def refused(plugin: str = "NodeResourcesFit", message: str = "Insufficient cpu") -> Verdict:
    return Verdict(fits=False, plugin=plugin, message=message)


def cluster(*, cordoned: bool = False, ready: bool = True, operator: str = "In") -> Facts:
    selector = {"matchExpressions": [{"key": "team", "operator": operator, "values": ["one"]}]}
    term = {"topologyKey": "zone", "labelSelector": {}, "namespaceSelector": selector}
    spec: Json = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    conditions = [{"type": "Ready", "status": str(ready)}]
    return Facts(
        [
            {"kind": "Pod", "metadata": {"name": "a", "uid": "uid-a"}, "spec": spec, "status": {"resources": {}}},
            {
                "kind": "Node",
                "metadata": {"name": "worker-1", "uid": "uid-worker-1"},
                "spec": {"unschedulable": cordoned},
                "status": {"conditions": conditions},
            },
        ]
    )


def test_yes_to_what_is_refused_is_dangerous_and_no_to_what_fits_is_cautious() -> None:
    assert Difference(PAIR, ASKED, refused(), YES).danger is Danger.DANGEROUS
    assert Difference(PAIR, ASKED, FITS, Opinion(fits=False, reason="taints")).danger is Danger.CAUTIOUS


def test_differences_of_one_kind_have_one_cause_whatever_their_names_and_amounts() -> None:
    first = Difference(PAIR, ASKED, FITS, Opinion(fits=False, reason="requests: lacks 12.5 Mi"))
    second = Difference(PAIR, ASKED, FITS, Opinion(fits=False, reason="requests: lacks 7 Mi"))
    assert first.cause == second.cause


def test_nothing_ordinary_is_intended() -> None:
    assert intended(Difference(PAIR, ASKED, refused(), YES), cluster(cordoned=True, ready=False)) == ""
    assert intended(Difference("stable", ASKED, refused(), YES), cluster()) == ""
    assert intended(Difference(PAIR, ASKED, FITS, Opinion(fits=False, reason="host ports")), cluster()) == ""


@pytest.mark.parametrize(
    ("difference", "facts", "name"),
    [
        (Difference("stable", ASKED, refused(), YES, fits_without_own_nominees=True), cluster(), "own nominee"),
        (Difference(PAIR, ASKED, FITS, Opinion(fits=False, reason="requests: lacks 1 cpu")), cluster(), "resize"),
        (Difference(PAIR, ASKED, FITS, Opinion(fits=False, reason="cordoned")), cluster(cordoned=True), "cordoned"),
        (Difference(PAIR, ASKED, FITS, Opinion(fits=False, reason="not ready")), cluster(ready=False), "not ready"),
        (
            Difference(PAIR, ASKED, refused("InterPodAffinity", "didn't match"), YES),
            cluster(operator="NotIn"),
            "namespaceSelector",
        ),
        (Difference(PAIR, ASKED, FITS, Opinion(fits=False, reason="unsupported volumes")), cluster(), "unsupported"),
        (
            Difference(PAIR, ASKED, FITS, Opinion(fits=False, reason="protected: localData: emptyDir")),
            cluster(),
            "local data",
        ),
    ],
)
def test_an_intended_difference_has_a_name_and_a_reason(difference: Difference, facts: Facts, name: str) -> None:
    assert intended(difference, facts) == name
    assert next(each for each in INTENDED if each.name == name).reason


def test_a_danger_on_a_cordoned_node_is_not_excused() -> None:
    assert intended(Difference(PAIR, ASKED, refused("NodeUnschedulable"), YES), cluster(cordoned=True)) == ""


def test_a_danger_of_another_plugin_is_not_excused_by_a_namespace_selector() -> None:
    assert intended(Difference(PAIR, ASKED, refused(), YES), cluster(operator="NotIn")) == ""

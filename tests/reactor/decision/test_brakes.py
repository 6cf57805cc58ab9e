"""What sets a brake, where it holds, and when it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reactor.cluster.records import Workload
from reactor.cluster.writes import Eviction
from reactor.decision.brakes import CLUSTER, BrakeCause, Brakes
from reactor.decision.effects import Trial, Verdict
from reactor.settings.model import Brake as BrakeSettings
from tests.support.clock import NOW
from tests.support.cluster import make_node, make_pod, make_view
from tests.support.moves import make_move

SETTINGS = BrakeSettings()
QUIET = make_view([], [make_node("n1"), make_node("n2"), make_node("n3")])


def verdicts(namespace: str, count: int, *, helped: bool = False) -> list[Verdict]:
    return [Verdict(Trial(namespace, "web", NOW), "n2", helped, NOW) for _ in range(count)]


def causes(brakes: Brakes) -> list[tuple[str, BrakeCause]]:
    return [(brake.scope, brake.cause) for brake in brakes.held]


def test_one_tenants_broken_pod_brakes_its_namespace_and_not_the_cluster() -> None:
    brakes = Brakes().after(QUIET, [], verdicts("shop", 3), SETTINGS)
    assert causes(brakes) == [("shop", BrakeCause.NO_EFFECT)]
    assert brakes.on("shop", NOW + 1) is not None
    assert brakes.on("bank", NOW + 1) is None


def test_moves_without_effect_in_several_namespaces_brake_the_cluster() -> None:
    missed = [verdict for name in ("a", "b", "c") for verdict in verdicts(name, 3)]
    brakes = Brakes().after(QUIET, [], missed, SETTINGS)
    assert (CLUSTER, BrakeCause.NO_EFFECT) in causes(brakes)
    assert brakes.on("elsewhere", NOW) is not None


def test_moves_that_helped_set_no_brake() -> None:
    assert Brakes().after(QUIET, [], verdicts("shop", 9, helped=True), SETTINGS).held == ()


def test_a_brake_expires_and_its_misses_with_it() -> None:
    brakes = Brakes().after(QUIET, [], verdicts("shop", 3), SETTINGS)
    later = replace(QUIET, at=NOW + SETTINGS.duration)
    assert brakes.on("shop", later.at) is None
    assert brakes.after(later, [], [], SETTINGS).held == ()


def test_the_same_misses_do_not_prolong_a_brake_but_a_further_one_does() -> None:
    brakes = Brakes().after(QUIET, [], verdicts("shop", 3), SETTINGS)
    soon = replace(QUIET, at=NOW + 60)
    assert brakes.after(soon, [], [], SETTINGS).held == brakes.held
    (again,) = brakes.after(soon, [], [replace(verdicts("shop", 1)[0], at=soon.at)], SETTINGS).held
    assert (again.since, again.until) == (NOW, soon.at + SETTINGS.duration)


def test_a_brake_is_not_prolonged_when_the_first_of_many_misses_expire() -> None:
    brakes = Brakes()
    for minute in range(5):
        at = NOW + 60 * minute
        brakes = brakes.after(replace(QUIET, at=at), [], [replace(verdicts("shop", 1)[0], at=at)], SETTINGS)
    end = NOW + 240 + SETTINGS.duration
    assert [brake.until for brake in brakes.held] == [end]
    for minute in range(4):
        brakes = brakes.after(replace(QUIET, at=NOW + SETTINGS.duration + 60 * minute), [], [], SETTINGS)
    assert [brake.until for brake in brakes.held] == [end]


def test_a_late_replacement_brakes_its_namespace_until_it_is_ready_or_gone() -> None:
    late = make_move(make_pod("web-1"), "n2", "late", replacement="uid-3", replacement_key="shop/web-3")
    brakes = Brakes().after(QUIET, [late], [], SETTINGS)
    assert causes(brakes) == [("shop", BrakeCause.LATE)]
    assert "shop/web-3 on n2" in brakes.held[0].text
    assert brakes.after(replace(QUIET, at=NOW + 1), [], [], SETTINGS).held == ()


@pytest.mark.parametrize(("nodes", "down", "braked"), [(3, 1, False), (3, 2, True), (20, 3, False), (20, 4, True)])
def test_many_nodes_that_are_not_ready_brake_the_cluster(nodes: int, down: int, *, braked: bool) -> None:
    view = make_view([], [make_node(f"n{number}", ready=number >= down) for number in range(nodes)])
    assert bool(Brakes().after(view, [], [], SETTINGS).held) is braked


def test_errors_of_the_api_server_brake_the_cluster_and_refusals_by_a_pdb_do_not() -> None:
    def failed(answer: Eviction) -> Brakes:
        moves = [make_move(make_pod(f"web-{n}"), "n2", "failed", answer=answer, ended=NOW) for n in range(5)]
        return Brakes().after_moves(moves).after(QUIET, [], [], SETTINGS)

    assert causes(failed(Eviction.FAILED)) == [(CLUSTER, BrakeCause.API_ERRORS)]
    assert failed(Eviction.PDB).held == ()


def test_a_storm_of_rollouts_brakes_the_cluster() -> None:
    def deployments(rolling: int) -> list[Workload]:
        return [
            Workload(
                "Deployment", f"d{n}", "shop", f"d{n}", "", replicas=2, existing=3 if n < rolling else 2, updated=2
            )
            for n in range(10)
        ]

    assert causes(Brakes().after(make_view([], [], workloads=deployments(5)), [], [], SETTINGS)) == [
        (CLUSTER, BrakeCause.ROLLOUTS)
    ]
    assert Brakes().after(make_view([], [], workloads=deployments(4)), [], [], SETTINGS).held == ()

"""Moves per 10 minutes and per day, for the cluster, a namespace and a workload."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reactor.decision.limits import RecentMoves, StartedMove
from reactor.settings.model import ClusterLimits, Limits, NamespaceLimits, WorkloadLimits

LIMITS = Limits(
    cluster=ClusterLimits(per_10_minutes=6, per_day=12),
    namespace=NamespaceLimits(per_10_minutes=4, per_day=8),
    workload=WorkloadLimits(per_10_minutes=2, per_day=4),
)


def moves(*times: float, namespace: str = "shop", workload: str = "web") -> list[StartedMove]:
    return [StartedMove(f"{workload}-{at}", at, namespace, workload) for at in times]


def test_a_workload_waits_until_its_oldest_move_is_ten_minutes_old() -> None:
    recent = RecentMoves().after(moves(100.0, 200.0))
    found = recent.exceeds("shop", "web", 300.0, LIMITS)
    assert found is not None
    assert found.until == 700.0
    assert found.text == "2 moves of web started in the last 10 minutes, and 2 are allowed"
    assert recent.exceeds("shop", "db", 300.0, LIMITS) is None
    assert recent.exceeds("shop", "web", 700.0, LIMITS) is None


def test_the_days_limit_holds_when_the_ten_minutes_do_not() -> None:
    recent = RecentMoves().after(moves(0.0, 1000.0, 2000.0, 3000.0))
    found = recent.exceeds("shop", "web", 5000.0, LIMITS)
    assert found is not None
    assert "in the last day" in found.text
    assert found.until == 86_400.0


def test_one_namespace_does_not_use_up_the_cluster() -> None:
    started = [move for name in "abcd" for move in moves(10.0, workload=name)]
    recent = RecentMoves().after(started)
    assert recent.exceeds("shop", "e", 20.0, LIMITS) is not None
    assert recent.exceeds("bank", "e", 20.0, LIMITS) is None
    recent = recent.after(moves(11.0, 12.0, namespace="bank", workload="f"))
    found = recent.exceeds("other", "g", 20.0, LIMITS)
    assert found is not None
    assert "the cluster" in found.text


@given(st.lists(st.tuples(st.floats(0, 200_000), st.sampled_from("ab"), st.sampled_from("xyz")), max_size=60))
def test_no_span_of_time_ever_has_more_moves_than_allowed(asked: list[tuple[float, str, str]]) -> None:
    recent, made = RecentMoves(), list[StartedMove]()
    for at, namespace, workload in sorted(asked):
        found = recent.exceeds(namespace, workload, at, LIMITS)
        if found is None:
            made.append(StartedMove(str(len(made)), at, namespace, workload))
            recent = recent.after(made[-1:])
        else:
            assert found.until > at
    for move in made:
        for span, most in ((600.0, LIMITS.cluster.per_10_minutes), (86_400.0, LIMITS.cluster.per_day)):
            assert sum(0 <= other.at - move.at < span for other in made) <= most
        of_workload = [other for other in made if other.workload == move.workload]
        assert sum(0 <= other.at - move.at < 600.0 for other in of_workload) <= LIMITS.workload.per_10_minutes


workloads = st.sampled_from(["shop/web", "shop/db", "bank/web"])


@given(st.lists(st.tuples(st.floats(0, 200_000), workloads), max_size=30), st.floats(0, 300_000))
def test_whoever_exceeds_its_own_limit_has_moved_often(asked: list[tuple[float, str]], now: float) -> None:
    roomy = Limits(
        cluster=ClusterLimits(per_10_minutes=1000, per_day=1000), namespace=LIMITS.namespace, workload=LIMITS.workload
    )
    started = [StartedMove(str(n), at, name.split("/")[0], name) for n, (at, name) in enumerate(asked)]
    recent = RecentMoves().after(started)
    often = recent.often_moved(roomy)

    for namespace, workload in {(move.namespace, move.workload) for move in started}:
        if recent.exceeds(namespace, workload, now, roomy) is not None:
            assert namespace in often.namespaces or often.workloads.get(workload) == namespace

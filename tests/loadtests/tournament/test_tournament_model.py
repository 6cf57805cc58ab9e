from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadtests.tournament.queues import Outcome, Pods, fair_shares, outcome, serve
from loadtests.workloads.cpu import Demand
from loadtests.workloads.cpu import fair_shares as exact_shares

amounts = st.floats(0.001, 10.0)
pods_of_a_node = st.lists(st.tuples(amounts, amounts), min_size=1, max_size=8)


def shares_of(nodes: list[list[tuple[float, float]]], cores: list[float]) -> list[list[float]]:
    flat = [(index, *pod) for index, node in enumerate(nodes) for pod in node]
    share = np.zeros(len(flat))
    fair_shares(
        np.ones(len(flat), dtype=np.bool_),
        np.array([each[0] for each in flat], dtype=np.int64),
        np.array([each[2] for each in flat]),
        np.array([each[1] for each in flat]),
        np.array(cores),
        share,
    )
    return [[float(share[i]) for i, each in enumerate(flat) if each[0] == index] for index in range(len(nodes))]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(pods_of_a_node, amounts), min_size=1, max_size=4))
def test_shares_are_those_of_the_exact_model_of_one_node(drawn: list[tuple[list[tuple[float, float]], float]]) -> None:
    nodes, cores = [pods for pods, _ in drawn], [size for _, size in drawn]
    for pods, size, shares in zip(nodes, cores, shares_of(nodes, cores), strict=True):
        assert shares == pytest.approx(exact_shares(size, [Demand(weight, wanted) for weight, wanted in pods]))


def one_pod(*, rate: float, work: float, queue: list[float] | None = None, limit: float = np.inf) -> Pods:
    return Pods(
        listens=np.ones(1, dtype=np.bool_),
        node=np.zeros(1, dtype=np.int64),
        weight=np.ones(1),
        limit=np.array([limit]),
        work=np.array([work]),
        workers=np.array([8.0]),
        backlog=np.array([32.0]),
        idle=np.zeros(1),
        rate=np.array([rate]),
        queue=np.array([queue or [0.0] * 5]),
    )


def after(pods: Pods, cores: float, steps: int = 1) -> Outcome:
    """The last step; `used` and `throttled` are sums over all."""
    into = outcome(1)
    for _ in range(steps):
        serve(pods, np.ones(1), np.array([cores]), 0.5, into)
    return into


@settings(max_examples=80, deadline=None)
@given(
    st.floats(0.0, 500.0),
    st.floats(0.0005, 0.2),
    st.lists(st.floats(0.0, 8.0), min_size=5, max_size=5),
    st.floats(0.05, 4.0),
)
def test_no_request_is_lost_or_made(rate: float, work: float, queue: list[float], cores: float) -> None:
    """What came or was there is answered, has failed or is still there. A request that has timed out in a worker was
    counted as failed when it did."""
    pods = one_pod(rate=rate, work=work, queue=queue)
    seen = after(pods, cores)
    answered, failed = float(seen.answered[0]), float(seen.failed[0])
    waiting_before, waiting_after = sum(queue[1:]), float(pods.queue[0, 1:].sum())
    assert waiting_before + rate * 0.5 == pytest.approx(answered + failed + waiting_after, abs=1e-4)
    assert float(seen.used[0]) <= cores * 0.5 + 1e-9
    assert pods.queue.min() >= 0.0


def test_with_room_every_request_is_answered_at_once() -> None:
    seen = after(one_pod(rate=10.0, work=0.02), cores=1.0, steps=20)
    assert float(seen.answered[0]) == pytest.approx(5.0)
    assert float(seen.wait[0]) == 0.0
    assert float(seen.used[0]) == pytest.approx(20 * 0.5 * 0.2)


def test_an_overloaded_pod_answers_hardly_anything_and_its_probes_wait_too_long() -> None:
    """Clients have given up before a worker is done, as in the model of single requests."""
    seen = after(one_pod(rate=4.0, work=0.035), cores=0.08, steps=60)
    assert float(seen.answered[0]) < 0.2
    assert float(seen.wait[0]) > 1.0


def test_a_limit_throttles_on_an_idle_node() -> None:
    seen = after(one_pod(rate=20.0, work=0.02, limit=0.2), cores=4.0, steps=4)
    assert float(seen.throttled[0]) == pytest.approx(2.0)
    assert float(seen.used[0]) == pytest.approx(0.4)


def test_more_than_workers_and_backlog_is_refused() -> None:
    seen = after(one_pod(rate=400.0, work=0.02), cores=1.0, steps=4)
    assert float(seen.refused[0]) > 0.8

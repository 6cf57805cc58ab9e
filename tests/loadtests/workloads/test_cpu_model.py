from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.workloads.cpu import Demand, NodeCpu, fair_shares

demands = st.lists(st.builds(Demand, st.floats(0.01, 10), st.floats(0.01, 20)), min_size=1, max_size=8)
jobs = st.lists(
    st.tuples(st.sampled_from("abc"), st.floats(0.001, 3), st.floats(0, 2)),
    min_size=1,
    max_size=25,
)


def node(cores: float = 1, **pods: float) -> NodeCpu:
    cpu = NodeCpu(cores)
    for name, weight in (pods or {"a": 1.0}).items():
        cpu.add_pod(name, weight)
    return cpu


def submit(cpu: NodeCpu, pod: str, work: float, now: float = 0.0) -> int:
    job, done = cpu.submit(pod, work, now)
    assert done == []
    return job


@given(st.floats(0.1, 32), demands)
def test_shares_use_all_that_can_be_used_and_nobody_gets_more_than_it_can(cores: float, wanted: list[Demand]) -> None:
    shares = fair_shares(cores, wanted)
    assert sum(shares) == pytest.approx(min(cores, sum(demand.cap for demand in wanted)))
    assert all(share <= demand.cap + 1e-9 for share, demand in zip(shares, wanted, strict=True))


@given(st.floats(0.1, 32), demands)
def test_shares_are_max_min_fair(cores: float, wanted: list[Demand]) -> None:
    shares = fair_shares(cores, wanted)
    levels = [share / demand.weight for share, demand in zip(shares, wanted, strict=True)]
    for share, demand, level in zip(shares, wanted, levels, strict=True):
        if share < demand.cap - 1e-9:
            assert level >= max(levels) - 1e-6


@given(jobs, st.floats(0.5, 8))
def test_work_is_neither_lost_nor_made(arrivals: list[tuple[str, float, float]], cores: float) -> None:
    cpu = node(cores, a=1, b=2, c=0.5)
    now, finished = 0.0, []
    for pod, work, gap in arrivals:
        now += gap
        finished += cpu.submit(pod, work, now)[1]
    finished += cpu.advance(now + 1000)
    assert sorted(completion.job for completion in finished) == list(range(1, len(arrivals) + 1))
    assert cpu.used == pytest.approx(sum(work for _, work, _ in arrivals))
    assert sum(cpu.usage(pod).seconds for pod in "abc") == pytest.approx(cpu.used)
    assert cpu.next_event() is None


@given(jobs, st.lists(st.floats(0, 5), max_size=30))
def test_how_often_one_looks_changes_nothing(arrivals: list[tuple[str, float, float]], looks: list[float]) -> None:
    once, often = node(2, a=1, b=2, c=0.5), node(2, a=1, b=2, c=0.5)
    for pod, work, _ in arrivals:
        submit(once, pod, work)
        submit(often, pod, work)
    expected = {completion.job: completion.at for completion in once.advance(1000)}
    seen = [completion for look in sorted(looks) for completion in often.advance(look)] + often.advance(1000)
    assert {completion.job: completion.at for completion in seen} == pytest.approx(expected)


def test_two_jobs_of_one_pod_share_a_core() -> None:
    cpu = node()
    short, long = submit(cpu, "a", 1), submit(cpu, "a", 2)
    assert cpu.next_event() == pytest.approx(2)
    done = cpu.advance(10)
    assert [completion.job for completion in done] == [short, long]
    assert [completion.at for completion in done] == pytest.approx([2, 3])


def test_a_late_arrival_slows_down_what_is_left_of_the_first() -> None:
    cpu = node()
    first = submit(cpu, "a", 2)
    second = submit(cpu, "a", 0.5, now=1)
    done = {completion.job: completion.at for completion in cpu.advance(10)}
    assert done == pytest.approx({second: 2, first: 2.5})


def test_a_job_is_one_thread() -> None:
    cpu = node(8)
    submit(cpu, "a", 3)
    assert cpu.advance(10)[0].at == pytest.approx(3)


def test_pods_share_by_weight_and_their_jobs_share_the_pod() -> None:
    cpu = node(3, a=2, b=1)
    for pod in "aaabbb":
        submit(cpu, pod, 10)
    assert (cpu.rate("a"), cpu.rate("b")) == pytest.approx((2, 1))


def test_what_a_pod_cannot_use_goes_to_the_others() -> None:
    cpu = node(4, a=9, b=1)
    for pod in "abbbbb":
        submit(cpu, pod, 10)
    assert (cpu.rate("a"), cpu.rate("b")) == pytest.approx((1, 3))


def test_a_limit_holds_on_an_idle_node_and_is_counted_as_throttling() -> None:
    cpu = NodeCpu(4)
    cpu.add_pod("a", 1, limit=0.5)
    submit(cpu, "a", 1)
    assert cpu.advance(10)[0].at == pytest.approx(2)
    assert cpu.usage("a") == pytest.approx((1, 2))


def test_a_crowded_node_is_no_throttling() -> None:
    cpu = NodeCpu(1)
    cpu.add_pod("a", 1, limit=0.8)
    cpu.add_pod("b", 1)
    submit(cpu, "a", 1)
    submit(cpu, "b", 1)
    cpu.advance(1)
    assert cpu.usage("a") == pytest.approx((0.5, 0))


def test_a_cancelled_job_gives_its_share_back() -> None:
    cpu = node()
    unwanted, wanted = submit(cpu, "a", 5), submit(cpu, "a", 1)
    assert cpu.cancel(unwanted, 1) == []
    assert {done.job: done.at for done in cpu.advance(10)} == pytest.approx({wanted: 1.5})
    assert cpu.cancel(wanted, 11) == []


def test_a_removed_pod_takes_its_jobs_with_it() -> None:
    cpu = node(1, a=1, b=1)
    submit(cpu, "a", 5)
    other = submit(cpu, "b", 1)
    cpu.remove_pod("a", 1)
    assert {done.job: done.at for done in cpu.advance(10)} == pytest.approx({other: 1.5})
    assert cpu.used == pytest.approx(1.5)


def test_overload_grows_the_queue_by_what_is_missing() -> None:
    """Two cores, a pod with work for three: after ten seconds ten CPU-seconds are left."""
    cpu = node(2)
    for step in range(100):
        cpu.submit("a", 0.3, step / 10)
    cpu.advance(10)
    assert cpu.used == pytest.approx(20, rel=0.02)


@pytest.mark.parametrize(("cores", "weight", "work"), [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_nonsense_is_refused(cores: float, weight: float, work: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        node(cores, a=weight).submit("a", work, 0)

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from reactor.web.bounds import EXPANDED_CHIPS, SERIES_NODES, SERIES_POINTS, counted, cut, cut_series
from reactor.web.query import OverviewQuery
from reactor.web.view import NodeSeries, NodeView, Overview, PodChip, Series, SettingsView


def chip(number: int, happiness: float | None, managed: bool = True) -> PodChip:
    happy = happiness is None or happiness >= 0.8
    return PodChip(f"u{number}", f"shop/p{number:04d}", happiness, 0.8, happy, managed)


def overview(*nodes: NodeView, pending: tuple[PodChip, ...] = ()) -> Overview:
    settings = SettingsView("d", "file")
    return Overview("t", "act", True, None, "stable", 0.8, 0.0, 0, 0, 0, settings, (), nodes, pending)


def node(name: str, *pods: PodChip) -> NodeView:
    return NodeView(name, True, False, None, None, pods)


def test_totals_count_all_pods_and_skip_unmanaged_ones() -> None:
    view = counted(overview(node("a", chip(1, 0.5), chip(2, 0.2, managed=False)), pending=(chip(3, None),)))
    assert view.totals is not None
    assert (view.totals.pods, view.totals.managed, view.totals.unhappy, view.totals.pending) == (3, 2, 1, 1)
    assert view.totals.lowest_happiness == 0.5


def test_a_cut_card_keeps_unhappy_pods_in_name_order() -> None:
    pods = [chip(number, 0.9) for number in range(50)] + [chip(90, 0.1), chip(70, 0.3)]
    shown = cut(counted(overview(node("a", *pods))), OverviewQuery(chips=4)).nodes[0]
    assert [pod.key for pod in shown.pods] == ["shop/p0000", "shop/p0001", "shop/p0070", "shop/p0090"]
    assert shown.counts is not None
    assert shown.counts.pods == 52


def test_nodes_with_unhappy_pods_come_before_others() -> None:
    view = counted(overview(node("a"), node("b", chip(1, 0.1)), node("c"), node("d", chip(2, 0.1))))
    assert [shown.name for shown in cut(view, OverviewQuery(nodes=2)).nodes] == ["b", "d"]


def test_an_expanded_node_shows_all_but_not_without_bound() -> None:
    view = counted(overview(node("a", *(chip(number, 0.9) for number in range(EXPANDED_CHIPS + 5)))))
    assert len(cut(view, OverviewQuery(chips=3, expand=("a",))).nodes[0].pods) == EXPANDED_CHIPS


def test_the_filter_finds_nodes_by_name_and_by_pod() -> None:
    view = counted(overview(node("a-1", chip(1, 0.9), chip(2, 0.9)), node("b", chip(3, 0.9))))
    assert [len(shown.pods) for shown in cut(view, OverviewQuery(match="a-1")).nodes] == [2]
    found = cut(view, OverviewQuery(match="p0002"))
    assert [pod.key for pod in found.nodes[0].pods] == ["shop/p0002"]
    assert found.totals is not None
    assert (found.totals.matching_nodes, found.totals.nodes) == (1, 2)


@given(
    st.lists(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=12), max_size=8),
    st.integers(1, 6),
    st.integers(1, 6),
)
def test_a_cut_never_exceeds_its_bounds_nor_hides_a_worse_pod(
    groups: list[list[float | None]], nodes: int, chips: int
) -> None:
    cards = [
        node(f"n{i}", *(chip(i * 100 + j, value) for j, value in enumerate(group))) for i, group in enumerate(groups)
    ]
    shown = cut(counted(overview(*cards)), OverviewQuery(nodes=nodes, chips=chips))
    assert len(shown.nodes) == min(nodes, len(cards))
    for card in shown.nodes:
        hidden = [pod for pod in cards[int(card.name[1:])].pods if pod not in card.pods]
        assert len(card.pods) <= chips
        assert all(pod.happy for pod in hidden) or all(not pod.happy for pod in card.pods)


def test_series_keep_the_busiest_nodes() -> None:
    nodes = tuple(NodeSeries(f"n{number:02d}", (0.0, number / 100, None), (0.1,) * 3) for number in range(30))
    series = Series((1.0, 2.0, 3.0), (None,) * 3, (None,) * 3, (None,) * 3, (None,) * 3, nodes)
    shown = cut_series(series)
    assert [line.name for line in shown.nodes] == [f"n{number:02d}" for number in range(30 - SERIES_NODES, 30)]
    assert shown.node_count == 30
    assert cut_series(replace(series, nodes=())).node_count == 0


@given(st.integers(0, 3000), st.floats(0.1, 120.0))
def test_long_series_are_thinned_alike_in_every_column_and_keep_the_newest(count: int, period: float) -> None:
    times = tuple(1e9 + index * period for index in range(count))
    series = Series(times, times, times, times, times, (NodeSeries("n", times, times),))
    shown = cut_series(series)
    columns = (shown.availability, shown.latency_p95, shown.happiness_min, shown.happiness_mean, shown.nodes[0].cpu)
    assert all(column == shown.times for column in columns)
    assert len(shown.times) <= SERIES_POINTS
    assert shown.times[-1:] == times[-1:]
    assert list(shown.times) == sorted(shown.times)

"""Clusters of real load: wrong requests, honest futures, and what the planners do to them (excerpts in tests/data)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from loadtests.benchmarks.real_load import compare, moves_by_inertia, table
from loadtests.benchmarks.real_load_data import FUTURE, SOURCES, Instance, Row, Size, Source, draw, read_series

DATA = Path(__file__).parents[2] / "data" / "load"
SMALL = Size(nodes=5, pods=40)


@pytest.fixture(scope="module", params=SOURCES, ids=lambda source: source.name)
def instance(request: pytest.FixtureRequest) -> Instance:
    source: Source = request.param
    return draw(read_series(DATA, source), SMALL, seed=4)


def test_an_instance_is_what_it_says(instance: Instance) -> None:
    problem = instance.problem
    assert len(problem.pods) == SMALL.pods
    assert len(problem.nodes) == SMALL.nodes
    assert instance.future.shape == (len(problem.axes), SMALL.pods, FUTURE)
    for pod in problem.pods:
        assert all(peak >= usage >= 0 for peak, usage in zip(pod.peak, pod.usage, strict=True))
    wrong = [pod.request[0] / pod.peak[0] for pod in problem.pods if pod.peak[0] > 0]
    assert min(wrong) < 0.7
    assert max(wrong) > 1.0


def test_requests_fit_where_they_were_placed(instance: Instance) -> None:
    asked = {node.name: np.zeros(len(instance.problem.axes)) for node in instance.problem.nodes}
    for pod in instance.problem.pods:
        asked[str(pod.node)] += np.array(pod.request)
    for node in instance.problem.nodes:
        assert (asked[node.name] <= np.array(node.allocatable)).all()


def test_the_same_seed_is_the_same_cluster() -> None:
    series = read_series(DATA, SOURCES[0])
    assert draw(series, SMALL, 1).problem == draw(series, SMALL, 1).problem
    assert draw(series, SMALL, 1).problem != draw(series, SMALL, 2).problem


def test_a_folder_without_long_series_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_series(tmp_path, SOURCES[0])


def test_balance_is_about_as_even_as_anybody_with_fewer_moves_than_greedy(instance: Instance) -> None:
    rows = {row.title: row.figures for row in compare("excerpt", [instance])}
    sharp, sharpest = rows["balance, confidence 0"], rows["balance, confidence 0, outage 0"]
    others = min(figures.after for title, figures in rows.items() if not title.startswith("balance"))
    assert sharp.after <= others + 0.01
    assert sharpest.after <= min(others, sharp.after) + 0.001
    assert rows["balance"].moves <= sharp.moves < rows["greedy"].moves
    assert rows["balance"].after <= rows["balance"].before
    assert "| excerpt | greedy |" in table([Row("excerpt", title, figures) for title, figures in rows.items()])


def test_more_inertia_means_fewer_moves_on_average() -> None:
    instances = [draw(read_series(DATA, source), SMALL, seed) for source in SOURCES for seed in range(3)]
    moves = [moved for _, moved in moves_by_inertia(instances)]
    assert moves[0] > moves[len(moves) // 2] > moves[-1]


def test_an_unchanged_option_reaches_the_problem() -> None:
    series = read_series(DATA, SOURCES[0])
    options = replace(draw(series, SMALL, 1).problem.options, headroom=0.3)
    assert draw(series, SMALL, 1, options).problem.options.headroom == 0.3

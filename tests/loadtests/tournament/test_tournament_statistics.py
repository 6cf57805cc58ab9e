from __future__ import annotations

import random

import pytest

from loadtests.tournament.goals import goals
from loadtests.tournament.main import chosen_policies, parse_seeds
from loadtests.tournament.measures import Judged, Measures, cured_pods, moved_twice
from loadtests.tournament.report import goal_rows
from loadtests.tournament.results import Result
from loadtests.tournament.state import MoveRecord
from loadtests.tournament.statistics import difference, holm
from reactor.errors import InputError


def test_the_interval_of_a_difference_covers_its_mean_and_is_paired() -> None:
    source = random.Random(1)
    ours = [source.uniform(0.5, 1.0) for _ in range(30)]
    rival = [value + 0.01 + source.gauss(0, 0.002) for value in ours]
    found = difference(rival, ours)
    assert found.low < 0.01 < found.high
    assert found.width < 0.003


def test_more_rivals_widen_the_interval_of_the_clearest() -> None:
    source = random.Random(2)
    ours = [0.9] * 30
    rivals = {f"rival {number}": [0.9 + source.gauss(0.001 * number, 0.01) for _ in ours] for number in range(6)}
    alone = difference(rivals["rival 5"], ours)
    together = holm(ours, rivals)
    assert together["rival 5"].width > alone.width
    assert together["rival 5"].mean == alone.mean
    assert min(each.width for each in together.values()) > 0


def test_without_a_common_seed_there_is_no_difference() -> None:
    with pytest.raises(ValueError, match="no seed"):
        difference([], [])


def test_a_second_move_counts_unless_the_load_has_changed() -> None:
    moves = [MoveRecord(1, "app", "a", 100.0), MoveRecord(1, "app", "b", 400.0), MoveRecord(2, "app", "a", 500.0)]
    assert moved_twice(moves, []) == 1
    assert moved_twice(moves, [300.0]) == 0
    assert moved_twice([moves[0], MoveRecord(1, "app", "b", 900.0)], []) == 0


def test_a_pod_is_cured_once_per_trouble() -> None:
    moves = [MoveRecord(1, "app", "a", at) for at in (100.0, 200.0, 2000.0)]
    judged = [Judged(useless=False, harmful=False, cured=frozenset(pods)) for pods in ((1, 2), (2,), (2,))]
    assert cured_pods(moves, judged) == 3


def result(policy: str, seed: int, availability: float, moves: int = 0) -> Result:
    measures = Measures(availability, 0.0, 0.0, moves, 0, 0, 0, moves, None, 0, 0.0, 1.0)
    return Result("full", seed, policy, "", measures)


def test_goals_are_judged_by_the_results() -> None:
    good = {
        "ours": [result("ours", seed, 0.9) for seed in range(10)],
        "left alone": [result("left alone", seed, 0.89) for seed in range(10)],
        "clairvoyant": [result("clairvoyant", seed, 1.0) for seed in range(10)],
    }
    assert all(each.reached for each in goals({"full": good}) if "harmful" not in each.text)
    bad = {**good, "ours": [result("ours", seed, 0.88, moves=1) for seed in range(10)]}
    missed = {each.text for each in goals({"full": bad}) if not each.reached}
    assert "no move" in missed
    assert any("no rival" in text for text in missed)


@pytest.mark.parametrize(("moves", "reached"), [(2, None), (60, True)])
def test_few_moves_are_no_evidence_that_moves_do_no_harm(moves: int, reached: bool | None) -> None:
    judged = goals({"full": {"ours": [result("ours", 1, 0.9, moves)]}})
    (harmless,) = (each for each in judged if "harmful" in each.text)
    assert harmless.reached is reached
    assert ("cannot be judged" in [verdict for _, _, verdict, _ in goal_rows(judged)]) is (reached is None)


def test_seeds_to_choose_by_are_not_the_seeds_that_are_reported() -> None:
    assert not set(parse_seeds("choose")) & set(parse_seeds("report"))
    assert min(len(parse_seeds("choose")), len(parse_seeds("report"))) >= 30
    assert parse_seeds("3-5") == [3, 4, 5]
    for text in ("", "x", "5-3", "1,b"):
        with pytest.raises(InputError, match="--seeds"):
            parse_seeds(text)


def test_an_unknown_policy_is_named_with_those_that_are_known() -> None:
    with pytest.raises(InputError, match="left alone"):
        chosen_policies(["best"])
    assert "ours" in chosen_policies([])

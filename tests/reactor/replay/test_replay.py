from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from matching.failure_curve import FailureCurve
from reactor.decision.decide import Trigger
from reactor.errors import InputError, SettingsError
from reactor.replay import tuning
from reactor.replay.answer import NO_ERROR, Candidate, ModelError, answer, recommended
from reactor.replay.candidates import DEFAULT_GRID, candidates, grid
from reactor.replay.clock import MINUTE
from reactor.replay.fitting import fitted_responses
from reactor.replay.given import Given, given_by
from reactor.replay.recorded import Recorded, read_recorded
from reactor.replay.replaying import Replay, Replayed, recorded_unhappy
from reactor.settings.model import Settings
from reactor.state.calibration import PRIOR
from storage.rows import LoadBinRow
from storage.store import Store
from tests.reactor.replay.recorded_days import BEGIN, DAYS, cluster, filled
from tests.support.cluster import make_settings

NOW = BEGIN + DAYS * 86400 + 60.0
ACTING = make_settings(mode="act", execution={"strategies": ["evict"], "evictSingleReplicas": True})
OBSERVING = ACTING.model_copy(update={"mode": "observe"})


async def read(path: Path) -> Recorded:
    async with await Store.open(path, read_only=True) as store:
        return await read_recorded(store, cluster().nodes, 0.0, NOW)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    path = tmp_path_factory.mktemp("days") / "rematch.db"
    asyncio.run(filled(path))
    return asyncio.run(read(path))


@pytest.fixture(scope="module")
def given(recorded: Recorded) -> Given:
    return given_by(recorded, cluster())


def test_demand_that_nobody_saw_is_imputed_and_flagged(given: Given) -> None:
    noon, night = 13 * 12, 3 * 12
    a = given.workloads.index("shop/ReplicaSet/a")
    assert given.imputed[a, noon]
    assert not given.imputed[a, night]
    assert given.demand[0][a, noon] == pytest.approx(2.4 / 1.05, rel=0.02), "at least what was measured"
    assert any("imputed" in note for note in given.notes)


def test_what_was_not_held_back_is_what_was_wanted(given: Given) -> None:
    """On the full node of noon `a` gets most for its weight: only of `a` it is unknown what it wanted."""
    noon = 13 * 12
    for name, wanted in (("b", 1.0), ("c", 0.8)):
        row = given.workloads.index(f"shop/ReplicaSet/{name}")
        assert given.imputed[row, noon], "the node is above 85 %, and that is said"
        assert given.demand[0][row, noon] == pytest.approx(wanted / 1.05, rel=0.02)


def test_whether_all_pods_of_a_full_node_suffer_is_taken_from_the_record(given: Given) -> None:
    """In this one all of them fail their probes; where only the largest does, the others feel less."""
    assert fitted_responses(given, 1)[0].common == 1.0
    largest = given.workload == given.workloads.index("shop/ReplicaSet/a")
    probes, failures = given.observed
    alone = replace(given, observed=(probes, np.where(largest[:, np.newaxis], failures, 0.0).astype(np.float32)))
    assert fitted_responses(alone, 1)[0].common == 0.0


def test_the_response_is_that_of_the_record(given: Given) -> None:
    response = fitted_responses(given, 1)[0]
    chances = response.probabilities(np.array([0.5, 1.0]), np.zeros(2, np.int64))
    assert chances[0] < 0.001
    assert FailureCurve().probability(1.0) + 0.03 < chances[1] < 0.42, "from the prior towards the recorded 40 %"


def test_a_replay_moves_pods_where_the_settings_act_and_is_repeatable(given: Given) -> None:
    response = fitted_responses(given, 1)[0]
    watched, acted = (Replay(given, response, settings, 1).run() for settings in (OBSERVING, ACTING))
    assert watched.moves.sum() == 0
    assert watched.unhappy.sum() == pytest.approx(recorded_unhappy(given).sum(), rel=0.1)
    assert acted.moves.sum() >= 1
    assert acted.unhappy.sum() < 0.5 * watched.unhappy.sum()
    assert "from n1 to n2" in acted.decided[0].text
    assert Replay(given, response, ACTING, 1).run().decided == acted.decided


@pytest.mark.parametrize(
    ("sections", "wanted"),
    [
        ({}, 1.0),
        ({"decision": {"placementProbability": 0.5, "cooldown": 60}}, 1.3),
        ({"execution": {"limits": {"workload": {"perDay": 1, "per10Minutes": 1}}}}, 1.3),
    ],
    ids=["as recorded", "full nodes", "full nodes and a limit"],
)
def test_minutes_that_are_left_out_change_nothing(
    given: Given, monkeypatch: pytest.MonkeyPatch, sections: dict[str, Any], wanted: float
) -> None:
    """Against a controller that reads everything and decides every minute."""
    response, cycle = fitted_responses(given, 1)[0], Replay._cycle
    cycles: list[Trigger] = []
    crowded = replace(given, demand=(np.float32(wanted) * given.demand[0], given.demand[1]))
    settings = make_settings(mode="act", **sections)
    eleven_of_the_last_day = (24 * (DAYS - 1) + 11) * 12

    def counted(replay: Replay, trigger: Trigger) -> bool:
        cycles.append(trigger)
        return cycle(replay, trigger)

    monkeypatch.setattr(Replay, "_cycle", counted)

    def replayed() -> Replayed:
        cycles.clear()
        return Replay(crowded, response, settings, 1, eleven_of_the_last_day).run()

    found, decided = replayed(), len(cycles)
    for name in ("_at_rest", "_nothing_to_decide"):
        monkeypatch.setattr(Replay, name, lambda _self: False)
    every_minute = replayed()
    assert len(cycles) == 13 * 60 > 3 * decided
    assert found.decided
    assert found.decided == every_minute.decided
    assert found.unhappy.tolist() == every_minute.unhappy.tolist()


def test_failures_belong_to_the_minute_in_which_they_are_counted(given: Given) -> None:
    """Also those of a pod of which nothing was read for hours."""
    replay = Replay(given, fitted_responses(given, 1)[0], ACTING, 1)
    replay.run()
    replay._clock.time = NOW
    counters, state = replay._counters, replay._state
    pod = next(pod for pod in replay._pods if pod is not None)
    replica = replay._by_uid[pod.uid]
    probes, failures = np.full(len(replay._pods), 6.0), np.zeros(len(replay._pods))
    for minute in range(240):
        failures[replica] = 5.0 if minute == 239 else 0.0
        replay._clock.time += MINUTE
        counters.count(probes, failures)
    counters.show()
    found = state.probes.counts(pod.uid, replay._clock.time)
    assert found.failures > 3, "not spread over the hours before"
    assert (found.successes, found.failures) == pytest.approx((counters.good[replica], counters.bad[replica]), rel=0.02)


@pytest.fixture
def few_replays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "LEAST_REPLAYS", 2)
    monkeypatch.setattr(tuning, "MOST_REPLAYS", 2)
    monkeypatch.setattr(tuning, "GATE_REPLAYS", 3)


@pytest.mark.usefixtures("few_replays")
def test_what_is_reproduced_is_answered(recorded: Recorded, given: Given) -> None:
    wanted = [(Candidate("in force", {}), OBSERVING), (Candidate("act", {"mode": "act"}), ACTING)]
    shown: list[tuple[int, int]] = []
    found = tuning.tune(recorded, given, wanted, 1, lambda done, of: shown.append((done, of)))
    assert found.gate.passed, found.gate
    answer = found.answers[1]
    assert answer.more_unhappy.interval.high < 0
    assert answer.supported
    assert answer.first_difference is not None
    assert not answer.first_difference.in_force
    assert found.recommended is answer
    assert [each.on_front for each in found.answers] == [True, True], "fewer moves, or fewer unhappy minutes"
    assert shown[-1] == (7, 7)
    unseen = tuple(replace(each, unseen=0.2) for each in found.answers)
    assert not unseen[1].supported
    assert recommended(found.gate, unseen)[0] is None, "at loads that were never seen nothing is recommended"


def test_a_replay_that_sees_no_difference_is_no_surer_than_the_model() -> None:
    """Days that the model missed by 20 pod-minutes, and 8 replays that found nothing on any of them."""
    same = [Replayed(np.zeros(DAYS), np.full(DAYS, 50.0), 1.0, 0.0, ())] * 8
    error = ModelError(np.array([1.0, 0.0, -1.0]), np.array([20.0, -20.0, 20.0]))
    found = answer(Candidate("other", {"a": 1}), same, same, 5.0, error)
    assert found.more_unhappy.mean == 0
    assert found.more_unhappy.interval.low <= -20
    assert found.more_unhappy.interval.high >= 20
    assert found.cost.interval.low < 0 < found.cost.interval.high
    assert answer(Candidate("in force", {}), same, same, 5.0, NO_ERROR).more_unhappy.interval.width == 0


@pytest.mark.usefixtures("few_replays")
def test_what_is_not_reproduced_recommends_nothing_and_says_why(recorded: Recorded, given: Given) -> None:
    """The record is of a controller that moved nothing, and the settings say that it acted."""
    wanted = [(Candidate("in force", {}), ACTING), (Candidate("observe", {}), OBSERVING)]
    found = tuning.tune(recorded, given, wanted, 1)
    assert not found.gate.passed
    assert found.recommended is None
    assert found.answers == ()
    assert "unhappy pod-minutes: " in found.why


async def test_bad_data_is_said_and_does_not_enter(tmp_path: Path) -> None:
    await filled(tmp_path / "rematch.db", spoiled=True)
    found = await read(tmp_path / "rematch.db")
    text = "; ".join(found.notes)
    assert "1 values of cpu of pods are above what the node has" in text
    assert "1 chunks of usage are of the future" in text
    assert "60 minutes have no measurement at all" in text
    assert found.end == BEGIN + DAYS * 86400
    given = given_by(found, cluster())
    assert given.demand[0].max() < 3
    assert not given.measured[30 * 12]


async def test_the_controller_expects_of_loads_what_it_had_counted(tmp_path: Path) -> None:
    await filled(tmp_path / "rematch.db")
    assert (await read(tmp_path / "rematch.db")).curve == PRIOR
    async with await Store.open(tmp_path / "rematch.db") as store:
        store.add_load_bins(LoadBinRow(19, 1e6, 0.0, 0.97e6, 0.0, NOW))
        assert await store.flush()
    assert (await read(tmp_path / "rematch.db")).curve.probability(0.97) < 0.5 * PRIOR.probability(0.97)


async def test_an_empty_store_is_a_clear_error(tmp_path: Path) -> None:
    await (await Store.open(tmp_path / "rematch.db")).close()
    with pytest.raises(InputError, match="no usage is recorded"):
        await read(tmp_path / "rematch.db")


def test_two_days_are_too_few(recorded: Recorded, given: Given) -> None:
    few = given_by(recorded, cluster(), day=2 * 86400)
    few = replace(few, measured=np.arange(few.steps) < 5)
    with pytest.raises(InputError, match="the history covers 25m, and measurements from 3 days are needed"):
        tuning.tune(recorded, few, [(Candidate("in force", {}), OBSERVING)], 1)


def test_the_default_grid_has_24_settings_of_which_one_is_in_force() -> None:
    found = candidates(Settings.model_validate({"mode": "act"}), DEFAULT_GRID)
    assert len(found) == 24
    assert found[0][0].changes == {}
    assert all(each.changes for each, _ in found[1:])


def test_values_to_try_are_read_and_wrong_ones_named() -> None:
    assert grid(["happiness.threshold=0.8,0.9"]) == {"happiness.threshold": (0.8, 0.9)}
    with pytest.raises(InputError, match="names no values"):
        grid(["happiness.threshold"])
    with pytest.raises(SettingsError, match=r"happiness\.treshold"):
        candidates(Settings(), grid(["happiness.treshold=0.8"]))

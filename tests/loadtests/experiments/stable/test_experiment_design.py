from __future__ import annotations

from dataclasses import replace

import pytest

from loadtests.experiments.stable.apps import OVERRUN, draw_apps, expected_placement, relative_loads
from loadtests.experiments.stable.design import (
    FULL,
    KUBE_SCHEDULER,
    OUR_LIVE,
    OURS,
    PAPER,
    PREDICTIVE_LIVE,
    SHORT,
    STEPS,
    Arm,
    Phase,
    Run,
    long_design,
    short_design,
)
from loadtests.experiments.stable.settings import settings_for
from matching.plan import Promise
from reactor.settings.model import DecisionTrigger, Settings
from reactor.settings.planner import waived_by

BOTH = (OURS, PAPER)


def test_eleven_rising_steps_from_below_half_to_past_the_capacity() -> None:
    assert [step.paper_rate for step in STEPS] == list(range(50, 151, 10))
    assert STEPS[0].share == pytest.approx(0.4)
    assert STEPS[-1].share == pytest.approx(1.2)


def test_the_short_form_takes_about_a_quarter_of_an_hour() -> None:
    assert 10 * 60 < short_design(BOTH).seconds() < 20 * 60


def test_every_threshold_and_planner_is_run_live_and_the_goal_with_three_seeds() -> None:
    runs = short_design(BOTH).runs()
    assert len(runs) == len(set(runs))
    for planner in BOTH:
        for threshold in (0.7, 0.8, 0.9):
            assert Run(Arm(Phase.LIVE, planner, threshold), 1) in runs
    for seed in (1, 2, 3):
        assert {Run(KUBE_SCHEDULER, seed), Run(OUR_LIVE, seed)} <= set(runs)


@pytest.mark.parametrize("design", [short_design(BOTH), long_design(FULL, BOTH)])
def test_a_frozen_run_comes_after_its_live_one(design: object) -> None:
    from loadtests.experiments.stable.design import Design

    assert isinstance(design, Design)
    runs = design.runs()
    frozen = [run for run in runs if run.arm.phase is Phase.FROZEN]
    assert frozen
    for run in frozen:
        live = Run(Arm(Phase.LIVE, run.arm.planner, run.arm.threshold), run.seed)
        assert runs.index(live) < runs.index(run)


def test_an_apps_draw_overruns_the_weak_node_and_is_always_the_same() -> None:
    design = short_design(BOTH)
    for seed in (1, 2, 3):
        default = expected_placement(design, seed)
        apps = draw_apps(design, seed, default)
        assert apps == draw_apps(design, seed, default)
        loads = relative_loads(design.nodes, apps, default)
        assert OVERRUN[0] <= loads["node2"] <= OVERRUN[1]
        assert max(loads.values()) == loads["node2"]
    assert len({draw_apps(design, seed, expected_placement(design, seed)) for seed in (1, 2, 3)}) == 3


def test_the_full_form_keeps_our_default_settings() -> None:
    wanted, usual = settings_for(OUR_LIVE, FULL), Settings()
    assert wanted.happiness == usual.happiness
    assert wanted.decision == usual.decision
    assert wanted.planner == usual.planner
    assert wanted.execution == usual.execution
    assert wanted.metrics == usual.metrics


def test_the_short_form_shrinks_durations_and_nothing_else() -> None:
    wanted, usual = settings_for(OUR_LIVE, SHORT), Settings()
    assert wanted.happiness.half_life == pytest.approx(usual.happiness.half_life * SHORT.seconds / 300)
    assert wanted.happiness.goodwill == usual.happiness.goodwill
    assert wanted.decision.minimum_failures == usual.decision.minimum_failures
    assert wanted.planner == usual.planner


def test_the_windows_of_the_queries_shrink_too() -> None:
    assert "[2m]" not in settings_for(OUR_LIVE, SHORT, "http://127.0.0.1:9090").model_dump_json()
    full = settings_for(OUR_LIVE, FULL, "http://127.0.0.1:9090")
    assert full.metrics.prometheus.queries == Settings().metrics.prometheus.queries


def test_the_predictive_arm_is_ours_with_another_trigger() -> None:
    wanted, ours = settings_for(PREDICTIVE_LIVE, FULL), settings_for(OUR_LIVE, FULL)
    assert wanted.decision.trigger is DecisionTrigger.PREDICTIVE
    reactive = wanted.decision.model_copy(update={"trigger": DecisionTrigger.REACTIVE})
    assert wanted.model_copy(update={"decision": reactive}) == ours


def test_the_predictive_arm_is_run_only_when_asked_for() -> None:
    assert PREDICTIVE_LIVE not in {run.arm for run in short_design(BOTH).runs()}
    runs = replace(long_design(FULL, BOTH), predictive=True).runs()
    assert [run.seed for run in runs if run.arm == PREDICTIVE_LIVE] == [1, 2, 3]


def test_the_paper_s_arm_has_no_gates() -> None:
    settings = settings_for(Arm(Phase.LIVE, PAPER, 0.9), FULL)
    assert (settings.planner.name, settings.planner.allow_unsafe) == (PAPER, True)
    assert settings.decision.minimum_failures == 0.0
    assert Promise.RESTRAINT in waived_by(PAPER)
    assert settings.happiness.threshold == 0.9

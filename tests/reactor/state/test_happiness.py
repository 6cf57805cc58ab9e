from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.cluster.records import Namespace, Pod
from reactor.settings.model import AnnotationBounds, Happiness
from reactor.signals.probe_counts import ProbeCounts, decay, spread
from reactor.state.happiness import probability
from reactor.state.thresholds import THRESHOLD_ANNOTATION, Threshold, ThresholdSource, threshold_of

numbers = st.floats(0, 1e6)
half_lives = st.floats(1, 1e5)


def pod(threshold: str | None = None) -> Pod:
    annotations = {} if threshold is None else {THRESHOLD_ANNOTATION: threshold}
    return Pod("u1", "default", "web-1", "1", {}, annotations, 0.0)


def namespace(threshold: str | None = None) -> Namespace:
    annotations = {} if threshold is None else {THRESHOLD_ANNOTATION: threshold}
    return Namespace("default", "n1", "1", {}, annotations)


def test_half_life() -> None:
    assert decay(300.0, 300.0) == 0.5
    assert decay(0.0, 300.0) == 1.0
    assert decay(-5.0, 300.0) == 1.0


def test_probability() -> None:
    assert probability(ProbeCounts(), 0.0) == 1.0
    assert probability(ProbeCounts(), 5.0) == 1.0
    assert probability(ProbeCounts(failures=1.0), 0.0) == 0.0
    assert probability(ProbeCounts(15.0, 5.0), 5.0) == 0.8


@given(numbers, numbers, numbers)
def test_probability_is_one_and_failures_lower_it(successes: float, failures: float, goodwill: float) -> None:
    before = probability(ProbeCounts(successes, failures), goodwill)
    after = probability(ProbeCounts(successes, failures + 1), goodwill)
    assert 0 <= after <= before <= 1


@given(numbers, st.floats(0, 1e5), st.floats(0, 1e5), half_lives)
def test_decay_in_steps_is_decay_at_once(failures: float, first: float, second: float, half_life: float) -> None:
    steps = failures * decay(first, half_life) * decay(second, half_life)
    assert steps == pytest.approx(failures * decay(first + second, half_life), rel=1e-6, abs=1e-9)


@given(numbers, st.floats(0, 1e5), half_lives)
def test_spread_lies_between_all_at_the_ends(count: float, length: float, half_life: float) -> None:
    weight = spread(count, 0.0, length, half_life)
    assert count * decay(length, half_life) <= weight * (1 + 1e-9)
    assert weight <= count * (1 + 1e-9)


def test_spread_is_the_sum_of_evenly_dated_probes() -> None:
    dated = sum(decay(600.0 - (number + 0.5) * 0.6, 300.0) for number in range(1000))
    assert spread(1000.0, 0.0, 600.0, 300.0) == pytest.approx(dated, rel=1e-4)


def test_threshold_by_level() -> None:
    settings = Happiness(threshold=0.8, namespaces={"default": 0.6})
    by_pod = Threshold(0.9, ThresholdSource.POD_ANNOTATION, by_settings=0.6)
    assert threshold_of(pod("0.9"), namespace("0.7"), settings) == by_pod
    by_namespace = Threshold(0.7, ThresholdSource.NAMESPACE_ANNOTATION, by_settings=0.6)
    assert threshold_of(pod(), namespace("0.7"), settings) == by_namespace
    assert threshold_of(pod(), namespace(), settings) == Threshold(0.6, ThresholdSource.NAMESPACE_SETTINGS)
    assert threshold_of(pod(), None, Happiness()) == Threshold(0.9, ThresholdSource.GLOBAL)


@pytest.mark.parametrize("text", ["high", "1.01", "-0.1", "nan", "inf", "", "0,9"])
def test_an_invalid_annotation_is_ignored_and_reported(text: str) -> None:
    threshold = threshold_of(pod(text), namespace("0.7"), Happiness())
    assert (threshold.value, threshold.source) == (0.7, ThresholdSource.NAMESPACE_ANNOTATION)
    assert "pod annotation" in threshold.problem
    both = threshold_of(pod(text), namespace(text), Happiness())
    assert both.source is ThresholdSource.GLOBAL
    assert "pod annotation" in both.problem
    assert "namespace annotation" in both.problem


@pytest.mark.parametrize("text", ["0", "0.99", "0.5", "1e-3"])
def test_valid_annotations(text: str) -> None:
    found = Threshold(float(text), ThresholdSource.POD_ANNOTATION, by_settings=0.9)
    assert threshold_of(pod(text), None, Happiness()) == found


@pytest.mark.parametrize(("text", "value"), [("1", 0.95), ("0.2", 0.5), ("0.7", 0.7)])
def test_an_annotation_out_of_bounds_is_clamped_and_reported(text: str, value: float) -> None:
    settings = Happiness(annotation_bounds=AnnotationBounds(min=0.5, max=0.95))
    for found in (threshold_of(pod(text), None, settings), threshold_of(pod(), namespace(text), settings)):
        assert found.value == value
        assert ("annotationBounds" in found.problem) == (float(text) != value)


def test_bounds_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(ValueError, match="swap them"):
        AnnotationBounds(min=0.9, max=0.1)


@pytest.mark.parametrize(
    ("annotation", "probability", "alone"),
    [("0.95", 0.92, True), ("0.95", 0.5, False), ("0.95", 0.97, False), ("0.5", 0.4, False), (None, 0.5, False)],
)
def test_only_an_annotation_that_is_stricter_than_the_settings_makes_unhappy_by_itself(
    annotation: str | None, probability: float, alone: bool
) -> None:
    threshold = threshold_of(pod(annotation) if annotation else pod(), None, Happiness(threshold=0.9))
    assert threshold.only_annotated(probability) is alone

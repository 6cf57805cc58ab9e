from __future__ import annotations

from io import StringIO

from loadtests.progress_bar import Progress, ProgressBar


def test_the_time_left_is_first_what_was_expected_and_then_what_was_seen() -> None:
    now = [0.0]
    bar = ProgressBar(lambda: now[0], StringIO(), name="real", expected=1100.0)
    bar.show(Progress(0, 110))
    assert bar.line(Progress(0, 110)).startswith("real [")
    assert "18:20 left" in bar.line(Progress(0, 110))
    now[0] = 440.0
    assert "29:20 left  kube-scheduler, seed 1" in bar.line(Progress(22, 110, "kube-scheduler, seed 1"))


def test_nothing_is_promised_before_a_step_where_nothing_is_expected() -> None:
    now = [0.0]
    bar = ProgressBar(lambda: now[0], StringIO())
    bar.show(Progress(5, 10))
    assert "? left" in bar.line(Progress(5, 10))
    now[0] = 10.0
    assert "0:40 left" in bar.line(Progress(6, 10))

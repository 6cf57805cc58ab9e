"""The demo's flags."""

from __future__ import annotations

from loadtests.commands import demo
from reactor.settings.model import Settings


def test_the_demo_has_the_controller_s_own_threshold() -> None:
    (threshold,) = [option for option in demo.params if option.name == "threshold"]
    assert threshold.default == Settings().happiness.threshold

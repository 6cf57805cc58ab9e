"""What holds for every test: Hypothesis judges answers, not the speed of a shared machine.

`.ci/run` draws the same examples every time, so that a change is judged by what it changes; everybody else's runs look
for new ones.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("shared-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("shared-machine"), derandomize=True, database=None)
settings.load_profile(os.environ.get("REMATCH_HYPOTHESIS_PROFILE", "shared-machine"))

pytest_plugins = ["tests.support.real_plane"]

"""What holds for every test: Hypothesis judges answers, not the speed of a shared machine, nothing is compiled within a
test's timeout, and numeric libraries use one thread, as in the processes that train models.

`.ci/run` draws the same examples every time, so that a change is judged by what it changes; everybody else's runs look
for new ones.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

# Read when the libraries are loaded. A test has a core at most: more threads only wait for each other.
os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

settings.register_profile("shared-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("shared-machine"), derandomize=True, database=None)
settings.load_profile(os.environ.get("REMATCH_HYPOTHESIS_PROFILE", "shared-machine"))

pytest_plugins = ["tests.support.real_plane"]

_COMPILE_SECONDS = 900.0


@pytest.fixture(autouse=True)
def default_logs() -> Iterator[None]:
    """A command that a test runs configures the logs of this process, for a stream that is closed when it ends."""
    yield
    structlog.reset_defaults()


def pytest_collection_finish(session: pytest.Session) -> None:
    """The first compilation by numba takes a minute on a busy machine. It runs in a process of its own, for the cache
    on disk: in this process it would also make small problems use the kernels, and numpy would not be tested."""
    if not session.items or session.config.option.collectonly:
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    say = reporter.write if reporter is not None else lambda _text, **_flush: None
    say("compiling the kernels before the first test (20 s of CPU after a change of their sources) ... ", flush=True)
    started = time.monotonic()
    command = [sys.executable, "-c", "from matching.compilation import warm_up; warm_up()"]
    subprocess.run(command, cwd=session.config.rootpath, timeout=_COMPILE_SECONDS, check=True)
    say(f"{time.monotonic() - started:.1f} s\n")

"""For authors of sources: check that one keeps the promises of `reactor.signals.sources`, in a test of any framework.

from reactor.signals.testing import check_source

def test_my_source():
    check_source(MySource(), [SourcePod("shop", "web-1", "uid-1", "node-1")], ["node-1"])
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from reactor.signals.sources import Source, SourcePod, SourceReading, checked_reading, wrong_name


def check_source(source: Source, pods: Sequence[SourcePod], nodes: Sequence[str], *, deadline: float = 10.0) -> None:
    """Raise AssertionError for the first promise that the source breaks. `pods` and `nodes` are some that it knows."""
    _require(not wrong_name(source.name), f"the name {source.name!r}: {wrong_name(source.name)}")
    _check(source, (), (), deadline)
    given = tuple(pods), tuple(nodes)
    found = _check(source, pods, nodes, deadline)
    _require((tuple(pods), tuple(nodes)) == given, "what it is given is not changed")
    _require(bool(found.pods) or not pods, "none of the pods has a value")
    _require(bool(found.nodes) or not nodes, "none of the nodes has a capacity")


def _check(source: Source, pods: Sequence[SourcePod], nodes: Sequence[str], deadline: float) -> SourceReading:
    answers: list[object] = []
    thread = threading.Thread(target=lambda: answers.append(source.read(pods, nodes)), daemon=True)
    thread.start()
    thread.join(deadline)
    _require(bool(answers), f"read({len(pods)} pods, {len(nodes)} nodes) raised, or took more than {deadline:g} s")
    reading, problems = checked_reading(answers[0], pods, nodes)
    _require(not problems, "; ".join(problems))
    return reading


def _require(holds: bool, promise: str) -> None:
    if not holds:
        raise AssertionError(promise)

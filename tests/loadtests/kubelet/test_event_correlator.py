from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loadtests.kubelet.events import Create, EventCorrelator, Happening, Subject, Update

RECORDED = Path(__file__).parent / "recorded-events.jsonl"
"""Watch events of real kubelets 1.36.3, recorded on our own lab nodes: the first of each kind we write."""
SUBJECT = Subject("Pod", "web-1", "shop", "uid-1", "42", "spec.containers{web}")


def unhealthy(message: str = "Liveness probe failed: HTTP probe failed with statuscode: 500") -> Happening:
    return Happening(SUBJECT, "Warning", "Unhealthy", message)


def recorded(reason: str, kind: str = "ADDED") -> dict[str, Any]:
    for line in RECORDED.read_text().splitlines():
        event = json.loads(line)
        if event["type"] == kind and event["object"]["reason"] == reason:
            return dict(event["object"])
    raise LookupError(reason)


def shape(value: object) -> object:
    """Keys and types, without what only a server adds."""
    if isinstance(value, dict):
        server = {"managedFields", "creationTimestamp", "uid", "resourceVersion"} if "managedFields" in value else set()
        return {key: shape(item) for key, item in sorted(value.items()) if key not in server}
    return type(value).__name__


def created(happening: Happening, now: float = 1000.0) -> dict[str, Any]:
    action = EventCorrelator("node1").correlate(happening, now)
    assert isinstance(action, Create)
    return action.body


@pytest.mark.parametrize("reason", ["Unhealthy", "Killing", "Started", "Created", "Pulled", "BackOff"])
def test_events_have_the_shape_of_the_real_ones(reason: str) -> None:
    real = recorded(reason)
    ours = created(Happening(SUBJECT, real["type"], reason, real["message"]))
    assert shape(ours) == shape(real)


def test_a_node_event_has_the_shape_of_the_real_one() -> None:
    real = recorded("NodeReady")
    ours = created(Happening(Subject("Node", "node3"), "Normal", "NodeReady", real["message"]))
    assert shape(ours) == shape(real)
    assert ours["metadata"]["namespace"] == "default"


def test_a_repeat_is_counted_on_the_same_object_as_recorded() -> None:
    correlator = EventCorrelator("node1")
    first = correlator.correlate(unhealthy(), 1000)
    second = correlator.correlate(unhealthy(), 1002)
    assert isinstance(first, Create)
    assert isinstance(second, Update)
    assert second.name == first.body["metadata"]["name"]
    assert second.patch["count"] == 2
    assert second.create_instead.body["firstTimestamp"] == first.body["firstTimestamp"] == "1970-01-01T00:16:40Z"
    assert second.patch["lastTimestamp"] == "1970-01-01T00:16:42Z"
    real = recorded("Unhealthy", "MODIFIED")
    assert shape(second.create_instead.body) == shape(real)
    assert real["count"] > 1


def test_every_message_is_an_event_of_its_own() -> None:
    correlator = EventCorrelator("node1")
    actions = [correlator.correlate(unhealthy(text), 1000 + at) for at, text in enumerate(["EOF", "refused", "EOF"])]
    assert [type(action) for action in actions] == [Create, Create, Update]


def test_the_spam_filter_lets_25_warnings_through_then_one_in_300_seconds() -> None:
    correlator = EventCorrelator("node1")
    passed = [second for second in range(900) if correlator.correlate(unhealthy(), 1000 + second) is not None]
    assert passed[:25] == list(range(25))
    assert passed[25:] == pytest.approx([300, 600], abs=1)


def test_all_warnings_of_a_pod_share_the_filter_but_not_its_normal_events_nor_other_pods() -> None:
    correlator = EventCorrelator("node1")
    back_off = Happening(SUBJECT, "Warning", "BackOff", "Back-off restarting failed container")
    other = Happening(Subject("Pod", "web-2", "shop", "uid-2"), "Warning", "Unhealthy", "EOF")
    for _ in range(15):
        assert correlator.correlate(back_off, 1000) is not None
    passed = sum(correlator.correlate(unhealthy(), 1000) is not None for _ in range(30))
    assert passed == 10
    assert correlator.correlate(Happening(SUBJECT, "Normal", "Killing", "Stopping container web"), 1000) is not None
    assert correlator.correlate(other, 1000) is not None


def test_after_ten_different_messages_events_are_combined() -> None:
    correlator = EventCorrelator("node1")
    actions = [correlator.correlate(unhealthy(f"reason {index}"), 1000 + index) for index in range(12)]
    assert [type(action) for action in actions] == [Create] * 10 + [Update] * 2
    last = actions[-1]
    assert isinstance(last, Update)
    assert last.patch["message"] == "(combined from similar events): reason 11"
    assert last.patch["count"] == 3
    later = correlator.correlate(unhealthy("reason 99"), 2000)
    assert isinstance(later, Create)
    assert later.body["message"] == "reason 99"


def test_a_pod_that_is_gone_is_forgotten() -> None:
    correlator = EventCorrelator("node1")
    for _ in range(30):
        correlator.correlate(unhealthy(), 1000)
    correlator.forget("uid-1")
    assert isinstance(correlator.correlate(unhealthy(), 1000), Create)

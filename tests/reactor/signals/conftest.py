"""Builders of the records that signals are made from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reactor.cluster.records import Container, Event, Owner, Pod, Probe

MakePod = Callable[..., Pod]
MakeEvent = Callable[..., Event]


@pytest.fixture
def kubelet_data() -> Path:
    return Path(__file__).parents[2] / "data" / "kubelet"


@pytest.fixture
def make_pod() -> MakePod:
    def make(
        uid: str = "u1",
        name: str = "web-1",
        *,
        started: float | None = 0.0,
        period: float = 10.0,
        threshold: int = 3,
        initial_delay: float = 0.0,
        created: float = 0.0,
        phase: str = "Running",
        deleting: float | None = None,
        owner: Owner | None = None,
        labels: dict[str, str] | None = None,
        liveness: bool = True,
    ) -> Pod:
        probe = Probe(period=period, failure_threshold=threshold, initial_delay=initial_delay)
        container = Container("srv", probe if liveness else None, 0, started)
        return Pod(
            uid=uid,
            namespace="default",
            name=name,
            resource_version="1",
            labels=labels or {},
            annotations={},
            created=created,
            phase=phase,
            deleting=deleting,
            owner=owner,
            containers=(container,),
        )

    return make


@pytest.fixture
def make_event() -> MakeEvent:
    def make(
        count: int = 1,
        last: float = 0.0,
        *,
        first: float | None = None,
        message: str = "Liveness probe failed: HTTP probe failed with statuscode: 500",
        reason: str = "Unhealthy",
        event_type: str = "Warning",
        name: str = "web-1.1",
        uid: str = "e1",
        pod_uid: str = "u1",
        component: str = "kubelet",
    ) -> Event:
        return Event(
            uid=uid,
            namespace="default",
            name=name,
            resource_version="1",
            reason=reason,
            type=event_type,
            message=message,
            involved_name="web-1",
            involved_uid=pod_uid,
            field_path="spec.containers{srv}",
            count=count,
            first=last if first is None else first,
            last=last,
            component=component,
        )

    return make


@pytest.fixture
def make_kill(make_event: MakeEvent) -> MakeEvent:
    def make(count: int = 1, last: float = 0.0, *, first: float | None = None) -> Event:
        return make_event(
            count,
            last,
            first=first,
            reason="Killing",
            event_type="Normal",
            message="Container srv failed liveness probe, will be restarted",
            name="web-1.kill",
            uid="k1",
        )

    return make

"""Events, as the kubelet (core/v1 count) and newer reporters (eventTime, series) write them, and which matter."""

from __future__ import annotations

import sys

import msgspec
from msgspec import Raw, Struct

from reactor.cluster.decoding.common import Time, WireMeta, created, seconds, uid_of
from reactor.cluster.records import Event

PROBE_REASONS = frozenset({"Unhealthy", "Killing"})
_REPORTERS = frozenset({"kubelet", ""})
_LONGEST = 253
"""Characters. No name is longer, and of a message no page shows more. Anyone may write Events of a megabyte each into
a namespace of theirs, and the API server does not bound their fields."""


class _Involved(Struct, rename="camel", gc=False):
    kind: str = ""
    name: str = ""
    uid: str = ""
    field_path: str = ""


class _Source(Struct, gc=False):
    component: str | None = None
    host: str | None = None


class _Series(Struct, rename="camel", gc=False):
    count: int = 0
    last_observed_time: Time | None = None


class _Event(Struct, rename="camel", gc=False):
    metadata: WireMeta
    involved_object: _Involved | None = None
    regarding: _Involved | None = None
    reason: str | None = None
    type: str | None = None
    message: str | None = None
    note: str | None = None
    count: int | None = None
    deprecated_count: int | None = None
    first_timestamp: Time | None = None
    last_timestamp: Time | None = None
    event_time: Time | None = None
    series: _Series | None = None
    source: _Source | None = None
    deprecated_source: _Source | None = None
    reporting_component: str | None = None
    reporting_controller: str | None = None


_EVENT = msgspec.json.Decoder(_Event)


def decode_event(text: bytes | Raw) -> Event:
    """Both formats: core/v1 (involvedObject, message) and events.k8s.io/v1 (regarding, note)."""
    wire = _EVENT.decode(text)
    meta = wire.metadata
    involved = wire.involved_object or wire.regarding or _Involved()
    first, last = _times(wire)
    source = wire.source or wire.deprecated_source or _Source()
    component = source.component or wire.reporting_component
    reason = _short(wire.reason)
    return Event(
        uid=uid_of(meta),
        namespace=sys.intern(meta.namespace),
        name=meta.name,
        resource_version=meta.resource_version,
        reason=reason,
        type=_short(wire.type),
        message=_short(wire.message or wire.note) if reason in PROBE_REASONS else "",
        involved_name=_short(involved.name),
        involved_uid=_short(involved.uid),
        field_path=_short(involved.field_path),
        count=_count(wire),
        first=first,
        last=last,
        component=_short(component or wire.reporting_controller),
        involved_kind=_short(involved.kind),
        host=_short(source.host),
    )


def concerns_probes(event: Event) -> bool:
    """The kubelet's Events about probes, and its other Warnings about pods: they share one budget of 25 per pod, and
    when it is spent the kubelet does not report failed probes, either. The scheduler's Warnings have another budget."""
    if event.involved_kind != "Pod" or event.component not in _REPORTERS:
        return False
    return event.type == "Warning" or event.reason in PROBE_REASONS


def _short(text: str | None) -> str:
    return sys.intern((text or "")[:_LONGEST])


def _count(wire: _Event) -> int:
    return (wire.series.count if wire.series else 0) or wire.count or wire.deprecated_count or 1


def _times(wire: _Event) -> tuple[float, float]:
    first = seconds(wire.first_timestamp) or seconds(wire.event_time) or created(wire.metadata)
    observed = wire.series.last_observed_time if wire.series else None
    return first, max(first, seconds(observed) or seconds(wire.last_timestamp) or first)

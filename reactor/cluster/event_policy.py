"""Whether the API server lets nobody but kubelets write Events about probes: the policy `rematch-events`."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import Struct

from reactor.cluster.api import ApiRequest, Connection, checked, decoded
from reactor.cluster.decoding.common import Time, seconds
from reactor.errors import NotFound

POLICY = "rematch-events"
EVENTS_KEPT = 3600.0
"""The API server's default lifetime of Events: those from before the policy are gone after it."""
_PATH = "/apis/admissionregistration.k8s.io/v1"
_DEADLINE = 10.0
T = TypeVar("T")


class _Meta(Struct, rename="camel", gc=False):
    creation_timestamp: Time | None = None


class _PolicySpec(Struct, rename="camel", frozen=True, gc=False):
    failure_policy: str = "Fail"


class _Policy(Struct, gc=False):
    metadata: _Meta
    spec: _PolicySpec = _PolicySpec()


class _BindingSpec(Struct, rename="camel", frozen=True, gc=False):
    policy_name: str = ""
    validation_actions: tuple[str, ...] = ()
    match_resources: dict[str, object] | None = None


class _Binding(Struct, gc=False):
    metadata: _Meta
    spec: _BindingSpec = _BindingSpec()


_POLICY = msgspec.json.Decoder(_Policy)
_BINDING = msgspec.json.Decoder(_Binding)


async def events_authentic(connection: Connection, now: float) -> bool:
    """Raises a ClusterError where it is not known."""
    policy = await _read(connection, "validatingadmissionpolicies", _POLICY)
    binding = await _read(connection, "validatingadmissionpolicybindings", _BINDING)
    if policy is None or binding is None:
        return False
    installed = max(seconds(each.metadata.creation_timestamp) or now for each in (policy, binding))
    in_force = (
        policy.spec.failure_policy == "Fail"
        and binding.spec.policy_name == POLICY
        and "Deny" in binding.spec.validation_actions
        and not binding.spec.match_resources
    )
    return in_force and now - installed > EVENTS_KEPT


async def _read(connection: Connection, kind: str, answer: msgspec.json.Decoder[T]) -> T | None:
    path = f"{_PATH}/{kind}/{POLICY}"
    response = await connection.send(ApiRequest("GET", path, deadline=_DEADLINE))
    try:
        return decoded(answer, checked(response, f"GET {path}"), f"GET {path}")
    except NotFound:
        return None

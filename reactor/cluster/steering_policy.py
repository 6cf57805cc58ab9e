"""Whether hints can work in this cluster: what has to be installed is there, and a canary shows that it is in force.

A dry run of our own does not show it: the policy looks at the account that creates the pod. So a ReplicaSet of ours
makes a pod that no node takes, and the pod must have the stamp.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import msgspec
import structlog
from msgspec import Struct

from reactor.clock import Clock
from reactor.cluster.api import JSON, MERGE_PATCH, ApiRequest, Connection, checked, decoded
from reactor.cluster.hints import MOVE_LABEL, Hint, Hints, HintWriter
from reactor.cluster.kinds import Kind
from reactor.errors import ClusterError, NotFound, Unreachable

log = structlog.get_logger(__name__)

POLICY = "rematch-hints"
CANARY = "rematch-canary"
CANARY_LABEL = "rematch.io/canary"
CANARY_MOVE = "canary-"
"""The ids of canaries start with it; those of moves do not."""
INSTALL = (
    "install it: helm upgrade --install rematch deploy/chart -n rematch, or kubectl apply"
    " -f deploy/chart/files/crds/placementhints.yaml -f deploy/chart/files/policies/hints.yaml"
)
_GROUP = "/apis/admissionregistration.k8s.io"
_VERSIONS = ("v1", "v1beta1")
_DEADLINE = 10.0
_CANARY_SECONDS = 20.0
_CLEANUP_SECONDS = 15.0
_POLL = 0.2

_NOT_SERVED = (
    "this API server does not serve MutatingAdmissionPolicy: use Kubernetes 1.36 or later, or on 1.34 and 1.35 start it"
    " with --feature-gates=MutatingAdmissionPolicy=true --runtime-config=admissionregistration.k8s.io/v1beta1=true"
)
_NOT_STAMPED = (
    f"the policy {POLICY} is installed but does nothing here: a canary pod came without the label {MOVE_LABEL}. Is the"
    " admission plugin switched off (kube-apiserver --disable-admission-plugins, --feature-gates), or does"
    " kube-controller-manager use an account that deploy/chart/files/policies/hints.yaml does not name?"
)


class _Resource(Struct, gc=False):
    name: str = ""


class _ResourceList(Struct, gc=False):
    resources: list[_Resource] = []


class _Meta(Struct, rename="camel", gc=False):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None


class _Condition(Struct, gc=False):
    type: str = ""
    status: str = ""
    message: str = ""


class _Status(Struct, gc=False):
    conditions: list[_Condition] | None = None


class _Object(Struct, gc=False):
    metadata: _Meta
    status: _Status | None = None


class _List(Struct, gc=False):
    items: list[_Object] = []


_OBJECT = msgspec.json.Decoder(_Object)
_LIST = msgspec.json.Decoder(_List)
_RESOURCES = msgspec.json.Decoder(_ResourceList)


class Discovery(Struct, frozen=True, gc=False):
    """`problem` says what is missing and how to install it; `version` changes with the policy and its binding."""

    problem: str
    version: str = ""


class SteeringPolicy:
    """Reads what is installed, and runs the canary in the namespace of the controller."""

    def __init__(self, connection: Connection, hints: HintWriter, clock: Clock, namespace: str) -> None:
        self._connection = connection
        self._hints = hints
        self._clock = clock
        self._replica_sets = Kind.REPLICA_SETS.path(namespace)
        self._pods = Kind.PODS.path(namespace)

    async def discover(self) -> Discovery:
        """Raises a ClusterError where it is not known."""
        group = await self._served_group()
        if group is None:
            return Discovery(_NOT_SERVED)
        if not await self._serves("/apis/rematch.io/v1alpha1", "placementhints"):
            return Discovery(f"the CustomResourceDefinition placementhints.rematch.io is missing; {INSTALL}")
        versions = []
        for plural, kind in (
            ("mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
            ("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"),
        ):
            try:
                found = await self._get(f"{group}/{plural}/{POLICY}")
            except NotFound:
                return Discovery(f"the {kind} {POLICY} is missing; {INSTALL}")
            versions.append(found.metadata.resource_version)
        return Discovery("", "/".join(versions))

    async def try_canary(self) -> str:
        """Empty when its pod was stamped, else the problem. Whatever happens, nothing of it is left."""
        move = f"{CANARY_MOVE}{secrets.token_hex(8)}"
        try:
            await self.remove_canaries()
            async with self._canary(move) as canary:
                pod = await self._first_pod(move)
                if pod is None:
                    return await self._why_no_pod(canary)
                stamped = (pod.metadata.labels or {}).get(MOVE_LABEL) == move
                return "" if stamped else _NOT_STAMPED
        except ClusterError as error:
            return f"whether the policy {POLICY} works could not be tried: {error}"

    @asynccontextmanager
    async def _canary(self, move: str) -> AsyncIterator[_Object]:
        """A ReplicaSet with one replica and a hint for it."""
        created = await self._send("POST", self._replica_sets, _replica_set(move))
        canary = decoded(_OBJECT, created, f"POST {self._replica_sets}")
        try:
            uid = canary.metadata.uid
            await self._hints.change(lambda _: {uid: Hint(move, CANARY)})
            await self._hints.until_seen()
            scaled = {"metadata": {"uid": uid}, "spec": {"replicas": 1}}
            await self._send("PATCH", f"{self._replica_sets}/{canary.metadata.name}", scaled)
            yield canary
        finally:
            await self._clean_up(canary)

    async def _clean_up(self, canary: _Object) -> None:
        try:
            async with asyncio.timeout(_CLEANUP_SECONDS):
                try:
                    await self._remove(canary)
                finally:
                    await self._hints.change(_canaries_removed)
        except TimeoutError as error:
            raise Unreachable(f"{canary.metadata.name} was not removed within {_CLEANUP_SECONDS:g} s") from error

    async def remove_canaries(self) -> None:
        """Of a process that was killed, or lost its Lease."""
        query = {"labelSelector": CANARY_LABEL}
        for found in (await self._list(self._replica_sets, query)).items:
            log.info("removing the canary of an earlier process", name=found.metadata.name)
            await self._remove(found)
        await self._hints.change(_canaries_removed)

    async def _remove(self, canary: _Object) -> None:
        preconditions = {"uid": canary.metadata.uid}
        body = {"propagationPolicy": "Background", "preconditions": preconditions}
        try:
            await self._send("DELETE", f"{self._replica_sets}/{canary.metadata.name}", body)
        except NotFound:
            return

    async def _first_pod(self, move: str) -> _Object | None:
        for _ in range(int(_CANARY_SECONDS / _POLL)):
            found = (await self._list(self._pods, {"labelSelector": f"{CANARY_LABEL}={move}"})).items
            if found:
                return found[0]
            await self._clock.sleep(_POLL)
        return None

    async def _why_no_pod(self, canary: _Object) -> str:
        query = {"labelSelector": CANARY_LABEL, "fieldSelector": f"metadata.name={canary.metadata.name}"}
        found = (await self._list(self._replica_sets, query)).items
        conditions = (found[0].status.conditions if found and found[0].status else None) or ()
        why = "; ".join(each.message for each in conditions if each.type == "ReplicaFailure")
        text = f"whether the policy {POLICY} works is not known: the canary got no pod within {_CANARY_SECONDS:g} s"
        return f"{text}: {why}" if why else f"{text}; does kube-controller-manager run?"

    async def _served_group(self) -> str | None:
        for version in _VERSIONS:
            if await self._serves(f"{_GROUP}/{version}", "mutatingadmissionpolicies"):
                return f"{_GROUP}/{version}"
        return None

    async def _serves(self, path: str, resource: str) -> bool:
        try:
            body = await self._send("GET", path)
        except NotFound:
            return False
        return any(each.name == resource for each in decoded(_RESOURCES, body, f"GET {path}").resources)

    async def _get(self, path: str) -> _Object:
        return decoded(_OBJECT, await self._send("GET", path), f"GET {path}")

    async def _list(self, path: str, query: Mapping[str, str]) -> _List:
        return decoded(_LIST, await self._send("GET", path, query=query), f"GET {path}")

    async def _send(
        self, method: str, path: str, body: Mapping[str, object] | None = None, query: Mapping[str, str] | None = None
    ) -> bytes:
        content = MERGE_PATCH if method == "PATCH" else JSON
        request = ApiRequest(method, path, query, body, content, deadline=_DEADLINE)
        return checked(await self._connection.send(request), f"{method} {path}")


def _canaries_removed(hints: Hints) -> dict[str, Hint | None]:
    return {uid: None for uid, hint in hints.items() if hint.move.startswith(CANARY_MOVE)}


def _replica_set(move: str) -> dict[str, object]:
    """Its pod is never started: it is gated, so that neither schedulers nor autoscalers look at it, and no node has the
    label that it wants. The rest is what quotas and the Pod Security Standard `restricted` ask for."""
    labels = {CANARY_LABEL: move}
    amount = {"cpu": "1m", "memory": "1Mi"}
    container = {
        "name": "canary",
        "image": CANARY,
        "resources": {"requests": amount, "limits": amount},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    spec = {
        "schedulingGates": [{"name": CANARY_LABEL}],
        "nodeSelector": {CANARY_LABEL: "no-node-has-this"},
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": f"{CANARY}-{move.removeprefix(CANARY_MOVE)}", "labels": labels},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }

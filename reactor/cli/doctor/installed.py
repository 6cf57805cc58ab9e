"""What has to be in the cluster: API versions, CRDs, policies, the controller, its Lease, volume and journal."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from reactor.cli.doctor.cluster import Examined, listed
from reactor.cli.doctor.findings import Finding, State
from reactor.errors import ClusterError

GROUP = "rematch.io"
RESOURCES = ("moves", "requests", "placementhints")
OLDEST = 30
"""The oldest minor version of Kubernetes that is supported, 1.x."""
POLICY_MINOR = 36
"""From this minor version on MutatingAdmissionPolicy is on."""
_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_POLICIES = (
    ("rematch-events", "policies.events=true", "Events that a probe failed move nobody without other signs"),
    ("rematch-own-rights", "policies.ownRights=true", "nothing limits which fields of a pod our account may patch"),
)


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = "unknown"
    major: str = ""
    minor: str = ""


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    creation_timestamp: datetime | None = None


class _Resource(msgspec.Struct):
    name: str


class _Resources(msgspec.Struct):
    resources: list[_Resource] = []


class _Any(msgspec.Struct):
    metadata: _Meta


class _Items(msgspec.Struct):
    items: list[_Any] = []


async def check_version(examined: Examined) -> list[Finding]:
    found = await examined.api.get("/version", _Version)
    minor = int("".join(filter(str.isdigit, found.minor)) or 0)
    if minor < OLDEST:
        text = f"{found.git_version} is older than 1.{OLDEST}, the oldest that is supported"
        return [Finding("Kubernetes", State.FAILED, text)]
    if minor < POLICY_MINOR:
        text = (
            f"{found.git_version}: MutatingAdmissionPolicy is off by default before 1.{POLICY_MINOR} (docs/versions.md)"
        )
        return [Finding("Kubernetes", State.WARNING, text)]
    return [Finding("Kubernetes", State.OK, found.git_version)]


async def check_crds(examined: Examined) -> list[Finding]:
    """By discovery, which everybody may read, and which knows only CRDs that are established."""
    found = await examined.api.find(f"/apis/{GROUP}/v1alpha1", _Resources)
    served = {resource.name for resource in found.resources} if found else set()
    missing = [f"{name}.{GROUP}" for name in RESOURCES if name not in served]
    if not missing:
        return [Finding("CRDs", State.OK, ", ".join(f"{name}.{GROUP}" for name in RESOURCES))]
    return [Finding("CRDs", State.FAILED, f"not served: {', '.join(missing)}", examined.installation.mend())]


async def check_policies(examined: Examined) -> list[Finding]:
    return [await _policy(examined, *policy) for policy in _POLICIES]


async def _policy(examined: Examined, name: str, value: str, without: str) -> Finding:
    kinds = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
    missing = [kind for kind in kinds if await examined.api.find(f"{_ADMISSION}/{kind}/{name}", _Any) is None]
    if missing:
        text = f"not installed: {' and '.join(missing)}; {without}"
        return Finding(f"policy {name}", State.WARNING, text, examined.installation.mend(value))
    return Finding(f"policy {name}", State.OK, "installed and bound")


class _Container(msgspec.Struct):
    image: str = ""


class _PodSpec(msgspec.Struct):
    containers: list[_Container] = []


class _Template(msgspec.Struct):
    spec: _PodSpec


class _WorkloadSpec(msgspec.Struct):
    template: _Template
    replicas: int = 1


class _WorkloadStatus(msgspec.Struct, rename="camel"):
    ready_replicas: int = 0


class _Workload(msgspec.Struct):
    spec: _WorkloadSpec
    status: _WorkloadStatus = msgspec.field(default_factory=_WorkloadStatus)


async def check_controller(examined: Examined) -> list[Finding]:
    namespace = examined.namespace
    for kind in ("deployments", "statefulsets"):
        found = await examined.api.find(f"/apis/apps/v1/namespaces/{namespace}/{kind}/rematch", _Workload)
        if found is not None:
            return [_readiness(found, kind.removesuffix("s"), namespace)]
    text = f"namespace {namespace} has neither a Deployment nor a StatefulSet rematch"
    return [Finding("controller", State.FAILED, text, examined.installation.mend())]


def _readiness(found: _Workload, kind: str, namespace: str) -> Finding:
    ready, wanted = found.status.ready_replicas, found.spec.replicas
    image = found.spec.template.spec.containers[0].image if found.spec.template.spec.containers else "no image"
    text = f"{ready} of {wanted} Ready, {image}"
    if wanted and ready >= wanted:
        return Finding("controller", State.OK, text)
    mend = f"kubectl -n {namespace} describe pods -l app.kubernetes.io/name=rematch"
    return Finding("controller", State.FAILED, f"{text}: {kind} rematch", mend)


class _LeaseSpec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: datetime | None = None


class _Lease(msgspec.Struct):
    spec: _LeaseSpec


async def check_lease(examined: Examined) -> list[Finding]:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{examined.namespace}/leases/rematch"
    lease = await examined.api.find(path, _Lease)
    if lease is None or not lease.spec.holder_identity:
        return [Finding("leader", State.WARNING, "nobody holds the Lease rematch: no controller acts")]
    spec = lease.spec
    age = _age(examined, spec.renew_time)
    if age > (spec.lease_duration_seconds or 15):
        return [
            Finding("leader", State.WARNING, f"{spec.holder_identity} renewed the Lease {age:.0f} s ago: it is lost")
        ]
    return [Finding("leader", State.OK, f"{spec.holder_identity}, renewed {age:.0f} s ago")]


def _age(examined: Examined, at: datetime | None) -> float:
    return examined.clock.now() - at.astimezone(UTC).timestamp() if at is not None else float("inf")


class _ClaimStatus(msgspec.Struct):
    phase: str = ""
    capacity: dict[str, str] = {}


class _Claim(msgspec.Struct):
    metadata: _Meta
    status: _ClaimStatus = msgspec.field(default_factory=_ClaimStatus)


class _Claims(msgspec.Struct):
    items: list[_Claim] = []


class _PodVolume(msgspec.Struct):
    name: str


class _PodVolumes(msgspec.Struct):
    volumes: list[_PodVolume] = []


class _ControllerPod(msgspec.Struct):
    spec: _PodVolumes = msgspec.field(default_factory=_PodVolumes)


class _ControllerPods(msgspec.Struct):
    items: list[_ControllerPod] = []


async def _uses_postgresql(examined: Examined) -> bool:
    """By the volume with the URL, as the chart names it."""
    path = f"/api/v1/namespaces/{examined.namespace}/pods"
    pods = (await examined.api.get(path, _ControllerPods, {"labelSelector": "app.kubernetes.io/name=rematch"})).items
    return any(volume.name == "store-url" for pod in pods for volume in pod.spec.volumes)


async def check_volumes(examined: Examined) -> list[Finding]:
    path = f"/api/v1/namespaces/{examined.namespace}/persistentvolumeclaims"
    claims = (await examined.api.get(path, _Claims)).items
    ours = [claim for claim in claims if claim.metadata.name in ("rematch", "store-rematch-0", "store-rematch-1")]
    if not ours and await _uses_postgresql(examined):
        return [Finding("volume", State.OK, "none is needed: the store is in PostgreSQL")]
    if not ours:
        return [Finding("volume", State.WARNING, "there is no PVC for the store", examined.installation.mend())]
    waiting = [claim.metadata.name for claim in ours if claim.status.phase != "Bound"]
    if waiting:
        mend = f"kubectl -n {examined.namespace} describe pvc {' '.join(waiting)}"
        return [Finding("volume", State.FAILED, f"not bound: {', '.join(waiting)}", mend)]
    sizes = ", ".join(f"{claim.metadata.name} {claim.status.capacity.get('storage', '')}" for claim in ours)
    return [Finding("volume", State.OK, sizes)]


async def check_journal(examined: Examined) -> list[Finding]:
    path = f"/apis/{GROUP}/v1alpha1/namespaces/{examined.namespace}/moves"
    found = await examined.api.find(path, _Items)
    if found is None:
        return [Finding("journal", State.FAILED, f"moves.{GROUP} is not served", examined.installation.mend())]
    if not found.items:
        return [Finding("journal", State.OK, "no move is under way")]
    oldest = max(_age(examined, item.metadata.creation_timestamp) for item in found.items)
    names = listed(sorted(item.metadata.name for item in found.items))
    text = f"{len(found.items)} moves under way, the oldest for {oldest:.0f} s: {names}"
    late = oldest > 3 * examined.settings.execution.ready_deadline
    mend = f"kubectl -n {examined.namespace} get moves"
    return [Finding("journal", State.WARNING if late else State.OK, text, mend if late else "")]


class _PodStatus(msgspec.Struct):
    phase: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta
    status: _PodStatus


class _Pods(msgspec.Struct):
    items: list[_Pod] = []


async def check_metrics_of_controller(examined: Examined) -> list[Finding]:
    """Through the API server, so that no port has to be forwarded."""
    pods = f"/api/v1/namespaces/{examined.namespace}/pods"
    running = [
        pod.metadata.name
        for pod in (await examined.api.get(pods, _Pods)).items
        if pod.status.phase == "Running" and pod.metadata.name.startswith("rematch-")
    ]
    if not running:
        return [Finding("running", State.UNKNOWN, "no controller runs, so its store and watches cannot be seen")]
    return [await _state_of(examined, f"{pods}/{name}:{PROBE_PORT}/proxy/metrics", name) for name in running]


PROBE_PORT = 8081
"""As in the chart."""
_WANTED = {
    "rematch_synced": "not every kind was listed yet",
    "rematch_storage_ok": "its store takes no writes, so nothing is evicted",
}
_UNWANTED = {
    "rematch_halted": "a brake holds moves in the cluster or in a namespace",
    "rematch_paused": "it is paused: no pod is evicted (rematch resume)",
    "rematch_settings_refused": "it refuses the newest settings",
}


async def _state_of(examined: Examined, path: str, name: str) -> Finding:
    try:
        text = (await examined.api.raw(path)).decode(errors="replace")
    except ClusterError as error:
        return Finding("running", State.UNKNOWN, f"{name}: its metrics cannot be read from here: {error}")
    values = {sample.name: sample.value for family in text_string_to_metric_families(text) for sample in family.samples}
    problems = [words for metric, words in _WANTED.items() if values.get(metric) == 0]
    problems += [words for metric, words in _UNWANTED.items() if values.get(metric) == 1]
    if problems:
        return Finding("running", State.FAILED, f"{name}: {'; '.join(problems)}", "rematch status")
    return Finding("running", State.OK, f"{name}: synced, store writable, no brake")

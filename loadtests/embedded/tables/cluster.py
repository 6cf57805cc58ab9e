"""Tables of nodes, namespaces, events and the other kinds that are not workloads."""

from __future__ import annotations

from loadtests.embedded.objects import condition_of, labels_of, name_of, spec_of, status_of
from loadtests.embedded.resources import Json
from loadtests.embedded.tables.cells import NONE, Cells, Column, age, named, wide

_ROLE_PREFIX = "node-role.kubernetes.io/"

NODE_COLUMNS = (
    named(),
    Column("Status"),
    Column("Roles"),
    Column("Age"),
    Column("Version"),
    *wide("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime"),
)
EVENT_COLUMNS = (
    Column("Last Seen"),
    Column("Type"),
    Column("Reason"),
    Column("Object"),
    *wide("Subobject", "Source"),
    Column("Message"),
    *wide("First Seen", "Count"),
    Column("Name", format="name", priority=1),
)
NAMESPACE_COLUMNS = (named(), Column("Status"), Column("Age"))
CONFIGMAP_COLUMNS = (named(), Column("Data"), Column("Age"))
LEASE_COLUMNS = (named(), Column("Holder"), Column("Age"))
PRIORITYCLASS_COLUMNS = (
    named(),
    Column("Value", "integer"),
    Column("Global-Default", "boolean"),
    Column("Age"),
    Column("PreemptionPolicy"),
)
BUDGET_COLUMNS = (
    named(),
    Column("Min Available"),
    Column("Max Unavailable"),
    Column("Allowed Disruptions", "integer"),
    Column("Age"),
)
MOVE_COLUMNS = (
    named(),
    *(Column(name) for name in ("Pod", "From", "To", "Strategy", "State")),
    Column("Age", "date"),
    Column("Reason"),
)
REQUEST_COLUMNS = (named(), Column("Action"), Column("State"), Column("Age", "date"), Column("Message"))
DEFAULT_COLUMNS = (named(), Column("Age"))


def _created(obj: Json, now: float) -> str:
    return age(obj["metadata"].get("creationTimestamp"), now)


def node_row(node: Json, now: float) -> Cells:
    ready = condition_of(node, "Ready")
    status = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    if spec_of(node).get("unschedulable"):
        status += ",SchedulingDisabled"
    info = status_of(node).get("nodeInfo") or {}
    kernel, architecture = info.get("kernelVersion") or "<unknown>", info.get("architecture")
    return [
        name_of(node),
        status,
        _roles(node),
        _created(node, now),
        info.get("kubeletVersion", ""),
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        info.get("osImage") or "<unknown>",
        f"{kernel} ({architecture})" if architecture else kernel,
        info.get("containerRuntimeVersion") or "<unknown>",
    ]


def _roles(node: Json) -> str:
    labels = labels_of(node)
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(labels.get("kubernetes.io/role", ""))
    return ",".join(sorted(role for role in roles if role)) or NONE


def _address(node: Json, kind: str) -> str:
    addresses = status_of(node).get("addresses") or ()
    return next((known.get("address", "") for known in addresses if known.get("type") == kind), NONE)


def event_row(event: Json, now: float) -> Cells:
    series = event.get("series") or {}
    first = age(event.get("firstTimestamp") or event.get("eventTime"), now)
    last = age(event.get("lastTimestamp"), now) if event.get("lastTimestamp") else first
    if series:
        last = age(series.get("lastObservedTime"), now)
    involved = event.get("involvedObject") or {}
    kind, name = str(involved.get("kind", "")).lower(), involved.get("name")
    return [
        last,
        event.get("type", ""),
        event.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        involved.get("fieldPath", ""),
        _source(event),
        str(event.get("message", "")).strip(),
        first,
        series.get("count") or event.get("count") or 1,
        name_of(event),
    ]


def _source(event: Json) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent", "")
    instance = source.get("host") or event.get("reportingInstance", "")
    return f"{component}, {instance}" if instance else component


def namespace_row(namespace: Json, now: float) -> Cells:
    return [name_of(namespace), status_of(namespace).get("phase", ""), _created(namespace, now)]


def configmap_row(configmap: Json, now: float) -> Cells:
    count = len(configmap.get("data") or {}) + len(configmap.get("binaryData") or {})
    return [name_of(configmap), str(count), _created(configmap, now)]


def lease_row(lease: Json, now: float) -> Cells:
    return [name_of(lease), spec_of(lease).get("holderIdentity", ""), _created(lease, now)]


def priorityclass_row(known: Json, now: float) -> Cells:
    policy = known.get("preemptionPolicy", "PreemptLowerPriority")
    return [name_of(known), known["value"], bool(known.get("globalDefault")), _created(known, now), policy]


def budget_row(budget: Json, now: float) -> Cells:
    spec = spec_of(budget)
    allowed = status_of(budget).get("disruptionsAllowed", 0)
    limits = [str(spec.get(field, "N/A")) for field in ("minAvailable", "maxUnavailable")]
    return [name_of(budget), *limits, allowed, _created(budget, now)]


def move_row(move: Json, now: float) -> Cells:
    shown = [spec_of(move).get(field, "") for field in ("pod", "from", "to", "strategy", "state", "reason")]
    return [name_of(move), *shown[:5], _created(move, now), shown[5]]


def request_row(request: Json, now: float) -> Cells:
    action, status = spec_of(request).get("action", ""), status_of(request)
    return [name_of(request), action, status.get("state", ""), _created(request, now), status.get("message", "")]


def default_row(obj: Json, now: float) -> Cells:
    return [name_of(obj), _created(obj, now)]

"""Makes a node's capacity what its label says: a kubelet can only report whole cores of the machine."""

from __future__ import annotations

from loadtests.workloads.api import LabApi

_GROUP = "/apis/admissionregistration.k8s.io/v1"
_NAME = {"name": "lab-capacity"}
_RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["nodes", "nodes/status"],
}
_LABELLED = 'has(object.metadata.labels) && "lab/cpu" in object.metadata.labels'
_TELLS = 'has(object.status) && has(object.status.capacity) && "cpu" in object.status.capacity'
_PATCH = '[JSONPatch{op: "replace", path: "/status/capacity/cpu", value: object.metadata.labels["lab/cpu"]}]'


async def set_capacities(api: LabApi) -> None:
    policy = {
        "metadata": _NAME,
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {"resourceRules": [_RULE]},
            "matchConditions": [
                {"name": "labelled", "expression": _LABELLED},
                {"name": "tells", "expression": _TELLS},
            ],
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": _PATCH}}],
        },
    }
    await api.create(f"{_GROUP}/mutatingadmissionpolicies", policy)
    binding = {"metadata": _NAME, "spec": {"policyName": _NAME["name"]}}
    await api.create(f"{_GROUP}/mutatingadmissionpolicybindings", binding)

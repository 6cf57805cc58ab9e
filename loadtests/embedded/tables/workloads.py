"""Tables of deployments, replica sets, stateful sets, daemon sets and jobs."""

from __future__ import annotations

from loadtests.embedded.objects import condition_of, name_of, seconds, spec_of, status_of
from loadtests.embedded.resources import Json
from loadtests.embedded.scale import selector_text
from loadtests.embedded.tables.cells import NONE, Cells, Column, age, containers_and_images, human_duration, named, wide

_TEMPLATE = wide("Containers", "Images", "Selector")

DEPLOYMENT_COLUMNS = (
    named(),
    Column("Ready"),
    Column("Up-to-date"),
    Column("Available"),
    Column("Age"),
    *_TEMPLATE,
)
REPLICASET_COLUMNS = (
    named(),
    Column("Desired", "integer"),
    Column("Current", "integer"),
    Column("Ready", "integer"),
    Column("Age"),
    *_TEMPLATE,
)
STATEFULSET_COLUMNS = (named(), Column("Ready"), Column("Age"), *wide("Containers", "Images"))
DAEMONSET_COLUMNS = (
    named(),
    Column("Desired", "integer"),
    Column("Current", "integer"),
    Column("Ready", "integer"),
    Column("Up-to-date", "integer"),
    Column("Available", "integer"),
    Column("Node Selector"),
    Column("Age"),
    *_TEMPLATE,
)
JOB_COLUMNS = (named(), Column("Status"), Column("Completions"), Column("Duration"), Column("Age"), *_TEMPLATE)


def _created(obj: Json, now: float) -> str:
    return age(obj["metadata"].get("creationTimestamp"), now)


def _template(obj: Json) -> Cells:
    spec = spec_of(obj)
    return [
        *containers_and_images((spec.get("template") or {}).get("spec") or {}),
        selector_text(spec.get("selector") or {}) or NONE,
    ]


def deployment_row(obj: Json, now: float) -> Cells:
    status = status_of(obj)
    ready = f"{status.get('readyReplicas', 0)}/{spec_of(obj).get('replicas', 1)}"
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    return [name_of(obj), ready, *counts, _created(obj, now), *_template(obj)]


def replicaset_row(obj: Json, now: float) -> Cells:
    status = status_of(obj)
    counts = [spec_of(obj).get("replicas", 1), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [name_of(obj), *counts, _created(obj, now), *_template(obj)]


def statefulset_row(obj: Json, now: float) -> Cells:
    ready = f"{status_of(obj).get('readyReplicas', 0)}/{spec_of(obj).get('replicas', 1)}"
    return [name_of(obj), ready, _created(obj, now), *_template(obj)[:2]]


def daemonset_row(obj: Json, now: float) -> Cells:
    status = status_of(obj)
    fields = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    pod_spec = (spec_of(obj).get("template") or {}).get("spec") or {}
    selector = ",".join(f"{key}={value}" for key, value in sorted((pod_spec.get("nodeSelector") or {}).items()))
    counts = [status.get(field, 0) for field in fields]
    return [name_of(obj), *counts, selector or NONE, _created(obj, now), *_template(obj)]


def job_row(obj: Json, now: float) -> Cells:
    spec, status = spec_of(obj), status_of(obj)
    started, ended = status.get("startTime"), status.get("completionTime")
    duration = human_duration((seconds(ended) if ended else now) - seconds(started)) if started else ""
    completions = f"{status.get('succeeded', 0)}/{spec.get('completions', 1)}"
    return [name_of(obj), _job_state(obj), completions, duration, _created(obj, now), *_template(obj)]


def _job_state(job: Json) -> str:
    for kind, word in (("Complete", "Complete"), ("Failed", "Failed"), ("Suspended", "Suspended")):
        condition = condition_of(job, kind)
        if condition is not None and condition.get("status") == "True":
            return word
    return "Terminating" if job["metadata"].get("deletionTimestamp") else "Running"

"""`rematch explain -f`: the counts, the decision, why here and why not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Command, Result
from tests.support.dump import list_of, node, pod, shop, shop_metrics, unhealthy


@pytest.fixture
def explain(rematch: Command, tmp_path: Path) -> Any:
    def about(pod: str, *objects: Any, options: tuple[object, ...] = ()) -> Result:
        dump = tmp_path / "dump.json"
        dump.write_text(json.dumps(list_of(*(objects or (*shop(), *shop_metrics())))))
        return rematch("explain", pod, "-f", dump, *options)

    return about


def test_the_counts_that_happiness_came_from_are_shown(explain: Any) -> None:
    result = explain("shop/web-1")

    assert (result.code, result.err) == (0, "")
    assert "(m + S) / (m + S + F) = (5 + " in result.out
    assert "20 by events" in result.out
    assert "UNHAPPY" in result.out
    assert "Liveness probe failed" in result.out
    assert "rematch (unhappy): n1 uses 98% of its cpu" in result.out
    assert "n1 -> n2" in result.out
    assert "Deployment web" in result.out


def test_a_happy_pod_is_explained_too(explain: Any) -> None:
    result = explain("db-1", options=("-n", "shop"))

    assert result.code == 0
    assert "-> happy" in result.out
    assert "Decision:" not in result.out


def test_json_has_the_same(explain: Any) -> None:
    view = json.loads(explain("shop/web-1", options=("-o", "json")).out)

    assert view["happiness"]["happy"] is False
    assert view["happiness"]["sources"][0]["failures"] == 20
    assert view["decision"]["kind"] == "rematch"
    assert view["placement"]["whyNot"]


MINE = [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "x", "uid": "uid-x", "controller": True}]
DAEMON = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "uid-agent", "controller": True}]
JOB = [{"apiVersion": "batch/v1", "kind": "Job", "name": "import", "uid": "uid-import", "controller": True}]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"owners": []}, "noController"),
        ({"owners": DAEMON}, "daemonSet"),
        ({"owners": JOB}, "job"),
        ({"annotations": {"rematch.io/do-not-move": "true"}}, "rematch.io/do-not-move"),
        ({"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}}, "safe-to-evict"),
        ({"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, "karpenter.sh/do-not-disrupt"),
        ({"annotations": {"descheduler.alpha.kubernetes.io/prefer-no-eviction": "true"}}, "prefer-no-eviction"),
        ({"annotations": {"kubernetes.io/config.mirror": "abc"}}, "mirrorPod"),
        ({"priorityClassName": "system-cluster-critical"}, "systemCritical"),
        ({"volumes": [{"name": "cache", "emptyDir": {}}]}, "localData: emptyDir:cache"),
        ({"volumes": [{"name": "logs", "hostPath": {"path": "/var/log"}}]}, "localData: hostPath:logs"),
        ({"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]}, "claim shop/d (it is not there)"),
        ({"schedulerName": "default-scheduler"}, "otherScheduler"),
        ({"namespace": "kube-system"}, "kube-system is never managed"),
    ],
)
def test_it_says_why_a_pod_is_not_moved(explain: Any, fields: dict[str, Any], named: str) -> None:
    guarded = pod("web-1", **fields)
    key = f"{guarded['metadata']['namespace']}/web-1"

    result = explain(key, node("n1"), node("n2"), guarded, unhealthy("web-1"))

    assert result.code == 0
    assert "Not moved:" in result.out
    assert named in result.out


def test_settings_lift_what_can_be_lifted(explain: Any, tmp_path: Path) -> None:
    settings = tmp_path / "s.yaml"
    settings.write_text("execution: {allowLocalData: true}")
    guarded = pod("web-1", volumes=[{"name": "cache", "emptyDir": {}}])

    result = explain("shop/web-1", node("n1"), guarded, options=("--settings", settings))

    assert "Not moved:" not in result.out


def test_a_pod_without_a_liveness_probe_has_no_happiness(explain: Any) -> None:
    plain = pod("web-1")
    del plain["spec"]["containers"][0]["livenessProbe"]

    assert "Happiness:  unknown" in explain("shop/web-1", node("n1"), plain).out


@pytest.mark.parametrize("name", ["web-1", "shop/web-7"])
def test_a_pod_that_is_not_there_gets_one_line(explain: Any, name: str) -> None:
    result = explain(name)

    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    assert name in result.err

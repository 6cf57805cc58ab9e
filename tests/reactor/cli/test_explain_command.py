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
    assert "20 by events, 0 by counters, 0 inferred from kills" in result.out
    assert "UNHAPPY" in result.out
    assert "Liveness probe failed" in result.out
    assert "rematch (unhappy): n1 uses 98% of its cpu" in result.out
    assert "n1 -> n2" in result.out
    assert "Deployment web" in result.out


def test_it_shows_what_the_likelihood_of_its_place_as_the_cause_is_made_of(explain: Any) -> None:
    text = explain("shop/web-1").out
    decision = json.loads(explain("shop/web-1", options=("-o", "json")).out)["decision"]

    assert f"Its place:  {decision['placementProbability']:.0%} likely the cause; odds " in text
    odds = 1.0
    for part in decision["evidence"]:
        odds *= part["ratio"]
        assert part["name"] in text
        assert part["text"] in text
    assert decision["placementProbability"] == pytest.approx(odds / (1 + odds))
    assert {"prior", "load", "probes"} <= {part["name"] for part in decision["evidence"]}


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_terminal_does_not_obey_the_author_of_an_event(explain: Any, output: str) -> None:
    message = "Liveness probe failed: \x1b[2J\x9b31m all is well"
    forged = unhealthy("web-1") | {"metadata": {"name": "forged", "namespace": "shop"}, "message": message}
    result = explain("shop/web-1", *shop(), *shop_metrics(), forged, options=("-o", output))

    assert r"\u001b[2J\u009b31m all is well" in result.out
    assert not {"\x1b", "\x9b"} & set(result.out)
    assert output == "text" or json.loads(result.out)["happiness"]["messages"][-1]["text"] == message


@pytest.mark.parametrize("output", ["text", "json"])
def test_files_without_events_do_not_call_a_pod_happy_without_saying_so(explain: Any, output: str) -> None:
    silent = [each for each in (*shop(), *shop_metrics()) if each["kind"] != "Event"]
    result = explain("shop/web-1", *silent, options=("-o", output))

    note = "note: the files have no Events: probes that failed before are not known"
    assert note in (result.out if output == "text" else result.err)


def test_a_distance_is_explained_where_there_is_one(explain: Any) -> None:
    """web-1 moves for its benefit; db-1 stays, and the other node is farther."""
    assert "\ndistance: between" not in explain("shop/web-1").out
    assert "\ndistance: between" in explain("shop/db-1").out


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


def test_why_a_pod_may_not_be_moved_is_told_once(explain: Any) -> None:
    others = pod("web-1", schedulerName="default-scheduler")

    text = explain("shop/web-1", node("n1"), node("n2"), others, unhealthy("web-1")).out

    assert "Decision:   wait (otherScheduler)\n" in text
    assert text.count("its schedulerName is default-scheduler") == 1
    assert "may move it" not in text
    assert "Plan:" not in text


def test_it_says_what_the_plan_does_with_an_unhappy_pod_that_stays(rematch: Command) -> None:
    """Of the pods of worker-2 another one leaves, and that is enough."""
    dump = Path(__file__).parents[3] / "docs" / "examples" / "overrun.json.gz"

    text = rematch("explain", "-f", dump, "app-14").out

    assert "Decision:   rematch (unhappy): " in text
    assert "Plan:       leaves it here: unhappy, but pods that leave relieve its node enough" in text
    assert "unhappy on worker-2: worker-1 would be clearly less loaded" in text
    assert "a rematch may move it" not in text
    placement = json.loads(rematch("explain", "-f", dump, "app-14", "-o", "json").out)["placement"]
    assert placement["kept"].startswith("leaves it here: unhappy, ")


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["web-7"], "no pod and no workload 'web-7'; did you mean shop/web-1, shop/web?"),
        (["bank/web-1"], "no pod and no workload 'web-1' in namespace bank; did you mean shop/web-1"),
        (["deploy/wep", "-n", "shop"], "no Deployment with pods 'wep' in namespace shop; did you mean shop/web?"),
        (["sts/web"], "no StatefulSet with pods 'web'; kubectl get pods -A lists all pods"),
        (["zzz"], "no pod and no workload 'zzz'; kubectl get pods -A lists all pods"),
        (["a/b/c"], "'a/b/c' names no pod; write NAME, NAMESPACE/NAME or KIND/NAME"),
        (["/web"], "names no pod"),
        (["w" * 300], "names no pod: String should have at most 253 characters"),
    ],
)
def test_what_is_not_found_gets_one_line_with_similar_names(explain: Any, arguments: list[str], message: str) -> None:
    result = explain(arguments[0], options=tuple(arguments[1:]))

    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    assert message in result.err


@pytest.mark.parametrize(
    "arguments",
    [
        *(["web-1"], ["shop/web-1"], ["web-1", "-n", "shop"], ["web"], ["shop/web"], ["we"], ["pod/web-1"]),
        *(["deploy/web"], ["deployment.apps/web", "-n", "shop"], ["rs/web-1a2b"]),
    ],
    ids=" ".join,
)
def test_a_unique_match_explains_that_pod(explain: Any, arguments: list[str]) -> None:
    result = explain(arguments[0], options=tuple(arguments[1:]))

    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("Pod:        shop/web-1 ")


def several() -> list[Any]:
    others = [pod(f"web-{number}") for number in (2, 3, 10)]
    return [*shop(), *shop_metrics(), *others, unhealthy("web-3", count=4)]


@pytest.mark.parametrize("name", ["deploy/web", "web", "web-", "shop/web"])
def test_several_matches_are_listed_and_the_unhappiest_is_explained(explain: Any, name: str) -> None:
    result = explain(name, *several())

    assert result.out.startswith("4 pods match, unhappiest first")
    listed = [line.split()[0] for line in result.out.splitlines()[3:7]]
    assert listed == ["shop/web-1", "shop/web-3", "shop/web-10", "shop/web-2"]
    assert "\nPod:        shop/web-1 " in result.out
    assert result.out.count("Pod:  ") == 1


def test_an_exact_name_beats_a_prefix_and_json_lists_several(explain: Any) -> None:
    assert json.loads(explain("web-1", *several(), options=("-o", "json")).out)["name"] == "web-1"

    document = json.loads(explain("web", *several(), options=("-o", "json")).out)
    assert [found["name"] for found in document["pods"]] == ["web-1", "web-3", "web-10", "web-2"]
    assert (document["total"], document["unhappiest"]["name"]) == (4, "web-1")


def test_of_equal_names_the_one_in_namespace_default_is_meant(explain: Any) -> None:
    both = [node("n1"), pod("web-1"), pod("web-1", namespace="default"), pod("db-1", namespace="bank")]
    both[2]["metadata"]["uid"] = "another"

    assert "Pod:        default/web-1 " in explain("web-1", *both).out
    assert "Pod:        bank/db-1 " in explain("db-1", *both).out


def test_a_deployment_that_the_files_do_not_contain_is_known_by_its_replica_set(explain: Any) -> None:
    assert "Pod:        shop/web-1 " in explain("deploy/web", node("n1"), pod("web-1")).out

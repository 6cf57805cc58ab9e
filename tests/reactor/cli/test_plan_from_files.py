"""`rematch plan -f`: a cluster is a file, too."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.clock import NOW
from tests.support.command import Command
from tests.support.dump import Json, list_of, node, pod, shop, shop_metrics, stamp, unhealthy

OWNERS = ("ReplicaSet", "Deployment")


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def to(name: str, content: Any) -> Path:
        path = tmp_path / name
        data = content if isinstance(content, bytes) else json.dumps(content, indent=2).encode()
        path.write_bytes(data)
        return path

    return to


def without(*kinds: str) -> list[Json]:
    return [each for each in shop() if each["kind"] not in kinds]


def moves(out: str) -> list[tuple[str, str | None, str]]:
    return [(move["pod"], move["from"], move["to"]) for move in json.loads(out)["moves"]]


MOVED = [("shop/web-1", "n1", "n2")]
NO_EVENTS = "note: the files have no Events"


def test_files_without_events_are_said_to_know_no_failed_probes(rematch: Command, write: Any) -> None:
    other = unhealthy("web-1") | {"reason": "Pulled", "message": "Container image already present"}
    silent, quiet = without("Event"), [*without("Event"), other]

    assert NO_EVENTS in rematch("plan", "-f", write("silent.json", list_of(*silent))).out
    assert NO_EVENTS not in rematch("plan", "-f", write("quiet.json", list_of(*quiet))).out


def test_the_json_is_the_public_format(rematch: Command, write: Any) -> None:
    result = rematch("plan", "-f", write("d.json", list_of(*shop())), "-f", write("m.json", list_of(*shop_metrics())),
                     "-o", "json")  # fmt: skip

    assert (result.code, result.err) == (0, "")
    plan = json.loads(result.out)
    assert {"planner", "moves", "stays", "unplaced", "certificate", "before", "after"} <= plan.keys()
    assert plan["planner"] == "stable"
    (move,) = plan["moves"]
    assert (move["pod"], move["uid"], move["from"], move["to"]) == ("shop/web-1", "uid-web-1", "n1", "n2")
    assert move["reasons"]
    assert [set(stay) for stay in plan["stays"]] == [{"pod", "uid", "node", "reason"}]
    assert plan["certificate"]["feasible"] is True
    assert plan["certificate"]["blockingPairs"] == 0
    assert plan["before"]["nodeLoad"].keys() == plan["after"]["nodeLoad"].keys() == {"n1", "n2"}
    assert plan["needs"] == "metrics"
    assert [one["pod"] for one in plan["unhappy"]] == ["shop/web-1"]
    assert plan["waits"] == []


def everything(write: Any) -> dict[str, list[object]]:
    """Each way to hand over the same cluster."""
    objects = [*shop(), *shop_metrics()]
    pods, others = [each for each in objects if each["kind"] == "Pod"], [o for o in objects if o["kind"] != "Pod"]
    raw = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [_bare(each) for each in pods]}
    return {
        "one list": ["-f", write("all.json", list_of(*objects))],
        "several files": ["-f", write("a.json", list_of(*pods)), "-f", write("b.json", list_of(*others))],
        "a list of lists": ["-f", write("lists.json", list_of(list_of(*pods), list_of(*others)))],
        "an array": ["-f", write("array.json", [list_of(*pods), *others])],
        "an API list": ["-f", write("raw.json", list_of(raw, *others))],
        "documents in a row": ["-f", write("row.json", b"\n".join(json.dumps(each).encode() for each in objects))],
        "gzip": ["-f", write("all.json.gz", gzip.compress(json.dumps(list_of(*objects)).encode()))],
        "unknown kinds": ["-f", write("more.json", list_of(*objects, *UNKNOWN_OBJECTS))],
        "twice": ["-f", write("c.json", list_of(*objects)), "-f", write("d.json", list_of(*objects))],
    }


UNKNOWN_OBJECTS = [
    {"apiVersion": "example.com/v1", "kind": "Pod", "metadata": {"name": "not-ours"}},
    {"apiVersion": "cilium.io/v2", "kind": "CiliumNode", "metadata": {"name": "n1"}, "spec": {}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"}, "data": {}},
]


def _bare(each: Json) -> Json:
    return {key: value for key, value in each.items() if key not in ("kind", "apiVersion")}


@pytest.mark.parametrize(
    "way",
    [
        "one list",
        "several files",
        "a list of lists",
        "an array",
        "an API list",
        "documents in a row",
        "gzip",
        "unknown kinds",
        "twice",
    ],
)
def test_the_plan_is_the_same_however_the_cluster_is_handed_over(rematch: Command, write: Any, way: str) -> None:
    result = rematch("plan", *everything(write)[way], "-o", "json")

    assert (result.code, result.err) == (0, "")
    assert moves(result.out) == MOVED


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_is_a_file_too(rematch: Command, write: Any, pack: Any) -> None:
    dump = pack(json.dumps(list_of(*shop())).encode())
    metrics = write("m.json", list_of(*shop_metrics()))

    assert moves(rematch("plan", "-f", "-", "-f", metrics, "-o", "json", stdin=dump).out) == MOVED


def test_without_metrics_needs_are_requests_and_the_output_says_so(rematch: Command, write: Any) -> None:
    dump = write("d.json", list_of(*shop()))

    table = rematch("plan", "-f", dump).out
    plan = json.loads(rematch("plan", "-f", dump, "-o", "json").out)

    assert "needs are the pods' requests" in table
    assert plan["needs"] == "requests"
    assert any("requests" in note for note in plan["notes"])


def test_needs_can_be_chosen(rematch: Command, write: Any) -> None:
    files = ["-f", write("d.json", list_of(*shop())), "-f", write("m.json", list_of(*shop_metrics()))]

    assert json.loads(rematch("plan", *files, "--needs", "requests", "-o", "json").out)["needs"] == "requests"
    alone = json.loads(rematch("plan", *files[:2], "--needs", "metrics", "-o", "json").out)
    assert alone["moves"] == []
    assert [wait["reason"] for wait in alone["waits"]] == ["noFreshMetrics"]


@pytest.mark.parametrize("missing", [OWNERS, ("ReplicaSet",)])
def test_owners_missing_from_all_files_are_assumed_and_the_plan_says_so(
    rematch: Command, write: Any, missing: tuple[str, ...]
) -> None:
    dump = write("d.json", list_of(*without(*missing)))

    plan = rematch("plan", "-f", dump, "-o", "json")
    table = rematch("plan", "-f", dump)

    assert moves(plan.out) == MOVED
    assert any("no ReplicaSet" in note for note in json.loads(plan.out)["notes"])
    assert "no ReplicaSet" in table.out


def test_an_owner_missing_among_others_is_gone(rematch: Command, write: Any) -> None:
    objects = [each for each in shop() if each["metadata"]["name"] != "web-1a2b"]

    plan = json.loads(rematch("plan", "-f", write("d.json", list_of(*objects)), "-o", "json").out)

    assert plan["moves"] == []
    assert [(wait["reason"], wait["text"].partition(":")[0]) for wait in plan["waits"]] == [
        ("protected", "controllerGone")
    ]
    assert not any("taken to exist" in note for note in plan["notes"])


def test_pending_pods_are_placed(rematch: Command, write: Any) -> None:
    dump = write("d.json", list_of(node("n1"), pod("web-9", on=None)))

    assert moves(rematch("plan", "-f", dump, "-o", "json").out) == [("shop/web-9", None, "n1")]
    assert "<pending>" in rematch("plan", "-f", dump).out


def test_now_is_the_newest_time_in_the_files_unless_given(rematch: Command, write: Any) -> None:
    dump = write("d.json", list_of(*shop()))

    fresh = json.loads(rematch("plan", "-f", dump, "-o", "json").out)
    later = json.loads(rematch("plan", "-f", dump, "-o", "json", "--now", stamp(NOW + 3600)).out)

    assert [one["pod"] for one in fresh["unhappy"]] == ["shop/web-1"]
    assert later["unhappy"] == []


def test_yaml_says_the_same_as_json(rematch: Command, write: Any) -> None:
    dump = write("d.json", list_of(*shop()))

    as_yaml = yaml.safe_load(rematch("plan", "-f", dump, "-o", "yaml").out)

    assert as_yaml == json.loads(rematch("plan", "-f", dump, "-o", "json").out)


def test_wide_has_more_than_the_table(rematch: Command, write: Any) -> None:
    dump = write("d.json", list_of(*shop()))

    table, wide = (rematch("plan", "-f", dump, "-o", output).out for output in ("table", "wide"))

    assert table.splitlines()[0].split() == ["POD", "FROM", "TO", "WHY"]
    assert "STAYS" not in table
    assert "STAYS" in wide
    assert "1 to move, 1 stay, 0 without a node" in table


def test_settings_and_options_reach_the_plan(rematch: Command, write: Any) -> None:
    dump = write("d.json", list_of(*shop()))
    settings = write("s.yaml", b"managed: {namespaces: [bank]}\n")

    plan = json.loads(rematch("plan", "-f", dump, "--settings", settings, "-o", "json").out)

    assert plan["moves"] == []
    assert plan["unhappy"] == []
    assert moves(rematch("plan", "-f", dump, "--scope", "unhappy", "--planner", "stable", "-o", "json").out) == MOVED


def test_a_cluster_without_pods_is_a_plan_without_moves(rematch: Command, write: Any) -> None:
    result = rematch("plan", "-f", write("d.json", list_of(node("n1"))), "-o", "json")

    assert (result.code, moves(result.out)) == (0, [])


def test_pods_on_nodes_that_the_files_do_not_hold_stay(rematch: Command, write: Any) -> None:
    result = rematch("plan", "-f", write("d.json", list_of(node("n1"), pod("web-1", on="n7"))), "-o", "json")

    assert moves(result.out) == []
    assert json.loads(result.out)["stays"][0]["node"] == "n7"


def test_protected_pods_are_named(rematch: Command, write: Any) -> None:
    guarded = pod("web-1", annotations={"rematch.io/do-not-move": "true"})
    dump = write("d.json", list_of(node("n1"), node("n2"), guarded, unhealthy("web-1")))

    (wait,) = json.loads(rematch("plan", "-f", dump, "-o", "json").out)["waits"]

    assert wait["reason"] == "protected"
    assert "rematch.io/do-not-move" in wait["text"]


WHOLE = json.dumps(list_of(*shop()), indent=2).encode()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (WHOLE[: len(WHOLE) // 2], ("truncated",)),
        (WHOLE[:-3], ("truncated",)),
        (gzip.compress(WHOLE)[:-20], ("gzip",)),
        (b"", ("empty",)),
        (b"   \n", ("empty",)),
        (b"apiVersion: v1\nkind: List\n", ("line 1", "YAML")),
        (b"<html>502 Bad Gateway</html>", ("line 1",)),
        (b'{"items": []}', ("kind",)),
        (b'{"kind": "List", "items": 7}', ("line 1",)),
        (b'"a string"', ("line 1",)),
        (list_of({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": 7}}), ("Node", "metadata.uid")),
        (list_of(node("n1"), pod("web-1", priority="high")), ("Pod shop/web-1", "spec.priority")),
        (list_of(node("n1", cpu="lots")), ("Node n1", "status.", "lots")),
        (list_of(pod("web-1")), ("no nodes",)),
    ],
)
def test_a_wrong_file_gets_one_line_with_the_place_and_nothing_else(
    rematch: Command, write: Any, content: Any, expected: tuple[str, ...]
) -> None:
    path = write("wrong.json", content)

    result = rematch("plan", "-f", path, "-o", "json")

    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    assert result.err.startswith("error: ")
    assert str(path) in result.err
    for part in expected:
        assert part in result.err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--planner", "nope"], "no planner 'nope' is installed"),
        (["--now", "yesterday"], "--now"),
        (["--now", "2026-11-16T12:00:00"], "time zone"),
        (["--settings", "missing.yaml"], "missing.yaml"),
        (["-f", "missing.json"], "missing.json"),
    ],
)
def test_a_wrong_argument_gets_one_line(rematch: Command, write: Any, arguments: list[str], expected: str) -> None:
    result = rematch("plan", "-f", write("d.json", list_of(*shop())), *arguments)

    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    assert expected in result.err


def test_wrong_settings_are_named_with_their_paths(rematch: Command, write: Any) -> None:
    settings = write("s.yaml", b"mode: fly\nhappiness: {threshold: 9}\n")

    result = rematch("plan", "-f", write("d.json", list_of(*shop())), "--settings", settings)

    assert result.code == 2
    assert result.err.count("\n") == 1
    assert "mode" in result.err
    assert "happiness.threshold" in result.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["-f", "d.json", "--apply"],
        ["-f", "d.json", "--yes"],
        ["-f", "d.json", "--store", "rematch.db"],
        ["--force"],
        ["-f", "d.json", "--configmap", "rematch/rematch"],
        ["--settings", "s.yaml", "--configmap", "rematch/rematch"],
        ["--configmap", "rematch"],
        ["-o", "toml"],
    ],
    ids=" ".join,
)
def test_options_that_exclude_each_other_are_refused(rematch: Command, arguments: list[str]) -> None:
    result = rematch("plan", *arguments)

    assert (result.code, result.out) == (2, "")
    assert "Error:" in result.err


@pytest.mark.timeout(30)
def test_balance_ends_where_it_repeated_its_moves_for_ever(rematch: Command) -> None:
    """15 pods on 7 nodes of three sizes: two moves that gain alone and not together."""
    clusters = Path(__file__).parents[2] / "data" / "clusters"
    files = [clusters / f"balance-never-ends.{part}.json.gz" for part in ("dump", "metrics")]

    result = rematch("plan", "-f", files[0], "-f", files[1], "--planner", "balance", "-o", "json")

    assert (result.code, result.err) == (0, "")
    plan = json.loads(result.out)
    assert plan["certificate"]["feasible"]
    assert plan["after"]["spread"] < plan["before"]["spread"] / 2

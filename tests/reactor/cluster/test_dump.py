from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from reactor.cluster.dump import read_dump
from reactor.errors import InputError
from tests.reactor.cluster.truth import pod_json

STAMP = 1794790178.0  # 2026-11-16T00:49:38Z
EXCERPT = Path(__file__).parents[2] / "data" / "kubelet" / "events-watch-excerpt.json"
NODE = {
    "kind": "Node",
    "apiVersion": "v1",
    "metadata": {"name": "n1", "uid": "nu"},
    "status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-16T01:00:00Z"}]},
}
POD_METRICS = {
    "kind": "PodMetrics",
    "apiVersion": "metrics.k8s.io/v1beta1",
    "metadata": {"name": "a", "namespace": "default"},
    "timestamp": "2026-11-16T01:00:30Z",
    "containers": [{"name": "app", "usage": {"cpu": "1", "memory": "1Ki"}}],
}


def listed(*items: dict[str, Any], kind: str = "List") -> dict[str, Any]:
    return {"kind": kind, "apiVersion": "v1", "metadata": {}, "items": list(items)}


def write(folder: Path, content: Any, name: str = "dump.json") -> str:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content, indent=4).encode())
    return str(path)


def test_one_list_of_several_kinds(tmp_path: Path) -> None:
    dump = read_dump([write(tmp_path, listed(NODE, pod_json("a"), POD_METRICS))])
    assert list(dump.view.nodes) == ["n1"]
    assert list(dump.view.pods) == ["uid-a"]
    [usage] = dump.pod_usage
    assert (usage.pod, usage.cpu, usage.memory) == ("a", 1.0, 1024.0)
    assert dump.view.at == STAMP + 652, "the metrics are the newest"


def test_lists_of_lists_arrays_single_objects_and_documents_in_a_row(tmp_path: Path) -> None:
    bare = {key: value for key, value in pod_json("bare").items() if key not in ("kind", "apiVersion")}
    nested = listed(listed(pod_json("a"), kind="PodList"), listed(bare, kind="PodList"), listed(kind="NodeList"))
    several = json.dumps([listed(pod_json("b")), pod_json("c")]) + "\n" + json.dumps(pod_json("d"), indent=2)
    row = json.dumps(pod_json("e")) + json.dumps(pod_json("f"))
    dump = read_dump(
        [
            write(tmp_path, nested, "1"),
            write(tmp_path, several.encode(), "2"),
            write(tmp_path, row.encode(), "3"),
            write(tmp_path, NODE, "4"),
        ]
    )
    assert sorted(dump.view.pods) == [f"uid-{name}" for name in ("a", "b", "bare", "c", "d", "e", "f")]
    assert list(dump.view.nodes) == ["n1"]


def test_gzip_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress(json.dumps(listed(pod_json("a"))).encode())

    class Stdin:
        buffer = io.BytesIO(gzip.compress(json.dumps(listed(pod_json("b"))).encode()))

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert sorted(read_dump([write(tmp_path, packed), "-"]).view.pods) == ["uid-a", "uid-b"]


def test_unknown_kinds_groups_and_fields_are_passed_over_and_counted(tmp_path: Path) -> None:
    objects = listed(
        pod_json("a", spec={"fieldOfTheFuture": {"x": [1]}}) | {"apiVersion": "v9"},
        {"kind": "Endpoints", "apiVersion": "v1", "metadata": {}},
        {"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "spec": "something else"},
        {
            "kind": "PodDisruptionBudget",
            "apiVersion": "policy/v1beta1",
            "metadata": {"name": "b", "namespace": "default"},
        },
    )
    dump = read_dump([write(tmp_path, objects)])
    assert list(dump.view.pods) == ["uid-a"]
    assert [budget.name for budget in dump.view.pdbs] == ["b"]
    assert dump.ignored == {"Endpoints": 1, "Job": 1}


def test_recorded_watch_events_are_read_too() -> None:
    dump = read_dump([str(EXCERPT)])
    assert {event.reason for event in dump.events} == {"Unhealthy", "Killing"}, "as the mirror keeps them"
    assert dump.view.at >= max(event.last for event in dump.events)


def test_what_a_recorded_watch_deletes_is_gone(tmp_path: Path) -> None:
    lines = [("ADDED", pod_json("a")), ("ADDED", pod_json("b")), ("DELETED", pod_json("a"))]
    text = "\n".join(json.dumps({"type": kind, "object": found}) for kind, found in lines).encode()
    assert list(read_dump([write(tmp_path, text)]).view.pods) == ["uid-b"]


def test_of_an_object_that_comes_twice_the_last_counts(tmp_path: Path) -> None:
    old = write(tmp_path, listed(pod_json("a"), POD_METRICS), "1")
    changed = pod_json("a", spec={"nodeName": "n"}, metadata={"resourceVersion": "2"})
    new = write(tmp_path, listed(changed, POD_METRICS | {"timestamp": "2026-11-16T02:00:00Z"}), "2")
    dump = read_dump([old, new])
    assert dump.view.pods["uid-a"].node == "n"
    assert len(dump.pod_usage) == 1


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b'{"kind": "List",\n "items": [', "line 2, column 12 (byte 28): ends too early: the file is truncated"),
        (b'{"kind": "List",\n "items": [}]}', "line 2, column 12 (byte 28): not JSON: "),
        (b'{"kind":"List","items":[]} oops', "line 1, column 28 (byte 27): not JSON: invalid character"),
        (b"apiVersion: v1\nkind: List\n", "looks like YAML"),
        (b"---\nkind: List\n", "looks like YAML"),
        (b"NAME READY\nweb-1 1/1\n", "line 1, column 1 (byte 0): not JSON"),
        (b'{"kind": "List", "items": 7}', "line 1, column 27 (byte 26): Expected `array | null`, got `int`"),
        (b'"text"', "Expected `object`, got `str`"),
        (b'{"foo": 1}', "an object without kind"),
        (b"[[1]]", "line 1, column 3 (byte 2): Expected `object`, got `int`"),
        (b"[" * 100_000, "nested too deeply"),
        (b"\x1f\x8b\x08garbage", "damaged gzip file"),
    ],
)
def test_a_wrong_file_gets_one_line_with_the_position(tmp_path: Path, content: bytes, complaint: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(InputError) as caught:
        read_dump([path])
    assert str(caught.value).startswith(f"{path}: ")
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_truncated_file_at_any_position_is_never_taken_for_whole(tmp_path: Path) -> None:
    whole = json.dumps(listed(NODE, pod_json("a"))).encode()
    for end in range(1, len(whole) - 1, 7):
        with pytest.raises(InputError, match="truncated"):
            read_dump([write(tmp_path, whole[:end])])


def test_a_wrong_type_names_object_field_and_position(tmp_path: Path) -> None:
    wrong = listed(pod_json("good"), pod_json("bad", spec={"nodeName": 7}))
    path = write(tmp_path, json.dumps(wrong).encode())
    with pytest.raises(InputError) as caught:
        read_dump([path])
    start = json.dumps(wrong).index(json.dumps(pod_json("bad", spec={"nodeName": 7})))
    assert str(caught.value) == (
        f"{path}: line 1, column {start + 1} (byte {start}):"
        " Pod default/bad: spec.nodeName: Expected `str | null`, got `int`"
    )


def test_wrong_metrics_are_named(tmp_path: Path) -> None:
    wrong = POD_METRICS | {"containers": [{"usage": {"cpu": "lots"}}]}
    with pytest.raises(InputError, match=r"PodMetrics default/a: usage\.cpu: 'lots' is not a quantity"):
        read_dump([write(tmp_path, wrong)])
    with pytest.raises(InputError, match=r"PodMetrics default/a: timestamp: Invalid RFC3339"):
        read_dump([write(tmp_path, POD_METRICS | {"timestamp": "now"})])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.json: cannot be read: No such file"):
        read_dump([str(tmp_path / "none.json")])

"""Patches and selectors as pure functions."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtests.embedded import ApiError
from loadtests.embedded.patching import json_patch, merge_patch
from loadtests.embedded.scale import selector_text
from loadtests.embedded.selectors import parse_label_selector, selector_of
from loadtests.embedded.strategic_merge import strategic_merge

Obj = dict[str, Any]

json_values = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text("abc", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)
json_objects = st.dictionaries(st.text("abc", max_size=2), json_values, max_size=4)


@given(json_objects, json_objects)
def test_a_merge_patch_made_of_an_object_leads_to_it_and_leaves_its_input_alone(before: Obj, after: Obj) -> None:
    original = copy.deepcopy(before)
    patch = {**dict.fromkeys(before), **after}
    flat = {key: value for key, value in patch.items() if not isinstance(value, dict)}
    result = merge_patch(before, flat)
    assert before == original
    for key, value in flat.items():
        assert result.get(key) == value


@given(json_objects, json_objects)
def test_a_strategic_patch_twice_is_a_strategic_patch_once(before: Obj, patch: Obj) -> None:
    original = copy.deepcopy(before)
    once = strategic_merge(before, patch)
    assert strategic_merge(once, patch) == once
    assert before == original


def test_strategic_lists_merge_replace_and_lose_entries() -> None:
    before = {"conditions": [{"type": "A", "status": "1"}, {"type": "B", "status": "2"}], "finalizers": ["x"]}
    patch = {
        "conditions": [{"type": "B", "status": "3"}, {"type": "A", "$patch": "delete"}, {"type": "C", "status": "4"}],
        "finalizers": ["y", "x"],
    }
    assert strategic_merge(before, patch) == {
        "conditions": [{"type": "B", "status": "3"}, {"type": "C", "status": "4"}],
        "finalizers": ["x", "y"],
    }
    replaced = strategic_merge(before, {"conditions": [{"$patch": "replace"}, {"type": "D"}]})
    assert replaced["conditions"] == [{"type": "D"}]
    assert strategic_merge(before, {"$deleteFromPrimitiveList/finalizers": ["x"]})["finalizers"] == []


def test_strategic_retain_keys_and_ports() -> None:
    before = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}
    patch = {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}
    assert strategic_merge(before, patch) == {"strategy": {"type": "Recreate"}}
    container = {"ports": [{"containerPort": 80, "name": "web"}]}
    merged = strategic_merge(container, {"ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81}]})
    assert merged["ports"] == [{"containerPort": 80, "name": "web", "protocol": "TCP"}, {"containerPort": 81}]


def test_json_patch_on_lists() -> None:
    before = {"l": [1, 2, 3], "m": {"k": 1}}
    steps = [
        {"op": "add", "path": "/l/1", "value": 9},
        {"op": "add", "path": "/l/-", "value": 4},
        {"op": "remove", "path": "/l/0"},
        {"op": "replace", "path": "/l/0", "value": 8},
        {"op": "move", "from": "/m/k", "path": "/n"},
    ]
    assert json_patch(before, steps) == {"l": [8, 2, 3, 4], "m": {}, "n": 1}
    assert before == {"l": [1, 2, 3], "m": {"k": 1}}


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("", {}, True),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("a=b, c notin (d,e)", {"a": "b"}, True),
        ("a!=b", {}, True),
        ("n>3", {"n": "4"}, True),
        ("n<3", {"n": "x"}, False),
        ("example.com/a-b=c.d_e", {"example.com/a-b": "c.d_e"}, True),
        ("a=", {"a": ""}, True),
    ],
)
def test_label_selector_texts(text: str, labels: dict[str, str], matches: bool) -> None:
    assert parse_label_selector(text)(labels) is matches


def test_selector_objects_and_their_text() -> None:
    expressions = [
        {"key": "t", "operator": "In", "values": ["y", "x"]},
        {"key": "u", "operator": "Exists"},
        {"key": "v", "operator": "DoesNotExist"},
    ]
    selector = {"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": expressions}
    text = selector_text(selector)
    assert text == "a=1,b=2,t in (x,y),u,!v"
    labels = {"a": "1", "b": "2", "t": "x", "u": ""}
    assert selector_of(selector)(labels)
    assert parse_label_selector(text)(labels)
    assert not selector_of({})(labels)
    assert not selector_of(None)(labels)


def test_a_selector_with_an_unknown_operator_is_refused() -> None:
    with pytest.raises(ApiError):
        selector_of({"matchExpressions": [{"key": "a", "operator": "Near", "values": []}]})

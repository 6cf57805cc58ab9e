from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from loadtests.same_plans.cases import Coverage, case_by_id, make_case
from loadtests.same_plans.comparison import compare, compare_with_revision, read_entries
from loadtests.same_plans.draw import LEFT_OUT, PLANNERS, Json
from loadtests.same_plans.fingerprint import Entry, Result, Sentence, canonical
from loadtests.same_plans.project import PLACING, RESERVED, installed_planners
from reactor.errors import InputError

INPUTS = [
    ("problem-00000", "ac37ef951bbe"),
    ("problem-00001", "3baffcef4f0c"),
    ("problem-00999", "c80addfc3917"),
    ("snapshot-00000", "8fccc3d58480"),
    ("snapshot-00001", "0d8c66695171"),
    ("snapshot-00999", "9218534770d2"),
]
NAMES = ("shop/cart-1", "shop/cart-10", "node-2")


def sentence(text: str) -> str:
    return fingerprint({"why": Sentence(text)})


def fingerprint(parts: Json) -> str:
    return Entry.of("case", "problem", Result(NAMES, parts).without_words()).sha256


def entry(case: str = "snapshot-00000", **parts: str) -> Entry:
    return Entry(
        case, "snapshot", "-".join(parts.values()), {name.replace("_", " "): text for name, text in parts.items()}
    )


@pytest.mark.parametrize("case", ["problem-00003", "problem-00007", "snapshot-00092"])
def test_a_case_has_the_same_fingerprint_twice(case: str) -> None:
    first, second = case_by_id(case), case_by_id(case)
    assert first.given == second.given
    assert first.entry == second.entry
    assert compare([first.entry], [second.entry]).identical


@pytest.mark.parametrize(("case", "sha256"), INPUTS)
def test_the_inputs_are_those_of_older_fingerprints(case: str, sha256: str) -> None:
    """Another order of draws would make every case differ from older versions."""
    assert hashlib.sha256(canonical(case_by_id(case).given).encode()).hexdigest()[:12] == sha256


def test_wording_does_not_count() -> None:
    assert sentence("node-2 has room for 3 pods") == sentence("There are 3 pods, says node-2.")


@pytest.mark.parametrize(
    "other",
    [
        "node-2 has room for 4 pods",
        "node-2 has room for 3.000001 pods",
        "node-2 has room for pods",
        "shop/cart-1 has room for 3 pods",
        "a node has room for 3 pods",
    ],
)
def test_numbers_and_names_count(other: str) -> None:
    assert sentence("node-2 has room for 3 pods") != sentence(other)


def test_the_digits_of_a_name_are_no_number() -> None:
    found = Result(NAMES, {"why": Sentence("shop/cart-10 needs 0.5 cores of node-2")}).without_words()
    assert found == {"why": {"names": ["shop/cart-10", "node-2"], "numbers": [0.5]}}


def test_codes_count_and_the_text_after_them_does_not() -> None:
    def reason(text: str) -> str:
        return fingerprint({"fixed": Sentence.with_code(text)})

    assert reason("cooldown: wait") == reason("cooldown: be patient")
    assert reason("cooldown: wait") != reason("halted: wait")
    assert reason("protected: job: a Job") == reason("protected: job: runs to its end")
    assert reason("protected: job: a Job") != reason("protected: daemonSet: a Job")


def test_floats_count_with_nine_decimals() -> None:
    assert fingerprint({"load": 0.1 + 0.2}) == fingerprint({"load": 0.3})
    assert fingerprint({"load": -0.0}) == fingerprint({"load": 0.0})
    assert fingerprint({"load": 0.3}) != fingerprint({"load": 0.30000001})


def test_the_comparison_names_cases_and_parts() -> None:
    old = [entry("a", plan="1", fits="1"), entry("b", plan="1"), entry("c", plan="1")]
    new = [entry("a", plan="1", fits="2"), entry("b", plan="1"), entry("d", plan="1")]
    found = compare(old, new)
    assert not found.identical
    lines = ["a: fits", "c: only in the old version", "d: only in the new version"]
    assert sorted(str(found).splitlines()) == sorted([*lines, "0 problems, 3 snapshots: 3 differ"])


def test_placing_of_reserved_replacements_is_counted_apart() -> None:
    old = [entry("a", placing="1"), entry("b", placing="1")]
    new = [entry("a", placing="2", reserved_replacements="x"), entry("b", placing="2")]
    assert RESERVED in new[0].parts
    assert PLACING in new[0].parts
    last = str(compare(old, new)).splitlines()[-1]
    assert last == "0 problems, 2 snapshots: 1 differ, 1 differ only in placing of reserved replacements"


def test_every_installed_planner_has_random_problems() -> None:
    assert {*installed_planners()} == {*PLANNERS, *LEFT_OUT}


def test_coverage_counts_plans_and_decisions() -> None:
    coverage = Coverage()
    for kind in ("problem", "snapshot"):
        coverage.add(make_case(kind, 0))
    assert coverage.planners["stable"]["runs"] == 1
    assert coverage.snapshots["all"] == 1


def test_entries_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "old.json"
    file.write_text(json.dumps({"entries": [entry(plan="1").to_json()]}))
    assert read_entries(file) == [entry(plan="1")]
    file.write_text("[]")
    with pytest.raises(InputError, match="does not contain fingerprints"):
        read_entries(file)


@pytest.mark.parametrize("case", ["problem", "cluster-1", "problem-x"])
def test_an_unknown_case_is_refused(case: str) -> None:
    with pytest.raises(InputError, match="no case"):
        case_by_id(case)


def test_an_unknown_revision_is_refused() -> None:
    with pytest.raises(InputError, match="no such revision"):
        compare_with_revision("no-such-revision", [])

"""docs/evidence.md is what its command makes of the result files, and says so where there are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loadtests.evidence.claims import Claim, Verdict, Where
from loadtests.evidence.page import SOURCES, page
from loadtests.evidence.result_files import ResultFiles
from reactor.errors import InputError

DOCS = Path(__file__).parents[3] / "docs"
ROWS = [(source, claim) for source in SOURCES for claim in source.claims]


def keep(folder: Path, name: str, content: Any) -> ResultFiles:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return ResultFiles(folder)


def test_the_page_is_what_the_command_makes() -> None:
    made = page(ResultFiles(DOCS))
    assert (DOCS / "evidence.md").read_text() == made, "run: rematch lab evidence"


def test_every_row_of_a_source_has_a_name_of_its_own() -> None:
    for source in SOURCES:
        names = [claim.name for claim in source.claims]
        assert len(names) == len(set(names))


def test_without_result_files_nothing_is_shown(tmp_path: Path) -> None:
    found = [claim.row(ResultFiles(tmp_path)).finding for _, claim in ROWS]
    assert {each.verdict for each in found} == {Verdict.NOT_SHOWN, Verdict.RULED_OUT}
    assert all(each.why and each.where is Where.NOWHERE for each in found)
    assert f"| all | {len(ROWS)} | - | - | - | - |" in page(ResultFiles(tmp_path))


def test_whatever_differs_says_why_and_whatever_is_shown_says_where() -> None:
    for _, claim in ROWS:
        found = claim.row(ResultFiles(DOCS)).finding
        assert found.why or found.verdict is not Verdict.DIFFERS, claim.name
        shown = found.verdict not in (Verdict.NOT_SHOWN, Verdict.RULED_OUT)
        assert (found.where is not Where.NOWHERE) == shown == bool(found.ours), claim.name


@pytest.mark.parametrize(("dictionary", "verdict"), [(20, Verdict.BETTER), (90, Verdict.REPRODUCED), (120, "differs")])
def test_a_verdict_follows_the_figures(tmp_path: Path, dictionary: int, verdict: str) -> None:
    figures = {"plain": 117, "dictionary": dictionary, "paper": [190, 110]}
    files = keep(tmp_path, "experiment-genetic/summary.json", {"generations": figures})
    (claim,) = (claim for source, claim in ROWS if (source.name, claim.name) == ("GENETIC", "Fig. 2"))
    assert claim.row(files).finding.verdict == verdict


def test_a_file_without_the_figures_is_told_from_one_that_is_not_there(tmp_path: Path) -> None:
    claim = Claim("Test 1", "the optimum", "some/summary.json", "make it", lambda summary: summary.get("found"))
    there = claim.row(keep(tmp_path, "some/summary.json", {"other": 1})).finding
    missing = claim.row(ResultFiles(tmp_path / "nowhere")).finding
    assert there.why == "some/summary.json does not have it"
    assert missing.why == "there is no some/summary.json"
    assert there.verdict is missing.verdict is Verdict.NOT_SHOWN


def latency_run(name: str, *, optimal: bool = True, failed: int = 0, followed: float | None = None) -> dict[str, Any]:
    return {"run": f"{name}, latency, seed 1", "optimal": optimal, "rounds": [[5, 2, 4]], "requests": 100,
            "failed": failed, "followedAfterSeconds": followed}  # fmt: skip


def test_the_tests_of_latency_are_judged_one_by_one(tmp_path: Path) -> None:
    runs = [
        latency_run("test 1, 2 targets"),
        latency_run("test 2, 2 targets", optimal=False),
        latency_run("test 3, 2 targets", followed=40.0),
        {**latency_run("test 1, 2 targets"), "run": "test 1, 2 targets, kube-scheduler, seed 1", "optimal": False},
    ]
    files = keep(tmp_path, "experiment-latency/summary.json", {"runs": runs})
    found = {claim.name: claim.row(files).finding.verdict for source, claim in ROWS if source.name == "LATENCY"}
    assert found["Test 1: 2 targets"] is found["Test 3: the change"] is found["Interruptions"] is Verdict.REPRODUCED
    assert found["Test 2: 2 targets"] is Verdict.DIFFERS
    assert found["Test 1: 3 targets"] is Verdict.NOT_SHOWN


@pytest.mark.parametrize(
    ("verdicts", "shown"),
    [
        (("reached", "reached"), Verdict.BETTER),
        (("reached", "not reached"), Verdict.DIFFERS),
        (("cannot be judged", "cannot be judged"), Verdict.NOT_COMPARED),
    ],
)
def test_kse_on_real_nodes_is_shown_where_it_was_run(tmp_path: Path, verdicts: tuple[str, ...], shown: Verdict) -> None:
    goal = [{"what": f"part {at}", "verdict": each, "figures": "1 of 4"} for at, each in enumerate(verdicts)]
    (claim,) = (claim for source, claim in ROWS if source.name == "KSE" and "real nodes" in claim.name)
    there = {"real": {"scenarios": 4, "repeats": 2, "goal": goal}}
    found = claim.row(keep(tmp_path, "experiment-kse/real/summary.json", there)).finding
    assert (found.verdict, found.where) == (shown, Where.REAL_NODES)
    assert ("part 1" in found.why) == (shown is Verdict.DIFFERS)
    without = claim.row(keep(tmp_path, "experiment-kse/real/summary.json", {"real": {}})).finding
    assert without.verdict is Verdict.NOT_SHOWN


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(InputError, match=r"broken\.json is not JSON.*experiment"):
        ResultFiles(tmp_path).read("broken.json")

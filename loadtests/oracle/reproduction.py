"""Does a smaller cluster still show a difference or a failure? And the file that shows it to others."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path

from loadtests.oracle.comparison import Failure, Found, as_read, compare_items, in_turn, pair_difference
from loadtests.oracle.differences import PAIR, Difference, Facts, intended
from loadtests.oracle.judge import Oracle, Question
from loadtests.oracle.minimise import Check, minimise
from loadtests.oracle.ours import OurSide
from loadtests.oracle.random_cluster import random_cluster
from loadtests.same_plans.draw import Json
from reactor.errors import RematchError


async def smallest_case(found: Found | Failure, oracle: Oracle, *, seconds: float = 120.0) -> list[Json]:
    """A move that is wrong at its turn is first tried as a pair: the moves before it are written into the cluster."""
    cluster = random_cluster(found.seed)
    items = as_read(cluster, await oracle.load(cluster.items))
    if isinstance(found, Failure):
        return await minimise(items, _fails(found, oracle), seconds=seconds)
    difference = found.difference
    shows_pair = _shows_pair(difference, oracle)
    moved = _after(items, difference.before)
    if difference.asked_by == PAIR or await shows_pair(moved):
        return await minimise(moved, shows_pair, seconds=seconds)
    return await minimise(items, _shows_move(found, oracle), seconds=seconds)


def write_case(folder: Path, name: str, items: Sequence[Json]) -> Path:
    """As `rematch plan -f` reads it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": list(items)}, indent=1) + "\n")
    return path


def _after(items: Sequence[Json], moves: Sequence[Question]) -> list[Json]:
    """The cluster when these moves are done: the replacements have the same names, and no history."""
    targets = {move.uid: move.node for move in moves}
    return [_moved(item, targets[uid]) if (uid := _pod_uid(item)) in targets else item for item in items]


def _pod_uid(item: Json) -> str:
    return str(item["metadata"].get("uid", "")) if item["kind"] == "Pod" else ""


def _moved(pod: Json, target: str) -> Json:
    moved = copy.deepcopy(pod)
    moved["spec"].pop("nodeName", None)
    moved["status"] = {"phase": "Running" if target else "Pending"}
    if target:
        moved["spec"]["nodeName"] = target
    return moved


def _shows_pair(wanted: Difference, oracle: Oracle) -> Check:
    """The same pod and node, the same cause, and still nothing that is intended."""
    pair = Question(wanted.question.uid, wanted.question.node)

    async def check(items: Sequence[Json]) -> bool:
        ours = await _load(items, oracle)
        if ours is None or pair not in ours.pairs():
            return False
        (verdict,) = await oracle.judge([pair])
        (opinion,) = ours.opinions([pair])
        if opinion.fits == verdict.fits or opinion.fits != wanted.opinion.fits:
            return False
        shown = pair_difference(ours, pair, verdict, opinion)
        return shown.cause == wanted.cause and not intended(shown, Facts(items))

    return check


def _shows_move(found: Found, oracle: Oracle) -> Check:
    """The planner still plans a move that is refused at its turn for the same cause."""
    wanted = found.difference

    async def check(items: Sequence[Json]) -> bool:
        ours = await _load(items, oracle)
        if ours is None or not ours.snapshot.cluster.nodes:
            return False
        shown = await in_turn(ours.plan_of(wanted.asked_by, found.seed), oracle)
        facts = Facts(items)
        return any(each.cause == wanted.cause and not intended(each, facts) for each in shown)

    return check


def _fails(failure: Failure, oracle: Oracle) -> Check:
    async def check(items: Sequence[Json]) -> bool:
        if (await oracle.load(items)).refused:
            return False
        result = await compare_items(failure.seed, items, oracle)
        return any(each.kind == failure.kind for each in result.failures)

    return check


async def _load(items: Sequence[Json], oracle: Oracle) -> OurSide | None:
    """None where one side cannot read it: that is another case."""
    if (await oracle.load(items)).refused:
        return None
    try:
        return OurSide(items)
    except RematchError:
        return None

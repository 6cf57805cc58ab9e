"""How many volumes a node can attach: kube-scheduler's NodeVolumeLimits, across the moves of a plan as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.constraints.volume_limits import VolumeLimits, VolumeState
from matching.model.arrays import arrays_of
from matching.plan import Plan, PlannedMove
from matching.planners.stable.planner import StablePlanner
from matching.problem import Node, Pod, Problem, Volume
from matching.testing import problem_with_pod_rules, with_volumes
from matching.verify import certify
from matching.verify.reference import violations
from matching.verify.reference_pod_rules import PlacedPods

A, B, C, D = (Volume("disk.csi", name) for name in "abcd")
FILE = Volume("file.csi", "a")
LIMIT_2 = {"disk.csi": 2}


@pytest.mark.parametrize(
    ("own", "residents", "fields", "fits"),
    [
        ((A,), [(B,)], {"volume_limits": LIMIT_2}, True),
        ((A,), [(B, C)], {"volume_limits": LIMIT_2}, False),
        ((A,), [(B,), (B,), (B,)], {"volume_limits": LIMIT_2}, True),  # shared: counts once
        ((A,), [(A, B)], {"volume_limits": LIMIT_2}, True),  # it is there already
        ((A, C), [(A, B)], {"volume_limits": LIMIT_2}, False),
        ((A,), [(A, B), (C, D)], {"volume_limits": LIMIT_2}, True),  # nothing new, although there are too many
        ((FILE,), [(A, B, C)], {"volume_limits": LIMIT_2}, True),  # another driver
        ((A,), [(B, C, D)], {}, True),  # no limit is known
        ((A,), [], {"volume_limits": {"disk.csi": 0}}, False),
        ((), [(A, B, C)], {"volume_limits": LIMIT_2}, True),
        ((A,), [(B,)], {"volume_limits": LIMIT_2, "attached": (C,)}, False),  # attached without a pod
        ((A,), [(B,)], {"volume_limits": LIMIT_2, "attached": (B,)}, True),
        ((A,), [(B,)], {"volume_limits": LIMIT_2, "attached": (A,)}, False),  # kube-scheduler counts it twice
    ],
)
def test_what_a_node_can_attach(
    own: tuple[Volume, ...],
    residents: list[tuple[Volume, ...]],
    fields: dict[str, Any],
    fits: bool,
    pod: Callable[..., Pod],
    node: Callable[..., Node],
    problem: Callable[..., Problem],
    plan: Callable[[Problem], Plan],
) -> None:
    there = [pod(f"r{at}", node="n", fixed="DaemonSet", volumes=each) for at, each in enumerate(residents)]
    asked = problem([pod("p", volumes=own), *there], [node("n", **fields)])

    found = plan(asked)

    assert bool(found.moves) is fits
    assert found.certificate.feasible
    move = PlannedMove("default/p", "uid-p", None, "n", 1, ("anyway",))
    assert (certify(asked, (move,), found.stays, ()).violations == ()) is fits
    assert (list(violations(asked, (move,), found.stays, ())) == []) is fits


def test_the_reason_names_driver_and_limit(
    pod: Callable[..., Pod], node: Callable[..., Node], problem: Callable[..., Problem], plan: Callable[[Problem], Plan]
) -> None:
    resident = pod("r", node="n", fixed="DaemonSet", volumes=(A, B))
    (left,) = plan(problem([pod("p", volumes=(C,)), resident], [node("n", volume_limits=LIMIT_2)])).unplaced
    assert left.rejected[0].reason == "volumes of disk.csi: 2 and 1 more, the limit is 2"


def test_the_limit_holds_across_the_moves_of_one_plan(
    pod: Callable[..., Pod], node: Callable[..., Node], problem: Callable[..., Problem], plan: Callable[[Problem], Plan]
) -> None:
    pending = [pod(f"p{at}", volumes=(volume,)) for at, volume in enumerate((A, B, C, D, A))]
    found = plan(problem(pending, [node("n1", volume_limits=LIMIT_2), node("n2", volume_limits={"disk.csi": 1})]))
    ends = {move.pod[-2:]: move.target for move in found.moves}
    assert len(found.unplaced) == 1
    assert ends["p0"] == ends["p4"] == "n1"
    assert sorted(ends.values()) == ["n1", "n1", "n1", "n2"]


def test_a_volume_is_free_again_when_its_last_user_has_left(
    pod: Callable[..., Pod], node: Callable[..., Node], problem: Callable[..., Problem]
) -> None:
    users = [pod("p", node="n1", volumes=(A,)), pod("q", node="n1", volumes=(A,)), pod("r", volumes=(B,))]
    arrays = arrays_of(problem(users, [node("n1", volume_limits={"disk.csi": 1}), node("n2")]))
    state = VolumeState(VolumeLimits(arrays.pods, arrays.nodes, ["disk.csi"]), arrays.current)
    refused = []
    for user in (0, 1):
        refused.append(not state.allows(2)[0])
        state.change(user, 0, -1)
    assert refused == [True, True]
    assert state.allows(2)[0]


@pytest.mark.timeout(300)
@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_every_move_passes_at_its_turn(seed: int) -> None:
    asked = with_volumes(problem_with_pod_rules(seed, pods=9), seed)
    found = StablePlanner().plan(asked)
    assert found.certificate.feasible, found.certificate.violations
    where = {each.key: each.node for each in asked.pods}
    pods, nodes = {each.key: each for each in asked.pods}, {each.name: each for each in asked.nodes}
    for move in found.moves:
        assert PlacedPods(asked, where).allows(pods[move.pod], nodes[move.target]), move
        where[move.pod] = move.target

"""The only module here that knows the project: runs its planners and decisions on the random inputs.

When something in the project is renamed, edit this file only. Keys of the results are part of the fingerprints: they
keep their names, or no older fingerprint can be compared. What did not exist when the first fingerprints were made (the
version of a plan's JSON, the default strategy) is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

from loadtests.same_plans.draw import Json, camel_case
from loadtests.same_plans.fingerprint import Result, Sentence, canonical
from matching.compilation import warm_up
from matching.explain import explain
from matching.problem import Pod, Problem, ProblemError, Strategy
from matching.registry import known_planners
from matching.serialization import KIND, PROBLEM_VERSION, plan_to_json, problem_from_json
from reactor.cluster.dump import read_dump
from reactor.decision.cooldowns import Backoff, Cooldowns, Lineage
from reactor.decision.decide import Decision, Trigger, decide
from reactor.decision.eligibility import Eligibility
from reactor.decision.wait_reasons import Reason
from reactor.errors import RematchError
from reactor.planning.pending import check_reservations, pending_pods
from reactor.planning.problem_builder import fits_now
from reactor.planning.problems import placement_problem, rematch_problem
from reactor.settings.load import parse_settings
from reactor.settings.model import Settings
from reactor.settings.planner import make_planner
from reactor.state.from_dump import DumpSnapshot, snapshot_from_dump
from reactor.state.moves import ActiveMoves, Move, MoveState, PodRef
from reactor.state.snapshot import Needs, Snapshot

PLACING = "placing"
RESERVED = "reserved replacements"
"""This part exists only where a node is reserved for a pending pod."""
_LEFT_OUT: Mapping[type, frozenset[str]] = {
    Pod: frozenset({"fixed", "mean", "idle_cpu"}),
    Problem: frozenset({"latency", "estimates"}),
}
"""Fields of a problem. `fixed` is a part of its own; in a snapshot there are no latencies and no history."""


def installed_planners() -> tuple[str, ...]:
    return known_planners()


def use_compiled_kernels() -> None:
    """From now on, small problems use them, too."""
    if warm_up() is None:
        raise RematchError("numba is not installed, so nothing can be compiled")


def solve_problem(given: Json) -> Result:
    """The plans of all its planners, and the explanations of some pods."""
    problem = _problem(given)
    parts: Json = {}
    for planner, parameters in given["planners"]:
        plan = _plan(planner, parameters, problem)
        parts[f"certificate of {planner}"] = plan.pop("certificate", {})
        parts[f"plan of {planner}"] = plan
    for uid in given["explained"]:
        parts[f"explain {uid}"] = _explanation(problem, uid)
    names = (*(pod.key for pod in problem.pods), *(node.name for node in problem.nodes))
    return Result(names, parts)


def solve_snapshot(given: Json) -> Result:
    """The plan of `rematch plan -f` for these documents, and how the controller places the pending pods."""
    settings = parse_settings(json.dumps(given["settings"]), "settings")
    history = given["history"]
    dumped = _read(given["documents"], history["needs"], settings)
    snapshot = replace(dumped.snapshot, moves=_active_moves(history, dumped.snapshot))
    eligibility = Eligibility(snapshot, _cooldowns(history, snapshot.at), settings)
    decision = decide(eligibility, Trigger(history["trigger"]))
    problem = rematch_problem(eligibility, decision)
    plan = _plan(settings.planner.name, settings.planner.parameters, problem)
    certificate = plan.pop("certificate", {})
    parts = {
        "look": _dump_as_json(dumped),
        "decision": _decision_as_json(decision),
        "fixed": {pod.uid: Sentence.with_code(pod.fixed) for pod in problem.pods},
        "problem": _as_json(problem),
        "plan": plan,
        "certificate": certificate,
        "fits": _nodes_that_fit(snapshot, settings),
        **_placing(snapshot, settings),
    }
    return Result((*(pod.key for pod in snapshot.cluster.pods.values()), *snapshot.cluster.nodes), parts)


def _placing(snapshot: Snapshot, settings: Settings) -> Json:
    """Replacements that are bound to the node reserved for them, and the plan for the other pending pods."""
    pending = pending_pods(snapshot, settings)
    reserved = pending.reserved_nodes
    parts: Json = {
        "pending": {"place": reserved, "unjudged": [pod.uid for pod in pending.unsupported]},
        PLACING: {},
    }
    if reserved:
        checked = check_reservations(pending, snapshot, settings)
        problem = placement_problem(snapshot, checked.unreserved, checked.kept, settings)
        parts[PLACING] = _plan(settings.planner.name, settings.planner.parameters, problem)
        if any(reserved.values()):
            parts[RESERVED] = {move.uid: move.target for move in checked.bindable}
    return parts


def _nodes_that_fit(snapshot: Snapshot, settings: Settings) -> Json:
    """Which nodes would take the first running pod now: the check before an eviction."""
    pod = next((pod for pod in snapshot.cluster.pods.values() if pod.node is not None and not pod.finished), None)
    reservations = snapshot.moves.reservations(snapshot.at, settings.execution)
    return {node: fits_now(pod, node, snapshot, reservations) for node in snapshot.cluster.nodes} if pod else {}


def _plan(planner: str, parameters: Mapping[str, object], problem: Problem) -> Json:
    """As JSON, with its sentences marked. The order of `stays` does not count."""
    try:
        plan = plan_to_json(make_planner(planner, parameters).plan(problem))
    except ProblemError as error:
        return {"error": Sentence(str(error))}
    del plan["version"]
    for move in plan["moves"]:
        if move["strategy"] == Strategy.EVICT:
            del move["strategy"]
        move["reasons"] = _sentences(move["reasons"])
        move["rejected"] = _with_sentence(move["rejected"])
    for unplaced in plan["unplaced"]:
        unplaced["rejected"] = _with_sentence(unplaced["rejected"])
    plan["unplaced"] = _with_sentence(plan["unplaced"])
    plan["stays"] = sorted(_with_sentence(plan["stays"]), key=lambda stay: str(stay["uid"]))
    plan["notes"] = _sentences(plan["notes"])
    plan["certificate"]["violations"] = _sentences(plan["certificate"]["violations"])
    return plan


def _explanation(problem: Problem, uid: str) -> Json:
    try:
        found = explain(problem, uid)
    except ProblemError as error:
        return {"error": Sentence(str(error))}
    return {
        "here": _sentences(found.why_here),
        "not": [{"node": each.node, "reason": Sentence(each.reason)} for each in found.why_not],
    }


def _dump_as_json(dumped: DumpSnapshot) -> Json:
    snapshot = dumped.snapshot
    happiness = {
        uid: {
            "successes": each.counts.successes,
            "failures": each.counts.failures,
            "probability": each.probability,
            "threshold": each.threshold.value,
            "source": each.threshold.source.value,
        }
        for uid, each in snapshot.happiness.items()
    }
    notes = _sentences(dumped.notes)
    return {"at": snapshot.at, "needs": snapshot.needs.value, "moods": happiness, "notes": notes}


def _decision_as_json(decision: Decision) -> Json:
    waits = [
        {
            "uid": wait.uid,
            "pod": wait.pod,
            "until": wait.until,
            "why": Sentence.with_code(f"{wait.reason}: {wait.text}"),
        }
        for wait in decision.waits
    ]
    unhappy = [{"uid": one.uid, "pod": one.pod, "cause": Sentence(one.cause)} for one in decision.unhappy]
    return {"rematch": decision.rematch, "unhappy": unhappy, "waits": waits}


def _as_json(value: object) -> Any:
    if is_dataclass(value):
        names = (field.name for field in fields(value) if field.name not in _LEFT_OUT.get(type(value), ()))
        found = {name: getattr(value, name) for name in names}
        return {name: _as_json(each) for name, each in found.items() if each is not Strategy.EVICT}
    if isinstance(value, Mapping):
        return {key: _as_json(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [_as_json(each) for each in value]
    return value


def _sentences(texts: Iterable[str]) -> list[Sentence]:
    return [Sentence(text) for text in texts]


def _with_sentence(rows: Iterable[Json]) -> list[Json]:
    return [{**row, "reason": Sentence(row["reason"])} for row in rows]


def _problem(given: Json) -> Problem:
    """As it is read from JSON: pods with equal rules share one value."""
    latency = given["latency"]
    if latency is not None:
        last = {pod: {"rtt": rtt, "at": at} for pod, (rtt, at) in latency["last"].items()}
        latency = {**latency, "last": last}
    same = {name: given[name] for name in ("axes", "hard_only", "needs_from", "namespaces", "options")}
    columns = {"nodes": _columns(given["nodes"]), "pods": _columns(given["pods"])}
    columns["pods"]["rules"] = _table(columns["pods"]["rules"])
    document = _in_camel_case({**same, **columns, "latency": latency})
    return problem_from_json(json.dumps({"kind": KIND, "version": PROBLEM_VERSION, **document}).encode())


def _columns(rows: Sequence[Json]) -> Json:
    return {name: [row[name] for row in rows] for name in rows[0]}


def _table(values: Sequence[Json]) -> Json:
    texts = [canonical(value) for value in values]
    table = list(dict.fromkeys(texts))
    return {"table": [json.loads(text) for text in table], "rows": [table.index(text) for text in texts]}


def _in_camel_case(value: Any) -> Any:
    """No label or name in the random problems has an underscore."""
    if isinstance(value, Mapping):
        return {camel_case(key): _in_camel_case(each) for key, each in value.items()}
    return [_in_camel_case(each) for each in value] if isinstance(value, list) else value


def _read(documents: Sequence[Json], needs: str, settings: Settings) -> DumpSnapshot:
    content = "\n".join(json.dumps(document) for document in documents).encode()
    dump = read_dump(["cluster.json"], {"cluster.json": content})
    return snapshot_from_dump(dump, settings, needs=Needs(needs) if needs else None)


def _cooldowns(history: Json, at: float) -> Cooldowns:
    backoffs = {
        uid: Backoff(at + until, Reason(code), "the last attempt") for uid, (until, code) in history["resting"].items()
    }
    return Cooldowns(
        lineage={uid: Lineage(at - ago, generation) for uid, (ago, generation) in history["moved"].items()},
        relieved={node: at - ago for node, ago in history["relieved"].items()},
        backoffs=backoffs,
    )


def _active_moves(history: Json, snapshot: Snapshot) -> ActiveMoves:
    moves = tuple(_move(number, given, snapshot) for number, given in enumerate(history["runs"]))
    pods = {move.id: snapshot.cluster.pods[move.pod.uid] for move in moves}
    return ActiveMoves(moves, pods, {uid: snapshot.at + until for uid, until in history["unbound"].items()})


def _move(number: int, given: Json, snapshot: Snapshot) -> Move:
    pod = snapshot.cluster.pods[given["uid"]]
    replacement = snapshot.cluster.pods.get(given["replacement"] or "")
    state = MoveState(given["stage"])
    return Move(
        id=f"run-{number}",
        plan_id="plan",
        pod=PodRef(pod.namespace, pod.name, pod.uid),
        owner=pod.owner,
        template_hash=pod.template_hash,
        workload="",
        source=pod.node or "",
        target=given["target"],
        state=state,
        evicted=None if state is MoveState.PLANNED else snapshot.at - given["ago"],
        bound=snapshot.at if state is MoveState.BOUND else None,
        replacement=replacement.uid if replacement else None,
        replacement_key=replacement.key if replacement else "",
    )

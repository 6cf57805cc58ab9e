"""The state machine of a move: what happened and what the cluster shows -> the next state and the next call.

Everything here is pure. `TABLE` has the rule of each state, `CALLS` the calls that each announcing state makes,
`EFFECTS` what each answer means. `docs/moves.md` draws it.

planned -> evicting -> evicted -> bound -> done              (evict; late while the replacement is not Ready in time)
planned -> surging -> surged -> retiring -> retired -> done  (scale surge and release surge)
              |          |          |
              +----------+----------+--> undoing -> undone -> failed | planned (tried again with a hard hint)
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import msgspec

from matching.plan import PlannedMove
from matching.problem import Selector, Strategy
from matching.selectors import selects
from reactor.cluster.records import Owner, Pod, PodDisruptionBudget, Workload
from reactor.cluster.surge_writes import DELETION_COST, Answer, OwnerNow, ServedBy
from reactor.cluster.view import ClusterView
from reactor.cluster.writes import Eviction, EvictionAnswer
from reactor.decision.strategies import HASH_LABEL
from reactor.execution.steering import MOVE_LABEL
from reactor.settings.model import Execution
from reactor.state.moves import Call, Move, MoveState, PodRef
from reactor.state.snapshot import Snapshot

_MAX_REASONS = 5
_MAX_REASON = 200
_MAX_OUTCOME = 300
_MAX_SIBLINGS = 32
_MAX_DETACHED = 200
_UID_END = 12
MAX_ENTRY = 2900
"""Limits that keep a journaled move below 4 KiB: its object repeats some fields for `kubectl get moves`."""
BACKGROUND_DEADLINE = 3600.0
"""Seconds for an eviction that the pod's owner carries out in the background, such as a live migration."""
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


class Effect(StrEnum):
    """What an answer means for the move."""

    GO_ON = "goOn"
    AGAIN = "again"
    UNDO = "undo"
    GIVE_UP = "giveUp"
    """Nothing was written: the move ends. Where an earlier attempt may have been carried out, it is undone."""
    LEAVE = "leave"
    """Somebody else has decided otherwise: only what is ours (costs, hints) is taken back."""


CALLS: Mapping[tuple[Strategy, MoveState], tuple[Call, ...]] = {
    (Strategy.EVICT, MoveState.EVICTING): (Call.HINT, Call.EVICT),
    (Strategy.SCALE_SURGE, MoveState.SURGING): (Call.HINT, Call.SCALE_UP),
    (Strategy.SCALE_SURGE, MoveState.RETIRING): (Call.COST_OLD, Call.SCALE_DOWN),
    (Strategy.SCALE_SURGE, MoveState.UNDOING): (Call.COST_NEW, Call.SCALE_DOWN),
    (Strategy.RELEASE_SURGE, MoveState.SURGING): (Call.HINT, Call.RELEASE),
    (Strategy.RELEASE_SURGE, MoveState.RETIRING): (Call.DETACH, Call.REMOVE),
    (Strategy.RELEASE_SURGE, MoveState.UNDOING): (Call.COST_NEW, Call.TAKE_BACK),
}
"""What an announcing state sends, in this order. A restart begins again with the first: each can be repeated."""

NEXT: Mapping[MoveState, MoveState] = {
    MoveState.EVICTING: MoveState.EVICTED,
    MoveState.SURGING: MoveState.SURGED,
    MoveState.RETIRING: MoveState.RETIRED,
    MoveState.UNDOING: MoveState.UNDONE,
}
"""The state after the last call of an announcing one."""

_ALWAYS_DONE = {Answer.DONE: Effect.GO_ON, Answer.ALREADY: Effect.GO_ON}
EFFECTS: Mapping[Call, Mapping[Answer, Effect]] = {
    Call.HINT: _ALWAYS_DONE
    | dict.fromkeys((Answer.GONE, Answer.CHANGED, Answer.REFUSED, Answer.LATER), Effect.GIVE_UP),
    Call.SCALE_UP: {
        Answer.DONE: Effect.GO_ON,
        Answer.ALREADY: Effect.GIVE_UP,
        Answer.GONE: Effect.GIVE_UP,
        Answer.CHANGED: Effect.GIVE_UP,
        Answer.REFUSED: Effect.GIVE_UP,
        Answer.LATER: Effect.AGAIN,
    },
    Call.RELEASE: _ALWAYS_DONE
    | dict.fromkeys((Answer.GONE, Answer.CHANGED, Answer.REFUSED), Effect.GIVE_UP)
    | {Answer.LATER: Effect.AGAIN},
    Call.COST_OLD: _ALWAYS_DONE
    | {
        Answer.GONE: Effect.GO_ON,
        Answer.CHANGED: Effect.UNDO,
        Answer.REFUSED: Effect.UNDO,
        Answer.LATER: Effect.AGAIN,
    },
    Call.SCALE_DOWN: _ALWAYS_DONE
    | {
        Answer.GONE: Effect.LEAVE,
        Answer.CHANGED: Effect.LEAVE,
        Answer.REFUSED: Effect.AGAIN,
        Answer.LATER: Effect.AGAIN,
    },
    Call.DETACH: _ALWAYS_DONE
    | {
        Answer.GONE: Effect.GO_ON,
        Answer.CHANGED: Effect.UNDO,
        Answer.REFUSED: Effect.UNDO,
        Answer.LATER: Effect.AGAIN,
    },
    Call.REMOVE: _ALWAYS_DONE
    | {Answer.GONE: Effect.GO_ON}
    | dict.fromkeys((Answer.CHANGED, Answer.REFUSED, Answer.LATER), Effect.AGAIN),
    Call.TAKE_BACK: _ALWAYS_DONE
    | {Answer.GONE: Effect.GO_ON}
    | dict.fromkeys((Answer.CHANGED, Answer.REFUSED, Answer.LATER), Effect.AGAIN),
    Call.COST_NEW: _ALWAYS_DONE
    | dict.fromkeys((Answer.GONE, Answer.CHANGED, Answer.REFUSED), Effect.GO_ON)
    | {Answer.LATER: Effect.AGAIN},
    Call.CLEAR_COSTS: _ALWAYS_DONE
    | {Answer.GONE: Effect.GO_ON}
    | dict.fromkeys((Answer.CHANGED, Answer.REFUSED, Answer.LATER), Effect.AGAIN),
}
"""What the answers mean. Evictions that begin a move have `STATE_AFTER_EVICTION`."""

STATE_AFTER_EVICTION = {
    Eviction.ACCEPTED: MoveState.EVICTED,
    Eviction.UNKNOWN: MoveState.EVICTED,
    Eviction.BACKGROUND: MoveState.EVICTED,
    Eviction.GONE: MoveState.SKIPPED,
    Eviction.REPLACED: MoveState.SKIPPED,
    Eviction.PDB: MoveState.FAILED,
    Eviction.SEVERAL_PDBS: MoveState.FAILED,
    Eviction.THROTTLED: MoveState.FAILED,
    Eviction.FORBIDDEN: MoveState.FAILED,
    Eviction.FAILED: MoveState.FAILED,
}
"""What the eviction API's answer means for a move. An eviction without an answer may have happened."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the cluster shows of one move. What is not watched is read on demand; None was not read."""

    now: float
    view: ClusterView
    settings: Execution
    old: Pod | None
    new: Pod | None
    stopping: bool = False
    """Mode is not act any more: finish or take back, and start nothing."""
    may_pin: bool = False
    """A hard hint is allowed for this pod."""
    by_extender: bool = False
    """The hint is read when the replacement gets its node, not when it is created."""
    wanted: int | None = None
    """`replicas` of the scaled object; None when that is gone."""
    failure: str = ""
    """Why the owner cannot create pods."""
    new_served: ServedBy | None = None
    old_served: ServedBy | None = None
    """By its labels before any were taken off."""


@dataclass(frozen=True, slots=True)
class Step:
    """The move in its next state, and the call that is due in it; without one the move waits or has ended."""

    move: Move
    call: Call | None = None


def planned(plan_id: str, move: PlannedMove, pod: Pod, snapshot: Snapshot) -> Move:
    """The planned move of a running pod."""
    happiness = snapshot.happiness.get(pod.uid)
    return Move(
        id=secrets.token_hex(8),
        plan_id=plan_id,
        pod=PodRef(pod.namespace, pod.name, pod.uid),
        owner=pod.owner,
        template_hash=pod.template_hash,
        workload=snapshot.cluster.workload_name(pod),
        source=move.source or "",
        target=move.target,
        strategy=move.strategy,
        reasons=tuple(reason[:_MAX_REASON] for reason in move.reasons[:_MAX_REASONS]),
        planned=snapshot.at,
        unhappy=happiness is not None and happiness.unhappy,
    )


def begun(move: Move, view: ClusterView, now: float, scaled: Workload | None, owner: OwnerNow | None) -> Move:
    """The move in its first announcing state. A surge keeps what its owner wants now."""
    pods = view.pods_of(move.owner.uid) if move.owner is not None else ()
    few = len(pods) <= _MAX_SIBLINGS
    move = replace(
        move,
        began=now,
        siblings=tuple(sorted(pod.uid[-_UID_END:] for pod in pods)) if few else (),
        newest=max((pod.created for pod in pods), default=None),
        acknowledged=(),
    )
    if move.strategy is Strategy.EVICT or scaled is None or owner is None:
        return replace(move, state=MoveState.EVICTING)
    return replace(
        move,
        state=MoveState.SURGING,
        scaled=reference(scaled),
        replicas=owner.replicas,
        generation=owner.generation,
        min_ready=owner.min_ready,
    )


def journal_entry(move: Move) -> Move:
    """What the journal holds of a move. Where names are very long, what it can do without is left out."""
    entry = replace(move, acknowledged=(), refused="")
    for shorter in (
        {"reasons": move.reasons[:1]},
        {"siblings": ()},
        {"reasons": (), "outcome": move.outcome[:60], "replacement_key": "", "planned": None},
    ):
        if len(msgspec.json.encode(entry)) <= MAX_ENTRY:
            break
        entry = replace(entry, **shorter)
    return entry


def ended(move: Move, state: MoveState, now: float, outcome: str) -> Move:
    return replace(move, state=state, ended=now, outcome=outcome[:_MAX_OUTCOME], acknowledged=(), refused="")


# What the cluster shows: rules by state.


def next_step(move: Move, seen: Seen) -> Step:
    """The next state and call. A move that has not started or has ended stays as it is."""
    rule = TABLE.get(move.state)
    return Step(move) if rule is None else rule(tracked(move, seen), seen)


def tracked(move: Move, seen: Seen) -> Move:
    """The replacement, since when it has a node and is Ready, and when the old pod was no endpoint any more."""
    new = seen.new
    if new is not None:
        bound = seen.now if move.bound is None and new.node is not None else move.bound
        ready = (move.ready if move.ready is not None else seen.now) if new.ready else None
        move = replace(move, replacement=new.uid, replacement_key=new.key, bound=bound, ready=ready)
    elif move.ready is not None:
        move = replace(move, ready=None)
    if Call.DETACH in move.acknowledged and move.drained is None and seen.old_served is not None:
        # The calls of a cycle may take seconds: from the cycle's time on, the drain would be too short by so much.
        since = max(seen.now, seen.old_served.at)
        return replace(move, drained=since) if seen.old_served.serving == 0 else move
    return move


def hint_is_due_to_go(move: Move, seen: Seen) -> bool:
    """At the first replacement (by extender: when it has a node), at the deadline, when the owner cannot create pods
    (what a hint adds may be what is refused), and when the move is taken back."""
    if not move.hinted:
        return False
    before = move.state in (MoveState.EVICTING, MoveState.SURGING)
    unplaced = seen.new is None or (seen.by_extender and seen.new.node is None)
    waits = move.state in (MoveState.EVICTED, MoveState.SURGED) and unplaced
    return not before and (not waits or bool(seen.failure) or _overdue(move, seen.now, seen.settings))


def asks_for_new_endpoints(move: Move, seen: Seen) -> bool:
    """Whether the next step depends on the Services of the replacement: until the old pod is told to leave."""
    leaving = move.state is MoveState.RETIRING and Call.DETACH not in move.acknowledged
    return seen.new is not None and seen.new.ready and (move.state is MoveState.SURGED or leaving)


def asks_for_old_endpoints(move: Move, seen: Seen) -> bool:
    """Whether it depends on the Services of a released pod: to leave them, and to know when it has left."""
    if move.strategy is not Strategy.RELEASE_SURGE:
        return False
    left = move.state is MoveState.RETIRING and Call.DETACH in move.acknowledged
    return (left and move.drained is None) or (move.state is MoveState.SURGED and asks_for_new_endpoints(move, seen))


def _evicting(move: Move, seen: Seen) -> Step:
    """A pod that is gone or goes was evicted by the call that was announced."""
    if _leaving(seen.old):
        return Step(_evicted(move, seen.now))
    if seen.stopping and Call.EVICT not in move.acknowledged:
        return Step(ended(move, MoveState.SKIPPED, seen.now, "cancelled: mode is not act any more"))
    if _overdue(move, seen.now, seen.settings):
        return Step(ended(move, MoveState.FAILED, seen.now, "the pod is still there: it was not evicted"))
    return _next_call(move)


def _evicted(move: Move, now: float) -> Move:
    if move.dumps:
        text = f"dumped from {move.source}: its replacement waits until a node takes it"
        return ended(replace(move, evicted=now), MoveState.DONE, now, text)
    return replace(
        move, state=MoveState.EVICTED, evicted=now if move.evicted is None else move.evicted, acknowledged=()
    )


def _following(move: Move, seen: Seen) -> Step:
    """An eviction cannot be taken back: it is followed to its end."""
    pod, now = seen.new, seen.now
    if pod is None and move.replacement is None:
        return Step(_without_replacement(move, seen))
    if pod is None:
        text = f"the replacement {move.replacement_key} is gone before it was Ready"
        return Step(ended(move, MoveState.FAILED, now, text))
    if pod.node is not None and pod.ready:
        return Step(_moved(move, seen))
    if _overdue(move, now, seen.settings):
        return Step(replace(move, state=MoveState.LATE))
    bound = pod.node is not None and move.state is MoveState.EVICTED
    return Step(replace(move, state=MoveState.BOUND) if bound else move)


def _surging(move: Move, seen: Seen) -> Step:
    """After a restart the replacement may be there already; then another hint would be for the wrong pod."""
    trouble = _trouble(move, seen) or ("cancelled: mode is not act any more" if seen.stopping else "")
    if not trouble and _overdue(move, seen.now, seen.settings):
        trouble = "the API server did not answer until the deadline"
    if trouble:
        return _undo(move, seen, trouble)
    scaled = move.strategy is Strategy.SCALE_SURGE and seen.wanted == move.replicas + 1
    if (scaled or seen.new is not None) and Call.HINT not in move.acknowledged:
        move = replace(move, acknowledged=(Call.HINT,))
    return _next_call(move)


def _surged(move: Move, seen: Seen) -> Step:
    new, released = seen.new, move.strategy is Strategy.RELEASE_SURGE
    if released and _leaving(seen.old) and not _owner_gone(move, seen):
        return _released_pod_gone(move, seen)
    trouble = _trouble(move, seen)
    if trouble:
        return _undo(move, seen, trouble)
    if new is not None and new.node == move.source:
        return _undo(replace(move, came_back=True), seen, f"the replacement {new.key} came back to {move.source}")
    if available(move, seen):
        if not _goes_first(move, seen):
            return _wait_or_undo(move, seen, "another pod of its ReplicaSet is not Ready and would be deleted first")
        return _retire(move, seen)
    if seen.stopping:
        return _undo(move, seen, "cancelled: mode is not act any more")
    return _wait_or_undo(move, seen, _why_not_available(move, seen))


def _released_pod_gone(move: Move, seen: Seen) -> Step:
    """Somebody else has deleted it. Its replacement is on its way, and there is nothing to take back."""
    if available(move, seen):
        return Step(_moved(move, seen))
    if move.replacement is not None and seen.new is None:
        return Step(ended(move, MoveState.FAILED, seen.now, f"the replacement {move.replacement_key} is gone"))
    if _overdue(move, seen.now, seen.settings):
        return Step(ended(move, MoveState.FAILED, seen.now, f"the old pod is gone; {_why_not_available(move, seen)}"))
    return Step(move)


def _retire(move: Move, seen: Seen) -> Step:
    """Announce what ends the old pod, with what is needed to take it back."""
    old = seen.old
    assert old is not None
    move = replace(move, state=MoveState.RETIRING, acknowledged=())
    if move.strategy is Strategy.SCALE_SURGE:
        return _next_call(replace(move, old_cost=old.annotations.get(DELETION_COST, "")))
    selectors = seen.old_served.selectors if seen.old_served is not None else ()
    detached = labels_to_detach(old, selectors, seen.view)
    if sum(len(key) + len(value) for key, value in detached) > _MAX_DETACHED:
        return _undo(move, seen, "the labels by which Services select it are too long for the journal")
    return _next_call(replace(move, detached=detached))


def _retiring(move: Move, seen: Seen) -> Step:
    if move.strategy is Strategy.RELEASE_SURGE:
        return _retiring_released(move, seen)
    if _owner_gone(move, seen):
        return Step(_left(move, "its owner was deleted meanwhile"))
    if seen.wanted not in (move.replicas, move.replicas + 1):
        return Step(_left(move, f"somebody has scaled it to {seen.wanted} replicas"))
    if _leaving(seen.old):
        return Step(move, Call.SCALE_DOWN)
    if seen.wanted == move.replicas + 1 and not (available(move, seen) and _goes_first(move, seen)):
        return _wait_or_undo(move, seen, _why_not_available(move, seen))
    return _next_call(move)


def _retiring_released(move: Move, seen: Seen) -> Step:
    if seen.old is None:
        return Step(replace(move, state=MoveState.RETIRED, settling=seen.now, acknowledged=()))
    if seen.old.deleting is not None or _owner_gone(move, seen):
        return Step(move, Call.REMOVE)
    if Call.DETACH not in move.acknowledged:
        ready = available(move, seen)
        return Step(move, Call.DETACH) if ready else _wait_or_undo(move, seen, _why_not_available(move, seen))
    if seen.new is None or not seen.new.ready:
        return _undo(move, seen, f"the replacement {move.replacement_key} is not Ready any more")
    delay, since = seen.settings.drain_delay, move.ready if move.drained is None else move.drained
    if since is not None and seen.now >= since + delay + move.min_ready + seen.settings.ready_deadline:
        why = "is still an endpoint" if move.drained is None else "could not be evicted"
        return _undo(move, seen, f"the old pod {why} until the deadline")
    drained = move.drained is not None and seen.now >= move.drained + delay
    return Step(move, Call.REMOVE) if drained else Step(move)


def _retired(move: Move, seen: Seen) -> Step:
    old = seen.old
    if old is None:
        return Step(_moved(move, seen))
    late = move.settling is not None and seen.now >= move.settling + seen.settings.ready_deadline
    if old.deleting is not None:
        return Step(_moved(move, seen)) if late else Step(move)
    other_went = (
        move.strategy is Strategy.SCALE_SURGE
        and not _owner_gone(move, seen)
        and _replica_set_replicas(move, seen) <= move.replicas
        and _active(move, seen.view) <= move.replicas
    )
    if not other_went and not late:
        return Step(move)
    text = "another pod of its owner was deleted instead" if other_went else "the old pod does not end"
    return _cleared(move, seen, ended(move, MoveState.FAILED, seen.now, text))


def _undoing(move: Move, seen: Seen) -> Step:
    """The replacement gets the lowest cost first, so that it is the one to go. A released pod whose owner is gone is
    ended."""
    released = move.strategy is Strategy.RELEASE_SURGE
    if released and _leaving(seen.old):
        return Step(_left(move, move.outcome))
    if _owner_gone(move, seen):
        return Step(move, Call.REMOVE) if released else Step(_left(move, move.outcome))
    if seen.new is None:
        return Step(replace(move, acknowledged=(Call.COST_NEW,)), CALLS[move.strategy, move.state][-1])
    if move.new_cost is None:
        move = replace(move, new_cost=seen.new.annotations.get(DELETION_COST, ""))
    return _next_call(move)


def _undone(move: Move, seen: Seen) -> Step:
    """Costs stay until the owner has deleted the pod that is too many: they say which."""
    if _is_orphan(move, seen):
        return Step(move, Call.REMOVE)
    late = move.settling is None or seen.now >= move.settling + seen.settings.ready_deadline
    if not _settled(move, seen) and not late:
        return Step(move)
    after = ended(move, MoveState.FAILED, seen.now, move.outcome)
    if move.came_back and seen.may_pin and not move.hard and not seen.stopping and _is_active(seen.old):
        after = _planned_again(move)
    return _cleared(move, seen, after)


def _planned_again(move: Move) -> Move:
    """Tried once more, with a hard hint."""
    kept = Move(
        move.id, move.plan_id, move.pod, move.owner, move.template_hash, move.workload, move.source, move.target
    )
    return replace(
        kept,
        strategy=move.strategy,
        reasons=move.reasons,
        planned=move.planned if move.planned is not None else move.began,
        unhappy=move.unhappy,
        hard=True,
    )


TABLE: Mapping[MoveState, Callable[[Move, Seen], Step]] = {
    MoveState.EVICTING: _evicting,
    MoveState.EVICTED: _following,
    MoveState.BOUND: _following,
    MoveState.LATE: _following,
    MoveState.SURGING: _surging,
    MoveState.SURGED: _surged,
    MoveState.RETIRING: _retiring,
    MoveState.RETIRED: _retired,
    MoveState.UNDOING: _undoing,
    MoveState.UNDONE: _undone,
}
"""The rule of every state in flight."""


# What the API answers.

LAST_CALLS = frozenset({Call.SCALE_UP, Call.RELEASE, Call.SCALE_DOWN, Call.REMOVE, Call.TAKE_BACK})


def after_answer(move: Move, call: Call, answer: Answer, message: str, now: float, *, repeated: bool) -> Move:
    """The move after a call was answered. `repeated`: an earlier attempt may have been carried out."""
    effect = EFFECTS[call][answer]
    if effect is Effect.GIVE_UP and repeated:
        effect = _effect_of_repetition(call, answer)
    move = replace(move, refused="")
    if effect is Effect.AGAIN:
        return replace(move, refused=f"{call}: {message}"[:_MAX_OUTCOME]) if answer is Answer.REFUSED else move
    why = f"{call} was not possible ({answer}): {message}"
    if effect is Effect.GIVE_UP:
        return ended(move, MoveState.SKIPPED, now, why)
    if effect is Effect.UNDO:
        return replace(move, state=MoveState.UNDOING, outcome=why[:_MAX_OUTCOME], acknowledged=())
    if effect is Effect.LEAVE:
        return _left(move, move.outcome or message)
    if call not in LAST_CALLS:
        return replace(move, acknowledged=(*move.acknowledged, call))
    evicted = now if move.state is MoveState.RETIRING else move.evicted
    return replace(move, state=NEXT.get(move.state, move.state), evicted=evicted, settling=now, acknowledged=())


def _effect_of_repetition(call: Call, answer: Answer) -> Effect:
    """The earlier attempt may have succeeded: what stands there now may be ours."""
    if call is Call.HINT:
        return Effect.AGAIN
    return Effect.GO_ON if answer is Answer.ALREADY else Effect.UNDO


def after_eviction(move: Move, answer: EvictionAnswer, now: float, *, repeated: bool = False) -> Move:
    """The move after the eviction API has answered. A pod that is gone at a repetition was evicted by us."""
    state = STATE_AFTER_EVICTION[answer.outcome]
    if repeated and state is MoveState.SKIPPED:
        state = MoveState.EVICTED
    move = replace(move, answer=answer.outcome, retry_after=answer.retry_after)
    if state is MoveState.EVICTED:
        return _evicted(move, now)
    if state is MoveState.SKIPPED:
        return ended(move, state, now, "the pod was gone before it could be evicted")
    return ended(move, state, now, f"eviction refused ({answer.outcome}): {answer.message}")


def answer_to_removal(answer: EvictionAnswer) -> Answer:
    """The eviction of a released pod, as an answer of a surge."""
    if answer.outcome in (Eviction.ACCEPTED, Eviction.BACKGROUND):
        return Answer.DONE
    if answer.outcome in (Eviction.GONE, Eviction.REPLACED):
        return Answer.GONE
    return Answer.REFUSED if answer.outcome is Eviction.FORBIDDEN else Answer.LATER


# Which pod is the replacement.


def siblings(pod: Pod, view: ClusterView) -> frozenset[str]:
    """UIDs of the owner's pods when the move began: a pod that comes later is the replacement."""
    if pod.owner is None:
        return frozenset({pod.uid})
    return frozenset(other.uid for other in view.pods_of(pod.owner.uid))


def journaled_siblings(move: Move, view: ClusterView) -> frozenset[str]:
    """The same after a restart: by the ends of their UIDs, or where these were too many by the creation time."""
    known = view.pods_of(move.owner.uid) if move.owner is not None else ()
    before = frozenset(pod.uid for pod in known if pod.uid[-_UID_END:] in move.siblings)
    if not move.siblings and move.newest is not None:
        before = frozenset(pod.uid for pod in known if pod.created <= move.newest)
    return before | {move.pod.uid}


def replacement(move: Move, view: ClusterView, excluded: Collection[str]) -> Pod | None:
    """The pod that the owner created instead: the one that the policy has stamped, else one that came later, with the
    same owner and template, of a StatefulSet with the same name.

    `excluded` are the UIDs of pods that were there before and of replacements of other moves.
    """
    if move.owner is None:
        return None
    pods = [pod for pod in view.pods_of(move.owner.uid) if _is_active(pod) and pod.uid not in excluded]
    for pod in sorted(pods, key=lambda each: (each.labels.get(MOVE_LABEL) != move.id, each.created, each.name)):
        if pod.template_hash != move.template_hash:
            continue
        if move.owner.kind == "StatefulSet" and pod.name != move.pod.name:
            continue
        return pod
    return None


def look(move: Move, view: ClusterView, now: float, settings: Execution, excluded: Collection[str]) -> Seen:
    """What the watches show of the move."""
    known = view.pods.get(move.replacement or "")
    new = replacement(move, view, excluded) if move.replacement is None else known
    wanted = view.workloads.get(move.scaled.uid) if move.scaled is not None else None
    return Seen(
        now,
        view,
        settings,
        old=view.pods.get(move.pod.uid),
        new=new if _is_active(new) else None,
        wanted=None if wanted is None else wanted.replicas,
    )


def followed(move: Move, view: ClusterView, now: float, settings: Execution, excluded: Collection[str]) -> Move:
    """The move as the watches show it, as far as no call is due. One that has not started or has ended stays as it
    is."""
    if not move.in_flight:
        return move
    seen = look(move, view, now, settings, excluded)
    if move.strategy is Strategy.EVICT and move.state is not MoveState.EVICTING:
        return next_step(move, seen).move
    return tracked(move, seen)


# What the rules ask.


def available(move: Move, seen: Seen) -> bool:
    """Ready for minReadySeconds, and a ready endpoint of every Service that selects it."""
    return not _why_not_available(move, seen)


def _why_not_available(move: Move, seen: Seen) -> str:
    new = seen.new
    if new is None:
        return f"its owner has created no replacement{': ' if seen.failure else ''}{seen.failure}"
    if new.node is None:
        return f"the replacement {new.key} was not scheduled"
    if not new.ready or move.ready is None:
        return f"the replacement {new.key} on {new.node} is not Ready"
    if seen.now < move.ready + move.min_ready:
        return f"the replacement {new.key} is not Ready for minReadySeconds"
    if seen.new_served is None or not seen.new_served.by_all:
        return f"the replacement {new.key} is no ready endpoint of its Services"
    return ""


def _trouble(move: Move, seen: Seen) -> str:
    """Why a surge is taken back; empty while it may go on."""
    if _owner_gone(move, seen):
        return "its owner was deleted meanwhile"
    scales = move.strategy is Strategy.SCALE_SURGE
    if scales and not _is_active(seen.old):
        return "the pod was deleted meanwhile"
    surged = move.state is not MoveState.SURGING
    if (surged or not scales) and seen.wanted != move.replicas + (1 if scales else 0):
        return f"somebody has scaled it to {seen.wanted} replicas"
    if _rolls_out(move, seen):
        return "its owner is rolled out to another revision"
    if seen.old is not None and any(pdb.never for pdb in _pdbs_of(seen.old, seen.view)):
        return "a PodDisruptionBudget does not allow any disruption"
    if surged and move.replacement is not None and seen.new is None:
        return f"the replacement {move.replacement_key} is gone"
    if surged and seen.failure and seen.new is None:
        return f"its owner cannot create the replacement: {seen.failure}"
    target = seen.view.nodes.get(move.target)
    unbound = seen.new is None or seen.new.node is None
    if unbound and (target is None or not target.ready or target.unschedulable):
        return f"{move.target} does not take pods any more"
    return ""


def _rolls_out(move: Move, seen: Seen) -> bool:
    """Another ReplicaSet of its Deployment has replicas."""
    scaled, owner = move.scaled, move.owner
    if scaled is None or owner is None or scaled.uid == owner.uid:
        return False
    return any(
        each.owner is not None and each.owner.uid == scaled.uid and each.uid != owner.uid and each.replicas > 0
        for each in seen.view.workloads.values()
    )


def _owner_gone(move: Move, seen: Seen) -> bool:
    known = seen.view.workloads
    return seen.wanted is None or move.owner is None or move.owner.uid not in known


def _is_orphan(move: Move, seen: Seen) -> bool:
    """Released, and nobody is left to take it back."""
    old = seen.old
    released = move.strategy is Strategy.RELEASE_SURGE and old is not None and old.owner is None
    return released and not _leaving(old) and _owner_gone(move, seen)


def _goes_first(move: Move, seen: Seen) -> bool:
    """With the lowest deletion cost its ReplicaSet deletes the old pod, unless another one is in a worse state."""
    if move.strategy is not Strategy.SCALE_SURGE or seen.old is None or move.owner is None:
        return True
    others = (pod for pod in seen.view.pods_of(move.owner.uid) if _is_active(pod) and pod.uid != move.pod.uid)
    return all(_deletion_rank(pod) >= _deletion_rank(seen.old) for pod in others)


def _deletion_rank(pod: Pod) -> tuple[bool, int, bool]:
    return (pod.node is not None, _PHASES.get(pod.phase, 1), pod.ready)


def labels_to_detach(
    old: Pod, selectors: Iterable[Mapping[str, str]], view: ClusterView
) -> tuple[tuple[str, str], ...]:
    """One label of each Service and PDB that selects the pod: as few as possible, to put back as few."""
    required = [sorted(selector) for selector in selectors]
    for pdb in _pdbs_of(old, view):
        keys = [each.key for each in pdb.selector.requirements if each.key in old.labels] if pdb.selector else []
        required.append(sorted(keys))
    taken: dict[str, str] = {}
    for keys in required:
        held = [key for key in keys if key != HASH_LABEL and key in old.labels]
        if held and not taken.keys() & set(held):
            shortest = min(held, key=len)
            taken[shortest] = old.labels[shortest]
    return tuple(taken.items())


def _pdbs_of(pod: Pod, view: ClusterView) -> list[PodDisruptionBudget]:
    return [
        pdb
        for pdb in view.pdbs_in(pod.namespace)
        if pdb.selector is not None and selects(Selector(pdb.selector.requirements), pod.labels)
    ]


def _settled(move: Move, seen: Seen) -> bool:
    """Its ReplicaSet has deleted the pod that was too many."""
    owner = seen.view.workloads.get(move.owner.uid) if move.owner is not None else None
    if move.strategy is Strategy.RELEASE_SURGE and (_leaving(seen.old) or owner is None):
        return _leaving(seen.old)
    if owner is None:
        return True
    back = seen.old is not None and seen.old.owner is not None
    scaled_back = back if move.strategy is Strategy.RELEASE_SURGE else owner.replicas != move.replicas + 1
    return scaled_back and _active(move, seen.view) <= owner.replicas


def _active(move: Move, view: ClusterView) -> int:
    return sum(_is_active(pod) for pod in view.pods_of(move.owner.uid)) if move.owner is not None else 0


def _is_active(pod: Pod | None) -> bool:
    return pod is not None and pod.active


def _leaving(pod: Pod | None) -> bool:
    return pod is None or pod.deleting is not None


def _next_call(move: Move) -> Step:
    return Step(move, next(call for call in CALLS[move.strategy, move.state] if call not in move.acknowledged))


def _wait_or_undo(move: Move, seen: Seen, why: str) -> Step:
    return _undo(move, seen, f"{why} until the deadline") if _overdue(move, seen.now, seen.settings) else Step(move)


def _undo(move: Move, seen: Seen, why: str) -> Step:
    return _undoing(replace(move, state=MoveState.UNDOING, outcome=why[:_MAX_OUTCOME], acknowledged=()), seen)


def _left(move: Move, why: str) -> Move:
    """Nothing is taken back but what is ours: hints and costs."""
    return replace(move, state=MoveState.UNDONE, outcome=why[:_MAX_OUTCOME], settling=None, acknowledged=())


def _cleared(move: Move, seen: Seen, after: Move) -> Step:
    """Give the pods that stay their own deletion costs back before the move ends."""
    old = move.old_cost is not None and _is_active(seen.old)
    new = move.new_cost is not None and _is_active(seen.new)
    due = (old or new) and Call.CLEAR_COSTS not in move.acknowledged
    return Step(move, Call.CLEAR_COSTS) if due else Step(after)


def _moved(move: Move, seen: Seen) -> Move:
    new = seen.new
    if new is None:
        text = f"the old pod is gone, and so is its replacement {move.replacement_key}"
        return ended(move, MoveState.FAILED, seen.now, text)
    where = "as planned" if new.node == move.target else f"but planned for {move.target}: its scheduler chose otherwise"
    text = f"{new.key} is Ready on {new.node}, {where}"
    if not new.ready:
        text = f"{new.key} was Ready on {new.node}, {where}, and is not any more"
    return ended(move, MoveState.DONE, seen.now, text)


def _without_replacement(move: Move, seen: Seen) -> Move:
    owner, view, now = move.owner, seen.view, seen.now
    if owner is not None and owner.uid not in view.workloads:
        return ended(move, MoveState.FAILED, now, f"its {owner.kind} {owner.name} was deleted meanwhile")
    if not _overdue(move, now, seen.settings):
        return move
    if not _leaving(seen.old):
        return ended(move, MoveState.FAILED, now, "the pod is still there: it was not evicted")
    if owner is not None and not _replacement_wanted(move, owner.uid, view):
        text = f"its {owner.kind} {owner.name} was scaled down and wants no replacement"
        return ended(move, MoveState.FAILED, now, text)
    return replace(move, state=MoveState.LATE)


def _replacement_wanted(move: Move, owner_uid: str, view: ClusterView) -> bool:
    """Not after a scale-down, nor when a rollout has scaled the old ReplicaSet to zero."""
    others = [pod for pod in view.pods_of(owner_uid) if pod.uid != move.pod.uid and _is_active(pod)]
    return len(others) < view.workloads[owner_uid].replicas


def _overdue(move: Move, now: float, settings: Execution) -> bool:
    since = move.evicted if move.evicted is not None else move.began
    allowed = BACKGROUND_DEADLINE if move.answer is Eviction.BACKGROUND else settings.ready_deadline + move.min_ready
    return since is not None and now >= since + allowed


def _replica_set_replicas(move: Move, seen: Seen) -> int:
    assert move.owner is not None
    return seen.view.workloads[move.owner.uid].replicas


def reference(workload: Workload) -> Owner:
    return Owner(workload.kind, workload.name, workload.uid)

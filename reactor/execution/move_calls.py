"""What each call of a move writes to the cluster. `move_states` says which call is due and what its answer means."""

from __future__ import annotations

from reactor.cluster.records import Pod
from reactor.cluster.surge_writes import DELETION_COST, LOWEST_COST, SURGE, TAKEN_BACK, Answer, CallAnswer
from reactor.cluster.writes import ClusterWriter
from reactor.decision.strategies import HASH_LABEL
from reactor.errors import ClusterError
from reactor.execution.move_states import Seen, answer_to_removal
from reactor.execution.steering import Steering
from reactor.execution.surge_marks import labels_taken_off, owner_mark, pod_mark
from reactor.state.moves import Call, Move

_SUCCEEDED = frozenset({Answer.DONE, Answer.ALREADY, Answer.GONE})


async def make_call(
    call: Call, move: Move, seen: Seen, writer: ClusterWriter, steering: Steering, journal: str
) -> CallAnswer:
    """Any but the eviction that begins a move. A pod that is gone needs no call. `journal` is named by what marks the
    objects that a surge changes."""
    if call is Call.HINT:
        return await _hint(move, steering)
    if call in (Call.SCALE_UP, Call.SCALE_DOWN):
        return await _scale(move, writer, journal, up=call is Call.SCALE_UP)
    if call is Call.CLEAR_COSTS:
        return await _clear_costs(move, seen, writer)
    pod = seen.new if call is Call.COST_NEW else seen.old
    if pod is None:
        return CallAnswer(Answer.GONE)
    if call is Call.REMOVE:
        removed = await writer.evict(pod)
        return CallAnswer(answer_to_removal(removed), removed.message)
    if call in (Call.COST_OLD, Call.COST_NEW):
        before = move.old_cost if call is Call.COST_OLD else move.new_cost
        annotations = {DELETION_COST: LOWEST_COST, **pod_mark(move, pod, journal, before or "")}
        return await writer.surges.patch_pod(pod, annotations=annotations)
    return await _change_labels(call, move, pod, writer, journal)


async def _hint(move: Move, steering: Steering) -> CallAnswer:
    if not move.hinted:
        return CallAnswer(Answer.DONE)
    try:
        await steering.hint(move, hard=move.hard)
    except ClusterError as error:
        return CallAnswer(Answer.LATER, str(error))
    return CallAnswer(Answer.DONE)


async def _scale(move: Move, writer: ClusterWriter, journal: str, *, up: bool) -> CallAnswer:
    assert move.scaled is not None
    more = move.replicas + 1
    return await writer.surges.scale(
        move.scaled,
        move.pod.namespace,
        expected=move.replicas if up else more,
        wanted=more if up else move.replicas,
        generation=move.generation if up else None,
        manager=owner_mark(move, journal) if up else None,
    )


async def _change_labels(call: Call, move: Move, old: Pod, writer: ClusterWriter, journal: str) -> CallAnswer:
    if call is Call.RELEASE:
        return await writer.surges.patch_pod(old, labels={HASH_LABEL: None}, annotations=pod_mark(move, old, journal))
    labels: dict[str, str | None]
    if call is Call.TAKE_BACK:
        labels = {HASH_LABEL: move.template_hash, **labels_taken_off(move, old)}
        annotations = {SURGE: None, TAKEN_BACK: _attempt(move)}
        return await writer.surges.patch_pod(old, labels=labels, annotations=annotations)
    if not move.detached:
        return CallAnswer(Answer.DONE)
    labels = dict.fromkeys((key for key, _ in move.detached), None)
    return await writer.surges.patch_pod(old, labels=labels, annotations=pod_mark(move, old, journal))


async def _clear_costs(move: Move, seen: Seen, writer: ClusterWriter) -> CallAnswer:
    """The first answer that is not a success, if there is one."""
    answers = [
        await writer.surges.patch_pod(
            pod, annotations={DELETION_COST: cost or None, SURGE: None, TAKEN_BACK: _attempt(move)}
        )
        for cost, pod in ((move.old_cost, seen.old), (move.new_cost, seen.new))
        if cost is not None and pod is not None
    ]
    return next((answer for answer in answers if answer.outcome not in _SUCCEEDED), CallAnswer(Answer.DONE))


def _attempt(move: Move) -> str:
    """Written with what is taken back, so that this changes the pod also where there was nothing to take back: a write
    of a past leader that is still under way names the version before and is refused."""
    return f"{move.id}-again" if move.hard else move.id

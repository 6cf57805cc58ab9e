from __future__ import annotations

import pytest

from reactor.cluster.writes import Binding, BindingAnswer
from reactor.errors import InputError
from reactor.execution.binder import LONGEST_BACKOFF, LONGEST_BACKOFF_FORBIDDEN, Binder
from tests.support.clock import NOW, VirtualClock
from tests.support.cluster import make_pending
from tests.support.moves import plan_move
from tests.support.writer import FakeWriter

WEB = make_pending("web-2")


@pytest.mark.parametrize("outcome", list(Binding))
async def test_every_answer_to_a_binding_is_returned(outcome: Binding) -> None:
    writer = FakeWriter()
    writer.bindings["web-2"] = BindingAnswer(outcome, "what the API said")

    bound = await Binder(writer.writer, VirtualClock()).bind(WEB, plan_move(WEB, "n2"))

    assert writer.bound == [("web-2", "n2")]
    assert bound.answer.outcome is outcome
    assert bound.succeeded is (outcome in (Binding.BOUND, Binding.UNKNOWN))


@pytest.mark.parametrize(
    ("answer", "longest"),
    [(Binding.FAILED, LONGEST_BACKOFF), (Binding.FORBIDDEN, LONGEST_BACKOFF_FORBIDDEN)],
)
async def test_a_binding_that_goes_on_failing_is_tried_less_and_less_often(answer: Binding, longest: float) -> None:
    writer, clock = FakeWriter(), VirtualClock()
    binder = Binder(writer.writer, clock)
    writer.bindings["web-2"] = BindingAnswer(answer, "no")
    pauses = []
    for _ in range(12):
        await binder.bind(WEB, plan_move(WEB, "n2"))
        pauses.append(binder.backoffs[WEB.uid] - clock.now())
    assert pauses[:4] == [1.0, 2.0, 4.0, 8.0]
    assert pauses[-1] == longest

    del writer.bindings["web-2"]
    await binder.bind(WEB, plan_move(WEB, "n2"))
    assert binder.backoffs == {}


async def test_an_error_of_the_client_is_an_answer_and_the_api_servers_pause_is_kept() -> None:
    writer = FakeWriter()
    binder = Binder(writer.writer, VirtualClock())

    async def broken(*_: object) -> BindingAnswer:
        raise InputError("token: cannot be read")

    writer.bind = broken  # type: ignore[assignment]
    bound = await binder.bind(WEB, plan_move(WEB, "n2"))
    assert (bound.answer.outcome, bound.succeeded) == (Binding.FAILED, False)
    assert "token: cannot be read" in bound.answer.message

    del writer.bind
    writer.bindings["web-2"] = BindingAnswer(Binding.THROTTLED, "later", 40.0)
    await binder.bind(WEB, plan_move(WEB, "n2"))
    assert binder.backoffs[WEB.uid] == NOW + 40.0

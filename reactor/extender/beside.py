"""`rematch run --extender-port`: the extender in the process of a controller, on what that one knows already."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from reactor.app import LiveController
from reactor.cluster.extender_sign import ExtenderSign
from reactor.cluster.hints import HintReader
from reactor.extender.process import SignOfLife
from reactor.extender.server import Address, serve_extender
from reactor.extender.state import ExtenderState


@asynccontextmanager
async def extender_beside(live: LiveController, address: Address) -> AsyncIterator[str]:
    """To be entered before the controller runs. Probes and metrics are with those of the controller."""
    controller, clock = live.controller, live.controller.clock
    hints = HintReader(live.connection, clock)
    state = ExtenderState(controller.state.usage, lambda: hints.hints, clock)
    controller.state.listeners.append(state.changed)
    live.metrics.measured.append(state.measured)
    sign = SignOfLife(ExtenderSign(live.connection, live.namespace, clock), state, clock)
    live.also.extend((("hints of the extender", hints.run), ("sign of the extender", sign.run)))
    async with serve_extender(state, None, controller.instruments.registry, clock, address) as url:
        yield url

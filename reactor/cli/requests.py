"""`rematch pause`, `resume`, `move` and `apply`: requests to the controller that leads, and its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec

from reactor.clock import Clock, SystemClock
from reactor.cluster.api import Connection
from reactor.cluster.connection import DEFAULT_NAMESPACE, open_connection
from reactor.cluster.lease import LeaseObject
from reactor.cluster.requests import Action, Request, RequestedMove, RequestObjects, RequestSpec, RequestState
from reactor.cluster.rights import INSTALL
from reactor.errors import ClusterError, InputError, NotFound
from reactor.execution.leader import LeaseTiming
from reactor.settings.duration import parse_duration

ANSWER_SECONDS = 10.0
_POLL_SECONDS = 0.25
_TAKEN_WITHIN = LeaseTiming().duration + 5.0
"""Seconds in which a controller takes a request, also after a change of the leader."""


@dataclass(frozen=True, slots=True)
class Target:
    """The controller that is asked."""

    kubeconfig: str | None
    context: str | None
    namespace: str = DEFAULT_NAMESPACE


def pause(target: Target, duration: str, reason: str) -> None:
    if duration:
        try:
            parse_duration(duration)
        except ValueError as error:
            raise InputError(f"--for: {error}") from error
    asyncio.run(_ask(target, RequestSpec(Action.PAUSE, reason, duration)))


def resume(target: Target, reason: str) -> None:
    asyncio.run(_ask(target, RequestSpec(Action.RESUME, reason)))


def move(target: Target, pod: str, node: str, reason: str) -> None:
    if "/" not in pod:
        raise InputError(f"POD: {pod!r} names no namespace; write NAMESPACE/{pod} (--namespace is the controller's)")
    asyncio.run(_ask(target, RequestSpec(Action.MOVE, reason, moves=(RequestedMove(pod, node),))))


def apply(target: Target, file: Path, reason: str) -> None:
    asyncio.run(_ask(target, RequestSpec(Action.APPLY, reason, moves=moves_in(file))))


def moves_in(file: Path) -> tuple[RequestedMove, ...]:
    """Of the JSON of a plan, `rematch plan -o json` or somebody else's: `{"moves": [{"pod", "uid", "to"}]}`."""
    try:
        document = msgspec.json.decode(file.read_bytes())
        moves = document["moves"] if isinstance(document, Mapping) else None
        if not isinstance(moves, list):
            raise InputError(f"{file}: is no plan: it has no list `moves`")
        found = tuple(_move(entry, f"{file}: moves[{number}]") for number, entry in enumerate(moves))
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError) as error:
        raise InputError(f"{file}: is no plan in JSON: {error}") from error
    if not found:
        raise InputError(f"{file}: names no pod that runs and is to move")
    return found


def _move(entry: Any, where: str) -> RequestedMove:
    try:
        return msgspec.convert(entry, RequestedMove)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {error}") from error


async def controller_leads(connection: Connection, namespace: str, clock: Clock) -> str:
    """The name of the controller that leads now: who holds the Lease and renews it. Empty when nobody does."""
    lease, timing = LeaseObject(connection, namespace, ANSWER_SECONDS), LeaseTiming()
    first = await lease.read()
    if first is None or not first.holder:
        return ""
    await clock.sleep(1.5 * timing.retry)
    again = await lease.read()
    alive = again is not None and again.metadata.resource_version != first.metadata.resource_version
    return again.holder if again is not None and alive else ""


async def _ask(target: Target, spec: RequestSpec) -> None:
    async with _opened(target) as connection:
        await ask(connection, target.namespace, spec, SystemClock())


async def ask(connection: Connection, namespace: str, spec: RequestSpec, clock: Clock) -> None:
    """Create the request and follow it to its end. Raises ClusterError when it failed."""
    objects = RequestObjects(connection, namespace)
    try:
        request = await objects.create(spec)
    except NotFound as error:
        text = "the CRD requests.rematch.io or the namespace is missing; is Rematch installed in"
        raise ClusterError(f"{text} namespace {namespace}? mend it with: {INSTALL} ({error})") from error
    name = request.metadata.name
    created = clock.monotonic()
    while not request.ended:
        await clock.sleep(_POLL_SECONDS)
        found = await objects.find(name)
        if found is None:
            raise ClusterError(f"request {name} was deleted before it ended")
        if not found.status.state and clock.monotonic() - created > _TAKEN_WITHIN:
            raise ClusterError(_not_taken(name, spec, namespace))
        request = found
    _show(request)


def _not_taken(name: str, spec: RequestSpec, namespace: str) -> str:
    later = "the next one carries it out" if spec.action in (Action.PAUSE, Action.RESUME) else "it may still be taken"
    command = f"kubectl get lease rematch -n {namespace}"
    return f"no controller took request {name} within {_TAKEN_WITHIN:g} s; {later}. Who leads? {command}"


def _show(request: Request) -> None:
    for result in request.status.moves:
        click.echo(f"{result.pod} to {result.to}: {result.state} {result.message}".rstrip())
    if request.status.state == RequestState.FAILED:
        raise ClusterError(f"request {request.metadata.name} failed: {request.status.message}")
    click.echo(request.status.message)


@asynccontextmanager
async def _opened(target: Target) -> AsyncIterator[Connection]:
    connection = await open_connection(target.kubeconfig, target.context)
    try:
        yield connection
    finally:
        await connection.close()

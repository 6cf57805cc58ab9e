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
from reactor.cluster.requests import Action, Request, RequestedMove, RequestSpec, RequestState
from reactor.errors import ClusterError, InputError
from reactor.execution.asking import ask
from reactor.settings.duration import parse_duration


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
        pod = f"default/{pod}"
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


async def _ask(target: Target, spec: RequestSpec) -> None:
    async with _opened(target) as connection:
        await ask_and_show(connection, target.namespace, spec, SystemClock())


async def ask_and_show(connection: Connection, namespace: str, spec: RequestSpec, clock: Clock) -> None:
    """Raises ClusterError when the request failed."""
    _show(await ask(connection, namespace, spec, clock))


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

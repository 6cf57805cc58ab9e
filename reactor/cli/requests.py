"""`rematch pause`, `resume`, `move` and `apply`: requests to the controller that leads, and its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
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
from reactor.framework.session import ConnectionOptions, open_session
from reactor.record.logs import configure_logs
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


def move(target: Target, wanted: RequestedMove, reason: str, *, namespace: str, dry_run: bool) -> None:
    moves = _in_namespace((wanted,), namespace)
    _carry_out(target, RequestSpec(Action.MOVE, reason, moves=moves), dry_run=dry_run)


def apply(target: Target, file: Path, reason: str, *, namespace: str, dry_run: bool) -> None:
    moves = _in_namespace(moves_in(file), namespace)
    _carry_out(target, RequestSpec(Action.APPLY, reason, moves=moves), dry_run=dry_run)


def _in_namespace(moves: Iterable[RequestedMove], namespace: str) -> tuple[RequestedMove, ...]:
    """Names that have a namespace of their own keep it."""
    return tuple(
        msgspec.structs.replace(each, pod=f"{namespace}/{each.pod}") if namespace and "/" not in each.pod else each
        for each in moves
    )


def _carry_out(target: Target, spec: RequestSpec, *, dry_run: bool) -> None:
    asyncio.run(_check(target, spec) if dry_run else _ask(target, spec))


async def _check(target: Target, spec: RequestSpec) -> None:
    """What the controller would do with it. Nothing is changed."""
    configure_logs(level="error")
    async with open_session(ConnectionOptions(target.kubeconfig, target.context), dry_run=True) as session:
        checked = session.check(spec.moves, "the request")
    refusals = checked.refusals(spec.moves)
    strategies = {pod.uid: pod.strategy for pod in checked.problem.pods}
    for asked in spec.moves:
        pod = checked.pods[asked.pod]
        if asked.pod in refusals:
            text = f"refused {refusals[asked.pod]}"
        elif pod.node is None:
            text = "is pending: the controller's binder places it"
        else:
            text = "is there already" if pod.node == asked.to else f"would move from {pod.node}, {strategies[pod.uid]}"
        click.echo(f"{pod.key} to {asked.to}: {text}")
    if refusals:
        raise ClusterError(f"{len(refusals)} of {len(spec.moves)} moves would be refused; nothing was changed")
    click.echo("dry run: nothing was changed")


def moves_in(file: Path) -> tuple[RequestedMove, ...]:
    """Of a plan in JSON: `rematch plan -o json` or somebody else's `{"moves": [{"pod", "uid", "to"}]}`, or KSE's
    `{"pod": "node"}`."""
    try:
        document = msgspec.json.decode(file.read_bytes())
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: is no plan in JSON: {error}") from error
    if not isinstance(document, Mapping):
        raise InputError(f'{file}: is no plan: it is neither {{"moves": [...]}} nor {{"pod": "node"}}')
    moves = document.get("moves")
    if isinstance(moves, list):
        found = tuple(_move(entry, f"{file}: moves[{number}]") for number, entry in enumerate(moves))
    else:
        found = tuple(_pod_to_node(pod, node, file) for pod, node in document.items())
    if not found:
        raise InputError(f"{file}: names no pod that runs and is to move")
    return found


def _pod_to_node(pod: str, node: Any, file: Path) -> RequestedMove:
    if not isinstance(node, str) or not node:
        raise InputError(f'{file}: is no plan: it has no list `moves`, and the node of "{pod}" is {node!r}')
    return RequestedMove(pod, node)


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

"""`Request` objects: what users ask of the leader, and what became of it."""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import Struct

from reactor.cluster.api import Body, Connection
from reactor.cluster.objects import Collection, ObjectMeta

_API_VERSION = "rematch.io/v1alpha1"
_LONGEST_MESSAGE = 1000


class Action(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    MOVE = "move"
    APPLY = "apply"


class RequestState(StrEnum):
    ACCEPTED = "accepted"
    DONE = "done"
    FAILED = "failed"


class RequestedMove(Struct, frozen=True, omit_defaults=True):
    pod: str
    to: str
    uid: str = ""


class MoveResult(Struct, frozen=True, omit_defaults=True):
    pod: str
    to: str = ""
    state: str = ""
    message: str = ""


class RequestSpec(Struct, frozen=True, omit_defaults=True, rename={"duration": "for"}):
    action: Action
    reason: str = ""
    duration: str = ""
    moves: tuple[RequestedMove, ...] = ()


class RequestStatus(Struct, frozen=True, omit_defaults=True):
    state: str = ""
    message: str = ""
    leader: str = ""
    moves: tuple[MoveResult, ...] = ()


class Request(Struct, frozen=True):
    metadata: ObjectMeta
    spec: RequestSpec
    status: RequestStatus = RequestStatus()

    @property
    def ended(self) -> bool:
        return self.status.state in (RequestState.DONE, RequestState.FAILED)


class RequestObjects:
    """Every method raises a ClusterError."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        path = f"/apis/{_API_VERSION}/namespaces/{namespace}/requests"
        self._objects = Collection(connection, path, Request)

    async def list_all(self) -> list[Request]:
        """Oldest first."""
        found = await self._objects.list_all()
        return sorted(found, key=lambda each: (each.metadata.creation_timestamp, each.metadata.name))

    async def find(self, name: str) -> Request | None:
        return await self._objects.find(name)

    async def create(self, spec: RequestSpec) -> Request:
        metadata = {"generateName": f"{spec.action}-"}
        body: Body = {
            "apiVersion": _API_VERSION,
            "kind": "Request",
            "metadata": metadata,
            "spec": msgspec.to_builtins(spec),
        }
        return await self._objects.create(body)

    async def write_status(self, request: Request, status: RequestStatus) -> Request:
        """Conflict when somebody else has written it since it was read."""
        shortened = msgspec.structs.replace(status, message=status.message[:_LONGEST_MESSAGE])
        return await self._objects.patch(request.metadata, {"status": msgspec.to_builtins(shortened)}, status=True)

    async def delete(self, request: Request) -> None:
        await self._objects.delete(request.metadata)

"""Reading and writing objects of one collection by compare-and-swap: the journal, requests, the Lease, hints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from reactor.cluster.api import MERGE_PATCH, ApiRequest, Body, Connection, checked, decoded
from reactor.errors import NotFound

DEADLINE = 5.0
"""Seconds for one call."""
PAGE_SIZE = 500


class ObjectMeta(Struct, rename="camel", frozen=True, gc=False):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str = ""
    annotations: Mapping[str, str] = {}


T = TypeVar("T")


class _ListMeta(Struct, rename={"token": "continue"}, gc=False):
    token: str | None = None


class _List(Struct, Generic[T]):
    metadata: _ListMeta
    items: list[T]


class Collection(Generic[T]):
    """The objects under `path`, decoded as `T` (a msgspec type with a field `metadata: ObjectMeta`).

    Every method raises a ClusterError. After Unreachable the object has to be read: the call may have been carried out.
    """

    def __init__(self, connection: Connection, path: str, shape: type[T], deadline: float = DEADLINE) -> None:
        self._connection = connection
        self.path = path
        self._one: msgspec.json.Decoder[T] = msgspec.json.Decoder(shape)
        self._many = msgspec.json.Decoder(_List[shape])  # type: ignore[valid-type]
        self._deadline = deadline

    async def find(self, name: str) -> T | None:
        """None when there is none. A collection that is not served (404 as well) is told by `list_all`."""
        try:
            return self._decode(await self._send("GET", f"{self.path}/{name}"))
        except NotFound:
            return None

    async def list_all(self) -> list[T]:
        found: list[T] = []
        token: str | None = ""
        while token is not None:
            query = {"limit": str(PAGE_SIZE)} | ({"continue": token} if token else {})
            body = await self._send("GET", self.path, query=query)
            page = decoded(self._many, body, f"GET {self.path}")
            found += page.items
            token = page.metadata.token or None
        return found

    async def create(self, body: Body) -> T:
        """`body` names kind, apiVersion and metadata. Raises Conflict when the name is taken."""
        return self._decode(await self._send("POST", self.path, body=body))

    async def patch(
        self, meta: ObjectMeta, change: Body, *, status: bool = False, annotations: Mapping[str, str] | None = None
    ) -> T:
        """A merge patch that applies to this version only: Conflict when somebody else has written it since."""
        stated = {"annotations": annotations} if annotations else {}
        body = {**change, "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version, **stated}}
        path = f"{self.path}/{meta.name}/status" if status else f"{self.path}/{meta.name}"
        return self._decode(await self._send("PATCH", path, body=body, content_type=MERGE_PATCH))

    async def delete(self, meta: ObjectMeta) -> None:
        """Only this version: Conflict when somebody has written it since. One that is gone already is no error."""
        preconditions = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        try:
            await self._send("DELETE", f"{self.path}/{meta.name}", body={"preconditions": preconditions})
        except NotFound:
            return

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Body | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        request = ApiRequest(method, path, query, body, content_type, self._deadline)
        return checked(await self._connection.send(request), f"{method} {path}")

    def _decode(self, body: bytes) -> T:
        return decoded(self._one, body, self.path)

"""The API server's audit log: which writes happened, by whom, and what they said.

One log line is one completed request. A controller is told from its predecessor by the id of its token, which the API
server writes with every request: each process that is started gets a token of its own.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import yaml

from loadtests.chaos.requests import Step, write_step
from loadtests.controlplane import Component

ACCOUNT = "system:serviceaccount:rematch:rematch"
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
_READS = ["get", "list", "watch"]


def audit_flags(folder: Path) -> dict[Component, tuple[str, ...]]:
    """Flags of an API server that logs to `log_path(folder)`. Blocking: an accepted write is in the log."""
    folder.mkdir(parents=True, exist_ok=True)
    policy = folder / "audit-policy.yaml"
    policy.write_text(yaml.safe_dump(_policy()))
    log = (f"--audit-policy-file={policy}", f"--audit-log-path={log_path(folder)}")
    return {Component.API_SERVER: (*log, "--audit-log-mode=blocking", "--audit-log-maxsize=100000")}


def log_path(folder: Path) -> Path:
    return folder / "audit.log"


def _policy() -> dict[str, Any]:
    """Our writes whole, Events and everybody else's pods and workloads by name only, reads not at all."""
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived", "ResponseStarted"],
        "omitManagedFields": True,
        "rules": [
            {"level": "None", "verbs": _READS},
            {"level": "Metadata", "users": [ACCOUNT], "resources": [{"group": "", "resources": ["events"]}]},
            {"level": "RequestResponse", "users": [ACCOUNT]},
            {"level": "Metadata", "resources": [{"group": "", "resources": ["pods"]}, {"group": "apps"}]},
            {"level": "Metadata", "resources": [{"group": "rematch.io"}]},
            {"level": "None"},
        ],
    }


class _Ref(msgspec.Struct, rename="camel"):
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class _User(msgspec.Struct):
    username: str = ""
    extra: dict[str, list[str]] = {}


class _Line(msgspec.Struct, rename="camel"):
    verb: str
    user: _User
    request_received_timestamp: datetime
    stage_timestamp: datetime
    object_ref: _Ref = msgspec.field(default_factory=_Ref)
    response_status: _Status = msgspec.field(default_factory=_Status)
    request_object: Any = None
    """A JSON patch is a list."""
    response_object: dict[str, Any] | None = None


class Write(msgspec.Struct, frozen=True):
    """One write that reached the API server. Times are seconds since 1970."""

    began: float
    ended: float
    user: str
    credential: str
    """Id of the token; which process that was is known to who started it."""
    verb: str
    step: Step
    namespace: str
    name: str
    code: int
    resource: str = ""
    request: Any = {}
    response: dict[str, Any] = {}

    @property
    def accepted(self) -> bool:
        return 200 <= self.code < 300

    @property
    def ours(self) -> bool:
        return self.user == ACCOUNT

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name


_LINES = msgspec.json.Decoder(_Line)


class AuditLog:
    """Reads on from where the last reading ended."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def new_writes(self) -> list[Write]:
        with self._path.open("rb") as log:
            log.seek(self._offset)
            text = log.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        return list(parse(whole))


def parse(text: bytes) -> Iterator[Write]:
    for line in text.splitlines():
        if line.strip():
            yield _write(_LINES.decode(line))


def _write(line: _Line) -> Write:
    ref = line.object_ref
    body = line.request_object if isinstance(line.request_object, dict) else {}
    return Write(
        began=line.request_received_timestamp.timestamp(),
        ended=line.stage_timestamp.timestamp(),
        user=line.user.username,
        credential=next(iter(line.user.extra.get(_CREDENTIAL, ())), ""),
        verb=line.verb,
        step=write_step(line.verb, ref.namespace, ref.resource, ref.subresource),
        namespace=ref.namespace,
        name=ref.name or str((body.get("metadata") or {}).get("name", "")),
        code=line.response_status.code,
        resource=ref.resource,
        request=line.request_object or {},
        response=line.response_object or {},
    )


def credential_of(token: str) -> str:
    """The id that the audit log will show for a service account's token."""
    payload = token.split(".")[1]
    claims = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return f"JTI={claims['jti']}"

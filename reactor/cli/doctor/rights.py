"""May the controller's account do what the controller does?"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from reactor.cli.doctor.cluster import ApiServer, Examined, listed
from reactor.cli.doctor.findings import Finding, State
from reactor.cluster.rights import Right, Scope, rights
from reactor.errors import Forbidden

_AUTHORIZATION = "/apis/authorization.k8s.io/v1"


class _User(msgspec.Struct):
    username: str = ""


class _Identity(msgspec.Struct, rename="camel"):
    user_info: _User = msgspec.field(default_factory=_User)


class _WhoAmI(msgspec.Struct):
    status: _Identity


class _Verdict(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Verdict


Ask = Callable[[Right, str], Awaitable[bool]]
"""Whether the account has this right in the namespace, or in all of them where it is empty."""


async def check_rights(examined: Examined) -> list[Finding]:
    account = f"system:serviceaccount:{examined.namespace}:rematch"
    ask = _asking(examined.api, account, await _who_asks(examined.api) == account)
    wanted = list(rights())
    try:
        answers = await asyncio.gather(*(_has(ask, right, examined) for right in wanted))
    except Forbidden as error:
        text = f"only a user who may create subjectaccessreviews can see what {account} may do: {error}"
        return [Finding("rights", State.UNKNOWN, text)]
    missing = [right for right, has in zip(wanted, answers, strict=True) if not has]
    if not missing:
        return [Finding("rights", State.OK, f"{account} has all {len(wanted)}")]
    names = listed([f"{right.verb} {right.resource} ({right.why})" for right in missing])
    text = f"{account} lacks {len(missing)} of {len(wanted)}: {names}"
    return [Finding("rights", State.FAILED, text, examined.installation.mend())]


async def _who_asks(api: ApiServer) -> str:
    found = await api.review("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, _WhoAmI)
    return found.status.user_info.username


def _asking(api: ApiServer, account: str, ourselves: bool) -> Ask:
    """Everyone may ask about themselves: inside the controller's pod no further right is needed."""
    kind, who = ("selfsubjectaccessreviews", {}) if ourselves else ("subjectaccessreviews", {"user": account})

    async def ask(right: Right, namespace: str) -> bool:
        resource, _, subresource = right.resource.partition("/")
        attributes = {
            "group": right.group,
            "resource": resource,
            "subresource": subresource,
            "verb": right.verb,
            "namespace": namespace,
            "name": right.name,
        }
        spec = {**who, "resourceAttributes": attributes}
        return (await api.review(f"{_AUTHORIZATION}/{kind}", spec, _Review)).status.allowed

    return ask


async def _has(ask: Ask, right: Right, examined: Examined) -> bool:
    if right.scope is Scope.OWN:
        return await ask(right, examined.namespace)
    if await ask(right, ""):
        return True
    namespaces = examined.settings.managed.namespaces if right.scope is Scope.PODS else ()
    return bool(namespaces) and all([await ask(right, namespace) for namespace in namespaces])

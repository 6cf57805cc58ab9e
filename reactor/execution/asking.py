"""Asks the controller that leads to do something: creates a Request and follows it to its end."""

from __future__ import annotations

from reactor.clock import Clock
from reactor.cluster.api import Connection
from reactor.cluster.lease import LeaseObject
from reactor.cluster.requests import Action, Request, RequestObjects, RequestSpec
from reactor.cluster.rights import INSTALL
from reactor.errors import ClusterError, Conflict, NotFound
from reactor.execution.leader import LeaseTiming

ANSWER_SECONDS = 10.0
_POLL_SECONDS = 0.25
_TAKEN_WITHIN = LeaseTiming().duration + 5.0
"""Seconds in which a controller takes a request, also after a change of the leader."""


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


async def ask(connection: Connection, namespace: str, spec: RequestSpec, clock: Clock) -> Request:
    """The request as it ended, done or failed. Raises ClusterError when nobody took it; moves are withdrawn then."""
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
            await _give_up(objects, found, namespace)
        request = found
    return request


async def _give_up(objects: RequestObjects, request: Request, namespace: str) -> None:
    """Raises ClusterError, unless somebody takes the request right now. A pause or resume stays for the next leader."""
    name = request.metadata.name
    if request.spec.action in (Action.PAUSE, Action.RESUME):
        fate = "it stays, and the next one carries it out"
    else:
        try:
            await objects.delete(request)
            fate = "it is deleted, nothing will be moved"
        except Conflict:
            return
        except ClusterError as error:
            command = f"kubectl delete requests.rematch.io {name} -n {namespace}"
            fate = f"it may still be taken, because it cannot be deleted ({error}): {command}"
    text = f"no controller in namespace {namespace} took request {name} within {_TAKEN_WITHIN:g} s; {fate}"
    raise ClusterError(f"{text}. Where does one lead? kubectl get lease -A --field-selector metadata.name=rematch")

"""Can pods of other schedulers be sent to their planned nodes here?"""

from __future__ import annotations

from dataclasses import replace

from reactor.cli.doctor.cluster import Examined
from reactor.cli.doctor.findings import Finding, State
from reactor.cluster.extender_sign import ExtenderSign
from reactor.cluster.steering_policy import SteeringPolicy
from reactor.errors import ClusterError
from reactor.settings.model import SteeringMode
from reactor.state.steering import SteeringStatus


async def steering_status(policy: SteeringPolicy, sign: ExtenderSign, *, canary: bool) -> SteeringStatus:
    """What is installed; with `canary` also whether it works, for which a ReplicaSet is made and removed again."""
    status = await _policy_status(policy, canary=canary)
    try:
        return replace(status, extender_problem=await sign.problem())
    except ClusterError as error:
        return replace(status, extender_problem=f"whether an extender runs could not be read: {error}")


async def _policy_status(policy: SteeringPolicy, *, canary: bool) -> SteeringStatus:
    try:
        problem = (await policy.discover()).problem
    except ClusterError as error:
        return SteeringStatus(problem=f"whether the policy rematch-hints is installed could not be read: {error}")
    if not problem and canary:
        problem = await policy.try_canary()
    return SteeringStatus(policy_works=not problem, problem=problem, tried=canary)


async def check_steering(examined: Examined) -> list[Finding]:
    mode, status = examined.settings.placement.steering, examined.steering
    if mode in (SteeringMode.BINDER, SteeringMode.NONE):
        return [Finding("steering", State.OK, f"placement.steering is {mode}: hints are not used")]
    if mode is SteeringMode.EXTENDER:
        if status.extender_problem:
            mend = "kubectl -n NAMESPACE get lease rematch-extender -o yaml; docs/extender.md"
            return [Finding("steering", State.FAILED, status.extender_problem, mend)]
        return [Finding("steering", State.OK, "kube-scheduler asks the extender")]
    if status.problem:
        state = State.FAILED if mode is SteeringMode.POLICY else State.WARNING
        return [Finding("steering", state, status.problem, examined.installation.mend())]
    if status.tried:
        return [Finding("steering", State.OK, "a canary pod got the stamp of the policy rematch-hints")]
    text = "the policy rematch-hints is installed; --canary tries it, with a ReplicaSet that is removed again"
    return [Finding("steering", State.OK, text)]

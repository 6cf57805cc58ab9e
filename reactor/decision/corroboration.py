"""Does anything but Events say that a pod's probes fail?

Anyone who may create Events in a namespace can write some about its pods. So Events alone start no rematch, unless a
policy of the API server lets only kubelets write them.
"""

from __future__ import annotations

from reactor.cluster.records import Pod
from reactor.decision.causes import NodeCause
from reactor.settings.model import Settings, TrustEvents
from reactor.state.snapshot import Snapshot


def corroborated(pod: Pod, cause: NodeCause, snapshot: Snapshot, settings: Settings) -> bool:
    return cause.pressure or fails_for_certain(pod, snapshot, settings)


def fails_for_certain(pod: Pod, snapshot: Snapshot, settings: Settings) -> bool:
    """Whatever is the matter with its node."""
    return (
        _by_counters(pod, snapshot, settings)
        or _by_status(pod, snapshot.at, settings)
        or _authentic(snapshot, settings)
    )


def _by_counters(pod: Pod, snapshot: Snapshot, settings: Settings) -> bool:
    """The kubelet's counters alone are evidence enough."""
    recent = snapshot.recent_probes.get(pod.uid, ())
    counted = max(snapshot.happiness[pod.uid].counts.counted, sum(each.counted_failed() for each in recent))
    return counted > 0 and counted >= settings.decision.minimum_failures


def _by_status(pod: Pod, now: float, settings: Settings) -> bool:
    """Only kubelets write the status of pods. A restart counts for as long as the failures before it do."""
    recent = now - 2 * settings.happiness.half_life
    return any(
        container.fails_readiness
        or (container.restarts > 0 and container.terminated is not None and container.terminated >= recent)
        for container in pod.containers
        if container.liveness is not None
    )


def _authentic(snapshot: Snapshot, settings: Settings) -> bool:
    trust = settings.happiness.trust_events
    return trust is TrustEvents.ALWAYS or (trust is TrustEvents.AUTO and snapshot.events_authentic)

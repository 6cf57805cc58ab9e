"""The metrics of the extender."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from reactor.extender.answers import Judgement

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 1.0)


class ExtenderInstruments:
    def __init__(self, registry: CollectorRegistry) -> None:
        self.seconds = Histogram(
            "rematch_extender_seconds",
            "From the last byte of a request to its answer.",
            ["verb"],
            registry=registry,
            buckets=_SECONDS,
        )
        self.refused = Counter(
            "rematch_extender_refused", "Requests that are not what kube-scheduler sends.", registry=registry
        )
        self.judged = Counter("rematch_extender_pods", "Answers to prioritize.", ["judgement"], registry=registry)
        self.nodes = Gauge(
            "rematch_extender_nodes", "Nodes whose network use is known, or not.", ["state"], registry=registry
        )
        for judgement in Judgement:
            self.judged.labels(judgement)

"""Is usage measured here, and is it fresh?"""

from __future__ import annotations

from reactor.cli.doctor.cluster import Examined, listed
from reactor.cli.doctor.findings import Finding, State
from reactor.errors import MetricsError
from reactor.signals.metrics_api import MetricsApiSource
from reactor.signals.prometheus import PrometheusSource

_INSTALL = "kubectl apply -f https://github.com/kubernetes-sigs/metrics-server/releases/latest/download/components.yaml"
_LOOK = "kubectl describe apiservice v1beta1.metrics.k8s.io"


async def check_measurements(examined: Examined) -> list[Finding]:
    found = []
    settings = examined.settings.metrics
    if settings.metrics_api.enabled:
        found.append(await _metrics_api(examined))
    if settings.prometheus.url:
        found.append(await _prometheus(examined))
    if not found:
        text = "neither metrics.metricsApi nor metrics.prometheus is on: no running pod is moved"
        found.append(
            Finding(
                "measurements",
                State.FAILED,
                text,
                examined.installation.mend("settings.metrics.metricsApi.enabled=true"),
            )
        )
    return found


async def _metrics_api(examined: Examined) -> Finding:
    settings = examined.settings.metrics
    source = MetricsApiSource(examined.reader, examined.clock, _at_once)
    answer = await source.read(settings.metrics_api.timeout)
    check = "metrics.k8s.io"
    state = State.WARNING if settings.prometheus.url else State.FAILED
    if answer.absent:
        text = "not served: there is no metrics-server; without measurements no running pod is moved"
        return Finding(check, state, text, _INSTALL)
    if answer.problems:
        return Finding(check, state, listed([str(problem) for problem in answer.problems], 2), _LOOK)
    now = examined.clock.now()
    fresh = {sample.node for sample in answer.nodes if now - sample.at <= settings.freshness}
    missing = sorted(examined.view.nodes.keys() - fresh)
    if missing:
        text = f"{len(missing)} of {len(examined.view.nodes)} nodes have no fresh sample: {listed(missing)}"
        return Finding(check, State.WARNING, text, _LOOK)
    return Finding(check, State.OK, f"fresh samples of {len(fresh)} nodes and {len(answer.pods)} pods")


async def _at_once() -> None:
    """No cycle waits for this process."""


async def _prometheus(examined: Examined) -> Finding:
    settings = examined.settings.metrics.prometheus
    try:
        found = await PrometheusSource().query(settings, "nodeCpu", settings.queries.node_cpu)
    except MetricsError as error:
        text = f"not from here: {error}; the controller's own view is rematch_metrics_source_up"
        return Finding("Prometheus", State.UNKNOWN, text)
    if not found:
        text = f"{settings.url} answers, but has no CPU usage of nodes (metrics.prometheus.queries.nodeCpu)"
        return Finding("Prometheus", State.FAILED, text)
    return Finding("Prometheus", State.OK, f"{settings.url} has the CPU usage of {len(found)} nodes")

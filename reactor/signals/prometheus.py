"""Prometheus through prometheus-api-client: the only module that imports it.

The client blocks, repeats three times with backoff, and its timeout is per read. Here every call runs in a thread of
its own with a session of its own, without repeats, and ends at its deadline: the socket is shut down under it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import requests
from prometheus_api_client import PrometheusApiClientException, PrometheusConnect
from urllib3.util.retry import Retry

from reactor.cluster.records import NodeUsageSample, PodUsageSample
from reactor.errors import MetricsError
from reactor.settings.model import Prometheus
from reactor.signals.blocking_calls import BoundedThreads, CallSockets, Exhausted, SocketTrackingAdapter
from reactor.signals.measurements import LinkSample, NetworkSample, ProbeCounter, ThrottleSample
from reactor.signals.prometheus_samples import (
    VectorSample,
    link_speeds,
    longest_range,
    network_rates,
    node_usage,
    parse_vector,
    pod_usage,
    probe_counters,
    single_value,
    throttling,
)

_THREADS = 4
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class PrometheusRound:
    """What one round of queries told. A query that failed is in `problems`; the others' answers stand."""

    pods: list[PodUsageSample] = field(default_factory=list)
    cpu_window: float = 0.0
    """Seconds that the pods' CPU rates are taken over; for a younger pod such a rate is too low."""
    nodes: list[NodeUsageSample] = field(default_factory=list)
    throttled: list[ThrottleSample] = field(default_factory=list)
    probes: list[ProbeCounter] = field(default_factory=list)
    network: list[NetworkSample] = field(default_factory=list)
    links: list[LinkSample] = field(default_factory=list)
    availability: float | None = None
    latency_p95: float | None = None
    problems: tuple[MetricsError, ...] = ()


class PrometheusSource:
    def __init__(self) -> None:
        self._threads = BoundedThreads(_THREADS)

    @property
    def busy(self) -> int:
        """Queries under way, those included that nobody waits for any more."""
        return self._threads.busy

    async def read(self, settings: Prometheus, pods: Mapping[str, int]) -> PrometheusRound:
        """`pods` is the number of pods by namespace: above `seriesPerQuery` the per-pod queries are split."""
        if not settings.url:
            return PrometheusRound()
        asked = settings.queries.model_dump(by_alias=True)
        every = matchers(pods, settings.series_per_query)
        answers = await asyncio.gather(*(self._vector(settings, name, text, every) for name, text in asked.items()))
        told = {name: series for name, (series, _) in zip(asked, answers, strict=True)}
        return PrometheusRound(
            pods=pod_usage(told["podCpu"], told["podMemory"]),
            cpu_window=longest_range(settings.queries.pod_cpu),
            nodes=node_usage(told["nodeCpu"], told["nodeMemory"]),
            throttled=throttling(told["throttled"]),
            probes=probe_counters(told["probes"]),
            network=network_rates(told["podNetwork"]),
            links=link_speeds(told["nodeBandwidth"]),
            availability=single_value(told["availability"]),
            latency_p95=single_value(told["latencyP95"]),
            problems=tuple(problem for _, problem in answers if problem is not None),
        )

    async def _vector(
        self, settings: Prometheus, name: str, query: str, every: list[str]
    ) -> tuple[list[VectorSample], MetricsError | None]:
        """All parts of one query. What one part could not tell is missing; the first problem stands for all."""
        if not query:
            return [], None
        asked = (self.query(settings, name, part) for part in parts_of(query, every))
        answers = await asyncio.gather(*asked, return_exceptions=True)
        series: list[VectorSample] = []
        problem: MetricsError | None = None
        for answer in answers:
            if isinstance(answer, MetricsError):
                problem = problem or answer
            elif isinstance(answer, BaseException):
                raise answer
            else:
                series.extend(answer)
        return series, problem

    async def query(self, settings: Prometheus, name: str, promql: str) -> list[VectorSample]:
        """One instant query; `name` is its key in the settings and stands in every error."""
        sockets = CallSockets()
        try:
            answer = await self._threads.run(
                lambda: _ask(settings, promql, sockets), sockets.shut_down, settings.timeout
            )
        except (TimeoutError, requests.Timeout):
            what = f"no whole answer within {settings.timeout:g} s; raise timeout or lower seriesPerQuery"
            raise _problem(name, settings, what) from None
        except Exhausted:
            raise _problem(name, settings, f"{_THREADS} earlier queries still hang; skipped") from None
        except MetricsError as error:
            raise _problem(name, settings, str(error)) from error
        except PrometheusApiClientException as error:
            raise _problem(name, settings, _refusal(str(error))) from error
        except requests.exceptions.JSONDecodeError as error:
            raise _problem(name, settings, "the answer is not JSON; is this the address of Prometheus?") from error
        except (requests.RequestException, OSError) as error:
            raise _problem(name, settings, f"not reachable: {str(error)[:_SHOWN]}") from error
        except (KeyError, TypeError, ValueError) as error:
            raise _problem(name, settings, "the answer has no data.result; is this a Prometheus?") from error
        return parse_vector(name, answer)


def _problem(name: str, settings: Prometheus, what: str) -> MetricsError:
    return MetricsError(f"metrics.prometheus.queries.{name} at {settings.url}: {what}")


def _refusal(text: str) -> str:
    """The client's exception carries status and body; authentication and bad PromQL have different cures."""
    hint = ""
    if "Code 401" in text or "Code 403" in text:
        hint = "; check tokenFile"
    elif "Code 400" in text or "Code 422" in text:
        hint = "; check the query"
    elif "Code 404" in text:
        hint = "; check url"
    return text[:_SHOWN] + hint


def _ask(settings: Prometheus, promql: str, sockets: CallSockets) -> object:
    """In a thread. The token is read anew each time, so a rotated one is used at once."""
    headers = {"Authorization": f"Bearer {_token(settings.token_file)}"} if settings.token_file else {}
    url = settings.url.rstrip("/")
    with requests.Session() as session:
        session.verify = settings.ca_file or True
        client = PrometheusConnect(
            url=url, headers=headers, session=session, timeout=settings.timeout, retry=Retry(total=0)
        )
        session.mount(url, SocketTrackingAdapter(sockets))
        return client.custom_query(promql, params={"timeout": f"{settings.timeout:g}s"})


def _token(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except (OSError, ValueError) as error:
        raise MetricsError(f"tokenFile cannot be read: {error}") from error


PLACEHOLDER = "$namespaces"
_EVERY = 'namespace!=""'
_LONGEST = 3000
"""Characters of names in one matcher: a query travels in the URL, and proxies refuse long ones."""


def matchers(pods: Mapping[str, int], limit: int) -> list[str]:
    """As few matchers as keep each below `limit` pods; a namespace with more is asked for alone."""
    if sum(pods.values()) <= limit:
        return [_EVERY]
    parts: list[list[str]] = []
    room, length = 0, 0
    for name, number in sorted(pods.items(), key=lambda item: -item[1]):
        if not parts or number > room or length + len(name) > _LONGEST:
            parts.append([])
            room, length = limit, 0
        parts[-1].append(name)
        room -= number
        length += len(name) + 1
    return [f'namespace=~"{"|".join(map(_literal, part))}"' for part in parts]


def parts_of(query: str, every: list[str]) -> list[str]:
    """The queries to ask: one without the placeholder is asked once as it stands."""
    if PLACEHOLDER not in query:
        return [query]
    return [query.replace(PLACEHOLDER, matcher) for matcher in every]


def _literal(name: str) -> str:
    """Kubernetes allows only letters, digits and dashes; anything else is quoted for regex and string both."""
    return re.sub(r"[^A-Za-z0-9-]", lambda found: "\\\\" + found[0] if found[0] != '"' else '\\"', name)

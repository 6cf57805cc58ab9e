"""Prometheus through prometheus-api-client: the only module that imports it.

The client blocks, retries three times with backoff, and its timeout is per read. So every call runs in a thread with
its own session and without retries, and its sockets are shut down at its deadline.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import requests
from prometheus_api_client import PrometheusApiClientException, PrometheusConnect
from urllib3.util.retry import Retry

from reactor.cluster.records import NodeUsageSample, PodUsageSample
from reactor.errors import InputError, MetricsError
from reactor.settings.model import Prometheus
from reactor.signals.blocking_calls import BoundedThreads, CallSockets, Exhausted, SocketTrackingAdapter
from reactor.signals.measurements import (
    DiskSample,
    LinkSample,
    NetworkSample,
    NodeRateSample,
    PressureSample,
    ProbeCounter,
    ThrottleSample,
)
from reactor.signals.prometheus_samples import (
    VectorSample,
    disk_rates,
    link_speeds,
    longest_range,
    network_rates,
    node_rates,
    node_usage,
    parse_matrix,
    parse_vector,
    pod_usage,
    pressure,
    probe_counters,
    single_value,
    throttling,
)

_THREADS = 4
_SHOWN = 200
_ERROR = re.compile(r'"error"\s*:\s*"((?:[^"\\]|\\.)*)"')
"""In the body of an answer, which the client's message quotes."""

PLACEHOLDER = "$namespaces"
"""Stands in a query for a matcher on the label `namespace`, so that a large query can be split."""
KUBELETS = "$kubelets"
"""Stands in a query for a matcher on the label `job`."""
_ALL_NAMESPACES = 'namespace!=""'
_LONGEST_MATCHER = 3000
"""Characters of names in one matcher: a query is part of the URL, and proxies refuse long URLs."""


@dataclass(frozen=True, slots=True)
class PrometheusRound:
    """The result of one round of queries. Queries that failed are in `problems`; the other results are valid."""

    pods: list[PodUsageSample] = field(default_factory=list)
    cpu_window: float = 0.0
    """Seconds over which the pods' CPU rates are taken; for a younger pod such a rate is too low."""
    nodes: list[NodeUsageSample] = field(default_factory=list)
    throttled: list[ThrottleSample] = field(default_factory=list)
    pressure: list[PressureSample] = field(default_factory=list)
    probes: list[ProbeCounter] = field(default_factory=list)
    network: list[NetworkSample] = field(default_factory=list)
    disk: list[DiskSample] = field(default_factory=list)
    links: list[LinkSample] = field(default_factory=list)
    node_network: list[NodeRateSample] = field(default_factory=list)
    node_disk: list[NodeRateSample] = field(default_factory=list)
    availability: float | None = None
    latency_p95: float | None = None
    problems: tuple[MetricsError, ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """Times from `begin` to `end`, both included, `step` seconds apart."""

    begin: float
    end: float
    step: int


@dataclass(frozen=True, slots=True)
class PrometheusRange:
    """Usage by time, oldest first. Of queries that failed the first problem of each."""

    rounds: Mapping[float, PrometheusRound]
    problems: tuple[MetricsError, ...] = ()


@dataclass(frozen=True, slots=True)
class PrometheusAccess:
    """Flags of the process. Whoever may edit the settings may choose any URL, but not where the token is sent."""

    token_file: Path | None = None
    token_host: str = ""
    """`https://HOST[:PORT]`: the only server that gets the token."""
    ca_file: Path | None = None
    """The certificate authority of https URLs, if it is not a public one."""

    def __post_init__(self) -> None:
        if (self.token_file is None) != (not self.token_host):
            raise InputError("--prometheus-token-file and --prometheus-token-host need each other; give both")
        if self.token_host and _https_server(self.token_host) is None:
            raise InputError(f"--prometheus-token-host: {self.token_host!r} is not https://HOST or https://HOST:PORT")

    def sends_token_to(self, url: str) -> bool:
        return self.token_file is not None and _https_server(url) == _https_server(self.token_host)


def _https_server(url: str) -> tuple[str, int] | None:
    """Host and port; None for what is not a plain https URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or 443
    except ValueError:
        return None
    if parts.scheme != "https" or not parts.hostname or parts.username is not None:
        return None
    return parts.hostname, port


class PrometheusSource:
    def __init__(self, access: PrometheusAccess | None = None) -> None:
        self._access = access or PrometheusAccess()
        self._threads = BoundedThreads(_THREADS)

    @property
    def busy(self) -> int:
        """Running queries, including those that were given up."""
        return self._threads.busy

    async def read(self, settings: Prometheus, pods: Mapping[str, int]) -> PrometheusRound:
        """`pods` is the number of pods by namespace: above `seriesPerQuery` the per-pod queries are split."""
        if not settings.url:
            return PrometheusRound()
        queries = settings.queries.model_dump(by_alias=True)
        matchers = namespace_matchers(pods, settings.series_per_query)
        answers = await asyncio.gather(
            *(self._vector(settings, name, text, matchers) for name, text in queries.items())
        )
        results = {name: samples for name, (samples, _) in zip(queries, answers, strict=True)}
        return PrometheusRound(
            pods=pod_usage(results["podCpu"], results["podMemory"]),
            cpu_window=longest_range(settings.queries.pod_cpu),
            nodes=node_usage(results["nodeCpu"], results["nodeMemory"]),
            throttled=throttling(results["throttled"]),
            pressure=pressure(results["podCpuPressure"]),
            probes=probe_counters(results["probes"]),
            network=network_rates(results["podNetwork"]),
            disk=disk_rates(results["podDisk"]),
            links=link_speeds(results["nodeBandwidth"]),
            node_network=node_rates(results["nodeNetwork"]),
            node_disk=node_rates(results["nodeDisk"]),
            availability=single_value(results["availability"]),
            latency_p95=single_value(results["latencyP95"]),
            problems=tuple(problem for _, problem in answers if problem is not None),
        )

    async def read_range(self, settings: Prometheus, pods: Mapping[str, int], span: Span) -> PrometheusRange:
        """Usage of the past, by time. `pods` as for `read`."""
        queries = {
            name: text for name, text in settings.queries.model_dump(by_alias=True).items() if name in _OF_THE_PAST
        }
        matchers = namespace_matchers(pods, settings.series_per_query)
        answers = [await self._vector(settings, name, text, matchers, span) for name, text in queries.items()]
        problems = tuple(problem for _, problem in answers if problem is not None)
        by_time: defaultdict[float, dict[str, list[VectorSample]]] = defaultdict(lambda: defaultdict(list))
        for name, (samples, _) in zip(queries, answers, strict=True):
            for sample in samples:
                by_time[sample.at][name].append(sample)
        return PrometheusRange({at: _usage(by_time[at]) for at in sorted(by_time)}, problems)

    async def _vector(
        self, settings: Prometheus, name: str, query: str, matchers: list[str], span: Span | None = None
    ) -> tuple[list[VectorSample], MetricsError | None]:
        """All parts of one query. The samples of a failed part are missing; only the first problem is reported."""
        if not query:
            return [], None
        query = query.replace(KUBELETS, f'job=~"{settings.kubelet_jobs}"')
        queries = (self.query(settings, name, part, span) for part in split_query(query, matchers))
        answers = await asyncio.gather(*queries, return_exceptions=True)
        samples: list[VectorSample] = []
        problem: MetricsError | None = None
        for answer in answers:
            if isinstance(answer, MetricsError):
                problem = problem or answer
            elif isinstance(answer, BaseException):
                raise answer
            else:
                samples.extend(answer)
        return samples, problem

    async def query(self, settings: Prometheus, name: str, promql: str, span: Span | None = None) -> list[VectorSample]:
        """One instant query, or one for a range; `name` is its key in the settings, which every error contains."""
        sockets = CallSockets()
        try:
            answer = await self._threads.run(
                lambda: _ask(settings, self._access, promql, sockets, span), sockets.shut_down, settings.timeout
            )
        except (TimeoutError, requests.Timeout):
            what = f"no complete response within {settings.timeout:g} s; raise timeout or lower seriesPerQuery"
            raise _problem(name, settings, what) from None
        except Exhausted:
            raise _problem(name, settings, f"{_THREADS} earlier queries still hang; skipped") from None
        except MetricsError as error:
            raise _problem(name, settings, str(error)) from error
        except PrometheusApiClientException as error:
            raise _problem(name, settings, _explain_refusal(str(error))) from error
        except requests.exceptions.JSONDecodeError as error:
            raise _problem(name, settings, "the response is not JSON; is this the address of Prometheus?") from error
        except (requests.RequestException, OSError) as error:
            raise _problem(name, settings, f"not reachable: {str(error)[:_SHOWN]}") from error
        except (KeyError, TypeError, ValueError) as error:
            raise _problem(name, settings, "the response has no data.result; is this a Prometheus?") from error
        return parse_vector(name, answer) if span is None else parse_matrix(name, answer)


_OF_THE_PAST = ("podCpu", "podMemory", "nodeCpu", "nodeMemory", "podNetwork", "podDisk", "throttled")


def _usage(results: Mapping[str, list[VectorSample]]) -> PrometheusRound:
    found = {name: results.get(name, []) for name in _OF_THE_PAST}
    return PrometheusRound(
        pods=pod_usage(found["podCpu"], found["podMemory"]),
        nodes=node_usage(found["nodeCpu"], found["nodeMemory"]),
        throttled=throttling(found["throttled"]),
        network=network_rates(found["podNetwork"]),
        disk=disk_rates(found["podDisk"]),
    )


def _problem(name: str, settings: Prometheus, what: str) -> MetricsError:
    return MetricsError(f"metrics.prometheus.queries.{name} at {settings.url}: {what}")


def _explain_refusal(text: str) -> str:
    """The client's message has the status and the body; the hint names the setting to check."""
    hint = ""
    if "Code 401" in text or "Code 403" in text:
        hint = "; check --prometheus-token-file and --prometheus-token-host"
    elif "Code 400" in text or "Code 422" in text:
        hint = "; check the query"
    elif "Code 404" in text:
        hint = "; check url"
    error = _ERROR.search(text.replace("\\\\", "\\").replace("\\'", "'"))  # the body is quoted as Python's bytes
    shown = text if error is None else "{}: {}".format(text.partition("(")[0].strip(), error[1].replace('\\"', '"'))
    return shown[:_SHOWN] + hint


def _ask(
    settings: Prometheus, access: PrometheusAccess, promql: str, sockets: CallSockets, span: Span | None
) -> object:
    """Runs in a thread. The token is read each time, so that a rotated one is used at once."""
    url = settings.url.rstrip("/")
    headers = {"Authorization": f"Bearer {_token(access)}"} if access.sends_token_to(url) else {}
    with requests.Session() as session:
        session.trust_env = False  # a .netrc has credentials, too
        session.hooks["response"].append(_refuse_redirect)
        session.verify = str(access.ca_file) if access.ca_file is not None else True
        client = PrometheusConnect(
            url=url, headers=headers, session=session, timeout=settings.timeout, retry=Retry(total=0)
        )
        session.mount(url, SocketTrackingAdapter(sockets))
        deadline = {"timeout": f"{settings.timeout:g}s"}
        if span is None:
            return client.custom_query(promql, params=deadline)
        begin, end = (datetime.fromtimestamp(at, UTC) for at in (span.begin, span.end))
        return client.custom_query_range(promql, begin, end, str(span.step), params=deadline)


def _refuse_redirect(response: requests.Response, *_: object, **__: object) -> None:
    """The settings may name any server, and this one would name another."""
    if response.is_redirect:
        response.close()
        raise MetricsError("it redirects, which is not followed; set the URL that it leads to")


def _token(access: PrometheusAccess) -> str:
    try:
        return (access.token_file or Path()).read_text().strip()
    except (OSError, ValueError) as error:
        raise MetricsError(f"--prometheus-token-file cannot be read: {error}") from error


def namespace_matchers(pods: Mapping[str, int], limit: int) -> list[str]:
    """The fewest matchers that select at most `limit` pods each; a namespace with more gets its own."""
    if sum(pods.values()) <= limit:
        return [_ALL_NAMESPACES]
    parts: list[list[str]] = []
    room, length = 0, 0
    for name, number in sorted(pods.items(), key=lambda item: -item[1]):
        if not parts or number > room or length + len(name) > _LONGEST_MATCHER:
            parts.append([])
            room, length = limit, 0
        parts[-1].append(name)
        room -= number
        length += len(name) + 1
    return [f'namespace=~"{"|".join(map(_literal, part))}"' for part in parts]


def split_query(query: str, matchers: list[str]) -> list[str]:
    """The query once per matcher; a query without the placeholder is not split."""
    if PLACEHOLDER not in query:
        return [query]
    return [query.replace(PLACEHOLDER, matcher) for matcher in matchers]


def _literal(name: str) -> str:
    """Kubernetes allows only letters, digits and dashes; other characters are escaped for the regex and the string."""
    return re.sub(r"[^A-Za-z0-9-]", lambda found: "\\\\" + found[0] if found[0] != '"' else '\\"', name)

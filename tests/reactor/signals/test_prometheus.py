"""Prometheus behind a server that misbehaves: every call ends by its deadline and says what is wrong."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Protocol

import pytest
from aiohttp import web

from reactor.cluster.records import PodUsageSample
from reactor.errors import InputError, MetricsError
from reactor.settings.model import Prometheus, Queries
from reactor.signals.blocking_calls import BoundedThreads, Exhausted
from reactor.signals.prometheus import PrometheusAccess, PrometheusSource, Span

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Serve(Protocol):
    async def __call__(self, handler: Handler, tls: ssl.SSLContext | None = None) -> str: ...


NO_QUERIES = dict.fromkeys(Queries.model_fields, "")


def vector(*series: tuple[dict[str, str], str]) -> dict[str, object]:
    result = [{"metric": labels, "value": [1000.5, value]} for labels, value in series]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def settings(url: str, **changes: object) -> Prometheus:
    queries = Queries(**{**NO_QUERIES, "pod_cpu": "cpu{$namespaces}"})
    return Prometheus.model_validate({"url": url, "timeout": 5.0, "queries": queries, **changes})


QUOTED = """no 'up{a="b"}' here"""


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    runners: list[web.AppRunner] = []

    async def start(handler: Handler, tls: ssl.SSLContext | None = None) -> str:
        app = web.Application()
        app.router.add_get("/api/v1/query", handler)
        app.router.add_get("/api/v1/query_range", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        runners.append(runner)
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        return f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"

    yield start
    for runner in runners:
        await runner.cleanup()


async def idle(threads: PrometheusSource | BoundedThreads) -> bool:
    for _ in range(200):
        if threads.busy == 0:
            return True
        await asyncio.sleep(0.01)
    return False


async def test_a_round_of_all_default_queries(serve: Serve) -> None:
    pod = {"namespace": "default", "pod": "web-1"}
    probe = {**pod, "container": "srv", "pod_uid": "u1"}

    async def answer(request: web.Request) -> web.Response:
        query = request.query["query"]
        if "cfs_throttled" in query:
            return web.json_response(vector((pod, "0.25")))
        if "pressure_cpu_waiting" in query:
            return web.json_response(vector((pod, "0.125")))
        if "prober_probe_total" in query:
            result = vector(({**probe, "result": "failed"}, "3"), ({**probe, "result": "successful"}, "25"))
            return web.json_response(result)
        if "node_cpu" in query:
            return web.json_response(vector(({"instance": "10.0.0.1:10250"}, "1.5")))
        if "node_memory" in query:
            return web.json_response(vector(({"instance": "10.0.0.1:10250"}, "4e9")))
        return web.json_response(vector((pod, "0.5" if "cpu" in query else "1e8")))

    result = await PrometheusSource().read(Prometheus(url=await serve(answer)), {"default": 1})
    assert result.problems == ()
    assert result.pods == [PodUsageSample("default", "web-1", 0.5, 1e8, 1000.5)]
    assert result.cpu_window == 120.0
    assert (result.nodes[0].node, result.nodes[0].cpu, result.nodes[0].memory) == ("10.0.0.1", 1.5, 4e9)
    assert result.throttled[0].share == 0.25
    assert result.pressure[0].share == 0.125
    assert (result.probes[0].failures, result.probes[0].successes, result.probes[0].uid) == (3, 25, "u1")
    assert result.availability is None


async def test_no_url_no_question() -> None:
    result = await PrometheusSource().read(Prometheus(), {})
    assert (result.pods, result.problems) == ([], ())


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (lambda: web.Response(text="<html>Sign in</html>", content_type="text/html"), "not JSON"),
        (lambda: web.Response(text='{"status":"success","data":{"resu', content_type="application/json"), "not JSON"),
        (lambda: web.json_response({"status": "error", "error": "boom"}), "no data.result"),
        (lambda: web.json_response({"status": "success", "data": {"result": "x"}}), "not an instant vector"),
        (lambda: web.json_response({"status": "success", "data": {"result": [3]}}), "not an instant vector"),
        (
            lambda: web.json_response({"status": "success", "data": {"result": [{"metric": {}}]}}),
            "not an instant vector",
        ),
        (lambda: web.json_response(vector(({}, "many"))), "not a number"),
        (lambda: web.json_response([]), "no data.result"),
        (lambda: web.Response(status=503, text="try later"), "503"),
        (lambda: web.Response(status=401, text="who?"), "--prometheus-token-file"),
        (lambda: web.json_response({"status": "error", "error": "parse error"}, status=400), "check the query"),
        (lambda: web.json_response({"error": QUOTED}, status=400), f"{QUOTED}; check the query"),
        (lambda: web.Response(status=404), "check url"),
    ],
)
async def test_bad_answers_are_named(serve: Serve, response: Callable[[], web.Response], words: str) -> None:
    requests = 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal requests
        requests += 1
        return response()

    result = await PrometheusSource().read(settings(await serve(answer)), {})
    assert result.pods == []
    assert "queries.podCpu" in str(result.problems[0])
    assert words in str(result.problems[0])
    assert requests == 1, "no repeats of the client's own"


async def test_a_closed_port_is_not_reachable() -> None:
    with pytest.raises(MetricsError, match="not reachable"):
        await PrometheusSource().query(settings("http://127.0.0.1:9"), "podCpu", "up")


async def test_a_server_that_hangs_holds_no_thread(serve: Serve) -> None:
    released = asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        await released.wait()
        return web.Response()

    source, began = PrometheusSource(), time.monotonic()
    url = await serve(hang)
    for _ in range(3):
        result = await source.read(settings(url, timeout=0.1), {})
        assert "no complete response within 0.1 s" in str(result.problems[0])
    assert time.monotonic() - began < 3
    assert await idle(source)
    released.set()


async def test_a_trickle_past_the_deadline_is_cut(serve: Serve) -> None:
    text = json.dumps(vector(({"namespace": "a", "pod": "b"}, "1"))).encode() * 100

    async def trickle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for at in range(len(text)):
            await response.write(text[at : at + 1])
            await asyncio.sleep(0.02)
        return response

    source = PrometheusSource()
    result = await source.read(settings(await serve(trickle), timeout=0.2), {})
    assert "no complete response" in str(result.problems[0])
    assert await idle(source), "the read timeout alone would never have ended it"


async def test_headers_that_trickle_are_cut() -> None:
    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            for byte in b"HTTP/1.1 200 OK\r\n" + b"X-Filler: 1\r\n" * 50:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.02)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(trickle, "127.0.0.1", 0)
    source = PrometheusSource()
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(MetricsError, match="no complete response"):
            await source.query(settings(url, timeout=0.2), "podCpu", "up")
        assert await idle(source)


async def test_threads_that_cannot_be_cut_are_not_piled_up() -> None:
    threads, release = BoundedThreads(2), asyncio.Event()
    loop = asyncio.get_running_loop()

    def stubborn() -> None:
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result()

    for _ in range(2):
        with pytest.raises(TimeoutError):
            await threads.run(stubborn, lambda: None, 0.01)
    with pytest.raises(Exhausted):
        await threads.run(stubborn, lambda: None, 0.01)
    assert threads.busy == 2
    release.set()
    assert await idle(threads)
    assert await threads.run(lambda: 7, lambda: None, 1.0) == 7


async def test_queries_are_split_by_namespace(serve: Serve) -> None:
    seen: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        query = request.query["query"]
        seen.append(query)
        if "broken" in query:
            return web.Response(status=503)
        name = "a" if 'namespace=~"a' in query else "b"
        return web.json_response(vector(({"namespace": name, "pod": "p"}, "1")))

    pods = {"a": 90, "b": 60, "broken": 100}
    result = await PrometheusSource().read(settings(await serve(answer), series_per_query=100), pods)
    assert sorted(seen) == ['cpu{namespace=~"a"}', 'cpu{namespace=~"b"}', 'cpu{namespace=~"broken"}']
    assert {sample.namespace for sample in result.pods} == {"a", "b"}
    assert len(result.problems) == 1


def authority_of(folder: Path) -> ssl.SSLContext:
    """A server's TLS with a certificate for 127.0.0.1 that is its own authority, in `folder`."""
    names = ("-subj", "/CN=prometheus", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "1", "-nodes")
    files = ("-keyout", str(folder / "tls.key"), "-out", str(folder / "tls.crt"))
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", *names, *files]
    subprocess.run(command, check=True, capture_output=True, timeout=20)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    return context


class TokenTrap:
    """Remembers the Authorization of every request that reaches a server."""

    def __init__(self, response: Callable[[], web.Response] = lambda: web.json_response(vector())) -> None:
        self.seen: list[str | None] = []
        self._response = response

    async def answer(self, request: web.Request) -> web.Response:
        self.seen.append(request.headers.get("Authorization"))
        return self._response()


def access(tmp_path: Path, url: str) -> PrometheusAccess:
    return PrometheusAccess(tmp_path / "token", url, tmp_path / "tls.crt")


async def test_a_rotated_token_is_used(serve: Serve, tmp_path: Path) -> None:
    trap, token = TokenTrap(), tmp_path / "token"
    url = await serve(trap.answer, authority_of(tmp_path))
    source = PrometheusSource(access(tmp_path, url))
    for text in ("one\n", "two\n"):
        token.write_text(text)
        await source.query(settings(f"{url}/"), "probes", "up")
    assert trap.seen == ["Bearer one", "Bearer two"]
    token.unlink()
    with pytest.raises(MetricsError, match=r"queries\.probes .*--prometheus-token-file cannot be read"):
        await source.query(settings(url), "probes", "up")


async def test_no_url_in_the_settings_gets_the_token_but_the_one_of_the_flag(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    context = authority_of(tmp_path)
    ours, theirs, plain = TokenTrap(), TokenTrap(), TokenTrap()
    url = await serve(ours.answer, context)
    source = PrometheusSource(access(tmp_path, url))
    for other in (await serve(theirs.answer, context), await serve(plain.answer)):
        await source.query(settings(other), "probes", "up")
    assert theirs.seen == plain.seen == [None]
    with pytest.raises(MetricsError):
        await source.query(settings(url.replace("https:", "http:")), "probes", "up")
    assert ours.seen == []


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(serve: Serve, tmp_path: Path, status: int) -> None:
    (tmp_path / "token").write_text("secret")
    thief = TokenTrap()
    target = await serve(thief.answer)
    moved = TokenTrap(lambda: web.Response(status=status, headers={"Location": f"{target}/api/v1/query"}))
    url = await serve(moved.answer, authority_of(tmp_path))
    with pytest.raises(MetricsError, match="redirects"):
        await PrometheusSource(access(tmp_path, url)).query(settings(url), "probes", "up")
    assert moved.seen == ["Bearer secret"]
    assert thief.seen == []


@pytest.mark.parametrize(
    "url",
    [
        "https://prometheus:9090/x",
        "https://PROMETHEUS:9090",
    ],
)
def test_the_token_goes_to_the_flagged_server(url: str) -> None:
    assert PrometheusAccess(Path("t"), "https://prometheus:9090").sends_token_to(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://prometheus:9090",
        "https://prometheus",
        "https://prometheus:9091",
        "https://prometheus.evil:9090",
        "https://prometheus:9090@evil",
        "https://user@prometheus:9090",
        "https://evil/prometheus:9090",
        "https://[prometheus:9090",
        "https://prometheus:x",
    ],
)
def test_the_token_goes_nowhere_else(url: str) -> None:
    assert not PrometheusAccess(Path("t"), "https://prometheus:9090").sends_token_to(url)


@pytest.mark.parametrize(
    ("file", "host"), [(Path("t"), ""), (None, "https://h"), (Path("t"), "http://h"), (Path("t"), "https://u:p@h")]
)
def test_a_token_needs_one_host_over_tls(file: Path | None, host: str) -> None:
    with pytest.raises(InputError, match="--prometheus-token-host"):
        PrometheusAccess(file, host)


async def test_probe_counters_come_from_kubelet_jobs_alone(serve: Serve) -> None:
    seen: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.query["query"])
        return web.json_response(vector())

    queries = Queries(**{**NO_QUERIES, "probes": Queries().probes})
    await PrometheusSource().read(settings(await serve(answer), queries=queries, kubelet_jobs="kubelet|k3s"), {})
    assert seen == ['prober_probe_total{probe_type="Liveness",job=~"kubelet|k3s",namespace!=""}']


async def test_a_range_is_read_by_time(serve: Serve) -> None:
    asked: list[dict[str, str]] = []

    async def handler(request: web.Request) -> web.Response:
        asked.append(dict(request.query))
        series = {"metric": {"namespace": "shop", "pod": "web-1"}, "values": [[600, "0.5"], [900, "NaN"]]}
        return web.json_response({"status": "success", "data": {"resultType": "matrix", "result": [series]}})

    found = await PrometheusSource().read_range(settings(await serve(handler)), {"shop": 1}, Span(600, 900, 300))
    assert not found.problems
    assert list(found.rounds) == [600.0, 900.0]
    assert found.rounds[600.0].pods == [PodUsageSample("shop", "web-1", 0.5, None, 600.0)]
    assert (asked[0]["start"], asked[0]["end"], asked[0]["step"]) == ("600", "900", "300")


async def test_a_range_that_fails_says_so(serve: Serve) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.json_response({"status": "error", "error": "too many points"}, status=422)

    found = await PrometheusSource().read_range(settings(await serve(handler)), {"shop": 1}, Span(600, 900, 300))
    assert not found.rounds
    assert "too many points" in str(found.problems[0])

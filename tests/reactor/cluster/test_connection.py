from __future__ import annotations

import shutil
import ssl
from pathlib import Path

import aiohttp
import certifi
import pytest
from aiohttp import web
from kubernetes.aio.client import ApiException

from reactor.cluster.api import MERGE_PATCH, ApiRequest, ApiResponse, checked
from reactor.cluster.connection import KubernetesConnection, _mapped, open_connection
from reactor.errors import Conflict, Expired, Forbidden, InputError, NotFound, Refused, Throttled, Unreachable
from tests.reactor.cluster.helpers import kubeconfig
from tests.reactor.cluster.misbehaving import Fault, MisbehavingServer
from tests.reactor.cluster.truth import status_json

PODS = ApiRequest("GET", "/api/v1/pods", {"limit": "10"})
WATCH = {"watch": "true", "resourceVersion": "0", "timeoutSeconds": "60"}


async def read(connection: KubernetesConnection, idle_timeout: float = 5.0) -> list[bytes]:
    async with connection.stream("/api/v1/pods", WATCH, idle_timeout) as lines:
        return [line async for line in lines]


async def test_a_request_comes_back_whole(server: MisbehavingServer, connection: KubernetesConnection) -> None:
    server.truth.put("a")
    answer = await connection.send(PODS)
    assert answer.code == 200
    assert b'"uid-a"' in answer.body
    assert server.seen[0].query == {"limit": "10"}
    assert connection.server == server.url


async def test_a_body_is_sent_as_json_with_its_content_type(connection: KubernetesConnection) -> None:
    got: list[tuple[str, bytes]] = []

    async def take(request: web.Request) -> web.Response:
        got.append((request.content_type, await request.read()))
        return web.Response(body=b"{}")

    application = web.Application()
    application.router.add_patch("/x", take)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    connection._client.configuration.host = f"http://127.0.0.1:{runner.addresses[0][1]}"
    await connection.send(ApiRequest("PATCH", "/x", body={"count": 2}, content_type=MERGE_PATCH))
    await runner.cleanup()
    assert got == [(MERGE_PATCH, b'{"count": 2}')]


@pytest.mark.parametrize("fault", [Fault.RESET, Fault.RESET_IN_STREAM])
async def test_a_reset_is_unreachable(
    server: MisbehavingServer, connection: KubernetesConnection, fault: Fault
) -> None:
    server.truth.put("a")
    server.list_faults.extend([fault, fault])  # aiohttp itself repeats a GET once
    with pytest.raises(Unreachable, match=r"GET /api/v1/pods: ") as caught:
        await connection.send(PODS)
    assert caught.value.__cause__ is not None
    assert caught.value.status is None


async def test_a_silent_server_meets_the_deadline(server: MisbehavingServer, connection: KubernetesConnection) -> None:
    server.list_faults.append(Fault.SILENT)
    with pytest.raises(Unreachable, match=r"no response within 0\.05 s"):
        await connection.send(ApiRequest("GET", "/api/v1/pods", {"limit": "1"}, deadline=0.05))


async def test_nobody_listens(connection: KubernetesConnection) -> None:
    connection._client.configuration.host = "http://127.0.0.1:1"
    with pytest.raises(Unreachable, match="GET /api/v1/pods"):
        await connection.send(PODS)


@pytest.mark.parametrize("fault", [Fault.SILENT, Fault.SILENT_IN_STREAM])
async def test_a_half_open_stream_is_given_up(
    server: MisbehavingServer, connection: KubernetesConnection, fault: Fault
) -> None:
    server.watch_faults.append(fault)
    with pytest.raises(Unreachable, match=r"silent for 0\.05 s"):
        await read(connection, idle_timeout=0.05)


async def test_a_slow_first_byte_is_waited_for(server: MisbehavingServer, connection: KubernetesConnection) -> None:
    server.truth.put("a")
    server.close_after_lines = True
    server.watch_faults.append(Fault.SLOW_FIRST_BYTE)
    assert len(await read(connection)) == 1


async def test_the_proxy_of_the_environment_is_used_unless_it_is_excepted(
    server: MisbehavingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.truth.put("a")
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("no_proxy", "")
    elsewhere = await open_connection(str(kubeconfig(tmp_path, "http://cluster.example:6443")))
    assert b"uid-a" in (await elsewhere.send(PODS)).body
    await elsewhere.close()

    monkeypatch.setenv("no_proxy", "cluster.example")
    directly = await open_connection(str(kubeconfig(tmp_path, "http://cluster.example:6443")))
    assert directly._client.configuration.proxy is None
    await directly.close()


async def test_a_netrc_file_gives_no_credentials(
    server: MisbehavingServer, connection: KubernetesConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login eve password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    await connection.send(PODS)
    assert "Basic" not in (server.seen[0].authorization or "")


async def test_a_line_of_many_megabytes(server: MisbehavingServer, connection: KubernetesConnection) -> None:
    server.truth.put("huge", metadata={"annotations": {"rematch.io/note": "x" * 6_000_000}})
    server.truth.put("small")
    server.close_after_lines = True
    huge, small = await read(connection)
    assert len(huge) > 6_000_000
    assert b"uid-small" in small


async def test_an_end_within_a_line_is_no_end(server: MisbehavingServer, connection: KubernetesConnection) -> None:
    server.watch_faults.append(Fault.CUT_LINE)
    with pytest.raises(Unreachable, match="middle of a line"):
        await read(connection)


async def test_a_refused_stream_raises_the_status(server: MisbehavingServer, connection: KubernetesConnection) -> None:
    server.watch_faults.extend([Fault.EXPIRED, Fault.THROTTLED, Fault.UNAVAILABLE])
    with pytest.raises(Expired):
        await read(connection)
    with pytest.raises(Throttled) as throttled:
        await read(connection)
    assert throttled.value.retry_after == 7
    with pytest.raises(Unreachable, match="503 apiserver is shutting down"):
        await read(connection)


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (400, Refused),
        (401, Forbidden),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (410, Expired),
        (500, Unreachable),
    ],
)
def test_codes_have_their_errors(code: int, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"GET /x: {code} because"):
        checked(ApiResponse(code, status_json(code, "because")), "GET /x")


def test_retry_after_from_the_body_and_plain_text_bodies() -> None:
    with pytest.raises(Throttled) as throttled:
        checked(ApiResponse(429, status_json(429, "slow down", retryAfterSeconds=3)), "GET /x")
    assert throttled.value.retry_after == 3
    with pytest.raises(Unreachable, match="502 Bad ClusterReader"):
        checked(ApiResponse(502, b"Bad ClusterReader\n"), "GET /x")


@pytest.mark.parametrize(
    "foreign",
    [
        aiohttp.ServerDisconnectedError(),
        aiohttp.ClientPayloadError("cut"),
        aiohttp.InvalidURL("x"),
        ssl.SSLError("certificate"),
        ConnectionResetError("reset"),
        ApiException(status=0, reason="odd"),
        TimeoutError(),
        EOFError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_foreign_exception_is_mapped_with_its_cause(foreign: Exception) -> None:
    with pytest.raises(Unreachable) as caught, _mapped("GET /x", "late"):
        raise foreign
    assert caught.value.__cause__ is foreign


async def test_a_changed_token_file_is_read_at_once(server: MisbehavingServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")
    server.token = "one"
    connection = await open_connection(kubeconfig(tmp_path, server.url, "{tokenFile: token}"))
    assert (await connection.send(PODS)).code == 200
    token.write_text("another\n")
    server.token = "another"
    assert (await connection.send(PODS)).code == 200
    assert [seen.authorization for seen in server.seen] == ["Bearer one", "Bearer another"]
    await connection.close()


async def test_after_401_the_token_is_read_again_and_the_request_repeated_once(
    server: MisbehavingServer, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    connection = await open_connection(kubeconfig(tmp_path, server.url, "{tokenFile: token}"))
    server.token = "new"
    assert (await connection.send(PODS)).code == 401
    assert len(server.seen) == 1, "the file still says the same"
    server.watch_faults.append(Fault.UNAUTHORIZED)
    server.close_after_lines = True
    server.truth.put("a")
    token.write_text("new")
    assert len(await read(connection)) == 1
    assert [seen.authorization for seen in server.seen[1:]] == ["Bearer new", "Bearer new"]
    await connection.close()


async def test_an_empty_token_file_leaves_the_last_token(server: MisbehavingServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("good")
    server.token = "good"
    connection = await open_connection(kubeconfig(tmp_path, server.url, "{tokenFile: token}"))
    assert (await connection.send(PODS)).code == 200
    token.write_text("")
    assert (await connection.send(PODS)).code == 200
    token.unlink()
    assert (await connection.send(PODS)).code == 200
    await connection.close()


async def test_an_exec_plugin_is_run_again_after_401(server: MisbehavingServer, tmp_path: Path) -> None:
    credential = tmp_path / "credential.json"
    status = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"%s"}}'
    credential.write_text(status % "first")
    plugin = f"{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: cat, args: [{credential}]}}}}"
    connection = await open_connection(kubeconfig(tmp_path, server.url, plugin))
    server.token = "second"
    credential.write_text(status % "second")
    assert (await connection.send(PODS)).code == 200
    assert [seen.authorization for seen in server.seen] == ["Bearer first", "Bearer second"]
    await connection.close()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not a usable kubeconfig"),
        ("{", "not a usable kubeconfig"),
        ("- a", "not a usable kubeconfig"),
        ("kind: Config", "not a usable kubeconfig"),
    ],
)
async def test_a_wrong_kubeconfig_is_named(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "wrong"
    path.write_text(text)
    with pytest.raises(InputError, match=complaint) as caught:
        await open_connection(str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_an_unknown_context_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="elsewhere"):
        await open_connection(kubeconfig(tmp_path, "http://127.0.0.1:1"), context="elsewhere")


async def test_nothing_configured_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file; name a kubeconfig with --kubeconfig or KUBECONFIG"):
        await open_connection(environ={"KUBECONFIG": str(tmp_path / "none")})


async def test_inside_a_cluster_the_service_account_is_used(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")
    shutil.copy(certifi.where(), tmp_path / "ca.crt")
    inside = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    connection = await open_connection(environ=inside, service_account=tmp_path)
    assert connection.server == "https://[fd00::1]:443"
    assert await connection._credential.header() == "Bearer first"
    (tmp_path / "token").write_text("second")
    assert await connection._credential.header() == "Bearer second"
    await connection.close()


async def test_order_explicit_file_then_service_account_then_default(server: MisbehavingServer, tmp_path: Path) -> None:
    inside = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    default = kubeconfig(tmp_path, server.url)
    explicit = await open_connection(default, environ=inside, service_account=tmp_path)
    assert explicit.server == server.url
    with pytest.raises(InputError, match="token"):
        await open_connection(environ=inside | {"KUBECONFIG": default}, service_account=tmp_path)
    (tmp_path / "token").write_text("t")
    with pytest.raises(InputError, match="service account cannot be used"):
        await open_connection(environ=inside, service_account=tmp_path)
    (tmp_path / "ca.crt").write_text("no certificate")
    with pytest.raises(InputError, match="certificates cannot be used"):
        await open_connection(environ=inside, service_account=tmp_path)
    fallback = await open_connection(environ={"KUBECONFIG": f"{tmp_path / 'none'}:{default}"})
    assert fallback.server == server.url
    await explicit.close()
    await fallback.close()

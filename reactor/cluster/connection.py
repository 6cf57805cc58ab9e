"""The connection to a Kubernetes API server; the only module that knows the `kubernetes` package.

It carries requests and streams of lines. What they mean is the reader's business; nothing is retried here, except
that a rejected credential is read again once.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import aiohttp
import yaml
from kubernetes.aio.client import ApiClient, ApiException, Configuration
from kubernetes.aio.config import ConfigException, load_kube_config
from kubernetes.aio.config.incluster_config import InClusterConfigLoader

from reactor.cluster.api import ApiRequest, ApiResponse, Query, error_of, status_of
from reactor.cluster.credentials import Credential, FileToken, FixedToken, PluginToken, TokenFile
from reactor.errors import InputError, Unreachable

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
DEFAULT_KUBECONFIG = "~/.kube/config"
_CONNECT_TIMEOUT = 10.0
_HINT = "name a kubeconfig with --kubeconfig or KUBECONFIG, or run inside a cluster with a service account"


async def open_connection(
    kubeconfig: str | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> KubernetesConnection:
    """An explicit kubeconfig wins, then the service account inside a cluster, then the default kubeconfig.

    A context is a kubeconfig's, so naming one means the kubeconfig, too.
    """
    if kubeconfig is None and context is None and environ.get("KUBERNETES_SERVICE_HOST"):
        return _from_service_account(environ, service_account)
    return await _from_kubeconfig(kubeconfig or environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG, context)


def _from_service_account(environ: Mapping[str, str], folder: Path) -> KubernetesConnection:
    token = TokenFile(folder / "token")
    token.read()
    configuration = Configuration()
    loader = InClusterConfigLoader(
        str(folder / "token"), str(folder / "ca.crt"), try_refresh_token=False, environ=environ
    )
    try:
        loader.load_and_set(configuration)
    except (ConfigException, OSError) as error:
        raise InputError(f"{folder}: the service account cannot be used: {error}; {_HINT}") from error
    return _connect(configuration, FileToken(token), str(folder), compress=False)


async def _from_kubeconfig(paths: str, context: str | None) -> KubernetesConnection:
    found = _existing(paths)
    if not found:
        raise InputError(f"{paths}: no such file; {_HINT}")
    configuration = Configuration()
    try:
        loader = await load_kube_config(
            found, context=context, client_configuration=configuration, persist_config=False
        )
    except (ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        problem = " ".join(str(error).split())
        raise InputError(f"{paths}: not a usable kubeconfig: {problem}") from error
    return _connect(configuration, _credential(loader, configuration), paths, compress=_is_far(configuration.host))


def _existing(paths: str) -> str:
    """KUBECONFIG may name several files, and some of them need not exist."""
    return os.pathsep.join(path for path in paths.split(os.pathsep) if path and Path(path).expanduser().is_file())


def _credential(loader: Any, configuration: Configuration) -> Credential:
    """`loader` is the library's: its user section says where the token came from."""
    user = loader._user
    token = configuration.api_key.get("BearerToken")
    if user is None:
        return FixedToken(token)
    if "exec" in user:
        return PluginToken(
            loader,
            token=lambda: getattr(loader, "token", None),
            expire=lambda: loader.__dict__.pop("exec_plugin_expiry", None),
        )
    if "tokenFile" in user and "token" not in user:
        token_file = TokenFile(Path(user.path or ".").parent / user["tokenFile"])
        token_file.read()
        return FileToken(token_file)
    return FixedToken(token)


def _connect(
    configuration: Configuration, credential: Credential, source: str, *, compress: bool
) -> KubernetesConnection:
    try:
        client = ApiClient(configuration)
    except (OSError, ValueError) as error:
        raise InputError(f"{source}: its certificates cannot be used: {error}") from error
    client.user_agent = "rematch"
    return KubernetesConnection(client, credential, compress=compress)


def _is_far(host: str) -> bool:
    """Compressed lists pay on slow ways only: on this machine or inside the cluster they cost more than they save."""
    name = urlsplit(host).hostname or ""
    try:
        return not ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name != "localhost"


class KubernetesConnection:
    """Implements `send.Connection`."""

    def __init__(self, client: ApiClient, credential: Credential, *, compress: bool = False) -> None:
        self._client = client
        self._credential = credential
        self._encoding = "gzip" if compress else "identity"

    @property
    def server(self) -> str:
        return str(self._client.configuration.host)

    async def close(self) -> None:
        await self._client.close()

    async def send(self, call: ApiRequest) -> ApiResponse:
        what = f"{call.method} {call.path}"
        with _mapped(what, f"no answer within {call.deadline:g} s"):
            async with asyncio.timeout(call.deadline):
                answer = await self._send_once(call)
                if answer.code == 401 and await self._credential.renew():
                    answer = await self._send_once(call)
                return answer

    async def _send_once(self, call: ApiRequest) -> ApiResponse:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT)
        response = await self._send(call, self._encoding, timeout)
        async with response:
            return await _answer(response)

    @asynccontextmanager
    async def stream(self, path: str, query: Query, idle_timeout: float) -> AsyncIterator[AsyncIterator[bytes]]:
        what = f"GET {path}"
        silence = f"silent for {idle_timeout:g} s"
        call = ApiRequest("GET", path, query)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT, sock_read=idle_timeout)
        with _mapped(what, silence):
            response = await self._send(call, "identity", timeout)
            if response.status == 401:
                response.close()
                await self._credential.renew()
                response = await self._send(call, "identity", timeout)
        try:
            with _mapped(what, silence):
                if response.status >= 300:
                    raise error_of(status_of(await _answer(response)), what)
            yield lines_of(_chunks(response, what, silence))
        finally:
            response.close()

    async def _send(self, call: ApiRequest, encoding: str, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        headers = {"Accept": "application/json", "Accept-Encoding": encoding, "User-Agent": self._client.user_agent}
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        authorization = await self._credential.header()
        if authorization:
            headers["Authorization"] = authorization
        query = f"?{urlencode(call.query)}" if call.query else ""
        answered = await self._client.call_api(
            call.method,
            f"{self._client.configuration.host}{call.path}{query}",
            header_params=headers,
            body=None if call.body is None else dict(call.body),
            _request_timeout=timeout,
        )
        response: aiohttp.ClientResponse = answered.response
        return response


async def _answer(response: aiohttp.ClientResponse) -> ApiResponse:
    stated = response.headers.get("Retry-After", "")
    return ApiResponse(response.status, await response.read(), float(stated) if stated.isdecimal() else None)


async def _chunks(response: aiohttp.ClientResponse, what: str, silence: str) -> AsyncIterator[bytes]:
    with _mapped(what, silence):
        async for chunk in response.content.iter_any():
            yield chunk


@contextmanager
def _mapped(what: str, late: str) -> Iterator[None]:
    """The border for foreign exceptions: all that can happen to a request on its way is Unreachable."""
    try:
        yield
    except TimeoutError as error:
        raise Unreachable(f"{what}: {late}") from error
    except (aiohttp.ClientError, OSError, ApiException, EOFError) as error:
        raise Unreachable(f"{what}: {error or type(error).__name__}") from error


async def lines_of(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole lines only. An end in the middle of one raises: the rest was lost on the way."""
    pending: list[bytes] = []
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        pending.append(first)
        for part in others:
            line = b"".join(pending)
            pending = [part]
            if line.strip():
                yield line
    if b"".join(pending).strip():
        raise Unreachable("the answer ends in the middle of a line")

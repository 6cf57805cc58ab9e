"""The connection to a Kubernetes API server; the only module that knows the `kubernetes` package.

It sends requests and reads streams of lines; `reads` and `writes` know what they mean. Nothing is retried here, except
that rejected credentials are renewed once.
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
from urllib.request import getproxies, proxy_bypass

import aiohttp
import yaml
from kubernetes.aio.client import ApiClient, ApiException, Configuration
from kubernetes.aio.config import ConfigException, load_kube_config
from kubernetes.aio.config.incluster_config import InClusterConfigLoader

from reactor.cluster.api import ApiRequest, ApiResponse, Query, error_of, status_of
from reactor.cluster.credentials import Credential, FileToken, FixedToken, PluginToken
from reactor.cluster.kinds import ObjectName
from reactor.errors import InputError, Unreachable

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
DEFAULT_NAMESPACE = "rematch"
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
    """Uses the given kubeconfig, else the service account inside a cluster, else the default kubeconfig.

    A context belongs to a kubeconfig, so giving one selects the kubeconfig, too.
    """
    if kubeconfig is None and context is None and environ.get("KUBERNETES_SERVICE_HOST"):
        return _from_service_account(environ, service_account)
    return await _from_kubeconfig(kubeconfig or environ.get("KUBECONFIG") or DEFAULT_KUBECONFIG, context)


def own_namespace(config_map: ObjectName | None, given: str, service_account: Path = SERVICE_ACCOUNT) -> str:
    """Where the controller keeps its journal: the ConfigMap's, else the given one, else the pod's own, else rematch."""
    if config_map is not None or given:
        return config_map.namespace if config_map is not None else given
    try:
        return (service_account / "namespace").read_text().strip() or DEFAULT_NAMESPACE
    except OSError:
        return DEFAULT_NAMESPACE


def _from_service_account(environ: Mapping[str, str], folder: Path) -> KubernetesConnection:
    token = FileToken(folder / "token")
    configuration = Configuration()
    loader = InClusterConfigLoader(
        str(folder / "token"), str(folder / "ca.crt"), try_refresh_token=False, environ=environ
    )
    try:
        loader.load_and_set(configuration)
    except (ConfigException, OSError) as error:
        raise InputError(f"{folder}: the service account cannot be used: {error}; {_HINT}") from error
    return _connect(configuration, token, str(folder), compress=False)


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
    return _connect(configuration, _credential(loader, configuration), paths, compress=_is_remote(configuration.host))


def _existing(paths: str) -> str:
    """KUBECONFIG may name several files, and not all of them have to exist."""
    return os.pathsep.join(path for path in paths.split(os.pathsep) if path and Path(path).expanduser().is_file())


def _credential(loader: Any, configuration: Configuration) -> Credential:
    """`loader` is the client library's; its user section says where the token comes from."""
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
        return FileToken(Path(user.path or ".").parent / user["tokenFile"])
    return FixedToken(token)


def _connect(
    configuration: Configuration, credential: Credential, source: str, *, compress: bool
) -> KubernetesConnection:
    configuration.proxy = configuration.proxy or _proxy_of(configuration.host)
    configuration.client_session_kwargs = {"trust_env": False}
    try:
        client = ApiClient(configuration)
    except (OSError, ValueError) as error:
        raise InputError(f"{source}: its certificates cannot be used: {error}") from error
    client.user_agent = "rematch"
    return KubernetesConnection(client, credential, compress=compress)


def _proxy_of(host: str) -> str | None:
    """From the environment, read once: the client library reads it, and ~/.netrc, in a thread before every request."""
    server = urlsplit(host)
    proxy = getproxies().get(server.scheme, "")
    return proxy if proxy.startswith("http://") and not proxy_bypass(server.hostname or "") else None


def _is_remote(host: str) -> bool:
    """Compressed lists pay off on slow networks only, not on this machine or inside the cluster."""
    name = urlsplit(host).hostname or ""
    try:
        return not ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name != "localhost"


class KubernetesConnection:
    """Implements `api.Connection`."""

    def __init__(self, client: ApiClient, credential: Credential, *, compress: bool = False) -> None:
        self._client = client
        self._credential = credential
        self._encoding = "gzip" if compress else "identity"

    @property
    def server(self) -> str:
        return str(self._client.configuration.host)

    async def close(self) -> None:
        await self._client.close()

    async def send(self, request: ApiRequest) -> ApiResponse:
        what = f"{request.method} {request.path}"
        with _mapped(what, f"no response within {request.deadline:g} s"):
            async with asyncio.timeout(request.deadline):
                response = await self._send_once(request)
                if response.code == 401 and await self._credential.renew():
                    response = await self._send_once(request)
                return response

    async def _send_once(self, request: ApiRequest) -> ApiResponse:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT)
        response = await self._send(request, self._encoding, timeout)
        async with response:
            return await _read_response(response)

    @asynccontextmanager
    async def stream(self, path: str, query: Query, idle_timeout: float) -> AsyncIterator[AsyncIterator[bytes]]:
        what = f"GET {path}"
        silence = f"silent for {idle_timeout:g} s"
        request = ApiRequest("GET", path, query)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT, sock_read=idle_timeout)
        with _mapped(what, silence):
            response = await self._send(request, "identity", timeout)
            if response.status == 401:
                response.close()
                await self._credential.renew()
                response = await self._send(request, "identity", timeout)
        try:
            with _mapped(what, silence):
                if response.status >= 300:
                    raise error_of(status_of(await _read_response(response)), what)
            yield lines_of(_chunks(response, what, silence))
        finally:
            response.close()

    async def _send(self, request: ApiRequest, encoding: str, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        headers = {"Accept": "application/json", "Accept-Encoding": encoding, "User-Agent": self._client.user_agent}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        authorization = await self._credential.header()
        if authorization:
            headers["Authorization"] = authorization
        query = f"?{urlencode(request.query)}" if request.query else ""
        sent = await self._client.call_api(
            request.method,
            f"{self._client.configuration.host}{request.path}{query}",
            header_params=headers,
            body=None if request.body is None else dict(request.body),
            _request_timeout=timeout,
        )
        response: aiohttp.ClientResponse = sent.response
        return response


async def _read_response(response: aiohttp.ClientResponse) -> ApiResponse:
    stated = response.headers.get("Retry-After", "")
    return ApiResponse(response.status, await response.read(), float(stated) if stated.isdecimal() else None)


async def _chunks(response: aiohttp.ClientResponse, what: str, silence: str) -> AsyncIterator[bytes]:
    with _mapped(what, silence):
        async for chunk in response.content.iter_any():
            yield chunk


@contextmanager
def _mapped(what: str, late: str) -> Iterator[None]:
    """Maps the exceptions of the client library to Unreachable."""
    try:
        yield
    except TimeoutError as error:
        raise Unreachable(f"{what}: {late}") from error
    except (aiohttp.ClientError, OSError, ApiException, EOFError) as error:
        raise Unreachable(f"{what}: {error or type(error).__name__}") from error


async def lines_of(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Complete lines of any length: a watch line can hold an object of several MiB. An end inside a line raises."""
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
        raise Unreachable("the response ends in the middle of a line")

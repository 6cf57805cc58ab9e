"""Certificates, tokens and kubeconfigs of one run, made by openssl and kept in the run's folder."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from loadtests.controlplane.options import ControlPlaneOptions, User
from loadtests.tools.processes import run

_DAYS = "30"
_DEADLINE = 20.0
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
METRICS_HOST = "metrics.lab-metrics.svc"
"""The name under which the aggregator knows the lab's metrics server."""
OUR_HOST = "rematch.rematch.svc"
"""The name under which it knows Rematch's own server of external metrics."""


@dataclass(frozen=True, slots=True)
class Pair:
    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Credentials:
    admin_token: str
    tokens: Path
    ca: Pair
    server: Pair
    metrics: Pair
    front_proxy_ca: Pair
    front_proxy: Pair
    account_key: Path
    account_public: Path


@dataclass(frozen=True, slots=True)
class CertificateMaker:
    """Files in `folder`."""

    openssl: Path
    folder: Path

    async def authority(self, name: str) -> Pair:
        return await self._pair(name, "-addext", "keyUsage=critical,keyCertSign,digitalSignature")

    async def signed(self, name: str, authority: Pair, hosts: Sequence[str] = ()) -> Pair:
        extra = ["-CA", authority.certificate, "-CAkey", authority.key, "-addext", "basicConstraints=critical,CA:FALSE"]
        if hosts:
            extra += ["-addext", f"subjectAltName={','.join(_alternative(host) for host in hosts)}"]
        return await self._pair(name, *map(str, extra))

    async def account_keys(self) -> tuple[Path, Path]:
        key, public = self.folder / "accounts.key", self.folder / "accounts.pub"
        await self._openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", str(key))
        await self._openssl("pkey", "-in", str(key), "-pubout", "-out", str(public))
        return key, public

    async def _pair(self, name: str, *extra: str) -> Pair:
        pair = Pair(self.folder / f"{name}.crt", self.folder / f"{name}.key")
        files = ("-keyout", str(pair.key), "-out", str(pair.certificate))
        await self._openssl("req", "-x509", *_CURVE, "-days", _DAYS, "-subj", f"/CN={name}", *files, *extra)
        return pair

    async def _openssl(self, *arguments: str) -> None:
        await run([str(self.openssl), *arguments], deadline=_DEADLINE)


async def make_credentials(openssl: Path, options: ControlPlaneOptions, folder: Path) -> Credentials:
    maker = CertificateMaker(openssl, folder)
    ca, front_proxy_ca = await maker.authority("ca"), await maker.authority("front-proxy-ca")
    service = str(next(ipaddress.ip_network(options.service_range).hosts()))
    hosts = ["127.0.0.1", "localhost", options.address, service, *_service_names("kubernetes.default")]
    key, public = await maker.account_keys()
    admin = User(secrets.token_hex(16), "admin", ("system:masters",))
    return Credentials(
        admin_token=admin.token,
        tokens=write_tokens(folder / "tokens.csv", (admin, *options.users)),
        ca=ca,
        server=await maker.signed("server", ca, list(dict.fromkeys(hosts))),
        metrics=await maker.signed("metrics", ca, [METRICS_HOST, OUR_HOST]),
        front_proxy_ca=front_proxy_ca,
        front_proxy=await maker.signed("front-proxy", front_proxy_ca),
        account_key=key,
        account_public=public,
    )


def _service_names(name: str) -> list[str]:
    return [name.partition(".")[0], name, f"{name}.svc", f"{name}.svc.cluster.local"]


def _alternative(host: str) -> str:
    return f"{'IP' if host.replace('.', '').isdigit() else 'DNS'}:{host}"


def write_tokens(path: Path, users: Sequence[User]) -> Path:
    lines = [f'{user.token},{user.name},{user.name},"{",".join(user.groups)}"' for user in users]
    path.touch(mode=0o600)
    path.write_text("\n".join(lines) + "\n")
    return path


def write_kubeconfig(path: Path, url: str, ca: Path, *, token: str = "", token_file: Path | None = None) -> Path:
    """Readable by its owner only. A token in a file is read again when the file changes."""
    user = {"tokenFile": str(token_file.absolute())} if token_file is not None else {"token": token}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": {"server": url, "certificate-authority": str(ca.absolute())}}],
        "users": [{"name": "lab", "user": user}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
        "current-context": "lab",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path

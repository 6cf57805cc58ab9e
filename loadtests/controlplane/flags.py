"""The command line of each component."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

from loadtests.controlplane.credentials import Credentials
from loadtests.controlplane.options import Component, ControlPlaneOptions

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Ports:
    api: int
    etcd: int
    peer: int
    controller_manager: int
    scheduler: int

    @property
    def etcd_url(self) -> str:
        return f"http://{LOOPBACK}:{self.etcd}"


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything of one run is."""

    options: ControlPlaneOptions
    ports: Ports
    credentials: Credentials
    data: Path
    kubeconfig: Path

    @property
    def url(self) -> str:
        return f"https://{self.options.address}:{self.ports.api}"

    @property
    def scheduler_url(self) -> str:
        return f"https://{LOOPBACK}:{self.ports.scheduler}"

    def flags(self, component: Component) -> list[str]:
        own = {
            Component.ETCD: self._etcd,
            Component.API_SERVER: self._api_server,
            Component.CONTROLLER_MANAGER: self._controller_manager,
            Component.SCHEDULER: self._scheduler,
        }[component]()
        return [*own, *self.options.flags.get(component, ())]

    def _etcd(self) -> list[str]:
        client, peer = self.ports.etcd_url, f"http://{LOOPBACK}:{self.ports.peer}"
        return [
            f"--data-dir={self.data}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
        ]

    def _api_server(self) -> list[str]:
        given, address = self.credentials, self.options.address
        flags = [
            f"--etcd-servers={self.ports.etcd_url}",
            f"--bind-address={address}",
            f"--advertise-address={address}",
            f"--secure-port={self.ports.api}",
            f"--tls-cert-file={given.server.certificate}",
            f"--tls-private-key-file={given.server.key}",
            f"--client-ca-file={given.ca.certificate}",
            f"--token-auth-file={given.tokens}",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",
            f"--service-cluster-ip-range={self.options.service_range}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={given.account_public}",
            f"--service-account-signing-key-file={given.account_key}",
            f"--requestheader-client-ca-file={given.front_proxy_ca.certificate}",
            "--requestheader-allowed-names=front-proxy",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={given.front_proxy.certificate}",
            f"--proxy-client-key-file={given.front_proxy.key}",
        ]
        if ipaddress.ip_address(address).is_loopback:
            # An Endpoints object must not hold a loopback address, and nobody asks for this one.
            flags.append("--endpoint-reconciler-type=none")
        return flags

    def _controller_manager(self) -> list[str]:
        return [
            *self._client(self.ports.controller_manager),
            f"--service-account-private-key-file={self.credentials.account_key}",
            f"--root-ca-file={self.credentials.ca.certificate}",
            "--use-service-account-credentials=true",
            f"--flex-volume-plugin-dir={self.options.folder / 'volume-plugins'}",
        ]

    def _scheduler(self) -> list[str]:
        """With a certificate that we can check: it is asked whether it is ready."""
        server = self.credentials.server
        return [
            *self._client(self.ports.scheduler),
            f"--tls-cert-file={server.certificate}",
            f"--tls-private-key-file={server.key}",
        ]

    def _client(self, port: int) -> list[str]:
        qps = self.options.client_qps
        return [
            f"--kubeconfig={self.kubeconfig}",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            "--leader-elect=false",
            f"--kube-api-qps={qps}",
            f"--kube-api-burst={2 * qps}",
        ]

"""The border to an MQTT broker: the only module that imports the MQTT client. Its errors become BrokerError."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import aiomqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from reactor.errors import BrokerError

USERNAME, PASSWORD = "REMATCH_BROKER_USERNAME", "REMATCH_BROKER_PASSWORD"
_PORTS = {"mqtt": 1883, "mqtts": 8883}
_DEADLINE = 10.0
"""Seconds for a connection and for every answer of the broker."""
_KEEPALIVE = 15
_LARGEST_PACKET = 8192
_QUEUED = 1000
"""Messages that wait here; more are dropped, since a newer one follows soon."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Broker:
    host: str
    port: int
    tls: bool

    @classmethod
    def parse(cls, address: str) -> Broker:
        """`mqtt://HOST[:PORT]`, `mqtts://HOST[:PORT]`, or HOST[:PORT] for the first. Raises BrokerError."""
        if "@" in address:  # not repeated: it may hold a password
            raise BrokerError("the address of the broker has an @; give credentials by file or variable, not in it")
        parts = urlsplit(address if "://" in address else f"mqtt://{address}")
        try:
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if parts.scheme not in _PORTS or not host or parts.path.strip("/"):
            raise BrokerError(
                f"{address!r} is not a broker; write mqtt://HOST:PORT or mqtts://HOST:PORT, without credentials"
            )
        return cls(host, port or _PORTS[parts.scheme], parts.scheme == "mqtts")

    @property
    def is_local(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"{'mqtts' if self.tls else 'mqtt'}://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class BrokerAccess:
    """What settings may not name: files and credentials. Read anew for every connection."""

    credentials: Path | None = None
    """A folder with the files `username` and `password`, as a Secret of the type basic-auth is mounted. Without it
    the variables REMATCH_BROKER_USERNAME and REMATCH_BROKER_PASSWORD."""
    host: str = ""
    """The only host that gets credentials and the client's certificate, so that settings cannot send them elsewhere."""
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None

    def login(self, broker: Broker, environ: Mapping[str, str] = os.environ) -> tuple[str | None, str | None]:
        """User and password; None without any. Raises BrokerError where they would be sent to a stranger."""
        user, password = environ.get(USERNAME), environ.get(PASSWORD)
        if self.credentials is not None:
            user, password = _read(self.credentials / "username"), _read(self.credentials / "password")
        if not user:
            return None, None
        self._refuse_strangers(broker)
        if not broker.tls and not broker.is_local:
            raise BrokerError(f"credentials are not sent to {broker} in plain text; use mqtts://")
        return user, password

    def tls(self, broker: Broker) -> ssl.SSLContext | None:
        if not broker.tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
            if self.certificate_file is not None:
                self._refuse_strangers(broker)
                context.load_cert_chain(self.certificate_file, self.key_file)
        except OSError as error:  # an SSLError is one, too
            files = [str(file) for file in (self.ca_file, self.certificate_file, self.key_file) if file is not None]
            raise BrokerError(f"certificates for {broker} cannot be read ({', '.join(files)}): {error}") from error
        return context

    def _refuse_strangers(self, broker: Broker) -> None:
        if broker.host != self.host:
            raise BrokerError(
                f"credentials are only for {self.host or 'the host that --broker-host names'}, not for {broker.host}"
            )


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BrokerError(f"credentials of the broker: {file}: {error}") from error


class BrokerConnection:
    def __init__(self, client: aiomqtt.Client) -> None:
        self._client = client

    async def subscribe(self, topic: str) -> None:
        await self._client.subscribe(topic, qos=1, timeout=_DEADLINE)

    async def publish(self, topic: str, payload: bytes) -> None:
        """Returns when the broker has it."""
        await self._client.publish(topic, payload, qos=1, timeout=_DEADLINE)

    async def messages(self) -> AsyncIterator[tuple[str, bytes]]:
        """Topic and payload, until the connection ends."""
        async for message in self._client.messages:
            payload = message.payload
            yield message.topic.value, payload if isinstance(payload, bytes) else b""


@asynccontextmanager
async def connected(broker: Broker, access: BrokerAccess, client_id: str) -> AsyncIterator[BrokerConnection]:
    """Raises BrokerError when there is no connection, and in the block when it is lost."""
    user, password = access.login(broker)
    most = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    most.MaximumPacketSize = _LARGEST_PACKET
    try:
        async with aiomqtt.Client(
            broker.host,
            broker.port,
            username=user,
            password=password,
            logger=_log,
            identifier=client_id,
            protocol=aiomqtt.ProtocolVersion.V5,
            timeout=_DEADLINE,
            keepalive=_KEEPALIVE,
            properties=most,
            tls_context=access.tls(broker),
            max_queued_incoming_messages=_QUEUED,
        ) as client:
            yield BrokerConnection(client)
    except aiomqtt.MqttError as error:
        raise BrokerError(f"{broker}: {error}") from error

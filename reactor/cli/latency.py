"""`rematch latency-server` and `rematch latency-client`: the meter. What they need is imported when they run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path, dir_okay=False)
_STOPS_WITHIN = 5.0


def broker_options(command: F) -> F:
    """Credentials are files or variables, never arguments: others on the machine can read those."""
    folder = click.Path(path_type=Path, file_okay=False)
    text = "Folder with the files username and password. Default: REMATCH_BROKER_USERNAME and REMATCH_BROKER_PASSWORD."
    for name, kind, about in (
        ("--broker-key-file", _FILE, "Key of --broker-certificate-file."),
        ("--broker-certificate-file", _FILE, "Client certificate for an mqtts broker."),
        ("--broker-ca-file", _FILE, "Certificate authority of an mqtts broker."),
        ("--broker-credentials", folder, text),
    ):
        command = click.option(name, type=kind, help=about)(command)
    return command


@click.command("latency-server", short_help="Echo UDP datagrams, for a latency meter to measure.")
@click.option("--bind", default="0.0.0.0", show_default=True, help="Address.")
@click.option("--port", type=click.IntRange(0, 65535), default=9500, show_default=True, help="0 takes a free port.")
def latency_server(bind: str, port: int) -> None:
    """Echo UDP datagrams beside an application (a target), or alone (a probe).

    Answers the requests of `rematch latency-client` only, at most 5,000 per second; everything else is ignored.
    """
    from reactor.cli.stopping import until_stopped
    from reactor.record.logs import configure_logs

    configure_logs(level="info", json=None)
    asyncio.run(until_stopped(_serve(bind, port), grace=_STOPS_WITHIN))


async def _serve(bind: str, port: int) -> None:
    import structlog

    from reactor.clock import SystemClock
    from reactor.meter.echo import echo_server

    async with echo_server(bind, port, SystemClock()) as (_, bound):
        structlog.get_logger(__name__).info("answering", bind=bind, port=bound)
        await asyncio.Event().wait()


@click.command("latency-client", short_help="Measure round trips to targets and probes, and publish them by MQTT.")
@click.option("--broker", required=True, help="mqtt://HOST:PORT or mqtts://HOST:PORT.")
@click.option("--topic", default="rematch/latency", show_default=True,
              help="As latency.topic of the settings; the namespace is added to it.")  # fmt: skip
@click.option("--client-id", default="", help="Of the MQTT client. Default: a random one.")
@click.option("--namespace", "-n", default="default", show_default=True, help="Of the pods that are measured.")
@click.option("--target", default="rematch.io/latency=target", show_default=True, help="Label selector.")
@click.option("--probe", default="rematch.io/latency=probe", show_default=True, help="Label selector.")
@click.option("--port", type=click.IntRange(1, 65535), required=True, help="The NodePort at which nodes answer.")
@click.option("--mode", type=click.Choice(["udp", "http"]), default="udp", show_default=True,
              help="udp: latency-server. http: real requests to the application.")  # fmt: skip
@click.option("--path", default="/", show_default=True, help="What http requests ask for.")
@click.option("--requests", type=click.IntRange(1, 1000), default=5, show_default=True, help="Of one measurement.")
@click.option("--timeout", type=click.FloatRange(0.01, 60), default=2.0, show_default=True,
              help="Seconds after which a request counts as lost.")  # fmt: skip
@click.option("--interval", type=click.FloatRange(0.1, 3600), default=5.0, show_default=True,
              help="Seconds from one measurement to the next.")  # fmt: skip
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info",
              show_default=True)  # fmt: skip
@broker_options
@click.option("--context", help="Context of the kubeconfig.")
@click.option("--kubeconfig", type=click.Path(), help="Default: service account, KUBECONFIG, ~/.kube/config.")
def latency_client(**options: Any) -> None:
    """Measure from the user's side: find the nodes with target or probe pods, send each some requests, and publish
    pod, namespace, UID, mean round trip, loss, jitter and time as JSON to TOPIC/NAMESPACE.
    """
    from reactor.cli.stopping import until_stopped
    from reactor.record.logs import configure_logs
    from reactor.settings.selector import parse_selector

    for name in ("target", "probe"):
        try:
            parse_selector(options[name])
        except ValueError as error:
            raise click.BadParameter(f"{options[name]!r} is not a label selector: {error}", param_hint=name) from None
    configure_logs(level=options["log_level"], json=None)
    asyncio.run(until_stopped(_measure(options), grace=_STOPS_WITHIN))


async def _measure(options: dict[str, Any]) -> None:
    import secrets

    from reactor.clock import SystemClock
    from reactor.cluster.connection import open_connection
    from reactor.meter.client import LatencyClient, Publishing
    from reactor.meter.discovery import Discovery
    from reactor.meter.measuring import MeterMode, MeterRequests
    from reactor.signals.mqtt import Broker, BrokerAccess

    broker = Broker.parse(options["broker"])
    files = (options[f"broker_{name}"] for name in ("ca_file", "certificate_file", "key_file"))
    access = BrokerAccess(options["broker_credentials"], broker.host, *files)
    client_id = options["client_id"] or f"rematch-meter-{secrets.token_hex(4)}"
    publishing = Publishing(broker, access, client_id, options["topic"], options["namespace"])
    mode = MeterMode(options["mode"])
    requests = MeterRequests(options["port"], options["requests"], options["timeout"], mode, options["path"])
    connection = await open_connection(options["kubeconfig"], options["context"])
    try:
        discovery = Discovery(connection, options["namespace"], (options["target"], options["probe"]))
        await LatencyClient(discovery, requests, publishing, SystemClock()).run(options["interval"])
    finally:
        await connection.close()

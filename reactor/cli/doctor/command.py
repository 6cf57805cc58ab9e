"""The process around the examination."""

from __future__ import annotations

import asyncio

from reactor.cli.doctor.examination import examine
from reactor.cli.doctor.findings import Report
from reactor.clock import SystemClock
from reactor.cluster.connection import open_connection
from reactor.record.logs import configure_logs


def examine_cluster(namespace: str, kubeconfig: str | None, context: str | None, *, canary: bool) -> Report:
    configure_logs(level="error")
    return asyncio.run(_examine(namespace, kubeconfig, context, canary))


async def _examine(namespace: str, kubeconfig: str | None, context: str | None, canary: bool) -> Report:
    connection = await open_connection(kubeconfig, context)
    try:
        return await examine(connection, connection.server, namespace, SystemClock(), canary=canary)
    finally:
        await connection.close()

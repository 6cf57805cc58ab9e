"""The examination: connect, read the cluster once, run every check."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

import msgspec

from reactor.cli.doctor.cluster import ApiServer, Examined, Installation
from reactor.cli.doctor.findings import Finding, Report, State, report
from reactor.cli.doctor.installed import (
    check_controller,
    check_crds,
    check_journal,
    check_lease,
    check_metrics_of_controller,
    check_policies,
    check_version,
    check_volumes,
)
from reactor.cli.doctor.pods import check_movable, check_opted_in, check_pdbs, check_zero_downtime
from reactor.cli.doctor.rights import check_rights
from reactor.cli.doctor.signals import check_measurements
from reactor.cli.doctor.steering import check_steering, steering_status
from reactor.clock import Clock
from reactor.cluster.api import Connection
from reactor.cluster.extender_sign import ExtenderSign
from reactor.cluster.hints import HintWriter
from reactor.cluster.kinds import CLUSTER_KINDS, Kind, ObjectName, config_map_listing
from reactor.cluster.mirror import ClusterMirror
from reactor.cluster.reads import ClusterReader
from reactor.cluster.steering_policy import SteeringPolicy
from reactor.errors import ClusterError, Forbidden, SettingsError
from reactor.settings.load import parse_settings
from reactor.settings.model import Mode, Settings

_CHECK_SECONDS = 60.0
_RELEASE = "meta.helm.sh/release-name"
Check = Callable[[Examined], Awaitable[Sequence[Finding]]]
INSTALLED: tuple[tuple[str, Check], ...] = (
    ("CRDs", check_crds),
    ("steering", check_steering),
    ("policies", check_policies),
    ("rights", check_rights),
    ("controller", check_controller),
    ("running", check_metrics_of_controller),
    ("leader", check_lease),
    ("volume", check_volumes),
    ("journal", check_journal),
)
"""Only where there is something to look at: else each of them would say that nothing is installed."""
CLUSTER: tuple[tuple[str, Check], ...] = (
    ("measurements", check_measurements),
    ("opted in", check_opted_in),
    ("PDBs", check_pdbs),
    ("no lost requests", check_zero_downtime),
    ("movable", check_movable),
)


class _Meta(msgspec.Struct):
    annotations: dict[str, str] = {}


class _ConfigMap(msgspec.Struct):
    metadata: _Meta
    data: dict[str, str] = {}


class _ConfigMaps(msgspec.Struct):
    items: list[_ConfigMap] = []


@dataclass(frozen=True, slots=True)
class _Found:
    installation: Installation
    settings: Settings
    finding: Finding


async def examine(connection: Connection, server: str, namespace: str, clock: Clock, *, canary: bool = False) -> Report:
    """Raises Unreachable when there is no API server; everything else is a finding."""
    api = ApiServer(connection)
    found = await _settings(api, namespace)
    reader = ClusterReader(connection)
    mirror, unread = await _read(reader)
    view = mirror.freeze(clock.now())
    policy = SteeringPolicy(connection, HintWriter(connection, clock), clock, namespace)
    steering = await steering_status(policy, ExtenderSign(connection, namespace, clock), canary=canary)
    examined = Examined(api, reader, clock, found.installation, found.settings, view, steering)
    findings = [found.finding, *unread]
    checks = (*INSTALLED, *CLUSTER) if found.installation.found else CLUSTER
    for name, check in (("Kubernetes", check_version), *checks):
        findings += await _checked(name, check, examined)
    return report(server, findings)


async def _settings(api: ApiServer, namespace: str) -> _Found:
    """By a list, which is what the controller itself may do."""
    missing = Installation(namespace)
    listing = config_map_listing(ObjectName(namespace, "rematch"))
    try:
        found = await api.get(listing.path, _ConfigMaps, {"fieldSelector": listing.field_selector})
    except Forbidden as error:
        return _Found(replace(missing, found=True), Settings(), Finding("settings", State.UNKNOWN, str(error)))
    config_map = next(iter(found.items), None)
    if config_map is None:
        text = f"not in namespace {namespace}, which has no ConfigMap rematch; what follows is with the defaults"
        return _Found(missing, Settings(), Finding("installed", State.FAILED, text, missing.mend()))
    installation = Installation(namespace, config_map.metadata.annotations.get(_RELEASE, ""), found=True)
    try:
        settings = parse_settings(config_map.data.get("settings.yaml", ""), f"ConfigMap {namespace}/rematch")
    except SettingsError as error:
        mend = f"kubectl -n {namespace} edit configmap rematch"
        return _Found(installation, Settings(), Finding("settings", State.FAILED, str(error), mend))
    return _Found(installation, settings, _mode(settings, installation))


def _mode(settings: Settings, installation: Installation) -> Finding:
    text = f"valid: mode {settings.mode}, planner {settings.planner.name}"
    if settings.mode is Mode.ACT:
        return Finding("settings", State.OK, text)
    return Finding("settings", State.OK, f"{text}; it moves nothing", installation.mend("settings.mode=act"))


async def _read(reader: ClusterReader) -> tuple[ClusterMirror, list[Finding]]:
    """Events are left out: only a running controller counts them."""
    mirror = ClusterMirror((), lambda _kind, _old, _new: None)
    kinds = [kind for kind in CLUSTER_KINDS if kind is not Kind.EVENTS]
    pages = await asyncio.gather(*(reader.list_all(kind) for kind in kinds), return_exceptions=True)
    unread: list[Finding] = []
    for kind, page in zip(kinds, pages, strict=True):
        if isinstance(page, ClusterError):
            unread.append(Finding(kind.value, State.UNKNOWN, f"cannot be listed: {page}"))
        elif isinstance(page, BaseException):
            raise page
        else:
            mirror.replaced(kind, page.records, {malformed.key for malformed in page.malformed})
    return mirror, unread


async def _checked(name: str, check: Check, examined: Examined) -> Sequence[Finding]:
    """A check that cannot look is a finding, not the end of the examination."""
    try:
        async with asyncio.timeout(_CHECK_SECONDS):
            return await check(examined)
    except Forbidden as error:
        return [Finding(name, State.UNKNOWN, str(error))]
    except (ClusterError, TimeoutError) as error:
        return [Finding(name, State.FAILED, str(error) or f"no answer within {_CHECK_SECONDS:g} s")]

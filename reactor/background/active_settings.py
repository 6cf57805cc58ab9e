"""The active settings, and the consequences of every new revision: rows, Events, metrics, and a new cycle."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

import structlog

from reactor.clock import Clock
from reactor.cluster.records import ConfigMap
from reactor.record.events import EventQueue, controller_event, refused_settings_event
from reactor.record.metrics import Instruments
from reactor.settings.load import CONFIG_MAP_KEY
from reactor.settings.model import Mode, Settings
from reactor.settings.source import RefusedRevision, SettingsRevision, SettingsSource
from reactor.work_queue import WorkQueue
from storage.rows import RevisionRow
from storage.store import Store

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RevisionReport:
    """Where new revisions are reported: rows, Events, metrics, and a key that wakes the controller."""

    store: Store
    events: EventQueue
    instruments: Instruments
    work_queue: WorkQueue


class ActiveSettings:
    def __init__(self, file: Path | None, mode: Mode | None, clock: Clock, planner_function: str = "") -> None:
        """From the file, else the defaults until a ConfigMap comes. `mode` overrides every revision."""
        self._mode = mode
        self._report: RevisionReport | None = None
        self._config_map: ConfigMap | None = None
        self._restored = ""
        """Digest of the settings of the last run."""
        if file is None:
            self.source = SettingsSource.from_defaults(clock, self._accepted, self._refused, planner_function)
        else:
            self.source = SettingsSource.from_file(file, clock, self._accepted, self._refused, planner_function)
        self._settings = self._with_mode(self.source.current.settings)

    def report_to(self, report: RevisionReport) -> None:
        """From the current revision on."""
        self._report = report
        self._report_accepted(self.source.current)

    def get(self) -> Settings:
        return self._settings

    def restore(self, text: str, source: str) -> None:
        """The settings that were in force before a restart, until the ConfigMap brings valid ones."""
        if self.source.offer(text, source):
            self._restored = self.source.current.digest

    @property
    def restored(self) -> bool:
        """Whether the settings of the last run are in force because newer ones are refused."""
        return self.source.refused is not None and self.source.current.digest == self._restored

    def announce_refused(self) -> None:
        """Again, by a new leader: only leaders write Events."""
        refused = self.source.refused
        if refused is not None and self._report is not None and self._config_map is not None:
            self._report.events.add(refused_settings_event(self._config_map, list(refused.problems)))

    def config_map_changed(self, config_map: ConfigMap | None) -> None:
        """Our ConfigMap was created, changed or deleted."""
        known = config_map or self._config_map
        if known is None:
            return
        self._config_map = known
        name = f"ConfigMap {known.namespace}/{known.name}"
        if config_map is None:
            self.source.lost(name, "is gone")
        elif CONFIG_MAP_KEY not in config_map.data:
            self.source.lost(name, f"has no key {CONFIG_MAP_KEY}")
        else:
            self.source.offer(config_map.data[CONFIG_MAP_KEY], name)

    def announce(self, reason: str, message: str) -> None:
        """A Warning on our ConfigMap, about the controller as a whole."""
        if self._report is not None and self._config_map is not None:
            self._report.events.add(controller_event(self._config_map, reason, message))

    def _with_mode(self, settings: Settings) -> Settings:
        return settings if self._mode is None else settings.model_copy(update={"mode": self._mode})

    def _bind_at_least(self) -> None:
        """Where no settings were ever accepted, what the refused ones ask for is not known. Pods that name our
        scheduler have no other, so they are bound."""
        if not self.source.current.text and self._mode is None:
            self._settings = self.source.current.settings.model_copy(update={"mode": Mode.BIND})

    def _accepted(self, _old: SettingsRevision, new: SettingsRevision) -> None:
        self._settings = self._with_mode(new.settings)
        self._report_accepted(new)
        if self._report is not None:
            self._report.work_queue.add("settings")

    def _report_accepted(self, revision: SettingsRevision) -> None:
        log.info("settings in force", source=revision.source, digest=revision.digest[:12], mode=self._settings.mode)
        if self._report is not None:
            self._report.instruments.revisions.labels("accepted").inc()
            self._report.instruments.settings_restored.set_function(lambda: float(self.restored))
            self._report.store.add_revision(_row(revision))

    def _refused(self, revision: RefusedRevision) -> None:
        problems = list(revision.problems)
        log.error("settings refused, the last good ones stay", source=revision.source, problems=problems)
        self._bind_at_least()
        if self._report is not None:
            self._report.instruments.revisions.labels("refused").inc()
            self._report.store.add_revision(_row(revision, revision.problems))
            if self._config_map is not None:
                self._report.events.add(refused_settings_event(self._config_map, problems))


def _row(revision: SettingsRevision | RefusedRevision, errors: tuple[tuple[str, str], ...] = ()) -> RevisionRow:
    row_id, at, source, digest = secrets.token_hex(6), revision.at, revision.source, revision.digest
    return RevisionRow(row_id, at, source, digest, accepted=not errors, errors=errors, text=revision.text)

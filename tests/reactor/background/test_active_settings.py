"""New revisions of the settings and their consequences."""

from __future__ import annotations

from pathlib import Path

import pytest

from reactor.background.active_settings import ActiveSettings, RevisionReport
from reactor.cluster.records import ConfigMap
from reactor.errors import SettingsError
from reactor.settings.model import Mode
from tests.support.rig import Rig


@pytest.fixture
def rig() -> Rig:
    return Rig()


def in_force(rig: Rig, file: Path | None = None, mode: Mode | None = None) -> ActiveSettings:
    settings = ActiveSettings(file, mode, rig.clock)
    settings.report_to(RevisionReport(rig.controller.store, rig.events, rig.instruments, rig.work_queue))
    return settings


def config_map(text: str | None, version: str = "1") -> ConfigMap:
    data = {} if text is None else {"settings.yaml": text}
    return ConfigMap("uid-cm", "rematch", "settings", version, data)


def revisions(rig: Rig, result: str) -> float | None:
    return rig.instruments.registry.get_sample_value("rematch_settings_revisions_total", {"result": result})


def said(rig: Rig) -> list[str]:
    events = [rig.events._queue.get_nowait() for _ in range(rig.events._queue.qsize())]
    return [f"{event.type} {event.object_kind}/{event.name} {event.reason}: {event.message}" for event in events]


def test_without_a_source_the_defaults_only_observe(rig: Rig) -> None:
    settings = in_force(rig)

    assert settings.get().mode is Mode.OBSERVE
    assert [row.accepted for row in rig.rows.revisions] == [True]
    assert revisions(rig, "accepted") == 1


async def test_a_config_map_is_in_force_when_it_comes_and_when_it_changes(rig: Rig) -> None:
    settings = in_force(rig)

    settings.config_map_changed(config_map("mode: act"))
    assert settings.get().mode is Mode.ACT
    settings.config_map_changed(config_map("mode: act\nhappiness: {threshold: 0.5}"))

    assert settings.get().happiness.threshold == 0.5
    assert len(rig.rows.revisions) == 3
    assert rig.rows.revisions[-1].source == "ConfigMap rematch/settings"
    assert rig.work_queue._added.is_set()


def test_a_bad_revision_is_refused_as_a_whole_and_reported_everywhere(rig: Rig) -> None:
    settings = in_force(rig)
    settings.config_map_changed(config_map("mode: act"))

    settings.config_map_changed(config_map("mode: fly\nhappiness: {threshold: 7}\nplanner: {name: stable}"))

    assert settings.get().mode is Mode.ACT
    assert settings.get().happiness.threshold == 0.9
    assert revisions(rig, "refused") == 1
    row = rig.rows.revisions[-1]
    assert not row.accepted
    assert {path for path, _ in row.errors} == {"mode", "happiness.threshold"}
    (event,) = said(rig)
    assert event.startswith("Warning ConfigMap/settings SettingsRefused: the last good settings stay in force")
    assert "mode:" in event
    assert "happiness.threshold:" in event
    assert [entry.reason for entry in rig.rows.history] == ["refused", "accepted", "accepted"]


def test_the_same_bad_revision_is_reported_once(rig: Rig) -> None:
    settings = in_force(rig)

    for version in ("1", "2", "3"):
        settings.config_map_changed(config_map("mode: fly", version))

    assert revisions(rig, "refused") == 1


def test_a_config_map_that_goes_or_loses_its_key_leaves_what_was_in_force(rig: Rig) -> None:
    settings = in_force(rig)
    settings.config_map_changed(None)
    assert revisions(rig, "refused") == 0
    settings.config_map_changed(config_map("mode: act"))

    settings.config_map_changed(config_map(None))
    settings.config_map_changed(None)

    assert settings.get().mode is Mode.ACT
    assert revisions(rig, "refused") == 2
    settings.config_map_changed(config_map("mode: act"))
    assert settings.source.refused is None


@pytest.mark.parametrize("mode", list(Mode))
def test_the_command_line_knows_the_mode_better_than_any_revision(rig: Rig, mode: Mode) -> None:
    settings = in_force(rig, mode=mode)
    assert settings.get().mode is mode

    for text in ("mode: act", "mode: observe"):
        settings.config_map_changed(config_map(text))
        assert settings.get().mode is mode


def test_a_file_that_is_wrong_from_the_start_ends_the_start(rig: Rig, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("mode: fly")

    with pytest.raises(SettingsError, match="mode"):
        in_force(rig, file)


def test_a_file_is_in_force_from_the_start(rig: Rig, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("mode: act")

    assert in_force(rig, file).get().mode is Mode.ACT

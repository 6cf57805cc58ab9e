from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest

from reactor.clock import Clock
from reactor.errors import SettingsError
from reactor.settings.model import Mode, Settings
from reactor.settings.source import POLL_SECONDS, RefusedRevision, SettingsRevision, SettingsSource, watch_file

ACT = "mode: act\n"
BAD = "mode: maybe\nhappiness: {threshold: 3}\n"
IN_FORCE_WITHIN = 2.0


class SteppedClock(Clock, Protocol):
    async def advance(self, seconds: float) -> None: ...


class Reports:
    def __init__(self) -> None:
        self.accepted: list[tuple[SettingsRevision, SettingsRevision]] = []
        self.refused: list[RefusedRevision] = []

    def on_accepted(self, old: SettingsRevision, new: SettingsRevision) -> None:
        self.accepted.append((old, new))

    def from_defaults(self, clock: Clock) -> SettingsSource:
        return SettingsSource.from_defaults(clock, self.on_accepted, self.refused.append)

    def from_file(self, path: Path, clock: Clock) -> SettingsSource:
        return SettingsSource.from_file(path, clock, self.on_accepted, self.refused.append)


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "settings.yaml"
    path.write_text(ACT)
    return path


@asynccontextmanager
async def watched(path: Path, settings: SettingsSource, clock: Clock) -> AsyncIterator[None]:
    task = asyncio.create_task(watch_file(path, settings, clock))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def write(path: Path, text: str) -> None:
    path.write_text(text)


def remove(path: Path) -> None:
    path.unlink()


def mode(settings: SettingsSource) -> Mode:
    return settings.current.settings.mode


async def pass_time(clock: SteppedClock, seconds: float) -> None:
    for _ in range(round(seconds / POLL_SECONDS)):
        await clock.advance(POLL_SECONDS)


def test_without_a_config_map_the_defaults_are_in_force(clock: SteppedClock, reports: Reports) -> None:
    current = reports.from_defaults(clock).current
    assert current.settings == Settings()
    assert current.settings.mode is Mode.OBSERVE
    assert current.source == "defaults"


def test_a_good_revision_is_in_force_at_once(clock: SteppedClock, reports: Reports) -> None:
    settings = reports.from_defaults(clock)
    before = settings.current
    assert settings.offer(ACT, "configmap/rematch")
    assert mode(settings) is Mode.ACT
    assert (settings.current.source, settings.current.at, settings.current.text) == ("configmap/rematch", 1000.0, ACT)
    assert reports.accepted == [(before, settings.current)]


def test_a_bad_revision_is_refused_as_a_whole_and_reported_once(clock: SteppedClock, reports: Reports) -> None:
    settings = reports.from_defaults(clock)
    settings.offer(ACT, "configmap/rematch")
    good = settings.current
    for _ in range(3):
        assert not settings.offer(BAD, "configmap/rematch")
    assert settings.current is good
    assert [[path for path, _ in refused.problems] for refused in reports.refused] == [["mode", "happiness.threshold"]]
    assert settings.refused == reports.refused[0]
    assert (settings.refused.source, settings.refused.text) == ("configmap/rematch", BAD)


def test_going_back_to_what_is_in_force_ends_the_refusal(clock: SteppedClock, reports: Reports) -> None:
    settings = reports.from_defaults(clock)
    settings.offer(ACT, "configmap/rematch")
    settings.offer(BAD, "configmap/rematch")
    assert settings.offer(ACT, "configmap/rematch")
    assert settings.refused is None
    assert len(reports.accepted) == 1
    settings.offer(BAD, "configmap/rematch")
    assert len(reports.refused) == 2, "the same mistake made again is news again"


def test_a_config_map_that_is_deleted_changes_nothing_and_is_reported_once(
    clock: SteppedClock, reports: Reports
) -> None:
    settings = reports.from_defaults(clock)
    settings.offer(ACT, "configmap/rematch")
    for _ in range(2):
        settings.lost("configmap/rematch", "was deleted")
    assert mode(settings) is Mode.ACT
    assert [refused.problems for refused in reports.refused] == [
        (("", "was deleted; the settings read before stay in force"),)
    ]


@pytest.mark.parametrize("content", [BAD.encode(), b"\xff\xfe", None])
def test_a_bad_or_missing_file_at_start_is_an_error_that_names_it(
    content: bytes | None, tmp_path: Path, clock: SteppedClock, reports: Reports
) -> None:
    path = tmp_path / "settings.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError, match=r"settings\.yaml: "):
        reports.from_file(path, clock)


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path, clock: SteppedClock, reports: Reports) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(SettingsError, match="is not a regular file"):
        reports.from_file(pipe, clock)


async def test_a_changed_file_is_in_force_within_two_seconds(file: Path, clock: SteppedClock, reports: Reports) -> None:
    settings = reports.from_file(file, clock)
    async with watched(file, settings, clock):
        await pass_time(clock, IN_FORCE_WITHIN)
        assert reports.accepted == []
        write(file, "mode: observe\n")
        await pass_time(clock, IN_FORCE_WITHIN / 2)
        assert mode(settings) is Mode.OBSERVE
        assert settings.current.source == str(file)
    assert len(reports.accepted) == 1
    assert reports.refused == []


async def test_a_file_replaced_by_rename_is_followed(file: Path, clock: SteppedClock, reports: Reports) -> None:
    settings = reports.from_file(file, clock)
    async with watched(file, settings, clock):
        new = file.with_suffix(".new")
        new.write_text("mode: observe\n")
        new.rename(file)
        await pass_time(clock, IN_FORCE_WITHIN)
        assert mode(settings) is Mode.OBSERVE


async def test_the_symlinks_of_a_mounted_config_map_are_followed(
    tmp_path: Path, clock: SteppedClock, reports: Reports
) -> None:
    for name, text in (("..old", ACT), ("..new", "mode: observe\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "settings.yaml").write_text(text)
    (tmp_path / "..data").symlink_to("..old")
    path = tmp_path / "settings.yaml"
    path.symlink_to(Path("..data") / "settings.yaml")
    settings = reports.from_file(path, clock)
    async with watched(path, settings, clock):
        (tmp_path / "..data_tmp").symlink_to("..new")
        (tmp_path / "..data_tmp").rename(tmp_path / "..data")
        await pass_time(clock, IN_FORCE_WITHIN)
        assert mode(settings) is Mode.OBSERVE


async def test_a_file_that_is_still_being_written_waits_until_it_is_whole(
    file: Path, clock: SteppedClock, reports: Reports
) -> None:
    settings = reports.from_file(file, clock)
    whole = "mode: act\nhappiness:\n  threshold: 0.5\n"
    async with watched(file, settings, clock):
        for end in range(len(whole)):
            write(file, whole[:end])
            await clock.advance(POLL_SECONDS)
        assert (reports.accepted, reports.refused) == ([], []), "an emptied file would be the defaults"
        write(file, whole)
        await pass_time(clock, IN_FORCE_WITHIN)
        assert settings.current.settings.happiness.threshold == 0.5


async def test_a_file_left_half_written_is_refused_until_it_is_whole(
    file: Path, clock: SteppedClock, reports: Reports
) -> None:
    settings = reports.from_file(file, clock)
    async with watched(file, settings, clock):
        write(file, "mode: observe\nhappi")
        await pass_time(clock, 10.0)
        assert mode(settings) is Mode.ACT
        assert len(reports.refused) == 1
        write(file, "mode: observe\nhappiness: {}\n")
        await pass_time(clock, IN_FORCE_WITHIN)
        assert mode(settings) is Mode.OBSERVE
        assert settings.refused is None


async def test_a_removed_file_is_reported_once_and_followed_again_when_it_is_back(
    file: Path, clock: SteppedClock, reports: Reports
) -> None:
    settings = reports.from_file(file, clock)
    async with watched(file, settings, clock):
        remove(file)
        await pass_time(clock, 10.0)
        assert mode(settings) is Mode.ACT
        assert [refused.problems[0][1] for refused in reports.refused] == [
            "cannot be read: No such file or directory; the settings read before stay in force"
        ]
        write(file, "mode: observe\n")
        await pass_time(clock, IN_FORCE_WITHIN)
        assert mode(settings) is Mode.OBSERVE
        assert settings.refused is None

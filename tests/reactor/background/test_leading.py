"""What a leader finds, restores, saves and carries out, on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from loadtests.embedded.resources import CONFIGMAPS, REQUESTS
from reactor.background.active_settings import ActiveSettings
from reactor.background.leading import Leading
from reactor.background.requests import Requests
from reactor.cluster.api import ApiRequest
from reactor.cluster.requests import Action, RequestedMove, RequestObjects, RequestSpec
from reactor.cluster.rights import INSTALL
from reactor.decision.brakes import Brake, BrakeCause, Brakes, Miss
from reactor.decision.cooldowns import Backoff, Cooldowns, DecisionMemory, Lineage
from reactor.decision.effects import Effects, Failure, Trial
from reactor.decision.limits import RecentMoves, StartedMove
from reactor.decision.saved_cooldowns import brake_document, from_document, to_document, with_brakes
from reactor.decision.wait_reasons import Reason
from reactor.execution.acting import Acting
from reactor.execution.cluster_journal import ClusterJournal
from reactor.execution.journal import JournalContents, MemoryJournal, SavedState
from reactor.execution.leader import AlwaysLeader
from reactor.execution.state_documents import StateDocuments
from reactor.settings.model import Mode
from tests.support.api import InProcessApi
from tests.support.clock import NOW, VirtualClock
from tests.support.cluster import make_node, make_pending, make_pod
from tests.support.moves import make_move
from tests.support.rig import Rig


class Process:
    """A controller's leader, on a cluster that outlives it."""

    def __init__(self, api: InProcessApi, clock: VirtualClock, name: str = "a", file: Path | None = None) -> None:
        self.api, self.clock = api.another(), clock
        self.journal = ClusterJournal(self.api, "rematch", name)
        self.acting = Acting(clock, AlwaysLeader())
        self.memory = DecisionMemory()
        self.settings = ActiveSettings(file, None, clock)
        self.documents = StateDocuments(self.journal, clock)
        self.taken: list[JournalContents] = []
        self.leading = Leading(
            journal=self.journal,
            acting=self.acting,
            documents=self.documents,
            memory=self.memory,
            settings=self.settings,
            saved_state=self.journal.read_state,
            clock=clock,
            wake=lambda: None,
            take_over=self._take_over,
            drop=lambda: None,
        )
        self.rig = Rig(clock=clock)
        self.objects = RequestObjects(self.api, "rematch")
        self.requests = Requests(
            self.objects,
            name,
            self.leading,
            self.acting,
            self.rig.controller.parts,
            self.settings.get,
            asyncio.Lock(),
            clock,
        )
        self.leading.also.append(self.requests.run)

    async def _take_over(self, contents: JournalContents) -> None:
        self.taken.append(contents)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.leading.run())
        await self.clock.advance(0)
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @property
    def saved(self) -> dict[str, str]:
        found = self.api.cluster.store.find(CONFIGMAPS, "rematch", "rematch-state")
        return dict(found.obj["data"]) if found is not None else {}

    @property
    def answers(self) -> list[tuple[str, str]]:
        found = [stored.obj for stored in self.api.cluster.store.all(REQUESTS, "rematch")]
        statuses = [each.get("status", {}) for each in found]
        return [(status.get("state", ""), status.get("message", "")) for status in statuses]

    async def ask(self, spec: RequestSpec) -> None:
        await self.objects.create(spec)
        await self.clock.advance(2)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def api(clock: VirtualClock) -> InProcessApi:
    return InProcessApi(clock)


async def test_a_restart_releases_no_cooldown(api: InProcessApi, clock: VirtualClock) -> None:
    first = Process(api, clock)
    backoff = Backoff(NOW + 600, Reason.PDB, "refused")
    cooldowns = Cooldowns({"u1": Lineage(NOW, 2, "u0")}, {"n1": NOW}, {"u2": backoff})
    async with first.running():
        first.memory.cooldowns = cooldowns
        await clock.advance(12)
    again = Process(api, clock, "b")
    async with again.running():
        assert again.memory.cooldowns == cooldowns


async def test_a_clean_end_saves_what_the_last_batch_did_not(api: InProcessApi, clock: VirtualClock) -> None:
    first = Process(api, clock)
    async with first.running():
        await clock.advance(11)
        first.memory.cooldowns = Cooldowns(relieved={"n1": NOW + 11})
    again = Process(api, clock, "b")
    async with again.running():
        assert again.memory.cooldowns.relieved == {"n1": NOW + 11}


async def test_the_state_is_written_at_most_every_10_s(api: InProcessApi, clock: VirtualClock) -> None:
    process = Process(api, clock)
    async with process.running():
        begun = len(process.api.writes)
        for second in range(60):
            process.memory.cooldowns = Cooldowns(relieved={"n1": NOW + second})
            await clock.advance(1)
        assert 5 <= len(process.api.writes) - begun <= 7


async def test_what_has_not_changed_is_not_written_again(api: InProcessApi, clock: VirtualClock) -> None:
    """A cycle makes a new value also when nothing happens."""
    process = Process(api, clock)
    process.memory.cooldowns = Cooldowns(relieved={"n1": NOW})
    async with process.running():
        await clock.advance(15)
        begun = len(process.api.writes)
        for _ in range(60):
            process.memory.cooldowns = Cooldowns(relieved={"n1": NOW})
            await clock.advance(1)
        assert len(process.api.writes) == begun


async def test_a_slow_batch_does_not_undo_what_was_saved_at_once(clock: VirtualClock) -> None:
    """A write that lost against a later one is sent again, so only one may be under way."""
    journal, answered = MemoryJournal(), asyncio.Event()
    write = journal.write_state

    async def slow_at_first(state: SavedState) -> None:
        if "pause" not in state.documents:
            await answered.wait()
        await write(state)

    journal.write_state = slow_at_first  # type: ignore[method-assign]
    documents = StateDocuments(journal, clock)
    documents.put("cooldowns", "old")
    batch = asyncio.create_task(documents.flush())
    await asyncio.sleep(0)
    pause = asyncio.create_task(documents.save("pause", "now"))
    await asyncio.sleep(0)
    answered.set()
    await asyncio.gather(batch, pause)
    assert journal.state.documents == {"cooldowns": "old", "pause": "now"}


async def test_a_pause_survives_a_restart_and_ends_in_time(api: InProcessApi, clock: VirtualClock) -> None:
    first = Process(api, clock)
    async with first.running():
        await first.ask(RequestSpec(Action.PAUSE, "release", "10m"))
        assert first.acting.hindrance.endswith(": release")
        assert first.answers[0][0] == "done"
        assert "pods are still bound" in first.answers[0][1]
    again = Process(api, clock, "b")
    async with again.running():
        assert again.acting.paused is not None
        await clock.advance(590)
        assert again.acting.paused is not None
        await clock.advance(30)
        assert again.acting.paused is None
    assert "pause" not in again.saved


async def test_resume_ends_a_pause(api: InProcessApi, clock: VirtualClock) -> None:
    process = Process(api, clock)
    async with process.running():
        await process.ask(RequestSpec(Action.PAUSE))
        assert process.acting.hindrance.endswith("until `rematch resume`")
        await process.ask(RequestSpec(Action.RESUME))
        assert process.acting.hindrance == ""
        assert ("done", "resumed") in process.answers


def lose_last_statuses(process: Process) -> None:
    """The status of a request that has ended cannot be written."""

    def refuses(request: ApiRequest) -> bool:
        body = request.body if isinstance(request.body, dict) else {}
        return request.path.endswith("/status") and body.get("status", {}).get("state") in ("done", "failed")

    process.api.refuse = refuses


async def test_a_pause_whose_last_status_is_lost_is_not_made_again(api: InProcessApi, clock: VirtualClock) -> None:
    process = Process(api, clock)
    async with process.running():
        lose_last_statuses(process)
        await process.ask(RequestSpec(Action.PAUSE, "release", "10m"))
        pause = process.acting.pause
        await clock.advance(20)
        assert process.acting.pause == pause
        assert [state for state, _ in process.answers] == ["accepted"]
        process.api.refuse = lambda _request: False
        await clock.advance(2)
        assert [state for state, _ in process.answers] == ["done"]
        assert process.acting.pause == pause


async def test_a_pause_whose_last_status_is_lost_does_not_undo_a_later_resume(
    api: InProcessApi, clock: VirtualClock
) -> None:
    first = Process(api, clock)
    async with first.running():
        lose_last_statuses(first)
        await first.ask(RequestSpec(Action.PAUSE, "release"))
        assert first.acting.paused is not None
    again = Process(api, clock, "b")
    await again.objects.create(RequestSpec(Action.RESUME))
    async with again.running():
        await clock.advance(2)
        assert again.acting.paused is None
        await clock.advance(10)
        assert again.acting.paused is None
    assert [state for state, _ in again.answers] == ["done", "done"]


async def test_an_older_pause_is_not_made_after_a_later_resume_was(api: InProcessApi, clock: VirtualClock) -> None:
    first = Process(api, clock)
    lose_last_statuses(first)
    await first.objects.create(RequestSpec(Action.PAUSE, "release"))
    await clock.advance(5)
    async with first.running():
        assert first.acting.paused is not None
        first.api.refuse = lambda request: "pause-" in request.path
        await first.ask(RequestSpec(Action.RESUME))
        assert first.acting.paused is None
    again = Process(api, clock, "b")
    async with again.running():
        await clock.advance(4)
        assert again.acting.paused is None
    assert ("done", "a later pause or resume counts") in again.answers


async def test_a_new_leader_keeps_a_pause_that_was_made_before_as_long_as_it_was(
    api: InProcessApi, clock: VirtualClock
) -> None:
    first = Process(api, clock)
    async with first.running():
        lose_last_statuses(first)
        await first.ask(RequestSpec(Action.PAUSE, "release", "10m"))
        pause = first.acting.pause
    await clock.advance(60)
    again = Process(api, clock, "b")
    async with again.running():
        await clock.advance(2)
        assert again.acting.pause == pause
    assert [state for state, _ in again.answers] == ["done"]


@pytest.mark.parametrize("text", ["soon", "0s", "-1h"])
async def test_a_pause_of_no_length_is_refused(api: InProcessApi, clock: VirtualClock, text: str) -> None:
    process = Process(api, clock)
    async with process.running():
        await process.ask(RequestSpec(Action.PAUSE, "", text))
        assert process.answers[0][0] == "failed"
        assert "spec.for" in process.answers[0][1]
        assert process.acting.paused is None


async def test_moves_that_nobody_took_or_another_leader_began_are_not_made_again(
    api: InProcessApi, clock: VirtualClock
) -> None:
    process = Process(api, clock)
    spec = RequestSpec(Action.MOVE)
    old = await process.objects.create(spec)
    await clock.advance(700)
    begun = await process.objects.create(spec)
    document = {"metadata": {"resourceVersion": begun.metadata.resource_version}}
    stored = api.cluster.api.get(REQUESTS, "rematch", begun.metadata.name)
    api.cluster.api.update_status(
        REQUESTS, {**stored, "metadata": stored["metadata"] | document["metadata"], "status": {"state": "accepted"}}
    )
    async with process.running():
        await clock.advance(2)
    said = dict(process.answers)
    assert set(said) == {"failed"}
    messages = [message for _, message in process.answers]
    assert any("nobody took it within 600 s" in message for message in messages)
    assert any("the leader changed meanwhile" in message for message in messages)
    assert old.metadata.name != begun.metadata.name


async def test_a_replacement_that_is_late_holds_up_no_request(api: InProcessApi, clock: VirtualClock) -> None:
    process = Process(api, clock)
    old, waiting = make_pod("web-1"), make_pending("web-2")
    process.rig.sync(waiting, make_node("n1"), make_node("n2"))
    late = make_move(old, "n2", "late", began=NOW - 600, evicted=NOW - 600, replacement=waiting.uid)
    await process.rig.executor.resume([late])
    async with process.running():
        await process.ask(RequestSpec(Action.MOVE, moves=(RequestedMove("shop/db-1", "n1"),)))
        await clock.advance(10)
        assert process.answers == [("failed", "there is no pod shop/db-1")]


async def test_ended_requests_are_deleted_after_an_hour(api: InProcessApi, clock: VirtualClock) -> None:
    process = Process(api, clock)
    async with process.running():
        await process.ask(RequestSpec(Action.RESUME))
        await clock.advance(3500)
        assert len(process.answers) == 1
        await clock.advance(120)
        assert process.answers == []


async def test_a_request_that_cannot_be_deleted_does_not_hold_up_the_emergency_stop(
    api: InProcessApi, clock: VirtualClock
) -> None:
    process = Process(api, clock)
    process.api.refuse = lambda request: request.method == "DELETE"
    async with process.running():
        await process.ask(RequestSpec(Action.RESUME))
        await clock.advance(3700)
        await process.ask(RequestSpec(Action.PAUSE))
        assert process.acting.paused is not None
        assert len(process.answers) == 2


async def test_without_the_right_to_the_journal_the_reason_names_the_command(
    api: InProcessApi, clock: VirtualClock
) -> None:
    process = Process(api, clock)
    process.api.refuse = lambda request: "moves" in request.path
    async with process.running():
        await clock.advance(11)
        assert INSTALL in process.acting.hindrance
        assert process.taken == []
        process.api.refuse = lambda _request: False
        await clock.advance(5)
        assert process.acting.hindrance == ""
        assert len(process.taken) == 1


async def test_an_unreadable_state_stops_acting_and_is_left_alone(api: InProcessApi, clock: VirtualClock) -> None:
    first = Process(api, clock)
    async with first.running():
        await first.documents.save("pause", "{nonsense")
    again = Process(api, clock, "b")
    async with again.running():
        await clock.advance(5)
        assert "kubectl delete configmap rematch-state" in again.acting.hindrance
    assert again.saved["pause"] == "{nonsense"


async def test_a_document_of_a_later_version_is_kept(api: InProcessApi, clock: VirtualClock) -> None:
    first = Process(api, clock)
    async with first.running():
        await first.documents.save("later", '{"set": true}')
    again = Process(api, clock, "b")
    async with again.running():
        again.memory.cooldowns = Cooldowns(relieved={"n1": NOW})
        await clock.advance(12)
        assert again.documents.get("later") == '{"set": true}'
    assert again.saved["later"] == '{"set": true}'


async def test_a_brake_is_saved_at_once_survives_a_crash_and_is_released_by_resume(
    api: InProcessApi, clock: VirtualClock
) -> None:
    brake = Brake("shop", BrakeCause.NO_EFFECT, "3 moves in shop did not help", NOW, NOW + 1800)
    effects = Effects({"u1": Trial("shop", "Deployment/shop/web", NOW + 300)}, {"w n1": Failure(1.0, NOW)})
    recent = RecentMoves((StartedMove("m1", NOW, "shop", "Deployment/shop/web"),))
    first = Process(api, clock)
    async with first.running():
        await clock.advance(2)
        first.memory.cooldowns = Cooldowns(
            recent=recent, effects=effects, brakes=Brakes((brake,), (Miss(NOW, "shop"),))
        )
        await clock.advance(2)
        saved = first.saved["brake"]
    assert "3 moves in shop did not help" in saved
    again = Process(api, clock, "b")
    async with again.running():
        assert again.memory.cooldowns.brakes.on("shop", NOW) == brake
        assert again.memory.cooldowns.effects == effects
        assert again.memory.cooldowns.recent == recent
        await again.ask(RequestSpec(Action.RESUME))
        assert again.memory.cooldowns.brakes == Brakes()
    assert "did not help" not in again.saved["brake"]


async def test_the_settings_of_the_last_run_are_in_force_where_the_config_map_is_bad(
    api: InProcessApi, clock: VirtualClock
) -> None:
    from tests.reactor.background.test_active_settings import config_map

    first = Process(api, clock)
    async with first.running():
        first.settings.config_map_changed(config_map("mode: act\nhappiness: {threshold: 0.7}"))
        await clock.advance(12)
    again = Process(api, clock, "b")
    await again.leading.restore_settings()
    again.settings.config_map_changed(config_map("mode: fly"))
    assert again.settings.get().mode is Mode.ACT
    assert again.settings.get().happiness.threshold == 0.7
    assert again.settings.restored
    again.settings.config_map_changed(config_map("mode: observe"))
    assert again.settings.get().mode is Mode.OBSERVE
    assert not again.settings.restored


async def test_without_saved_settings_a_bad_config_map_binds_and_evicts_nothing(
    api: InProcessApi, clock: VirtualClock
) -> None:
    """After an upgrade that refuses an old key, pods of our scheduler must not wait for a person."""
    from tests.reactor.background.test_active_settings import config_map

    process = Process(api, clock)
    await process.leading.restore_settings()
    assert process.settings.get().mode is Mode.OBSERVE
    process.settings.config_map_changed(config_map("metrics: {prometheus: {tokenFile: /t}}"))
    assert process.settings.get().mode is Mode.BIND
    process.settings.config_map_changed(config_map("mode: observe"))
    assert process.settings.get().mode is Mode.OBSERVE
    assert not process.settings.restored


def test_the_oldest_cooldowns_are_left_out_first() -> None:
    backoffs = {f"u{number}": Backoff(NOW + number, Reason.PDB, "x" * 300) for number in range(500)}
    text, dropped = to_document(Cooldowns(backoffs=backoffs), NOW, 20_000)
    assert len(text.encode()) <= 20_000
    kept = from_document(text, NOW).backoffs
    assert dropped == 500 - len(kept) > 0
    assert set(kept) == {f"u{number}" for number in range(dropped, 500)}


@pytest.mark.parametrize("step", [-86400.0, 86400.0])
def test_a_clock_set_back_over_a_restart_prolongs_nothing(step: float) -> None:
    cooldowns = Cooldowns({}, {"n1": NOW}, {"u": Backoff(NOW + 600, Reason.PDB, "")})
    text, _ = to_document(cooldowns, NOW)
    restored = from_document(text, NOW + step)
    left = restored.backoffs["u"].until - (NOW + step)
    assert left == (600 if step < 0 else 600 - step)


def test_reasons_of_a_later_version_are_kept_as_backoffs() -> None:
    document = {"at": NOW, "backoffs": {"u": {"until": NOW + 5, "reason": "novelty", "text": "t"}}, "novelty": 1}
    restored = from_document(msgspec.json.encode(document).decode(), NOW)
    assert restored.backoffs["u"].until == NOW + 5


def test_brakes_and_recent_moves_never_fill_the_state_object() -> None:
    name = "Deployment/" + "n" * 200
    started = tuple(StartedMove(f"m{number}", NOW + number, "n" * 60, name) for number in range(300))
    failures = {f"{name} node-{number}": Failure(1.0, NOW + number) for number in range(300)}
    brake = Brake("shop", BrakeCause.NO_EFFECT, "3 moves in shop did not help", NOW, NOW + 1800)
    known = Cooldowns(recent=RecentMoves(started), effects=Effects({}, failures), brakes=Brakes((brake,)))
    text = brake_document(known, NOW, 20_000)
    assert len(text.encode()) <= 20_000
    kept = with_brakes(Cooldowns(), text, NOW)
    assert kept.brakes.held == (brake,)
    assert kept.recent.started == started[-len(kept.recent.started) :]
    assert f"{name} node-299" in kept.effects.failures


def test_a_clock_set_back_over_a_restart_prolongs_no_brake() -> None:
    brake = Brake("shop", BrakeCause.NO_EFFECT, "3 moves in shop did not help", NOW, NOW + 1800)
    text = brake_document(Cooldowns(brakes=Brakes((brake,))), NOW)
    (restored,) = with_brakes(Cooldowns(), text, NOW - 86400).brakes.held
    assert restored.until == NOW - 86400 + 1800

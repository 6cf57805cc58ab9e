"""Runs the games of a tournament in processes of its own."""

from __future__ import annotations

import asyncio
import atexit
import multiprocessing
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from loadtests.tournament.drawing import draw
from loadtests.tournament.policies import policies
from loadtests.tournament.results import Result, ResultFile, digest_of
from loadtests.tournament.run import run
from loadtests.tournament.scenario import Scenario
from reactor.record.logs import configure_logs
from storage.database import Limits
from storage.store import Store

_NEVER = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Game:
    """One policy on one drawn instance."""

    scenario: Scenario
    seed: int
    policy: str

    @property
    def key(self) -> tuple[str, int, str]:
        return (self.scenario.name, self.seed, self.policy)


@dataclass(frozen=True, slots=True)
class Progress:
    done: int
    of: int
    last: Game | None


def games(scenarios: Sequence[Scenario], seeds: Sequence[int], names: Sequence[str]) -> list[Game]:
    """All scenarios of a seed before the next seed, so that an interrupted tournament has something of each."""
    return [Game(scenario, seed, name) for seed in seeds for scenario in scenarios for name in names]


class Worker:
    """What a process keeps from game to game: an event loop, and a store that nothing reads."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._loop = asyncio.Runner()
        path = Path(self._folder.name) / "rows.db"
        self._store = self._loop.run(Store.open(path, Limits(flush_seconds=_NEVER)))

    def play(self, game: Game, moves: int | None) -> Result:
        policy = policies(moves)[game.policy]
        measures = self._loop.run(run(draw(game.scenario, game.seed), policy, self._store))
        return Result(game.scenario.name, game.seed, game.policy, digest_of(game.scenario), measures)

    def close(self) -> None:
        self._loop.run(self._store.close())
        self._loop.close()
        self._folder.cleanup()


@cache
def _worker() -> Worker:
    worker = Worker()
    atexit.register(worker.close)
    return worker


def play(game: Game, moves: int | None = None) -> Result:
    """In a process of its own. `moves`: how many a policy may make that is limited to as many as ours."""
    return _worker().play(game, moves)


class Runner:
    def __init__(self, file: ResultFile, jobs: int, show: Callable[[Progress], None]) -> None:
        self._file, self._jobs, self._show = file, jobs, show

    def run(self, wanted: Sequence[Game]) -> None:
        """What is on disk is not played again. Each result is on disk as soon as it is known."""
        known = self._file.read({game.scenario.name: game.scenario for game in wanted}.values())
        missing = [game for game in wanted if game.key not in known]
        self._show(Progress(len(wanted) - len(missing), len(wanted), None))
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self._jobs, mp_context=context, initializer=_prepare) as pool:
            try:
                for done, (game, result) in enumerate(self._played(pool, missing, known), 1):
                    self._file.add(result)
                    known[game.key] = result
                    self._show(Progress(len(wanted) - len(missing) + done, len(wanted), game))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _played(
        self, pool: ProcessPoolExecutor, missing: Sequence[Game], known: dict[tuple[str, int, str], Result]
    ) -> Iterator[tuple[Game, Result]]:
        """A few ahead of the processes: a policy that follows ours waits for its result."""
        waiting, running = list(missing), dict[Future[Result], Game]()
        while waiting or running:
            while waiting and len(running) < 2 * self._jobs:
                index = next(
                    (number for number, game in enumerate(waiting) if _may_start(game, waiting, running)), None
                )
                if index is None:
                    break
                game = waiting.pop(index)
                running[pool.submit(play, game, _moves_of_ours(game, known))] = game
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                yield running.pop(future), future.result()


def _may_start(game: Game, waiting: Sequence[Game], running: dict[Future[Result], Game]) -> bool:
    if not policies()[game.policy].follows_ours:
        return True
    ours = (game.scenario.name, game.seed, "ours")
    return all(other.key != ours for other in (*waiting, *running.values()))


def _moves_of_ours(game: Game, known: dict[tuple[str, int, str], Result]) -> int | None:
    ours = known.get((game.scenario.name, game.seed, "ours"))
    return None if ours is None else ours.measures.moves


def _prepare() -> None:
    """Ctrl-C is for the process that collects the results."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    configure_logs(level="critical", json=True)

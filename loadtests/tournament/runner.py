"""Runs the games of a tournament in processes of its own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass

from loadtests.progress_bar import Progress
from loadtests.simulation.process import prepare_process, run_simulation
from loadtests.tournament.drawing import draw
from loadtests.tournament.policies import find_policy
from loadtests.tournament.results import Result, ResultFile, digest_of
from loadtests.tournament.run import run
from loadtests.tournament.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Game:
    """One policy on one drawn instance."""

    scenario: Scenario
    seed: int
    policy: str

    @property
    def key(self) -> tuple[str, int, str]:
        return (self.scenario.name, self.seed, self.policy)

    def __str__(self) -> str:
        return f"{self.scenario.name}, seed {self.seed}, {self.policy}"


def games(scenarios: Sequence[Scenario], seeds: Sequence[int], names: Sequence[str]) -> list[Game]:
    """All scenarios of a seed before the next seed, so that an interrupted tournament has something of each."""
    return [Game(scenario, seed, name) for seed in seeds for scenario in scenarios for name in names]


def play(game: Game, moves: int | None = None) -> Result:
    """In a process of its own. `moves`: how many a policy may make that is limited to as many as ours."""
    policy = find_policy(game.policy, moves)
    measures = run_simulation(lambda store: run(draw(game.scenario, game.seed), policy, store))
    return Result(game.scenario.name, game.seed, game.policy, digest_of(game.scenario, game.policy), measures)


class Runner:
    def __init__(self, file: ResultFile, jobs: int, show: Callable[[Progress], None]) -> None:
        self._file, self._jobs, self._show = file, jobs, show

    def run(self, wanted: Sequence[Game]) -> None:
        """What is on disk is not played again. Each result is on disk as soon as it is known."""
        known = self._file.read({game.scenario.name: game.scenario for game in wanted}.values())
        missing = [game for game in wanted if game.key not in known]
        self._show(Progress(len(wanted) - len(missing), len(wanted)))
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self._jobs, mp_context=context, initializer=prepare_process) as pool:
            try:
                for done, (game, result) in enumerate(self._played(pool, missing, known), 1):
                    self._file.add(result)
                    known[game.key] = result
                    self._show(Progress(len(wanted) - len(missing) + done, len(wanted), str(game)))
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
    if not find_policy(game.policy).follows_ours:
        return True
    ours = (game.scenario.name, game.seed, "ours")
    return all(other.key != ours for other in (*waiting, *running.values()))


def _moves_of_ours(game: Game, known: dict[tuple[str, int, str], Result]) -> int | None:
    ours = known.get((game.scenario.name, game.seed, "ours"))
    return None if ours is None else ours.measures.moves

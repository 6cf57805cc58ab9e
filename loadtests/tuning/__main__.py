"""`python -m loadtests.tuning`: four settings and five seeds, as they are and as `rematch tune` says they would be.

Each run is some days of simulated time, whose load differs by day. The settings in force record their usage; of the
others only what they did is measured. Each is run with several chances, in pairs with the settings in force: when
probes are sent, and with that everything that follows, is chance, and what is promised is the expected difference.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tabulate import tabulate

from loadtests.tuning.recording import days_of, play, record_run
from reactor.record.logs import configure_logs
from reactor.replay.answer import Answer, Candidate, Gate
from reactor.replay.given import Floats, given_by
from reactor.replay.recorded import read_recorded
from reactor.replay.tuning import answers_of
from reactor.settings.model import Settings
from storage.store import Store

SEEDS = range(1, 6)
DAYS, CHANCES = 10, 2
BASE = {"mode": "act", "metrics": {"metricsApi": {"interval": 60}}}
OTHERS: dict[str, dict[str, object]] = {
    "observe": {"mode": "observe"},
    "threshold 0.7": {"happiness": {"threshold": 0.7}},
    "ratio 8": {"planner": {"requiredRatio": 8.0}},
    "eager": {"decision": {"placementProbability": 0.5, "minimumFailures": 1.0, "cooldown": 0}},
}
HOLD_BAR, RANK_BAR = 14 / 20, 0.7


@dataclass(frozen=True, slots=True)
class Checked:
    """One setting with one seed."""

    seed: int
    setting: str
    truths: tuple[float, ...]
    """Unhappy pod-minutes more than with the settings in force, by chance."""
    answer: Answer
    gate: Gate

    @property
    def truth(self) -> float:
        return float(np.mean(self.truths))

    @property
    def holds(self) -> bool:
        return self.answer.more_unhappy.interval.holds(self.truth)


async def check_seed(seed: int, days: int, chances: int) -> list[Checked]:
    in_force = Settings.model_validate(BASE)
    wanted = [(Candidate("in force", {}), in_force)]
    wanted += [(Candidate(name, tree), Settings.model_validate({**BASE, **tree})) for name, tree in OTHERS.items()]
    instances = [days_of(seed, days, chance) for chance in range(chances)]
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "rematch.db"
        factual = await record_run(in_force, instances[0], database, usage=True)
        in_others = [(await play(in_force, each)).unhappy for each in instances[1:]]
        others = [[(await play(settings, each)).unhappy for each in instances] for _, settings in wanted[1:]]
        unhappy = np.array([[factual.unhappy, *in_others], *others])
        async with await Store.open(database, read_only=True) as store:
            recorded = await read_recorded(store, factual.cluster.nodes, 0.0, factual.now)
    gate, answers = answers_of(recorded, given_by(recorded, factual.cluster), wanted, 1)
    in_each = ", ".join(f"{each:.0f}" for each in unhappy[0])
    lines = [f"seed {seed}: in force {factual.moves} moves, {in_each} unhappy pod-minutes by chance"]
    print("\n  gate: ".join([*lines, *map(str, gate.figures)]), file=sys.stderr, flush=True)
    return [
        Checked(seed, each.candidate.name, tuple((truths - unhappy[0]).tolist()), each, gate)
        for each, truths in zip(answers[1:], unhappy[1:], strict=True)
    ]


def _checked(seed: int, days: int, chances: int) -> list[Checked]:
    configure_logs(level="critical")
    return asyncio.run(check_seed(seed, days, chances))


def report(checked: Sequence[Checked]) -> bool:
    rows = [
        (
            each.seed,
            each.setting,
            f"{each.truth:+.0f}",
            " ".join(f"{truth:+.0f}" for truth in each.truths),
            f"{each.answer.more_unhappy.mean:+.0f}",
            f"{each.answer.more_unhappy.interval.low:+.0f} to {each.answer.more_unhappy.interval.high:+.0f}",
            "yes" if each.holds else "NO",
            "passed" if each.gate.passed else "stopped",
        )
        for each in checked
    ]
    print(tabulate(rows, ("seed", "setting", "truth", "by chance", "replayed", "80 % interval", "holds", "gate")))
    held = sum(each.holds for each in checked)
    print(f"intervals that hold: {held} of {len(checked)} (bar {HOLD_BAR * len(checked):.0f})")
    wide, ranks = [], []
    for seed in sorted({each.seed for each in checked}):
        mine = [each for each in checked if each.seed == seed]
        truths = [0.0, *(each.truth for each in mine)]
        spread = max(truths) - min(truths)
        wide += [each.answer.more_unhappy.interval.width / max(spread, 1e-9) for each in mine]
        ranks.append(_rank_correlation(truths, [0.0, *(each.answer.more_unhappy.mean for each in mine)]))
    print(
        f"widest interval: {max(wide):.2f} of the spread between best and worst (bar 0.5), median {np.median(wide):.2f}"
    )
    shown = ", ".join(f"{rank:.2f}" for rank in ranks)
    print(f"rank correlation by seed: {shown}; mean {np.mean(ranks):.2f} (bar {RANK_BAR})")
    return held >= HOLD_BAR * len(checked) and max(wide) <= 0.5 and float(np.mean(ranks)) >= RANK_BAR


def _rank_correlation(one: Sequence[float], other: Sequence[float]) -> float:
    ranks = [_ranks(np.array(values)) for values in (one, other)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1]) if all(each.std() > 0 for each in ranks) else 0.0


def _ranks(values: Floats) -> Floats:
    """Equal values share their mean rank."""
    return np.array([(values < value).sum() + ((values == value).sum() - 1) / 2 for value in values], np.float64)


def main(seeds: Sequence[int], days: int, chances: int, jobs: int) -> int:
    with ProcessPoolExecutor(jobs) as pool:
        found = pool.map(_checked, seeds, [days] * len(seeds), [chances] * len(seeds))
        return 0 if report([each for of_seed in found for each in of_seed]) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=list(SEEDS))
    parser.add_argument("--days", type=int, default=DAYS)
    parser.add_argument("--chances", type=int, default=CHANCES)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    sys.exit(main(given.seeds, given.days, given.chances, given.jobs))

"""The goals for the default settings, judged by the results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from loadtests.tournament.policies import AS_MANY, OURS, find_policy
from loadtests.tournament.results import Result
from loadtests.tournament.statistics import Difference, difference, holm

FEWEST = 5
"""Seeds from which on intervals say something."""
MARGIN = 0.005
WIDEST = 0.01
CURE = 1.5
RAMP = "stable-ramp"
RAMP_MOVES = 3.0
UP_TO_120 = 8
"""Steps of the ramp in which the cluster has room."""
HARMFUL = 0.02
FEWEST_MOVES = round(1 / HARMFUL)
"""With fewer a single harmful move is more than that share."""
PER_1000_POD_DAYS = 1.0
Played = Mapping[str, Sequence[Result]]
"""The results of one scenario by policy, each in the order of its seeds."""


@dataclass(frozen=True, slots=True)
class Goal:
    scenario: str
    text: str
    figure: str
    reached: bool | None
    """None: too few moves to judge."""


def paired(played: Played, policy: str) -> tuple[list[float], list[float]]:
    """Availability of the policy and of ours, on the seeds that both played."""
    ours = {each.seed: each.measures.availability for each in played.get(OURS, ())}
    both = [each for each in played.get(policy, ()) if each.seed in ours]
    return [each.measures.availability for each in both], [ours[each.seed] for each in both]


def rivals(played: Played) -> dict[str, Difference]:
    """Every policy but ours and the bounds, compared with ours."""
    names = [name for name in played if name != OURS and not find_policy(name).bound]
    seeds = set.intersection(*({each.seed for each in played[name]} for name in (OURS, *names)))
    values = {
        name: [each.measures.availability for each in played[name] if each.seed in seeds] for name in (OURS, *names)
    }
    ours = values.pop(OURS)
    return holm(ours, values) if ours and values else {}


def goals(by_scenario: Mapping[str, Played]) -> list[Goal]:
    found: list[Goal] = []
    for scenario, played in by_scenario.items():
        if played.get(OURS):
            found += _of_scenario(scenario, played)
    ours = [each for played in by_scenario.values() for each in played.get(OURS, ())]
    if ours:
        found += _over_all(ours)
    return found


def _of_scenario(scenario: str, played: Played) -> Iterator[Goal]:
    compared = rivals(played)
    if compared and len(played[OURS]) >= FEWEST:
        name = max(compared, key=lambda each: compared[each].high)
        worst = compared[name]
        yield Goal(
            scenario,
            f"no rival is better by {MARGIN} (upper bound, Holm)",
            f"{worst.high:+.4f} ({name}, mean {worst.mean:+.4f})",
            worst.high < MARGIN,
        )
        widest = max(each.width for each in compared.values() if each.mean >= worst.mean - MARGIN)
        yield Goal(scenario, f"interval narrower than {WIDEST}", f"{widest:.4f}", widest < WIDEST)
    ours = [each.measures for each in played[OURS]]
    moves = fmean(each.moves for each in ours)
    if scenario == RAMP:
        yield Goal(scenario, f"at most {RAMP_MOVES:g} moves per run", f"{moves:.2f}", moves <= RAMP_MOVES)
        yield from _bound_on_ramp(played)
    if scenario in ("full", "broken-app"):
        yield Goal(scenario, "no move", f"{moves:.2f} per run", moves == 0)
    if scenario == "healthy":
        days = sum(each.pod_days for each in ours)
        rate = 1000 * sum(each.moves for each in ours) / days
        text = f"at most {PER_1000_POD_DAYS:g} move per 1,000 pod-days"
        yield Goal(scenario, text, f"{rate:.2f} in {days:.0f} pod-days", rate <= PER_1000_POD_DAYS)


def _bound_on_ramp(played: Played) -> Iterator[Goal]:
    ours = {each.seed: each.measures.parts for each in played[OURS]}
    both = [each for each in played.get(AS_MANY, ()) if each.seed in ours and each.measures.parts]
    if both:
        gap = difference(
            [fmean(each.measures.parts[:UP_TO_120]) for each in both],
            [fmean(ours[each.seed][:UP_TO_120]) for each in both],
        )
        text = f"up to 120 within {MARGIN} of a clairvoyant with as many moves"
        yield Goal(RAMP, text, f"{gap.mean:+.4f} [{gap.low:+.4f}, {gap.high:+.4f}]", gap.mean <= MARGIN)


def _over_all(ours: Sequence[Result]) -> Iterator[Goal]:
    each = [result.measures for result in ours]
    moves, cured = sum(one.moves for one in each), sum(one.cured for one in each)
    figure = f"{moves / cured:.2f} ({moves} for {cured})" if cured else f"{moves} moves, no pod cured"
    yield Goal("all", f"at most {CURE} moves per cured pod", figure, moves <= CURE * cured)
    harmful = sum(one.harmful for one in each) / max(moves, 1)
    few = f" of {moves} moves, {FEWEST_MOVES} are needed to judge" if moves < FEWEST_MOVES else ""
    reached = None if few else harmful < HARMFUL
    yield Goal("all", f"less than {HARMFUL:.0%} of moves harmful", f"{harmful:.1%}{few}", reached)
    twice = sum(one.twice for one in each)
    yield Goal("all", "no pod moved twice in 10 minutes without a change of load", f"{twice}", twice == 0)

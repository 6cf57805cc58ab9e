"""One cluster judged by both sides: every pod with every node, and every move of every planner at its turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from loadtests.oracle.differences import PAIR, Danger, Difference, Facts, intended
from loadtests.oracle.judge import KINDS, Loaded, Oracle, OracleFailed, Question, Verdict
from loadtests.oracle.ours import Opinion, OurSide, PlannedSequence
from loadtests.oracle.random_cluster import RandomCluster
from loadtests.same_plans.draw import Json

_YES = Opinion(fits=True)


@dataclass(frozen=True, slots=True)
class Failure:
    """Our side ended with an exception."""

    seed: int
    kind: str
    message: str

    @classmethod
    def of(cls, seed: int, error: Exception) -> Failure:
        return cls(seed, type(error).__name__, str(error))

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.kind}: {self.message}"


@dataclass(frozen=True, slots=True)
class Found:
    """A difference in the cluster of this seed."""

    seed: int
    difference: Difference
    intended: str
    """The name of the intention behind it; empty without one."""

    @property
    def unintended_danger(self) -> bool:
        return not self.intended and self.difference.danger is Danger.DANGEROUS


@dataclass(slots=True)
class ClusterResult:
    """What both sides said about one cluster, or about several."""

    clusters: int = 0
    pairs: int = 0
    fitting: int = 0
    """Pairs that kube-scheduler allows."""
    refused: list[str] = field(default_factory=list)
    """What the API server does not take; such a cluster is not judged."""
    failures: list[Failure] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)
    """Pairs by the plugin that refuses them."""
    moves: Counter[str] = field(default_factory=Counter)
    """By planner."""
    no_plan: Counter[str] = field(default_factory=Counter)
    """Problems that a planner refused, by planner and reason."""
    found: list[Found] = field(default_factory=list)

    def add(self, other: ClusterResult) -> None:
        self.clusters += other.clusters
        self.pairs += other.pairs
        self.fitting += other.fitting
        self.refused += other.refused
        self.failures += other.failures
        self.refusals += other.refusals
        self.moves += other.moves
        self.no_plan += other.no_plan
        self.found += other.found

    @property
    def dangerous(self) -> list[Found]:
        return [each for each in self.found if each.unintended_danger]

    @property
    def clean(self) -> bool:
        """No dangerous difference but the intended ones, and no cluster that we cannot plan for."""
        return not self.dangerous and not self.failures


async def compare(cluster: RandomCluster, oracle: Oracle) -> ClusterResult:
    loaded = await oracle.load(cluster.items)
    if loaded.refused:
        return ClusterResult(refused=[f"seed {cluster.seed}: {each}" for each in loaded.refused])
    return await compare_items(cluster.seed, as_read(cluster, loaded), oracle)


def as_read(cluster: RandomCluster, loaded: Loaded) -> Sequence[Json]:
    """Half of the clusters are read as the API server keeps them, half as somebody wrote them."""
    if cluster.seed % 2 == 0:
        return cluster.items
    return [*(item for item in cluster.items if item["kind"] not in KINDS), *loaded.stored]


async def compare_items(seed: int, items: Sequence[Json], oracle: Oracle) -> ClusterResult:
    """The oracle has to have loaded the same objects."""
    result = ClusterResult(clusters=1)
    try:
        ours = OurSide(items)
        differences = [*await _pairs(ours, oracle, result), *await _plans(ours, seed, oracle, result)]
    except OracleFailed:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, it would stop the controller for every pod
        result.failures.append(Failure.of(seed, error))
        return result
    facts = Facts(items)
    result.found += [Found(seed, each, intended(each, facts)) for each in differences]
    return result


async def _pairs(ours: OurSide, oracle: Oracle, result: ClusterResult) -> list[Difference]:
    pairs = ours.pairs()
    verdicts = await oracle.judge(pairs)
    result.pairs += len(pairs)
    differences = []
    for pair, opinion, verdict in zip(pairs, ours.opinions(pairs), verdicts, strict=True):
        result.fitting += verdict.fits
        result.refusals[verdict.plugin] += not verdict.fits
        if opinion.fits != verdict.fits:
            differences.append(pair_difference(ours, pair, verdict, opinion))
    return differences


def pair_difference(ours: OurSide, pair: Question, verdict: Verdict, opinion: Opinion) -> Difference:
    """With our reason, if it is us who say no."""
    why = opinion.reason or ("" if opinion.fits else ours.why_not(pair))
    return Difference(PAIR, pair, verdict, Opinion(opinion.fits, why))


async def _plans(ours: OurSide, seed: int, oracle: Oracle, result: ClusterResult) -> list[Difference]:
    differences = []
    for plan in ours.plans(seed):
        result.no_plan[f"{plan.planner}: {plan.refused}"] += bool(plan.refused)
        result.moves[plan.planner] += plan.moves
        differences += await in_turn(plan, oracle)
    return differences


async def in_turn(plan: PlannedSequence, oracle: Oracle) -> list[Difference]:
    """Each move of the plan, judged when those before it are done."""
    verdicts = await oracle.judge(plan.questions)
    if all(verdict.fits for verdict in verdicts):
        return []
    alone = await oracle.judge(plan.questions, decided=plan.own_pending)
    return [
        Difference(plan.planner, question, verdict, _YES, plan.questions[:at], fits_without_own_nominees=other.fits)
        for at, (question, verdict, other) in enumerate(zip(plan.questions, verdicts, alone, strict=True))
        if question.node and not verdict.fits
    ]

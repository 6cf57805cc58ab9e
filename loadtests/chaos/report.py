"""docs/chaos.md from the results of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from loadtests.chaos.faults import KILLS, MEANING, FaultKind
from loadtests.chaos.invariants import INVARIANTS
from loadtests.chaos.requests import Step
from loadtests.chaos.rounds import RoundResult
from loadtests.chaos.settling import LEFTOVERS
from loadtests.chaos.write_kinds import WriteKind

_INTRODUCTION = """\
# Chaos

Faults are injected into a real control plane and into the connection, the processes and the disks of the
controllers, while pods are moved all the time. What must hold is judged by the API server's audit log and by what
is left afterwards. This page is written by `make chaos`.

| command | does |
|---|---|
| `make chaos` | at least 1,000 faults, and this page |
| `make chaos FOLDER=chaos-run` | the same in parts: stopped and called again, it goes on with the next seed |
| `make chaos SEED=17 ROUNDS=1` | one round again: the same faults at the same moments |
| `make chaos SEED=17 ROUNDS=1 ONLY=lost-answer,kill-passed` | with faults of these kinds only |
| `make test-cluster` | at least 150 faults from one seed, in CI |
| `make soak MINUTES=30` | constant moves and churn without faults: memory, tasks, files, database |

In a round, faults drawn from its seed happen within some seconds; then they end, the reason for moves is taken
away, and the cluster has a minute to settle. A round that fails prints its seed. With `FOLDER=...` the logs of the
controllers, the audit log and the times of all faults are kept there.

How it is made: etcd, kube-apiserver, kube-controller-manager and kube-scheduler are real; nodes are scripted (pods
become Ready and go as asked, a moment later). Each controller is a process of its own behind a proxy
(`loadtests/chaos/proxy.py`) that spoils requests. Each process has its own token, so the audit log tells the
writes of a past leader from those of its successor. Workloads: Deployments with one, two and more replicas, with
and without PDB, with an HPA, StatefulSets, a bare ReplicaSet, with our scheduler and with the default one.

On a machine that is too busy to renew a Lease of four seconds, `LEASE=8` makes it longer, and with it the rounds and
all that is waited for.

A kill waits for one step of a move, of the journal or of the leader; all steps and moments (before the write, after it,
after its answer) are taken in turn, and workloads that take the step are given a reason to be moved.
"""


def write_report(path: Path, results: Sequence[RoundResult]) -> None:
    path.write_text(page(results))


def page(results: Sequence[RoundResult]) -> str:
    return "\n".join(
        [
            _INTRODUCTION,
            *_summary(results),
            *_faults(results),
            *_kills(results),
            *_invariants(results),
            *_writes(results),
        ]
    )


def _summary(results: Sequence[RoundResult]) -> Iterator[str]:
    seeds = [result.plan.seed for result in results]
    faults = sum(result.injected.total() for result in results)
    moves = sum(result.moves for result in results)
    takeovers = sum(result.takeovers for result in results)
    minutes = sum(result.seconds for result in results) / 60
    settled = sorted(result.settled_seconds for result in results)
    failed = [result.plan.seed for result in results if result.violations]
    leases = sorted({result.lease for result in results})
    trees = dict.fromkeys(result.tree for result in results)
    yield "## The last run\n"
    yield (
        f"{faults} faults in {len(results)} rounds (seeds {_ranges(seeds)}) within {minutes:.0f} minutes,"
        f" {moves} moves, {takeovers} changes of the leader."
        f" The Lease lasted {', '.join(f'{lease:g}' for lease in leases)} s."
        f" Settled after {settled[len(settled) // 2]:.0f} s (median), {settled[-1]:.0f} s at most."
        f" {'The trees were' if len(trees) > 1 else 'The tree was'} {', '.join(trees)}."
    )
    yield f"\nRounds with violations (by seed): {', '.join(map(str, failed)) or 'none'}.\n"


def _ranges(seeds: Sequence[int]) -> str:
    """`1 to 3, 7`."""
    parts: list[list[int]] = []
    for seed in seeds:
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]} to {part[-1]}" for part in parts)


def _faults(results: Sequence[RoundResult]) -> Iterator[str]:
    total: Counter[FaultKind] = sum((result.injected for result in results), Counter())
    yield "## Faults\n\n| fault | what happens | times |\n|---|---|---|"
    for kind in FaultKind:
        yield f"| `{kind.value}` | {MEANING[kind]} | {total[kind]} |"
    yield ""


def _kills(results: Sequence[RoundResult]) -> Iterator[str]:
    """Every step, also those that no kill has hit."""
    hit = kills(results)
    kinds = [kind for kind in FaultKind if kind in KILLS]
    names = " | ".join(f"`{kind.value}`" for kind in kinds)
    yield f"Kills by the step at which they happened:\n\n| step | {names} | all |\n|---|{'---|' * (len(kinds) + 1)}"
    for write in WriteKind:
        numbers = [hit[write, kind] for kind in kinds]
        yield f"| {write.value} | {' | '.join(map(str, numbers))} | {sum(numbers)} |"
    yield ""


def kills(results: Sequence[RoundResult]) -> Counter[tuple[WriteKind, FaultKind]]:
    log = (each for result in results for each in result.log)
    return Counter((each.write, each.fault.kind) for each in log if each.fault.kind in KILLS and each.write is not None)


def _invariants(results: Sequence[RoundResult]) -> Iterator[str]:
    found = Counter(violation.invariant for result in results for violation in result.violations)
    yield "## What must hold\n\n| invariant | violations |\n|---|---|"
    codes = {name: each.code for name, each in INVARIANTS.items()} | LEFTOVERS
    for name, code in codes.items():
        yield f"| {name} | {found[code]} |"
    yield ""


def _writes(results: Sequence[RoundResult]) -> Iterator[str]:
    steps: Counter[Step] = sum((Counter(result.steps) for result in results), Counter())
    yield "## Accepted writes of the controllers\n\n| step | writes |\n|---|---|"
    for step, number in steps.most_common():
        yield f"| {step.value} | {number} |"
    yield ""

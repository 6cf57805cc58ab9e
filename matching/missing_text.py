"""What a plan says is missing, in one line: for Events, the CLI and the plan's JSON."""

from __future__ import annotations

from matching.plan import Missing
from matching.planning.reasons.obstacles import some
from matching.planning.reasons.wording import amount, plural


def missing_text(found: Missing) -> str:
    """In one line, such as `1.4 cpu missing for 6 unhappy pods (...); one node like worker-1 would cure 6 pods`."""
    pods = f"{plural(len(found.pods), 'unhappy pod')} ({some(found.pods)})"
    lacks = " and ".join(amount(axis, more) for axis, more in found.amounts.items())
    parts = [f"{lacks} missing for {pods}" if lacks else f"no other node helps {pods}"]
    if found.cured:
        parts.append(f"one node like {found.node_like} would cure {plural(found.cured, 'pod')}")
    parts += [
        f"without {each.constraint} of {each.workload} {plural(each.pods, 'pod')} could be cured"
        for each in found.relaxations
    ]
    return "; ".join(parts)

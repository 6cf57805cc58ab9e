"""`rematch status`: what a running controller sees and does now."""

from __future__ import annotations

import msgspec

from reactor.cli.client import fetch
from reactor.cli.output import table
from reactor.errors import InputError
from reactor.settings.model import SteeringMode
from reactor.web.view import Gauge, Overview, SteeringView


def show_status(server: str, output: str) -> str:
    overview = fetch(server, "overview", Overview, nodes="5000", chips="1000")
    if overview is None:
        raise InputError(f"{server} is no Rematch controller: it has no /api/v1/overview")
    return msgspec.json.encode(overview).decode() if output == "json" else render_status(overview)


def render_status(overview: Overview) -> str:
    unhappy = [(pod.key, node.name, pod) for node in overview.nodes for pod in node.pods if not pod.happy]
    lines = [
        f"mode {overview.mode}, planner {overview.planner}, threshold {overview.threshold:g};"
        f" {_totals(overview)},"
        f" rematches: {overview.rematches}, moves: {overview.moves}",
    ]
    if not overview.synced:
        lines.append("not synced yet: nothing is decided")
    if overview.halted:
        lines.append(f"HALTED: {overview.halted}")
    if overview.steering is not None:
        lines.append(steering_line(overview.steering))
    if overview.calibration is not None:
        lines.append(str(overview.calibration))
    lines += [f"problem: {problem}" for problem in overview.problems]
    lines += [f"settings refused: {refusal.path}: {refusal.message}" for refusal in overview.settings.refused]
    nodes = [
        (node.name, _share(node.cpu), _share(node.memory), len(node.pods), "Ready" if node.ready else "NotReady")
        for node in overview.nodes
    ]
    parts = ["\n".join(lines), table(("node", "cpu", "memory", "pods", "status"), nodes)]
    if unhappy:
        rows = [(key, node, f"{pod.happiness or 0:.2f}", f"{pod.threshold:g}", pod.fixed) for key, node, pod in unhappy]
        parts.append(table(("unhappy", "node", "happiness", "threshold", "fixed"), rows))
    return "\n\n".join(parts)


def steering_line(steering: SteeringView) -> str:
    landed = steering.landed_planned + steering.landed_elsewhere + steering.landed_source
    if steering.mode == SteeringMode.EXTENDER:
        works = steering.problem or "kube-scheduler asks the extender"
    else:
        works = "policy works" if steering.policy_works and steering.tried else f"policy: {steering.problem}"
    text = f"steering {steering.mode}, {works}"
    if not landed:
        return text
    where = f"{steering.landed_elsewhere} elsewhere, {steering.landed_source} back on the source"
    return f"{text}; {steering.landed_planned} of {landed} replacements landed as planned ({where})"


def _totals(overview: Overview) -> str:
    totals = overview.totals
    if totals is None:
        return f"{len(overview.nodes)} nodes"
    return f"{totals.nodes} nodes, {totals.pods} pods, {totals.unhappy} unhappy, {totals.pending} pending"


def _share(gauge: Gauge | None) -> str:
    if gauge is None or gauge.used is None or not gauge.capacity:
        return "<unknown>"
    return f"{gauge.used / gauge.capacity:.0%}"

"""Host ports: two pods on one node must not use the same port, protocol and address."""

from __future__ import annotations

from matching.array_types import Mask
from matching.constraints.inter_pod_checks import CheckTable, NoPodCounted
from matching.problem import HostPort

EVERY_ADDRESS = "0.0.0.0"


def add_host_ports(table: CheckTable) -> None:
    counters, users = table.counters, dict[HostPort, Mask]()
    for number, kind in enumerate(table.kinds):
        for port in kind.rules.ports:
            users.setdefault(port, counters.no_kinds())[number] = True
    taken = {port: counters.of(kinds, counters.single_nodes) for port, kinds in users.items()}
    for wanted, kinds in users.items():
        reason = f"host port {wanted.port}/{wanted.protocol} is taken by {{pod}}"
        refusing = {counter.number: counter for port, counter in taken.items() if _conflict(wanted, port)}
        for counter in refusing.values():
            table.add_arrival(kinds, NoPodCounted(counter, reason))


def _conflict(wanted: HostPort, taken: HostPort) -> bool:
    same = (wanted.port, wanted.protocol) == (taken.port, taken.protocol)
    return same and (wanted.ip == taken.ip or EVERY_ADDRESS in (wanted.ip, taken.ip))

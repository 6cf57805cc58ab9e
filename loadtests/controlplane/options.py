"""What a control plane is to be like."""

from __future__ import annotations

import random
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from reactor.errors import RematchError


class Component(StrEnum):
    ETCD = "etcd"
    API_SERVER = "kube-apiserver"
    CONTROLLER_MANAGER = "kube-controller-manager"
    SCHEDULER = "kube-scheduler"


@dataclass(frozen=True, slots=True)
class User:
    """Somebody with a fixed token: a node (`system:node:n1` of `system:nodes`) or a client of a test."""

    token: str
    name: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ControlPlaneOptions:
    folder: Path
    """Data, credentials and logs; those of an earlier run are removed at the start."""
    address: str = "127.0.0.1"
    """Where the API server listens; nodes with a network of their own need one that they reach."""
    users: tuple[User, ...] = ()
    """Beside the admin."""
    flags: Mapping[Component, tuple[str, ...]] = field(default_factory=dict)
    """Added at the end of a component's own, so they win."""
    client_qps: int = 100
    """Limit of the controller manager's and the scheduler's clients; thousands of pods want 500."""
    service_range: str = "10.97.0.0/16"


_RANGE = range(20_000, 32_000)
"""Below what the kernel gives to clients: a port found free here is not taken by an outgoing connection."""
_TRIES = 200


def free_ports(address: str, count: int) -> list[int]:
    """Different ones: all are held until the last is found."""
    found: list[int] = []
    with ExitStack() as held:
        for port in random.sample(_RANGE, _TRIES):
            probe = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            try:
                probe.bind((address, port))
            except OSError:
                continue
            found.append(port)
            if len(found) == count:
                return found
    raise RematchError(f"no {count} free ports on {address}")

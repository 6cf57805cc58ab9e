"""Options of a control plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


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

"""What is kept of each run."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class UpdateRun(Struct, frozen=True):
    """One change under constant load."""

    change: str
    paper_rate: int
    connections: str
    repeat: int
    rate: float
    requests: int
    failed: Mapping[str, int]
    """By outcome."""
    late_ms: float
    unsent: float
    seconds: float
    """That the change took."""
    in_time: bool
    """It was over before the load was."""
    strategies: Mapping[str, int]
    """Of the moves."""
    problems: list[str]
    at: str

    @property
    def key(self) -> tuple[str, int, str, int]:
        return (self.change, self.paper_rate, self.connections, self.repeat)

    @property
    def lost(self) -> int:
        return sum(self.failed.values())


class UsersRun(Struct, frozen=True):
    """A number of users on one placement."""

    arm: str
    repeat: int
    paper_users: int
    users: int
    requests: int
    failed: Mapping[str, int]
    mean_ms: float
    """Of all requests; one that failed counts with its timeout."""
    p95_ms: float
    placement: Mapping[str, str]
    at: str

    @property
    def key(self) -> tuple[str, int, int]:
        return (self.arm, self.repeat, self.paper_users)

    @property
    def failed_share(self) -> float:
        return sum(self.failed.values()) / max(self.requests, 1)

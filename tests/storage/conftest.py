from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from storage.database import Limits
from storage.rows import ChunkRow, DecisionRow, HappinessRow, MoveRow, PlanRow
from storage.store import Store

PATIENT = Limits(flush_seconds=30.0)
"""The writer task stays out of the way: a test says itself when rows are written."""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "state" / "rematch.db"


@pytest.fixture
async def store(database: Path) -> AsyncIterator[Store]:
    async with await Store.open(database, PATIENT) as opened:
        yield opened


@pytest.fixture
def happiness_row() -> Callable[..., HappinessRow]:
    def make(uid: str = "uid-1", failures: float = 1.0, at: float = 100.0) -> HappinessRow:
        return HappinessRow(uid, "shop", f"web-{uid}", 5.0, failures, at, '{"counts": {"a": 3}}')

    return make


@pytest.fixture
def chunk_row() -> Callable[..., ChunkRow]:
    def make(start: float, block: int = 0, step: int = 60, size: int = 100) -> ChunkRow:
        return ChunkRow(step, int(start), block, bytes(size))

    return make


@pytest.fixture
def decision_row() -> Callable[..., DecisionRow]:
    def make(number: int, at: float | None = None, pod: str = "web") -> DecisionRow:
        moment = float(number) if at is None else at
        return DecisionRow(
            f"d{number}", "c1", moment, "wait", f"uid-{pod}", f"shop/{pod}", "cooldown", until=moment + 60
        )

    return make


@pytest.fixture
def plan_row() -> Callable[..., PlanRow]:
    def make(plan_id: str = "p1", at: float = 100.0, pod: str = "shop/web") -> PlanRow:
        document = f'{{"planner":"stable","moves":[{{"pod":"{pod}","uid":"uid of {pod}"}}]}}'
        return PlanRow(plan_id, "c1", at, "stable", "act", "happiness", 1, 0, True, document)

    return make


@pytest.fixture
def move_row() -> Callable[..., MoveRow]:
    def make(move_id: str = "m1", plan_id: str | None = None, ended: float | None = None, at: float = 100.0) -> MoveRow:
        return MoveRow(
            move_id,
            plan_id,
            "uid-1",
            "shop/web",
            "Deployment/shop/web",
            "weak",
            "strong",
            "evicting",
            100.0,
            ended=ended,
            cycle="c1",
            at=at,
            reasons=("n1 is full", "n2 has room"),
        )

    return make

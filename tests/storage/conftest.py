from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from loadtests.postgresql import PostgresqlServer, find_server, postgresql_server
from loadtests.tools.catalogue import ToolMissing
from storage.limits import Limits
from storage.place import Place, PostgresqlSchema, locate
from storage.rows import ChunkRow, DecisionRow, HappinessRow, MoveRow, PlanRow
from storage.store import Store

PATIENT = Limits(flush_seconds=30.0)
"""The writer task stays out of the way: a test says itself when rows are written."""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "state" / "rematch.db"


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresqlServer]:
    """A real one. Where it has to be there (.ci/run), its absence is a failure."""
    try:
        find_server()
    except ToolMissing as missing:
        if os.environ.get("REMATCH_POSTGRESQL") == "required":
            raise
        pytest.skip(str(missing))
    with postgresql_server() as started:
        yield started


_SCHEMAS = count(1)


@pytest.fixture
def schema(server: PostgresqlServer) -> PostgresqlSchema:
    found = locate(server.url(), f"test-{next(_SCHEMAS)}")
    assert isinstance(found, PostgresqlSchema)
    return found


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest) -> Place:
    """A new place for a store: what is promised of a store holds for both."""
    found: Place = request.getfixturevalue("database" if request.param == "sqlite" else "schema")
    return found


@pytest.fixture
async def store(place: Place) -> AsyncIterator[Store]:
    async with await Store.open(place, PATIENT) as opened:
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

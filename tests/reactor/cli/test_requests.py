"""`rematch apply` and `move`: plans of other programs, names without namespace, and what a dry run says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from loadtests.embedded.resources import REQUESTS
from reactor.cli import requests
from reactor.cluster.connection import open_connection
from reactor.cluster.requests import Action, RequestedMove, RequestSpec
from reactor.errors import ClusterError, InputError
from reactor.execution.asking import ask
from tests.support.shop import Shop, open_shop


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    async with open_shop() as opened:
        yield opened


@pytest.mark.parametrize(
    ("document", "moves"),
    [
        ({"web-1": "n2", "shop/db-1": "n1"}, (RequestedMove("web-1", "n2"), RequestedMove("shop/db-1", "n1"))),
        ({"moves": "n2"}, (RequestedMove("moves", "n2"),)),
        (
            {"planner": "mine", "moves": [{"pod": "shop/web-1", "uid": "u", "from": "n1", "to": "n2"}]},
            (RequestedMove("shop/web-1", "n2", "u"),),
        ),
    ],
)
def test_both_forms_of_a_plan_are_read(tmp_path: Path, document: object, moves: tuple[RequestedMove, ...]) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(document))
    assert requests.moves_in(file) == moves


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is no plan in JSON"),
        ("[]", 'neither {"moves"'),
        ("{}", "names no pod"),
        ('{"moves": []}', "names no pod"),
        ('{"web-1": 3}', 'the node of "web-1" is 3'),
        ('{"web-1": ""}', 'the node of "web-1" is'),
        ('{"moves": [{"pod": "web-1"}]}', r"moves\[0\]: Object missing required field `to`"),
    ],
)
def test_what_is_no_plan_is_refused_with_the_place(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    with pytest.raises(InputError, match=problem):
        requests.moves_in(file)


async def test_a_dry_run_says_what_would_happen_and_changes_nothing(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = requests.Target(str(shop.cluster.kubeconfig(tmp_path / "kubeconfig")), None)
    web, db = (shop.pods(app)[0]["metadata"]["name"] for app in ("web", "db"))
    file = tmp_path / "plan.json"

    async def apply(plan: dict[str, str], namespace: str = "") -> None:
        file.write_text(json.dumps(plan))
        await asyncio.to_thread(requests.apply, target, file, "", namespace=namespace, dry_run=True)

    await apply({web: "n2", f"default/{db}": "n1"})
    shown = capsys.readouterr().out
    assert f"default/{web} to n2: would move from n1, scaleSurge" in shown
    assert f"default/{db} to n1: is there already" in shown

    await apply({web: "n2", f"default/{db}": "n1"}, namespace="default")
    assert capsys.readouterr().out == shown
    with pytest.raises(InputError, match=f"there is no pod elsewhere/{web}; did you mean default/{web}"):
        await apply({web: "n2"}, namespace="elsewhere")
    with pytest.raises(InputError, match="there is no pod none"):
        await apply({web: "n2", "none": "n1"})
    with pytest.raises(InputError, match="there is no node n9"):
        await apply({web: "n9"})
    shop.cordon("n2")
    with pytest.raises(ClusterError, match="1 of 1 moves would be refused; nothing was changed"):
        await apply({web: "n2"})

    assert "refused the request wants it on n2:" in capsys.readouterr().out
    assert (shop.where("web"), shop.where("db")) == (["n1"], ["n1"])
    assert shop.cluster.store.all(REQUESTS) == []


class Hurried:
    """Nobody waits."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at

    monotonic = now

    async def sleep(self, seconds: float) -> None:
        self.at += seconds
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("spec", "fate", "kept"),
    [
        (RequestSpec(Action.MOVE, moves=(RequestedMove("shop/web-1", "n2"),)), "it is deleted", 0),
        (RequestSpec(Action.PAUSE), "it stays, and the next one carries it out", 1),
    ],
)
async def test_a_request_that_nobody_takes_stays_only_if_it_stops_or_resumes(
    shop: Shop, tmp_path: Path, spec: RequestSpec, fate: str, kept: int
) -> None:
    connection = await open_connection(str(shop.cluster.kubeconfig(tmp_path / "kubeconfig")), None)
    try:
        with pytest.raises(ClusterError, match=f"no controller in namespace default took request .*{fate}"):
            await ask(connection, "default", spec, Hurried())
    finally:
        await connection.close()
    assert len(shop.cluster.store.all(REQUESTS)) == kept

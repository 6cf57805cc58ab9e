"""`rematch run` as a process, and the commands that read from it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from reactor.cli.client import fetch
from reactor.cli.explain import explain_from_server, render, wanted_pods
from reactor.cli.history import HistoryRequest, HistoryRow, history_rows, render_history
from reactor.cli.status import render_status
from reactor.errors import InputError
from reactor.web.view import Overview
from tests.support.shop import Shop, open_shop


@asynccontextmanager
async def running(shop: Shop, folder: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    """The process and its URL."""
    kubeconfig = shop.cluster.kubeconfig(folder / "kubeconfig")
    store = folder / "state" / "rematch.db"
    command = ["run", "--kubeconfig", str(kubeconfig), "--store", str(store), "--port", "0"]
    start = [sys.executable, "-c", "from reactor.cli.main import main; main()"]
    process = await asyncio.create_subprocess_exec(*start, *command, stderr=asyncio.subprocess.PIPE)
    try:
        yield process, await asyncio.wait_for(_url(process), 30)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def _url(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async for line in process.stderr:
        record = json.loads(line)
        if "url" in record:
            return str(record["url"])
    raise AssertionError("it ended without a URL in its log")


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    async with open_shop() as opened:
        yield opened


async def test_it_answers_and_ends_cleanly_on_a_signal(shop: Shop, tmp_path: Path) -> None:
    shop.fail("web")
    name = shop.pods("web")[0]["metadata"]["name"]
    async with running(shop, tmp_path) as (process, url):
        overview = await asyncio.to_thread(_synced, url)
        pod = await asyncio.to_thread(explain_from_server, wanted_pods(name, None), url)
        short = await asyncio.to_thread(explain_from_server, wanted_pods("deploy/web", "default"), url)
        history = await asyncio.to_thread(_history, url)
        with pytest.raises(InputError, match="no pod and no workload 'nobody' in namespace default"):
            await asyncio.to_thread(explain_from_server, wanted_pods("default/nobody", None), url)

        process.send_signal(signal.SIGINT)
        code = await asyncio.wait_for(process.wait(), 10)

    assert code == 0
    assert "mode observe" in render_status(overview)
    assert "UNHAPPY" in render(pod)
    assert "20 by events" in render(pod)
    assert short.view.name == name
    assert f"default/{name}" in render_history(history)
    assert sorted(os.listdir(tmp_path)) == ["kubeconfig", "state"]


def _history(url: str) -> list[HistoryRow]:
    request = HistoryRequest(None, 10, waits=True, plan_id=None, problem_id=None, output="table", server=url)
    for _ in range(100):
        rows = history_rows(request)
        if any(row.pod for row in rows):
            return rows
    raise AssertionError("nothing was recorded")


def _synced(url: str) -> Overview:
    for _ in range(200):
        overview = fetch(url, "overview", Overview)
        assert overview is not None
        if overview.synced:
            return overview
    raise AssertionError("it never listed the cluster")

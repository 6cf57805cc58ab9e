from __future__ import annotations

import pytest
from msgspec.structs import replace
from playwright.async_api import expect

from reactor.record.history_reader import HistoryEntry, HistoryKind
from reactor.web.view import NodeSummary, Refusal, SettingsView
from tests.browser.conftest import OpenPage
from tests.browser.fake_source import FakeSource
from tests.browser.sample_cluster import AT, HOSTILE, chip, overview, pod_name

CUT = """
chip => [...chip.querySelectorAll(".label > *")].filter((part) => part.scrollWidth > part.clientWidth)
  .map((part) => part.textContent)
"""
OUT_OF_SIGHT = """
chip => {
  const bottom = chip.querySelector(".label").getBoundingClientRect().bottom;
  return [...chip.querySelectorAll(".label > *")].filter((part) => part.getBoundingClientRect().top >= bottom - 1)
    .map((part) => part.textContent);
}
"""

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_nodes_pods_and_decisions_are_shown(open_page: OpenPage) -> None:
    page = await open_page()
    await expect(page.locator(".node h3")).to_have_text(["worker-1", "worker-2", "worker-3", "1 pod without a node"])
    unhappy = page.locator(f'.chip[href$="{pod_name(4)}"]')
    await expect(unhappy).to_have_attribute("data-level", "critical")
    await expect(unhappy).to_contain_text("0.31")
    await expect(unhappy).to_have_accessible_name(
        f"shop/{pod_name(4)}: happiness 0.31, below its threshold 0.80, Running, not ready, 0.54 cores"
    )
    await expect(page.locator("#decisions > li").first).to_contain_text("fell to 0.31 on worker-2")
    await expect(page.locator(".gauge").nth(2)).to_contain_text("4.85 / 5 cores 97 %")
    await expect(page).to_have_title("(3) embedded · Rematch")
    await expect(page.locator(".facts").first).to_contain_text("power about 412 W, 1 idle node 48 W")
    await expect(page.locator(".facts").first).to_contain_text("last plan 431 W → 396 W, 2 nodes idle")


async def test_charts_are_drawn_and_readable_without_seeing(open_page: OpenPage) -> None:
    page = await open_page()
    await expect(page.locator(".plot svg.main-svg").first).to_be_visible()
    await expect(page.locator("#charts .chart")).to_have_count(5)
    await expect(page.get_by_role("img", name="Availability: 93.4 % now, lowest 86.5 %")).to_be_visible()
    table = page.locator('.chart[data-key="cpu"]')
    await table.get_by_text("as a table").click()
    await expect(table.get_by_role("columnheader")).to_have_text(["Time", "worker-1", "worker-2", "worker-3"])
    assert await table.locator("tbody tr").count() > 10


async def test_the_threshold_is_named_beside_the_lines_and_not_on_them(open_page: OpenPage) -> None:
    page = await open_page()
    chart = page.locator('.chart[data-key="happiness"]')
    await expect(chart.locator(".legendtext")).to_have_text(["lowest", "mean", "threshold 0.80"])
    await expect(chart.locator(".annotation")).to_have_count(0)


async def test_a_chip_drops_the_hash_of_a_deployments_pod_first_and_then_its_suffix(
    open_page: OpenPage, source: FakeSource
) -> None:
    first, *others = source.view.nodes
    names = ("app-06-68dd6448fc-vh4l2", "payments-api-gateway-68dd6448fc-vh4l2", "time-series-database-cluster-west-0")
    pods = tuple(replace(chip(3), uid=name, key=f"shop/{name}") for name in names)
    await source.revise(replace(source.view, nodes=(replace(first, pods=pods), *others)))
    page = await open_page(width=1100)
    app, payments, database = (page.locator(f'.chip[href$="{name}"]') for name in names)
    await expect(app.locator(".label")).to_have_text("app-06…vh4l2")
    assert await app.evaluate(CUT) == []
    assert await app.evaluate(OUT_OF_SIGHT) == []
    assert await payments.evaluate(OUT_OF_SIGHT) == ["…vh4l2"]
    assert await database.evaluate(CUT) == ["time-series-database-cluster-"]
    assert await database.evaluate(OUT_OF_SIGHT) == []


async def test_what_the_failure_curve_predicted_is_drawn_beside_what_happened(open_page: OpenPage) -> None:
    page = await open_page()
    chart = page.locator('.chart[data-key="calibration"]')
    await expect(chart.locator("svg.main-svg").first).to_be_visible()
    await expect(chart.locator(".legendtext")).to_have_text(["prior", "fitted curve", "failed", "predicted"])
    await expect(chart.locator(".scatterlayer .points path.point")).to_have_count(2 * 17)
    await expect(chart.locator("figcaption")).to_contain_text("probes, predicted")
    await expect(chart.locator("figcaption")).to_contain_text("12 moves judged, 11 helped")
    await chart.get_by_text("as a table").click()
    await expect(chart.get_by_role("columnheader")).to_have_text(["Node load", "Probes", "Failed", "Predicted"])
    await expect(chart.locator("tbody tr")).to_have_count(17)
    await expect(chart.locator("tbody tr").first).to_have_text("20 % to 25 %5,7140.20 %0.16 %")


async def test_without_probes_the_prior_is_drawn(open_page: OpenPage, source: FakeSource) -> None:
    source.learned = replace(source.learned, bins=(), text="curve: no probes counted yet, the prior is used")
    page = await open_page()
    chart = page.locator('.chart[data-key="calibration"]')
    await expect(chart.locator("svg.main-svg").first).to_be_visible()
    await expect(chart).to_contain_text("no probes counted yet")
    await expect(chart.locator(".points path.point")).to_have_count(0)


async def test_a_change_arrives_and_leaves_focus_scroll_and_elements_alone(
    open_page: OpenPage, source: FakeSource
) -> None:
    page = await open_page()
    focused = page.locator(f'.chip[href$="{pod_name(7)}"]')
    await focused.focus()
    await page.locator(".moves summary").first.click()
    await focused.evaluate("chip => { chip.focus(); window.held = chip; scrollTo(0, 120); }")
    happier = replace(chip(7), happiness=0.97, happy=True)
    nodes = tuple(
        replace(node, pods=tuple(happier if pod.uid == happier.uid else pod for pod in node.pods))
        for node in overview(1).nodes
    )
    await source.revise(replace(overview(1), nodes=nodes))
    await source.decide(HistoryEntry(999, AT + 1, "c999", HistoryKind.MOVE, None, "done", "moved just now"))
    await expect(focused).to_contain_text("0.97")
    await expect(focused).to_have_attribute("data-level", "good")
    await expect(page.locator("#decisions > li").first).to_contain_text("moved just now")
    assert await page.evaluate("window.held === document.activeElement && scrollY === 120")
    assert await page.locator(".moves details").first.get_attribute("open") is not None


async def test_new_decisions_are_announced(open_page: OpenPage, source: FakeSource) -> None:
    page = await open_page()
    await expect(page.locator("#decisions > li").first).to_be_visible()
    await source.decide(HistoryEntry(999, AT + 1, "c999", HistoryKind.MOVE, None, "done", "moved just now"))
    await expect(page.locator("#announcer")).to_have_text("move: moved just now")


async def test_a_rematch_shows_the_evidence_that_decided(open_page: OpenPage) -> None:
    page = await open_page()
    shown = page.locator('#decisions > li[data-kind="rematch"] .causes details').first
    await shown.locator("summary").click()
    await expect(shown).to_contain_text("97 % likely its place")
    await expect(shown.locator('tr[data-key="load"]')).to_contain_text("× 600")
    await expect(shown.locator('tr[data-key="load"]')).to_contain_text("76% of its cpu now, 97% counted")


async def test_waits_are_hidden_at_first_and_can_be_shown_and_older_decisions_loaded(open_page: OpenPage) -> None:
    page = await open_page()
    entries, waits = page.locator("#decisions > li"), page.locator('#decisions > li[data-kind="wait"]')
    await expect(entries).to_have_count(20)
    await expect(waits).to_have_count(0)
    await page.get_by_label("Hide waits").uncheck()
    await expect(entries).to_have_count(30)
    await expect(waits.first).to_be_visible()
    await page.get_by_role("button", name="Load older decisions").click()
    await expect(entries).to_have_count(60)
    await page.get_by_label("Hide waits").check()
    await expect(waits).to_have_count(0)
    await expect(entries).to_have_count(20)
    await expect(page.get_by_role("button", name="Load older decisions")).to_be_hidden()


async def test_names_from_the_cluster_stay_text(open_page: OpenPage) -> None:
    page = await open_page()
    page.on("dialog", lambda dialog: pytest.fail("a name was run as script"))
    hostile = page.locator(".chip", has_text="<img src")
    await expect(hostile).to_be_visible()
    assert await page.locator("main img, main script").count() == 0
    await hostile.click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(f"shop/{HOSTILE}")
    await expect(page.locator(".messages")).to_contain_text(HOSTILE)
    assert await page.locator("main img, main script").count() == 0


async def test_banners_report_problems(open_page: OpenPage, source: FakeSource) -> None:
    refused = SettingsView("9f2c41aa", "file", (Refusal("happiness.threshold", "must be at most 1"),))
    source.view = replace(
        source.view,
        mode="observe",
        synced=False,
        halted="web-04 is not Ready 180 s after its move",
        settings=refused,
        problems=("Prometheus unreachable since 03:12:09",),
    )
    page = await open_page()
    banners = page.locator("#banners")
    for text in (
        "touches nothing",
        "180 s after",
        "happiness.threshold: must be at most 1",
        "Not synced",
        "since 03:12:09",
    ):
        await expect(banners).to_contain_text(text)
    await source.revise(overview(2))
    await expect(banners).to_be_empty()


async def test_an_empty_cluster_says_so(open_page: OpenPage, source: FakeSource) -> None:
    source.view = replace(source.view, nodes=(), pending=())
    source.log.clear()
    page = await open_page()
    await expect(page.locator("#nodes")).to_contain_text("No nodes yet")
    await expect(page.locator("#decisions-empty")).to_contain_text("No decisions yet")


async def test_many_nodes_are_summarised(open_page: OpenPage, source: FakeSource) -> None:
    page = await open_page()
    await expect(page.locator("#nodes .node")).to_have_count(3)
    await expect(page.locator("#node-summary")).to_be_empty()
    first = source.view.nodes[0]
    summary = NodeSummary(2, 1, 40, 0, (0, 0, 10, 200, 0, 0, 30, 0, 0, 60))
    nodes = tuple(replace(first, name=f"node-{number:03d}") for number in range(300))
    await source.revise(replace(source.view, nodes=nodes, node_summary=summary))
    await expect(page.locator("#node-summary")).to_contain_text("300 nodes40 with unhappy pods2 NotReady1 cordoned")
    await expect(page.get_by_role("img", name="Nodes by load")).to_have_accessible_name(
        "Nodes by load, CPU or memory. 20 to 30 %: 10; 30 to 40 %: 200; 60 to 70 %: 30; 90 % and more: 60"
    )
    await expect(page.locator("#nodes .node")).to_have_count(12)
    await page.get_by_role("button", name="Show more: 288 nodes not shown").click()
    await expect(page.locator("#nodes .node")).to_have_count(60)
    await page.get_by_role("searchbox").fill("node-123")
    await expect(page.locator("#nodes h3")).to_have_text(["node-123"])


async def test_many_pods_are_capped_and_expanded_on_demand(open_page: OpenPage, source: FakeSource) -> None:
    many = tuple(replace(chip(1), uid=f"c{number}", key=f"shop/many-{number:04d}") for number in range(400))
    source.view = replace(source.view, nodes=(replace(source.view.nodes[0], pods=many), *source.view.nodes[1:]))
    page = await open_page()
    card = page.locator(".node").first
    await expect(card.locator(".chip")).to_have_count(24)
    await card.get_by_role("button", name="+376 more").click()
    await expect(card.locator(".chip")).to_have_count(400)
    await page.get_by_role("searchbox").fill("many-0123")
    await expect(page.locator("#nodes .chip")).to_have_count(1)

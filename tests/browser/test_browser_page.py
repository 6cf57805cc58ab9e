"""What holds on every page: keyboard, width, colours, connection."""

from __future__ import annotations

import pytest
from aiohttp import web
from playwright.async_api import Page, expect
from prometheus_client import CollectorRegistry

from reactor.clock import SystemClock
from reactor.web.server import build_app, listening
from tests.browser.conftest import OpenPage
from tests.browser.fake_source import AlwaysHealthy, FakeSource
from tests.browser.sample_cluster import pod_name

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

OTHERS = ("Resources", "Identity", "Usage of the last day", "History")
POD = f"pods/shop/{pod_name(4)}"

CONTRAST = """
() => {
  const channel = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const background = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const node of document.querySelectorAll("body *")) {
    const text = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    const unseen = node.closest("svg, script, noscript, .visually-hidden, .skip") || !node.checkVisibility();
    if (!text || unseen) continue;
    const [a, b] = [light(parse(getComputedStyle(node).color)), light(background(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(`${node.className} ${node.textContent.slice(0, 20)} ${ratio.toFixed(2)}`);
  }
  return poor;
}
"""
BOXES = """
() => Object.fromEntries([...document.querySelectorAll(".panel")]
  .map((panel) => [panel.dataset.key, panel.getBoundingClientRect().toJSON()]))
"""


async def loaded(page: Page) -> None:
    await expect(page.locator("#connection")).to_have_text("live")
    await expect(page.locator("#loading")).to_be_hidden()
    await expect(page.locator("a.chip:visible, .panel:visible").first).to_be_visible()


@pytest.mark.parametrize("path", ["", POD])
@pytest.mark.parametrize("width", [1280, 390])
async def test_the_page_never_scrolls_sideways(open_page: OpenPage, path: str, width: int) -> None:
    page = await open_page(path, width=width)
    await loaded(page)
    if not path:
        await expect(page.locator(".plot svg.main-svg").first).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("path", ["", POD])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_has_enough_contrast(open_page: OpenPage, path: str, scheme: str) -> None:
    page = await open_page(path, scheme=scheme)
    await loaded(page)
    assert await page.evaluate(CONTRAST) == []


async def test_the_theme_is_chosen_and_remembered(open_page: OpenPage) -> None:
    page = await open_page()
    await loaded(page)
    bright = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    button = page.get_by_role("button", name="Theme: system")
    await button.click()
    await page.get_by_role("button", name="Theme: light").click()
    await expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
    dark = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != bright
    await page.reload()
    await loaded(page)
    assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


async def test_a_pods_page_is_reached_and_left_by_keyboard_alone(open_page: OpenPage) -> None:
    page = await open_page()
    await loaded(page)
    await page.keyboard.press("Tab")
    await expect(page.locator(":focus")).to_have_text("Skip to the content")
    await page.keyboard.press("Enter")
    wanted = page.locator(f'.chip[href$="{pod_name(4)}"]')
    for _ in range(40):
        await page.keyboard.press("Tab")
        if await wanted.evaluate("chip => chip === document.activeElement"):
            break
    assert await wanted.evaluate("chip => getComputedStyle(chip).outlineStyle") == "solid"
    await page.keyboard.press("Enter")
    heading = page.get_by_role("heading", level=1)
    await expect(heading).to_have_text(f"shop/{pod_name(4)}")
    await expect(heading).to_be_focused()
    await expect(page.locator(".formula")).to_contain_text("(5 + 12.4) / (5 + 12.4 + 38.7) = 0.31")
    await expect(page.get_by_role("row", name="worker-3")).to_contain_text("taint dedicated=batch:NoSchedule")
    await page.keyboard.press("Shift+Tab")
    await page.keyboard.press("Enter")
    await expect(wanted).to_be_visible()
    await expect(page.locator("#overview-title")).to_be_focused()


async def test_going_back_restores_scroll_and_focus(open_page: OpenPage) -> None:
    page = await open_page()
    await loaded(page)
    chip = page.locator(f'.chip[href$="{pod_name(4)}"]')
    await page.evaluate("scrollTo(0, 150)")
    await chip.focus()
    await page.keyboard.press("Enter")
    await expect(page.locator(".panel").first).to_be_visible()
    await page.go_back()
    await expect(chip).to_be_focused()
    assert await page.evaluate("scrollY") == 150


async def test_a_pods_page_has_an_address_of_its_own(open_page: OpenPage) -> None:
    page = await open_page(POD)
    await expect(page.get_by_role("heading", level=2)).to_have_text(
        ["Happiness and its evidence", "Why here, why not there", "Decision in force", *OTHERS]
    )
    await expect(page.locator('[data-key="usage-cpu"] .plot svg').first).to_be_visible()
    await page.get_by_role("link", name="← Overview").click()
    await expect(page.locator("#nodes .node")).to_have_count(3)


async def test_the_usage_chart_goes_on_with_the_forecast_and_its_band(open_page: OpenPage) -> None:
    page = await open_page(POD)
    chart = page.locator('[data-key="usage-cpu"]')
    await expect(chart).to_contain_text("forecast for 60 min: 0.80, at most 1.40 (uncalibrated)")
    await expect(chart.locator(".plot .fills path.js-fill")).to_have_count(1)
    await expect(chart.locator(".plot .legend")).to_contain_text("forecast (calibrated, uncalibrated)")
    await chart.get_by_text("as a table").click()
    last = chart.get_by_role("row").last
    await expect(last).to_contain_text("1.40")
    await expect(last).to_contain_text("uncalibrated")


async def test_the_axis_of_memory_has_the_units_of_the_text(open_page: OpenPage) -> None:
    page = await open_page(POD)
    chart = page.locator('[data-key="usage-memory"]')
    await expect(chart).to_contain_text("at most 60 MiB")
    await expect(chart.locator(".ytick")).to_have_text(["0 B", "16 MiB", "32 MiB", "48 MiB"])


async def test_failures_inferred_from_kills_are_no_count_of_kills(open_page: OpenPage) -> None:
    page = await open_page(POD)
    await expect(page.get_by_role("row", name="Failures inferred from kills")).to_contain_text("3")


@pytest.mark.parametrize("width", [1400, 1100])
async def test_the_panels_of_a_pods_page_leave_no_gaps(open_page: OpenPage, width: int) -> None:
    page = await open_page(POD, width=width)
    await loaded(page)
    place = await page.evaluate(BOXES)
    assert place["resources"]["y"] == place["identity"]["y"]
    assert place["usage"]["width"] == place["history"]["width"] > 1.9 * place["resources"]["width"]


async def test_a_missing_pod_is_reported(open_page: OpenPage, forgiven: list[str]) -> None:
    forgiven.append("404")
    page = await open_page("pods/shop/gone")
    await expect(page.locator("#pod")).to_contain_text("There is no such pod now")


async def test_a_lost_connection_is_reported_and_restored(
    open_page: OpenPage, source: FakeSource, unused_tcp_port: int, forgiven: list[str]
) -> None:
    page = await open_page()
    address = f"http://127.0.0.1:{unused_tcp_port}/"
    forgiven += [address, "ERR_"]

    def app() -> web.Application:
        return build_app(source, AlwaysHealthy(), CollectorRegistry(), SystemClock())

    async with listening(app(), "127.0.0.1", unused_tcp_port):
        await page.goto(address)
        await loaded(page)
    await expect(page.locator("#banners")).to_contain_text("Connection lost.")
    await expect(page.locator("#connection")).to_have_text("connection lost")
    await expect(page.locator("#nodes .node")).to_have_count(3)
    await source.step(60)
    async with listening(app(), "127.0.0.1", unused_tcp_port):
        await expect(page.locator("#banners")).to_be_empty()
        await expect(page.locator("#connection")).to_have_text("live")
        await expect(page.locator("#facts")).to_contain_text("cycle 100")
        await page.goto("about:blank")

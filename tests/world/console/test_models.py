"""Everyday task at the console in a real browser: the models without a price, and a price set in the row of one."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

from tests.support.chromium import Page, chromium
from tests.support.console_world import CONSOLE_CONFIG
from tests.support.gateways import KEY, running
from tests.support.page_checks import contrast_faults, layout_faults
from tests.support.usage_records import lines, record
from tests.world.console.person import Person
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.base.time_units import micros_of
from umg_grpc.store.usage_record_table import UsageRecords

CONFIG = f"{CONSOLE_CONFIG}  - {{name: lab, protocols: [chat], base_url: 'http://127.0.0.1:1/v1', api_key: k, models: [lab]}}\n"
DESKTOP = (1366, 800)
PLACE = """(() => {
  const found = [...document.querySelectorAll("a, button, summary")].find((each) => each.checkVisibility() && each.textContent.trim() === %s);
  found.scrollIntoView({ block: "center" });
  const { left, top, width, height } = found.getBoundingClientRect();
  return [left + width / 2, top + height / 2];
})()"""
REPLACED = "document.documentElement?.dataset.before ?? (document.readyState === 'complete' ? '' : '1')"


async def click(page: Page, name: str, *, leads: bool = True) -> None:
    """Click the first link, button or summary with a name, and wait for the page to which it leads."""
    left, top = await page.evaluate(PLACE % json.dumps(name))
    await page.evaluate("document.documentElement.dataset.before = 1")
    for kind in ("mousePressed", "mouseReleased"):
        event = {"type": kind, "x": left, "y": top, "button": "left", "clickCount": 1}
        await page.call("Input.dispatchMouseEvent", event)
    async with asyncio.timeout(60):
        while leads and await is_before(page):  # noqa: ASYNC110
            await asyncio.sleep(0.02)  # the browser reports no event for a replaced document


async def is_before(page: Page) -> bool:
    try:
        return bool(await page.evaluate(REPLACED))
    except AssertionError:  # the document is being replaced
        return True


async def test_a_model_without_a_price_is_first_and_gets_one_in_its_row_by_three_clicks(tmp_path: Path) -> None:
    async with chromium(tmp_path / "chromium") as page, running(CONFIG, tmp_path / "gateway") as gateway:
        store, now = gateway.service.store, micros_of(datetime.now(UTC))
        key, _ = await ApiKeys(store).create("indexer")
        calls = [record(n, key_id=key.key_id, model="lab", channel="lab", start_micros=now) for n in range(3)]
        await UsageRecords(store).insert(lines(*calls))
        person = Person(page, gateway.url)
        await page.screen(*DESKTOP)
        await person.sign_in(KEY)
        await person.open("/console")
        assert "1 models without a price were called in the last 24 hours." in await person.text()
        await click(page, "Models")
        shown = await person.text()
        assert "1 models have no price; 1 of them were called in the last 24 hours." in shown
        first = await page.evaluate("document.querySelector('main tbody tr').innerText")
        assert [word in first for word in ("lab", "no price", "3", "indexer")] == [True] * 4
        await click(page, "Set price", leads=False)
        assert [fault async for fault in layout_faults(page)] == []
        await page.screen(*DESKTOP)
        await person.fill("input, a million tokens", "1.25")
        await person.fill("output, a million tokens", "10")
        await click(page, "Save")
        assert "Every process charges calls by the price within seconds." in await person.text()
        assert "input 1.25, output 10" in await person.text()
        await person.open("/console/models/lab")
        assert "set by bootstrap" in await person.text()
        assert [fault async for fault in contrast_faults(page)] == []
        assert [entry for entry in page.log if "'source': 'network'" not in entry] == []
        await page.open("about:blank")

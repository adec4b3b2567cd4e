"""Person at the console in a browser: clicks and keys as a person makes them, and counts the clicks."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from tests.support.chromium import Page

PLACE = """(() => {
  const wanted = %s;
  const shown = (each) => each.checkVisibility() && each.getClientRects().length;
  const name = (each) => (each.textContent.trim() || each.value || each.getAttribute("aria-label") || "").trim();
  const found = [...document.querySelectorAll("a, button, summary")].filter((each) => shown(each) && name(each) === wanted);
  if (!found.length) return null;
  found[0].scrollIntoView({ block: "center" });
  const box = found[0].getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
})()"""
FIELD = """(() => {
  const label = [...document.querySelectorAll("label")].find((each) => each.checkVisibility() && each.innerText.trim() === %s);
  const field = label?.control;
  field?.focus();
  field?.select?.();
  return !!field;
})()"""


@dataclass
class Person:
    """Person with a mouse and a keyboard."""

    page: Page
    url: str
    clicks: int = 0

    async def open(self, path: str) -> None:
        """Open an address, as from a bookmark. The count of clicks begins."""
        self.clicks = 0
        await self.page.open(f"{self.url}{path}")
        await self.settled()

    async def settled(self) -> None:
        """Wait until the page that is being loaded is there."""
        await self.page.loaded()

    async def click(self, name: str, *, leads: bool = True) -> None:
        """Click the link or button with a name. `leads`: whether another page follows."""
        place = await self._place(name)
        assert place, (name, await self.page.evaluate("document.body.innerText"))
        self.clicks += 1
        mark = "document.documentElement.dataset.before = 1"
        await self.page.evaluate(mark)
        for kind in ("mousePressed", "mouseReleased"):
            event = {"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1}
            await self.page.call("Input.dispatchMouseEvent", event)
        if leads:
            await self.arrived()

    async def arrived(self) -> None:
        """Wait until another document has replaced the one that `click` or `enter` marked."""
        async with asyncio.timeout(60):
            while await self._evaluated("document.documentElement?.dataset.before ?? ''"):  # noqa: ASYNC110
                await asyncio.sleep(0.02)  # the browser reports no event for a replaced document
        await self.settled()

    async def fill(self, label: str, text: str) -> None:
        """Replace the text of the field with a label."""
        assert await self.page.evaluate(FIELD % json.dumps(label)), (
            label,
            await self.page.evaluate("document.body.innerText"),
        )
        await self.page.write(text)

    async def enter(self) -> None:
        """Press Enter, and wait for the page that follows."""
        await self.page.evaluate("document.documentElement.dataset.before = 1")
        await self.page.press("Enter")
        await self.arrived()

    async def text(self) -> str:
        """Return the text that the page shows."""
        return str(await self.page.evaluate("document.body.innerText"))

    async def sign_in(self, key: str) -> None:
        """Open a session by a key, at the page that leads to the console."""
        await self.open("/console")
        await self.page.evaluate("document.getElementById('key').focus()")
        await self.page.write(key)
        await self.enter()

    async def _place(self, name: str) -> Any:
        return await self.page.evaluate(PLACE % json.dumps(name))

    async def _evaluated(self, script: str) -> Any:
        try:
            return await self.page.evaluate(script)
        except AssertionError:  # the document is being replaced
            return "replaced"

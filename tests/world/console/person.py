"""Person at the console in a browser: acts by mouse or by keyboard, and counts the clicks."""

import json
import re
from dataclasses import dataclass
from typing import Any

from tests.support.chromium import Page

NAMED = """(() => {
  const wanted = %s;
  const shown = (each) => each.checkVisibility() && each.getClientRects().length;
  const name = (each) => (each.ariaLabel || each.textContent).replace(/\\s+/g, " ").trim();
  const meant = wanted.endsWith("…") ? (each) => name(each).startsWith(wanted.slice(0, -1)) : (each) => name(each) === wanted;
  return [...document.querySelectorAll("a, button, summary")].findLast((each) => shown(each) && meant(each));
})()"""
LABELLED = """[...document.querySelectorAll("label")].find((each) => each.checkVisibility() && each.innerText.trim() === %s)?.control"""
SEARCH = "document.getElementById('search')"
PLACE = """(() => {
  const found = globalThis.wanted = %s;
  if (!found) return null;
  found.scrollIntoView({ block: "center" });
  const box = found.getClientRects()[0];
  const place = [box.x + box.width / 2, box.y + box.height / 2];
  return found.contains(document.elementFromPoint(...place)) ? place : null;
})()"""
IS_FOCUSED = "document.activeElement === globalThis.wanted"
STOPS_BEFORE = """(() => {
  const stops = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
    .filter((each) => each.tabIndex >= 0 && !each.disabled && !(each.type === "radio" && !each.checked) && each.checkVisibility({ visibilityProperty: true }));
  const between = stops.indexOf(globalThis.wanted) - stops.indexOf(document.activeElement);
  return between < 0 ? between + stops.length : between;
})()"""
"""Number of presses of Tab after which the wanted element should have the focus, or a few before it."""
MENU = "Menu"
MAX_TABS = 300
NO_COMPLAINTS = ("'source': 'network'", "'level': 'info'")
"""Parts of entries of the browser's log that are expected: responses with the status of an error, and mere notes."""


@dataclass
class Person:
    """Person with a mouse, or with a keyboard alone."""

    page: Page
    url: str
    by_keys: bool = False
    has_scripts: bool = True
    has_menu: bool = False
    """Whether the window is so narrow that a menu has most pages."""
    clicks: int = 0
    """Links and buttons that were chosen since the task began. Fields do not count."""

    menus: int = 0
    """How often the menu was opened for one of these clicks: one click more on a phone."""

    async def begin(self, *, at_overview: bool) -> None:
        """Begin a task, at the overview or where the last one ended. The count of clicks begins."""
        self.clicks = self.menus = 0
        if at_overview:
            await self.open("/console")

    async def open(self, path: str) -> None:
        """Open an address, as from a bookmark."""
        async with self.page.next_load():
            await self.page.open(f"{self.url}{path}")

    async def go(self, name: str) -> None:
        """Choose a link or button that leads to another page. A name that ends with `…` stands for all with its start."""
        if self.has_menu and not await self.page.evaluate(f"!!{NAMED % json.dumps(name)}"):
            await self.press(MENU)
            self.menus += 1
        async with self.page.next_load():
            await self.press(name)

    async def press(self, name: str) -> None:
        """Choose a link or button, the last one with a name; the page stays."""
        self.clicks += 1
        await self._reach(NAMED % json.dumps(name), name)
        if self.by_keys:
            await self.page.press("Enter")

    async def fill(self, label: str, text: str) -> None:
        """Replace the text of the field with a label."""
        await self._reach(LABELLED % json.dumps(label), label)
        await self.page.evaluate("document.activeElement.select()")
        await self.page.write(text)

    async def find(self, text: str) -> None:
        """Search for a text."""
        if self.has_scripts:
            await self.page.press("/")
        else:
            await self._reach(SEARCH, "search")
        await self.page.write(text)
        await self.enter()

    async def enter(self) -> None:
        """Send the form of the field by the key Enter."""
        async with self.page.next_load():
            await self.page.press("Enter")

    async def back(self) -> None:
        """Go back to the page before."""
        history = await self.page.call("Page.getNavigationHistory", {})
        before = history["entries"][history["currentIndex"] - 1]
        async with self.page.next_load():
            await self.page.call("Page.navigateToHistoryEntry", {"entryId": before["id"]})

    async def see(self, pattern: str) -> None:
        """Check that the page shows a text."""
        shown = await self.text()
        assert re.search(pattern, shown), (pattern, shown)

    async def text(self) -> str:
        """Return the text that the page shows."""
        return str(await self.page.evaluate("document.body.innerText"))

    async def sign_in(self, key: str) -> None:
        """Open a session by a key, at the page that leads to the console."""
        await self.open("/console")
        await self.page.evaluate("document.getElementById('key').focus()")
        await self.page.write(key)
        await self.enter()

    def complaints(self) -> list[str]:
        """Return the browser's reports about the page: errors of scripts, and violations of the policy."""
        return [entry for entry in self.page.log if not any(each in entry for each in NO_COMPLAINTS)]

    async def _reach(self, element: str, name: str) -> None:
        """Click an element, or focus it by the key Tab."""
        place: Any = await self.page.evaluate(PLACE % element)
        assert place, (name, await self.text())
        if not self.by_keys:
            for kind in ("mousePressed", "mouseReleased"):
                event = {"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1}
                await self.page.call("Input.dispatchMouseEvent", event)
            return
        before = await self.page.evaluate(STOPS_BEFORE)
        for tabs in (before, *[1] * MAX_TABS):
            for _ in range(tabs):
                await self.page.press("Tab")
            if await self.page.evaluate(IS_FOCUSED):
                return
        raise AssertionError(f"{name} is not reached by the keyboard")

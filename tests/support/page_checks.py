"""Checks of a page in a browser: its layout on screens of every size, and the contrast of its texts."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from tests.support.chromium import Page

WIDTHS = (360, 390, 768, 1024, 1366, 1920)
"""Widths in pixels: two phones, a tablet held in both directions, a laptop and a large screen."""
HEIGHT = 800
SCHEMES = ("light", "dark")
_LAYOUT, _CONTRAST = (
    Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("page_layout.js", "page_contrast.js")
)


async def layout_faults(page: Page, widths: Sequence[int] = WIDTHS) -> AsyncIterator[tuple[int, str]]:
    """Yield (width, fault) of the layout of the page that is open: texts that are cut, covered or outside of it."""
    for width in widths:
        await page.screen(width, HEIGHT)
        for fault in await page.evaluate(_LAYOUT):
            yield width, fault


async def contrast_faults(page: Page, schemes: Sequence[str] = SCHEMES) -> AsyncIterator[tuple[str, str]]:
    """Yield (colours of the system, fault) of the texts of the page that is open which are hard to read."""
    for scheme in schemes:
        await page.scheme(scheme)
        for fault in await page.evaluate(_CONTRAST):
            yield scheme, fault

"""Playground and API reference in a real browser, on a gateway with simulated and waiting providers."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from aiohttp import web

from tests.support.chromium import Page, chromium
from tests.support.gateways import KEY, Running, channel, running
from tests.support.providers.waiting_provider import WaitingProvider
from tests.support.serving import serving
from tests.world.pages.axe_checks import barriers
from umg_grpc.config.built_in_config import BUILT_IN

SCREENSHOTS = Path(__file__).parents[3] / "docs" / "screenshots"
"""Folder of the pictures that `make docs` shows, which git ignores."""
WAITING, CHAT, IMAGE, EDITED, VIDEO = "waiting", "famG-2.5-flash", "imgC-1", "imgC-1", "vidA-2"
MODELS = next(row["models"] for row in yaml.safe_load(BUILT_IN)["channels"] if row["protocols"] == ["sandbox"])
SANDBOX = f"  - {{name: sandbox, protocols: [sandbox], pace: 0, models: [{', '.join(MODELS)}]}}\n"
PRICES = f"models:\n  {CHAT}: {{price: {{input: 3, output: 15}}}}\n"
DESKTOP, PHONE = (1366, 900), (390, 840)
LOADED = "document.readyState === 'complete' && !document.getElementById('count')?.matches(':empty')"
READY = "document.documentElement?.dataset.ready === 'true'"


@dataclass(frozen=True)
class Site:
    """Page of a browser, and the gateway that serves it."""

    page: Page
    gateway: Running
    provider: WaitingProvider

    async def open(self, path: str = "/playground", size: tuple[int, int] = DESKTOP, scheme: str = "light") -> None:
        """Open a page without a stored key."""
        await self.page.screen(*size, mobile=size == PHONE)
        await self.page.scheme(scheme)
        await self.page.open(f"{self.gateway.url}/healthz")  # the same address would keep the state of the page before
        await self.page.open(f"{self.gateway.url}{path}")
        await self.page.until(READY if path.startswith("/playground") else LOADED)

    async def use_key(self, key: str = KEY) -> None:
        """Enter a key and send it by the keyboard."""
        await self.page.evaluate("document.getElementById('key').focus()")
        await self.page.write(key)
        await self.page.press("Enter")

    async def begin(self, kind: str = "chat", **options: tuple[int, int] | str) -> None:
        """Open the playground at a kind of calls, with the administrator's key."""
        size, scheme = options.get("size", DESKTOP), options.get("scheme", "light")
        assert isinstance(size, tuple)
        assert isinstance(scheme, str)
        await self.open(f"/playground?kind={kind}", size, scheme)
        await self.use_key()
        await self.page.until("!document.getElementById('key-used').hidden")
        await self.page.until("document.getElementById('list-problems').ariaBusy === 'false'")

    async def choose(self, model: str, picker: int = 0) -> None:
        """Write the id of a model into a picker."""
        found = f"document.querySelectorAll('#models input')[{picker}]"
        await self.page.evaluate(f"{found}.focus(), {found}.select()")
        await self.page.write(model)
        await self.page.press("Enter")

    async def send(self, model: str, prompt: str) -> None:
        """Choose a model, write a prompt and send it by the keyboard."""
        await self.choose(model)
        await self.fill("#prompt", prompt)
        await self.page.press("Enter", control=True)

    async def fill(self, field: str, text: str) -> None:
        """Write a text into an empty field."""
        await self.page.evaluate(f"document.querySelector({field!r}).focus()")
        await self.page.write(text)

    async def write_system_prompt(self, text: str) -> None:
        """Open the field of the system prompt, and write into it."""
        await self.page.evaluate("document.querySelector('#system').closest('details').open = true")
        await self.fill("#system", text)

    async def click(self, element: str) -> None:
        """Press the element that a selector finds."""
        await self.page.evaluate(f"document.querySelector({element!r}).click()")

    async def press_button(self, words: str, within: str = "body") -> None:
        """Press the last button with these words."""
        found = f"[...document.querySelectorAll({f'{within} button'!r})].findLast(e => e.textContent === {words!r})"
        await self.page.until(found)
        await self.page.evaluate(f"{found}.click()")

    async def add_files(self, field: str, *paths: Path) -> None:
        """Choose files of the disk in a file field."""
        found = await self.page.call("Runtime.evaluate", {"expression": f"document.querySelector({field!r})"})
        files = {"files": [str(path) for path in paths], "objectId": found["result"]["objectId"]}
        await self.page.call("DOM.setFileInputFiles", files)

    async def texts(self, element: str) -> list[str]:
        """Return the texts of the elements that a selector finds."""
        found = await self.page.evaluate(f"[...document.querySelectorAll({element!r})].map(e => e.textContent)")
        assert isinstance(found, list)
        return found

    async def until_text(self, element: str, part: str) -> None:
        """Wait until an element contains a text."""
        await self.page.until(f"document.querySelector({element!r})?.textContent.includes({part!r})")

    async def barriers(self, *, colours_only: bool = False) -> list[str]:
        """Return the violations of WCAG 2.2 AA that axe finds."""
        return await barriers(self.page, colours_only=colours_only)


@asynccontextmanager
async def running_site(folder: Path) -> AsyncGenerator[Site, None]:
    """Run a browser and a gateway with all simulated models and one of a waiting provider."""
    provider = WaitingProvider()
    async with AsyncExitStack() as stack:
        page = await stack.enter_async_context(chromium(folder / "chromium"))
        upstream = web.Application()
        upstream.router.add_post("/v1/chat/completions", provider.answer)
        url = await stack.enter_async_context(serving(upstream, handler_cancellation=True))
        config = f"channels:\n{SANDBOX}{channel('waiting', 'chat', f'{url}/v1', WAITING)}{PRICES}"
        gateway = await stack.enter_async_context(running(config, folder / "gateway"))
        await page.permit_clipboard(gateway.url)
        yield Site(page, gateway, provider)
        provider.go_on.set()
        await page.open("about:blank")


@contextmanager
def no_complaint(page: Page, *, refused: bool = False) -> Iterator[None]:
    """Fail if the browser reports an error, or a violation of the policy. `refused`: calls are refused as intended."""
    yield
    found = [entry for entry in page.log if not (refused and "'source': 'network'" in entry)]
    assert not found, "\n".join(found)


def text_of(element: str) -> str:
    """Return the expression of an element's text."""
    return f"document.querySelector({element!r})?.textContent"

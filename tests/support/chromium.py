"""Chromium without a window, driven by its DevTools protocol."""

import asyncio
import base64
import os
import re
import shutil
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import pytest

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""Browsers in the order in which one is chosen: the first is Chromium without its own windows, whose pages take half of
the processor time.
"""
START_SECONDS = 180
CALL_SECONDS = 60
FLAGS = (
    "--headless",
    "--no-sandbox",  # it does not start as root otherwise
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
)
KEYS = {
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    " ": (32, " "),
    "ArrowLeft": (37, ""),
    "ArrowRight": (39, ""),
    "ArrowUp": (38, ""),
    "ArrowDown": (40, ""),
    "/": (191, "/"),
    "g": (71, "g"),
    "j": (74, "j"),
    "k": (75, "k"),
    "l": (76, "l"),
    "r": (82, "r"),
    "?": (191, "?"),
}
"""Key -> its code, and the text that it writes."""
LOADED_EVENT = "Page.loadEventFired"
LOGGED = frozenset({"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"})
LOADED = "new Promise((done) => document.readyState === 'complete' ? done() : addEventListener('load', () => done()))"
UNTIL = """new Promise((done) => {
  const check = () => (%s) && (observer.disconnect(), done(true));
  const observer = new MutationObserver(check);
  observer.observe(document, { attributes: true, characterData: true, childList: true, subtree: true });
  check();
})"""


class Page:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = count(1)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._load: asyncio.Future[None] | None = None
        self.session = ""
        self.log: list[str] = []
        """Messages and exceptions of the page's scripts, and requests that the browser refused or that failed."""

    async def read(self) -> None:
        """Read the browser's messages, until its connection ends."""
        async for message in self._socket:
            received = message.json()
            if (answer := self._answers.pop(received.get("id", 0), None)) is not None:
                if not answer.done():  # its caller may have given up
                    answer.set_result(received)
            elif received.get("method") == LOADED_EVENT:
                if self._load is not None and not self._load.done():
                    self._load.set_result(None)
            elif received.get("method") in LOGGED:
                self.log.append(str(received["params"]))

    async def call(self, method: str, parameters: Mapping[str, Any]) -> Any:
        number = next(self._ids)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        session = {"sessionId": self.session} if self.session else {}
        await self._socket.send_json({"id": number, "method": method, "params": parameters, **session})
        received = await asyncio.wait_for(answer, CALL_SECONDS)
        assert "result" in received, received
        return received["result"]

    async def open(self, url: str) -> None:
        self.log.clear()
        await self.call("Page.navigate", {"url": url})

    @asynccontextmanager
    async def next_load(self) -> AsyncGenerator[None, None]:
        """Wait at the end until the page that the body leads to is there with its styles and scripts."""
        self._load = asyncio.get_running_loop().create_future()
        yield
        await asyncio.wait_for(self._load, CALL_SECONDS)

    async def loaded(self) -> None:
        """Wait until the page and its styles and scripts are there."""
        await self.evaluate(LOADED)

    async def screen(self, width: int, height: int, *, mobile: bool = False) -> None:
        """Set the size of the window in pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        await self.call("Emulation.setDeviceMetricsOverride", metrics)

    async def scheme(self, name: str) -> None:
        """Set the colours of the system: `light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        await self.call("Emulation.setEmulatedMedia", {"features": features})

    async def permit_clipboard(self, origin: str) -> None:
        """Permit the pages of an origin to read and write the clipboard."""
        permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"]
        await self.call("Browser.grantPermissions", {"permissions": permissions, "origin": origin})

    async def evaluate(self, script: str) -> Any:
        """Return the value of a script, or that which its promise resolves to."""
        parameters = {"expression": script, "awaitPromise": True, "returnByValue": True}
        result = await self.call("Runtime.evaluate", parameters)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def press(self, key: str, *, shift: bool = False, control: bool = False) -> None:
        """Press a key, one of `KEYS`."""
        code, text = KEYS[key]
        modifiers = (8 if shift else 0) + (2 if control else 0)
        pressed = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
        await self.call("Input.dispatchKeyEvent", {"type": "keyDown", "text": text, **pressed})
        await self.call("Input.dispatchKeyEvent", {"type": "keyUp", **pressed})

    async def write(self, text: str) -> None:
        await self.call("Input.insertText", {"text": text})

    async def picture(self, path: Path) -> None:
        """Write a picture of the page, if the variable `UMG_PICTURES` is set, as by `make pictures`."""
        if "UMG_PICTURES" not in os.environ:
            return
        taken = await self.call("Page.captureScreenshot", {"format": "png"})
        await asyncio.to_thread(_write, path, base64.b64decode(taken["data"]))

    async def until(self, condition: str) -> None:
        """Wait until a condition is true, which is checked after each change of the document."""
        try:
            await self.evaluate(UNTIL % condition)
        except TimeoutError:
            shown = await self.evaluate("document.documentElement.outerHTML")
            pytest.fail(f"never true: {condition}\n{shown}\n{self.log}")


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@asynccontextmanager
async def chromium(folder: Path) -> AsyncGenerator[Page, None]:
    """Run the browser, with its files in a folder, and yield a page. Skip the test if there is no browser."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("Chromium is not installed: apt-get install chromium-headless-shell")
    process = await asyncio.create_subprocess_exec(
        program,
        *FLAGS,
        f"--user-data-dir={folder}",
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "HOME": str(folder)},
        start_new_session=True,  # the program may be a script that starts the browser
    )
    try:
        address = await asyncio.wait_for(_address(process), START_SECONDS)
        async with aiohttp.ClientSession() as session, session.ws_connect(address, max_msg_size=0) as socket:
            page = Page(socket)
            reading = asyncio.create_task(page.read())
            target = await page.call("Target.createTarget", {"url": "about:blank"})
            attached = await page.call("Target.attachToTarget", {"targetId": target["targetId"], "flatten": True})
            page.session = attached["sessionId"]
            await page.call("Runtime.enable", {})
            await page.call("Log.enable", {})
            await page.call("Page.enable", {})
            await page.call("Emulation.setFocusEmulationEnabled", {"enabled": True})
            yield page
            reading.cancel()
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
        await process.communicate()


async def _address(process: asyncio.subprocess.Process) -> str:
    """Return the address of the DevTools, which the browser prints at its start."""
    assert process.stderr is not None
    printed = b""
    async for line in process.stderr:
        printed += line
        if found := re.search(rb"DevTools listening on (ws://\S+)", line):
            return found[1].decode()
    pytest.fail(f"the browser does not start: {printed.decode(errors='replace')[-2000:]}")

"""Browser of a person at the console: cookies, pages and their forms, over HTTP without scripts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape
from types import TracebackType
from typing import Self

import aiohttp

from tests.support.gateways import KEY


@dataclass(frozen=True)
class Reply:
    status: int
    path: str
    text: str
    headers: Mapping[str, str]

    @property
    def problem(self) -> str:
        """Text of the message above the content; "" without one."""
        found = re.search(r'role="alert">(.*?) <span', self.text, re.DOTALL)
        return unescape(found[1]) if found else ""

    def form(self, act: str) -> dict[str, str]:
        """Return the protecting fields of the form of an act."""
        form = next(each for each in re.findall(r"<form.*?</form>", self.text, re.DOTALL) if f'value="{act}"' in each)
        return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))


class Browser:
    """Browser with the cookies of one person."""

    def __init__(self, url: str) -> None:
        """Create a browser for the gateway at a URL."""
        self.session = aiohttp.ClientSession(url, cookie_jar=aiohttp.CookieJar(unsafe=True))
        self.origin = url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.session.close()

    async def get(self, path: str, **headers: str) -> Reply:
        async with self.session.get(path, headers=headers) as response:
            return Reply(response.status, response.url.path_qs, await response.text(), response.headers)

    async def post(self, path: str, form: dict[str, str], **headers: str) -> Reply:
        sent = {"origin": self.origin} | headers
        async with self.session.post(path, data=form, headers=sent) as response:
            return Reply(response.status, response.url.path_qs, await response.text(), response.headers)

    async def sign_in(self, key: str = KEY) -> "Browser":
        reply = await self.post("/auth/login", {"key": key, "return": "/console"})
        assert reply.status == 200, reply.text
        return self

"""Browser of the tests of sign-on, as far as they need one: cookies, redirects, and the forms of pages."""

import re
from dataclasses import dataclass
from html import unescape
from urllib.parse import urljoin

import aiohttp

MAX_STEPS = 20


@dataclass(frozen=True)
class Page:
    """Page at which a browser has arrived."""

    url: str
    status: int
    text: str


class Browser:
    """HTTP client with the cookies of a browser."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        """Create a browser. `session`: with a cookie jar that takes cookies of IP addresses."""
        self._session = session

    async def get(self, url: str) -> Page:
        """Follow the redirects of a page."""
        async with self._session.get(url) as response:
            return Page(str(response.url), response.status, await response.text())

    async def post(self, url: str, form: dict[str, str], **headers: str) -> Page:
        """Send a form as a page of the same host does, and follow the redirects."""
        origin = "/".join(url.split("/")[:3])
        async with self._session.post(url, data=form, headers={"origin": origin, **headers}) as response:
            return Page(str(response.url), response.status, await response.text())

    async def sign_in(self, gateway: str, issuer: str, login: str = "ada", return_path: str = "/auth/me") -> Page:
        """Sign in at an issuer from the gateway's page, through the forms of the issuer, and return the last page."""
        page = await self.get(f"{gateway}/auth/login?issuer={issuer}&return={return_path}")
        for _ in range(MAX_STEPS):
            if page.url.startswith(gateway):
                return page
            action = re.search(r'<form[^>]*action="([^"]*)"', page.text)
            prompt = re.search(r'name="prompt" value="([^"]*)"', page.text)
            assert action, page
            assert prompt, page
            form = {"prompt": prompt[1]} | ({"login": login, "password": "any"} if prompt[1] == "login" else {})
            page = await self.post(urljoin(page.url, unescape(action[1])), form)
        raise AssertionError(page)

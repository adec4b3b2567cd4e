"""HTTP client of a gateway for tests, for any path."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Protocol

import aiohttp
from multidict import CIMultiDictProxy


class Server(Protocol):
    """Gateway that a test runs: in this process (`Running`), or in one of its own (`Served`)."""

    @property
    def url(self) -> str: ...

    @property
    def headers(self) -> dict[str, str]: ...


@dataclass(frozen=True)
class Reply:
    status: int
    headers: CIMultiDictProxy[str]
    text: str

    @property
    def body(self) -> Any:
        """The JSON of the body; None without a body."""
        return json.loads(self.text) if self.text else None


@dataclass(frozen=True)
class ApiClient:
    server: Server
    session: aiohttp.ClientSession

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
    ) -> Reply:
        """Send a request. `headers` replace those with the key. `data`: a body that is sent unchanged."""
        sent = dict(self.server.headers if headers is None else headers)
        payload = data if body is None else json.dumps(body).encode()
        if payload is not None:
            sent.setdefault("content-type", "application/json")
        file = payload if payload is None else BytesIO(payload)  # a large body as bytes is a warning of aiohttp
        async with self.session.request(method, self.server.url + path, data=file, headers=sent) as response:
            return Reply(response.status, response.headers, (await response.read()).decode())

    async def post(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> Reply:
        return await self.send("POST", path, body, headers=headers)

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> Reply:
        return await self.send("GET", path, headers=headers)

    async def __call__(self, path: str, body: object = None, **headers: str) -> Reply:
        """Send a request: a POST if there is a body, else a GET. Underscores in the names of headers become hyphens."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.send("GET" if body is None else "POST", path, body, headers=self.server.headers | more)


@asynccontextmanager
async def api_client(server: Server) -> AsyncGenerator[ApiClient, None]:
    async with aiohttp.ClientSession() as session:
        yield ApiClient(server, session)

"""Channel whose provider has two formats at two addresses: each call goes to the address of its format, without
translation, and the keys are those of one account.
"""

from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import ClientSession, web

from tests.support.gateways import running
from tests.support.providers.every_operation import CHAT
from tests.support.providers.server import FakeProvider, ReceivedRequest, serve_provider
from tests.support.providers.short_responses import MESSAGE

TURNS = [{"role": "user", "content": "Hi"}]


@dataclass
class TwoFormats(FakeProvider):
    """Provider that accepts only the key `good`, and each format only at its own address."""

    paths: list[tuple[str, str]] = field(default_factory=list)

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        key = received.headers.get("x-api-key") or received.headers["authorization"].removeprefix("Bearer ")
        self.paths.append((received.path, key))
        if key != "good":
            return web.json_response({"error": {"message": "no such key", "type": "authentication_error"}}, status=401)
        bodies = {"/v1/chat/completions": CHAT, "/anthropic/v1/messages": MESSAGE}
        return web.json_response(bodies[received.path])


async def call(session: ClientSession, url: str, headers: dict[str, str], body: dict[str, object]) -> object:
    async with session.post(url, json={"model": "m", "max_tokens": 9, **body}, headers=headers) as response:
        assert response.status == 200, await response.text()
        return await response.json()


async def test_each_format_is_called_at_its_address_and_shares_the_keys(tmp_path: Path) -> None:
    async with serve_provider(TwoFormats()) as provider:
        config = (
            f"channels: [{{name: a, protocols: [chat, messages], models: [m], base_url: {provider.url}/v1,"
            f" base_urls: {{messages: {provider.url}/anthropic/v1}}, api_key: [bad, good]}}]"
        )
        async with running(config, tmp_path) as made, ClientSession() as session:
            first = await call(session, f"{made.url}/v1/messages", made.headers, {"messages": TURNS})
            second = await call(session, f"{made.url}/v1/chat/completions", made.headers, {"messages": TURNS})
            third = await call(session, f"{made.url}/v1/messages", made.headers, {"messages": TURNS})
    assert first == third == MESSAGE
    assert second["choices"][0]["message"]["content"] == CHAT["choices"][0]["message"]["content"]  # type: ignore[index]
    messages, chat = "/anthropic/v1/messages", "/v1/chat/completions"
    # the key that was refused at one address is not used at the other
    assert provider.paths == [(messages, "bad"), (messages, "good"), (chat, "good"), (messages, "good")]

"""Errors of providers as callers of the four text formats get them, and the route of refusals without an attempt."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from tests.support.gateways import Running, running
from tests.support.serving import serving
from umg_grpc.wire import TEXT_FORMATS

pytestmark = pytest.mark.asyncio(loop_scope="module")
GENERATE = {
    "chat": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]}),
    "responses": ("/v1/responses", {"input": "Hi"}),
    "messages": ("/v1/messages", {"max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}),
    "native": ("/v1beta/models/{model}:generateContent", {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}),
}


@dataclass(frozen=True)
class Stated:
    """Status that a provider sends, and the status of its caller in each format."""

    status: int
    chat: int
    messages: int

    @property
    def id(self) -> str:
        return str(self.status)


STATUSES = [
    Stated(status, chat, messages)
    for status, chat, messages in (
        *((400, 400, 400), (402, 402, 402), (408, 504, 504), (409, 409, 409), (413, 413, 413), (422, 422, 422)),
        *((424, 502, 502), (429, 429, 429), (451, 451, 451), (500, 502, 502), (503, 503, 529), (529, 503, 529)),
    )
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    """Run a gateway with a channel of each format to a provider that refuses every call; the model is the status."""

    async def refuse(request: web.Request) -> web.Response:
        model = (await request.json()).get("model") or request.path.rpartition("/")[2].partition(":")[0]
        body = {"type": "error", "error": {"message": f"no, {model}", "type": "x"}}
        return web.json_response(body, status=int(model.removeprefix("s")))

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", refuse)
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(app))
        channels = "".join(
            f"- {{name: {name}, protocols: [{name}], base_url: '{url}', api_key: k,"
            f" models: [{{id: '{name}/*', upstream: '*'}}]}}\n"
            for name in TEXT_FORMATS
        )
        yield await stack.enter_async_context(running(f"channels:\n{channels}", tmp_path_factory.mktemp("refusals")))


@pytest.mark.parametrize("face", TEXT_FORMATS)
@pytest.mark.parametrize("upstream", TEXT_FORMATS)
@pytest.mark.parametrize("case", STATUSES, ids=lambda case: case.id)
async def test_a_status_of_a_provider_keeps_its_meaning(
    gateway: Running, case: Stated, upstream: str, face: str
) -> None:
    path, body = GENERATE[face]
    model = f"{upstream}/s{case.status}"
    named = body if face == "native" else body | {"model": model}
    async with (
        aiohttp.ClientSession(headers=gateway.headers) as session,
        session.post(gateway.url + path.format(model=model), json=named) as answer,
    ):
        shown = (await answer.json())["error"]
    assert answer.status == (case.messages if face == "messages" else case.chat)
    assert shown["message"]
    if face == "native":
        assert shown["code"] == answer.status


async def test_a_strict_refusal_names_its_reason_in_the_route(gateway: Running) -> None:
    path, body = GENERATE["chat"]
    headers = gateway.headers | {"x-umg-strict": "true"}
    named = body | {"model": "messages/s400", "seed": 7}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(gateway.url + path, json=named) as answer,
    ):
        assert answer.status == 400
    assert answer.headers["x-umg-route"] == "channel=; attempts=0; reason=messages: untranslatable seed"

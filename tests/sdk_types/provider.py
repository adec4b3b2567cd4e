"""A provider of any text format that keeps the bodies that it is sent, and says little."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

USAGE = {"input_tokens": 1, "output_tokens": 1}
ANSWERS: Mapping[str, Mapping[str, Any]] = {
    "/chat/completions": {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    },
    "/responses": {"id": "resp_1", "object": "response", "model": "m", "status": "completed", "output": []}
    | {"created_at": 1, "usage": USAGE | {"total_tokens": 2}},
    "/messages": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": USAGE}
    | {"content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn", "stop_sequence": None},
    ":generateContent": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    },
    "/embeddings": {"object": "list", "model": "m", "data": [{"object": "embedding", "index": 0, "embedding": [1.0]}]}
    | {"usage": {"prompt_tokens": 1, "total_tokens": 1}},
    ":batchEmbedContents": {"embeddings": [{"values": [1.0]}]},
}


@dataclass
class Provider:
    """What it was sent."""

    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)


@asynccontextmanager
async def keeping_provider() -> AsyncGenerator[Provider, None]:
    """The provider, until the context ends."""
    provider = Provider()

    async def answer(request: web.Request) -> web.Response:
        provider.bodies.append(await request.json())
        return web.json_response(next(said for end, said in ANSWERS.items() if request.path.endswith(end)))

    app = web.Application(client_max_size=2**26)
    app.router.add_post("/{path:.*}", answer)
    async with TestServer(app) as server:
        provider.url = str(server.make_url("")).rstrip("/")
        yield provider

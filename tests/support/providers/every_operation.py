"""Fake provider of all operations of the chat family: text, streams, embeddings, rankings. Its first requests may fail
or stall.
"""

import asyncio
from dataclasses import dataclass, field

from aiohttp import web

from tests.support.providers.server import FakeProvider, Json, ReceivedRequest, response_of

CHOICE: Json = {"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}
USAGE: Json = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
CHAT: Json = {"id": "c-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [CHOICE], "usage": USAGE}
EMBEDDING: Json = {
    "object": "list",
    "model": "m",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}],
    "usage": {"prompt_tokens": 3, "total_tokens": 3},
}
RANKING: Json = {"id": "r-1", "results": [{"index": 0, "relevance_score": 0.5}], "usage": {"total_tokens": 5}}
STREAM = b"".join(
    b"data: %b\n\n" % data
    for data in (
        b'{"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
        b'"delta":{"role":"assistant","content":"Hello"},"finish_reason":null}]}',
        b'{"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,'
        b'"delta":{},"finish_reason":"stop"}]}',
        b'{"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],'
        b'"usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}',
        b"[DONE]",
    )
)


@dataclass
class EveryOperation(FakeProvider):
    """Fake provider that answers each request by its path."""

    failures: list[int] = field(default_factory=list)  # statuses of the next answers
    silent: int = 0  # number of next requests that get no response
    stalled: asyncio.Event = field(default_factory=asyncio.Event)  # set once one of them has arrived

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if self.silent:
            self.silent -= 1
            self.stalled.set()
            await asyncio.Event().wait()
        if self.failures:
            status = self.failures.pop(0)
            return web.json_response({"error": {"message": "no", "code": "failed"}}, status=status)
        if received.path.endswith("/embeddings"):
            return response_of(EMBEDDING)
        if received.path.endswith("/rerank"):
            return response_of(RANKING)
        return response_of(STREAM if received.json.get("stream") else CHAT)

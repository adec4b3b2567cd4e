"""Fake provider of chat completions whose stream waits for the test."""

import asyncio
import json
from dataclasses import dataclass, field

from aiohttp import web


@dataclass
class WaitingProvider:
    """Fake provider whose answer waits after its first piece until the test sets `go_on`, or the caller disconnects."""

    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    left: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(_chunk("one "))
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.left.set()
            raise
        await response.write(_chunk("two", "stop") + b"data: [DONE]\n\n")
        return response


def _chunk(text: str, finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "waiting", "choices": [choice]}
    return f"data: {json.dumps(chunk)}\n\n".encode()

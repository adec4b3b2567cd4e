"""Provider of chat completions, embeddings, reranking and images that counts the part of each call that it served.

It reads requests by itself, so that it also counts a request whose connection was closed at once after it was sent, as
a killed gateway does.
"""

import asyncio
import base64
import json
import random
import re
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self

from tests.support.images import PNG

INPUT_TOKENS = 7
"""Tokens that it counts for every prompt; less than the gateway's estimate."""
CALL_ID = re.compile(rb"call-\d+-\d+")
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
OWN_TOKENS = 45
"""Tokens of a response without a maximum, or with a larger one."""
IMAGE = base64.b64encode(PNG).decode()
TOKEN = " a"  # one token of the common vocabularies


@dataclass
class Sent:
    requests: int = 0
    faults: int = 0
    complete: int = 0
    """Answers that were written to their end."""
    output_tokens: int = 0
    """Most output tokens of one response, also of one that was not written to its end."""
    images: int = 0
    """Images of the last answer."""


@dataclass
class Provider:
    seed: int
    pause: float
    """Most seconds before a response."""
    has_faults: bool = True
    """Whether some answers are errors, cut streams or closed connections."""
    sent: defaultdict[str, Sent] = field(default_factory=lambda: defaultdict(Sent))
    url: str = ""

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[Self, None]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        try:
            yield self
        finally:
            server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while await self._answer(reader, writer):
                pass
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request. Return whether the connection stays open."""
        head = await reader.readuntil(b"\r\n\r\n")
        length = LENGTH.search(head)
        body = await reader.readexactly(int(length[1]) if length else 0)
        found = CALL_ID.search(body)
        assert found is not None, body
        call, path = found[0].decode(), head.split(b" ", 2)[1].decode()
        return await self.respond(writer, call, path, body)

    async def respond(self, writer: asyncio.StreamWriter, call: str, path: str, body: bytes) -> bool:
        """Answer a request for the call with this id. Return whether the connection stays open."""
        sent = self.sent[call]
        sent.requests += 1
        # its own generator: the order of the calls differs between runs
        chance = random.Random(f"{self.seed} {call} {sent.requests}")
        await asyncio.sleep(chance.random() * self.pause)
        fault = chance.random() if self.has_faults else 1.0
        if fault < 0.05:
            sent.faults += 1
            await _write(writer, b"HTTP/1.1 500 Error", "application/json", b'{"error":{"message":"down"}}')
            return True
        if fault < 0.07:
            sent.faults += 1
            return False
        request = json.loads(body)
        if request.get("stream"):
            return await self._stream(writer, request, sent, cut=fault < 0.1)
        answer = ANSWERS[path.rpartition("/")[2]](request)
        if "n" in request:
            del answer["data"][chance.randint(1, request["n"]) :]  # the others have failed
            sent.images = len(answer["data"])
        await _write(writer, b"HTTP/1.1 200 OK", "application/json", json.dumps(answer).encode())
        sent.complete += 1
        sent.output_tokens = max(sent.output_tokens, _most(request))
        return True

    async def _stream(self, writer: asyncio.StreamWriter, request: dict[str, Any], sent: Sent, *, cut: bool) -> bool:
        most = _most(request)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for number in range(most):
            if cut and number > most // 2:
                sent.faults += 1
                return False
            await _write_event(writer, _chunk([{"index": 0, "delta": {"role": "assistant", "content": TOKEN}}]))
            sent.output_tokens = max(sent.output_tokens, number + 1)
            await asyncio.sleep(0.002)
        last = [{"index": 0, "delta": {}, "finish_reason": "length"}]
        await _write_event(writer, _chunk(last, usage=_usage(most)))
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        await writer.drain()
        sent.complete += 1
        return True


def _most(request: dict[str, Any]) -> int:
    stated = request.get("max_completion_tokens") or request.get("max_tokens") or OWN_TOKENS
    return min(OWN_TOKENS, int(stated)) if "messages" in request else 0


def _usage(output_tokens: int) -> dict[str, int]:
    total = INPUT_TOKENS + output_tokens
    return {"prompt_tokens": INPUT_TOKENS, "completion_tokens": output_tokens, "total_tokens": total}


def _chunk(choices: list[dict[str, Any]], **fields: object) -> dict[str, Any]:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": choices, **fields}


def _chat(request: dict[str, Any]) -> dict[str, Any]:
    most = _most(request)
    message = {"role": "assistant", "content": TOKEN * most}
    choices = [{"index": 0, "message": message, "finish_reason": "length"}]
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": choices,
        "usage": _usage(most),
    }


def _embeddings(_: dict[str, Any]) -> dict[str, Any]:
    data = [{"object": "embedding", "index": 0, "embedding": [0.6, 0.8]}]
    return {"object": "list", "model": "e", "data": data, "usage": _usage(0)}


def _rerank(_: dict[str, Any]) -> dict[str, Any]:
    return {"id": "r", "model": "r", "results": [{"index": 0, "relevance_score": 0.5}], "usage": _usage(0)}


def _images(request: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": INPUT_TOKENS, "output_tokens": 0, "total_tokens": INPUT_TOKENS}
    return {"created": 1, "data": [{"b64_json": IMAGE}] * request["n"], "usage": usage}


ANSWERS = {"completions": _chat, "embeddings": _embeddings, "rerank": _rerank, "generations": _images}
"""Answers by the last part of the path."""


async def _write(writer: asyncio.StreamWriter, status: bytes, media_type: str, body: bytes) -> None:
    head = f"\r\ncontent-type: {media_type}\r\ncontent-length: {len(body)}\r\n\r\n"
    writer.write(status + head.encode() + body)
    await writer.drain()


async def _write_event(writer: asyncio.StreamWriter, event: dict[str, Any]) -> None:
    data = f"data: {json.dumps(event)}\n\n".encode()
    writer.write(b"%x\r\n%b\r\n" % (len(data), data))
    await writer.drain()

"""Fake provider of the benchmark: its responses are encoded before the first request, and it reads only the necessary
members of requests.

`python -m bench.fake_provider` prints its port. `GET /served` returns the number of answered calls by credential,
`POST /release` ends all held streams.
"""

import asyncio
import gc
import re
from collections import Counter
from dataclasses import dataclass, field

import msgspec
import uvloop

from bench import chat_bodies, embedding_bodies

CHAT = f"POST {chat_bodies.PATH} ".encode()
EMBEDDINGS = f"POST {embedding_bodies.PATH} ".encode()
MODEL = re.compile(rb'"model": ?"([^"]+)"')
ENCODING = re.compile(rb'"encoding_format": ?"([^"]+)"')
CREDENTIAL = re.compile(rb"\r\nauthorization: bearer ([^\r]*)")
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)")
JSON_HEAD = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


@dataclass
class Shared:
    """State that all connections of the fake provider share."""

    served: Counter[str] = field(default_factory=Counter)
    held: set["Connection"] = field(default_factory=set)


class Connection(asyncio.Protocol):
    """Connection that answers one call at a time."""

    transport: chat_bodies.Wire

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._received = b""
        self._usage = False
        self._sent = 0  # number of chunks of the current stream
        self._held = chat_bodies.HELD  # model of the stream that is held open
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, chat_bodies.Wire)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._shared.held.discard(self)
        if self._timer:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        received = self._received + data if self._received else data
        end = received.find(b"\r\n\r\n")
        head = received[:end].lower()
        length = LENGTH.search(head)
        if end < 0 or len(received) < end + 4 + (int(length[1]) if length else 0):
            self._received = received
            return
        self._received = b""
        if received.startswith((CHAT, EMBEDDINGS)):
            credential = CREDENTIAL.search(head)
            self._shared.served[credential[1].decode() if credential else ""] += 1
            answer = self._chat if received.startswith(CHAT) else self._embed
            answer(received[end + 4 :])
        elif received.startswith(b"GET /served "):
            self.transport.write(_json(msgspec.json.encode(self._shared.served)))
        elif received.startswith(b"POST /release "):
            self.transport.write(_json(msgspec.json.encode(len(self._shared.held))))
            for connection in tuple(self._shared.held):
                connection.release()
        else:
            self.transport.write(_json(b'{"error":{"message":"no such path"}}', b"404 Not Found"))

    def release(self) -> None:
        """End the stream that this connection holds open."""
        self._shared.held.discard(self)
        self._end(self._held)

    def _chat(self, body: bytes) -> None:
        model = MODEL.search(body)
        self._usage = b'"include_usage"' in body
        match model[1].decode() if model else None:
            case chat_bodies.SMALL:
                self.transport.write(SMALL)
            case chat_bodies.LARGE:
                self.transport.write(LARGE)
            case chat_bodies.DELAYED | chat_bodies.NEAR as delayed:
                self._timer = asyncio.get_running_loop().call_later(
                    chat_bodies.DELAYED_MODELS[delayed], self.transport.write, LATE[delayed]
                )
            case chat_bodies.BURST:
                self.transport.write(BURST[self._usage])
            case chat_bodies.PACED:
                self._begin(chat_bodies.PACED)
                self._pace()
            case chat_bodies.HELD | chat_bodies.SLOW as held:
                self._held = held
                self._begin(held)
                self._shared.held.add(self)
                self._hold()
            case other:  # no model of the benchmark
                self._unknown(other)

    def _embed(self, body: bytes) -> None:
        model, encoding = (found and found[1].decode() for found in (MODEL.search(body), ENCODING.search(body)))
        answer = VECTORS.get((model, encoding or "float"))
        if answer is None:
            self._unknown(f"{model} in {encoding}")
        else:
            self.transport.write(answer)

    def _unknown(self, name: str | None) -> None:
        self.transport.write(_json(b'{"error":{"message":"no such model"}}', b"404 Not Found"))
        print(f"asked for {name}", flush=True)

    def _begin(self, model: str) -> None:
        self._sent = 0
        self.transport.write(STREAM_HEAD + _chunked(chat_bodies.opening(model)))

    def _pace(self) -> None:
        self.transport.write(PACED[self._sent])
        self._sent += 1
        if self._sent < chat_bodies.CHUNKS:
            self._timer = asyncio.get_running_loop().call_later(chat_bodies.PACE_SECONDS, self._pace)
        else:
            self._end(chat_bodies.PACED)

    def _hold(self) -> None:
        self.transport.write(_chunked(chat_bodies.chunk(self._held, self._sent)))
        self._sent += 1
        self._timer = asyncio.get_running_loop().call_later(chat_bodies.HELD_MODELS[self._held], self._hold)

    def _end(self, model: str) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        self.transport.write(_chunked(*chat_bodies.ending(model, usage=self._usage)) + LAST_CHUNK)


def _json(body: bytes, status: bytes = b"200 OK") -> bytes:
    return JSON_HEAD % (status, len(body)) + body


def _chunked(*events: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in events)


def _burst(*, usage: bool) -> bytes:
    model = chat_bodies.BURST
    chunks = (chat_bodies.chunk(model, i) for i in range(chat_bodies.CHUNKS))
    events = (chat_bodies.opening(model), *chunks, *chat_bodies.ending(model, usage=usage))
    return STREAM_HEAD + _chunked(*events) + LAST_CHUNK


SMALL = _json(chat_bodies.answer())
LARGE = _json(chat_bodies.answer(chat_bodies.LARGE))
LATE = {model: _json(chat_bodies.answer(model)) for model in chat_bodies.DELAYED_MODELS}
BURST = {usage: _burst(usage=usage) for usage in (False, True)}
VECTORS: dict[tuple[str | None, str], bytes] = {
    (request.model, request.encoding): _json(embedding_bodies.answer(request)) for request in embedding_bodies.REQUESTS
}
PACED = [_chunked(chat_bodies.chunk(chat_bodies.PACED, i)) for i in range(chat_bodies.CHUNKS)]


async def main() -> None:
    """Run the fake provider until the process is killed."""
    shared = Shared()
    server = await asyncio.get_running_loop().create_server(lambda: Connection(shared), "127.0.0.1", 0, backlog=1024)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    gc.disable()  # there are no reference cycles
    uvloop.run(main())

"""Last events of a large answer: they are encoded in a thread, and a drain may end the response meanwhile."""

import asyncio
import threading
from collections.abc import Iterator

from http_facade.exchange.text_stream_encoding import EncodedStream
from umg_grpc.base.errors import UmgError, shutting_down
from umg_grpc.v1 import pb
from umg_grpc.wire.core.stream_memory_limits import FREE_BYTES, StreamMemory


class SlowEncoder:
    """Encoder whose last events are two parts; the first is encoded when `go_on` is set."""

    def __init__(self) -> None:
        self.retained_bytes = FREE_BYTES + 1
        self.began, self.go_on = threading.Event(), threading.Event()
        self.seen = list[str]()

    def feed(self, message: pb.StreamGenerateResponse) -> bytes:
        return b""

    def close(self) -> bytes:
        return b"".join(self.closing())

    def closing(self) -> Iterator[bytes]:
        self.seen.append("begins")
        self.began.set()
        assert self.go_on.wait(30)
        self.seen.append("ends")
        yield b"first"
        self.seen.append("goes on")
        yield b"second"

    def error(self, error: UmgError) -> bytes:
        self.seen.append("error")
        return b"error"


async def test_a_drain_waits_for_the_thread_that_uses_the_encoder_and_nothing_is_made_after_it() -> None:
    encoder = SlowEncoder()
    encoded = EncodedStream(encoder, StreamMemory())

    sent = list[bytes]()

    async def send(frames: bytes) -> None:
        sent.append(frames)

    closing = asyncio.create_task(encoded.close(send))
    await asyncio.to_thread(encoder.began.wait)
    cut = asyncio.create_task(asyncio.to_thread(encoded.cut, shutting_down()))
    while not encoded.is_cut:  # noqa: ASYNC110 - set by a thread
        await asyncio.sleep(0)
    encoder.go_on.set()
    assert await cut == b"error"
    await closing
    assert sent == [b"first"]
    assert await encoded.error(shutting_down()) == b""
    assert encoder.seen == ["begins", "ends", "error"]

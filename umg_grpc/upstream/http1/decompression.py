"""Decompression of response bodies in steps, with a limit of their size."""

import asyncio
import itertools
import zlib
from collections.abc import Iterable, Iterator

from umg_grpc.base.errors import UmgError
from umg_grpc.upstream.http1.connection_errors import broken, too_large
from umg_grpc.upstream.http1.response import MAX_ERROR_BODY_BYTES, Fetched, ReceivedResponse

STEP_BYTES = 256 << 10
"""Decompressed bytes of one step, about half a millisecond of work; larger bodies are decompressed in a thread."""
INFLATED_ENCODINGS = {b"gzip", b"deflate"}


class Inflater:
    """Decompressor of one response body that arrives in parts."""

    def __init__(self, encodings: tuple[bytes, ...], max_bytes: int) -> None:
        """Create a decompressor. `encodings`: the one applied last is first; unknown ones are ignored; `max_bytes`:
        maximum size of a decompressed part. Raise UmgError(UPSTREAM_CUT) for br and zstd, which no request accepts.
        """
        self._decoders = [_Decoder(encoding, max_bytes) for encoding in encodings if encoding in INFLATED_ENCODINGS]
        if unrequested := {b"br", b"zstd"}.intersection(encodings):
            raise broken(f"the body is encoded as {unrequested.pop().decode()}, which was not requested")

    def feed(self, data: bytes) -> Iterable[bytes]:
        """Return an iterator over the decompressed parts, each made on demand. It raises UmgError(UPSTREAM_CUT)."""
        pieces: Iterable[bytes] = (data,)
        for decoder in self._decoders:
            pieces = itertools.chain.from_iterable(map(decoder.feed, pieces))
        return pieces

    def close(self) -> None:
        """Raise UmgError(UPSTREAM_CUT) if the compressed body is incomplete."""
        for decoder in self._decoders:
            decoder.close()


class _Decoder:
    """Decompressor for one content encoding."""

    def __init__(self, encoding: bytes, max_bytes: int) -> None:
        self._encoding = encoding.decode()
        self._max_bytes = max_bytes
        self._inflater = zlib.decompressobj()
        self._is_open = False  # whether the end of the data is missing

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            while data:  # a gzip body may have several members
                if not self._is_open:
                    self._inflater, self._is_open = zlib.decompressobj(self._window_bits(data)), True
                piece = b""
                while (data or len(piece) == self._max_bytes) and not self._inflater.eof:
                    piece = self._inflater.decompress(data, self._max_bytes)
                    data = self._inflater.unconsumed_tail
                    if piece:
                        yield piece
                if self._inflater.eof:
                    self._is_open, data = False, self._inflater.unused_data
        except zlib.error as error:
            raise broken(f"the body cannot be inflated: {error}") from None

    def close(self) -> None:
        if self._is_open:
            raise broken(f"the body ends before its {self._encoding} does")

    def _window_bits(self, data: bytes) -> int:
        # some providers send raw deflate, without a zlib header
        return -zlib.MAX_WBITS if self._encoding == "deflate" and data[0] & 0xF != 8 else 32 + zlib.MAX_WBITS


async def inflate(response: ReceivedResponse, limit: int) -> Fetched:
    """Return a complete response with its body decompressed. The body of an error is truncated at `limit` bytes. Raise
    UmgError: UPSTREAM_FAILED for a larger body of a success, UPSTREAM_CUT for an invalid one.
    """
    body, encodings = bytes(response.body), response.encodings
    response.body.clear()
    if response.refused:
        body = _inflate_refusal(body, encodings)
    elif encodings:
        first = _inflate_in_one_step(body, encodings)
        body = await asyncio.to_thread(_inflate, body, encodings, limit) if first is None else first
    return Fetched(response.status, response.headers, body)


def _steps(body: bytes, encodings: tuple[bytes, ...], max_bytes: int) -> Iterator[bytes]:
    inflater = Inflater(encodings, max_bytes)
    yield from inflater.feed(body)
    inflater.close()


def _inflate_in_one_step(body: bytes, encodings: tuple[bytes, ...]) -> bytes | None:
    steps = _steps(body, encodings, STEP_BYTES)
    first = next(steps, b"")
    return first if next(steps, None) is None else None


def _inflate(body: bytes, encodings: tuple[bytes, ...], limit: int) -> bytes:
    """Return the decompressed body. Its size is determined first, without storing the body, so that a large one takes
    no memory. Raise UmgError(UPSTREAM_FAILED) for more than `limit` bytes.
    """
    size = 0
    for step in _steps(body, encodings, STEP_BYTES):
        size += len(step)
        if size > limit:
            raise too_large(limit)
    return b"".join(_steps(body, encodings, size))


def _inflate_refusal(body: bytes, encodings: tuple[bytes, ...]) -> bytes:
    inflated = bytearray()
    try:
        for step in _steps(body, encodings, MAX_ERROR_BODY_BYTES):
            inflated += step
            if len(inflated) >= MAX_ERROR_BODY_BYTES:
                break
    except UmgError:
        pass  # the status is sufficient
    return bytes(inflated[:MAX_ERROR_BODY_BYTES])

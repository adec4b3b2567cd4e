"""Reading answers: the bytes of a connection -> status, headers and body."""

import zlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from multidict import CIMultiDict

from umg_grpc.errors import Failure, UmgError
from umg_grpc.upstream.lean.faults import BrokenError, DisconnectedError
from umg_grpc.v1 import pb

MAX_ANSWER_BYTES = 256 << 20
MAX_REFUSAL_BYTES = 64 << 10  # of an answer that says why a call was refused, no more is looked at
REFUSAL_SECONDS = 5.0  # from its first bytes, for the rest of it
MAX_HEAD_BYTES = 64 << 10


class Headers(Mapping[str, str]):
    """Looked up in any case; of a name that stands twice, the first. Decoded when somebody looks."""

    def __init__(self, fields: list[tuple[bytes, bytes]]) -> None:
        self._fields = fields

    @cached_property
    def _decoded(self) -> CIMultiDict[str]:
        return CIMultiDict(
            (name.decode("latin-1"), value.rstrip(b" \t").decode("utf-8", "surrogateescape"))
            for name, value in self._fields
        )

    def __getitem__(self, name: str) -> str:
        return self._decoded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoded)

    def __len__(self) -> int:
        return len(self._decoded)


class Fetched(NamedTuple):
    """A provider's answer, read to its end."""

    status: int
    headers: Mapping[str, str]  # looked up in any case
    body: bytes


class AnswerReader:
    """A connection's bytes -> its answers, one after the other. Knows no sockets.

    Of an answer that says why a call was refused, the status is enough: its body may end as it likes.
    """

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        # where aiohttp is lenient too: with providers that write heads as nobody should
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self.start()

    def start(self) -> None:
        """Awaits the next answer, and lets go of the last."""
        self.keep = False  # the connection is good for another exchange
        self._headed = False
        self._whole = False
        self._status = 0
        self._fields: list[tuple[bytes, bytes]] = []
        self._headers: list[tuple[bytes, bytes]] = []
        self._parts: list[bytes] = []
        self._size = 0
        self._limit = 0
        self._received = 0

    @property
    def began(self) -> bool:
        """Whether anything came."""
        return self._received > 0

    @property
    def refused(self) -> bool:
        """Whether it is known by now that the call was refused."""
        return self._headed and self._status != 200

    def feed(self, data: bytes) -> bool:
        """Whether the answer is whole now, or as much of it is there as is looked at.

        Raises BrokenError for what is no HTTP and UmgError(UPSTREAM_FAILED) for a head of more than 64 KiB.
        """
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self.keep = False
            if not self._whole and not self.refused:
                raise BrokenError(f"{error}") from None
            return True
        if self._received > MAX_HEAD_BYTES and self._head_size() > MAX_HEAD_BYTES:
            raise _too_large("the head of the provider's answer is larger than 64 KiB")
        if self._size > self._limit:
            self.keep = False
            return True
        return self._whole

    def close(self) -> None:
        """The provider sends no more. Raises DisconnectedError or BrokenError unless that ends an answer."""
        if not self._headed:
            raise DisconnectedError("the connection was closed before an answer began")
        if self.refused:
            return
        names = {name.lower(): value for name, value in self._headers}
        if b"content-length" in names or b"chunked" in names.get(b"transfer-encoding", b"").lower():
            raise BrokenError(f"the connection was closed after {self._size} bytes of the body")

    def answer(self) -> Fetched:
        """What was read. Raises UmgError(UPSTREAM_FAILED) for a body of more than 256 MiB, BrokenError for one that
        cannot be inflated.
        """
        parts, self._parts = self._parts, []
        limit = self._limit
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        for name, value in self._headers:
            if len(name) == len("content-encoding") and name.lower() == b"content-encoding":
                body = self._inflated(body, value.strip().lower())
        if len(body) > limit:
            if self._status == 200:
                raise too_large()
            body = body[:limit]
        return Fetched(self._status, Headers(self._headers), body)

    def _inflated(self, body: bytes, encoding: bytes) -> bytes:
        try:
            return _inflated(body, encoding, self._limit, whole=not self.refused)
        except BrokenError:
            if not self.refused:
                raise
            return b""

    def _head_size(self) -> int:
        if not self._headed:
            return self._received
        return sum(len(name) + len(value) for name, value in self._headers)

    # what the parser calls

    def on_message_begin(self) -> None:
        if self._whole:
            raise ValueError("more than the answer came")  # ends `feed_data`: see there

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if 100 <= status < 200 and status != 101:
            return  # another head follows
        self._headed = True
        self._status = status
        self._limit = MAX_ANSWER_BYTES if status == 200 else MAX_REFUSAL_BYTES
        self._headers, self._fields = self._fields, []  # what follows a chunked body is not looked at

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)
        self._size += len(body)

    def on_message_complete(self) -> None:
        if self._headed:
            self._whole = True
            self.keep = self._parser.should_keep_alive()
        else:
            self._fields = []


def too_large() -> UmgError:
    """For a body of more than 256 MiB."""
    return _too_large("the provider's answer is larger than 256 MiB")


def _too_large(message: str) -> UmgError:
    return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).of(Failure.AMBIGUOUS)


def _inflated(body: bytes, encoding: bytes, limit: int, *, whole: bool) -> bytes:
    """The body of a provider that compresses what it was asked not to, up to just above the limit."""
    if encoding in {b"br", b"zstd"}:
        raise BrokenError(f"the body is encoded as {encoding.decode()}, which was not asked for")
    if encoding not in {b"gzip", b"deflate"} or not body:
        return body
    # some call deflate what has no zlib header
    bits = -zlib.MAX_WBITS if encoding == b"deflate" and body[0] & 0xF != 8 else 32 + zlib.MAX_WBITS
    inflated = bytearray()
    try:
        while body and len(inflated) <= limit:  # gzip may be several, one after the other
            inflater = zlib.decompressobj(bits)
            inflated += inflater.decompress(body, limit + 1 - len(inflated))
            if not inflater.eof:
                if whole and len(inflated) <= limit:
                    raise BrokenError(f"the body ends before its {encoding.decode()} does")
                break
            body = inflater.unused_data
    except zlib.error as error:
        raise BrokenError(f"the body cannot be inflated: {error}") from None
    return bytes(inflated)

"""HTTP responses of providers: parsing of received bytes into status, headers and body."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar, overload

import msgspec
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from umg_grpc.upstream.http1.connection_errors import broken, disconnected, head_too_large, too_large

MAX_RESPONSE_BYTES = 64 << 20
"""Maximum bytes of a decompressed response, twice those of a text response with several large images in base64."""
MAX_ERROR_BODY_BYTES = 64 << 10  # only this much of an error response is read
MAX_HEAD_BYTES = 64 << 10


Default = TypeVar("Default")


class Headers(Mapping[str, str]):
    """Response headers by case-insensitive name; the first of repeated ones counts. Values are decoded on look-up."""

    def __init__(self, values_by_name: Mapping[bytes, bytes]) -> None:
        self.values_by_name = values_by_name
        """Values as they were sent, by lower-case names."""

    def __getitem__(self, name: str) -> str:
        return _text(self.values_by_name[_key(name)])

    @overload
    def get(self, name: str, default: None = None, /) -> str | None: ...
    @overload
    def get(self, name: str, default: str | Default, /) -> str | Default: ...
    def get(self, name: str, default: str | Default | None = None, /) -> str | Default | None:
        """Return a header's value, or `default`. Faster than `Mapping.get`, which handles an exception."""
        value = self.values_by_name.get(_key(name))
        return default if value is None else _text(value)

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name in self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)


@lru_cache(maxsize=256)  # callers look for few names
def _key(name: str) -> bytes:
    return name.lower().encode("latin-1", "replace")


def _text(value: bytes) -> str:
    return value.rstrip(b" \t").decode("utf-8", "replace")


NO_HEADERS = Headers({})


class Fetched(NamedTuple):
    """Complete HTTP response of a provider: status, headers and body."""

    status: int
    headers: Headers
    body: bytes


class ReceivedResponse(msgspec.Struct, eq=False):
    """HTTP response while it is received; parts that have not arrived have defaults. An error response may have only
    its status, as its body may be incomplete or malformed.
    """

    limit: int | None  # maximum size of the body, None for a stream
    has_body: bool = True  # False for a response to HEAD
    body: bytearray = bytearray()  # received and not taken, perhaps compressed
    has_head: bool = False
    refused: bool = False  # an error response, whose head was received
    status: int = 0
    fields: Sequence[bytes] = ()  # names and values of headers in turn, as they were sent, without the trailers
    headers: Headers = NO_HEADERS
    complete: bool = False
    keep: bool = False  # the connection can serve another exchange
    received: int = 0  # bytes of the head, or more
    size: int = 0  # bytes of the body
    content_length: int = 0  # size of the body, if the head states it
    encodings: tuple[bytes, ...] = ()  # content encodings in lower case, the last applied first

    @property
    def content_type(self) -> str:
        """Media type in lower case, without parameters; "" if the response states none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def close(self) -> None:
        """Handle the closed connection, which ends a body without a length. Raise UmgError(UPSTREAM_CUT) for others."""
        if not self.has_head:
            raise disconnected("the connection was closed before a response began")
        if self.refused:
            return
        names = self.headers.values_by_name
        if b"content-length" in names or b"chunked" in names.get(b"transfer-encoding", b"").lower():
            raise broken(f"the connection was closed after {self.size} bytes of the body")


class ResponseParser:
    """Parser of received bytes into the consecutive responses of one connection, without I/O."""

    def __init__(self) -> None:
        self._received = bytearray()  # parts of the body that `feed` has not taken yet
        self.on_body: Callable[[bytes], None] = self._received.extend  # a stream has a part for each event
        self._parser = HttpResponseParser(self)
        # for providers that send malformed heads
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._fields: list[bytes] = []
        self.response = ReceivedResponse(None)
        """Response that `feed` fills, set before each request. After a response to HEAD no connection is reused."""

    def close(self) -> None:
        """Release the library's parser: it refers to this object, and both would wait for a garbage collection."""
        del self._parser

    def feed(self, data: bytes) -> bool:
        """Parse received bytes. Return whether the response is complete; an error above its size limit counts as
        complete. Raise UmgError: UPSTREAM_CUT for bytes that are not HTTP, UPSTREAM_FAILED for headers of more than 64
        KiB and for a body above the size limit, also if its headers only state this size.
        """
        response, had_head, malformed = self.response, self.response.has_head, ""
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            malformed = f"{error}" or type(error).__name__
        if received := self._received:
            response.body += received
            response.size += len(received)
            received.clear()
        if malformed:
            response.received += len(data)
            response.keep = False
            if not response.complete and not response.refused:
                raise broken(malformed)
            return True
        if not had_head:
            response.received += len(data)
            if response.received > MAX_HEAD_BYTES:
                _check_head(response)
        limit = response.limit
        if limit is not None and (response.size > limit or response.content_length > limit):
            return _end_at_limit(response, limit)
        return response.complete

    # callbacks of the parser

    def on_message_begin(self) -> None:
        if self.response.complete:
            raise ValueError("more than the response came")  # ends `feed_data`, see `feed`

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields += (name, value)

    def on_headers_complete(self) -> None:
        status, response = self._parser.get_status_code(), self.response
        if not 200 <= status < 300:
            if 100 <= status < 200 and status != 101:
                return  # another head follows
            response.refused, response.limit = True, MAX_ERROR_BODY_BYTES
        response.has_head = True
        response.status = status
        fields, self._fields = self._fields, []
        response.fields = fields
        # from the last header to the first one, whose value remains if the name is repeated
        values_by_name = dict(zip(map(bytes.lower, fields[-2::-2]), fields[::-2], strict=True))
        response.headers = Headers(values_by_name)
        if not response.has_body:
            response.complete = True  # the parser itself expects the body that the head describes
        elif b"content-length" in values_by_name:
            response.content_length = int(values_by_name[b"content-length"])
        if b"content-encoding" in values_by_name:
            pairs = zip(fields[::2], fields[1::2], strict=True)
            values = [value for name, value in pairs if name.lower() == b"content-encoding"]
            response.encodings = tuple(part.strip().lower() for part in reversed(b",".join(values).split(b",")))

    def on_message_complete(self) -> None:
        response = self.response
        if response.has_head:
            response.complete = True
            response.keep = self._parser.should_keep_alive()
        self._fields = []  # trailers of a chunked body, or headers of an informational response


def _check_head(response: ReceivedResponse) -> None:
    size = sum(map(len, response.fields)) if response.has_head else response.received
    if size > MAX_HEAD_BYTES:
        response.has_head = response.refused = False
        raise head_too_large()


def _end_at_limit(response: ReceivedResponse, limit: int) -> bool:
    """Return whether an error response is complete or has more than `limit` bytes."""
    if not response.refused:
        response.keep = False
        response.body.clear()
        raise too_large(limit)
    if response.size > limit:
        response.keep = False
        return True
    return response.complete

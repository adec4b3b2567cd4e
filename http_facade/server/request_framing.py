"""Boundaries between the HTTP requests of one connection, found in the received bytes without an HTTP parser.

`client_connections` uses them to limit the time of the headers' arrival, and to take the body of a short request from
the bytes. Requests are validated by aiohttp's parser alone, and longer bodies are received by `request_bodies`.
"""

from math import inf

HEADERS_END, LINE_END = b"\r\n\r\n", b"\r\n"
_LENGTH, _CODING, _UPGRADE = b"\r\ncontent-length:", b"\r\ntransfer-encoding:", b"\r\nupgrade:"
_EXPECT = b"\r\nexpect:"
LENGTH_CHARACTERS = len(_LENGTH)
MAX_LENGTH_DIGITS = 20
"""Most digits, after zeros, of a length that the HTTP parser accepts, which is a number of 64 bits."""


def split_request(data: bytes) -> tuple[bytes, bytes] | None:
    """Return the headers and the body of the POST request in `data`; None if that is not exactly one complete one. The
    returned headers declare an empty body, so that aiohttp's parser validates them but creates no stream for the body.
    """
    head, _, body = data.partition(HEADERS_END)
    lowered = head.lower()
    if (at := lowered.find(_LENGTH)) < 0 or not head.startswith(b"POST ") or not body:
        return None
    at += LENGTH_CHARACTERS
    length, end, rest = head[at:].partition(LINE_END)
    digits = length.strip(b" \t").lstrip(b"0")  # the parser accepts any number of zeros
    if digits != b"%d" % len(body) or _CODING in lowered or _UPGRADE in lowered or _EXPECT in lowered:
        return None
    return b"%b 0%b%b%b" % (head[:at], end, rest, HEADERS_END), body


class RequestFraming:
    """Tracker of request boundaries in the bytes of one connection. It is exact for valid requests only: the HTTP
    parser rejects an invalid one. After a request that may switch the protocol, no boundaries are found.
    """

    __slots__ = ("_in_chunks", "_in_trailers", "_part", "_unread", "is_between_requests", "is_in_headers")

    def __init__(self) -> None:
        self._part = b""  # incomplete headers, or an incomplete line of a chunked body
        self._unread: float = 0  # bytes of the body or of its chunk that are still to come; infinite if unknown
        self._in_chunks = self._in_trailers = False
        self.is_between_requests = True  # whether the next byte begins a request
        self.is_in_headers = False  # whether the headers of a request have begun and are incomplete

    def feed(self, data: bytes) -> int:
        """Process the next bytes. Return the number of requests whose headers end in them."""
        begun = 0
        while data:
            if self._unread:
                read = int(min(self._unread, len(data)))
                self._unread -= read
                data = data[read:]
                continue
            # empty lines before a request are allowed
            data = self._part + data if self._in_chunks else (self._part + data).lstrip(LINE_END)
            text, found, data = data.partition(LINE_END if self._in_chunks else HEADERS_END)
            self._part = b"" if found else text
            if not found:
                break
            if self._in_chunks:
                self._read_chunk_line(text)
                continue
            begun += 1
            headers = text.lower()
            if _UPGRADE in headers or headers.startswith(b"connect "):
                self._unread = inf
            elif _CODING in headers:
                self._in_chunks = True
            elif (at := headers.find(_LENGTH)) >= 0:
                self._unread = _parse_length(headers[at + LENGTH_CHARACTERS :].partition(LINE_END)[0])
        self.is_between_requests = not (self._part or self._unread or self._in_chunks)
        self.is_in_headers = bool(self._part) and not self._in_chunks
        return begun

    def is_incomplete(self) -> bool:
        """Return whether a request has arrived only in part. False also if the end of the request cannot be found."""
        return not self.is_between_requests and self._unread != inf

    def _read_chunk_line(self, line: bytes) -> None:
        """Process a chunked body's line: the next chunk's size, or a trailer; an empty line ends the trailers."""
        if self._in_trailers:
            self._in_chunks = self._in_trailers = bool(line)
            return
        try:
            size = int(line.partition(b";")[0], 16)
        except ValueError:
            self._unread = inf
            return
        self._in_trailers = size == 0
        self._unread = size + len(LINE_END) if size else 0


def _parse_length(value: bytes) -> float:
    """Return the value of `Content-Length`; infinity if invalid, since the HTTP parser then ends the connection."""
    length = value.strip(b" \t")
    digits = length.lstrip(b"0") or b"0"  # the parser accepts any number of zeros, `int` does not
    return int(digits) if length.isdigit() and len(digits) <= MAX_LENGTH_DIGITS else inf

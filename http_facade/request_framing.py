"""Boundaries between the requests of a connection, found in its bytes without an HTTP parser."""

from math import inf

HEADERS_END, LINE_END = b"\r\n\r\n", b"\r\n"
_LENGTH, _CODING, _UPGRADE = b"\r\ncontent-length:", b"\r\ntransfer-encoding:", b"\r\nupgrade:"


class RequestFraming:
    """Tracker of where requests begin and end in the bytes of one connection.

    Only valid requests matter: the HTTP parser rejects an invalid one and closes its connection. After a request that
    may change the protocol the position is unknown.
    """

    __slots__ = ("_in_chunks", "_in_trailers", "_part", "_unread", "is_between_requests", "is_in_headers", "whole_body")

    def __init__(self) -> None:
        self._part = b""  # incomplete headers, or an incomplete line of a chunked body
        self._unread: float = 0  # bytes of the body or of its chunk that are still to come; infinite if unknown
        self._in_chunks = self._in_trailers = False
        self.is_between_requests = True  # whether the next byte begins a request
        self.is_in_headers = False  # whether the headers of a request have begun and are incomplete
        self.whole_body: bytes | None = None  # body of the request that the last bytes are, if they are exactly one

    def feed(self, data: bytes) -> int:
        """Return the number of requests whose headers end in the next bytes."""
        begun, self.whole_body, begins = 0, None, self.is_between_requests
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
                length = headers[at + len(_LENGTH) :].partition(LINE_END)[0].strip()
                self._unread = int(length) if length.isdigit() else inf
            if begins and begun == 1 and self._unread == len(data) and not self._in_chunks:
                self._unread, self.whole_body = 0, data
                return 1  # exactly one request, as nearly always
        self.is_between_requests = not (self._part or self._unread or self._in_chunks)
        self.is_in_headers = bool(self._part) and not self._in_chunks
        return begun

    def _read_chunk_line(self, line: bytes) -> None:
        """Read a line between chunks: the size of the next chunk, or a trailer, the last of which is empty."""
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

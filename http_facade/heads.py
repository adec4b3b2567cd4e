"""Heads of requests that did not come whole: aiohttp's parser does not tell that it is within one."""

from aiohttp import StreamReader
from aiohttp.http import RawRequestMessage

END = b"\r\n\r\n"
"""Of a head, and of a body in chunks."""


class Heads:
    """Follows the bytes of one connection. In doubt, such as where a head that is cut off came right behind a body that
    looks like the end of a head, it says no; the next byte tells.
    """

    __slots__ = ("_body", "_in_chunks", "_seen")

    def __init__(self) -> None:
        self._body: StreamReader | None = None  # that comes now
        self._in_chunks = False
        self._seen = 0  # bytes of it

    def is_cut(self, data: bytes, last: tuple[object, StreamReader] | None) -> bool:
        """Whether what came so far ends within a head. `data` came now, and with it the head of the request `last`, the
        last of several.
        """
        if last is not None:
            return self._is_cut_behind(data, *last)
        if self._body is None:
            return bool(data)
        came, self._seen = self._body.total_bytes - self._seen, self._body.total_bytes
        if not self._body.is_eof():
            return False
        self._body = None
        return not _ends(data, 0) if self._in_chunks else bool(data) and len(data) > came

    def _is_cut_behind(self, data: bytes, message: object, body: StreamReader) -> bool:
        self._body = None
        if not isinstance(message, RawRequestMessage) or message.upgrade:  # no HTTP, or soon no more
            return False
        self._in_chunks, self._seen = message.chunked, body.total_bytes
        if not body.is_eof():
            self._body = body
            return False
        return not _ends(data, 0 if self._in_chunks else self._seen)


def _ends(data: bytes, size: int) -> bool:
    """Whether there is the end of a head before the last `size` bytes, be it only the last part of one."""
    end = len(data) - size
    return END.endswith(data[max(0, end - len(END)) : max(0, end)])

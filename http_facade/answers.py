"""Good answers that are here as a whole."""

import asyncio

from aiohttp import HttpVersion11, hdrs, web
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http_writer import _serialize_headers


class Whole(web.Response):
    """The answer to a POST, head and body in one write where nothing is unusual: aiohttp's own way, on which an answer
    may still become anything, takes several times as long.
    """

    def is_plain(self, request: web.Request) -> bool:
        """Whether it can be sent by `send`; else, as any answer, by `prepare` and `write_eof`."""
        kept = request.version == HttpVersion11 and request.keep_alive and self.keep_alive is None
        return kept and not self.prepared and isinstance(self.body, bytes)

    def send(self, request: web.Request, transport: asyncio.Transport) -> None:
        """Sends it. Raises ValueError for a header that is none."""
        body = self.body if isinstance(self.body, bytes) else b""
        self.headers[hdrs.CONTENT_LENGTH] = str(len(body))
        self.headers[hdrs.DATE] = rfc822_formatted_time()
        head = _serialize_headers(f"HTTP/1.1 {self.status} {self.reason}", self.headers)
        transport.writelines((head, body))
        request.writer.output_size += len(head) + len(body)
        self._keep_alive = True
        self._eof_sent = True  # aiohttp, which looks after each handler, finds nothing left to be sent

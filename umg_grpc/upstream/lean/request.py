"""The head of a request."""

import re
from functools import lru_cache
from typing import NamedTuple

from multidict import CIMultiDict
from yarl import URL

DEFAULT_HEADERS = {
    "Accept": "*/*",
    "Accept-Encoding": "identity",  # to inflate what a neighbour deflated costs more than to carry it
    "User-Agent": "unified-model-gateway",
}
OURS = {"content-length", "transfer-encoding", "connection", "host"}
FORBIDDEN = re.compile(r"[\x00\r\n]")


class Request(NamedTuple):
    """What the requests to a URL with the same headers have in common."""

    host: str
    port: int
    secure: bool
    head: bytes  # up to the length of the body


@lru_cache(maxsize=1024)
def request_to(url: str, fields: tuple[tuple[str, str], ...]) -> Request:
    """Raises ValueError for what is no URL or would be no header."""
    parts = URL(url)
    if parts.scheme not in {"http", "https"} or not parts.raw_host or not parts.port:
        raise ValueError("expected a URL, http:// or https:// with a host")
    given = CIMultiDict(fields)
    host = given.get("host", parts.host_port_subcomponent)
    lines = [f"POST {parts.raw_path_qs} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in given.items() if name.lower() not in OURS]
    lines += [f"{name}: {value}" for name, value in DEFAULT_HEADERS.items() if name not in given]
    if any(FORBIDDEN.search(line) for line in lines):
        raise ValueError("a header has a line break in it")
    head = "\r\n".join((*lines, "Content-Length: "))
    return Request(parts.raw_host, parts.port, parts.scheme == "https", head.encode())

"""HTTP requests to providers, and the encoding of their request lines and headers."""

import re
import ssl
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec
from multidict import CIMultiDict
from yarl import URL

from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.upstream.http1.dns_cache import Addresses
from umg_grpc.upstream.http1.response import MAX_RESPONSE_BYTES

USER_AGENT = "unified-model-gateway"
DEFAULT_HEADERS = {
    "Accept": "*/*",
    "Accept-Encoding": "identity",  # on a fast network, decompressing costs more than transferring the plain body
    "User-Agent": USER_AGENT,
}
OWN_HEADERS = {"content-length", "transfer-encoding", "connection", "host"}
FORBIDDEN_CHARACTERS = re.compile(r"[\x00\r\n]")


class OutgoingRequest(msgspec.Struct, frozen=True, eq=False):
    """Complete HTTP request to a provider, with its time and size limits."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    deadlines: Deadlines
    proxy: str | None = None  # URL of an HTTP proxy, optionally with credentials
    tls: ssl.SSLContext | None = None  # None: certificates are verified with the system's authorities
    repeatable: bool = True  # the provider may process it twice
    reuses: bool = True  # may be sent on an idle connection, which the provider may be closing at the same time
    max_bytes: int = MAX_RESPONSE_BYTES  # limit of a whole response
    on_send: Callable[[], None] | None = None  # called immediately before the request is written
    head_lines: bytes = b""  # header lines of this request alone, each with its line break; `common` has the others
    method: str = "POST"
    common: "Request | None" = None  # part of the head that similar requests share, if it was encoded for one of them
    addresses: Addresses | None = None  # addresses to connect to; None looks up those of the host

    @property
    def is_forwarded(self) -> bool:
        """Whether an HTTP proxy reads the request itself. For URLs with TLS, the proxy only opens a tunnel."""
        return self.proxy is not None and not self.url.lower().startswith("https:")


class Server(NamedTuple):
    """Address of a provider or proxy. `secure`: whether it uses TLS."""

    host: str
    port: int
    secure: bool

    @property
    def tls_name(self) -> str | None:
        """Host name that the server's certificate must have; None without TLS."""
        return self.host.rstrip(".") if self.secure else None


class ConnectionTarget(NamedTuple):
    """Target of a connection. Requests with equal origins share pooled connections."""

    server: Server
    tls: ssl.SSLContext | None  # for the server and the proxy, None for the system's authorities
    proxy: Server | None
    connect: bytes  # request to the proxy for a tunnel to a provider over TLS


class Request(NamedTuple):
    """Common part of the requests to one URL with the same headers. `head`: encoded request line and headers."""

    origin: ConnectionTarget
    head: bytes  # without the length of the body and the empty line


def request_to(
    url: str,
    headers: Mapping[str, str],
    proxy: str | None = None,
    tls: ssl.SSLContext | None = None,
    method: str = "POST",
) -> Request:
    """Return the common part of requests to a URL with these headers. `proxy`: URL of an HTTP proxy, None if there is
    none. Without TLS, the proxy gets the whole URL. Raise ValueError for an invalid URL or header.
    """
    parts = URL(url)
    server, via = _server(parts), URL(proxy) if proxy else None
    credentials = [] if via is None else _proxy_credentials(via)
    given = CIMultiDict(headers)
    host = given.get("host", parts.host_port_subcomponent)
    is_forwarded = via is not None and not server.secure
    target = f"{parts.origin()}{parts.raw_path_qs}" if is_forwarded else parts.raw_path_qs
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *(credentials if is_forwarded else ())]
    lines += [f"{name}: {value}" for name, value in given.items() if name.lower() not in OWN_HEADERS]
    lines += [f"{name}: {value}" for name, value in DEFAULT_HEADERS.items() if name not in given]
    if any(FORBIDDEN_CHARACTERS.search(line) for line in lines):
        raise ValueError("a header has a line break in it")
    place = f"{parts.host_subcomponent}:{parts.port}"
    connect = (f"CONNECT {place} HTTP/1.1", f"Host: {place}", f"User-Agent: {USER_AGENT}", *credentials, "", "")
    origin = ConnectionTarget(server, tls, None if via is None else _server(via), "\r\n".join(connect).encode())
    return Request(origin, "\r\n".join((*lines, "")).encode())


def _server(url: URL) -> Server:
    if url.scheme not in {"http", "https"} or not url.raw_host or not url.port:
        raise ValueError("expected a URL, http:// or https:// with a host")
    return Server(url.raw_host, url.port, url.scheme == "https")


def _proxy_credentials(proxy: URL) -> list[str]:
    if proxy.user is None and proxy.password is None:
        return []
    credentials = b64encode(f"{proxy.user or ''}:{proxy.password or ''}".encode()).decode()
    return [f"Proxy-Authorization: Basic {credentials}"]

"""Downloads of video results that need the channel's key, streamed in constant memory."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from urllib.parse import SplitResult, urljoin, urlsplit

from msgspec import structs
from yarl import URL

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.upstream.caller_url_fetch import (
    MAX_DOWNLOAD_SECONDS,
    MAX_REDIRECTS,
    REDIRECT_STATUSES,
    Download,
    Fetcher,
    ProviderRoute,
    failed,
)
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.response_decoding import refusal
from umg_grpc.upstream.http1.connection import ProviderExchange
from umg_grpc.upstream.http1.response import NO_HEADERS
from umg_grpc.upstream.upstream_interfaces import ContentPart
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.errors.secret_masking import without_secrets
from umg_grpc.wire.text_format_interface import UpstreamRequest
from umg_grpc.wire.video.provider_protocol_interface import VideoProtocol
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderTask

PASSED_HEADERS = ("content-type", "content-length", "content-range", "accept-ranges", "etag", "last-modified")
"""Headers of the provider's response that are passed on."""
REQUEST_HEADERS = frozenset({"range", "if-range"})
PASSED_STATUSES = frozenset({200, 206, 416})
GONE_STATUSES = frozenset({404, 410})
PAGE_TYPES = frozenset({"application/json", "text/html"})
"""Media types of a response that is no video file: some providers send errors with status 200."""
_VERSION = re.compile(r"/v\d+\w*(?:/|$)")
LONGEST_SECONDS = 24 * MAX_DOWNLOAD_SECONDS
"""Time of a whole download: the client may read slowly, so that only the idle deadline of the channel applies."""


@dataclass(frozen=True)
class _Part:
    """Open response to a download: a result file, or a range of it."""

    source: ProviderExchange | Download
    status: int
    headers: Mapping[str, str]

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        async with aclosing(self.source.chunks()) as chunks:
            async for chunk in chunks:
                yield chunk


@asynccontextmanager
async def open_content(
    channel: HttpChannel,
    protocol: VideoProtocol,
    fetcher: Fetcher,
    route: ProviderRoute,
    task: ProviderTask,
    result: ProviderResult,
    headers: Mapping[str, str],
) -> AsyncGenerator[ContentPart, None]:
    """Return a context manager that opens the file of a result with the key of its task. `headers`: `range` and its
    conditions, from the caller. The key is sent only to the host of the channel's base URL; a URL on another host, also
    after a redirect, is downloaded by `fetcher` on `route`, without it. Raise UmgError: OBJECT_NOT_FOUND if the
    provider no longer has the file.
    """
    url = result.needs_key
    wanted = {name: value for name, value in headers.items() if name.lower() in REQUEST_HEADERS}
    for _ in range(MAX_REDIRECTS + 1):
        opened = await _open_with_key(channel, protocol, task, url, wanted)
        if isinstance(opened, ProviderExchange):
            try:
                response = opened.response
                yield _Part(opened, response.status, _passed(response.headers, is_packed=bool(response.encodings)))
            finally:
                opened.close()
            return
        if not opened.is_own:
            async with fetcher.open(
                opened.url, field=None, headers=wanted, seconds=LONGEST_SECONDS, route=route
            ) as download:
                packed = bool(download.exchange.response.encodings)
                yield _Part(download, download.status, _passed(download.headers, is_packed=packed))
            return
        url = opened.url
    raise failed(None, f"the provider redirects more than {MAX_REDIRECTS} times")


@dataclass(frozen=True)
class _Elsewhere:
    """Redirect of a download to another URL, which is to be requested next."""

    url: str
    is_own: bool
    """Whether the address is on the host of the channel's base URL."""


async def _open_with_key(
    channel: HttpChannel, protocol: VideoProtocol, task: ProviderTask, url: str, headers: Mapping[str, str]
) -> ProviderExchange | _Elsewhere:
    """Send a request for a URL or path of the provider with the key of the task."""
    path = url if url.startswith("/") else "/"
    encoded = UpstreamRequest(path, b"", {**headers, "Accept": "*/*"}, Report(), "GET")
    endpoint, outgoing = await channel.outgoing(encoded, protocol.key_header, channel.total_seconds, key_id=task.key_id)
    if url.startswith("/"):
        outgoing = structs.replace(outgoing, url=_below(outgoing.url, endpoint.base_url))
    else:
        url = resolved(url, endpoint.base_url)
        if origin(url) != origin(endpoint.base_url):
            return _Elsewhere(url, is_own=False)
        outgoing = structs.replace(outgoing, url=url)
    outgoing = structs.replace(outgoing, deadlines=replace(outgoing.deadlines, total=LONGEST_SECONDS))
    status, answered = 0, NO_HEADERS
    exchange: ProviderExchange | None = None
    try:
        exchange = await channel.client.open(outgoing)
        status, answered = exchange.response.status, exchange.response.headers
        if status in REDIRECT_STATUSES and (location := answered.get("location")):
            exchange.close()
            target = resolved(location, outgoing.url)
            return _Elsewhere(target, is_own=origin(target) == origin(endpoint.base_url))
        if status not in PASSED_STATUSES:
            body = await exchange.refusal()
            raise _refusal(protocol, status, answered, body, is_forwarded=outgoing.is_forwarded)
        if status == 200 and exchange.response.content_type in PAGE_TYPES:
            raise failed(None, "the provider sent a message instead of the file")
    except BaseException as error:
        if exchange is not None:
            exchange.close()
        if isinstance(error, UmgError):
            channel.record_failure(error, endpoint, path, status, answered)
        raise
    exchange.deadline.has_begun = True
    return exchange


def _refusal(
    protocol: VideoProtocol, status: int, headers: Mapping[str, str], body: bytes, *, is_forwarded: bool
) -> UmgError:
    if status in GONE_STATUSES:
        message = "the provider does not have the file any more"
        return UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message)
    return refusal(protocol.decode_error, status, headers, body, is_forwarded=is_forwarded)


def _below(url: str, base_url: str) -> str:
    base, path = urlsplit(base_url).path.rstrip("/"), url.removeprefix(base_url)
    is_versioned = _VERSION.match(path) is not None and _VERSION.search(base) is not None
    return urljoin(base_url, path) if is_versioned or (base and path.startswith(f"{base}/")) else url


def _passed(headers: Mapping[str, str], *, is_packed: bool) -> Mapping[str, str]:
    names = (name for name in PASSED_HEADERS if not (is_packed and name == "content-length"))
    return {name: without_secrets(value) for name in names if (value := headers.get(name)) is not None}


def resolved(url: str, base: str) -> str:
    """Return a provider's URL, made absolute by `base`. Raise UmgError(UPSTREAM_FAILED) if it is no HTTP URL."""
    try:
        joined = urljoin(base, url)
        if _is_http(urlsplit(joined)) and str(URL(joined)).isprintable():
            return joined
    except ValueError:  # for example of `https://[::1/x` and of a port that is no number
        pass
    message = "the provider's result could not be fetched: the provider names no valid URL"
    raise UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(Failure.AMBIGUOUS)


def _is_http(parts: SplitResult) -> bool:
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0


def origin(url: str) -> tuple[str, str, int | None]:
    """Return the scheme, host and port of a URL that `resolved` has returned."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or {"https": 443, "http": 80}.get(parts.scheme)

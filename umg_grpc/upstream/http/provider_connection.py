"""Connection of a channel to its provider over HTTP: address, key, headers and time limits of each request.

All operations share it. It also records the outcome of each call, by which keys are rotated. Codecs encode and decode
the bodies.
"""

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from ssl import SSLContext
from types import MappingProxyType
from typing import Protocol
from urllib.parse import quote, urlencode

from msgspec import structs

from umg_grpc.attempt_progress import ANSWER
from umg_grpc.errors import Failure, UmgError
from umg_grpc.trace_context import OUTGOING
from umg_grpc.upstream.http.key_rotation import Keys
from umg_grpc.upstream.http.operator_failure_facts import REQUEST_ID_KEYS, add_facts, request_id_of
from umg_grpc.upstream.http.signing import Signer
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.upstream.http1.request import Outgoing, request_to
from umg_grpc.upstream.http1.response import MAX_RESPONSE_BYTES, NO_HEADERS, Headers
from umg_grpc.v1 import pb
from umg_grpc.wire.text_format import UpstreamRequest

CONTENT_TYPE = "Content-Type"
KEY_ID_CHARACTERS = 16
MAX_TEMPLATES = 256
"""Maximum number of request templates of each endpoint: paths may name models, which callers choose."""
UNAUTHORIZED = 401
BROKEN = frozenset({pb.ERROR_REASON_UPSTREAM_UNREACHABLE, pb.ERROR_REASON_UPSTREAM_CUT})


@dataclass(frozen=True)
class Endpoint:
    """Base URL of a provider, with the credentials of one account."""

    base_url: str
    headers: Mapping[str, str]
    """Headers of every request, with the credentials where the operator configures their header."""
    key: str = ""
    """Credentials where the format defines their header."""
    key_in_headers: str = ""
    """The key that `headers` contains, or with which `signer` makes credentials."""
    signer: Signer | None = None
    """Source of credentials that each request needs of its own."""
    query: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Parameters that are added to the query of every URL, with the key where the provider expects it there."""

    @property
    def secret(self) -> str:
        """Key of the account, in whichever header it is sent; "" without a key."""
        return self.key or self.key_in_headers

    @cached_property
    def key_id(self) -> str:
        """Fingerprint of the key, which identifies it in records without revealing it; "" without a key."""
        return sha256(self.secret.encode()).hexdigest()[:KEY_ID_CHARACTERS] if self.secret else ""

    @cached_property
    def query_string(self) -> str:
        """Configured query parameters as a part of a URL."""
        return urlencode(self.query, quote_via=quote)

    @cached_property
    def request_templates(self) -> dict[tuple[object, ...], Outgoing]:
        """Cache of requests without their bodies, at most MAX_TEMPLATES, see `HttpChannel.outgoing`."""
        return {}

    def url(self, path: str) -> str:
        """Return the URL of a request with this path, which may contain a query."""
        if not self.query:
            return self.base_url + path
        return f"{self.base_url}{path}{'&' if '?' in path else '?'}{self.query_string}"

    def request_headers(self, key_header: str) -> dict[str, str]:
        """Return the headers of a request; `key_header` is the header in which the wire format sends the key."""
        headers = {CONTENT_TYPE: "application/json", **self.headers}
        if self.key and key_header == "authorization":
            headers["Authorization"] = f"Bearer {self.key}"
        elif self.key:
            headers[key_header] = self.key
        return headers


class EndpointSource(Protocol):
    """Function that returns the endpoint (address and credentials) for a call."""

    async def __call__(self, broken: Endpoint | None) -> Endpoint:
        """Return the endpoint for a call. `broken`: endpoint whose connection last broke or failed, or None."""
        ...


class RotatingEndpoints:
    """Endpoints of a channel, one for each of its keys, used in turn. Suspended keys are skipped."""

    def __init__(self, endpoints: Sequence[Endpoint], now: Callable[[], float] = time.monotonic) -> None:
        self.keys = Keys(len(endpoints), now)
        self.single = endpoints[0] if len(endpoints) == 1 else None
        """Endpoint of a channel with one key."""
        self._endpoints = endpoints

    def next(self) -> Endpoint:
        """Return the endpoint with the next key."""
        return self._endpoints[self.keys.next()]

    async def __call__(self, broken: Endpoint | None) -> Endpoint:
        """Return the endpoint with the next key. `broken` is ignored, since a provider's address does not change."""
        return self.next()

    @property
    def key_ids(self) -> list[str]:
        """Fingerprints of all keys."""
        return [endpoint.key_id for endpoint in self._endpoints]

    def of_key(self, key_id: str) -> Endpoint:
        """Return the endpoint whose key has this fingerprint, even if the key is suspended.

        If no key has it, the key was replaced by another one of the same account: the next endpoint is returned.
        """
        return next((endpoint for endpoint in self._endpoints if endpoint.key_id == key_id), None) or self.next()

    def record_success(self, endpoint: Endpoint) -> None:
        """Record a successful response, which ends the suspension of the endpoint's key."""
        self.keys.record_success(self._number(endpoint))

    def record_failure(self, endpoint: Endpoint, error: UmgError) -> None:
        """Record an error, which may suspend the endpoint's key.

        Mark the error as OTHER_KEY if it concerns only this key and another one is usable. If it is a rate limit and
        all keys are suspended, set its `retry_after_seconds` to the time until the first key is usable.
        """
        if self.keys.record_failure(self._number(endpoint), error):
            error.with_failure(Failure.OTHER_KEY)
        elif error.failure is Failure.OVERLOADED and len(self._endpoints) > 1 and (wait := self.keys.seconds_to_free):
            seconds = math.ceil(wait)
            error.metadata["retry_after_seconds"] = str(seconds)
            error.message = f"the rate limits of all keys are reached; try again in {seconds} s"

    def _number(self, endpoint: Endpoint) -> int:
        return next(number for number, known in enumerate(self._endpoints) if known is endpoint)


class HttpChannel:
    """Connection of one channel to its provider, shared by all operations. Raises the errors of the HTTP client and
    codecs.
    """

    def __init__(
        self,
        client: Client,
        endpoint: EndpointSource,
        deadlines: Deadlines,
        *,
        proxy: str | None = None,
        tls: SSLContext | None = None,
    ) -> None:
        self.client = client
        self._endpoint = endpoint
        self._in_turn = endpoint if isinstance(endpoint, RotatingEndpoints) else None
        self._broken: Endpoint | None = None  # endpoint whose connection broke last, until it responds again
        self._deadlines = deadlines
        self._proxy = proxy
        self._tls = tls

    @property
    def total_seconds(self) -> float:
        """Time limit of a whole call."""
        return self._deadlines.total

    @property
    def suspended_keys(self) -> int:
        """Number of keys that are suspended after errors."""
        return 0 if self._in_turn is None else self._in_turn.keys.suspended

    @property
    def key_ids(self) -> list[str]:
        """Fingerprints of the channel's keys; one "" if it has none."""
        return [""] if self._in_turn is None else self._in_turn.key_ids

    async def outgoing(
        self,
        encoded: UpstreamRequest,
        key_header: str,
        seconds: float,
        *,
        repeatable: bool = True,
        max_bytes: int = MAX_RESPONSE_BYTES,
        key_id: str = "",
    ) -> tuple[Endpoint, Outgoing]:
        """Select the endpoint for a call. Return it and the complete HTTP request.

        `key_id`: fingerprint of the key to use; "" for the next key. Raise UmgError(DEADLINE_EXCEEDED) if no time is
        left.
        """
        if self._in_turn is None:
            endpoint, seconds = await self._resolve_endpoint(seconds)
        elif key_id:
            endpoint = self._in_turn.of_key(key_id)
        else:
            endpoint = self._in_turn.single or self._in_turn.next()
        own = tuple(encoded.headers.items()) if encoded.headers else ()
        kind = (encoded.path, encoded.method, key_header, own, self._proxy, self._tls)
        template = endpoint.request_templates.get(kind) or self._request_template(endpoint, encoded, key_header, kind)
        trace, answer, deadlines = OUTGOING.get(), ANSWER.get(), self._deadlines
        outgoing = structs.replace(
            template,
            body=encoded.body,
            deadlines=deadlines if seconds >= deadlines.total else deadlines.within(seconds),
            repeatable=repeatable,
            max_bytes=max_bytes,
            on_send=answer.record_send if answer is not None else None,
            head_lines=trace.head_lines if trace is not None else b"",
        )
        if endpoint.signer is not None:
            signed = {**template.headers, **await endpoint.signer.headers(outgoing)}
            outgoing = structs.replace(outgoing, headers=signed)
        return endpoint, outgoing

    def _request_template(
        self, endpoint: Endpoint, encoded: UpstreamRequest, key_header: str, kind: tuple[object, ...]
    ) -> Outgoing:
        """Return the request of this `kind` without its body, and cache it.

        Requests that differ from one another are not cached: methods other than POST, whose paths have ids; forms,
        whose content types have boundaries; and signed requests.
        """
        url, headers = endpoint.url(encoded.path), endpoint.request_headers(key_header)
        content_type = encoded.headers.get(CONTENT_TYPE)
        if encoded.headers:  # the operator's headers override those of the format, except the type of its body
            headers = {**encoded.headers, **headers}
            if content_type is not None:
                headers[CONTENT_TYPE] = content_type
        template = Outgoing(url, headers, b"", self._deadlines, self._proxy, self._tls, method=encoded.method)
        if encoded.method != "POST" or content_type is not None or endpoint.signer is not None:
            return template
        template = structs.replace(template, common=request_to(url, headers, self._proxy, self._tls))
        if len(endpoint.request_templates) >= MAX_TEMPLATES:
            endpoint.request_templates.clear()
        endpoint.request_templates[kind] = template
        return template

    def record_success(self, endpoint: Endpoint, headers: Headers) -> None:
        """Record that a successful response arrived or began; `headers` are those of the response."""
        if (answer := ANSWER.get()) is not None:
            has_id = not REQUEST_ID_KEYS.isdisjoint(headers.values_by_name)  # one test instead of five look-ups
            answer.status, answer.request_id = 200, request_id_of(headers, endpoint) if has_id else ""
        if self._in_turn is not None and not self._in_turn.keys.none_suspended:
            self._in_turn.record_success(endpoint)
        if self._broken is not None and self._broken == endpoint:
            self._broken = None

    def record_failure(
        self, error: UmgError, endpoint: Endpoint, path: str, status: int = 0, headers: Mapping[str, str] = NO_HEADERS
    ) -> None:
        """Record a failed call: the broken connection or the rejected key, and the facts for operators.

        If another key is usable, the error becomes OTHER_KEY. `status` and `headers`: of the response, if there was
        one.
        """
        add_facts(error, endpoint, path, status, headers)
        if status == UNAUTHORIZED and endpoint.signer is not None and endpoint.signer.discard():
            error.with_failure(Failure.OTHER_KEY)
            return
        if error.reason in BROKEN:
            self._broken = endpoint
        elif status and self._broken == endpoint:
            self._broken = None
        if self._in_turn is not None:
            self._in_turn.record_failure(endpoint, error)

    async def _resolve_endpoint(self, seconds: float) -> tuple[Endpoint, float]:
        """Return the endpoint for a call, and the seconds left after waiting for it."""
        started, total_seconds = time.monotonic(), min(seconds, self._deadlines.total)
        try:
            async with asyncio.timeout(total_seconds):
                endpoint = await self._endpoint(self._broken)
        except TimeoutError:
            raise self._deadlines.within(seconds).late("total", sent=False) from None
        return endpoint, seconds - (time.monotonic() - started)

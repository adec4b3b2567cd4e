"""Connection of a channel to its provider over HTTP: address, key, headers and time limits of each request. All
operations share it, and their failures suspend its keys. Codecs encode and decode the bodies.
"""

import asyncio
import time
from collections.abc import Mapping
from ssl import SSLContext

from msgspec import structs

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.http_exchange_progress import ATTEMPT_PROGRESS
from umg_grpc.base.trace_context import OUTGOING_TRACE
from umg_grpc.knowledge.cloud_credentials import rejects_credential
from umg_grpc.upstream.http.channel_secrets import ChannelSecrets
from umg_grpc.upstream.http.operator_failure_facts import REQUEST_ID_KEYS, add_facts, request_id_of
from umg_grpc.upstream.http.provider_endpoints import CONTENT_TYPE, EndpointSource, ProviderEndpoint, RotatingEndpoints
from umg_grpc.upstream.http.session_headers import found, lines_beside
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.upstream.http1.request import OutgoingRequest, request_to
from umg_grpc.upstream.http1.response import MAX_RESPONSE_BYTES, NO_HEADERS, Headers
from umg_grpc.v1 import pb
from umg_grpc.wire.core.gateway_headers import DROPPED_HEADER, STRICT_HEADER
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.errors.secret_masking import CHANNEL_SECRETS
from umg_grpc.wire.text_format_interface import UpstreamRequest

DROPPED_NAME = DROPPED_HEADER.encode()
STRICT_LINE = f"{STRICT_HEADER}: true\r\n".encode()
MAX_TEMPLATES = 256
"""Maximum number of cached request heads of each endpoint, since callers may choose the models in paths."""
UNAUTHORIZED_STATUS = 401
AWS_ERROR = "x-amzn-errortype"
"""Header with the error code of AWS's services."""
BROKEN_REASONS = frozenset({pb.ERROR_REASON_UPSTREAM_UNREACHABLE, pb.ERROR_REASON_UPSTREAM_CUT})


class HttpChannel:
    """Connection of one channel to its provider, for all operations. Raises UmgError if the connection fails."""

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
        self.secrets = ChannelSecrets(() if self._in_turn is None else self._in_turn.endpoints, proxy)
        """Secrets of the channel, which are masked in all that its provider sends to callers and operators."""
        self._broken: ProviderEndpoint | None = None  # endpoint whose connection broke last, until it responds again
        self._deadlines = deadlines
        self._proxy = proxy
        self._tls = tls
        self._is_gateway = False
        """Whether the provider is a gateway, as its statement of dropped fields has shown."""

    @property
    def total_seconds(self) -> float:
        """Maximum seconds of a whole call, by the channel's config."""
        return self._deadlines.total

    @property
    def suspended_keys(self) -> int:
        """Number of keys that are skipped for some time after errors."""
        return 0 if self._in_turn is None else self._in_turn.keys.suspended

    @property
    def key_ids(self) -> list[str]:
        """Fingerprints of the channel's keys; [""] if it has none."""
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
    ) -> tuple[ProviderEndpoint, OutgoingRequest]:
        """Return (endpoint for the call, complete HTTP request). `seconds`: time until the caller's deadline.
        `repeatable`: whether the provider may process the request twice. `key_id`: fingerprint of the key to use, ""
        for the one that the affinity of the call prefers, else the next. Raise UmgError(DEADLINE_EXCEEDED) if no time
        is left.
        """
        progress = ATTEMPT_PROGRESS.get()
        if self._in_turn is None:
            endpoint, seconds = await self._resolve_endpoint(seconds)
            self.secrets = ChannelSecrets([endpoint], self._proxy)
        elif key_id:
            endpoint = self._in_turn.of_key(key_id)
        elif self._in_turn.single is not None:
            endpoint = self._in_turn.single
        elif progress is not None and progress.affinity:
            endpoint = self._in_turn.nearest(progress.affinity)
        else:
            endpoint = self._in_turn.next()
        CHANNEL_SECRETS.set(self.secrets)
        own = tuple(encoded.headers.items()) if encoded.headers else ()
        kind = (encoded.path, encoded.method, key_header, own, self._proxy, self._tls)
        template = endpoint.request_templates.get(kind) or self._request_template(endpoint, encoded, key_header, kind)
        trace, deadlines = OUTGOING_TRACE.get(), self._deadlines
        head_lines = trace.head_lines if trace is not None else b""
        if encoded.relayed_headers:
            head_lines += lines_beside(template.headers, encoded.relayed_headers)
        if self._is_gateway and progress is not None and progress.refuses_changes:
            head_lines, progress.refuses_changes = head_lines + STRICT_LINE, False
        outgoing = structs.replace(
            template,
            body=encoded.body,
            deadlines=deadlines if seconds >= deadlines.total else deadlines.within(seconds),
            repeatable=repeatable,
            max_bytes=max_bytes,
            on_send=progress.record_send if progress is not None else None,
            head_lines=head_lines,
        )
        if endpoint.signer is not None:
            signed = {**template.headers, **await endpoint.signer.headers(outgoing)}
            outgoing = structs.replace(outgoing, headers=signed)
        return endpoint, outgoing

    async def has_credentials(self, seconds: float) -> bool:
        """Return whether there are credentials beyond a key, after reading them. Raise UmgError if none are found."""
        endpoint, _ = await self.outgoing(UpstreamRequest("", b"", {}, Report()), "", seconds)
        return endpoint.signer is not None

    def _request_template(
        self, endpoint: ProviderEndpoint, encoded: UpstreamRequest, key_header: str, kind: tuple[object, ...]
    ) -> OutgoingRequest:
        """Return a request without its body, taken from the cache; a new one is added to the cache."""
        url, headers = endpoint.url(encoded.path), endpoint.request_headers(key_header)
        content_type = encoded.headers.get(CONTENT_TYPE)
        if encoded.headers:  # the operator's headers override those of the format, except the type of its body
            headers = {**encoded.headers, **headers}
            if content_type is not None:
                headers[CONTENT_TYPE] = content_type
        template = OutgoingRequest(url, headers, b"", self._deadlines, self._proxy, self._tls, method=encoded.method)
        if encoded.method != "POST" or content_type is not None or endpoint.signer is not None:
            return template
        template = structs.replace(template, common=request_to(url, headers, self._proxy, self._tls))
        if len(endpoint.request_templates) >= MAX_TEMPLATES:
            endpoint.request_templates.clear()
        endpoint.request_templates[kind] = template
        return template

    def record_success_status(self) -> None:
        """Record that the provider sent the status 200 for a stream, before the first bytes of the stream."""
        if (progress := ATTEMPT_PROGRESS.get()) is not None:
            progress.record_success_status()

    def record_success(self, endpoint: ProviderEndpoint, headers: Headers, report: Report) -> None:
        """Record that a successful response arrived or began, for the rotation of keys. `headers`: those of the
        response. `report`: a provider that is itself a gateway states its changes of the request in the headers; they
        are added. Raise UmgError(UNTRANSLATABLE) if the caller accepts no changes.
        """
        states_changes = DROPPED_NAME in headers.values_by_name
        if report.awaited_headers:
            report.response_headers = found(headers, report.awaited_headers, self.secrets.mask)
        if states_changes:
            self._is_gateway = True
            report.add_header(self.secrets.mask.text(headers[DROPPED_HEADER]))
        if (progress := ATTEMPT_PROGRESS.get()) is not None:
            has_id = not REQUEST_ID_KEYS.isdisjoint(headers.values_by_name)  # one test instead of five look-ups
            progress.status, progress.request_id = 200, request_id_of(headers, self.secrets.mask) if has_id else ""
        if self._in_turn is not None and not self._in_turn.keys.none_suspended:
            self._in_turn.record_success(endpoint)
        if self._broken is not None and self._broken == endpoint:
            self._broken = None
        if states_changes and progress is not None and progress.refuses_changes:
            report.refuse()

    def record_failure(
        self,
        error: UmgError,
        endpoint: ProviderEndpoint,
        path: str,
        status: int = 0,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        """Record the failure of a call: suspend a rejected key, note a broken connection, and add facts for operators.
        `path`: below the base URL. If only the key is concerned and another one is usable, its `failure` becomes
        OTHER_KEY.
        """
        add_facts(error, endpoint, self.secrets.mask, path, status, headers)
        if endpoint.signer is not None and _rejects_credential(error, status, headers) and endpoint.signer.discard():
            error.with_failure(Failure.OTHER_KEY)
            return
        if error.reason in BROKEN_REASONS:
            self._broken = endpoint
        elif status and self._broken == endpoint:
            self._broken = None
        if self._in_turn is not None:
            self._in_turn.record_failure(endpoint, error)

    async def _resolve_endpoint(self, seconds: float) -> tuple[ProviderEndpoint, float]:
        """Return (endpoint, seconds left after waiting for it), of the `seconds` until the caller's deadline."""
        started, total_seconds = time.monotonic(), min(seconds, self._deadlines.total)
        try:
            async with asyncio.timeout(total_seconds):
                endpoint = await self._endpoint(self._broken)
        except TimeoutError:
            raise self._deadlines.within(seconds).late("total", sent=False) from None
        return endpoint, seconds - (time.monotonic() - started)


def _rejects_credential(error: UmgError, status: int, headers: Mapping[str, str]) -> bool:
    code = error.facts.code if error.facts is not None else ""
    return rejects_credential(status, f"{headers.get(AWS_ERROR, '')} {code}")

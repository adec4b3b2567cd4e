"""A channel's way to its provider: which key, which address, which deadlines. What is said there, the codecs know."""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from ssl import SSLContext
from typing import Protocol

from umg_grpc.errors import UmgError
from umg_grpc.upstream.transport import Deadlines, Outgoing, Transport
from umg_grpc.v1 import pb
from umg_grpc.wire.format import UpstreamRequest

DecodeError = Callable[[int, Mapping[str, str], bytes], UmgError]

BROKEN = frozenset({pb.ERROR_REASON_UPSTREAM_UNREACHABLE, pb.ERROR_REASON_UPSTREAM_CUT})


@dataclass(frozen=True)
class Endpoint:
    """Where a channel leads and what opens it."""

    base_url: str
    headers: Mapping[str, str]  # what goes with every request, credentials too where the operator says which header
    key: str = ""  # the credentials where the format says it

    @cached_property
    def _sent(self) -> dict[str, dict[str, str]]:
        return {}

    def sent(self, key_header: str) -> dict[str, str]:
        """What goes with every request of a format, by the header in which its providers take the key. Not to be
        changed.
        """
        if (known := self._sent.get(key_header)) is None:
            known = {"Content-Type": "application/json", **self.headers, **_credentials(key_header, self.key)}
            self._sent[key_header] = known
        return known


class EndpointSource(Protocol):
    """Where a channel leads at this call."""

    async def __call__(self, broken: Endpoint | None) -> Endpoint:
        """`broken` is where a connection last broke, or could not be made."""
        ...


def in_turn(endpoints: Sequence[Endpoint]) -> EndpointSource:
    """The endpoints (one for each key of a channel) in turn."""
    turn = itertools.cycle(endpoints)

    async def endpoint(broken: Endpoint | None) -> Endpoint:  # a provider's address stays
        return next(turn)

    return endpoint


class HttpChannel:
    """One channel, for all that its provider can do. Raises what the transport and the codecs raise."""

    def __init__(
        self,
        transport: Transport,
        endpoint: EndpointSource,
        deadlines: Deadlines,
        *,
        proxy: str | None = None,
        tls: SSLContext | bool = True,
    ) -> None:
        self.transport = transport
        self._endpoint = endpoint
        self._broken: Endpoint | None = None
        self._deadlines = deadlines
        self._proxy = proxy
        self._tls = tls

    @property
    def total_seconds(self) -> float:
        """The deadline of a whole call."""
        return self._deadlines.total

    async def fetch(
        self, encoded: UpstreamRequest, key_header: str, decode_error: DecodeError, seconds: float
    ) -> bytes:
        """The body of a good answer, within `seconds` and the channel's own deadlines."""
        endpoint, outgoing = await self.outgoing(encoded, key_header, seconds)
        try:
            status, headers, body = await self.transport.fetch(outgoing)
            self.works(endpoint)
            if status != 200:
                raise refusal(decode_error, status, headers, body)
        except UmgError as error:
            self.note(error, endpoint)
            raise
        return body

    async def outgoing(self, encoded: UpstreamRequest, key_header: str, seconds: float) -> tuple[Endpoint, Outgoing]:
        """Where a call goes, and what is sent there. Raises UmgError(UPSTREAM_TIMEOUT) when no time is left."""
        started = time.monotonic()
        endpoint = await self._endpoint(self._broken)
        sent = endpoint.sent(key_header)
        outgoing = Outgoing(
            url=endpoint.base_url + encoded.path,
            # the operator's headers come before those of the format
            headers={**encoded.headers, **sent} if encoded.headers else sent,
            body=encoded.body,
            deadlines=self._deadlines.within(seconds - (time.monotonic() - started)),
            proxy=self._proxy,
            tls=self._tls,
        )
        return endpoint, outgoing

    def works(self, endpoint: Endpoint) -> None:
        """It broke off an answer, but it is there: the next call need not wait for another."""
        if self._broken == endpoint:
            self._broken = None

    def note(self, error: UmgError, endpoint: Endpoint) -> None:
        """Remembers where a call broke."""
        if error.reason in BROKEN:
            self._broken = endpoint


def refusal(decode_error: DecodeError, status: int, headers: Mapping[str, str], body: bytes) -> UmgError:
    """Why the provider did not answer with 200."""
    if 300 <= status < 400:
        message = "the provider answered with a redirect, which is not followed; its base_url may be wrong"
        return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message, upstream_status=str(status))
    return decode_error(status, {name.lower(): value for name, value in headers.items()}, body)


def _credentials(key_header: str, key: str) -> dict[str, str]:
    if not key:
        return {}
    return {"Authorization": f"Bearer {key}"} if key_header == "authorization" else {key_header: key}

"""A channel's way to its provider: which key, which address, which deadlines. What is said there, the codecs know."""

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from ssl import SSLContext
from typing import Protocol, TypeVar

from umg_grpc.errors import Failure, UmgError
from umg_grpc.upstream.keys import Keys
from umg_grpc.upstream.transport import Deadlines, Outgoing, Transport, late
from umg_grpc.v1 import pb
from umg_grpc.wire.format import BIG_BYTES, UpstreamRequest
from umg_grpc.wire.ragged import well_formed
from umg_grpc.wire.sse import BOM

Made = TypeVar("Made")
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


class InTurn:
    """The endpoints of a provider, one for each key of a channel: in turn those whose key does not rest."""

    def __init__(self, endpoints: Sequence[Endpoint], now: Callable[[], float] = time.monotonic) -> None:
        self.keys = Keys(len(endpoints), now)
        self._endpoints = endpoints

    def next(self) -> Endpoint:
        """The one to be used."""
        return self._endpoints[self.keys.next()]

    async def __call__(self, broken: Endpoint | None) -> Endpoint:
        """See `EndpointSource`: a provider's address stays."""
        return self.next()

    def works(self, endpoint: Endpoint) -> None:
        """A good answer came from there."""
        if not self.keys.all_well:
            self.keys.works(self._number(endpoint))

    def failed(self, endpoint: Endpoint, error: UmgError) -> None:
        """Makes an error that is the key's own one that another key need not have; where all rest, one that tells when
        the first of them is over.
        """
        if self.keys.failed(self._number(endpoint), error):
            error.of(Failure.OTHER_KEY)
        elif error.failure is Failure.OVERLOADED and len(self._endpoints) > 1 and (wait := self.keys.seconds_to_free):
            seconds = math.ceil(wait)
            error.metadata["retry_after_seconds"] = str(seconds)
            error.message = f"the rate limits of all keys are reached; try again in {seconds} s"

    def _number(self, endpoint: Endpoint) -> int:
        return next(number for number, known in enumerate(self._endpoints) if known is endpoint)


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
        self._in_turn = endpoint if isinstance(endpoint, InTurn) else None
        self._broken: Endpoint | None = None
        self._deadlines = deadlines
        self._proxy = proxy
        self._tls = tls

    @property
    def total_seconds(self) -> float:
        """The deadline of a whole call."""
        return self._deadlines.total

    @property
    def resting_keys(self) -> int:
        """How many of its keys are left out for now."""
        return 0 if self._in_turn is None else self._in_turn.keys.resting

    async def fetch(
        self,
        encoded: UpstreamRequest,
        key_header: str,
        decode_error: DecodeError,
        decode: Callable[[bytes], Made],
        seconds: float,
        *,
        repeatable: bool = True,
    ) -> Made:
        """What `decode` makes of the body of a good answer, within `seconds` and the channel's own deadlines.

        `repeatable`: what the request asks for may be made twice.
        """
        endpoint, outgoing = await self.outgoing(encoded, key_header, seconds, repeatable=repeatable)
        try:
            status, headers, body = await self.transport.fetch(outgoing)
            self.is_there(endpoint)
            if status != 200:
                raise refusal(decode_error, status, headers, body)
            made = await decoded(body, decode)
        except UmgError as error:
            self.note(error, endpoint)
            raise
        self.works(endpoint)
        return made

    async def outgoing(
        self, encoded: UpstreamRequest, key_header: str, seconds: float, *, repeatable: bool = True
    ) -> tuple[Endpoint, Outgoing]:
        """Where a call goes, and what is sent there. Raises UmgError(UPSTREAM_TIMEOUT) when no time is left."""
        if self._in_turn is not None:
            endpoint, left = self._in_turn.next(), seconds
        else:
            endpoint, left = await self._place(seconds)
        sent = endpoint.sent(key_header)
        outgoing = Outgoing(
            url=endpoint.base_url + encoded.path,
            # the operator's headers come before those of the format
            headers={**encoded.headers, **sent} if encoded.headers else sent,
            body=encoded.body,
            deadlines=self._deadlines.within(left),
            proxy=self._proxy,
            tls=self._tls,
            repeatable=repeatable,
        )
        return endpoint, outgoing

    def is_there(self, endpoint: Endpoint) -> None:
        """It broke off an answer, but it answers again: the next call need not wait for another."""
        if self._broken is not None and self._broken == endpoint:
            self._broken = None

    def works(self, endpoint: Endpoint) -> None:
        """A good answer came, or began."""
        if self._in_turn is not None:
            self._in_turn.works(endpoint)

    def note(self, error: UmgError, endpoint: Endpoint) -> None:
        """Remembers where a call broke, and which key is no good: the error is then OTHER_KEY where there is one."""
        if error.reason in BROKEN:
            self._broken = endpoint
        if self._in_turn is not None:
            self._in_turn.failed(endpoint, error)

    async def _place(self, seconds: float) -> tuple[Endpoint, float]:
        """Where the call goes, and the seconds that are left for it."""
        started, most = time.monotonic(), min(seconds, self._deadlines.total)
        try:
            async with asyncio.timeout(most):
                endpoint = await self._endpoint(self._broken)
        except TimeoutError:
            raise late("total", self._deadlines.within(seconds), sent=False) from None
        return endpoint, seconds - (time.monotonic() - started)


async def decoded(body: bytes, decode: Callable[[bytes], Made]) -> Made:
    """What becomes of a body; of a big one, in a thread."""
    body = well_formed(body.removeprefix(BOM))
    return decode(body) if len(body) < BIG_BYTES else await asyncio.to_thread(decode, body)


def refusal(decode_error: DecodeError, status: int, headers: Mapping[str, str], body: bytes) -> UmgError:
    """Why the provider did not answer with 200."""
    if 300 <= status < 400:
        message = "the provider answered with a redirect, which is not followed; its base_url may be wrong"
        return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message, upstream_status=str(status)).of(Failure.DOWN)
    return decode_error(status, {name.lower(): value for name, value in headers.items()}, body)


def _credentials(key_header: str, key: str) -> dict[str, str]:
    if not key:
        return {}
    return {"Authorization": f"Bearer {key}"} if key_header == "authorization" else {key_header: key}

"""Base class of signers with a token that serves many requests and is replaced before it expires."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import NamedTuple

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.provider_failure import FailureKind, ProviderFailure
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.upstream.http1.request import OutgoingRequest
from umg_grpc.v1 import pb

RENEWED_SECONDS = 300.0
"""Seconds before the expiry of a token at which it is replaced, but at most half of its lifetime."""
NEW_SECONDS = 10.0
"""Age of a token in seconds up to which it is not replaced after a rejection, as the next one would be rejected too."""


class Token(NamedTuple):
    """Access token. `seconds`: time after which it has to be replaced."""

    text: str
    seconds: float


class CachedTokenSigner(ABC):
    """Base class of signers that replace their cached token before it expires. Calls without one share a request."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.token = ""
        self._now = now
        self._made = 0.0
        self._renewal = 0.0
        self._refreshing = asyncio.Lock()

    @abstractmethod
    async def new_token(self, deadlines: Deadlines) -> Token:
        """Request a new token within the call's `deadlines`, and return it. Raise UmgError if there is none."""

    def header(self, token: str) -> Mapping[str, str]:
        """Return the authentication header with `token`."""
        return {"Authorization": f"Bearer {token}"}

    async def headers(self, outgoing: OutgoingRequest) -> Mapping[str, str]:
        """Return the authentication header, with a new token if the cached one is due. Raise UmgError without one."""
        if self._now() >= self._renewal:
            try:
                async with asyncio.timeout(outgoing.deadlines.total), self._refreshing:
                    if self._now() >= self._renewal:
                        await self._refresh(outgoing.deadlines)
            except TimeoutError:
                raise unavailable("no token within the time of the call") from None
        return self.header(self.token)

    def discard(self) -> bool:
        """Discard the token that the provider rejected. If it is only seconds old, keep it and return False."""
        if self._renewal and self._now() - self._made < NEW_SECONDS:
            return False
        self._renewal = 0.0
        return True

    async def _refresh(self, deadlines: Deadlines) -> None:
        token = await self.new_token(deadlines)
        self.token, self._made = token.text, self._now()
        self._renewal = self._made + token.seconds


def seconds_of_use(valid: float) -> float:
    """Return the seconds after which to replace a token that expires in `valid` seconds."""
    return valid - min(RENEWED_SECONDS, valid / 2)


def unavailable(cause: str) -> UmgError:
    """Return the error for a call without a token; another channel may be tried. `cause`: text for the log."""
    message = "the provider's token could not be got; try again"
    error = UmgError(pb.ERROR_REASON_UPSTREAM_UNREACHABLE, message)
    return error.with_failure(Failure.NOT_SENT, cause).with_facts(ProviderFailure(FailureKind.UNREACHABLE))

"""Base class of signers with a token that serves many requests and is replaced before it expires."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import NamedTuple

from umg_grpc.errors import Failure, UmgError
from umg_grpc.provider_failure import FailureKind, ProviderFailure
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.upstream.http1.request import Outgoing
from umg_grpc.v1 import pb

RENEWED_SECONDS = 300.0
"""Time before the end of a token at which it is renewed; at most half of the time for which it is valid."""
NEW_SECONDS = 10.0
"""Age up to which a token that is rejected is not replaced: the next one would be rejected too."""


class Token(NamedTuple):
    """Access token, and the seconds after which it should be replaced."""

    text: str
    seconds: float


class CachedTokenSigner(ABC):
    """Base class of signers that send a cached token. Calls wait while a new token is requested, one at a time."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.token = ""
        self._now = now
        self._made = 0.0
        self._renewal = 0.0
        self._refreshing = asyncio.Lock()

    @abstractmethod
    async def new_token(self, deadlines: Deadlines) -> Token:
        """Request and return a new token. Raise UmgError if that fails."""

    def header(self, token: str) -> Mapping[str, str]:
        """Return the authentication header with a token."""
        return {"Authorization": f"Bearer {token}"}

    async def headers(self, outgoing: Outgoing) -> Mapping[str, str]:
        """Return the authentication header, with a new token if the cached one is old.

        Raise UmgError if no token can be obtained; nothing was sent to the provider then.
        """
        if self._now() >= self._renewal:
            try:
                async with asyncio.timeout(outgoing.deadlines.total), self._refreshing:
                    if self._now() >= self._renewal:
                        await self._refresh(outgoing.deadlines)
            except TimeoutError:
                raise unavailable("no token within the time of the call") from None
        return self.header(self.token)

    def discard(self) -> bool:
        """Discard the cached token that the provider rejected. Return False, and keep it, if it is only seconds old."""
        if self._renewal and self._now() - self._made < NEW_SECONDS:
            return False
        self._renewal = 0.0
        return True

    async def _refresh(self, deadlines: Deadlines) -> None:
        token = await self.new_token(deadlines)
        self.token, self._made = token.text, self._now()
        self._renewal = self._made + token.seconds


def seconds_of_use(valid: float) -> float:
    """Return the seconds after which to replace a token that is valid for `valid` seconds."""
    return valid - min(RENEWED_SECONDS, valid / 2)


def unavailable(cause: str) -> UmgError:
    """Return the error if no token can be obtained; another channel may then be tried."""
    message = "the provider's token could not be got; try again"
    error = UmgError(pb.ERROR_REASON_UPSTREAM_UNREACHABLE, message)
    return error.with_failure(Failure.NOT_SENT, cause).with_facts(ProviderFailure(FailureKind.UNREACHABLE))

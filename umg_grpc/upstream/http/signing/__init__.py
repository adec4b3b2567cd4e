"""Authentication of provider requests by computed credentials: request signatures and short-lived tokens."""

from collections.abc import Mapping
from typing import Protocol

from umg_grpc.upstream.http1.request import OutgoingRequest


class Signer(Protocol):
    """Source of the authentication headers of requests to a provider."""

    async def headers(self, outgoing: OutgoingRequest) -> Mapping[str, str]:
        """Return the headers that authenticate a request. Raise UmgError if there are no credentials for it."""
        ...

    def discard(self) -> bool:
        """Discard cached credentials that the provider rejected. Return whether new ones may be accepted."""
        ...

    @property
    def token(self) -> str:
        """Cached token, which is masked in messages of the provider; "" if there is none."""
        ...

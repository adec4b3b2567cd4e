"""Authentication of provider requests by computed credentials: request signatures and short-lived tokens."""

from collections.abc import Mapping
from typing import Protocol

from umg_grpc.upstream.http1.request import Outgoing


class Signer(Protocol):
    """Source of the authentication headers of a request."""

    async def headers(self, outgoing: Outgoing) -> Mapping[str, str]:
        """Return the headers that authenticate the request. Raise UmgError if there are no credentials."""
        ...

    def discard(self) -> bool:
        """Discard cached credentials that the provider rejected. Return whether new ones can be made, so that a retry
        may succeed.
        """
        ...

    @property
    def token(self) -> str:
        """Cached token, which must be masked in messages of the provider; "" if there is none."""
        ...

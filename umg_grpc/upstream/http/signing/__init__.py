"""Credentials that are computed for each request: signatures and short-lived tokens."""

from collections.abc import Mapping
from typing import Protocol

from umg_grpc.upstream.http1.request import Outgoing


class Signer(Protocol):
    """Source of the headers with the credentials of a request."""

    async def headers(self, outgoing: Outgoing) -> Mapping[str, str]:
        """Return the headers that authenticate the request, which is sent unchanged otherwise. Raise UmgError."""
        ...

    def discard(self) -> bool:
        """Discard cached credentials, which the provider has rejected. Return whether others will be made, so that
        another attempt may succeed.
        """
        ...

    @property
    def token(self) -> str:
        """Cached token, which is masked in texts of the provider; "" if no token is cached."""
        ...

"""Short-lived JSON web tokens that the gateway signs with a secret key by HS256."""

import time
from collections.abc import Callable, Mapping

import jwt

from umg_grpc.upstream.http1.request import Outgoing

VALID_SECONDS, EARLIER_SECONDS = 1800, 5
"""Time for which a token is valid, and time by which it is valid before it was made, for a provider whose clock is
slow.
"""


class ShortTokenSigner:
    """Signer that makes a new JSON web token for each request, from an access key and its secret."""

    token = ""  # each is different, and valid for a short time

    def __init__(self, access_key: str, secret: str, now: Callable[[], float] = time.time) -> None:
        self._access_key = access_key
        self._secret = secret
        self._now = now

    async def headers(self, outgoing: Outgoing) -> Mapping[str, str]:
        """Return the authentication header with a new token."""
        return {"Authorization": f"Bearer {short_token(self._access_key, self._secret, int(self._now()))}"}

    def discard(self) -> bool:
        """Return False, because no token is cached and a retry would not succeed."""
        return False


def short_token(access_key: str, secret: str, now: int) -> str:
    """Return a signed JSON web token for an access key. `now`: Unix seconds."""
    claims = {"iss": access_key, "exp": now + VALID_SECONDS, "nbf": now - EARLIER_SECONDS}
    return jwt.encode(claims, secret, algorithm="HS256")

"""Short-lived JSON web tokens that the gateway signs with a secret key by HS256."""

import time
from collections.abc import Callable, Mapping

import jwt

from umg_grpc.upstream.http1.request import OutgoingRequest
from umg_grpc.wire.dropped_fields_report import untranslatable

VALID_SECONDS, EARLIER_SECONDS = 1800, 5
"""Seconds for which a token is valid after it was made, and before that, for a provider whose clock is slow."""


class ShortTokenSigner:
    """Signer that makes a new JSON web token for each request, from an access key and its secret."""

    token = ""  # each is different, and valid for a short time

    def __init__(self, access_key: str, secret: str, now: Callable[[], float] = time.time, *, prefix: str = "") -> None:
        """Create an access key's signer. `prefix`: beginning of URLs whose server accepts tokens, "" for all."""
        self._access_key = access_key
        self._secret = secret
        self._now = now
        self._prefix = prefix

    async def headers(self, outgoing: OutgoingRequest) -> Mapping[str, str]:
        """Return the authentication header with a new token. Raise UmgError(UNTRANSLATABLE) for a URL at which the
        provider accepts no token: another channel may have a suitable key, and this key is not at fault.
        """
        if not outgoing.url.startswith(self._prefix):
            problem = "its provider accepts only an API key for this model, but the channel has an access key"
            raise untranslatable("model", f"{problem}; configure an API key without a colon")
        return {"Authorization": f"Bearer {short_token(self._access_key, self._secret, int(self._now()))}"}

    def discard(self) -> bool:
        """Return False, because no token is cached and a retry would not succeed."""
        return False


def short_token(access_key: str, secret: str, now: int) -> str:
    """Return a signed JSON web token for an access key. `now`: Unix seconds."""
    claims = {"iss": access_key, "exp": now + VALID_SECONDS, "nbf": now - EARLIER_SECONDS}
    return jwt.encode(claims, secret, algorithm="HS256")

"""OAuth access tokens of a service account: a JWT that is signed by RS256 is exchanged for a token, which is cached."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from ssl import SSLContext
from urllib.parse import urlencode, urlsplit

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.provider_failure import FailureKind, ProviderFailure
from umg_grpc.upstream.http.signing.cached_token import CachedTokenSigner, Token, seconds_of_use, unavailable
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.upstream.http1.request import OutgoingRequest
from umg_grpc.v1 import pb

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:jwt-bearer"
ASSERTION_SECONDS = 3600
REFUSAL_STATUSES = frozenset({400, 401, 403, 404})
EXPECTED_KEY = "expected the JSON key of a service account, with `client_email`, `private_key` and `token_uri`"


class _KeyFile(msgspec.Struct):
    client_email: str
    private_key: str
    token_uri: str
    private_key_id: str = ""


class _Token(msgspec.Struct):
    access_token: str
    expires_in: float = 3600


@dataclass(frozen=True)
class ServiceAccount:
    """Identity and private key of a service account."""

    email: str
    key_id: str
    """Id of the private key: no secret, but different for each key."""
    token_uri: str
    private_key: RSAPrivateKey = field(repr=False)


def read_service_account(path: str) -> ServiceAccount:
    """Return the service account in a JSON key file. Raise OSError for an unreadable file or other content."""
    try:
        found = msgspec.json.decode(Path(path).read_bytes(), type=_KeyFile)
        key = load_pem_private_key(found.private_key.encode(), password=None)
    except (ValueError, TypeError):  # also msgspec's errors, whose text may contain a part of the key
        raise OSError(EXPECTED_KEY) from None
    uri = urlsplit(found.token_uri)
    if not isinstance(key, RSAPrivateKey) or uri.scheme not in {"http", "https"} or not uri.hostname:
        raise OSError(EXPECTED_KEY)
    return ServiceAccount(found.client_email, found.private_key_id or found.client_email, found.token_uri, key)


class ServiceAccountSigner(CachedTokenSigner):
    """Signer that sends OAuth access tokens of a service account."""

    def __init__(
        self,
        account: ServiceAccount,
        client: Client,
        *,
        scope: str,
        proxy: str | None = None,
        tls: SSLContext | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Create a signer. `client`: HTTP client for token requests; `scope`: requested OAuth scope; `proxy`, `tls`:
        settings of the channel, used for token requests too; `now`: returns the Unix time.
        """
        super().__init__(now)
        self._account = account
        self._client = client
        self._scope = scope
        self._proxy = proxy
        self._tls = tls

    async def new_token(self, deadlines: Deadlines) -> Token:
        now = int(self._now())
        claims = {
            "iss": self._account.email,
            "scope": self._scope,
            "aud": self._account.token_uri,
            "iat": now,
            "exp": now + ASSERTION_SECONDS,
        }
        assertion = await asyncio.to_thread(jwt.encode, claims, self._account.private_key, "RS256")
        request = OutgoingRequest(
            url=self._account.token_uri,
            headers={"Content-Type": "application/x-www-form-urlencoded"},
            body=urlencode({"grant_type": GRANT_TYPE, "assertion": assertion}).encode(),
            deadlines=deadlines,
            proxy=self._proxy,
            tls=self._tls,
        )
        try:
            status, _, body = await self._client.fetch(request)
        except UmgError as error:
            raise unavailable(error.cause or error.message) from None
        if status in REFUSAL_STATUSES:
            message = "the provider refused the gateway's service account; the operator has to check the channel"
            refusal = UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message, upstream_status=str(status))
            facts = ProviderFailure(FailureKind.WRONG_KEY, status, path=urlsplit(self._account.token_uri).path)
            raise refusal.with_failure(Failure.DOWN).with_facts(facts)
        try:
            token = msgspec.json.decode(body, type=_Token)
        except ValueError:
            raise unavailable(f"the response to the request of a token has status {status} and no token") from None
        return Token(token.access_token, seconds_of_use(token.expires_in))

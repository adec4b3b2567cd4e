"""Metadata and public keys of an OpenID Connect issuer, which are read when they are needed and kept in memory."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
import structlog
from structlog.typing import FilteringBoundLogger

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

if TYPE_CHECKING:
    import jwt

METADATA_PATH = "/.well-known/openid-configuration"
SIGNATURE_ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"},
)
"""Algorithms of signatures that are accepted: those with a public key. A secret that both sides know is none."""
KEY_TYPES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
"""Beginning of an algorithm's name -> type of its keys (RFC 7518, section 6.1; RFC 8037)."""
REFRESH_SECONDS = 3600.0
"""Age of the keys from which on they are read again in the background."""
RETRY_SECONDS = 10.0
"""Least time between two reads, so that tokens with unknown keys cause few of them."""
MAX_KEYS = 100

Document = TypeVar("Document")
logger: FilteringBoundLogger = structlog.get_logger(__name__)


class Metadata(msgspec.Struct, frozen=True):
    """Metadata of an issuer (OpenID Connect Discovery 1.0, section 3), as far as they are used."""

    issuer: str
    jwks_uri: str
    authorization_endpoint: str = ""
    token_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class _KeySet(msgspec.Struct, frozen=True):
    keys: list[dict[str, Any]]


class IssuerAwayError(Exception):
    """Error of a request to an issuer that got no usable response; its text is for the log."""


class Fetch(Protocol):
    """HTTP request to an issuer: a POST with `form`, or else a GET."""

    def __call__(
        self, url: str, seconds: float, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> Awaitable[bytes]:
        """Return the body of the response with the status 200. Raise IssuerAwayError for any other outcome."""


class IssuerKeys:
    """Public keys of one issuer by their ids. Keys that were read stay valid while the issuer does not answer."""

    def __init__(
        self,
        issuer: str,
        fetch: Fetch,
        *,
        seconds: float,
        on_removal: Callable[[], None] = lambda: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create the keys of the issuer with this URL; nothing is read yet. `seconds`: longest time of a request;
        `on_removal`: called when the issuer does not publish a key any more, by which tokens were verified.
        """
        self._issuer = issuer
        self._fetch = fetch
        self._seconds = seconds
        self._on_removal = on_removal
        self._monotonic = monotonic
        self._metadata: Metadata | None = None
        self._keys: list[dict[str, Any]] = []
        self._read_at = self._tried_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None

    async def aclose(self) -> None:
        """Stop a read in the background."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])

    async def metadata(self) -> Metadata:
        """Return the metadata of the issuer. Raise UmgError(UNAVAILABLE) if they were never read and cannot be."""
        if self._metadata is None:
            await self._read()
        if self._metadata is None:
            raise self._away()
        return self._metadata

    async def key(self, key_id: str | None, algorithm: str) -> "jwt.PyJWK":
        """Return the public key with an id, or the only key of the algorithm for None. Raise UmgError: INVALID_KEY if
        the issuer has no key of this id, UNAVAILABLE if its keys were never read and cannot be.
        """
        import jwt  # here, as elsewhere: it takes 8 MB with its library of ciphers, and few gateways have issuers

        found = self._find(key_id, algorithm)
        if found is None:
            await self._read()
            found = self._find(key_id, algorithm)
        elif self._monotonic() - self._read_at > REFRESH_SECONDS:
            self._start_reading()
        if found is None:
            if not self._keys:
                raise self._away()
            message = "the token is signed by a key that its issuer does not publish; get another token"
            raise UmgError(pb.ERROR_REASON_INVALID_KEY, message)
        try:
            return jwt.PyJWK(found, algorithm)
        except (jwt.PyJWTError, ValueError, TypeError):
            message = "the token's issuer publishes no usable key for it"
            raise UmgError(pb.ERROR_REASON_INVALID_KEY, message) from None

    def _find(self, key_id: str | None, algorithm: str) -> dict[str, Any] | None:
        usable = [
            key
            for key in self._keys
            if key.get("kty") == KEY_TYPES[algorithm[:2]]
            and key.get("alg", algorithm) == algorithm
            and key.get("use", "sig") == "sig"
            and (key_id is None or key.get("kid") == key_id)
        ]
        return usable[0] if len(usable) == 1 else None

    async def _read(self) -> None:
        """Read the keys unless they were read, or the issuer did not answer, a moment ago. One read runs at a time."""
        self._start_reading()
        if (reading := self._reading) is not None:
            await asyncio.wait([reading])  # a caller that leaves does not stop the read for the others

    def _start_reading(self) -> None:
        if self._reading is None and self._monotonic() - self._tried_at >= RETRY_SECONDS:
            self._tried_at = self._monotonic()
            self._reading = asyncio.create_task(self._load(), name="keys of an issuer")

    async def _load(self) -> None:
        try:
            metadata = await self._parsed(self._issuer.rstrip("/") + METADATA_PATH, Metadata)
            if metadata.issuer != self._issuer:  # OpenID Connect Discovery 1.0, section 4.3
                raise IssuerAwayError(f"its metadata are those of {metadata.issuer[:200]}")
            keys = (await self._parsed(metadata.jwks_uri, _KeySet)).keys[:MAX_KEYS]
        except IssuerAwayError as error:
            logger.warning("the keys of an issuer cannot be read", issuer=self._issuer, reason=str(error))
            return
        finally:
            self._reading = None
        is_removal = any(key not in keys for key in self._keys)
        self._metadata, self._keys, self._read_at = metadata, keys, self._monotonic()
        if is_removal:
            self._on_removal()

    async def _parsed(self, url: str, kind: type[Document]) -> Document:
        try:
            return msgspec.json.decode(await self._fetch(url, self._seconds), type=kind)
        except ValueError as error:
            raise IssuerAwayError(f"{url}: {str(error)[:200]}") from None

    def _away(self) -> UmgError:
        message = f"the issuer {self._issuer} does not answer, so that its tokens cannot be checked; try again"
        return UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds=f"{RETRY_SECONDS:g}")

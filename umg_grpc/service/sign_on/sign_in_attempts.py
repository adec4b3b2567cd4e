"""Sign-ins at an issuer that have begun: their state is encrypted and kept by the browser, so that any replica can
complete them.
"""

import base64
import hashlib
import secrets
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

ATTEMPT_SECONDS = 600
ATTEMPT_PURPOSE = b"umg sign-in attempts"
RANDOM_BYTES = 32


class SignInAttempt(msgspec.Struct, frozen=True, array_like=True):
    """Sign-in of one browser at one issuer."""

    issuer: str
    """Name of the issuer in the config."""
    state: str
    """Text that the issuer returns, by which the response belongs to this browser."""
    nonce: str
    """Text in the issuer's token, by which it was made for this sign-in."""
    verifier: str
    """Secret whose hash the issuer has, so that only its holder can use the code (PKCE, RFC 7636)."""
    return_path: str
    """Path to which the browser is led at the end."""

    @property
    def challenge(self) -> str:
        """Hash of the verifier by the method S256."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def new_attempt(issuer: str, return_path: str) -> SignInAttempt:
    """Return an attempt with new random texts."""
    state, nonce, verifier = (secrets.token_urlsafe(RANDOM_BYTES) for _ in range(3))
    return SignInAttempt(issuer, state, nonce, verifier, return_path)


class AttemptCodec:
    """Encryption of attempts with a key that is derived from the gateway's secret."""

    def __init__(self, secret: str, accepted: Sequence[str] = ()) -> None:
        self._secrets = (secret, *accepted)

    @cached_property
    def _cipher(self) -> "MultiFernet":
        from cryptography.fernet import Fernet, MultiFernet  # here: it takes 6 MB, and few gateways have issuers

        return MultiFernet([Fernet(_key(each)) for each in self._secrets])

    def encode(self, attempt: SignInAttempt) -> str:
        """Return an attempt as a text for a cookie."""
        return self._cipher.encrypt(msgspec.json.encode(attempt)).decode()

    def decode(self, text: str) -> SignInAttempt | None:
        """Return the attempt in a text; None for another text, and after `ATTEMPT_SECONDS`."""
        from cryptography.fernet import InvalidToken

        try:
            return msgspec.json.decode(self._cipher.decrypt(text.encode(), ttl=ATTEMPT_SECONDS), type=SignInAttempt)
        except (InvalidToken, msgspec.DecodeError, UnicodeEncodeError):
            return None


def _key(secret: str) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    derived = HKDF(SHA256(), 32, salt=None, info=ATTEMPT_PURPOSE).derive(secret.encode())
    return base64.urlsafe_b64encode(derived)

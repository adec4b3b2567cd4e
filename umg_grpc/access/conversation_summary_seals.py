"""Seals of summaries. Only the gateway can open a seal, for the same API key, at any replica with the same secret."""

import hmac
import secrets
import zlib
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

SEAL_PURPOSE = b"umg summaries of conversations:"
"""Purpose from which keys are derived, so that no other use of the secret has the same key."""
NONCE_BYTES = 12
MAX_SUMMARY_BYTES = 8 << 20
"""Maximum size of an opened summary, far above that of any model's output."""


class SummarySeals:
    """Encryption of summaries by the operator's secret (AES-GCM), with a derived key for each caller's API key."""

    def __init__(self, secret: str, accepted: Sequence[str] = ()) -> None:
        """Create the seals. `accepted`: further secrets whose seals are opened too, for a rotation."""
        self._secrets = [each.encode() for each in (secret, *accepted)]

    def seal(self, owner: str, summary: str) -> str:
        """Return a summary sealed for the caller's key with the id `owner`, as printable text."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        packed = zlib.compress(summary.encode(errors="replace"))
        return urlsafe_b64encode(nonce + _cipher(self._secrets[0], owner).encrypt(nonce, packed, None)).decode()

    def open(self, owner: str, sealed: str) -> str | None:
        """Return the summary sealed for the key `owner`; None if it was changed, or sealed by another secret."""
        from cryptography.exceptions import InvalidTag  # here: it takes 6 MB, and few callers compact conversations

        try:
            data = b64decode(sealed.encode(), b"-_", validate=True)
        except ValueError:
            return None
        for secret in self._secrets:
            try:
                packed = _cipher(secret, owner).decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], None)
            except (InvalidTag, ValueError):
                continue
            return zlib.decompressobj().decompress(packed, MAX_SUMMARY_BYTES).decode(errors="replace")
        return None


def _cipher(secret: bytes, owner: str) -> "AESGCM":
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # here as in `open`

    return AESGCM(hmac.digest(secret, SEAL_PURPOSE + owner.encode(), "sha256"))

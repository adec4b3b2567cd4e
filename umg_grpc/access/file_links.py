"""Signed, expiring links to result files: `GET /files/{token}`. The token is the credential, and needs no database."""

import hmac
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import jwt

from umg_grpc.store.blobs import BLOB_ID, Blob, not_found

ALGORITHM = "HS256"
PURPOSE = b"umg result files"
"""Purpose from which the key of links is derived, so that a signature for another purpose is no link."""
PATH = "/files/"
MAX_TOKEN_CHARACTERS = 2048


@dataclass(frozen=True)
class FileLink:
    """Claims of a valid link token."""

    blob_id: str
    file_name: str
    """Name that a browser suggests for the file; "" without one."""
    expire_time: datetime


class FileLinks:
    """Signer and verifier of links."""

    def __init__(
        self,
        secret: str,
        ttl: float,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        accepted: Sequence[str] = (),
    ) -> None:
        """Create a signer. `ttl`: seconds for which blobs are stored, and so the longest time of a link; `accepted`:
        further secrets whose links are valid.
        """
        self.base_url = ""
        """URL of the gateway for callers, without a trailing slash; set before calls are accepted."""
        self._key, *self._accepted = (hmac.digest(each.encode(), PURPOSE, "sha256") for each in (secret, *accepted))
        self._ttl = timedelta(seconds=ttl)
        self._now = now

    def url_of(self, blob: Blob, *, file_name: str = "", seconds: float | None = None) -> str:
        """Return a link to a blob. It expires after `seconds`, and no later than the blob is deleted by its age."""
        return f"{self.base_url}{PATH}{self.token_of(blob, file_name=file_name, seconds=seconds)}"

    def token_of(self, blob: Blob, *, file_name: str = "", seconds: float | None = None) -> str:
        """Return the token of a link, see `url_of`."""
        claims = {"b": blob.id, "exp": self.expire_time_of(blob, seconds)}
        return jwt.encode({**claims, "n": file_name} if file_name else claims, self._key, ALGORITHM)

    def expire_time_of(self, blob: Blob, seconds: float | None = None) -> datetime:
        """Return the time at which a link made now expires, in whole seconds."""
        end = blob.create_time + self._ttl
        wanted = end if seconds is None else min(end, self._now() + timedelta(seconds=seconds))
        return wanted.replace(microsecond=0)

    def read(self, token: str) -> FileLink:
        """Return the content of a token. Raise UmgError(OBJECT_NOT_FOUND), the same for a forged and an expired one."""
        try:
            if len(token) > MAX_TOKEN_CHARACTERS:
                raise not_found()
            # compared with our clock below
            key = self._key_of(token)
            claims = jwt.decode(token, key, [ALGORITHM], options={"require": ["exp"], "verify_exp": False})
            blob_id, name, end = claims.get("b"), claims.get("n", ""), datetime.fromtimestamp(int(claims["exp"]), UTC)
        except (jwt.InvalidTokenError, ValueError, OverflowError, UnicodeError):
            raise not_found() from None
        if not isinstance(blob_id, str) or not isinstance(name, str) or not BLOB_ID.fullmatch(blob_id):
            raise not_found()
        if end <= self._now():
            raise not_found()
        return FileLink(blob_id, name, end)

    def _key_of(self, token: str) -> bytes:
        """Return the key that signed a token; if no known key did, the key of new links."""
        for key in self._accepted:
            with suppress(jwt.InvalidTokenError):
                jwt.decode(token, key, [ALGORITHM], options={"verify_exp": False})
                return key
        return self._key

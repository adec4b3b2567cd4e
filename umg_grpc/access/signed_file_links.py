"""Signed, expiring links to result files: `GET /files/{token}`. The token authenticates without a database."""

import hmac
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from umg_grpc.store.blob_store import BLOB_ID, Blob, not_found

SIGNATURE_ALGORITHM = "HS256"
LINK_PURPOSE = b"umg result files"
"""Purpose from which the key of links is derived, so that a signature for another purpose is no link."""
FILES_PATH = "/files/"
MAX_TOKEN_CHARACTERS = 2048


@dataclass(frozen=True)
class FileLink:
    """Verified content of a link's token: the file, the suggested name of the file, and the time of expiry."""

    blob_id: str
    file_name: str
    """Name that a browser suggests for the file; "" without one."""
    expire_time: datetime


class FileLinks:
    """Signer and verifier of links to result files."""

    def __init__(
        self,
        secret: str,
        ttl: float,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        accepted: Sequence[str] = (),
    ) -> None:
        """Create a signer with the operator's `secret`. `ttl`: seconds for which files are stored, the longest validity
        of a link; `accepted`: further secrets whose links are valid.
        """
        self.base_url = ""
        """URL of the gateway for callers, without a trailing slash; set before calls are accepted."""
        self._key, *self._accepted = (
            hmac.digest(each.encode(), LINK_PURPOSE, "sha256") for each in (secret, *accepted)
        )
        self._ttl = timedelta(seconds=ttl)
        self._now = now

    def url_of(self, blob: Blob, *, file_name: str = "", seconds: float | None = None) -> str:
        """Return a signed link to a stored file. `file_name`: name that a browser suggests. The link expires after
        `seconds` (None: as late as possible), at the latest when the file is deleted because of its age.
        """
        return f"{self.base_url}{FILES_PATH}{self.token_of(blob, file_name=file_name, seconds=seconds)}"

    def token_of(self, blob: Blob, *, file_name: str = "", seconds: float | None = None) -> str:
        """Return the signed token of a link to a stored file, with the parameters and the expiry of `url_of`."""
        import jwt  # here, as below: it takes 8 MB with its library of ciphers, and few gateways store files

        claims = {"b": blob.id, "exp": self.expire_time_of(blob, seconds)}
        return jwt.encode({**claims, "n": file_name} if file_name else claims, self._key, SIGNATURE_ALGORITHM)

    def expire_time_of(self, blob: Blob, seconds: float | None = None) -> datetime:
        """Return the expiry, in whole seconds, of a link created now that is valid for `seconds` (None: longest)."""
        end = blob.create_time + self._ttl
        wanted = end if seconds is None else min(end, self._now() + timedelta(seconds=seconds))
        return wanted.replace(microsecond=0)

    def read(self, token: str) -> FileLink:
        """Verify a token, and return its content. Raise UmgError(OBJECT_NOT_FOUND) if it is forged or expired."""
        import jwt

        try:
            if len(token) > MAX_TOKEN_CHARACTERS:
                raise not_found()
            # compared with our clock below
            key = self._key_of(token)
            claims = jwt.decode(token, key, [SIGNATURE_ALGORITHM], options={"require": ["exp"], "verify_exp": False})
            blob_id, name, end = claims.get("b"), claims.get("n", ""), datetime.fromtimestamp(int(claims["exp"]), UTC)
        except (jwt.InvalidTokenError, ValueError, OverflowError, UnicodeError):
            raise not_found() from None
        if not isinstance(blob_id, str) or not isinstance(name, str) or not BLOB_ID.fullmatch(blob_id):
            raise not_found()
        if end <= self._now():
            raise not_found()
        return FileLink(blob_id, name, end)

    def _key_of(self, token: str) -> bytes:
        import jwt

        for key in self._accepted:
            with suppress(jwt.InvalidTokenError):
                jwt.decode(token, key, [SIGNATURE_ALGORITHM], options={"verify_exp": False})
                return key
        return self._key

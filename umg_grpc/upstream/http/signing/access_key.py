"""Request signatures by an access key: HMAC-SHA256 over method, path, query, headers and body. The scheme of one vendor
of video models, which resembles version 4 of the AWS signature.
"""

import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from urllib.parse import quote

from yarl import URL

from umg_grpc.upstream.http1.request import OutgoingRequest

SIGNATURE_ALGORITHM = "HMAC-SHA256"
CONTENT_TYPE = "Content-Type"


class AccessKeySigner:
    """Signer of requests by an access key and its secret."""

    token = ""  # the secret is never sent

    def __init__(
        self,
        access_key: str,
        secret: str,
        *,
        region: str,
        service: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._access_key = access_key
        self._secret = secret.encode()
        self._region = region
        self._service = service
        self._now = now

    async def headers(self, outgoing: OutgoingRequest) -> Mapping[str, str]:
        """Return the headers with the signature of a request, which include the time and the hash of its body."""
        time = self._now().strftime("%Y%m%dT%H%M%SZ")
        url, digest = URL(outgoing.url), sha256(outgoing.body).hexdigest()
        given = {name.lower(): value for name, value in outgoing.headers.items()}
        signed = {
            "content-type": given.get("content-type", "application/json"),
            "host": given.get("host", url.host_port_subcomponent or ""),
            "x-content-sha256": digest,
            "x-date": time,
        }
        names = ";".join(signed)
        scope = f"{time[:8]}/{self._region}/{self._service}/request"
        canonical = canonical_request(outgoing.method, url, signed, digest)
        text = f"{SIGNATURE_ALGORITHM}\n{time}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
        signature = hmac.new(self._key(time[:8]), text.encode(), sha256).hexdigest()
        credential = (
            f"{SIGNATURE_ALGORITHM} Credential={self._access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
        )
        return {
            CONTENT_TYPE: signed["content-type"],
            "X-Date": time,
            "X-Content-Sha256": digest,
            "Authorization": credential,
        }

    def discard(self) -> bool:
        """Return False, because no credentials are cached and a retry would not succeed."""
        return False

    def _key(self, date: str) -> bytes:
        key = self._secret
        for part in (date, self._region, self._service, "request"):
            key = hmac.digest(key, part.encode(), "sha256")
        return key


def canonical_request(method: str, url: URL, headers: Mapping[str, str], digest: str) -> str:
    """Return the form whose hash is signed. `headers`: by lower-case name, sorted; `digest`: SHA-256 of the body."""
    query = "&".join(f"{_encoded(name)}={_encoded(value)}" for name, value in sorted(url.query.items()))
    lines = "".join(f"{name}:{value.strip()}\n" for name, value in headers.items())
    return "\n".join((method, url.raw_path or "/", query, lines, ";".join(headers), digest))


def _encoded(text: str) -> str:
    return quote(text, safe="-_.~")

"""AWS request signatures (version 4): HMAC-SHA256 over method, path, query, headers and body.

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from urllib.parse import parse_qsl, quote, urlsplit

from yarl import URL

from umg_grpc.upstream.http1.request import OutgoingRequest

SIGNATURE_ALGORITHM = "AWS4-HMAC-SHA256"
UNESCAPED_CHARACTERS = "-_.~"


class AwsSigner:
    """Signer of requests by an AWS access key, its secret and, for temporary credentials, a session token."""

    def __init__(
        self,
        access_key: str,
        secret: str,
        session_token: str = "",
        *,
        region: str,
        service: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Create a signer for one service in one region. `session_token`: "" for permanent credentials."""
        self._access_key = access_key
        self._secret = secret
        self.token = session_token  # the secret is never sent
        self._region = region
        self._service = service
        self._now = now

    async def headers(self, outgoing: OutgoingRequest) -> Mapping[str, str]:
        """Return the headers with the signature of a request, which include the time and the hash of its body."""
        time, digest = self._now().strftime("%Y%m%dT%H%M%SZ"), sha256(outgoing.body).hexdigest()
        given = {name.lower(): value for name, value in outgoing.headers.items()}
        added = {"X-Amz-Date": time, "X-Amz-Content-Sha256": digest}
        if self.token:
            added["X-Amz-Security-Token"] = self.token
        signed = {
            "host": given.get("host", URL(outgoing.url).host_port_subcomponent or ""),
            **({"content-type": given["content-type"]} if "content-type" in given else {}),
            **{name.lower(): value for name, value in added.items()},
        }
        return {**added, "Authorization": self.authorization(outgoing.method, outgoing.url, signed, digest)}

    def authorization(self, method: str, url: str, headers: Mapping[str, str], digest: str) -> str:
        """Return the header `Authorization`. `headers`: signed, with `x-amz-date`; `digest`: SHA-256 of the body."""
        time = headers["x-amz-date"]
        scope = f"{time[:8]}/{self._region}/{self._service}/aws4_request"
        canonical = sha256(canonical_request(method, url, headers, digest).encode()).hexdigest()
        key = f"AWS4{self._secret}".encode()
        for part in (time[:8], self._region, self._service, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, f"{SIGNATURE_ALGORITHM}\n{time}\n{scope}\n{canonical}".encode(), "sha256").hex()
        names = ";".join(sorted(headers))
        return (
            f"{SIGNATURE_ALGORITHM} Credential={self._access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
        )

    def discard(self) -> bool:
        """Return False, because no credentials are cached and a retry would not succeed."""
        return False


def canonical_request(method: str, url: str, headers: Mapping[str, str], digest: str) -> str:
    """Return the canonical form of a request, whose hash is signed. `headers`: signed headers by lower-case name;
    `digest`: SHA-256 of the body. The path is URL-encoded twice, as all AWS services except S3 require.
    """
    sent = URL(url)
    query = sorted(
        f"{quote(name, safe=UNESCAPED_CHARACTERS)}={quote(value, safe=UNESCAPED_CHARACTERS)}"
        for name, value in parse_qsl(urlsplit(sent.raw_path_qs).query, keep_blank_values=True)
    )
    lines = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in sorted(headers))
    path = quote(sent.raw_path or "/", safe=f"/{UNESCAPED_CHARACTERS}")
    return "\n".join((method, path, "&".join(query), lines, ";".join(sorted(headers)), digest))

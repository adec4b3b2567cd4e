"""HTTP requests to the issuers of the config: metadata, public keys, and exchanges of codes for tokens."""

from collections.abc import Mapping
from urllib.parse import urlencode

from umg_grpc.access.issuer_keys import IssuerAwayError
from umg_grpc.base.errors import UmgError
from umg_grpc.base.proxy_rules import ProxyRules
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.upstream.http1.request import OutgoingRequest

MAX_BYTES = 1 << 20
FORM_TYPE = "application/x-www-form-urlencoded"
SHOWN_BYTES = 200


class IssuerRequests:
    """Sender of requests to issuers; a `Fetch`."""

    def __init__(self, client: Client, proxies: ProxyRules) -> None:
        self._client = client
        self._proxies = proxies

    async def __call__(
        self, url: str, seconds: float, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        proxy = self._proxies.of_url(url)
        request = OutgoingRequest(
            url,
            {"Accept": "application/json", **({} if form is None else {"Content-Type": FORM_TYPE}), **(headers or {})},
            b"" if form is None else urlencode(form).encode(),
            Deadlines.all_of(seconds),
            proxy=None if proxy is None else proxy.url,
            max_bytes=MAX_BYTES,
            method="GET" if form is None else "POST",
            repeatable=form is None,
        )
        try:
            fetched = await self._client.fetch(request)
        except UmgError as error:
            raise IssuerAwayError(f"{url}: {error.cause or error.message}") from None
        except ValueError as error:
            raise IssuerAwayError(f"{url}: {error}") from None
        if fetched.status != 200:
            start = fetched.body[:SHOWN_BYTES].decode(errors="replace")
            raise IssuerAwayError(f"{url}: HTTP status {fetched.status}: {start}")
        return fetched.body

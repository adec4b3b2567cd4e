"""Endpoints of a provider: its base URL with the credentials of one account, and the rotation of several keys."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from types import MappingProxyType
from typing import Protocol
from urllib.parse import quote, urlencode

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.rendezvous_hashing import distance
from umg_grpc.upstream.http.key_rotation import KeyRotation
from umg_grpc.upstream.http.signing import Signer
from umg_grpc.upstream.http1.request import OutgoingRequest

CONTENT_TYPE = "Content-Type"
KEY_ID_CHARACTERS = 16


@dataclass(frozen=True)
class ProviderEndpoint:
    """Address of a provider together with the credentials of one account."""

    base_url: str
    headers: Mapping[str, str]
    """Headers of every request, with the credentials where the operator configures their header."""
    key: str = ""
    """API key that is sent in the header that the wire format defines; "" if there is none."""
    key_in_headers: str = ""
    """API key that is contained in `headers`, or from which `signer` makes credentials; "" if there is none."""
    signer: Signer | None = None
    """Source of credentials that are made for each request; None if static headers are sufficient."""
    query: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Parameters that are added to the query of every URL, with the key where the provider expects it there."""

    @property
    def secret(self) -> str:
        """API key of the account, in whichever header it is sent; "" if there is none."""
        return self.key or self.key_in_headers

    @cached_property
    def key_id(self) -> str:
        """Fingerprint of the key, which identifies it in records without revealing it; "" without a key."""
        return sha256(self.secret.encode()).hexdigest()[:KEY_ID_CHARACTERS] if self.secret else ""

    @cached_property
    def query_string(self) -> str:
        """Configured query parameters as a part of a URL."""
        return urlencode(self.query, quote_via=quote)

    @cached_property
    def request_templates(self) -> dict[tuple[object, ...], OutgoingRequest]:
        """Cache of encoded HTTP requests without their bodies, by all that determines them; at most MAX_TEMPLATES."""
        return {}

    def url(self, path: str) -> str:
        """Return the URL of a request. `path`: path below the base URL, with or without a query."""
        if not self.query:
            return self.base_url + path
        return f"{self.base_url}{path}{'&' if '?' in path else '?'}{self.query_string}"

    def request_headers(self, key_header: str) -> dict[str, str]:
        """Return the request's headers with credentials. `key_header`: header of the wire format for the key."""
        headers = {CONTENT_TYPE: "application/json", **self.headers}
        if self.key and key_header == "authorization":
            headers["Authorization"] = f"Bearer {self.key}"
        elif self.key:
            headers[key_header] = self.key
        return headers


class EndpointSource(Protocol):
    """Function that selects the endpoint (address and credentials) of a call."""

    async def __call__(self, broken: ProviderEndpoint | None) -> ProviderEndpoint:
        """Return the endpoint for a call. `broken`: endpoint of the channel to which the last connection failed, None
        if no connection failed. The process of a local model may have another address since then.
        """
        ...


class RotatingEndpoints:
    """Endpoints of a channel, one for each API key, used in turn or by affinity. Suspended keys are skipped."""

    def __init__(self, endpoints: Sequence[ProviderEndpoint], now: Callable[[], float] = time.monotonic) -> None:
        """Create the rotation of `endpoints`, at least one. `now`: returns the seconds since a fixed time."""
        self.keys = KeyRotation(len(endpoints), now)
        self.single = endpoints[0] if len(endpoints) == 1 else None
        """Endpoint of a channel with one key."""
        self.endpoints = endpoints
        """Endpoints of all keys of the channel."""

    def at(self, base_url: str) -> "RotatingEndpoints":
        """Return the same rotation for another base URL: a suspended key is suspended at both URLs."""
        other = copy(self)
        other.endpoints = [replace(endpoint, base_url=base_url) for endpoint in self.endpoints]
        other.single = other.endpoints[0] if self.single is not None else None
        return other

    def next(self) -> ProviderEndpoint:
        """Return the endpoint of the next key that is not suspended, or of that whose suspension ends first."""
        return self.endpoints[self.keys.next()]

    def nearest(self, affinity: bytes) -> ProviderEndpoint:
        """Return the endpoint that `affinity` prefers among those with usable keys; it is the same in every process. If
        all keys are suspended, return the one whose suspension ends first.
        """
        return self.endpoints[self.keys.nearest([distance(each.key_id, affinity) for each in self.endpoints])]

    async def __call__(self, broken: ProviderEndpoint | None) -> ProviderEndpoint:
        """Return the endpoint with the next key. `broken` is ignored, since a provider's address does not change."""
        return self.next()

    @property
    def key_ids(self) -> list[str]:
        """Fingerprints of all keys, in the order of the endpoints."""
        return [endpoint.key_id for endpoint in self.endpoints]

    def of_key(self, key_id: str) -> ProviderEndpoint:
        """Return the endpoint whose key has this fingerprint, also a suspended one. If none has it, the operator has
        replaced the key by another of the same account: the next endpoint is returned.
        """
        return next((endpoint for endpoint in self.endpoints if endpoint.key_id == key_id), None) or self.next()

    def record_success(self, endpoint: ProviderEndpoint) -> None:
        """Record a successful response, which ends the suspension of the endpoint's key."""
        self.keys.record_success(self._number(endpoint))

    def record_failure(self, endpoint: ProviderEndpoint, error: UmgError) -> None:
        """Record the error of a call, which may suspend the endpoint's key. If the error concerns only this key and
        another one is usable, set its `failure` to OTHER_KEY. If all keys have reached their rate limits, set its
        `retry_after_seconds`.
        """
        if self.keys.record_failure(self._number(endpoint), error):
            error.with_failure(Failure.OTHER_KEY)
        elif error.failure is Failure.OVERLOADED and len(self.endpoints) > 1 and (wait := self.keys.seconds_to_free):
            seconds = math.ceil(wait)
            error.metadata["retry_after_seconds"] = str(seconds)
            error.message = f"the rate limits of all keys are reached; try again in {seconds} s"

    def _number(self, endpoint: ProviderEndpoint) -> int:
        return next(number for number, known in enumerate(self.endpoints) if known is endpoint)

"""Secrets of a channel: those of all its keys, also of former tokens, and no words that are no secrets."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from umg_grpc.upstream.http.channel_secrets import MAX_TOKENS, ChannelSecrets
from umg_grpc.upstream.http.provider_endpoints import ProviderEndpoint
from umg_grpc.upstream.http1.request import OutgoingRequest

BASE = "https://provider.example/v1"


@dataclass(frozen=True)
class Case:
    id: str
    endpoints: list[ProviderEndpoint]
    text: str
    masked: str
    proxy: str | None = None


def account(key: str, headers: Mapping[str, str] | None = None, **query: str) -> ProviderEndpoint:
    return ProviderEndpoint(BASE, headers or {}, key, query=query)


CASES = [
    Case("another key of the channel", [account("key-one"), account("key-two")], "key-two key-one", "[key] [key]"),
    Case("both parts of a pair", [account("AKID123:shh-456")], "AKID123 and shh-456", "[key] and [key]"),
    Case("a header's value", [account("", {"x-tenant": "acme corp-7 west"})], "acme corp-7 west", "[key]"),
    Case("a word of a header", [account("", {"authorization": "Bearer abcdefgh"})], "abcdefgh", "[key]"),
    Case("a scheme", [account("", {"authorization": "Bearer abc-123"})], "a Bearer token", "a Bearer token"),
    Case("a public header", [account("", {"User-Agent": "example/7"})], "example/7", "example/7"),
    Case("a parameter", [account("", token="par-am")], "par-am", "[key]"),
    Case("a public parameter", [account("", **{"api-version": "2024-10-21"})], "2024-10-21", "2024-10-21"),
    Case("a proxy's password", [account("")], "p@ss-7 p%40ss-7", "[key] [key]", proxy="http://me:p%40ss-7@proxy:1"),
    Case("a proxy's user", [account("")], "me-myself", "me-myself", proxy="http://me-myself:p@proxy:1"),
    Case("a proxy's header", [account("")], "Basic bWU6cGFzcy03", "Basic [key]", proxy="http://me:pass-7@proxy:1"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_secrets_of_a_channel_are_masked(case: Case) -> None:
    assert ChannelSecrets(case.endpoints, case.proxy).mask.text(case.text) == case.masked


@dataclass
class Tokens:
    token: str = ""
    sent: list[OutgoingRequest] = field(default_factory=list)

    async def headers(self, outgoing: OutgoingRequest) -> Mapping[str, str]:
        return {}

    def discard(self) -> bool:
        return False


def test_a_former_token_is_masked_too_and_the_oldest_are_forgotten() -> None:
    signer = Tokens()
    secrets = ChannelSecrets([ProviderEndpoint(BASE, {}, signer=signer)])
    for number in range(MAX_TOKENS + 1):
        signer.token = f"token-{number:03}"
        assert secrets.mask.text(signer.token) == "[key]"
    assert secrets.mask.text("token-000 token-001") == "token-000 [key]"

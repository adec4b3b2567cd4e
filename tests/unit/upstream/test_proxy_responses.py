"""Responses of a proxy to a request that it forwards, as distinct from those of the provider."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from tests.support.providers.raw import answering, failed, provider
from tests.unit.upstream.test_http_channel import BOTH, PATIENT, Clock, Send
from umg_grpc.base.errors import Failure
from umg_grpc.base.provider_failure import FailureKind
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.provider_endpoints import ProviderEndpoint, RotatingEndpoints
from umg_grpc.upstream.http1.client import Client

PLAIN = "http://provider.example/v1"


@dataclass(frozen=True)
class Answered:
    id: str
    status: int
    kind: FailureKind
    failure: Failure
    headers: Mapping[str, str] = field(default_factory=dict)


SQUID = {"Server": "squid/5.7", "X-Squid-Error": "ERR_ACCESS_DENIED 0"}
ANSWERED = [
    Answered("Squid forbids", 403, FailureKind.PROXY, Failure.DOWN, SQUID),
    Answered("Squid does not reach it", 503, FailureKind.PROXY, Failure.TRANSIENT, SQUID),
    Answered("Tinyproxy fails", 500, FailureKind.PROXY, Failure.TRANSIENT, {"Server": "tinyproxy/1.11.1"}),
    Answered("it wants credentials", 407, FailureKind.PROXY, Failure.DOWN, {"Proxy-Authenticate": "Basic"}),
    Answered(
        "it marks its error",
        502,
        FailureKind.PROXY,
        Failure.AMBIGUOUS,
        {"Proxy-Status": "edge.example; error=connection_refused"},
    ),
    Answered(
        "the provider fails",
        500,
        FailureKind.SERVER_ERROR,
        Failure.TRANSIENT,
        {"Server": "nginx", "Via": "1.1 edge (squid/5.7)", "Proxy-Status": "edge.example; received-status=500"},
    ),
    Answered("the provider refuses the key", 401, FailureKind.WRONG_KEY, Failure.DOWN),
]


def response(case: Answered) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in case.headers.items())
    return f"HTTP/1.1 {case.status} X\r\n{lines}Content-Type: text/plain\r\nContent-Length: 2\r\n\r\nno".encode()


@BOTH
@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case.id)
async def test_a_response_of_the_proxy_is_no_failure_of_the_provider(send: Send, case: Answered) -> None:
    async with provider(answering(response(case))) as made, Client.opened() as client:
        endpoints = RotatingEndpoints([ProviderEndpoint(PLAIN, {}, "sk-provider-of-the-channel")], Clock())
        proxy = made.url.removesuffix("/v1/x")
        error = await failed(send(HttpChannel(client, endpoints, PATIENT, proxy=proxy)))
    assert error.facts is not None
    assert (error.failure, error.facts.kind, error.facts.status) == (case.failure, case.kind, case.status)
    assert error.facts.host == "provider.example"
    assert ("proxy" in error.message) == (case.kind is FailureKind.PROXY)


@BOTH
async def test_without_a_proxy_the_same_response_is_that_of_the_provider(send: Send) -> None:
    async with provider(answering(response(ANSWERED[0]))) as made, Client.opened() as client:
        endpoints = RotatingEndpoints([ProviderEndpoint(made.url.removesuffix("/x"), {}, "")], Clock())
        error = await failed(send(HttpChannel(client, endpoints, PATIENT)))
    assert error.facts is not None
    assert error.facts.kind is FailureKind.UNREADABLE


@BOTH
async def test_a_refusal_of_the_proxy_suspends_no_key(send: Send) -> None:
    async with provider(answering(response(ANSWERED[0]))) as made, Client.opened() as client:
        endpoints = RotatingEndpoints(
            [ProviderEndpoint(PLAIN, {}, "key-1"), ProviderEndpoint(PLAIN, {}, "key-2")], Clock()
        )
        channel = HttpChannel(client, endpoints, PATIENT, proxy=made.url.removesuffix("/v1/x"))
        error = await failed(send(channel))
    assert (error.failure, channel.suspended_keys) == (Failure.DOWN, 0)

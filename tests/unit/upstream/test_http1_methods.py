"""Requests of all methods, downloads in parts, and the content type of a body that is not JSON."""

import asyncio
import math
from dataclasses import dataclass

import pytest

from tests.support.providers.raw import (
    HELLO,
    LINE,
    PATIENT,
    Link,
    answering,
    on_each_loop,
    outgoing,
    provider,
    sized,
)
from umg_grpc.base.errors import UmgError
from umg_grpc.upstream.http.provider_connection import MAX_TEMPLATES, HttpChannel
from umg_grpc.upstream.http.provider_endpoints import ProviderEndpoint, RotatingEndpoints
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.request import Request
from umg_grpc.upstream.http1.response import MAX_RESPONSE_BYTES
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.text_format_interface import UpstreamRequest


@dataclass(frozen=True)
class Sent:
    id: str
    method: str
    body: bytes
    length: str | None  # Content-Length, None without one


REQUESTS = [
    Sent("POST without a body", "POST", b"", "0"),
    Sent("GET", "GET", b"", None),
    Sent("DELETE", "DELETE", b"", None),
    Sent("DELETE with a body", "DELETE", b"{}", "2"),
    Sent("HEAD", "HEAD", b"", None),
]


@pytest.mark.parametrize("case", REQUESTS, ids=lambda case: case.id)
@on_each_loop
async def test_only_a_request_with_a_body_or_of_post_has_a_length(case: Sent) -> None:
    seen: list[tuple[bytes, bytes]] = []

    async def handle(link: Link) -> None:
        seen.append(await link.request())
        await link.send(LINE + b"Content-Length: 5\r\n\r\n" if case.method == "HEAD" else HELLO)
        await link.left()

    async with provider(handle) as made, Client.opened() as client:
        answer = await client.fetch(outgoing(made, case.body, method=case.method, head_lines=b"x-trace: 1\r\n"))
    [(head, body)] = seen
    lines = head.decode().removesuffix("\r\n\r\n").split("\r\n")
    lengths = [line.partition(": ")[2] for line in lines if line.lower().startswith("content-length")]
    assert (lines[0], body) == (f"{case.method} /v1/x HTTP/1.1", case.body)
    assert lengths == ([] if case.length is None else [case.length])
    assert lines[-1] == "x-trace: 1"
    assert (answer.status, answer.body) == (200, b"" if case.method == "HEAD" else b"hello")


@on_each_loop
async def test_the_answer_to_head_has_the_headers_of_a_body_of_any_size() -> None:
    huge = b"%bContent-Length: %d\r\nContent-Encoding: gzip\r\n\r\n" % (LINE, 10 * MAX_RESPONSE_BYTES)
    async with provider(answering(huge)) as made, Client.opened() as client:
        for _ in range(2):
            answer = await client.fetch(outgoing(made, b"", method="HEAD"))
            assert (answer.headers["content-length"], answer.body) == (str(10 * MAX_RESPONSE_BYTES), b"")


@on_each_loop
async def test_a_connection_serves_requests_of_several_methods() -> None:
    async with provider(answering(HELLO)) as made, Client.opened() as client:
        for method in ("GET", "POST", "DELETE", "GET"):
            assert (await client.fetch(outgoing(made, b"", method=method))).body == b"hello"
        assert len(made.links) == 1


@pytest.mark.parametrize("status", [b"201 Created", b"202 Accepted", b"206 Partial Content"])
@on_each_loop
async def test_a_success_of_any_status_is_whole_or_an_error(status: bytes) -> None:
    head, long = b"HTTP/1.1 %b\r\n" % status, b"x" * (1 << 20)
    async with provider(answering(sized(long, head))) as made, Client.opened() as client:
        assert (await client.fetch(outgoing(made))).body == long
        exchange = await client.open(outgoing(made))
        assert b"".join([chunk async for chunk in exchange.chunks()]) == long
        exchange.close()
    cut = sized(long, head)[:-1]
    async with provider(answering(cut, then="close")) as made, Client.opened() as client:
        with pytest.raises(UmgError, match="before the response was complete"):
            await client.fetch(outgoing(made))


@on_each_loop
async def test_an_unexpected_success_of_a_stream_is_read_no_further_than_an_error() -> None:
    endless = b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n" + b"ffff\r\n%b\r\n" % (b"x" * 0xFFFF) * 99
    async with provider(answering(endless)) as made, Client.opened() as client:
        exchange = await client.open(outgoing(made))
        assert (await exchange.refusal()).startswith(b"xxx")
        assert exchange.response.size < len(endless)
        exchange.close()


@on_each_loop
async def test_a_connection_is_made_to_the_given_addresses_only() -> None:
    async with provider(answering(HELLO)) as made, Client.opened() as client:
        addresses = await asyncio.get_running_loop().getaddrinfo("127.0.0.1", int(made.url.split(":")[2][:-5]))
        call = outgoing(made, b"", url="http://nowhere.invalid/v1/x", method="GET", addresses=addresses[:1])
        assert (await client.fetch(call)).body == b"hello"
        assert (await client.fetch(call)).body == b"hello"
        assert len(made.links) == 1


async def test_the_head_of_similar_requests_is_encoded_once_and_few_heads_are_kept() -> None:
    async with Client.opened() as client:
        endpoint = ProviderEndpoint("http://a.example", {})
        channel = HttpChannel(client, RotatingEndpoints([endpoint]), PATIENT)

        async def head(path: str, **headers: str) -> Request | None:
            encoded = UpstreamRequest(path, b"body", headers, Report())
            return (await channel.outgoing(encoded, "authorization", math.inf))[1].common

        made = await head("/x")
        assert made is not None
        assert await head("/x") is made
        for other in (await head("/y"), await head("/x", version="1")):
            assert other is not None
            assert other.head != made.head
        for number in range(MAX_TEMPLATES):
            await head(f"/{number}")
        assert len(endpoint.request_templates) < MAX_TEMPLATES


@pytest.mark.parametrize("operators", [{}, {"Content-Type": "text/plain"}], ids=["default", "the operator's"])
async def test_the_content_type_of_a_codec_wins(operators: dict[str, str]) -> None:
    form = "multipart/form-data; boundary=b"
    async with Client.opened() as client:
        channel = HttpChannel(client, RotatingEndpoints([ProviderEndpoint("http://a.example", operators)]), PATIENT)
        for headers, expected in (
            ({"Content-Type": form, "x-own": "1"}, form),
            ({}, operators.get("Content-Type", "application/json")),
        ):
            encoded = UpstreamRequest("/x", b"body", headers, Report())
            _, sent = await channel.outgoing(encoded, "authorization", math.inf)
            assert dict(sent.headers) == {**headers, "Content-Type": expected}
            assert (sent.common is None) == bool(headers)
        encoded = UpstreamRequest("/x", b"", {}, Report(), "GET")
        _, sent = await channel.outgoing(encoded, "authorization", math.inf)
        assert (sent.method, sent.common) == ("GET", None)

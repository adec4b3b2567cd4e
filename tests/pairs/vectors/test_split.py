"""Batches above the provider's limit: sent in parts, a few at a time, and joined into one response."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.pairs.table import EMBEDDING_PROVIDERS
from tests.support.callers.vector_callers import (
    Embed,
    GrpcVectorCaller,
    HttpVectorCaller,
    VectorCaller,
    channel,
    embed_body,
    vector_caller,
)
from tests.support.providers.embeddings import MAX_INPUTS
from tests.support.providers.native_embeddings import MAX_ITEMS
from tests.support.providers.server import ReceivedRequest
from tests.support.providers.strict_vector_server import BREAKS
from tests.support.providers.vector_providers import Provider, provider
from tests.support.providers.vectors import LENGTH, tokens, vector

TRANSPORTS = ("http, in process", "grpc")
TEN = tuple(f"text number {number}" for number in range(10))
AT_ONCE = 4


@asynccontextmanager
async def gateway(
    name: str, protocol: str, data: Path, model: str = "m", **options: object
) -> AsyncGenerator[tuple[VectorCaller, Provider], None]:
    async with provider(protocol) as server:
        config = "channels:\n" + channel(
            "main", protocol, server.base_url, f'{{id: m, upstream: "{model}"}}', **options
        )
        async with vector_caller(name, config, data) as made:
            yield made, server


def sent(received: ReceivedRequest) -> list[str]:
    """Return the texts of one request to a provider."""
    body = received.json
    if "instances" in body:
        return [item["content"] for item in body["instances"]]
    if "requests" in body:
        return [item["content"]["parts"][0]["text"] for item in body["requests"]]
    return list(body["input"] if "input" in body else body["texts"])


@pytest.mark.parametrize("protocol", EMBEDDING_PROVIDERS)
@pytest.mark.parametrize("by", ["embeddings", "native_embeddings"])
@pytest.mark.parametrize("name", TRANSPORTS)
async def test_a_batch_above_the_operators_limit_is_split_and_joined(
    name: str, by: str, protocol: str, tmp_path: Path
) -> None:
    async with gateway(name, protocol, tmp_path, max_inputs=3) as (made, server):
        result = await made.embed(Embed(inputs=TEN, dimensions=4), by)
        assert result.vectors == [vector(text, 4) for text in TEN], result
        assert result.tokens == sum(map(tokens, TEN))
        assert result.model in ("m", "")
        assert "x-umg-dropped" not in result.headers
        assert sorted(map(sent, server.received)) == sorted([list(TEN[at : at + 3]) for at in range(0, 10, 3)])
        assert server.refusals == []


async def test_a_batch_at_the_limit_is_not_split(tmp_path: Path) -> None:
    async with gateway("http, in process", "embeddings", tmp_path, max_inputs=10) as (made, server):
        assert (await made.embed(Embed(inputs=TEN))).status == 200
        assert len(server.received) == 1


async def test_one_text_a_request_still_makes_one_answer(tmp_path: Path) -> None:
    async with gateway("http, in process", "native_embeddings", tmp_path, max_inputs=1) as (made, server):
        assert (await made.embed(Embed(inputs=TEN))).vectors == [vector(text) for text in TEN]
        assert len(server.received) == 10


@pytest.mark.parametrize("name", TRANSPORTS)
async def test_the_limit_of_the_providers_format_holds_where_none_is_configured(name: str, tmp_path: Path) -> None:
    texts = tuple(f"text {number}" for number in range(2 * MAX_ITEMS + 1))
    async with gateway(name, "native_embeddings", tmp_path) as (made, server):
        for by in ("embeddings", "native_embeddings"):
            result = await made.embed(Embed(inputs=texts), by)
            assert result.vectors == [vector(text) for text in texts], result.message
        assert sorted(len(sent(received)) for received in server.received) == [1, 1, *[MAX_ITEMS] * 4]
        assert server.refusals == []


async def test_a_batch_of_the_vendors_maximum_size_is_sent_in_one_request(tmp_path: Path) -> None:
    texts = ("x",) * MAX_INPUTS
    async with gateway("http, in process", "embeddings", tmp_path) as (made, server):
        result = await made.embed(Embed(inputs=texts), "native_embeddings")
        assert result.vectors == [vector("x")] * MAX_INPUTS
        assert len(server.received) == 1


@pytest.mark.parametrize("name", TRANSPORTS)
async def test_common_options_are_sent_with_each_part(name: str, tmp_path: Path) -> None:
    async with gateway(name, "native_embeddings", tmp_path, max_inputs=4) as (made, server):
        request = Embed(inputs=TEN, dimensions=5, task="CLUSTERING", title="T")
        result = await made.embed(request, "native_embeddings")
        assert result.vectors == [vector(text, 5, "CLUSTERING", "T") for text in TEN], result
        assert len(server.received) == 3
    async with gateway(name, "embeddings", tmp_path, max_inputs=4) as (made, server):
        assert (await made.embed(Embed(inputs=TEN, user="u-1"), "embeddings, base64")).status == 200
        assert {received.json["user"] for received in server.received} == {"u-1"}


async def test_token_lists_are_split_too(tmp_path: Path) -> None:
    lists = tuple([number, number + 1] for number in range(5))
    async with gateway("http, in process", "embeddings", tmp_path, max_inputs=2) as (made, server):
        result = await made.embed(Embed(inputs=lists))
        assert result.vectors == [vector(each) for each in lists], result
        assert sorted(len(sent(received)) for received in server.received) == [1, 2, 2]


async def test_an_unknown_field_of_a_split_batch_is_reported(tmp_path: Path) -> None:
    async with gateway("http, in process", "embeddings", tmp_path, max_inputs=4) as (made, _):
        request = Embed(inputs=TEN, more={"x_unknown": 1})
        result = await made.embed(request)
        assert (result.status, result.headers["x-umg-dropped"]) == (200, "x_unknown"), result
        refused = await made.embed(request, **{"x-umg-strict": "true"})
        assert (refused.status, "x_unknown" in refused.message) == (400, True)


async def test_a_known_field_that_no_part_can_have_is_reported_by_its_name(tmp_path: Path) -> None:
    async with gateway("http, in process", "native_embeddings", tmp_path, max_inputs=4) as (made, _):
        assert isinstance(made, HttpVectorCaller)
        body = embed_body(Embed(inputs=TEN), "native_embeddings")
        for item in body["requests"]:
            item["embedContentConfig"] = {"autoTruncate": True}
        result = await made.post("/v1beta/models/m:batchEmbedContents", body)
        assert (result.status, result.headers.get("x-umg-dropped")) == (
            200,
            "requests.embedContentConfig.autoTruncate",
        ), result


# --- a few at a time


@pytest.mark.parametrize("protocol", EMBEDDING_PROVIDERS)
async def test_no_more_than_four_parts_are_with_the_provider_at_a_time(protocol: str, tmp_path: Path) -> None:
    async with gateway("http, in process", protocol, tmp_path, "gated", max_inputs=1) as (made, server):
        call = asyncio.create_task(made.embed(Embed(inputs=TEN)))
        await server.until(lambda: server.waiting >= AT_ONCE)
        assert isinstance(made, HttpVectorCaller)  # a call to the same gateway: by its end a fifth part would have come
        for _ in range(3):
            await made.post("/v1/embeddings", {"model": "nope", "input": "x"})
        assert (server.waiting, len(server.received)) == (AT_ONCE, AT_ONCE)
        server.gate.set()
        assert (await call).vectors == [vector(text) for text in TEN]
        assert server.most == AT_ONCE


async def test_parts_of_two_calls_are_not_held_up_by_each_other(tmp_path: Path) -> None:
    async with gateway("http, in process", "embeddings", tmp_path, "gated", max_inputs=1) as (made, server):
        calls = [asyncio.create_task(made.embed(Embed(inputs=TEN))) for _ in range(2)]
        await server.until(lambda: server.waiting >= 2 * AT_ONCE)
        server.gate.set()
        assert {result.status for result in await asyncio.gather(*calls)} == {200}


# --- all or nothing


@pytest.mark.parametrize("protocol", EMBEDDING_PROVIDERS)
@pytest.mark.parametrize("name", TRANSPORTS)
async def test_one_failing_part_fails_the_call_and_stops_the_others(name: str, protocol: str, tmp_path: Path) -> None:
    texts = (*TEN[:3], BREAKS, *TEN[4:])
    async with gateway(name, protocol, tmp_path, "partly", max_inputs=1) as (made, server):
        result = await made.embed(Embed(inputs=texts))
        assert (result.status, result.reason or "UPSTREAM_FAILED") == (502, "UPSTREAM_FAILED"), result
        assert "one part fell over" in result.message
        await server.until(lambda: server.left == 2 * 3)
        # in each of the two attempts, parts that had not begun never begin
        assert (len(server.received), server.waiting) == (2 * AT_ONCE, 0)


async def test_a_part_that_is_refused_is_the_callers_own_400(tmp_path: Path) -> None:
    async with gateway("http, in process", "embeddings", tmp_path, "refuses", max_inputs=3) as (made, _):
        result = await made.embed(Embed(inputs=TEN))
        assert result.status == 400
        assert "may not say" in result.message
        assert "org-abc123" not in result.message


async def test_a_part_with_too_few_vectors_is_no_short_answer(tmp_path: Path) -> None:
    for model in ("few", "many", "empty"):
        async with gateway("http, in process", "embeddings", tmp_path, model, max_inputs=3) as (made, _):
            assert (await made.embed(Embed(inputs=TEN))).status == 502


@pytest.mark.parametrize("protocol", EMBEDDING_PROVIDERS)
@pytest.mark.parametrize("name", TRANSPORTS)
async def test_parts_with_vectors_of_different_lengths_are_no_answer(name: str, protocol: str, tmp_path: Path) -> None:
    async with gateway(name, protocol, tmp_path, "uneven", max_inputs=3) as (made, _):
        result = await made.embed(Embed(inputs=TEN))
        assert result.status == 502, result
        assert f"vectors of {LENGTH - 1} and of {LENGTH} numbers in one response" in result.message
        assert (await made.embed(Embed(inputs=TEN[:9]))).status == 200


@pytest.mark.parametrize("protocol", EMBEDDING_PROVIDERS)
async def test_a_part_with_another_length_than_requested_is_no_answer(protocol: str, tmp_path: Path) -> None:
    async with gateway("http, in process", protocol, tmp_path, "uneven", max_inputs=3) as (made, _):
        result = await made.embed(Embed(inputs=TEN, dimensions=4))
        assert result.status == 502, result
        assert f"vectors of {LENGTH - 1} numbers, not of the 4 that were requested" in result.message


async def test_a_split_call_moves_on_whole(tmp_path: Path) -> None:
    async with provider("embeddings") as first, provider("native_embeddings") as second:
        config = "channels:\n" + channel("first", "embeddings", first.base_url, "{id: m, upstream: busy}", max_inputs=2)
        config += channel("second", "native_embeddings", second.base_url, "m", priority=1, max_inputs=3)
        async with vector_caller("http, in process", config, tmp_path) as made:
            result = await made.embed(Embed(inputs=TEN))
        assert result.vectors == [vector(text) for text in TEN], result
        assert len(second.received) == 4


# --- deadlines


async def all_left(server: Provider) -> None:
    """Wait until no part has a connection any more. On a slow machine, not all parts arrive before a deadline."""
    await server.until(lambda: 0 < server.left == len(server.received) <= AT_ONCE)


async def test_the_callers_deadline_ends_all_parts(tmp_path: Path) -> None:
    async with gateway("grpc", "embeddings", tmp_path, "silent", max_inputs=1) as (made, server):
        assert isinstance(made, GrpcVectorCaller)
        result = await made.embed(Embed(inputs=TEN), "fields", seconds=1)
        assert result.status == 504, result
        await all_left(server)


async def test_the_channels_own_deadline_ends_all_parts(tmp_path: Path) -> None:
    timeout = "{total: 1}"
    async with gateway("http, in process", "embeddings", tmp_path, "silent", max_inputs=1, timeout=timeout) as (
        made,
        server,
    ):
        result = await made.embed(Embed(inputs=TEN))
        assert result.status == 504, result
        await all_left(server)


@pytest.mark.parametrize("name", ["http, in process", "http, apart", "grpc"])
async def test_a_caller_that_leaves_stops_all_parts(name: str, tmp_path: Path) -> None:
    async with gateway(name, "embeddings", tmp_path, "silent", max_inputs=1) as (made, server):
        call = asyncio.create_task(made.embed(Embed(inputs=TEN)))
        await server.until(lambda: server.waiting == AT_ONCE)
        call.cancel()
        await server.until(lambda: server.left == AT_ONCE)
        assert len(server.received) == AT_ONCE
        await asyncio.wait([call])


# --- usage


async def test_usage_is_estimated_where_one_part_has_none(tmp_path: Path) -> None:
    async with gateway("grpc", "embeddings", tmp_path, "uncounted", max_inputs=3) as (made, _):
        result = await made.embed(Embed(inputs=TEN))
        assert result.estimated is True
        assert result.tokens is not None
        assert result.tokens >= sum(map(tokens, TEN))

"""Usage of a call: in the response, the log and the metrics."""

import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import grpc
import pytest
import pytest_asyncio
import structlog

from tests.support.callers.transports import GrpcTransport
from tests.support.callers.vector_callers import FIELDS, Embed, GrpcVectorCaller, Rerank, VectorResult, channel
from tests.support.gateways import Running, running
from tests.support.providers.vector_providers import Provider, provider
from tests.support.providers.vectors import tokens
from umg_grpc.tokens import TokenCounter

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKENS = re.compile(r'umg_tokens_total\{channel="(\w+)",direction="(\w+)",model="([^"]*)"\} ([0-9.]+)')
CALLS = re.compile(r'umg_calls_total\{channel="(\w*)",method="(\w+)",model="([^"]*)",outcome="(\w+)"\} ([0-9.]+)')
Gateway = tuple[Running, GrpcVectorCaller, dict[str, Provider]]
TEXTS = ("one", "two words", "now there are three")
REPORTED = sum(map(tokens, TEXTS))


@pytest_asyncio.fixture(loop_scope="module")
async def gateway(tmp_path: Path) -> AsyncGenerator[Gateway, None]:
    async with AsyncExitStack() as stack:
        servers = {
            name: await stack.enter_async_context(provider(name))
            for name in ("embeddings", "native_embeddings", "rerank v1", "jina")
        }
        config = "channels:\n" + channel(
            *("plain", "embeddings", servers["embeddings"].base_url),
            *("m", "uncounted", "{id: half, upstream: half-counted}", "broken"),
        )
        config += channel(
            *("native", "native_embeddings", servers["native_embeddings"].base_url),
            *("n", "{id: uncounted-n, upstream: uncounted}"),
        )
        config += channel(
            *("cohere", "rerank", servers["rerank v1"].base_url), *("r", "{id: uncounted-r, upstream: uncounted}")
        )
        config += channel("jina", "rerank", servers["jina"].base_url, "j")
        made = await stack.enter_async_context(running(config, tmp_path))
        socket = await stack.enter_async_context(grpc.aio.insecure_channel(made.grpc))
        yield made, GrpcVectorCaller(GrpcTransport("grpc", socket)), servers


def counted(gateway: Running) -> dict[tuple[str, str], float]:
    """Return tokens by channel and direction."""
    found = TOKENS.findall(gateway.service.metrics.exposition().decode())
    return {(channel_name, direction): float(count) for channel_name, direction, _, count in found}


@pytest.mark.parametrize("by", ["embeddings", "native_embeddings", FIELDS])
@pytest.mark.parametrize(("model", "name"), [("m", "plain"), ("n", "native")])
async def test_the_providers_usage_is_returned_logged_and_counted(
    by: str, model: str, name: str, gateway: Gateway
) -> None:
    made, face, _ = gateway
    with structlog.testing.capture_logs() as lines:
        result = await face.embed(Embed(model, TEXTS), by)
    assert (result.tokens, result.estimated) == (REPORTED, False)
    assert counted(made) == {(name, "input"): REPORTED, (name, "output"): 0}
    (line,) = [line for line in lines if line["event"] == "call"]
    assert (line["method"], line["model"], line["channel"]) == ("EmbeddingService/Embed", model, name)
    assert (line["input_tokens"], line["estimated"], line["outcome"]) == (REPORTED, None, "OK")


@pytest.mark.parametrize("by", ["embeddings", "native_embeddings", FIELDS])
@pytest.mark.parametrize(("model", "name"), [("uncounted", "plain"), ("uncounted-n", "native")])
async def test_missing_usage_is_estimated_and_marked_so(by: str, model: str, name: str, gateway: Gateway) -> None:
    made, face, _ = gateway
    with structlog.testing.capture_logs() as lines:
        result = await face.embed(Embed(model, TEXTS), by)
    counter = TokenCounter("", "cl100k_base")
    estimate = sum(map(counter.count_text, TEXTS))
    assert result.estimated is True
    assert counted(made)[name, "input"] == estimate
    (line,) = [line for line in lines if line["event"] == "call"]
    assert (line["input_tokens"], line["estimated"]) == (estimate, True)


async def test_one_figure_of_two_is_enough(gateway: Gateway) -> None:
    made, face, _ = gateway
    result = await face.embed(Embed("half", TEXTS), FIELDS)
    assert (result.tokens, result.estimated) == (REPORTED, False)
    assert counted(made)["plain", "input"] == REPORTED


async def test_token_lists_count_themselves(gateway: Gateway) -> None:
    made, face, _ = gateway
    await face.embed(Embed("uncounted", [[1, 2, 3], [4]]))
    assert counted(made)["plain", "input"] == 4


@pytest.mark.parametrize("by", ["rerank", "rerank_v2", FIELDS])
async def test_a_ranking_is_counted(by: str, gateway: Gateway) -> None:
    made, face, _ = gateway
    request = Rerank("j")
    with structlog.testing.capture_logs() as lines:
        result: VectorResult = await face.rerank(request, by)
    total_tokens = sum(map(tokens, (request.query, *map(str, request.documents))))
    assert (result.tokens, result.estimated) == (total_tokens, False)
    assert counted(made)["jina", "input"] == total_tokens
    (line,) = [line for line in lines if line["event"] == "call"]
    assert (line["method"], line["channel"], line["input_tokens"]) == ("RerankService/Rerank", "jina", total_tokens)


@pytest.mark.parametrize("model", ["r", "uncounted-r"])
async def test_a_ranking_of_a_provider_that_counts_no_tokens_is_estimated(model: str, gateway: Gateway) -> None:
    made, face, _ = gateway
    result = await face.rerank(Rerank(model))
    assert result.estimated is True
    assert result.tokens is not None
    assert result.tokens > 8
    assert counted(made)["cohere", "input"] == result.tokens


async def test_a_failed_call_is_counted_as_one_and_costs_nothing(gateway: Gateway) -> None:
    made, face, _ = gateway
    assert (await face.embed(Embed("broken"))).status == 502
    assert (await face.embed(Embed("nope"))).status == 404
    assert not any(counted(made).values())
    found = {row[:4]: float(row[4]) for row in CALLS.findall(made.service.metrics.exposition().decode())}
    assert found == {
        ("plain", "Embed", "broken", "UPSTREAM_FAILED"): 1,
        ("", "Embed", "", "MODEL_NOT_FOUND"): 1,
    }

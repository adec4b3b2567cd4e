"""Channels that embed or rank: their order, and failover to the next."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.callers.transports import TRANSPORTS
from tests.support.callers.vector_callers import Embed, Rerank, VectorCaller, VectorResult, channel, vector_caller
from tests.support.providers.server import RETRY_SECONDS
from tests.support.providers.vector_providers import Provider, provider
from tests.support.providers.vectors import score, vector

DEAD = "http://127.0.0.1:1/v1"


@dataclass(frozen=True)
class Failure:
    """A channel's failure on the model of that id, and the caller's error where there is no other channel."""

    model: str
    status: int
    reason: str
    moves_on: bool = True
    message: str = ""
    hides: tuple[str, ...] = ()
    retry_after: str = ""


FAILURES = [
    Failure("busy", 429, "UPSTREAM_RATE_LIMITED", message=RETRY_SECONDS, retry_after=RETRY_SECONDS),
    Failure("curt", 429, "UPSTREAM_RATE_LIMITED", retry_after="1"),
    Failure("dead", 502, "UPSTREAM_UNREACHABLE", hides=("127.0.0.1",)),
    Failure("broken", 502, "UPSTREAM_FAILED", hides=("10.1.2.3",)),
    Failure(
        "refuses", 400, "UPSTREAM_REJECTED", moves_on=False, message="may not say", hides=("org-abc123", "https://")
    ),
    Failure("locked", 502, "UPSTREAM_FAILED", hides=("sk-provider",)),
    Failure("sorry", 503, "UPSTREAM_OVERLOADED", hides=("10.1.2.3", "<")),
    Failure("html", 502, "UPSTREAM_FAILED", hides=("<",)),
    Failure("moved", 502, "UPSTREAM_FAILED", hides=("elsewhere",)),
    Failure("drops", 502, "UPSTREAM_CUT"),
    Failure("cut", 502, "UPSTREAM_CUT"),
    Failure("silent", 504, "UPSTREAM_TIMEOUT"),
]
OPERATIONS = {
    "embed": "embeddings",
    "embed natively": "native_embeddings",
    "rerank": "rerank v1",
    "rerank v2": "rerank v2",
    "jina": "jina",
}
PROTOCOLS = {"embed": "embeddings", "embed natively": "native_embeddings"}


def config(operation: str, model: str, first: Provider, second: Provider | None = None, model_id: str = "m") -> str:
    """Return the config of a channel with the model that fails, and of a second one that answers."""
    protocol = PROTOCOLS.get(operation, "rerank")
    url, total = DEAD if model == "dead" else first.base_url, 0.3 if model == "silent" else 20
    entry, timeout = f"{{id: {model_id}, upstream: {model}}}", f"{{connect: 1, total: {total}}}"
    made = channel(f"first-{model_id}", protocol, url, entry, timeout=timeout)
    if second is None:
        return made
    return made + channel(
        f"second-{model_id}", protocol, second.base_url, f"{{id: {model_id}, upstream: m}}", priority=1
    )


@dataclass(frozen=True)
class World:
    """Gateways with the channels of every failure and operation, each with a model of its own, and their providers."""

    alone: VectorCaller
    """Caller of a gateway with the failing channels alone."""
    failing_over: VectorCaller
    """Caller of a gateway with a second channel after each of them."""
    first: Mapping[str, Provider]
    """Providers of the failing channels by operation."""
    second: Mapping[str, Provider]


def model_of(operation: str, case: Failure) -> str:
    """Return the id of the model whose first channel fails."""
    return f"{operation.replace(' ', '-')}-{case.model}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World, None]:
    data = tmp_path_factory.mktemp("failures")
    async with AsyncExitStack() as stack:
        first, second = [
            {name: await stack.enter_async_context(provider(kind)) for name, kind in OPERATIONS.items()}
            for _ in range(2)
        ]
        alone, both = (
            "channels:\n"
            + "".join(
                config(name, case.model, first[name], following.get(name), model_of(name, case))
                for name in OPERATIONS
                for case in FAILURES
            )
            for following in ({}, second)
        )
        yield World(
            await stack.enter_async_context(vector_caller("grpc", alone, data / "alone")),
            await stack.enter_async_context(vector_caller("http, in process", both, data / "both")),
            first,
            second,
        )


async def call(made: VectorCaller, operation: str, model: str) -> VectorResult:
    """Call the operation with the model."""
    return await (made.embed(Embed(model)) if operation.startswith("embed") else made.rerank(Rerank(model)))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case.model)
async def test_a_failing_provider_is_reported_in_the_gateways_words(
    case: Failure, operation: str, world: World
) -> None:
    result = await call(world.alone, operation, model_of(operation, case))
    assert (result.status, result.reason) == (case.status, case.reason), result
    assert case.message in result.message
    assert not [secret for secret in case.hides if secret in result.message]
    assert result.headers.get("retry-after", "") == case.retry_after
    assert world.first[operation].refusals == []


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case.model)
async def test_another_channel_is_called_unless_the_request_is_wrong(
    case: Failure, operation: str, world: World
) -> None:
    first, second = world.first[operation], world.second[operation]
    before = len(second.received)
    result = await call(world.failing_over, operation, model_of(operation, case))
    assert result.status == (200 if case.moves_on else case.status), result
    assert len(second.received) - before == (1 if case.moves_on else 0)
    assert first.refusals == second.refusals == []


@pytest.mark.parametrize("name", TRANSPORTS)
async def test_the_next_channel_may_be_of_another_format(name: str, tmp_path: Path) -> None:
    async with provider("embeddings") as first, provider("native_embeddings") as second:
        lines = "channels:\n" + channel("first", "embeddings", first.base_url, "{id: m, upstream: busy}")
        lines += channel("second", "native_embeddings", second.base_url, priority=1)
        async with vector_caller(name, lines, tmp_path) as made:
            result = await made.embed(Embed(user="u-1"), "embeddings, base64")
        assert result.vectors == [vector(text) for text in Embed().inputs if isinstance(text, str)], result
        assert result.headers["x-umg-dropped"] == "user"
        assert len(first.received) == 1


async def test_the_next_reranker_may_be_of_another_kind(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        kinds = ("rerank v1", "jina", "rerank v2")
        servers = [await stack.enter_async_context(provider(kind)) for kind in kinds]
        lines = "channels:\n" + "".join(
            channel(
                kind.replace(" ", "-"), "rerank", server.base_url, f"{{id: m, upstream: {model}}}", priority=priority
            )
            for priority, (kind, server, model) in enumerate(zip(kinds, servers, ("busy", "curt", "m"), strict=True))
        )
        made = await stack.enter_async_context(vector_caller("http, in process", lines, tmp_path))
        result = await made.rerank(Rerank(more={"return_documents": True}))
        assert [index for index, _, _ in result.ranking] == ranked(), result
        assert [len(server.received) for server in servers] == [1, 1, 1]
        assert [server.refusals for server in servers] == [[], [], []]


def ranked() -> list[int]:
    request = Rerank()
    return sorted(range(len(request.documents)), key=lambda at: -score(request.query, str(request.documents[at])))


async def test_a_rate_limit_of_all_channels_is_the_callers_429(tmp_path: Path) -> None:
    async with provider("embeddings") as first, provider("embeddings") as second:
        lines = "channels:\n" + config("embed", "busy", first)
        lines += channel("second", "embeddings", second.base_url, "{id: m, upstream: curt}", priority=1)
        async with vector_caller("http, in process", lines, tmp_path) as made:
            result = await made.embed(Embed())
        assert (result.status, len(first.received), len(second.received)) == (429, 1, 1)
        assert int(result.headers["retry-after"]) >= 1


async def test_calls_fail_over_from_several_unreachable_providers(tmp_path: Path) -> None:
    async with provider("embeddings") as second:
        lines = "channels:\n" + channel("dead", "embeddings", DEAD) + channel("dead-too", "native_embeddings", DEAD)
        lines += channel("works", "embeddings", second.base_url, priority=1)
        async with vector_caller("http, in process", lines, tmp_path) as made:
            for by in ("embeddings", "native_embeddings"):
                assert (await made.embed(Embed(), by)).status == 200


# --- the order of the channels


@pytest.mark.parametrize(("by", "nearest"), [("embeddings", "plain"), ("native_embeddings", "native")])
async def test_of_one_priority_the_callers_own_format_comes_first(by: str, nearest: str, tmp_path: Path) -> None:
    async with provider("embeddings") as plain, provider("native_embeddings") as native:
        lines = "channels:\n" + channel("plain", "embeddings", plain.base_url)
        lines += channel("native", "native_embeddings", native.base_url)
        async with vector_caller("http, in process", lines, tmp_path) as made:
            for _ in range(4):
                assert (await made.embed(Embed(), by)).status == 200
        assert (len(plain.received), len(native.received)) == ((4, 0) if nearest == "plain" else (0, 4))


@pytest.mark.parametrize("name", ["http, in process", "grpc"])
async def test_a_channel_that_accepts_every_field_comes_before_one_that_does_not(name: str, tmp_path: Path) -> None:
    async with provider("embeddings") as plain, provider("native_embeddings") as native:
        lines = "channels:\n" + channel("plain", "embeddings", plain.base_url)
        lines += channel("native", "native_embeddings", native.base_url, priority=1)
        async with vector_caller(name, lines, tmp_path) as made:
            result = await made.embed(Embed(task="CLUSTERING"), "native_embeddings")
            assert (result.status, result.headers.get("x-umg-dropped")) == (200, None), result
            assert (len(plain.received), len(native.received)) == (0, 1)
            strict = await made.embed(Embed(task="CLUSTERING"), "native_embeddings", **{"x-umg-strict": "true"})
            assert strict.status == 200
        assert (len(plain.received), len(native.received)) == (0, 2)


async def test_a_channel_that_accepts_fewer_fields_is_still_called_when_the_others_fail(tmp_path: Path) -> None:
    async with provider("embeddings") as plain, provider("native_embeddings") as native:
        lines = "channels:\n" + channel("plain", "embeddings", plain.base_url)
        lines += channel("native", "native_embeddings", native.base_url, "{id: m, upstream: busy}")
        async with vector_caller("http, in process", lines, tmp_path) as made:
            result = await made.embed(Embed(task="CLUSTERING"), "native_embeddings")
            assert (result.status, result.headers["x-umg-dropped"]) == (200, "requests.taskType"), result
            strict = await made.embed(Embed(task="CLUSTERING"), "native_embeddings", **{"x-umg-strict": "true"})
        assert strict.status in {400, 429}
        assert (len(plain.received), len(native.received)) == (1, 2)


async def test_vectors_of_two_lengths_go_where_they_can_be_made(tmp_path: Path) -> None:
    async with provider("embeddings") as plain, provider("native_embeddings") as native:
        lines = "channels:\n" + channel("plain", "embeddings", plain.base_url)
        both = lines + channel("native", "native_embeddings", native.base_url, priority=1)
        content = {"content": {"parts": [{"text": "x"}]}}
        body = {"requests": [{**content, "outputDimensionality": 4}, {**content, "outputDimensionality": 5}]}
        for config_, status, data in ((both, 200, tmp_path / "a"), (lines, 400, tmp_path / "b")):
            data.mkdir()
            async with vector_caller("http, in process", config_, data) as made:
                result = await made.post("/v1beta/models/m:batchEmbedContents", body)  # type: ignore[union-attr]
                assert result.status == status, result
        assert "requests[1].outputDimensionality" in result.message
        assert (len(plain.received), len(native.received)) == (0, 1)

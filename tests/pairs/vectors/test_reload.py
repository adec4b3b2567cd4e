"""A config that is replaced while the service runs: new calls use its channels, calls in flight end as they began."""

import asyncio
from pathlib import Path

import aiohttp

from tests.support.callers.transports import HttpTransport
from tests.support.callers.vector_callers import Embed, HttpVectorCaller, Rerank, channel
from tests.support.gateways import Running, running
from tests.support.providers.vector_providers import provider
from tests.support.providers.vectors import vector
from umg_grpc.config import parse


def reload(gateway: Running, *channels: str, rest: str = "") -> None:
    gateway.service.reload(parse("channels:\n" + "".join(channels) + rest, "test.yaml", {}))


async def test_embedding_channels_are_replaced(tmp_path: Path) -> None:
    async with provider("embeddings") as old, provider("native_embeddings") as new, aiohttp.ClientSession() as session:
        async with running("channels:\n" + channel("c", "embeddings", old.base_url, "m", "gone"), tmp_path) as gateway:
            face = HttpVectorCaller(HttpTransport("http", gateway.url, session))
            assert (await face.embed(Embed())).status == 200
            reload(gateway, channel("c", "native_embeddings", new.base_url, "m", "added"))
            for model in ("m", "added"):
                result = await face.embed(Embed(model))
                assert result.vectors == [vector(str(text)) for text in Embed().inputs], result
            assert (await face.embed(Embed("gone"))).status == 404
        assert (len(old.received), len(new.received)) == (1, 2)


async def test_a_call_under_way_ends_where_it_began(tmp_path: Path) -> None:
    async with provider("embeddings") as old, provider("embeddings") as new, aiohttp.ClientSession() as session:
        gated = channel("c", "embeddings", old.base_url, "{id: m, upstream: gated}", max_inputs=1)
        async with running("channels:\n" + gated, tmp_path) as gateway:
            face = HttpVectorCaller(HttpTransport("http", gateway.url, session))
            texts = [f"text {number}" for number in range(6)]
            call = asyncio.create_task(face.embed(Embed(inputs=texts)))
            await old.until(lambda: old.waiting == 4)
            reload(gateway, channel("c", "embeddings", new.base_url))
            assert (await face.embed(Embed())).status == 200
            old.gate.set()
            assert (await call).vectors == [vector(text) for text in texts]
        assert (len(old.received), len(new.received)) == (6, 1)


async def test_a_model_may_begin_to_do_something_else(tmp_path: Path) -> None:
    async with (
        provider("embeddings") as plain,
        provider("jina") as ranker,
        running("channels:\n" + channel("c", "embeddings", plain.base_url), tmp_path) as gateway,
        aiohttp.ClientSession() as session,
    ):
        face = HttpVectorCaller(HttpTransport("http", gateway.url, session))
        assert (await face.rerank(Rerank())).status == 400
        reload(gateway, channel("c", "rerank", ranker.base_url))
        assert (await face.rerank(Rerank())).status == 200
        assert (await face.embed(Embed())).status == 400


async def test_configured_lengths_are_replaced(tmp_path: Path) -> None:
    async with provider("embeddings") as plain, aiohttp.ClientSession() as session:
        made = channel("c", "embeddings", plain.base_url)
        async with running("channels:\n" + made, tmp_path) as gateway:
            face = HttpVectorCaller(HttpTransport("http", gateway.url, session))
            assert (await face.embed(Embed(dimensions=4))).status == 200
            reload(gateway, made, rest="models: {m: {capabilities: {dimensions: 8}}}\n")
            refused = await face.embed(Embed(dimensions=4))
            assert (refused.status, refused.field) == (400, "dimensions")

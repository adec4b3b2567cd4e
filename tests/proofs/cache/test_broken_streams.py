"""Tokens of prompt caches in the ledger, of streams that their callers abort in the middle."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

import aiohttp
import pytest

from tests.proofs.cache.cached_provider import cached_provider
from tests.proofs.cache.faces import FACES, Face, World
from tests.proofs.cache.measurements import UPSTREAMS
from tests.proofs.cache.replay import channel_of, head_of, prices_of, records_of
from tests.support.gateways import running
from tests.support.providers.scenarios import Answer, ScenarioRequest, text_answer

CHAT, RESPONSES, MESSAGES, _ = FACES


@dataclass(frozen=True)
class Case:
    """Call of a face at a provider, and whether the provider states the use of its cache before the end of a stream."""

    face: Face
    model: str
    is_stated: bool


CASES = [
    *(Case(face, "claude-sonnet-5", is_stated=True) for face in FACES),
    Case(RESPONSES, "gpt-5.6-sol", is_stated=False),
    Case(MESSAGES, "deepseek-v4-flash", is_stated=False),
    Case(CHAT, "gemini-3.6-flash", is_stated=False),
]


def answer_to(request: ScenarioRequest) -> Answer:
    """Return a response, which waits in the middle of a stream."""
    return replace(text_answer("A text of some words that does not end."), breaks="waits" if request.stream else "")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.face.name} at {case.model}")
async def test_an_aborted_stream_is_charged_by_the_cache_as_far_as_the_provider_stated_it(
    case: Case, tmp_path: Path
) -> None:
    [upstream] = [each for each in UPSTREAMS if each.model == case.model]
    cached, serving = cached_provider(upstream.format, upstream.model, answer_to, upstream.keys)
    async with serving as provider:
        config = head_of("sqlite") + channel_of(upstream, provider.base_url) + prices_of([upstream])
        async with running(config, tmp_path) as gateway:
            await World(gateway, {}).usage(case.face, case.model, stream=False)
            url, body = (
                gateway.url + case.face.url(case.model, stream=True),
                case.face.question(case.model, stream=True),
            )
            headers = {**gateway.headers, "anthropic-version": "2023-06-01"}
            async with aiohttp.ClientSession(headers=headers) as session, session.post(url, json=body) as response:
                await response.content.readany()
                await provider.waiting.wait()
            async with asyncio.timeout(60):
                await provider.left.wait()
    [aborted, whole] = await records_of("sqlite", tmp_path)
    first, second = (bill.use for bill in cached.bills)
    assert second.read
    assert (whole.cache_read_tokens, whole.estimated) == (first.read, False)
    assert aborted.estimated
    if case.is_stated:
        stated = (aborted.input_tokens, aborted.cache_read_tokens, aborted.cache_write_tokens)
        assert stated == (second.plain, second.read, second.written)
        assert aborted.long_cache_write_tokens == second.written_long
    else:
        assert aborted.cache_read_tokens == 0
        assert aborted.input_tokens

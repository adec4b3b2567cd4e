"""Tokens of prompt caches in the usage that callers of each format get, and in the ledger, for each provider."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from tests.proofs.cache import task
from tests.proofs.cache.cached_provider import Bill, CachedFormat, cached_provider
from tests.proofs.cache.faces import FACES, LONG, Face, World
from tests.proofs.cache.measurements import RELAY
from tests.proofs.cache.measurements import UPSTREAMS as USUAL
from tests.proofs.cache.replay import Upstream, channel_of, head_of, ledger_of, prices_of
from tests.support.gateways import running
from tests.support.providers.server import Json

pytestmark = pytest.mark.asyncio(loop_scope="module")
UPSTREAMS = (*USUAL, RELAY)


def stated(face: str, usage: Json) -> Json:
    match face:
        case "chat":
            details = usage["prompt_tokens_details"]
            found = usage["prompt_tokens"], details["cached_tokens"], details.get("cache_write_tokens", 0)
        case "responses":
            details = usage["input_tokens_details"]
            found = usage["input_tokens"], details["cached_tokens"], details["cache_write_tokens"]
        case "messages":
            names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
            plain, read, written = (usage[name] for name in names)
            parts = usage.get("cache_creation")
            assert parts is None or sum(parts.values()) == written
            found = plain + read + written, read, written
        case _:
            return {"prompt": usage["promptTokenCount"], "read": usage.get("cachedContentTokenCount", 0)}
    return dict(zip(("prompt", "read", "written"), found, strict=True))


def expected(face: str, bill: Bill) -> Json:
    """Return the tokens that a bill states, as far as the face has fields for them."""
    use = bill.use
    found = {"prompt": use.prompt, "read": use.read, "written": use.written + use.written_long}
    return found if face != "native" else {name: found[name] for name in ("prompt", "read")}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World, None]:
    providers: dict[str, CachedFormat] = {}
    async with AsyncExitStack() as stack:
        channels = ""
        for upstream in UPSTREAMS:
            cached, serving = cached_provider(upstream.format, upstream.model, task.answer_to, upstream.keys)
            provider = await stack.enter_async_context(serving)
            providers[upstream.model] = cached
            channels += channel_of(upstream, provider.base_url)
        config = head_of("sqlite") + channels + prices_of(UPSTREAMS)
        yield World(await stack.enter_async_context(running(config, tmp_path_factory.mktemp("gateway"))), providers)


MARKED = [(face, each) for face in FACES for each in UPSTREAMS if face.name != "chat" or each != RELAY]
"""All pairs but that of a caller without marks with a provider that is sent its body as it came."""


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("face", "upstream"), MARKED, ids=lambda each: getattr(each, "model", "") or each.name)
async def test_the_callers_usage_states_the_tokens_that_the_provider_billed(
    world: World, face: Face, upstream: Upstream, stream: bool
) -> None:
    for _ in range(2):
        usage = await world.usage(face, upstream.model, stream=stream)
        assert stated(face.name, usage) == expected(face.name, world.providers[upstream.model].bills[-1])
    assert world.providers[upstream.model].bills[-1].use.read


@dataclass(frozen=True)
class Lifetime:
    """Call that selects a lifetime, with the tokens that are written for the longer time."""

    id: str
    face: Face
    model: str
    more: Json
    is_long: bool


CHAT, RESPONSES, MESSAGES, _ = FACES
LIFETIMES = [
    Lifetime("half an hour in chat", CHAT, "gpt-5.6-sol", {"prompt_cache_options": {"ttl": "30m"}}, is_long=False),
    Lifetime("twelve hours in chat", CHAT, "gpt-5.6-sol", {"prompt_cache_options": {"ttl": "12h"}}, is_long=True),
    Lifetime("twelve hours", RESPONSES, "gpt-5.6-sol", {"prompt_cache_options": {"ttl": "12h"}}, is_long=True),
    Lifetime("an hour in messages", MESSAGES, "claude-sonnet-5", {}, is_long=True),
    Lifetime("an hour at a relay", MESSAGES, RELAY.model, {}, is_long=True),
    Lifetime("five minutes at a relay", RESPONSES, RELAY.model, {}, is_long=False),
    Lifetime(
        "five minutes in messages", MESSAGES, "claude-sonnet-5", {"messages": [{"role": "user", "content": LONG}],
        "cache_control": {"type": "ephemeral"}}, is_long=False,
    ),
]  # fmt: skip


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("case", LIFETIMES, ids=lambda case: case.id)
async def test_the_ledger_has_cache_writes_by_lifetime_at_the_vendors_price(
    case: Lifetime, stream: bool, tmp_path: Path
) -> None:
    [upstream] = [each for each in UPSTREAMS if each.model == case.model]
    cached, serving = cached_provider(upstream.format, upstream.model, task.answer_to, upstream.keys)
    async with serving as provider:
        config = head_of("sqlite") + channel_of(upstream, provider.base_url)
        async with running(config, tmp_path) as gateway:
            world = World(gateway, {upstream.model: cached})
            usage = await world.usage(case.face, case.model, stream=stream, more=case.more)
    [bill], ledger = cached.bills, await ledger_of("sqlite", tmp_path)
    assert stated(case.face.name, usage) == expected(case.face.name, bill)
    assert (bill.use.written > 0, bill.use.written_long > 0) == (not case.is_long, case.is_long)
    assert (ledger.written, ledger.written_long) == (bill.use.written, bill.use.written_long)
    assert ledger.micro_credits == -(-bill.cost // 1_000_000)

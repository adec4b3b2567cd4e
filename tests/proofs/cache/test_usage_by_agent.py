"""Usage by model, key and agent: the cached share of each is that of the provider's bills, on each database."""

import json
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import grpc

from tests.proofs.cache import task
from tests.proofs.cache.cached_provider import CachedFormat, cached_provider
from tests.proofs.cache.faces import FACES, LONG, Face, World
from tests.proofs.cache.measurements import UPSTREAMS
from tests.proofs.cache.replay import channel_of, head_of
from tests.support.databases import Database
from tests.support.gateways import KEY, running
from tests.support.processes import run
from tests.support.providers.server import Json
from umg_grpc.v1 import pb, rpc

MODELS = ("gpt-5.6-sol", "claude-sonnet-5")
CHAT, RESPONSES, MESSAGES, NATIVE = FACES


@dataclass(frozen=True)
class Caller:
    agent: str
    face: Face
    headers: Mapping[str, str]


CALLERS = (
    Caller(
        "claude-code",
        MESSAGES,
        {
            "user-agent": "claude-cli/2.1.332 (external, sdk-cli)",
            "x-app": "cli",
            "x-claude-code-session-id": "95ef5653-921f-4db7-bbed-1be83209e557",
        },
    ),
    Caller(
        "codex",
        RESPONSES,
        {
            "user-agent": "codex_exec/0.171.0 (Debian 12.0.0; x86_64) dumb (codex_exec; 0.171.0)",
            "originator": "codex_exec",
            "session-id": "01a22797-9a52-7b31-9076-7af048c69831",
        },
    ),
    Caller("gemini-cli", NATIVE, {"user-agent": "GeminiCLI-tui/0.61.0/famG-2.5-flash (linux; x64; terminal)"}),
    Caller("opencode", CHAT, {"user-agent": "opencode/1.18.33 ai-sdk/provider-utils/4.0.23 runtime/bun/1.3.14"}),
    Caller("qwen-code", MESSAGES, {"user-agent": "claude-cli/0.24.4 (external, cli)", "x-app": "cli"}),
    Caller("aider", CHAT, {"user-agent": "OpenAI/Python 2.20.0", "x-umg-agent": "aider"}),
    Caller("openai-sdk", CHAT, {"user-agent": "OpenAI/Python 2.20.0"}),
    Caller("", CHAT, {"user-agent": "an unknown program"}),
)


@dataclass
class Sums:
    """Tokens and cost of the calls of one group."""

    requests: int = 0
    prompt: int = 0
    read: int = 0
    written: int = 0
    written_long: int = 0
    micro_credits: int = 0

    def add(self, cached: CachedFormat) -> None:
        """Add the last call that a provider billed."""
        bill = cached.bills[-1]
        self.requests += 1
        self.prompt += bill.use.prompt
        self.read += bill.use.read
        self.written += bill.use.written
        self.written_long += bill.use.written_long
        self.micro_credits += -(-bill.cost // 1_000_000)


def sums_of(row: Json) -> Sums:
    read, written, long = row["cache_read_tokens"], row["cache_write_tokens"], row["long_cache_write_tokens"]
    prompt = row["input_tokens"] + read + written + long
    return Sums(row["requests"], prompt, read, written, long, row["micro_credits"])


def written(file: Path, text: str) -> str:
    file.write_text(text)
    return text


@asynccontextmanager
async def world_of(config: Path, database: str) -> AsyncGenerator[World, None]:
    """Run the providers of the models and a gateway in front of them. `config`: file to write its config to."""
    [first, second] = [each for each in UPSTREAMS if each.model in MODELS]
    one, serving_one = cached_provider(first.format, first.model, task.answer_to, first.keys)
    two, serving_two = cached_provider(second.format, second.model, task.answer_to, second.keys)
    async with serving_one as provider_one, serving_two as provider_two:
        channels = channel_of(first, provider_one.base_url) + channel_of(second, provider_two.base_url)
        async with running(written(config, head_of(database) + channels), config.parent) as gateway:
            yield World(gateway, {first.model: one, second.model: two})


async def second_key(world: World) -> str:
    url, body = f"{world.gateway.url}/admin/v1/keys", {"settings": {"name": "second"}}
    async with aiohttp.ClientSession(headers=world.gateway.headers) as session, session.post(url, json=body) as made:
        created: Json = await made.json()
        return str(created["secret"])


async def generate(world: World, model: str, key: str) -> None:
    """Make a call of gRPC."""
    message = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text=LONG))])
    async with grpc.aio.insecure_channel(world.gateway.grpc) as channel:
        stub: rpc.GenerationServiceAsyncStub = rpc.GenerationServiceStub(channel)
        await stub.Generate(
            pb.GenerateRequest(model=model, messages=[message]), metadata=[("authorization", f"Bearer {key}")]
        )


async def test_the_usage_of_each_model_key_and_agent_is_that_of_the_bills(prepared_database: Database) -> None:
    expected = defaultdict[tuple[str, str, str], Sums](Sums)
    config = prepared_database.data_dir / "umg.yaml"
    async with world_of(config, prepared_database.url) as world:
        for name, key in (("bootstrap", KEY), ("second", await second_key(world))):
            for model in MODELS:
                for caller in CALLERS:
                    for stream in (False, True):
                        await world.usage(caller.face, model, stream=stream, headers=caller.headers, key=key)
                        expected[model, name, caller.agent].add(world.providers[model])
                await generate(world, model, key)
                expected[model, name, "grpc"].add(world.providers[model])
    flags = ("--config", str(config), "--data", str(prepared_database.data_dir))
    code, out, err = await run("usage", "--by", "model,key,agent", "--format", "jsonl", *flags)
    assert (code, err) == (0, "")
    rows = [json.loads(line) for line in out.splitlines()]
    assert {(row["model"], row["key_name"], row["agent"]): sums_of(row) for row in rows} == expected
    code, out, _ = await run("usage", "--by", "agent", "--agent", "codex,claude-code", "--no-chart", *flags)
    shares = {line.split()[0]: line.split()[5] for line in out.splitlines()[1:3]}
    assert code == 0
    for agent in ("claude-code", "codex"):
        groups = [sums for (_, _, name), sums in expected.items() if name == agent]
        read, prompt = sum(each.read for each in groups), sum(each.prompt for each in groups)
        assert shares[agent] == f"{read / prompt:.1%}"

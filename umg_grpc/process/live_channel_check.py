"""Calls of the channels and guards of a config, once each, by a process that serves nothing."""

from collections.abc import Sequence
from contextlib import AsyncExitStack

from umg_grpc.config import Config
from umg_grpc.process.channel_factory import ChannelFactory
from umg_grpc.process.guard_factory import GuardFactory
from umg_grpc.service.channel_check import CheckResult, check_channels
from umg_grpc.service.guardrails.guard_check import check_guards
from umg_grpc.upstream.caller_url_fetch import Fetcher
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.local.wordllama import WordLlamaEngine
from umg_grpc.upstream.response_memory_budget import ResponseBudget


async def call_channels(config: Config, seconds: float) -> Sequence[CheckResult]:
    """Call each channel and each guard of a config once, channels for at most `seconds`. Return the results."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client.opened())
        fetcher = await stack.enter_async_context(Fetcher.opened(config.egress))
        engine = WordLlamaEngine()
        stack.push_async_callback(engine.aclose)
        factory = ChannelFactory(
            *(client, engine, None, ResponseBudget(), fetcher),
            guard_factory=GuardFactory(client, lambda *_: None, stack),
        )
        channels = factory.channels(config)
        return [*await check_channels(config.channels, channels, seconds), *await check_guards(channels.guards)]

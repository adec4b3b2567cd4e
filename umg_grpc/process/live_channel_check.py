"""Calls of the channels and guards of a config, once each, for `umg check --live`: this process serves nothing."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from umg_grpc.config import Config
from umg_grpc.process.channel_factory import ChannelFactory
from umg_grpc.process.guard_factory import GuardFactory
from umg_grpc.routing import Router
from umg_grpc.service.guardrails.guard_interface import Guard, GuardFailedError
from umg_grpc.service.guardrails.guard_selection import Guards
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.single_channel_check import CheckResult, check_channels
from umg_grpc.upstream.caller_url_fetch import Fetcher
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.local.wordllama import WordLlamaEngine
from umg_grpc.upstream.response_memory_budget import ResponseBudget
from umg_grpc.v1 import pb

CHECKED_TEXT = "Hello"


async def call_channels(config: Config, seconds: float) -> Sequence[CheckResult]:
    """Call each channel and each guard of a config once, channels for at most `seconds`. Return the results."""
    async with AsyncExitStack() as stack:
        channels = await connected_channels(config, stack)
        return [*await check_channels(config.channels, channels, seconds), *await check_guards(channels.guards)]


async def connected_channels(config: Config, stack: AsyncExitStack, router: Router | None = None) -> Channels:
    """Return the channels of a config with connections to their providers, which the exit stack closes. `router`: that
    of the config, None for a new one.
    """
    client = await stack.enter_async_context(Client.opened())
    fetcher = await stack.enter_async_context(Fetcher.opened(config.egress))
    engine = WordLlamaEngine()
    stack.push_async_callback(engine.aclose)
    factory = ChannelFactory(
        *(client, engine, None, ResponseBudget(), fetcher),
        guard_factory=GuardFactory(client, lambda *_: None, stack),
    )
    return factory.channels(config, router)


async def check_guards(guards: Guards | None) -> Sequence[CheckResult]:
    """Check all guards at the same time. Return the results in the order of the guards."""
    return await asyncio.gather(*map(_check, guards.all if guards is not None else ()))


async def _check(guard: Guard) -> CheckResult:
    name, seconds = f"guard {guard.row.name}", guard.row.timeout
    text = pb.GuardedText(path="messages[0].parts[0].text.text", text=CHECKED_TEXT, role=pb.ROLE_USER)
    request = pb.CheckRequest(guard=guard.row.name, phase=pb.GUARD_PHASE_REQUEST, texts=[text])
    try:
        async with asyncio.timeout(seconds):
            response = await guard.check(request)
    except TimeoutError:
        return CheckResult(name, False, f"no decision within {seconds:g} s: check its address and `timeout`")
    except GuardFailedError as error:
        return CheckResult(name, False, f"{error}: check its address and `headers`")
    if (decision := response.WhichOneof("decision")) is None:
        return CheckResult(name, False, "a response without a decision")
    return CheckResult(name, True, f"decides `{decision}` on {CHECKED_TEXT!r}")

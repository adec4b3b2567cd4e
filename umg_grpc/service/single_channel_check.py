"""Check of a channel, for `umg check --live`: reads the provider's model list or, without one, requests one token."""

import asyncio
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NamedTuple

from umg_grpc.base.errors import UmgError
from umg_grpc.base.provider_failure import FailureKind
from umg_grpc.config import Channel, ChannelModel
from umg_grpc.operations import UNARY_OPERATIONS
from umg_grpc.operations.generation_operation import GENERATE_OPERATION
from umg_grpc.operations.provider_protocols_by_name import model_list
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.provider_failure_advice import advice
from umg_grpc.upstream.http.provider_model_list import fetch_models
from umg_grpc.upstream.upstream_interfaces import PreparedCall

CHECK_CONCURRENCY = 32
SHOWN_MODELS, LEAST_SIMILARITY = 3, 0.5
"""Maximum number of similar models that an error message names, and their minimum similarity from 0 to 1."""
NO_LIST = frozenset({FailureKind.WRONG_ADDRESS, FailureKind.WRONG_MODEL, FailureKind.REQUEST, FailureKind.UNREADABLE})
"""Failures of the request for a model list that also occur at providers without a model list."""


class CheckResult(NamedTuple):
    """Result of the check of one channel: whether it works, and a message for the operator."""

    channel: str
    is_fine: bool
    text: str
    """Sentence that states how the channel has proved to work, or the failure and how to repair it."""


async def check_channels(channels: Sequence[Channel], upstreams: Channels, seconds: float) -> list[CheckResult]:
    """Check all channels at once by a cheap call, each within `seconds`. Return the results in the same order."""
    turns = asyncio.Semaphore(CHECK_CONCURRENCY)

    async def check(channel: Channel) -> CheckResult:
        async with turns:
            try:
                async with asyncio.timeout(seconds):
                    return CheckResult(channel.name, True, await _check(channel, upstreams, seconds))
            except TimeoutError:
                return CheckResult(
                    channel.name, False, f"no response within {seconds:g} s: check `base_url` and `proxy`"
                )
            except UmgError as error:
                return CheckResult(channel.name, False, explain(error))

    return await asyncio.gather(*map(check, channels))


async def _check(channel: Channel, upstreams: Channels, seconds: float) -> str:
    provider, listing = upstreams.providers.get(channel.name), model_list(channel.listing_protocols)
    if provider is None:
        return "part of the gateway"
    exact = [model for model in channel.models if "*" not in model.id]
    listed: list[str] | None = None
    failure: UmgError | None = None
    if listing is not None:
        try:
            listed = [model.id for model in await fetch_models(provider, listing, seconds)]
        except UmgError as error:
            if error.facts is None or error.facts.kind not in NO_LIST:
                raise
            failure = error
    if listed is not None and (not exact or all(model.upstream in listed for model in exact)):
        return f"{len(listed)} model{'' if len(listed) == 1 else 's'} listed"
    wanted = (model for model in exact if listed is None or model.upstream not in listed)
    calls = ((model, call) for model in wanted if (call := _cheap_call(channel, upstreams, model)) is not None)
    if (found := next(calls, None)) is not None:
        return await _answer(found[1], found[0].upstream, listed or (), seconds)
    if failure is not None:
        raise failure
    signs = "credentials found; " if await provider.has_credentials(seconds) else ""
    return f"{signs}not called: none of its models has a call that costs next to nothing"


async def _answer(call: PreparedCall[object], model: str, listed: Sequence[str], seconds: float) -> str:
    try:
        await call.send(seconds)
    except UmgError as error:
        kind = error.facts.kind if error.facts is not None else FailureKind.REQUEST
        if kind is FailureKind.REQUEST:  # the model is known, and has requirements of its own
            return f"`{model}` answers"
        if kind is FailureKind.WRONG_MODEL and error.facts is not None:
            names = get_close_matches(model, listed, n=SHOWN_MODELS, cutoff=LEAST_SIMILARITY)
            similar = f"; the provider lists {', '.join(f'`{name}`' for name in names)}" if names else ""
            error.with_facts(error.facts._replace(model=model, message=f"{error.facts.message}{similar}"))
        raise
    return f"`{model}` answers"


def _cheap_call(channel: Channel, upstreams: Channels, model: ChannelModel) -> PreparedCall[object] | None:
    """Return the cheapest call for the model's operations; None if it has none that costs next to nothing."""
    targets = upstreams.router.targets(model.id)
    target = next(each for each in targets if each.channel.name == channel.name)
    text = upstreams.text.get(channel.name)
    if (
        text is not None
        and (question := GENERATE_OPERATION.probe) is not None
        and GENERATE_OPERATION.value in target.operations
    ):
        return text.prepare(question, model.upstream, stream=False, quirks=target.quirks)
    for operation in UNARY_OPERATIONS.values():
        upstream = upstreams.unary.of(operation).get(channel.name)
        if upstream is not None and operation.probe is not None and operation.value in target.operations:
            return upstream.prepare(operation.probe, model.upstream)
    return None


def explain(error: UmgError) -> str:
    """Return the cause of a channel's failure, the remedy and the provider's message, as a line without API key."""
    return error.message if error.facts is None else advice(error.facts)

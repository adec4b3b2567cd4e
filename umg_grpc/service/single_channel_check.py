"""Check of a channel, for `umg check --live` and `CheckChannel`: reads its model list, or requests one token."""

import asyncio
import time
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NamedTuple

from umg_grpc.base.errors import UmgError
from umg_grpc.base.http_exchange_progress import ATTEMPT_PROGRESS, AttemptProgress
from umg_grpc.base.provider_failure import FailureKind, ProviderFailure
from umg_grpc.config import Channel
from umg_grpc.operations import UNARY_OPERATIONS
from umg_grpc.operations.generation_operation import GENERATE_OPERATION
from umg_grpc.operations.provider_protocols_by_name import model_list
from umg_grpc.routing import Target
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.provider_failure_advice import advice
from umg_grpc.upstream.http.provider_model_list import fetch_models
from umg_grpc.upstream.upstream_interfaces import PreparedCall

CHECK_CONCURRENCY = 32
SHOWN_MODELS, LEAST_SIMILARITY = 3, 0.5
"""Maximum number of similar models that an error message names, and their minimum similarity from 0 to 1."""
NO_LIST = frozenset({FailureKind.WRONG_ADDRESS, FailureKind.WRONG_MODEL, FailureKind.REQUEST, FailureKind.UNREADABLE})
"""Failures of the request for a model list that also occur at providers without a model list."""
NOT_CALLED_TEXT = "not called: none of its models has a call that costs next to nothing"


class CheckResult(NamedTuple):
    """Result of the check of one channel: whether it works, and a message for the operator."""

    channel: str
    is_fine: bool
    text: str
    """Sentence that states how the channel has proved to work, or the failure and how to repair it."""
    model: str = ""
    """Provider's id of the called model; "" if the model list was read, or nothing was called."""
    is_called: bool = True
    """Whether the provider was called."""
    seconds: float = 0.0
    facts: ProviderFailure | None = None
    """Facts of a failure at the provider; None for a success, and if no response came in time."""
    request_id: str = ""
    """Provider's id of the last request; "" if it sent none."""


class _Proof(NamedTuple):
    """Proof that a channel works: a message, the called model ("" for none), and whether anything was called."""

    text: str
    model: str = ""
    is_called: bool = True


async def check_channels(channels: Sequence[Channel], upstreams: Channels, seconds: float) -> list[CheckResult]:
    """Check all channels at once by a cheap call, each within `seconds`. Return the results in the same order."""
    turns = asyncio.Semaphore(CHECK_CONCURRENCY)

    async def check(channel: Channel) -> CheckResult:
        async with turns:
            return await check_channel(channel, upstreams, seconds)

    return await asyncio.gather(*map(check, channels))


async def check_channel(
    channel: Channel, upstreams: Channels, seconds: float, target: Target | None = None
) -> CheckResult:
    """Check a channel by a cheap call within `seconds`. `target`: the model to call, None for any."""
    progress, began = AttemptProgress(), time.perf_counter()
    token = ATTEMPT_PROGRESS.set(progress)
    model = "" if target is None else target.model
    facts: ProviderFailure | None = None
    proof: _Proof | None = None
    try:
        async with asyncio.timeout(seconds):
            if target is None:
                proof = await _check(channel, upstreams, seconds)
            else:
                proof = await _check_model(target, upstreams, seconds)
    except TimeoutError:
        text = f"no response within {seconds:g} s: check `base_url` and `proxy`"
    except UmgError as error:
        text, facts = explain(error), error.facts
    finally:
        ATTEMPT_PROGRESS.reset(token)
    duration = time.perf_counter() - began
    if proof is None:
        called = model or (facts.model if facts is not None else "")
        return CheckResult(channel.name, False, text, called, True, duration, facts, progress.request_id)
    return CheckResult(
        *(channel.name, True, proof.text, proof.model, proof.is_called, duration), request_id=progress.request_id
    )


async def _check(channel: Channel, upstreams: Channels, seconds: float) -> _Proof:
    provider, listing = upstreams.providers.get(channel.name), model_list(channel.listing_protocols)
    if provider is None:
        return _Proof("part of the gateway", is_called=False)
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
        return _Proof(f"{len(listed)} model{'' if len(listed) == 1 else 's'} listed")
    wanted = (model for model in exact if listed is None or model.upstream not in listed)
    targets = (target_at(channel.name, model.id, upstreams) for model in wanted)
    calls = ((each, call) for each in targets if each and (call := _cheap_call(each, upstreams)) is not None)
    if (found := next(calls, None)) is not None:
        return await _answer(found[1], found[0].model, listed or (), seconds)
    if failure is not None:
        raise failure
    signs = "credentials found; " if await provider.has_credentials(seconds) else ""
    return _Proof(f"{signs}{NOT_CALLED_TEXT}", is_called=False)


async def _check_model(target: Target, upstreams: Channels, seconds: float) -> _Proof:
    if (call := _cheap_call(target, upstreams)) is None:
        return _Proof(f"not called: `{target.model}` has no call that costs next to nothing", is_called=False)
    return await _answer(call, target.model, (), seconds)


async def _answer(call: PreparedCall[object], model: str, listed: Sequence[str], seconds: float) -> _Proof:
    try:
        await call.send(seconds)
    except UmgError as error:
        kind = error.facts.kind if error.facts is not None else FailureKind.REQUEST
        if kind is FailureKind.REQUEST:  # the model is known, and has requirements of its own
            return _Proof(f"`{model}` answers", model)
        if error.facts is not None:
            names = get_close_matches(model, listed, n=SHOWN_MODELS, cutoff=LEAST_SIMILARITY)
            is_unknown = kind is FailureKind.WRONG_MODEL and names
            similar = f"; the provider lists {', '.join(f'`{name}`' for name in names)}" if is_unknown else ""
            error.with_facts(error.facts._replace(model=model, message=f"{error.facts.message}{similar}"))
        raise
    return _Proof(f"`{model}` answers", model)


def target_at(channel: str, model: str, upstreams: Channels) -> Target | None:
    """Return the target of a model, by its public id, at a channel; None if the channel does not serve it."""
    return next((each for each in upstreams.router.targets(model) if each.channel.name == channel), None)


def _cheap_call(target: Target, upstreams: Channels) -> PreparedCall[object] | None:
    """Return the cheapest call for the model's operations; None if it has none that costs next to nothing."""
    text = upstreams.text.get(target.channel.name)
    if (
        text is not None
        and (question := GENERATE_OPERATION.probe) is not None
        and GENERATE_OPERATION.value in target.operations
    ):
        return text.prepare(question, target.model, stream=False, quirks=target.quirks)
    for operation in UNARY_OPERATIONS.values():
        upstream = upstreams.unary.of(operation).get(target.channel.name)
        if upstream is not None and operation.probe is not None and operation.value in target.operations:
            return upstream.prepare(operation.probe, target.model)
    return None


def explain(error: UmgError) -> str:
    """Return the cause of a channel's failure, the remedy and the provider's message, as a line without API key."""
    return error.message if error.facts is None else advice(error.facts)

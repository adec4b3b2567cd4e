"""Costs of calls with fallbacks: each call is charged exactly the bills of its providers, in any order of failures, and
no part of a budget stays reserved.
"""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web

from tests.support.providers.scripted import Script, Scripted, reset_after_content, status, succeed
from tests.unit.e2e.test_budgets import spent
from tests.unit.e2e.test_fallbacks import DOWN, REFUSED, TOO_LONG, UNPAID, record_of
from tests.unit.e2e.test_survival import World, world
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.store.budget_accounts import Balance

CREDIT = 1_000_000
INPUT_TOKENS, OUTPUT_TOKENS = 3, 4
"""Tokens of each answer of the providers."""
PRICES = {"m": (10, 100), "a": (1_000, 5_000), "b": (7, 30)}
"""Model -> micro-credits of a token of the prompt, and of one of the response."""


async def fail_after_generation(request: web.Request, provider: Scripted) -> web.StreamResponse:
    """Script of a response that the provider breaks off and bills."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "network_error"}
    usage = {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS, "total_tokens": 7}
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    return web.json_response(head | {"choices": [choice], "usage": usage})


@dataclass(frozen=True)
class Step:
    name: str
    script: Script
    bills: bool = False
    cause: str = ""
    """Cause of a fallback; "" for a result after which there is none."""


STEPS = {
    step.name: step
    for step in (
        Step("answers", succeed, bills=True),
        Step("fails", DOWN, cause="unavailable"),
        Step("limits", status(429, retry_after="7"), cause="unavailable"),
        Step("fails and bills", fail_after_generation, bills=True, cause="unavailable"),
        Step("too long", TOO_LONG, cause="context"),
        Step("refuses", REFUSED, cause="content"),
        Step("unpaid", UNPAID, cause="quota"),
        Step("rejects", status(400)),
    )
}
ORDER = ("m", "a", "b")


@dataclass(frozen=True)
class Expected:
    """Result of a call by the documentation: the models that are called, the one that answers, and the cost."""

    called: tuple[str, ...]
    answered: str
    cost: int


def expected(steps: Sequence[Step]) -> Expected:
    """Return the result of a call whose models behave in these ways, in the order of `ORDER`."""
    called, cost = list[str](), 0
    for model, step in zip(ORDER, steps, strict=True):
        called.append(model)
        if step.bills:
            cost += INPUT_TOKENS * PRICES[model][0] + OUTPUT_TOKENS * PRICES[model][1]
        if step.name == "answers":
            return Expected(tuple(called), model, cost)
        if model == "m" and not step.cause:
            break
    return Expected(tuple(called), "", cost)


def config(cases: int) -> str:
    """Return the models with their prices and fallbacks: each case has its own, so that no circuit breaker of another
    case is open.
    """
    models = "".join(
        f"  {name}-{case}: {{price: {{input: {prices[0]}, output: {prices[1]}}}}}\n"
        for case in range(cases)
        for name, prices in PRICES.items()
    )
    fallbacks = "".join(f"  m-{case}: [a-{case}, b-{case}]\n" for case in range(cases))
    return f"retries: {{repeats: 0}}\nmodels:\n{models}fallbacks:\n{fallbacks}"


CHANNELS = {name: f'models: ["{name}-*"]\nprotocols: [chat]' for name in ORDER}


async def new_key(here: World, budget: int) -> tuple[str, dict[str, str]]:
    key, secret = await ApiKeys(here.gateway.service.store).create(f"budget {budget}", budget_micro_credits=budget)
    return key.key_id, {"authorization": f"Bearer {secret}"}


def sampled(count: int) -> list[tuple[Step, ...]]:
    """Return orders of failures: all pairs of the first two models, and others at random, the same in each run."""
    chance, steps = random.Random(42), [*STEPS.values()]
    pairs = [(first, second, STEPS["answers"]) for first in steps for second in steps]
    return pairs + [(chance.choice(steps), chance.choice(steps), chance.choice(steps)) for _ in range(count)]


async def test_no_order_of_failures_charges_twice_or_leaks_a_reservation(tmp_path: Path) -> None:
    cases, ids, total = sampled(40), list[str](), 0
    async with world(tmp_path, {name: [succeed] for name in ORDER}, CHANNELS, config(len(cases))) as here:
        key_id, headers = await new_key(here, 100 * CREDIT)
        for number, steps in enumerate(cases):
            before, want = here.counts, expected(steps)
            for name, step in zip(ORDER, steps, strict=True):
                here[name].scripts[:] = [step.script]
            got = await here.generate(body={"model": f"m-{number}"}, **headers)
            label = [step.name for step in steps]
            called = tuple(name for name in ORDER if here.counts[name] > before[name])
            assert (called, got.status == 200) == (want.called, bool(want.answered)), label
            assert got.body.get("model", "") == (f"{want.answered}-{number}" if want.answered else ""), label
            ids.append(got.headers["x-request-id"])
        for number, (request_id, steps) in enumerate(zip(ids, cases, strict=True)):
            record, want = await record_of(here, request_id), expected(steps)
            found = record.micro_credits, record.attempts, record.model
            assert found == (want.cost, len(want.called), f"{want.answered or 'm'}-{number}"), steps
            total += want.cost
    assert await spent("sqlite", tmp_path, key_id) == Balance(total, 0)


async def test_a_fallback_that_the_rest_of_the_budget_does_not_pay_is_skipped_and_the_rest_is_charged(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, {name: [succeed] for name in ORDER}, CHANNELS, config(1)) as here:
        here["m"].scripts[:] = [fail_after_generation]
        key_id, headers = await new_key(here, 60_000)  # enough for `m` and `b`, and for no response of `a`
        got = await here.generate(body={"model": "m-0", "max_tokens": 16}, **headers)
        assert got.status == 200, got.body
        assert got.body["model"] == "b-0"
        assert here.counts == {"m": 1, "a": 0, "b": 1}
        first, last = (INPUT_TOKENS * PRICES[name][0] + OUTPUT_TOKENS * PRICES[name][1] for name in ("m", "b"))
        assert (await record_of(here, got.headers["x-request-id"])).micro_credits == first + last
    assert await spent("sqlite", tmp_path, key_id) == Balance(first + last, 0)


async def test_no_fallback_is_charged_or_called_after_output(tmp_path: Path) -> None:
    async with world(tmp_path, {name: [succeed] for name in ORDER}, CHANNELS, config(1)) as here:
        here["m"].scripts[:] = [reset_after_content]
        key_id, headers = await new_key(here, 100 * CREDIT)
        got = await here.generate(body={"model": "m-0"}, stream=True, **headers)
        assert '"error"' in got.text
        assert here.counts == {"m": 1, "a": 0, "b": 0}
        record = await record_of(here, got.headers["x-request-id"])
        assert (record.model, record.estimated, record.micro_credits > 0) == ("m-0", True, True)
    assert await spent("sqlite", tmp_path, key_id) == Balance(record.micro_credits, 0)


def waiting(arrived: asyncio.Event) -> Script:
    """Return the script of a call that gets no response, which sets the event."""

    async def script(request: web.Request, provider: Scripted) -> web.StreamResponse:
        arrived.set()
        await asyncio.Event().wait()
        raise AssertionError

    return script


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("model", ["m", "a"])
async def test_a_caller_that_leaves_reserves_nothing(tmp_path: Path, model: str, stream: bool) -> None:
    async with world(tmp_path, {name: [succeed] for name in ORDER}, CHANNELS, config(1)) as here:
        arrived = asyncio.Event()
        here["m"].scripts[:] = [DOWN]
        here[model].scripts[:] = [waiting(arrived)]
        key_id, headers = await new_key(here, 100 * CREDIT)
        call = asyncio.create_task(here.generate(body={"model": "m-0"}, stream=stream, x_request_id="left", **headers))
        await arrived.wait()
        call.cancel()
        record = await record_of(here, "left")
        assert (record.status, record.model) == ("CANCELLED", f"{model}-0")
    assert await spent("sqlite", tmp_path, key_id) == Balance(record.micro_credits, 0)

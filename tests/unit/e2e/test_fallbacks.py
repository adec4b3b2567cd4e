"""Fallbacks by name: the model that answers in place of another one, by cause, permission, limits, cache and time."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.support.providers.scripted import Script, Scripted, chunk, stall, start_stream, status, succeed
from tests.unit.e2e.test_survival import CHAT, MESSAGES, World, world
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.store.usage_record_table import UsageRecord, UsageRecords

TOO_LONG = status(400, {"code": "context_length_exceeded", "message": "maximum context length is 8192 tokens"})
REFUSED = status(400, {"code": "content_filter", "message": "The response was filtered"})
UNPAID = status(429, {"code": "insufficient_quota", "message": "You exceeded your current quota"})
OF_A_DAY = status(
    429,
    {
        "message": "You exceeded your current quota",
        "status": "RESOURCE_EXHAUSTED",
        "details": [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}],
    },
)
DOWN = status(500)
CAUSES: dict[str, Script] = {"context": TOO_LONG, "content": REFUSED, "unavailable": DOWN, "quota": UNPAID}
ONE_ATTEMPT = "retries: {repeats: 0}\n"
FALLBACK = f"{ONE_ATTEMPT}fallbacks: {{m: [other]}}\n"
OF_CONTENT = f"{ONE_ATTEMPT}fallbacks: {{m: {{content: [other]}}}}\n"
FIXED = {"temperature": 0}
"""Member without which a response is not cached."""
TURN = [{"role": "user", "content": "Hi"}]


def of_models(*models: str) -> dict[str, str]:
    """Return the config lines of a channel for each model, of the same name."""
    return {model: f"models: [{model}]\nprotocols: [chat]" for model in models}


def two(first: Script, *more: Script) -> dict[str, list[Script]]:
    return {"m": [first, *more], "other": [succeed]}


async def key_of(here: World, **fields: Any) -> dict[str, str]:
    """Return the headers of a new key, whose answers state the route."""
    _, secret = await ApiKeys(here.gateway.service.store).create("restricted", show_route=True, **fields)
    return {"authorization": f"Bearer {secret}"}


async def record_of(here: World, request_id: str) -> UsageRecord:
    records = UsageRecords(here.gateway.service.store)
    async with asyncio.timeout(60):
        while not (found := await records.find(request_id)):  # noqa: ASYNC110  no event reports the write
            await asyncio.sleep(0.02)
    [record] = found
    return record


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("cause", CAUSES)
async def test_the_answer_and_the_record_name_the_model_that_answered(tmp_path: Path, cause: str, stream: bool) -> None:
    async with world(tmp_path, two(CAUSES[cause]), of_models("m", "other"), FALLBACK) as here:
        got = await here.generate(stream=stream)
        assert (got.status, here.counts) == (200, {"m": 1, "other": 1})
        assert got.route.startswith(f"fallback=other; cause={cause}; channel=other; attempts=2; reason=m: "), got.route
        compact = got.text.replace(" ", "")
        assert '"model":"other"' in compact if stream else got.body["model"] == "other"
        record = await record_of(here, got.headers["x-request-id"])
    assert (record.model, record.channel, record.status, record.attempts) == ("other", "other", "OK", 2)
    assert record.details is not None
    assert (record.details.requested_model, record.details.fallback_cause) == ("m", cause)
    assert [(each.channel, each.model) for each in record.details.attempts] == [("m", "m"), ("other", "other")]


async def test_the_quota_of_a_day_is_a_quota_also_while_the_circuit_breaker_is_open(tmp_path: Path) -> None:
    rest = f"{ONE_ATTEMPT}fallbacks: {{m: {{quota: [other], unavailable: [last]}}}}\n"
    models = {"m": [OF_A_DAY], "other": [succeed], "last": [succeed]}
    async with world(tmp_path, models, of_models(*models), rest) as here:
        for _ in range(2):
            assert (await here.generate()).route.startswith("fallback=other; cause=quota; ")
        assert here.counts == {"m": 1, "other": 2, "last": 0}


async def test_the_caller_gets_the_error_of_the_requested_model_if_no_fallback_answers(tmp_path: Path) -> None:
    models = {"m": [status(503)], "other": [TOO_LONG], "last": [UNPAID]}
    rest = f"{ONE_ATTEMPT}fallbacks: {{m: [other, last]}}\n"
    async with world(tmp_path, models, of_models(*models), rest) as here:
        got = await here.generate()
        assert (got.status, here.counts) == (503, {"m": 1, "other": 1, "last": 1})
        assert "m says 503" in got.body["error"]["message"]
        assert got.route.startswith("channel=last; attempts=3; reason=m: "), got.route
        record = await record_of(here, got.headers["x-request-id"])
    assert (record.model, record.attempts, record.micro_credits) == ("m", 3, 0)
    assert record.details is not None
    assert record.details.requested_model == ""


async def test_a_fallback_of_a_fallback_is_not_called(tmp_path: Path) -> None:
    models = {"m": [DOWN], "other": [DOWN], "last": [succeed]}
    rest = f"{ONE_ATTEMPT}fallbacks: {{m: [other], other: [last, m]}}\n"
    async with world(tmp_path, models, of_models(*models), rest) as here:
        assert (await here.generate()).status == 502
        assert here.counts == {"m": 1, "other": 1, "last": 0}


@dataclass(frozen=True)
class Skipped:
    id: str
    reason: str
    rest: str = ""
    key: tuple[tuple[str, Any], ...] = ()


PRICED = "models: {m: {price: {request: 1}}, other: {price: {request: 5}}, last: {price: {request: 1}}}\n"
CREDIT = 1_000_000
SKIPPED = [
    Skipped("not permitted", "model_not_found", key=(("model_patterns", ["m", "last"]),)),
    Skipped("another channel", "model_not_found", key=(("channels", ["m", "last"]),)),
    Skipped("no price", "model_unpriced", PRICED.replace("other: {price: {request: 5}}", "other: {unpriced: refuse}"),
            (("budget_micro_credits", 9 * CREDIT),)),
    Skipped("too expensive for the budget", "quota_exhausted", PRICED, (("budget_micro_credits", 4 * CREDIT),)),
]  # fmt: skip


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", SKIPPED, ids=lambda case: case.id)
async def test_a_fallback_that_the_key_cannot_use_is_skipped(tmp_path: Path, case: Skipped, stream: bool) -> None:
    models = {"m": [DOWN], "other": [succeed], "last": [succeed]}
    rest = f"{ONE_ATTEMPT}{case.rest}fallbacks: {{m: [other, last]}}\n"
    async with world(tmp_path, models, of_models(*models), rest) as here:
        headers = await key_of(here, **dict(case.key))
        got = await here.generate(stream=stream, **headers)
        assert (got.status, here.counts) == (200, {"m": 1, "other": 0, "last": 1}), got.body
        assert f"other: {case.reason}" in got.route, got.route


@dataclass(frozen=True)
class OwnLimit:
    """Limit of the key itself, after which no fallback is called."""

    id: str
    rest: str
    key: tuple[tuple[str, Any], ...]
    status: int


OWN_LIMITS = [
    OwnLimit("budget", PRICED.replace("m: {price: {request: 1}}", "m: {price: {request: 9}}"),
             (("budget_micro_credits", 5 * CREDIT),), 429),
    OwnLimit("requests a minute", "", (("requests_per_minute", 1),), 429),
    OwnLimit("permission", "", (("model_patterns", ["other"]),), 404),
]  # fmt: skip


@pytest.mark.parametrize("path", [CHAT, MESSAGES, "/v1/responses"])
@pytest.mark.parametrize("case", OWN_LIMITS, ids=lambda case: case.id)
async def test_the_own_limits_of_a_key_call_no_fallback(tmp_path: Path, case: OwnLimit, path: str) -> None:
    rest = f"{case.rest.replace(', last: {price: {request: 1}}', '')}{FALLBACK}"
    async with world(tmp_path, two(succeed), of_models("m", "other"), rest) as here:
        headers = await key_of(here, **dict(case.key))
        calls = 2 if case.id.startswith("requests") else 1
        for _ in range(calls):
            got = await here.generate(path, **headers)
        assert got.status == case.status, got.body
        assert "error" in got.body
        assert here.counts == {"m": calls - 1, "other": 0}


async def test_the_limits_of_each_model_are_held_while_it_is_called(tmp_path: Path) -> None:
    limits = "models: {m: {limits: {concurrency: 1}}, other: {limits: {concurrency: 1}}}\n"
    release = asyncio.Event()

    async def wait(request: web.Request, provider: Scripted) -> web.StreamResponse:
        await release.wait()
        return await succeed(request, provider)

    models: dict[str, list[Script]] = {"m": [DOWN], "other": [wait]}
    async with world(tmp_path, models, of_models(*models), limits + FALLBACK) as here:
        first = asyncio.create_task(here.generate())
        await here["other"].arrived.get()
        second = await here.generate()  # the place of `m` is free again, that of `other` is not
        assert (second.status, here.counts) == (502, {"m": 2, "other": 1})
        assert "other: rate_limited" in second.route
        release.set()
        assert (await first).status == 200
        assert (await here.generate()).status == 200


async def test_a_model_with_open_circuit_breakers_is_not_called(tmp_path: Path) -> None:
    async with world(tmp_path, two(UNPAID), of_models("m", "other"), FALLBACK) as here:
        routes = [(await here.generate()).route for _ in range(3)]
        assert here.counts == {"m": 1, "other": 3}
    assert [route.partition("; channel")[0] for route in routes] == ["fallback=other; cause=quota"] * 3
    assert routes[-1] == "fallback=other; cause=quota; channel=other; attempts=1; reason=m: down"


async def test_a_key_without_a_usable_fallback_still_calls_a_model_with_an_open_circuit_breaker(tmp_path: Path) -> None:
    async with world(tmp_path, two(UNPAID), of_models("m", "other"), FALLBACK) as here:
        headers = await key_of(here, model_patterns=["m"])
        statuses = [(await here.generate(**headers)).status for _ in range(2)]
        assert (statuses, here.counts) == ([429, 429], {"m": 2, "other": 0})


async def test_an_answer_of_a_fallback_is_not_cached_as_one_of_the_requested_model(tmp_path: Path) -> None:
    async with world(tmp_path, two(DOWN, DOWN, succeed), of_models("m", "other"), FALLBACK) as here:
        found = [await here.generate(body=FIXED, x_umg_cache="1h") for _ in range(3)]
        assert [each.headers["x-umg-cache"] for each in found] == ["miss", "hit", "miss"]
        assert [each.body["model"] for each in found] == ["other", "other", "m"]
        assert here.counts == {"m": 3, "other": 1}
        assert found[1].route == "fallback=other; cause=unavailable; channel=; attempts=1; reason=cached response"


async def test_a_cached_stream_of_a_fallback_is_found_again(tmp_path: Path) -> None:
    async with world(tmp_path, two(DOWN), of_models("m", "other"), FALLBACK) as here:
        found = [await here.generate(stream=True, body=FIXED, x_umg_cache="1h") for _ in range(2)]
        assert [each.headers["x-umg-cache"] for each in found] == ["miss", "hit"]
        assert here.counts == {"m": 2, "other": 1}


async def test_the_deadline_of_a_call_is_for_all_models_together(tmp_path: Path) -> None:
    async with world(tmp_path, two(stall), of_models("m", "other"), FALLBACK) as here:
        async with asyncio.timeout(60):
            while not here["m"].calls:  # on a busy machine the time may be over before the first attempt begins
                assert (await here.generate(x_umg_timeout="200ms")).status == 504
        assert here.counts == {"m": 1, "other": 0}


async def test_a_stream_whose_headers_were_sent_early_may_fall_back(tmp_path: Path) -> None:
    has_headers = asyncio.Event()

    async def break_later(request: web.Request, provider: Scripted) -> web.StreamResponse:
        response = await start_stream(request)
        await response.write(chunk({"role": "assistant", "content": ""}))
        await has_headers.wait()
        assert request.transport is not None
        request.transport.abort()
        return response

    rest = f"{FALLBACK}stream_headers_after: 0.01\n"
    async with world(tmp_path, two(break_later), of_models("m", "other"), rest) as here:
        body = {"model": "m", "messages": TURN, "stream": True}
        async with here.session.post(here.gateway.url + CHAT, json=body) as got:
            assert (got.status, got.headers.get("x-umg-waiting")) == (200, "true")
            has_headers.set()
            text = (await got.text()).replace(" ", "")
    assert '"content":"other"' in text
    assert '"model":"other"' in text


async def test_a_stored_response_is_continued_with_its_conversation(tmp_path: Path) -> None:
    async with world(tmp_path, two(succeed, DOWN), of_models("m", "other"), FALLBACK) as here:
        first = await here.generate("/v1/responses")
        second = await here.generate("/v1/responses", body={"previous_response_id": first.body["id"], "input": "More"})
        assert (second.status, second.body["model"]) == (200, "other")
        sent = here["other"].calls[0].body["messages"]
    assert [(turn["role"], turn["content"]) for turn in sent] == [("user", "Hi"), ("assistant", "m"), ("user", "More")]
    assert second.body["previous_response_id"] == first.body["id"]


async def test_a_strict_call_is_not_answered_by_a_fallback_that_loses_a_field(tmp_path: Path) -> None:
    more = {"m": "models: [m]\nprotocols: [chat]", "other": "models: [other]\nprotocols: [messages]"}
    async with world(tmp_path, two(DOWN), more, FALLBACK) as here:
        got = await here.generate(body={"seed": 1}, x_umg_strict="true")
        assert (got.status, here.counts) == (502, {"m": 1, "other": 0})
        assert "other: untranslatable seed" in got.route


async def test_the_metrics_count_the_calls_of_fallbacks(tmp_path: Path) -> None:
    async with world(tmp_path, two(DOWN), of_models("m", "other"), FALLBACK) as here:
        async with aiohttp.ClientSession() as session, session.get(f"{here.gateway.url}/metrics") as got:
            before = await got.text()
        await here.generate()
        async with aiohttp.ClientSession() as session, session.get(f"{here.gateway.url}/metrics") as got:
            after = await got.text()
    line = 'umg_fallbacks_total{cause="unavailable",fallback="other",model="m"} 1.0'
    assert line not in before
    assert line in after


REFUSED_CHAT = {"index": 0, "message": {"role": "assistant", "content": None}, "finish_reason": "content_filter"}


async def refuse_in_answer(request: web.Request, provider: Scripted) -> web.StreamResponse:
    """Script of a response with status 200 that the filter of the provider refused."""
    head = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    usage = {"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 3}
    if not provider.calls[-1].body.get("stream"):
        return web.json_response(head | {"choices": [REFUSED_CHAT], "usage": usage})
    response = await start_stream(request)
    await response.write(chunk({"role": "assistant", "content": ""}) + chunk({}, "content_filter"))
    await response.write(b"data: [DONE]\n\n")
    return response


PER_TOKEN = "models: {m: {price: {input: 10}}, other: {price: {input: 1000, output: 1000}}}\n"


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_refusal_in_an_answer_calls_a_fallback_and_is_charged(tmp_path: Path, path: str, stream: bool) -> None:
    async with world(tmp_path, two(refuse_in_answer), of_models("m", "other"), PER_TOKEN + OF_CONTENT) as here:
        got = await here.generate(path, stream=stream)
        assert (got.status, here.counts) == (200, {"m": 1, "other": 1}), got.text or got.body
        assert got.route == "fallback=other; cause=content; channel=other; attempts=2; reason=m: content_blocked"
        assert '"model":"other"' in got.text.replace(" ", "") if stream else got.body["model"] == "other"
        record = await record_of(here, got.headers["x-request-id"])
    if not stream:
        assert record.micro_credits == 3 * 10 + 3 * 1000 + 4 * 1000
    else:
        assert record.estimated  # neither of the streams states its usage
        assert record.micro_credits > 1000


async def refuse_with_usage(request: web.Request, provider: Scripted) -> web.StreamResponse:
    """Script of a refused stream whose usage follows the finish reason in a chunk of its own, as OpenAI sends it."""
    response = await start_stream(request)
    await response.write(chunk({"role": "assistant", "content": ""}) + chunk({}, "content_filter"))
    await asyncio.sleep(0.05)  # so that they are read apart
    usage = {"prompt_tokens": 700, "completion_tokens": 20, "total_tokens": 720}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": usage}
    await response.write(b"data: " + json.dumps(head).encode() + b"\n\ndata: [DONE]\n\n")
    return response


async def refuse_without_an_end(request: web.Request, provider: Scripted) -> web.StreamResponse:
    """Script of a refused stream without usage and end marker."""
    response = await start_stream(request)
    await response.write(chunk({"role": "assistant", "content": ""}) + chunk({}, "content_filter"))
    return response


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
async def test_a_refused_stream_is_charged_by_the_usage_that_follows(tmp_path: Path, path: str) -> None:
    prices = "models: {m: {price: {input: 10, output: 100}}, other: {price: {input: 0}}}\n"
    async with world(tmp_path, two(refuse_with_usage), of_models("m", "other"), prices + OF_CONTENT) as here:
        got = await here.generate(path, stream=True)
        record = await record_of(here, got.headers["x-request-id"])
    assert (record.model, record.micro_credits) == ("other", 700 * 10 + 20 * 100)


async def test_a_refused_stream_without_usage_and_end_calls_the_fallback(tmp_path: Path) -> None:
    async with world(tmp_path, two(refuse_without_an_end), of_models("m", "other"), OF_CONTENT) as here:
        got = await here.generate(stream=True)
        assert (got.status, here.counts) == (200, {"m": 1, "other": 1})


async def refuse_in_words(request: web.Request, provider: Scripted) -> web.StreamResponse:
    """Script of a response in which the model itself refuses, which ends with `stop`."""
    message = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return web.json_response({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
async def test_a_refusal_in_words_calls_a_fallback_for_callers_of_every_format(tmp_path: Path, path: str) -> None:
    async with world(tmp_path, two(refuse_in_words), of_models("m", "other"), OF_CONTENT) as here:
        assert (await here.generate(path)).body["model"] == "other"
        assert here.counts == {"m": 1, "other": 1}


async def test_a_request_above_the_limit_of_a_minute_calls_the_fallback_for_a_large_context(tmp_path: Path) -> None:
    large = status(429, {"code": "rate_limit_exceeded", "message": "Request too large for m on tokens per min (TPM)"})
    rest = f"{ONE_ATTEMPT}fallbacks: {{m: {{context: [other]}}}}\n"
    async with world(tmp_path, two(large), of_models("m", "other"), rest) as here:
        got = await here.generate()
        assert (got.status, here.counts) == (200, {"m": 1, "other": 1})
        assert got.route.startswith("fallback=other; cause=context; "), got.route


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_refusal_in_an_answer_stays_without_a_fallback_that_the_key_may_use(
    tmp_path: Path, stream: bool
) -> None:
    async with world(tmp_path, two(refuse_in_answer), of_models("m", "other"), FALLBACK) as here:
        got = await here.generate(stream=stream, **await key_of(here, model_patterns=["m"]))
        assert (got.status, here.counts) == (200, {"m": 1, "other": 0})
        assert "content_filter" in (got.text if stream else got.body["choices"][0]["finish_reason"])

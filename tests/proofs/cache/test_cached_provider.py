"""Model server with a prompt cache: usage in the words of each vendor, and the explicit caches of the native format."""

from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from tests.proofs.cache import stored_contents, task
from tests.proofs.cache.cached_provider import CachedFormat, SteppedClock, cached_provider

ACCOUNTS = {"sk-one": "one", "sk-other": "other"}
LONG = "word " * 2000
TURN = {"role": "user", "content": LONG}
PART = {"role": "user", "parts": [{"text": LONG}]}
PATH = "/v1beta/models/gemini-3.6-flash:generateContent"


@dataclass(frozen=True)
class Stated:
    """Usage of the second of two equal calls, in the words of a vendor."""

    id: str
    format: str
    model: str
    path: str
    body: dict[str, Any]
    usage: dict[str, Any]


CONTROL = {"type": "ephemeral", "ttl": "1h"}
MARKED = {"role": "user", "content": [{"type": "text", "text": LONG, "cache_control": CONTROL}]}
STATED = [
    Stated(
        "chat of DeepSeek",
        "chat",
        "deepseek-v4-flash",
        "/v1/chat/completions",
        {"messages": [TURN]},
        {"prompt_tokens": 2501, "prompt_cache_hit_tokens": 2496, "prompt_cache_miss_tokens": 5},
    ),
    Stated(
        "responses of OpenAI",
        "responses",
        "gpt-5.5",
        "/v1/responses",
        {"input": [TURN]},
        {"input_tokens": 2501, "input_tokens_details": {"cached_tokens": 2432, "cache_write_tokens": 0}},
    ),
    Stated(
        "responses of OpenAI with breakpoints",
        "responses",
        "gpt-5.6-sol",
        "/v1/responses",
        {"input": [TURN]},
        {"input_tokens": 2501, "input_tokens_details": {"cached_tokens": 2501, "cache_write_tokens": 0}},
    ),
    Stated(
        "messages",
        "messages",
        "claude-sonnet-5",
        "/v1/messages",
        {"messages": [MARKED], "max_tokens": 9},
        {"input_tokens": 0, "cache_read_input_tokens": 2501, "cache_creation_input_tokens": 0},
    ),
    Stated(
        "native",
        "native",
        "gemini-3.6-flash",
        PATH,
        {"contents": [PART]},
        {"promptTokenCount": 2501, "cachedContentTokenCount": 2501},
    ),
]


async def post(url: str, body: dict[str, Any], key: str = "sk-one", method: str = "POST") -> tuple[int, Any]:
    headers = {"authorization": f"Bearer {key}", "x-goog-api-key": key, "anthropic-version": "2023-06-01"}
    async with aiohttp.ClientSession(headers=headers) as session, session.request(method, url, json=body) as response:
        return response.status, await response.json()


@pytest.mark.parametrize("case", STATED, ids=lambda case: case.id)
async def test_the_usage_states_the_cache_in_the_words_of_the_vendor(case: Stated) -> None:
    cached, serving = cached_provider(case.format, case.model, task.answer_to, ACCOUNTS)
    async with serving as provider:
        body = case.body if case.format == "native" else {"model": case.model, **case.body}
        await post(provider.url + case.path, body)
        _, answer = await post(provider.url + case.path, body)
        usage = answer.get("usage") or answer["usageMetadata"]
        assert {name: usage[name] for name in case.usage} == case.usage
        assert [bill.use.read > 0 for bill in cached.bills] == [False, True]
        await post(provider.url + case.path, body, "sk-other")
        assert not cached.bills[-1].use.read
        assert (await post(provider.url + case.path, body, "sk-unknown"))[0] == 401


async def created(url: str, cached: CachedFormat) -> str:
    body = {"model": "models/gemini-3.6-flash", "contents": [PART], "ttl": "300s"}
    status, resource = await post(f"{url}/v1beta/cachedContents", body)
    assert (status, resource["usageMetadata"]) == (200, {"totalTokenCount": 2501})
    return str(resource["name"])


async def test_a_stored_content_belongs_to_one_account_and_ends() -> None:
    clock = SteppedClock(step=0)
    cached, serving = cached_provider("native", "gemini-3.6-flash", task.answer_to, ACCOUNTS, clock)
    question = [{"role": "user", "parts": [{"text": "Why?"}]}]
    async with serving as provider:
        name = await created(provider.url, cached)
        body = {"contents": question, "cachedContent": name}
        status, answer = await post(provider.url + PATH, body)
        assert (status, answer["usageMetadata"]["cachedContentTokenCount"]) == (200, 2501)
        status, answer = await post(provider.url + PATH, {**body, "systemInstruction": {"parts": [{"text": "x"}]}})
        assert (status, answer["error"]["message"]) == (400, stored_contents.EXCLUSIVE)
        status, answer = await post(provider.url + PATH, body, "sk-other")
        assert (status, answer["error"]["message"]) == (403, stored_contents.MISSING)
        clock.now += 300
        assert (await post(provider.url + PATH, body))[0] == 403


async def test_a_short_content_is_not_stored() -> None:
    _, serving = cached_provider("native", "gemini-3.6-flash", task.answer_to, ACCOUNTS)
    async with serving as provider:
        body = {"model": "models/gemini-3.6-flash", "contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
        status, answer = await post(f"{provider.url}/v1beta/cachedContents", body)
    expected = "Cached content is too small. total_token_count=2, min_total_token_count=1024"
    assert (status, answer["error"]["message"]) == (400, expected)

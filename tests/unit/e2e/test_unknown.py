"""Unknown fields below the top level of a translated body."""

import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from tests.support.gateways import SANDBOX, Running, running

MODEL = "famO-5-mini"
USER = {"role": "user", "content": "Hi"}


@dataclass(frozen=True)
class Call:
    id: str
    path: str
    body: dict[str, object]
    unknown: str
    """Path of the unknown field."""


CALLS = [
    Call("chat", "/v1/chat/completions", {"model": MODEL, "messages": [{**USER, "zork": 1}]}, "messages[0].zork"),
    Call(
        "messages",
        "/v1/messages",
        {"model": MODEL, "max_tokens": 99, "messages": [USER], "tools": [{"name": "f", "input_schema": {"type": "object"}, "zork": 1}]},
        "tools[0].zork",
    ),
    Call("responses", "/v1/responses", {"model": MODEL, "input": [{**USER, "zork": 1}], "store": False}, "input[0].zork"),
    Call(
        "native",
        f"/v1beta/models/{MODEL}:generateContent",
        {"contents": [{"parts": [{"text": "Hi", "zork": 1}]}]},
        "contents[0].parts[0].zork",
    ),
]  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    path: Path = tmp_path_factory.mktemp("data")
    async with running(SANDBOX, path) as state:
        yield state


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.id)
async def test_a_nested_unknown_field_is_named_and_a_strict_caller_gets_its_path(gateway: Running, call: Call) -> None:
    async with aiohttp.ClientSession(gateway.url, headers=gateway.headers) as session:
        async with session.post(call.path, json=call.body) as answer:
            assert answer.status == 200, await answer.text()
            assert answer.headers["x-umg-dropped"] == re.sub(r"\[\d+\]", "", call.unknown)
        async with session.post(call.path, json=call.body, headers={"x-umg-strict": "true"}) as refusal:
            text = await refusal.text()
            assert (refusal.status, f"`{call.unknown}`" in text) == (400, True), text
            error = (await refusal.json())["error"]
            if call.id in ("chat", "responses"):
                assert error["param"] == call.unknown


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("path", "body", "unknown"),
    [
        ("/v1/chat/completions", {"model": MODEL, "messages": [USER], "input": "Hi"}, "input"),
        ("/v1/responses", {"model": MODEL, "input": "Hi", "messages": [USER]}, "messages"),
    ],
    ids=["chat", "responses"],
)
async def test_a_dropped_field_of_another_format_keeps_its_name(
    gateway: Running, path: str, body: dict[str, object], unknown: str
) -> None:
    async with aiohttp.ClientSession(gateway.url, headers=gateway.headers) as session:
        async with session.post(path, json=body) as answer:
            assert (answer.status, answer.headers["x-umg-dropped"]) == (200, unknown)
        async with session.post(path, json=body, headers={"x-umg-strict": "true"}) as refusal:
            assert refusal.status == 400
            assert f"to the provider of this model: {unknown};" in await refusal.text()

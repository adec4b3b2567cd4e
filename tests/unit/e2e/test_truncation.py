"""Truncation of conversations that are longer than the model's context, on providers of every text format."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.pairs.table import TEXT_PROVIDERS
from tests.support.callers.http_caller import HttpAnswer, HttpCaller
from tests.support.gateways import KEY as GATEWAY_KEY
from tests.support.gateways import channel, running, takes_all
from tests.support.providers.scenarios import Answer, Failure, ScenarioRequest
from tests.support.providers.strict_providers import KEY, Provider, provider
from umg_grpc.service.operations.generate.conversation_truncation import CUT_NOTICE, MAX_CUTS

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]
TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}


@dataclass
class Served:
    caller: HttpCaller
    providers: dict[str, Provider]

    async def call(self, name: str, items: Sequence[Json], **fields: Any) -> HttpAnswer:
        body = {"model": name, "input": items, "tools": [TOOL], "store": False, **fields}
        return await self.caller.send("responses", name, body)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:
    async with AsyncExitStack() as stack:
        providers = {name: await stack.enter_async_context(provider(name)) for name in TEXT_PROVIDERS}
        config = "channels:\n" + "".join(
            channel(name, name, each.base_url, name).replace(GATEWAY_KEY, KEY) + takes_all(name)
            for name, each in providers.items()
        )
        gateway = await stack.enter_async_context(running(config, tmp_path_factory.mktemp("truncation")))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Served(HttpCaller(session, gateway.url, gateway.key), providers)


@pytest.fixture(autouse=True)
def models_of_short_contexts(served: Served) -> None:
    for each in served.providers.values():
        each.model = short
        each.received.clear()


def short(request: ScenarioRequest) -> Answer | Failure:
    """Refuse a conversation of more than 2500 characters."""
    size = sum(len(text) for _, text in request.turns) + sum(len(result.text) for result in request.results)
    if size > 2500:
        message = f"This model's maximum context length is 2500 tokens, your messages have {size}."
        return Failure(400, message)
    return Answer(words=("Sunny.",))


def conversation(count: int) -> list[Json]:
    turns: list[Json] = [{"role": "developer", "content": "Be exact."}, {"role": "user", "content": "The weather?"}]
    for index in range(count):
        call = {"type": "function_call", "call_id": f"c{index}", "name": "get_weather", "arguments": "{}"}
        turns += [call, {"type": "function_call_output", "call_id": f"c{index}", "output": f"{index} " + "x" * 500}]
        turns.append({"role": "user", "content": f"And {index}? " + "y" * 200})
    return turns


@pytest.mark.parametrize("name", TEXT_PROVIDERS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_the_oldest_turns_are_left_out_after_an_overflow(served: Served, name: str, stream: bool) -> None:
    answer = await served.call(name, conversation(20), stream=stream, truncation="auto")
    assert answer.status == 200
    assert "Sunny." in answer.body.decode()
    assert answer.headers["x-umg-dropped"] == "truncation=by the gateway"
    sent = str(served.providers[name].last)
    assert all(text in sent for text in ("Be exact.", CUT_NOTICE, "And 19?"))
    assert "And 0?" not in sent
    assert 2 <= len(served.providers[name].received) <= 1 + MAX_CUTS


@pytest.mark.parametrize("name", TEXT_PROVIDERS)
async def test_a_conversation_that_fits_is_sent_whole(served: Served, name: str) -> None:
    answer = await served.call(name, conversation(1), truncation="auto")
    assert (answer.status, "x-umg-dropped" in answer.headers) == (200, False)
    assert len(served.providers[name].received) == 1
    assert CUT_NOTICE not in str(served.providers[name].last)


@pytest.mark.parametrize("fields", [{}, {"truncation": "disabled"}], ids=str)
async def test_an_overflow_is_an_error_without_truncation(served: Served, fields: Json) -> None:
    answer = await served.call("chat", conversation(20), **fields)
    assert answer.json["error"]["code"] == "context_length_exceeded"
    assert len(served.providers["chat"].received) == 1


async def test_a_last_turn_that_never_fits_is_refused_as_too_long(served: Served) -> None:
    turns = [*conversation(5), {"role": "user", "content": "z" * 3000}]
    answer = await served.call("chat", turns, truncation="auto")
    assert answer.json["error"]["code"] == "context_length_exceeded"
    assert len(served.providers["chat"].received) <= 1 + MAX_CUTS

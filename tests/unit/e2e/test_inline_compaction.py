"""Compaction inside of a call for a response, on providers of every text format: above the trigger the model writes a
summary first, and answers with the summary in place of the conversation.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from anthropic import AsyncAnthropic

from tests.pairs.table import TEXT_PROVIDERS
from tests.support.callers.http_caller import HttpAnswer, HttpCaller
from tests.support.callers.text_format_clients import events
from tests.support.gateways import KEY as GATEWAY_KEY
from tests.support.gateways import Running, channel, running, takes_all
from tests.support.polling import pause
from tests.support.providers.scenarios import Answer, Failure, ScenarioRequest, Usage
from tests.support.providers.scenarios import Call as ToolCall
from tests.support.providers.strict_providers import KEY, Provider, provider
from umg_grpc.service.operations.generate.conversation_compaction import COMPACTION_REQUEST
from umg_grpc.wire.core.sealed_summaries import SEALED_PREFIX, summary_text

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]
SUMMARY, ANSWER = "The user wants Zürich; 18 degrees were found.", "It is warm."
OF_SUMMARY, OF_ANSWER = Usage(prompt=60_000, cached=0, output=90), Usage(prompt=70, cached=0, output=12)
WRITTEN = Answer(words=(SUMMARY[:20], SUMMARY[20:]), usage=OF_SUMMARY)
LONG = "The diary of a walk. " + "1 2 3 4 5 6 7 8 9 0 " * 5_200
"""Text of more than 50,000 tokens, the least trigger in messages."""
EDIT = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}}
BETA = "compact-2026-01-12"
NAMES = [name if name != "messages" else "plain-messages" for name in TEXT_PROVIDERS]
"""Channels whose providers do not compact."""
TOOL = {"name": "get_weather", "input_schema": {"type": "object", "properties": {}}}
every_provider = pytest.mark.parametrize("name", NAMES)
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@dataclass
class Served:
    """Gateway with a provider of each format that does not compact conversations."""

    caller: HttpCaller
    gateway: Running
    providers: dict[str, Provider]

    async def messages(self, name: str, turns: Sequence[Json] = (), *, stream: bool = False, **edit: Any) -> HttpAnswer:
        body = {"max_tokens": 500, "messages": [*conversation(), *turns], "tools": [TOOL]}
        body["context_management"] = {"edits": [EDIT | edit]}
        headers = {"anthropic-beta": BETA}
        return await self.caller.send("messages", name, body | {"model": name, "stream": stream}, **headers)

    async def responses(self, name: str, items: Sequence[Json], *, threshold: int = 2000, **fields: Any) -> HttpAnswer:
        compaction = [{"type": "compaction", "compact_threshold": threshold}]
        body = {"model": name, "input": items, "store": False, "context_management": compaction, **fields}
        return await self.caller.send("responses", name, body)

    def sent(self, name: str) -> list[str]:
        """Return the requests to a provider as texts, with the line ends of their strings."""
        return [str(each).replace("\\n", "\n") for each in self.providers[name].bodies]

    async def record(self, answer: HttpAnswer) -> Json:
        url = f"{self.caller.url}/admin/v1/requests/{answer.headers['x-request-id']}"
        async with asyncio.timeout(60):
            while True:
                headers = {"authorization": f"Bearer {self.caller.key}"}
                async with self.caller.session.get(url, headers=headers) as response:
                    if response.status == 200:
                        found: Json = (await response.json())["record"]
                        return found
                await pause()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:
    async with AsyncExitStack() as stack:
        providers, config = dict[str, Provider](), "channels:\n"
        for name in NAMES:
            protocol = name.rpartition("-")[2]
            made = providers[name] = await stack.enter_async_context(provider(protocol))
            config += channel(name, protocol, made.base_url, name).replace(GATEWAY_KEY, KEY)
            config += takes_all(protocol) if name == protocol else "    quirks: {rejects: [context_management]}\n"
        config += "models:\n" + "".join(f"  {name}: {{price: {{input: 2, output: 3}}}}\n" for name in providers)
        gateway = await stack.enter_async_context(running(config, tmp_path_factory.mktemp("compacting")))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Served(HttpCaller(session, gateway.url, gateway.key), gateway, providers)


@pytest.fixture(autouse=True)
def models_that_summarize(served: Served) -> None:
    for each in served.providers.values():
        each.model = summarizing()
        each.received.clear()


def is_for_summary(request: ScenarioRequest) -> bool:
    return bool(request.turns) and COMPACTION_REQUEST in request.turns[-1][1]


def summarizing(summary: Answer | Failure = WRITTEN) -> Callable[[ScenarioRequest], Answer | Failure]:
    answer = Answer(words=(ANSWER[:5], ANSWER[5:]), usage=OF_ANSWER)
    return lambda request: summary if is_for_summary(request) else answer


def conversation(text: str = LONG) -> list[Json]:
    return [{"role": "user", "content": text}]


def quantities(record: Json) -> dict[str, int]:
    return {each["unit"]: int(each["count"]) for each in record["quantities"]}


@every_provider
@both_ways
async def test_a_long_conversation_is_compacted_before_its_answer(served: Served, name: str, stream: bool) -> None:
    answer = await served.messages(name, stream=stream)
    assert answer.status == 200, answer.body[:500]
    block, text = answer.json["content"]
    assert (block["type"], block["content"], text["text"]) == ("compaction", SUMMARY, ANSWER)
    assert answer.json["stop_reason"] == "end_turn"
    usage = answer.json["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (OF_ANSWER.prompt, OF_ANSWER.output)
    counts = [(each["type"], each["input_tokens"], each["output_tokens"]) for each in usage["iterations"]]
    assert counts == [
        ("compaction", OF_SUMMARY.prompt, OF_SUMMARY.output),
        ("message", OF_ANSWER.prompt, OF_ANSWER.output),
    ]
    assert answer.headers["x-umg-dropped"] == "context_management=by the gateway"
    first, second = served.sent(name)
    assert "The diary" in first
    assert COMPACTION_REQUEST in first
    assert summary_text(SUMMARY) in second
    assert "The diary" not in second
    record = await served.record(answer)
    assert quantities(record) == {
        "input_token": OF_SUMMARY.prompt + OF_ANSWER.prompt,
        "output_token": OF_SUMMARY.output + OF_ANSWER.output,
    }
    assert record["micro_credits"] == 2 * (OF_SUMMARY.prompt + OF_ANSWER.prompt) + 3 * (90 + 12)
    assert [(each["reason"], each["upstream_status_code"]) for each in record["attempts"]] == [(None, 200)] * 2


async def test_the_stream_begins_with_the_summary_as_its_vendor_sends_it(served: Served) -> None:
    answer = await served.messages("chat", stream=True)
    start, delta, stop = events(answer.body)[1:4]
    assert start == {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "compaction", "content": None},
    }
    assert delta["delta"] == {"type": "compaction_delta", "content": SUMMARY}
    assert stop == {"type": "content_block_stop", "index": 0}


@pytest.mark.parametrize("name", ["chat", "plain-messages"])
@both_ways
async def test_a_call_that_pauses_returns_the_summary_alone(served: Served, name: str, stream: bool) -> None:
    answer = await served.messages(name, stream=stream, pause_after_compaction=True)
    assert [block["type"] for block in answer.json["content"]] == ["compaction"]
    assert answer.json["stop_reason"] == "compaction"
    (iteration,) = answer.json["usage"]["iterations"]
    assert (iteration["type"], iteration["input_tokens"]) == ("compaction", OF_SUMMARY.prompt)
    assert len(served.sent(name)) == 1
    record = await served.record(answer)
    assert quantities(record) == {"input_token": OF_SUMMARY.prompt, "output_token": OF_SUMMARY.output}


@pytest.mark.parametrize("name", ["chat", "plain-messages"])
async def test_a_later_request_with_the_block_is_not_compacted_again(served: Served, name: str) -> None:
    first = (await served.messages(name)).json
    later = [{"role": "assistant", "content": first["content"]}, {"role": "user", "content": "And now?"}]
    served.providers[name].received.clear()
    answer = await served.messages(name, later)
    assert [block["type"] for block in answer.json["content"]] == ["text"]
    (sent,) = served.sent(name)
    assert summary_text(SUMMARY) in sent
    assert "The diary" not in sent


async def test_a_short_conversation_is_answered_at_once(served: Served) -> None:
    answer = await served.messages("chat", trigger={"type": "input_tokens", "value": 200_000})
    assert [block["type"] for block in answer.json["content"]] == ["text"]
    assert "iterations" not in answer.json["usage"]
    assert "x-umg-dropped" not in answer.headers
    assert len(served.sent("chat")) == 1


async def test_instructions_of_the_caller_are_added_to_the_request_for_the_summary(served: Served) -> None:
    await served.messages("chat", instructions="Keep all names.")
    assert f"{COMPACTION_REQUEST}\n\nKeep all names." in served.sent("chat")[0]


@dataclass(frozen=True)
class Failed:
    """Answer of the model to the request for a summary, after which the call goes on without one."""

    id: str
    summary: Answer | Failure


FAILED = [
    Failed("it is too long", Failure(400, "This model's maximum context length is 9 tokens, your messages have 10.")),
    Failed("the provider refuses it", Failure(400, "Your prompt was flagged.")),
    Failed("the model refuses", Answer(words=("I cannot help.",), finish="filter", usage=OF_SUMMARY)),
    Failed("the model calls tools", Answer(calls=(ToolCall("get_weather", {}),), usage=OF_SUMMARY)),
]


@both_ways
@pytest.mark.parametrize("case", FAILED, ids=lambda case: case.id)
async def test_a_call_goes_on_without_a_summary_that_fails(served: Served, case: Failed, stream: bool) -> None:
    served.providers["chat"].model = summarizing(case.summary)
    answer = await served.messages("chat", stream=stream)
    assert answer.status == 200, answer.body[:500]
    assert [block["type"] for block in answer.json["content"]] == ["text"]
    assert answer.headers["x-umg-dropped"] == "context_management.edits=without compact_20260112"
    assert "The diary" in served.sent("chat")[-1]
    paid = sum(isinstance(case.summary, Answer) for _ in served.sent("chat")[:-1])
    assert quantities(await served.record(answer)) == {
        "input_token": OF_SUMMARY.prompt * paid + OF_ANSWER.prompt,
        "output_token": OF_SUMMARY.output * paid + OF_ANSWER.output,
    }


@every_provider
@both_ways
async def test_a_response_begins_with_the_sealed_summary(served: Served, name: str, stream: bool) -> None:
    answer = await served.responses(name, conversation(LONG[:30_000]), stream=stream)
    assert answer.status == 200, answer.body[:500]
    summary, message = answer.json["output"]
    assert summary["type"] == "compaction"
    assert summary["encrypted_content"].startswith(SEALED_PREFIX)
    assert message["content"][0]["text"] == ANSWER
    usage = answer.json["usage"]
    assert usage["input_tokens"] == OF_SUMMARY.prompt + OF_ANSWER.prompt
    assert usage["output_tokens"] == OF_SUMMARY.output + OF_ANSWER.output
    assert answer.headers["x-umg-dropped"] == "context_management=by the gateway"
    assert quantities(await served.record(answer)) == {
        "input_token": usage["input_tokens"],
        "output_token": usage["output_tokens"],
    }
    later = [*conversation(LONG[:30_000]), summary, message, {"role": "user", "content": "And now?"}]
    served.providers[name].received.clear()
    again = await served.responses(name, later, stream=stream)
    assert [item["type"] for item in again.json["output"]] == ["message"]
    (sent,) = served.sent(name)
    assert summary_text(SUMMARY) in sent
    assert "The diary" not in sent


async def test_events_of_a_response_with_a_summary_are_those_of_its_vendor(served: Served) -> None:
    answer = await served.responses("chat", conversation(LONG[:30_000]), stream=True)
    kinds = [(each["type"], each["item"]["type"]) for each in events(answer.body) if "item" in each]
    assert kinds == [
        (f"response.output_item.{step}", item) for item in ("compaction", "message") for step in ("added", "done")
    ]


async def test_a_response_without_a_threshold_reports_the_member(served: Served) -> None:
    answer = await served.responses("chat", conversation("Hi"), context_management=[{"type": "compaction"}])
    assert answer.headers["x-umg-dropped"] == "context_management"


@both_ways
async def test_the_official_sdk_reads_the_summary_and_its_usage(served: Served, stream: bool) -> None:
    request: Json = {"model": "chat", "max_tokens": 500, "messages": conversation(), "betas": [BETA]}
    request["context_management"] = {"edits": [EDIT]}
    url, key = served.gateway.url, served.gateway.key
    async with AsyncAnthropic(base_url=url, api_key=key, max_retries=0) as sdk:
        if stream:
            async with sdk.beta.messages.stream(**request) as events_of_sdk:
                message = await events_of_sdk.get_final_message()
        else:
            message = await sdk.beta.messages.create(**request)
    block, text = message.content
    assert (block.type, text.type) == ("compaction", "text")
    assert (block.content, text.text) == (SUMMARY, ANSWER)
    assert [each.type for each in message.usage.iterations or ()] == ["compaction", "message"]

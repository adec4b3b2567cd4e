"""Compaction of conversations on providers of every text format: the model writes the summary, the caller gets it
sealed, and it is opened where it comes back.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.pairs.table import TEXT_PROVIDERS
from tests.support.callers.http_caller import HttpAnswer, HttpCaller
from tests.support.callers.text_format_clients import events
from tests.support.databases import Postgres
from tests.support.gateways import KEY as GATEWAY_KEY
from tests.support.gateways import Running, channel, running, takes_all
from tests.support.polling import pause
from tests.support.providers.scenarios import REFRESH, Answer, Failure, ScenarioRequest, Usage
from tests.support.providers.scenarios import Call as ToolCall
from tests.support.providers.strict_providers import KEY, Provider, provider
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.service.operations.generate.conversation_compaction import COMPACTION_REQUEST, ENDED_EARLY
from umg_grpc.service.operations.generate.conversation_truncation import CUT_NOTICE, MAX_CUTS
from umg_grpc.wire.core.sealed_summaries import summary_text

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]
SUMMARY = "The user wants Zürich; 3 days are asked for, 18 degrees found."
TRIGGER = {"type": "compaction_trigger"}
TOOL = {"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}
TURNS: list[Json] = [
    {"role": "developer", "content": "Be exact."},
    {"role": "user", "content": "The weather of Zürich?"},
    {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "18 degrees"},
]
every_provider = pytest.mark.parametrize("name", TEXT_PROVIDERS)
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@dataclass
class Replicas:
    """Two gateways of one database and one secret, in front of a provider of each format."""

    callers: tuple[HttpCaller, HttpCaller]
    gateway: Running
    providers: dict[str, Provider]

    async def call(self, name: str, items: Sequence[Json], *, replica: int = 0, **fields: Any) -> HttpAnswer:
        body = {"model": name, "input": items, "tools": [TOOL], "store": False, **fields}
        return await self.callers[replica].send("responses", name, body)

    async def compact(self, name: str, turns: list[Json] = TURNS, **fields: Any) -> HttpAnswer:
        return await self.call(name, [*turns, TRIGGER], **fields)

    def sent(self, name: str) -> str:
        """Return the last request to a provider as text, with the line ends of its strings."""
        return str(self.providers[name].last).replace("\\n", "\n")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def replicas(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Replicas, None]:
    async with AsyncExitStack() as stack:
        providers = {name: await stack.enter_async_context(provider(name)) for name in TEXT_PROVIDERS}
        database = await postgres.create_prepared("compaction")
        config = f"database: {database}\nsecret: the secret of all replicas\nchannels:\n" + "".join(
            channel(name, name, each.base_url, name).replace(GATEWAY_KEY, KEY) + takes_all(name)
            for name, each in providers.items()
        )
        config += "models:\n" + "".join(f"  {name}: {{price: {{input: 2, output: 3}}}}\n" for name in providers)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        first, second = [
            await stack.enter_async_context(running(config, tmp_path_factory.mktemp(name))) for name in ("one", "two")
        ]
        callers = [HttpCaller(session, each.url, each.key) for each in (first, second)]
        yield Replicas((callers[0], callers[1]), first, providers)


@pytest.fixture(autouse=True)
def models_that_summarize(replicas: Replicas) -> None:
    for each in replicas.providers.values():
        each.model = summarize
        each.received.clear()


def summarize(request: ScenarioRequest) -> Answer:
    return Answer(words=(SUMMARY[:20], SUMMARY[20:]))


@every_provider
@both_ways
async def test_the_only_item_of_the_response_is_a_sealed_summary(replicas: Replicas, name: str, stream: bool) -> None:
    answer = await replicas.compact(name, stream=stream)
    assert answer.status == 200
    (item,) = answer.json["output"]
    assert item["type"] == "compaction"
    assert item["id"].startswith("cmp_")
    assert SUMMARY not in item["encrypted_content"]
    assert answer.json["status"] == "completed"
    assert answer.json["usage"]["input_tokens"] > 0
    assert "18 degrees" in replicas.sent(name)
    assert COMPACTION_REQUEST in replicas.sent(name)
    if stream:
        assert [event["type"] for event in events(answer.body)] == [
            *("response.created", "response.in_progress", "response.output_item.added"),
            *("response.output_item.done", "response.completed"),
        ]


@every_provider
async def test_a_summary_is_opened_by_another_replica_as_a_turn_of_the_user(replicas: Replicas, name: str) -> None:
    (item,) = (await replicas.compact(name)).json["output"]
    answer = await replicas.call(name, [*TURNS[:2], item, {"role": "user", "content": "Go on."}], replica=1)
    assert answer.status == 200
    assert summary_text(SUMMARY) in replicas.sent(name)
    assert item["encrypted_content"] not in replicas.sent(name)


@dataclass(frozen=True)
class Refused:
    """Change of a sealed summary after which it is refused."""

    id: str
    added: str = ""  # at the end of its text
    other_key: bool = False


REFUSED = [Refused("a changed one", added="AAAA"), Refused("the one of another key", other_key=True)]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
async def test_a_summary_that_cannot_be_opened_is_refused_by_its_path(replicas: Replicas, case: Refused) -> None:
    (item,) = (await replicas.compact("chat")).json["output"]
    caller = replicas.callers[0]
    if case.other_key:
        _, secret = await ApiKeys(replicas.gateway.service.store).create("another")
        caller = HttpCaller(caller.session, caller.url, secret)
    sent = item | {"encrypted_content": item["encrypted_content"] + case.added}
    answer = await caller.send("responses", "chat", {"model": "chat", "input": [TURNS[1], sent]})
    assert answer.status == 400
    assert answer.json["error"]["param"] == "input[1].encrypted_content"
    assert "cannot be opened" in answer.json["error"]["message"]


@pytest.mark.parametrize(
    "items", [[TRIGGER, TURNS[1]], [TURNS[1], TRIGGER, TRIGGER]], ids=["one before others", "two of them"]
)
async def test_a_trigger_has_to_be_the_final_item(replicas: Replicas, items: list[Json]) -> None:
    answer = await replicas.call("chat", items)
    assert answer.status == 400
    assert "must be the final item of `input`" in answer.json["error"]["message"]


def long(limit: int) -> Any:
    """Return a model with a context of `limit` characters."""

    def answer(request: ScenarioRequest) -> Answer | Failure:
        size = sum(len(text) for _, text in request.turns) + sum(len(result.text) for result in request.results)
        if size > limit:
            message = f"This model's maximum context length is {limit} tokens, your messages have {size}."
            return Failure(400, message)
        return summarize(request)

    return answer


def many_turns(count: int) -> list[Json]:
    turns = [TURNS[0], TURNS[1]]
    for index in range(count):
        call = {"type": "function_call", "call_id": f"c{index}", "name": "get_weather", "arguments": "{}"}
        turns += [call, {"type": "function_call_output", "call_id": f"c{index}", "output": f"{index} " + "x" * 500}]
        turns.append({"role": "user", "content": f"And {index}? " + "y" * 100})
    return turns


@pytest.mark.parametrize("name", ["chat", "responses"])
@both_ways
async def test_the_oldest_turns_are_left_out_where_the_summary_overflows(
    replicas: Replicas, name: str, stream: bool
) -> None:
    replicas.providers[name].model = long(2500)
    answer = await replicas.compact(name, many_turns(20), stream=stream)
    assert [item["type"] for item in answer.json["output"]] == ["compaction"]
    assert 2 <= len(replicas.providers[name].received) <= 1 + MAX_CUTS
    assert answer.headers["x-umg-dropped"].startswith("input=")
    sent = replicas.sent(name)
    assert CUT_NOTICE in sent
    assert "Be exact." in sent
    assert "And 19?" in sent
    assert "And 0?" not in sent
    assert sent.count("'call_id': ") % 2 == 0  # no call without its result (responses)


async def test_a_conversation_that_never_fits_is_refused_as_too_long(replicas: Replicas) -> None:
    replicas.providers["chat"].model = long(10)
    answer = await replicas.compact("chat", many_turns(5))
    assert answer.json["error"]["code"] == "context_length_exceeded"
    assert len(replicas.providers["chat"].received) <= 1 + MAX_CUTS


@every_provider
@both_ways
async def test_a_model_that_calls_a_tool_gets_the_request_again_without(
    replicas: Replicas, name: str, stream: bool
) -> None:
    def model(request: ScenarioRequest) -> Answer:
        forbidden = request.choice == "none" or not request.tools
        return summarize(request) if forbidden else Answer(calls=(ToolCall("get_weather", {}),))

    usual = (await replicas.compact(name)).json["usage"]
    replicas.providers[name].model = model
    answer = await replicas.compact(name, stream=stream)
    assert [item["type"] for item in answer.json["output"]] == ["compaction"]
    assert len(replicas.providers[name].received) == 3
    assert answer.json["usage"]["input_tokens"] == 2 * usual["input_tokens"]  # both requests are paid
    assert answer.json["usage"]["output_tokens"] == 2 * usual["output_tokens"]


@dataclass(frozen=True)
class Stopped:
    """Answer of a model that is no whole summary."""

    id: str
    answer: Answer
    kept: str = ""
    """Text that the next call sends; "" for a response that is refused."""


STOPPED = [
    Stopped("a filter stopped it", Answer(words=("The user",), finish="filter")),
    Stopped("the model refused", Answer(words=("I cannot help.",), finish="refusal")),
    Stopped("it reached its length", Answer(words=("The user wants",), finish="length"), f"wants\n\n{ENDED_EARLY}"),
]


@both_ways
@pytest.mark.parametrize("case", STOPPED, ids=lambda case: case.id)
async def test_only_the_model_s_own_text_is_a_summary(replicas: Replicas, case: Stopped, stream: bool) -> None:
    replicas.providers["messages"].model = lambda _: case.answer
    answer = await replicas.compact("messages", stream=stream, max_output_tokens=64)
    assert answer.status == (200 if case.kept else 502)
    if case.kept:
        await replicas.call("messages", [*answer.json["output"], TURNS[1]])
        assert case.kept in replicas.sent("messages")


async def written_record(caller: HttpCaller, request_id: str) -> Json:
    url, headers = f"{caller.url}/admin/v1/requests/{request_id}", {"authorization": f"Bearer {caller.key}"}
    async with asyncio.timeout(60):
        while True:
            async with caller.session.get(url, headers=headers) as response:
                if response.status == 200:
                    found: Json = (await response.json())["record"]
                    return found
            await pause()


async def test_a_compaction_is_one_call_with_each_of_its_attempts(replicas: Replicas) -> None:
    replicas.providers["chat"].model = long(2500)
    answer = await replicas.compact("chat", many_turns(20))
    record = await written_record(replicas.callers[0], answer.headers["x-request-id"])
    statuses = [attempt["upstream_status_code"] for attempt in record["attempts"]]
    assert statuses == [400] * (len(statuses) - 1) + [200]
    assert len(statuses) == len(replicas.providers["chat"].received)


@pytest.mark.parametrize(("name", "stream"), [("chat", False), ("messages", True)], ids=["whole", "streamed"])
async def test_an_answer_that_is_no_summary_is_charged_too(replicas: Replicas, name: str, stream: bool) -> None:
    def model(request: ScenarioRequest) -> Answer:
        forbidden = request.choice == "none" or not request.tools
        usage = Usage(prompt=2000 if forbidden else 1000, cached=0, output=7)
        return Answer(words=(SUMMARY,), usage=usage) if forbidden else Answer(calls=(REFRESH,), usage=usage)

    replicas.providers[name].model = model
    tool = TOOL | {"name": REFRESH.name}
    answer = await replicas.call(name, [*TURNS, TRIGGER], tools=[tool], stream=stream)
    record = await written_record(replicas.callers[0], answer.headers["x-request-id"])
    assert {each["unit"]: each["count"] for each in record["quantities"]} == {"input_token": 3000, "output_token": 14}
    assert record["micro_credits"] == 2 * 3000 + 3 * 14
    first, second = record["attempts"]
    assert (first["reason"], first["upstream_status_code"]) == ("upstream_failed", 200)
    assert (second["reason"], second["upstream_status_code"]) == (None, 200)


async def test_a_stored_compaction_is_continued_from_its_summary(replicas: Replicas) -> None:
    first = (await replicas.compact("chat", store=True)).json
    assert first["output"][0]["type"] == "compaction"
    answer = await replicas.call(
        "chat", [{"role": "user", "content": "Go on."}], previous_response_id=first["id"], replica=1, store=True
    )
    assert answer.status == 200
    sent = replicas.sent("chat")
    assert summary_text(SUMMARY) in sent
    assert "The weather of Zürich?" in sent  # turns of users stay
    assert "18 degrees" not in sent.replace(SUMMARY, "")
    last = await replicas.call("chat", [TURNS[1]], previous_response_id=answer.json["id"])
    assert last.status == 200
    assert replicas.sent("chat").count(SUMMARY) >= 1


async def test_a_stored_conversation_has_one_summary_after_several_compactions(replicas: Replicas) -> None:
    last = (await replicas.call("chat", TURNS, store=True)).json
    for _ in range(3):
        last = (await replicas.call("chat", [TRIGGER], previous_response_id=last["id"], store=True)).json
    await replicas.call("chat", [{"role": "user", "content": "Go on."}], previous_response_id=last["id"])
    sent = replicas.sent("chat")
    assert sent.count(summary_text(SUMMARY)) == 1
    assert sent.count(TURNS[1]["content"]) == 1


async def test_a_compaction_of_a_stored_conversation_returns_its_turns_of_the_user(replicas: Replicas) -> None:
    caller = replicas.callers[0]
    last, output = (await replicas.call("chat", TURNS, store=True)).json["id"], []
    for question in ("Go on.", "And now?"):
        body = {"model": "chat", "previous_response_id": last, "input": [{"role": "user", "content": question}]}
        async with caller.session.post(
            f"{caller.url}/v1/responses/compact", json=body, headers={"authorization": f"Bearer {caller.key}"}
        ) as response:
            compacted = await response.json()
        last, output = compacted["id"], compacted["output"]
    texts = [item["content"][0]["text"] for item in output if item["type"] == "message"]
    assert texts == [TURNS[1]["content"], "Go on.", "And now?"]
    assert [item["type"] for item in output[3:]] == ["compaction"]


async def test_a_summary_is_stored_as_it_was_sent(replicas: Replicas) -> None:
    (item,) = (await replicas.compact("chat")).json["output"]
    sent = [item, {"role": "user", "content": "Go on."}]
    stored = (await replicas.call("chat", sent, store=True)).json
    caller = replicas.callers[1]
    url, headers = f"{caller.url}/v1/responses/{stored['id']}", {"authorization": f"Bearer {caller.key}"}
    async with caller.session.get(f"{url}/input_items?order=asc", headers=headers) as response:
        first = (await response.json())["data"][0]
    assert (first["type"], first["encrypted_content"]) == ("compaction", item["encrypted_content"])
    await replicas.call("chat", [TURNS[1]], previous_response_id=stored["id"], replica=1)
    assert replicas.sent("chat").count(summary_text(SUMMARY)) == 1
    last = (await replicas.call("chat", [TRIGGER], previous_response_id=stored["id"], store=True)).json
    await replicas.call("chat", [TURNS[1]], previous_response_id=last["id"])
    assert replicas.sent("chat").count(summary_text(SUMMARY)) == 1  # the new one alone


@every_provider
async def test_a_conversation_is_compacted_by_a_call_of_its_own(replicas: Replicas, name: str) -> None:
    caller = replicas.callers[0]
    body = {"model": name, "instructions": "Be brief.", "input": TURNS}
    async with caller.session.post(
        f"{caller.url}/v1/responses/compact", json=body, headers={"authorization": f"Bearer {caller.key}"}
    ) as response:
        assert response.status == 200
        compacted = await response.json()
    assert compacted["object"] == "response.compaction"
    assert compacted["usage"]["input_tokens"] > 0
    turn, summary = compacted["output"]
    assert (turn["role"], turn["content"][0]["text"]) == ("user", TURNS[1]["content"])
    assert summary["type"] == "compaction"
    answer = await replicas.call(name, [*compacted["output"], {"role": "user", "content": "Go on."}], replica=1)
    assert answer.status == 200
    assert summary_text(SUMMARY) in replicas.sent(name)
    again = await replicas.compact(name, [*compacted["output"], {"role": "user", "content": "Go on."}])
    assert len(again.json["output"]) == 1
    assert summary_text(SUMMARY) in replicas.sent(name)  # the new summary is written of the earlier one


GOLDEN = Path(__file__).parents[1] / "wire" / "responses"
"""Directory with requests that Codex sent."""


@pytest.mark.parametrize("recorded", ["codex_compaction_trigger", "codex_own_summary"])
@every_provider
async def test_requests_of_codex_for_a_summary_are_served(replicas: Replicas, name: str, recorded: str) -> None:
    body = json.loads((GOLDEN / recorded / "request.json").read_text(encoding="utf-8"))
    answer = await replicas.callers[0].send("responses", name, body | {"model": name})
    (item,) = answer.json["output"]
    if recorded == "codex_own_summary":  # an ordinary call: Codex reads the text
        assert item["content"][0]["text"] == SUMMARY
    else:
        assert item["type"] == "compaction"
    assert "pangolin" in replicas.sent(name)

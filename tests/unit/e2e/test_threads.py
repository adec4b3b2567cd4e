"""Message threads: callers send only their new messages, and every provider receives the whole conversation."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
from aiohttp import web

from tests.support.gateways import KEY, Running, running
from tests.support.providers import messages_wire
from tests.support.providers.scripted import Scripted, scripted, stall, status, succeed
from tests.support.providers.server import FakeProvider, ReceivedRequest, serve_provider
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.v1 import pb, rpc

both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
TOOL = {"name": "look", "description": "Looks", "input_schema": {"type": "object", "properties": {}}}
BETA = {"anthropic-beta": "message-threads-2026-08-12"}


@dataclass
class Provider(FakeProvider):
    """Provider of the messages format, which answers each request with a new id."""

    name: str
    errors: list[tuple[int, Mapping[str, object]]] = field(default_factory=list)
    """(status, error) of the responses to the next calls."""
    thoughts: list[Mapping[str, object]] = field(default_factory=list)
    """Blocks before the text of complete answers."""

    @property
    def base_url(self) -> str:
        return f"{self.url}/v1"

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if self.errors:
            code, error = self.errors.pop(0)
            return web.json_response({"type": "error", "error": error}, status=code)
        body, response_id = received.json, f"msg_{self.name}_{len(self.received)}"
        text = {"type": "text", "text": f"{self.name} answers"}
        usage = {"input_tokens": 3, "output_tokens": 4}
        head = {"id": response_id, "type": "message", "role": "assistant", "model": body["model"], "usage": usage}
        if not body.get("stream"):
            return web.json_response(
                head | {"content": [*self.thoughts, text], "stop_reason": "end_turn", "stop_sequence": None}
            )
        events = (
            {"type": "message_start", "message": head | {"content": [], "stop_reason": None, "stop_sequence": None}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text["text"]}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage},
            {"type": "message_stop"},
        )
        return web.Response(body=b"".join(map(messages_wire.event, events)), content_type="text/event-stream")


@dataclass(frozen=True)
class Answer:
    status: int
    body: dict[str, Any]
    headers: Mapping[str, str]

    @property
    def id(self) -> str:
        assert self.status == 200, self.body
        return str(self.body["id"])

    @property
    def error(self) -> tuple[int, str]:
        return self.status, self.body["error"]["details"]["error_code"]


@dataclass(frozen=True)
class Caller:
    gateway: Running
    session: aiohttp.ClientSession
    key: str = KEY

    async def generate(self, *texts: str, thread: object = None, stream: bool = False, **fields: object) -> Answer:
        turns = [{"role": "user", "content": text} for text in texts]
        body = {"model": "m", "max_tokens": 9, "messages": turns, **fields}
        if thread is not None:
            body["thread"] = thread
        if stream:
            body["stream"] = True
        headers = {"x-api-key": self.key, **BETA}
        async with self.session.post(f"{self.gateway.url}/v1/messages", json=body, headers=headers) as response:
            if response.content_type != "text/event-stream":
                return Answer(response.status, await response.json(), response.headers)
            lines = (await response.text()).splitlines()
            events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
            assert events[-1]["type"] == "message_stop"
            return Answer(200, events[0]["message"], response.headers)

    async def begin(self, *texts: str, stream: bool = False, **fields: object) -> Answer:
        return await self.generate(*texts, thread={"type": "create"}, stream=stream, **fields)

    async def go_on(self, previous: str, *texts: str, stream: bool = False, **fields: object) -> Answer:
        thread = {"type": "continue", "previous_message_id": previous}
        return await self.generate(*texts, thread=thread, stream=stream, **fields)


class Setting:
    """Providers and a gateway in front of them, until the test ends."""

    def __init__(self, stack: AsyncExitStack, data: Path) -> None:
        self._stack = stack
        self.data = data

    async def messages(self, name: str = "a") -> Provider:
        return await self._stack.enter_async_context(serve_provider(Provider(name)))

    async def chat(self, *scripts: Any) -> Scripted:
        return await self._stack.enter_async_context(scripted("chat", *scripts))

    async def caller(self, *channels: tuple[str, str, str], more: str = "") -> Caller:
        """Return a caller of a gateway with these channels: protocol, URL, further fields."""
        config = "channels:\n" + "".join(
            f"  - {{name: c{index}, protocols: [{protocol}], base_url: '{url}', api_key: k, models: [m]{fields}}}\n"
            for index, (protocol, url, fields) in enumerate(channels)
        )
        gateway = await self._stack.enter_async_context(running(config + more, self.data))
        return Caller(gateway, await self._stack.enter_async_context(aiohttp.ClientSession()))


@pytest.fixture
async def setting(tmp_path: Path) -> AsyncGenerator[Setting, None]:
    async with AsyncExitStack() as stack:
        yield Setting(stack, tmp_path)


def texts_of(body: Mapping[str, Any]) -> list[str]:
    texts = []
    for turn in body["messages"]:
        content = turn["content"]
        texts.append(content if isinstance(content, str) else "".join(block.get("text", "") for block in content))
    return texts


# --- a provider that keeps threads


@both_ways
async def test_a_thread_is_passed_through_to_a_provider_that_stores_threads(setting: Setting, stream: bool) -> None:
    provider = await setting.messages()
    caller = await setting.caller(("messages", provider.base_url, ""))
    first = await caller.begin("One", stream=stream, system="S", tools=[TOOL])
    assert first.id == "msg_a_1"
    second = await caller.go_on(first.id, "Two", stream=stream)
    third = await caller.go_on(second.id, "Three", stream=stream)
    assert third.id == "msg_a_3"
    streamed = {"stream": True} if stream else {}
    head = {"model": "m", "max_tokens": 9}
    turns = [{"messages": [{"role": "user", "content": text}]} for text in ("One", "Two", "Three")]
    assert provider.bodies == [
        head | turns[0] | {"system": "S", "tools": [TOOL], "thread": {"type": "create"}} | streamed,
        head | turns[1] | {"thread": {"type": "continue", "previous_message_id": "msg_a_1"}} | streamed,
        head | turns[2] | {"thread": {"type": "continue", "previous_message_id": "msg_a_2"}} | streamed,
    ]
    assert "x-umg-dropped" not in third.headers


async def test_a_thread_is_continued_on_the_channel_that_made_it(setting: Setting) -> None:
    providers = [await setting.messages(name) for name in "abc"]
    caller = await setting.caller(*(("messages", provider.base_url, "") for provider in providers))
    for _ in range(8):
        response_id = (await caller.begin("One")).id
        made = response_id[:5]
        for text in ("Two", "Three"):
            response_id = (await caller.go_on(response_id, text)).id
            assert response_id[:5] == made
    assert all(body["thread"]["type"] in {"create", "continue"} for provider in providers for body in provider.bodies)


@both_ways
async def test_a_provider_without_the_thread_is_sent_the_conversation(setting: Setting, stream: bool) -> None:
    provider = await setting.messages()
    caller = await setting.caller(("messages", provider.base_url, ""))
    first = await caller.begin("One", stream=stream, system="S", tools=[TOOL])
    lost = {"type": "not_found_error", "message": "No thread", "details": {"error_code": "thread_not_found"}}
    provider.errors.append((404, lost))
    second = await caller.go_on(first.id, "Two", stream=stream)
    body = provider.bodies[-1]
    assert (texts_of(body), body["thread"]) == (["One", "a answers", "Two"], {"type": "create"})
    assert (body["system"], body["tools"]) == ("S", [TOOL])
    await caller.go_on(second.id, "Three", stream=stream)
    assert texts_of(provider.bodies[-1]) == ["Three"]


@pytest.mark.parametrize(
    "refusal",
    [
        {"type": "invalid_request_error", "message": "thread: Extra inputs are not permitted"},
        {
            "type": "invalid_request_error",
            "message": "cannot",
            "details": {"error_code": "thread_unsupported_request", "unsupported": ["container"]},
        },
    ],
    ids=["unknown", "unsupported"],
)
async def test_a_provider_that_refuses_threads_is_sent_the_conversation(
    setting: Setting, refusal: Mapping[str, object]
) -> None:
    provider = await setting.messages()
    provider.errors.append((400, refusal))
    caller = await setting.caller(("messages", provider.base_url, ""))
    first = await caller.begin("One", system="S")
    provider.errors.append((400, refusal))
    await caller.go_on(first.id, "Two")
    body = provider.bodies[-1]
    assert (texts_of(body), body["system"], "thread" in body) == (["One", "a answers", "Two"], "S", False)


async def test_another_refusal_of_a_thread_is_passed_to_the_caller(setting: Setting) -> None:
    provider = await setting.messages()
    caller = await setting.caller(("messages", provider.base_url, ""))
    first = await caller.begin("One")
    details = {"error_code": "thread_fingerprint_mismatch"}
    provider.errors.append((400, {"type": "invalid_request_error", "message": "differs: model", "details": details}))
    refused = await caller.go_on(first.id, "Two")
    assert refused.error == (400, "thread_fingerprint_mismatch")
    assert refused.body["error"]["message"] == "differs: model"
    await caller.go_on(first.id, "Two")  # allowed, since the response was not continued yet


async def test_a_channel_without_threads_is_sent_the_conversation(setting: Setting) -> None:
    provider = await setting.messages()
    caller = await setting.caller(("messages", provider.base_url, ", quirks: {threads: false}"))
    first = await caller.begin("One", tools=[TOOL])
    await caller.go_on(first.id, "Two")
    assert [texts_of(body) for body in provider.bodies] == [["One"], ["One", "a answers", "Two"]]
    assert all("thread" not in body for body in provider.bodies)
    assert provider.bodies[-1]["tools"] == [TOOL]


async def test_another_provider_continues_a_thread_if_the_first_is_unreachable(setting: Setting) -> None:
    first, second = await setting.messages("a"), await setting.messages("b")
    caller = await setting.caller(("messages", first.base_url, ", priority: 1"), ("messages", second.base_url, ""))
    began = await caller.begin("One", system="S")
    maker, other = (first, second) if first.bodies else (second, first)
    maker.errors += [(529, {"type": "overloaded_error", "message": "Overloaded"})] * 5
    went_on = await caller.go_on(began.id, "Two")
    assert (texts_of(other.bodies[-1]), other.bodies[-1]["thread"]) == (
        ["One", f"{maker.name} answers", "Two"],
        {"type": "create"},
    )
    await caller.go_on(went_on.id, "Three")
    assert texts_of(other.bodies[-1]) == ["Three"]


async def test_another_provider_is_not_sent_signatures_of_the_first(setting: Setting) -> None:
    first, second = await setting.messages("a"), await setting.messages("b")
    caller = await setting.caller(("messages", first.base_url, ""), ("messages", second.base_url, ""))
    for provider in (first, second):
        provider.thoughts = [{"type": "thinking", "thinking": "hm", "signature": f"c2Vj{provider.name}A=="}]
    began = await caller.begin("One")
    maker, other = (first, second) if first.bodies else (second, first)
    maker.errors += [(529, {"type": "overloaded_error", "message": "Overloaded"})] * 5
    await caller.go_on(began.id, "Two")
    assert texts_of(other.bodies[-1]) == ["One", f"{maker.name} answers", "Two"]
    assert b"signature" not in other.received[-1].body


# --- a provider of another format


@both_ways
async def test_a_provider_of_another_format_is_sent_the_conversation(setting: Setting, stream: bool) -> None:
    provider = await setting.chat()
    caller = await setting.caller(("chat", provider.base_url, ""))
    response_id = (await caller.begin("One", stream=stream, system="S", tools=[TOOL])).id
    ids = {response_id}
    for text in ("Two", "Three"):
        answer = await caller.go_on(response_id, text, stream=stream)
        assert "thread" not in answer.headers.get("x-umg-dropped", "")
        response_id = answer.id
        ids.add(response_id)
    assert len(ids) == 3
    assert all(len(each) > 30 for each in ids)
    sent = provider.calls[-1].body
    roles = [message["role"] for message in sent["messages"]]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    assert [message["content"] for message in sent["messages"]][1:] == ["One", "chat", "Two", "chat", "Three"]
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["look"]


async def test_a_strict_call_may_have_a_thread(setting: Setting) -> None:
    provider = await setting.chat()
    caller = await setting.caller(("chat", provider.base_url, ""))
    async with caller.session.post(
        f"{caller.gateway.url}/v1/messages",
        json={
            "model": "m",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "One"}],
            "thread": {"type": "create"},
        },
        headers={"x-api-key": KEY, "x-umg-strict": "true"},
    ) as response:
        assert response.status == 200


async def test_a_tool_that_the_thread_does_not_declare_is_refused(setting: Setting) -> None:
    provider = await setting.chat()
    caller = await setting.caller(("chat", provider.base_url, ""))
    first = await caller.begin("One", tools=[TOOL])
    refused = await caller.go_on(first.id, "Two", tool_choice={"type": "tool", "name": "other"})
    assert (refused.status, refused.body["error"]["details"]["field"]) == (400, "tool_choice.name")
    await caller.go_on(first.id, "Two", tool_choice={"type": "tool", "name": "look"})
    assert provider.calls[-1].body["tool_choice"] == {"type": "function", "function": {"name": "look"}}


async def test_a_thread_with_an_unknown_type_is_sent_only_to_its_own_format(setting: Setting) -> None:
    provider, chat = await setting.messages(), await setting.chat()
    caller = await setting.caller(("messages", provider.base_url, ""))
    await caller.generate("One", thread={"type": "newer", "more": 1})
    assert provider.bodies[-1]["thread"] == {"type": "newer", "more": 1}
    async with running(
        f"channels: [{{name: c, protocols: [chat], base_url: '{chat.base_url}', models: [m]}}]",
        Path(setting.data / "chat"),
    ) as gateway:
        refused = await Caller(gateway, caller.session).generate("One", thread={"type": "newer"})
    assert (refused.status, refused.body["error"]["details"]["field"]) == (400, "thread")


async def test_a_thread_with_an_unknown_member_is_sent_only_to_its_own_format(setting: Setting) -> None:
    provider, chat = await setting.messages(), await setting.chat()
    caller = await setting.caller(("messages", provider.base_url, ""))
    first = await caller.generate("One", thread={"type": "create", "ttl": 5, "none": None})
    assert provider.bodies[-1]["thread"] == {"type": "create", "ttl": 5, "none": None}
    await caller.generate("Two", thread={"type": "continue", "previous_message_id": first.id, "ttl": 5})
    assert provider.bodies[-1]["thread"]["ttl"] == 5
    async with running(
        f"channels: [{{name: c, protocols: [chat], base_url: '{chat.base_url}', models: [m]}}]",
        Path(setting.data / "chat"),
    ) as gateway:
        other = Caller(gateway, caller.session)
        first = await other.generate("One", thread={"type": "create", "none": None})
        for thread in ({"type": "create"}, {"type": "continue", "previous_message_id": first.id}):
            refused = await other.generate("Two", thread=thread | {"ttl": 5})
            assert (refused.status, refused.body["error"]["details"]["field"]) == (400, "thread.ttl")


# --- rejected requests


@pytest.fixture
async def caller(setting: Setting) -> Caller:
    return await setting.caller(("chat", (await setting.chat()).base_url, ""))


@pytest.mark.parametrize(
    ("thread", "more", "named"),
    [
        ({}, {}, "thread.type"),
        ({"type": "continue"}, {}, "thread.previous_message_id"),
        ({"type": "continue", "previous_message_id": ""}, {}, "thread.previous_message_id"),
        ({"type": "continue", "previous_message_id": 1}, {}, "thread.previous_message_id"),
        ({"type": "continue", "previous_message_id": "x"}, {"system": "S"}, "system"),
        ({"type": "continue", "previous_message_id": "x"}, {"tools": [TOOL]}, "tools"),
        ({"type": "create"}, {"messages": []}, "messages"),
        ("create", {}, "thread"),
    ],
)
async def test_a_contradictory_thread_is_refused(
    caller: Caller, thread: object, more: Mapping[str, object], named: str
) -> None:
    refused = await caller.generate("One", thread=thread, **more)
    assert (refused.status, refused.body["error"]["details"]["field"]) == (400, named)


@both_ways
async def test_an_unknown_thread_is_not_found(caller: Caller, stream: bool) -> None:
    refused = await caller.go_on("msg_never", "Two", stream=stream)
    assert refused.error == (404, "thread_not_found")
    assert refused.body["error"]["type"] == "not_found_error"
    assert "send the whole conversation" in refused.body["error"]["message"]


@both_ways
async def test_an_answer_is_continued_once(caller: Caller, stream: bool) -> None:
    first = await caller.begin("One", stream=stream)
    assert (await caller.go_on(first.id, "Two", stream=stream)).status == 200
    assert (await caller.go_on(first.id, "Two", stream=stream)).error == (400, "thread_already_continued")


@both_ways
async def test_an_answer_is_continued_by_one_call_at_a_time(setting: Setting, stream: bool) -> None:
    provider = await setting.chat(succeed, stall, succeed)
    caller = await setting.caller(("chat", provider.base_url, ""))
    first = await caller.begin("One")
    provider.arrived.get_nowait()
    slow = asyncio.create_task(caller.go_on(first.id, "Two", stream=stream))
    received = await provider.arrived.get()
    assert (await caller.go_on(first.id, "Two")).error == (400, "thread_continue_in_flight")
    slow.cancel()
    await received.left.wait()
    while (again := await caller.go_on(first.id, "Two")).status == 400:  # until the gateway noticed the end
        assert again.error == (400, "thread_continue_in_flight")
    assert again.status == 200


async def test_an_answer_may_be_continued_after_a_failed_call(setting: Setting) -> None:
    provider = await setting.chat(succeed, status(400), succeed)
    caller = await setting.caller(("chat", provider.base_url, ""))
    first = await caller.begin("One")
    assert (await caller.go_on(first.id, "Two")).status == 400
    assert (await caller.go_on(first.id, "Two")).status == 200


@pytest.mark.parametrize(
    ("turn", "place"),
    [
        ({"role": "user", "content": [{"type": "text", "text": "b"}, {"type": "hologram"}]}, "messages[1].content[1]"),
        ({"role": "critic", "content": "b"}, "messages[1].role"),
    ],
    ids=["a block", "a role"],
)
async def test_an_error_names_the_path_in_the_new_messages(caller: Caller, turn: object, place: str) -> None:
    first = await caller.generate("one", thread={"type": "create"})
    answer = await caller.generate(
        messages=[{"role": "user", "content": "a"}, turn],
        thread={"type": "continue", "previous_message_id": first.id},
    )
    assert (answer.status, answer.body["error"]["details"]["field"]) == (400, place)
    assert answer.body["error"]["message"].startswith(f"`{place}`: ")


async def test_a_thread_of_another_caller_is_not_found(caller: Caller) -> None:
    first = await caller.begin("One")
    _, secret = await ApiKeys(caller.gateway.service.store).create(name="you")
    other = Caller(caller.gateway, caller.session, secret)
    assert (await other.go_on(first.id, "Two")).error == (404, "thread_not_found")


OFF = "responses: {enabled: false}\n"


@both_ways
async def test_a_gateway_without_a_store_refuses_threads(setting: Setting, stream: bool) -> None:
    provider = await setting.messages()
    caller = await setting.caller(("messages", provider.base_url, ""), more=OFF)
    for refused in (await caller.begin("One", stream=stream), await caller.go_on("x", "Two", stream=stream)):
        assert refused.error == (400, "thread_unsupported_request")
        assert refused.body["error"]["details"]["unsupported"] == ["thread"]
    assert provider.bodies == []


@pytest.mark.parametrize("more", [OFF, ""], ids=["stores nothing", "stores"])
async def test_threads_of_an_account_open_to_all_are_passed_through(setting: Setting, more: str) -> None:
    provider = await setting.messages()
    caller = await setting.caller(("messages", provider.base_url, ", shared_objects: true"), more=more)
    await caller.begin("One")
    await caller.go_on("msg_made_elsewhere", "Two")
    assert provider.bodies[-1]["thread"] == {"type": "continue", "previous_message_id": "msg_made_elsewhere"}


# --- over gRPC


@both_ways
async def test_grpc_callers_have_threads(setting: Setting, stream: bool) -> None:
    provider = await setting.chat()
    caller = await setting.caller(("chat", provider.base_url, ""))
    async with grpc.aio.insecure_channel(caller.gateway.grpc) as channel:
        service = rpc.GenerationServiceStub(channel)

        async def generate(text: str, previous: str = "", **fields: Any) -> str:
            grpc_request = pb.GenerateRequest(model="m", thread=pb.Thread(previous_response_id=previous), **fields)
            grpc_request.messages.add(role=pb.ROLE_USER).parts.add().text.text = text
            metadata = (("authorization", f"Bearer {KEY}"),)
            if not stream:
                return str((await service.Generate(grpc_request, metadata=metadata)).response_id)
            call = service.StreamGenerate(pb.StreamGenerateRequest(request=grpc_request), metadata=metadata)
            events = [event async for message in call for event in message.events]
            return next(event.started.response_id for event in events if event.HasField("started"))

        first = await generate("One", instructions=[pb.Part(text=pb.TextPart(text="S"))])
        await generate("Two", first)
        contents = [message["content"] for message in provider.calls[-1].body["messages"]]
        assert contents == ["S", "One", "chat", "Two"]
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await generate("Two", first)
        assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await generate("Two", "never")
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND


@both_ways
async def test_a_thread_of_a_grpc_caller_is_continued_over_http(setting: Setting, stream: bool) -> None:
    provider = await setting.messages()
    caller = await setting.caller(("messages", provider.base_url, ""))
    grpc_request = pb.GenerateRequest(model="m", thread=pb.Thread(), max_output_tokens=9)
    grpc_request.messages.add(role=pb.ROLE_USER).parts.add().text.text = "One"
    async with grpc.aio.insecure_channel(caller.gateway.grpc) as channel:
        service = rpc.GenerationServiceStub(channel)
        first = await service.Generate(grpc_request, metadata=(("authorization", f"Bearer {KEY}"),))
    second = await caller.go_on(first.response_id, "Two", stream=stream)
    assert (await caller.go_on(second.id, "Three", stream=stream)).status == 200
    assert [texts_of(body) for body in provider.bodies] == [
        ["One"],
        ["One", "a answers", "Two"],
        ["One", "a answers", "Two", "a answers", "Three"],
    ]


@pytest.mark.parametrize("field", ["previous_response_id", "conversation_id"])
async def test_a_response_id_sent_after_a_thread_replaces_it_and_belongs_to_its_caller(
    setting: Setting, field: str
) -> None:
    provider = await setting.chat()
    caller = await setting.caller(("responses", provider.base_url, ""))
    named: dict[str, Any] = {field: "made_by_another_caller"}
    grpc_request = pb.GenerateRequest(model="m", thread=pb.Thread())
    grpc_request.MergeFromString(pb.GenerateRequest(**named).SerializeToString())  # the last member of a oneof counts
    assert grpc_request.WhichOneof("continuation") == field
    grpc_request.messages.add(role=pb.ROLE_USER).parts.add().text.text = "One"
    async with grpc.aio.insecure_channel(caller.gateway.grpc) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await rpc.GenerationServiceStub(channel).Generate(
                grpc_request, metadata=(("authorization", f"Bearer {KEY}"),)
            )
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert provider.calls == []


@pytest.mark.parametrize("field", ["previous_response_id", "conversation_id"])
async def test_an_empty_id_of_a_continuation_is_refused(setting: Setting, field: str) -> None:
    provider = await setting.chat()
    caller = await setting.caller(("responses", provider.base_url, ""))
    named: dict[str, Any] = {field: ""}
    grpc_request = pb.GenerateRequest(model="m", **named)
    grpc_request.messages.add(role=pb.ROLE_USER).parts.add().text.text = "One"
    async with grpc.aio.insecure_channel(caller.gateway.grpc) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await rpc.GenerationServiceStub(channel).Generate(
                grpc_request, metadata=(("authorization", f"Bearer {KEY}"),)
            )
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert provider.calls == []

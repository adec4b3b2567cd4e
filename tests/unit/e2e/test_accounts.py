"""Objects in a provider's account: they can be named only by the callers for which they were created there."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.pairs.table import TEXT_FACES
from tests.support.gateways import KEY, Running, channel, running
from tests.support.providers.server import ReceivedRequest, RecordingProvider, Written, serve_provider
from tests.unit.service.named_objects import HARMLESS, NAMED, Named
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.response_to_events import response_to_events

PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "native": "/v1beta/models/m-native:generateContent",
}
STREAMED_NATIVE = "/v1beta/models/m-native:streamGenerateContent?alt=sse"
CANONICAL_REQUEST = pb.GenerateRequest(
    model="theirs", face_hints=pb.FaceHints(include_usage=True), include=["reasoning.encrypted_content"]
)
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def text_part(text: str) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=text), message_id="msg_1")


def answered(response_id: str, *parts: pb.Part) -> pb.GenerateResponse:
    message = pb.Message(role=pb.ROLE_ASSISTANT, parts=parts)
    made = pb.GenerateResponse(
        response_id=response_id,
        model="theirs",
        candidates=[pb.Candidate(message=message, finish_reason=pb.FINISH_REASON_STOP)],
        usage=pb.Usage(input_tokens=3, output_tokens=5),
    )
    made.create_time.seconds = 1_700_000_000
    return made


@dataclass
class Provider(RecordingProvider):
    result: pb.GenerateResponse = field(default_factory=lambda: answered("resp_1", text_part("Hello")))

    def __post_init__(self) -> None:
        self.respond = self._encode

    def _encode(self, received: ReceivedRequest) -> Written:
        name, request = received.path.split("/")[1], CANONICAL_REQUEST
        if name not in TEXT_FORMATS:
            return web.json_response({}, status=500)
        if not (received.json.get("stream") or "stream" in received.path):
            return TEXT_FORMATS[name].encode_response(self.result, request)
        encoder = TEXT_FORMATS[name].stream_encoder(request)
        return encoder.feed(response_to_events(self.result)) + encoder.close()


@dataclass
class Caller:
    gateway: Running
    session: aiohttp.ClientSession
    key: str = KEY

    async def call(self, name: str, body: Mapping[str, Any], *, stream: bool = False) -> tuple[int, Any]:
        path = STREAMED_NATIVE if stream and name == "native" else PATHS[name]
        whole: dict[str, Any] = {"model": f"m-{name}"} if name != "native" else {}
        if stream and name != "native":
            whole["stream"] = True
        headers = {"authorization": f"Bearer {self.key}"}
        async with self.session.post(self.gateway.url + path, json=whole | body, headers=headers) as got:
            dropped = got.headers.get("x-umg-dropped")
            return got.status, (dropped if got.status == 200 else (await got.json())["error"])

    async def another(self) -> "Caller":
        _, secret = await ApiKeys(self.gateway.service.store).create("another")
        return Caller(self.gateway, self.session, secret)


def provider() -> AbstractAsyncContextManager[Provider]:
    return serve_provider(Provider())


@asynccontextmanager
async def open_caller(data: Path, *accounts: Provider, shared: bool = False) -> AsyncGenerator[Caller, None]:
    """Run a gateway that has a channel of each format to each account, the first account first."""
    entries = [
        channel(f"{name}-{place}", name, f"{account.url}/{name}", f"m-{name}", "theirs").rstrip()
        + f"\n    priority: {place}\n    shared_objects: {str(shared).lower()}\n"
        for place, account in enumerate(accounts)
        for name in TEXT_FACES
    ]
    async with running("channels:\n" + "".join(entries), data) as gateway, aiohttp.ClientSession() as session:
        yield Caller(gateway, session)


def user(*content: object) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def cases_of(name: str) -> list[Named]:
    return [case for case in NAMED if case.format == name]


@pytest.mark.parametrize("name", PATHS)
async def test_an_object_that_a_caller_never_received_is_not_found(name: str, tmp_path: Path) -> None:
    async with provider() as account, open_caller(tmp_path, account) as caller:
        for case in cases_of(name):
            status, error = await caller.call(case.format, case.body)
            assert (case.id, status, account.bodies) == (case.id, 404, [])
            assert case.name[:60] in error["message"], case.id


@both_ways
@pytest.mark.parametrize("name", PATHS)
async def test_objects_of_an_account_open_to_all_are_accepted_from_every_caller(
    name: str, stream: bool, tmp_path: Path
) -> None:
    async with provider() as account, open_caller(tmp_path, account, shared=True) as caller:
        for case in cases_of(name):
            status, error = await caller.call(case.format, case.body, stream=stream)
            assert (case.id, status, error) == (case.id, 200, None)
            assert case.name in str(account.received.pop().json), case.id


@pytest.mark.parametrize("name", PATHS)
async def test_names_chosen_by_the_caller_are_sent_to_the_provider(name: str, tmp_path: Path) -> None:
    async with provider() as account, open_caller(tmp_path, account) as caller:
        for case in HARMLESS:
            if case.format == name:
                status, error = await caller.call(case.format, case.body)
                assert (case.id, status) == (case.id, 200), error


FOREIGN_MEMBERS = {
    "/v1/embeddings": ("m-embeddings", {"input": ["Hi"]}, {"knowledge_id": "k"}),
    "/v1/rerank": ("m-rerank", {"query": "Hi", "documents": ["a", "b"]}, {"file_ids": ["f"]}),
    "/v1beta/models/m-native_embeddings:embedContent": (
        "",
        {"content": {"parts": [{"text": "Hi"}]}},
        {"ragCorpus": "projects/p/locations/l/ragCorpora/1"},
    ),
}


@pytest.mark.parametrize("path", FOREIGN_MEMBERS)
async def test_an_unknown_member_of_another_operation_names_no_object_either(path: str, tmp_path: Path) -> None:
    model, body, member = FOREIGN_MEMBERS[path]
    whole = ({"model": model} if model else {}) | body
    for shared, status in ((False, 404), (True, 502)):  # this provider serves no request for stored responses
        async with provider() as account:
            entries = [
                channel(name, name, f"{account.url}/{name}", f"m-{name}", "theirs").rstrip()
                + f"\n    shared_objects: {str(shared).lower()}\n"
                for name in ("embeddings", "rerank", "native_embeddings")
            ]
            async with (
                running("channels:\n" + "".join(entries), tmp_path) as gateway,
                aiohttp.ClientSession() as session,
            ):
                headers = {"authorization": f"Bearer {KEY}"}
                async with session.post(gateway.url + path, json=whole | member, headers=headers) as got:
                    assert got.status == status, await got.text()
                    assert bool(account.bodies) is shared


@both_ways
async def test_an_item_of_an_earlier_answer_is_found_only_for_its_caller(stream: bool, tmp_path: Path) -> None:
    body = {"input": [{"type": "item_reference", "id": "msg_1"}, user({"type": "input_text", "text": "And now?"})]}
    async with provider() as account, open_caller(tmp_path, account) as caller:
        assert (await caller.call("responses", {"input": "Hi"}, stream=stream))[0] == 200
        assert (await caller.call("responses", body, stream=stream))[0] == 200
        assert account.bodies[-1]["input"] == body["input"]
        assert (await (await caller.another()).call("responses", body))[0] == 404


RAN = {
    "type": "code_interpreter_call",
    "id": "ci_1",
    "status": "completed",
    "code": "1",
    "container_id": "cntr_1",
    "outputs": [],
}
RUN = pb.ServerToolCall(
    call_id="ci_1", name="code_execution", input_json='"1"', format="responses", container_id="cntr_1"
)


@both_ways
async def test_a_container_is_found_only_for_its_caller(stream: bool, tmp_path: Path) -> None:
    tool = {"type": "code_execution_20250825", "name": "code_execution"}
    call = {"max_tokens": 9, "messages": [user({"type": "text", "text": "Hi"})], "tools": [tool]}
    async with provider() as account, open_caller(tmp_path, account) as caller:
        account.result.candidates[0].container_json = '{"id":"container_1","expires_at":"2030-01-01T00:00:00Z"}'
        assert (await caller.call("messages", call | {"container": "container_1"}))[0] == 404
        assert (await caller.call("messages", call, stream=stream))[0] == 200
        assert (await caller.call("messages", call | {"container": "container_1"}, stream=stream))[0] == 200
        assert account.bodies[-1]["container"] == "container_1"
        assert (await (await caller.another()).call("messages", call | {"container": "container_1"}))[0] == 404


@both_ways
async def test_a_container_of_executed_code_is_found_only_for_its_caller(stream: bool, tmp_path: Path) -> None:
    turns = [user({"type": "input_text", "text": "Hi"}), RAN, user({"type": "input_text", "text": "And now?"})]
    async with provider() as account, open_caller(tmp_path, account) as caller:
        account.result = answered("resp_1", pb.Part(server_tool_call=RUN), text_part("Hello"))
        assert (await caller.call("responses", {"input": turns}))[0] == 404
        assert (await caller.call("responses", {"input": "Hi"}, stream=stream))[0] == 200
        assert (await caller.call("responses", {"input": turns}, stream=stream))[0] == 200
        assert account.bodies[-1]["input"] == turns
        assert (await (await caller.another()).call("responses", {"input": turns}))[0] == 404


@both_ways
async def test_an_item_is_looked_up_on_the_channel_that_made_it(stream: bool, tmp_path: Path) -> None:
    body = {"input": [{"type": "item_reference", "id": "msg_1"}, user({"type": "input_text", "text": "And now?"})]}
    async with AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(provider()) for _ in range(2)]
        async with open_caller(tmp_path, second) as caller:  # its channel is `responses-0` in both configs
            assert (await caller.call("responses", {"input": "Hi"}, stream=stream))[0] == 200
        async with open_caller(tmp_path, second, first) as caller:
            assert (await caller.call("responses", body, stream=stream))[0] == 200
        assert [len(account.bodies) for account in (first, second)] == [0, 2]


THOUGHT = pb.Part(reasoning=pb.ReasoningPart(texts=["hm"], summaries=["hm"], item_id="rs_1"))
SIGNED = {
    "messages": (
        {"max_tokens": 9},
        "messages",
        [
            user({"type": "text", "text": "Hi"}),
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "hm", "signature": "c2VjcmV0"}, {"type": "text", "text": "Hello"}],
            },
            user({"type": "text", "text": "And now?"}),
        ],
    ),
    "responses": (
        {},
        "input",
        [
            user({"type": "input_text", "text": "Hi"}),
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"},
            {"role": "assistant", "content": [{"type": "output_text", "text": "Hello", "annotations": []}]},
            user({"type": "input_text", "text": "And now?"}),
        ],
    ),
    "native": (
        {},
        "contents",
        [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {"role": "model", "parts": [{"text": "Hello", "thoughtSignature": "c2VjcmV0"}]},
            {"role": "user", "parts": [{"text": "And now?"}]},
        ],
    ),
}  # fmt: skip


@both_ways
@pytest.mark.parametrize("name", SIGNED)
async def test_reasoning_state_is_sent_only_to_the_account_that_made_it(
    name: str, stream: bool, tmp_path: Path
) -> None:
    fields, place, turns = SIGNED[name]
    text = text_part("Hello")
    state = pb.ReasoningState(data="c2VjcmV0", format=name)
    thought = pb.Part()
    thought.CopyFrom(THOUGHT)
    (text if name == "native" else thought).state.CopyFrom(state)
    async with AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(provider()) for _ in range(2)]
        first.result = answered("resp_1", thought, text) if name != "native" else answered("resp_1", text)
        # Ids that the second account created are not sent to the first one, which is called before it.
        async with open_caller(tmp_path, second, first) as caller:
            second.result = first.result
            assert (await caller.call(name, fields | {place: turns[:1]}, stream=stream)) == (200, None)
            assert len(second.bodies) == 1
            assert (await caller.call(name, fields | {place: turns}, stream=stream)) == (200, None)
            assert second.bodies[1][place] == turns
        assert first.bodies == []


@both_ways
@pytest.mark.parametrize("name", SIGNED)
async def test_reasoning_state_of_a_removed_account_is_dropped_and_reported(
    name: str, stream: bool, tmp_path: Path
) -> None:
    fields, place, turns = SIGNED[name]
    text, thought = text_part("Hello"), pb.Part()
    thought.CopyFrom(THOUGHT)
    (text if name == "native" else thought).state.CopyFrom(pb.ReasoningState(data="c2VjcmV0", format=name))
    async with AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(provider()) for _ in range(2)]
        first.result = answered("resp_1", thought, text) if name != "native" else answered("resp_1", text)
        async with open_caller(tmp_path, first, second) as caller:
            assert (await caller.call(name, fields | {place: turns[:1]}, stream=stream)) == (200, None)
            first.url = "http://127.0.0.1:1"
            async with open_caller(tmp_path, first, second) as after:
                status, dropped = await after.call(name, fields | {place: turns}, stream=stream)
        assert status == 200
        assert "state" in str(dropped)
        assert "c2VjcmV0" not in str(second.bodies)

"""What lies in a provider's account is only named by those for whom it was made there."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.e2e.gateways import KEY, Running, channel, running
from tests.matrix.faces import FACES
from umg_grpc.access.keys import Keys
from umg_grpc.v1 import pb
from umg_grpc.wire import FORMATS
from umg_grpc.wire.replay import replay

PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "native": "/v1beta/models/m-native:generateContent",
}
STREAMED_NATIVE = "/v1beta/models/m-native:streamGenerateContent?alt=sse"
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def said(text: str) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=text), message_id="msg_1")


def answered(response_id: str, *parts: pb.Part) -> pb.GenerateResponse:
    """What a provider says."""
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
class Provider:
    """One account, which keeps what it is told."""

    url: str = ""
    answer: pb.GenerateResponse = field(default_factory=lambda: answered("resp_1", said("Hello")))
    bodies: list[dict[str, Any]] = field(default_factory=list)

    async def serve(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.bodies.append(body)
        name = request.match_info["format"]
        asked = pb.GenerateRequest(model="theirs", include_usage=True, include=["reasoning.encrypted_content"])
        if not (body.get("stream") or "stream" in request.path):
            return web.Response(body=FORMATS[name].encode_response(self.answer, asked), content_type="application/json")
        encoder = FORMATS[name].stream_encoder(asked)
        told = encoder.feed(replay(self.answer)) + encoder.close()
        return web.Response(body=told, content_type="text/event-stream")


@dataclass
class Asker:
    """A caller, by its key."""

    gateway: Running
    session: aiohttp.ClientSession
    key: str = KEY

    async def ask(self, name: str, body: Mapping[str, Any], *, stream: bool = False) -> tuple[int, Any]:
        path = STREAMED_NATIVE if stream and name == "native" else PATHS[name]
        whole: dict[str, Any] = {"model": f"m-{name}"} if name != "native" else {}
        if stream and name != "native":
            whole["stream"] = True
        headers = {"authorization": f"Bearer {self.key}"}
        async with self.session.post(self.gateway.url + path, json=whole | body, headers=headers) as got:
            dropped = got.headers.get("x-umg-dropped")
            return got.status, (dropped if got.status == 200 else (await got.json())["error"])

    async def another(self) -> "Asker":
        _, secret = await Keys(self.gateway.service.store).create("another")
        return Asker(self.gateway, self.session, secret)


@asynccontextmanager
async def provider() -> AsyncGenerator[Provider, None]:
    made = Provider()
    app = web.Application()
    app.router.add_post("/{format}/{path:.*}", made.serve)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield made
    finally:
        await runner.cleanup()


@asynccontextmanager
async def asker(data: Path, *accounts: Provider, shared: bool = False) -> AsyncGenerator[Asker, None]:
    """A gateway that has a channel of each format to each account, the first account first."""
    entries = [
        channel(f"{name}-{place}", name, f"{account.url}/{name}", f"m-{name}", "theirs").rstrip()
        + f"\n    priority: {place}\n    shared_objects: {str(shared).lower()}\n"
        for place, account in enumerate(accounts)
        for name in FACES
    ]
    async with running("channels:\n" + "".join(entries), data) as gateway, aiohttp.ClientSession() as session:
        yield Asker(gateway, session)


@dataclass(frozen=True)
class Foreign:
    id: str
    format: str
    body: Mapping[str, Any]
    named: str


def user(*content: object) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


FOREIGN = [
    Foreign("a conversation", "responses", {"input": "Hi", "conversation": "conv_1"}, "conversation"),
    Foreign("a response", "responses", {"input": "Hi", "previous_response_id": "resp_9"}, "previous_response_id"),
    Foreign("an item", "responses", {"input": [user({"type": "input_text", "text": "Hi"}), {"type": "item_reference", "id": "msg_9"}]}, "input[1]"),
    Foreign("a file", "responses", {"input": [user({"type": "input_file", "file_id": "file_9"})]}, "input[0].content[0]"),
    Foreign("a store", "responses", {"input": "Hi", "tools": [{"type": "file_search", "vector_store_ids": ["vs_9"]}]}, "tools[0].vector_store_ids"),
    Foreign("a document", "messages", {"max_tokens": 9, "messages": [user({"type": "document", "source": {"type": "file", "file_id": "file_9"}})]}, "messages[0].content[0].source"),
    Foreign("a container", "messages", {"max_tokens": 9, "messages": [user({"type": "text", "text": "Hi"})], "container": "container_9"}, "container"),
    Foreign("a cache", "native", {"contents": [{"parts": [{"text": "Hi"}]}], "cachedContent": "cachedContents/9"}, "cachedContent"),
]  # fmt: skip


@pytest.mark.parametrize("case", FOREIGN, ids=lambda case: case.id)
async def test_what_a_caller_was_never_told_of_does_not_exist_for_it(case: Foreign, tmp_path: Path) -> None:
    async with provider() as account, asker(tmp_path, account) as caller:
        status, error = await caller.ask(case.format, case.body)
        assert (status, account.bodies) == (404, [])
        assert case.named in error["message"] or error.get("param") == case.named


@both_ways
@pytest.mark.parametrize("case", FOREIGN, ids=lambda case: case.id)
async def test_an_account_that_its_operator_opened_is_everybodys(case: Foreign, stream: bool, tmp_path: Path) -> None:
    async with provider() as account, asker(tmp_path, account, shared=True) as caller:
        assert (await caller.ask(case.format, case.body, stream=stream))[0] == 200
        [told] = account.bodies
        assert {key: told[key] for key in case.body} == case.body


@both_ways
async def test_an_item_of_an_earlier_answer_is_its_callers_alone(stream: bool, tmp_path: Path) -> None:
    body = {"input": [{"type": "item_reference", "id": "msg_1"}, user({"type": "input_text", "text": "And now?"})]}
    async with provider() as account, asker(tmp_path, account) as caller:
        assert (await caller.ask("responses", {"input": "Hi"}, stream=stream))[0] == 200
        assert (await caller.ask("responses", body, stream=stream))[0] == 200
        assert account.bodies[-1]["input"] == body["input"]
        assert (await (await caller.another()).ask("responses", body))[0] == 404


@both_ways
async def test_an_item_is_looked_for_where_it_was_made(stream: bool, tmp_path: Path) -> None:
    body = {"input": [{"type": "item_reference", "id": "msg_1"}, user({"type": "input_text", "text": "And now?"})]}
    async with AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(provider()) for _ in range(2)]
        async with asker(tmp_path, second) as caller:  # its channel is `responses-0` in both configs
            assert (await caller.ask("responses", {"input": "Hi"}, stream=stream))[0] == 200
        async with asker(tmp_path, second, first) as caller:
            assert (await caller.ask("responses", body, stream=stream))[0] == 200
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
async def test_reasoning_state_goes_to_the_account_that_made_it_and_to_no_other(
    name: str, stream: bool, tmp_path: Path
) -> None:
    fields, place, turns = SIGNED[name]
    text = said("Hello")
    state = pb.ReasoningState(data="c2VjcmV0", format=name)
    thought = pb.Part()
    thought.CopyFrom(THOUGHT)
    (text if name == "native" else thought).state.CopyFrom(state)
    async with AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(provider()) for _ in range(2)]
        first.answer = answered("resp_1", thought, text) if name != "native" else answered("resp_1", text)
        # What the second account made, the first, which is asked before it, is not told.
        async with asker(tmp_path, second, first) as caller:
            second.answer = first.answer
            assert (await caller.ask(name, fields | {place: turns[:1]}, stream=stream)) == (200, None)
            assert len(second.bodies) == 1
            assert (await caller.ask(name, fields | {place: turns}, stream=stream)) == (200, None)
            assert second.bodies[1][place] == turns
        assert first.bodies == []


@both_ways
@pytest.mark.parametrize("name", SIGNED)
async def test_reasoning_state_of_an_account_that_is_gone_is_dropped_and_reported(
    name: str, stream: bool, tmp_path: Path
) -> None:
    fields, place, turns = SIGNED[name]
    text, thought = said("Hello"), pb.Part()
    thought.CopyFrom(THOUGHT)
    (text if name == "native" else thought).state.CopyFrom(pb.ReasoningState(data="c2VjcmV0", format=name))
    async with AsyncExitStack() as stack:
        first, second = [await stack.enter_async_context(provider()) for _ in range(2)]
        first.answer = answered("resp_1", thought, text) if name != "native" else answered("resp_1", text)
        async with asker(tmp_path, first, second) as caller:
            assert (await caller.ask(name, fields | {place: turns[:1]}, stream=stream)) == (200, None)
            first.url = "http://127.0.0.1:1"
            async with asker(tmp_path, first, second) as after:
                status, dropped = await after.ask(name, fields | {place: turns}, stream=stream)
        assert status == 200
        assert "state" in str(dropped)
        assert "c2VjcmV0" not in str(second.bodies)

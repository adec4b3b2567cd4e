"""Guards of a gateway: tool calls, reasoning, stored responses, threads, the cache, fallbacks, keys, reloads, records."""

import json
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import aiohttp
import grpc
import pytest
from aiohttp import web

from tests.support.gateways import KEY, Running, running
from tests.support.guards import GuardServers, guard_servers
from tests.support.serving import serving
from tests.support.video_calls import eventually
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.config import parse
from umg_grpc.store.usage_record_table import UsageRecords
from umg_grpc.v1 import pb, rpc

SECRET, MASKED = "AKIA" + "IOSFODNN7EXAMPLE", "[AWS_ACCESS_KEY]"
SECRETS = "  - {name: secrets, kind: patterns, sets: [secrets, cards]}\n"
USAGE = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
Json = dict[str, Any]


@dataclass
class Provider:
    """Provider of chat that responds with one message, whole or streamed in pieces."""

    message: Json
    pieces: list[Json] = field(default_factory=list)
    requests: list[Json] = field(default_factory=list)
    status: int = 200

    async def respond(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        if self.status != 200:
            return web.json_response({"error": {"message": "down", "type": "server_error"}}, status=self.status)
        head = {"id": "c1", "created": 1, "model": "m"}
        finish = "tool_calls" if "tool_calls" in self.message else "stop"
        if not body.get("stream"):
            choice = {"index": 0, "message": self.message, "finish_reason": finish}
            return web.json_response({**head, "object": "chat.completion", "choices": [choice], "usage": USAGE})
        choices: list[Json] = [{"index": 0, "delta": piece, "finish_reason": None} for piece in self.pieces]
        choices.append({"index": 0, "delta": {}, "finish_reason": finish})
        chunks = [{**head, "object": "chat.completion.chunk", "choices": [choice]} for choice in choices]
        chunks.append({**head, "object": "chat.completion.chunk", "choices": [], "usage": USAGE})
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        return web.Response(text=text, content_type="text/event-stream")


def responding(text: str, size: int = 5) -> Provider:
    """Return a provider that responds with a text, streamed in pieces of this size."""
    pieces = [{"content": text[at : at + size]} for at in range(0, len(text), size)]
    return Provider({"role": "assistant", "content": text}, pieces)


def config(url: str, guards: str, more: str = "") -> str:
    return (
        f"unpriced: free\nchannels:\n  - {{name: main, protocols: [chat], base_url: '{url}', api_key: k, models: [m]}}\n"
        f"{more}" + (f"guards:\n{guards}" if guards else "")
    )


@dataclass
class Gateway:
    running: Running
    session: aiohttp.ClientSession
    provider: Provider
    servers: GuardServers
    url: str

    async def post(self, path: str, body: Json, **headers: str) -> tuple[int, Any, Any]:
        """Return status, headers and body of a call; the body of a stream is a text."""
        async with self.session.post(path, json={"model": "m", **body}, headers=headers) as got:
            is_json = got.content_type == "application/json"
            return got.status, got.headers, await got.json() if is_json else await got.text()

    async def chat(self, text: str = "hi", *, stream: bool = False, **more: Any) -> Any:
        body = {"messages": [{"role": "user", "content": text}], "stream": stream, **more}
        status, _, got = await self.post("/v1/chat/completions", body)
        assert status == 200, got
        return got


@asynccontextmanager
async def gateway(
    tmp_path: Path, provider: Provider, guards: str = SECRETS, more: str = ""
) -> AsyncGenerator[Gateway, None]:
    app = web.Application()
    app.router.add_post("/{path:.*}", provider.respond)
    async with (
        serving(app) as url,
        guard_servers() as servers,
        running(config(url, guards.replace("URL", servers.url), more.replace("PROVIDER", url)), tmp_path) as here,
        aiohttp.ClientSession(here.url, headers=here.headers) as session,
    ):
        yield Gateway(here, session, provider, servers, url)


def deltas(stream: str) -> list[Json]:
    chunks = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
    return [choice["delta"] for chunk in chunks for choice in chunk["choices"]]


ARGUMENTS = json.dumps({"card": 4111111111111111, "text": f"line\n{SECRET}", "other": 1})
CALL = {"id": "t1", "type": "function", "function": {"name": "pay", "arguments": ARGUMENTS}}
TOOLS = [{"type": "function", "function": {"name": "pay", "parameters": {"type": "object"}}}]


def calling() -> Provider:
    """Return a provider that calls a tool with secrets in the arguments."""
    head = {"tool_calls": [{"index": 0, **CALL, "function": {"name": "pay", "arguments": ""}}]}
    parts = [ARGUMENTS[at : at + 3] for at in range(0, len(ARGUMENTS), 3)]
    pieces = [head, *({"tool_calls": [{"index": 0, "function": {"arguments": part}}]} for part in parts)]
    return Provider({"role": "assistant", "content": None, "tool_calls": [CALL]}, pieces)


async def test_arguments_of_a_tool_call_are_masked_as_json_whole_and_streamed(tmp_path: Path) -> None:
    expected = {"card": "[CARD_NUMBER]", "text": f"line\n{MASKED}", "other": 1}
    async with gateway(tmp_path, calling()) as here:
        whole = await here.chat(tools=TOOLS)
        streamed = deltas(await here.chat(tools=TOOLS, stream=True))
    [call] = whole["choices"][0]["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == expected
    parts = [part for delta in streamed for part in delta.get("tool_calls", ())]
    assert json.loads("".join(part["function"].get("arguments", "") for part in parts)) == expected
    assert (parts[0]["id"], parts[0]["function"]["name"]) == ("t1", "pay")


async def test_a_refused_tool_call_does_not_leave(tmp_path: Path) -> None:
    refusing = "  - {name: s, kind: patterns, sets: [secrets], action: refuse, on: [response]}\n"
    async with gateway(tmp_path, calling(), refusing) as here:
        whole = await here.chat(tools=TOOLS)
        stream = await here.chat(tools=TOOLS, stream=True)
    assert whole["choices"][0]["finish_reason"] == "content_filter"
    assert "tool_calls" not in whole["choices"][0]["message"]
    assert whole["usage"]["completion_tokens"] == USAGE["completion_tokens"]
    assert not [delta for delta in deltas(stream) if "tool_calls" in delta]
    assert '"finish_reason":"content_filter"' in stream


async def test_reasoning_is_masked_before_the_answer(tmp_path: Path) -> None:
    thought = f"the key is {SECRET}."
    pieces = [{"reasoning_content": thought[:20]}, {"reasoning_content": thought[20:]}, {"content": "done"}]
    provider = Provider({"role": "assistant", "content": "done", "reasoning_content": thought}, pieces)
    async with gateway(tmp_path, provider) as here:
        whole = await here.chat()
        streamed = deltas(await here.chat(stream=True))
    assert whole["choices"][0]["message"]["reasoning_content"] == f"the key is {MASKED}."
    assert "".join(delta.get("reasoning_content") or "" for delta in streamed) == f"the key is {MASKED}."
    assert "".join(delta.get("content") or "" for delta in streamed) == "done"


async def test_likelihoods_of_a_masked_text_do_not_leave(tmp_path: Path) -> None:
    provider = responding(f"it is {SECRET}")
    tokens = [{"token": SECRET, "logprob": -1.0, "bytes": None, "top_logprobs": []}]

    async def respond(request: web.Request) -> web.StreamResponse:
        message = {"role": "assistant", "content": f"it is {SECRET}"}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": {"content": tokens}}
        head = {"id": "c1", "created": 1, "model": "m", "object": "chat.completion"}
        return web.json_response({**head, "choices": [choice], "usage": USAGE})

    provider.respond = respond  # type: ignore[method-assign]
    async with gateway(tmp_path, provider) as here:
        whole = await here.chat(logprobs=True)
        streamed = await here.chat(logprobs=True, stream=True)  # of a provider that does not stream
    assert whole["choices"][0]["message"]["content"] == f"it is {MASKED}"
    assert SECRET not in json.dumps(whole)
    assert SECRET not in streamed
    assert MASKED in streamed


async def test_the_provider_gets_the_masked_request_with_the_members_of_the_caller(tmp_path: Path) -> None:
    async with gateway(tmp_path, responding("ok")) as here:
        await here.chat(f"my key {SECRET}", unknown_member={"a": 1}, temperature=0.5)
        [sent] = here.provider.requests
    assert sent["messages"] == [{"role": "user", "content": f"my key {MASKED}"}]
    assert (sent["unknown_member"], sent["temperature"]) == ({"a": 1}, 0.5)


async def test_a_response_that_its_guards_allow_is_passed_on_as_it_came(tmp_path: Path) -> None:
    provider = responding("ok")
    provider.message["vendor_member"] = 7
    async with gateway(tmp_path, provider) as here:
        whole = await here.chat()
    assert whole["choices"][0]["message"]["vendor_member"] == 7


@pytest.mark.parametrize("stream", [False, True])
async def test_a_response_is_stored_and_continued_as_its_guards_have_left_it(stream: bool, tmp_path: Path) -> None:
    async with gateway(tmp_path, responding(f"the key is {SECRET}")) as here:
        status, _, made = await here.post("/v1/responses", {"input": f"keep {SECRET}", "stream": stream})
        assert status == 200, made
        if stream:
            last = [line[6:] for line in made.splitlines() if line.startswith("data: ")][-1]
            made = json.loads(last)["response"]
        async with here.session.get(f"/v1/responses/{made['id']}") as got:
            stored = await got.text()
        async with here.session.get(f"/v1/responses/{made['id']}/input_items") as got:
            items = await got.text()
        await here.post("/v1/responses", {"input": "go on", "previous_response_id": made["id"]})
        continued = json.dumps(here.provider.requests[-1])
    for text in (stored, items, continued):
        assert SECRET not in text
    assert MASKED in stored
    assert MASKED in items
    assert continued.count(MASKED) == 2


async def test_a_thread_is_stored_as_its_guards_have_left_it(tmp_path: Path) -> None:
    async with gateway(tmp_path, responding(f"the key is {SECRET}")) as here:
        body = {
            "messages": [{"role": "user", "content": f"keep {SECRET}"}],
            "max_tokens": 9,
            "thread": {"type": "create"},
        }
        status, _, made = await here.post("/v1/messages", body)
        assert status == 200, made
        body = {"messages": [{"role": "user", "content": "go on"}], "max_tokens": 9}
        status, _, again = await here.post(
            "/v1/messages", {**body, "thread": {"type": "continue", "previous_message_id": made["id"]}}
        )
        assert status == 200, again
        continued = json.dumps(here.provider.requests[-1])
    assert SECRET not in continued
    assert continued.count(MASKED) == 2


async def test_a_cached_response_is_that_of_the_guards_which_passed_it(tmp_path: Path) -> None:
    async with gateway(tmp_path, responding(f"key {SECRET}")) as here:
        body = {"messages": [{"role": "user", "content": "hi"}], "temperature": 0, "seed": 1}
        cached = {"x-umg-cache": "5m"}
        made = [await here.post("/v1/chat/completions", body, **cached) for _ in range(2)]
        assert [headers["x-umg-cache"] for _, headers, _ in made] == ["miss", "hit"]
        assert {got["choices"][0]["message"]["content"] for _, _, got in made} == {f"key {MASKED}"}
        other = config(here.url, "  - {name: words, kind: patterns, words: [key]}\n")
        here.running.service.reload(parse(other, "test.yaml", {}))
        _, headers, got = await here.post("/v1/chat/completions", body, **cached)
    assert headers["x-umg-cache"] == "miss"
    assert got["choices"][0]["message"]["content"] == f"[WORD] {SECRET}"


async def test_no_fallback_is_called_for_a_decision_of_a_guard(tmp_path: Path) -> None:
    more = "  - {name: other, protocols: [chat], base_url: 'PROVIDER', api_key: k, models: [n]}\nfallbacks: {m: [n]}\n"
    refusing = "  - {name: s, kind: patterns, sets: [secrets], action: refuse, models: [m]}\n"
    away = "  - {name: away, kind: webhook, url: 'http://127.0.0.1:9/', models: [m], keys: [none]}\n"
    async with gateway(tmp_path, responding("ok"), refusing, more) as here:
        status, headers, got = await here.post(
            "/v1/chat/completions", {"messages": [{"role": "user", "content": SECRET}]}
        )
        assert (status, got["error"]["code"], here.provider.requests) == (400, "content_filter", [])
        assert headers["x-umg-guards"] == "request:s=refused"
        here.running.service.reload(parse(config(here.url, away, more.replace("PROVIDER", here.url)), "test.yaml", {}))
        await here.chat(SECRET)  # the guard is for another key


async def test_a_fallback_has_the_guards_of_its_own_model(tmp_path: Path) -> None:
    more = "  - {name: other, protocols: [chat], base_url: 'PROVIDER', api_key: k, models: [n]}\nfallbacks: {m: [n]}\n"
    own = "  - {name: s, kind: patterns, sets: [secrets], models: [n]}\n"
    provider = responding("ok")

    async def respond(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        provider.status = 500 if body["model"] == "m" else 200
        return await Provider.respond(provider, request)

    provider.respond = respond  # type: ignore[method-assign]
    async with gateway(tmp_path, provider, own, more + "retries: {repeats: 0}\n") as here:
        await here.chat(f"my {SECRET}")
    first, second = here.provider.requests
    assert first["messages"][0]["content"] == f"my {SECRET}"
    assert (second["model"], second["messages"][0]["content"]) == ("n", f"my {MASKED}")


async def test_decisions_and_annotations_are_in_the_record_and_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guards = "  - {name: mask-it, kind: webhook, url: 'URL', timeout: 60}\n"
    async with gateway(tmp_path, responding(f"key {SECRET}"), guards) as here:
        await here.post(
            "/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}, **{"x-request-id": "guarded-1"}
        )
        records = UsageRecords(here.running.service.store)
        record = (await eventually(lambda: records.find("guarded-1"), bool))[0]
        stub = rpc.AdminServiceStub(here.running.service.channel())
        shown = await stub.GetRequestRecord(
            pb.GetRequestRecordRequest(request_id="guarded-1"), metadata=[("authorization", f"Bearer {KEY}")]
        )
    assert record.details is not None
    assert record.details.guards == ["request:mask-it=allow", "response:mask-it=masked"]
    assert record.details.guard_notes == {"mask-it.texts": "1"}
    assert list(shown.record.guard_decisions) == record.details.guards
    assert "'guards': {'request:mask-it': 'allow', 'response:mask-it': 'masked'}" in capsys.readouterr().err


async def test_guards_are_for_the_keys_of_their_patterns(tmp_path: Path) -> None:
    guards = "  - {name: s, kind: patterns, sets: [secrets], keys: ['team-*'], on: [request]}\n"
    async with gateway(tmp_path, responding("ok"), guards) as here:
        _, secret = await ApiKeys(here.running.service.store).create("team-a")
        for key, sent in ((KEY, SECRET), (secret, MASKED)):
            await here.post(
                "/v1/chat/completions",
                {"messages": [{"role": "user", "content": SECRET}]},
                authorization=f"Bearer {key}",
            )
            assert here.provider.requests[-1]["messages"][0]["content"] == sent


def functions_of_guards(frames: list[str]) -> set[str]:
    return {Path(each).name for each in frames if "/guardrails/" in each or each.endswith("_guards")}


@contextmanager
def profiled() -> Iterator[list[str]]:
    """Note the file and name of each function of the gateway that is called in this thread."""
    called: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and "/umg_grpc/" in frame.f_code.co_filename:
            called.append(f"{frame.f_code.co_filename}:{frame.f_code.co_name}")

    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(None)


OTHERS = "  - {name: s, kind: patterns, sets: [secrets], models: ['other*']}\n"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_without_guards_runs_no_function_of_them(stream: bool, tmp_path: Path) -> None:
    found = []
    for number, guards in enumerate(("", OTHERS)):
        async with gateway(tmp_path / str(number), responding("ok"), guards) as here:
            await here.chat(stream=stream)  # finds the access of the key to the model
            with profiled() as called:
                await here.chat(stream=stream)
            found.append(functions_of_guards(called))
    assert found == [set(), {"base_pipeline.py:_run_request_guards"}]


async def test_each_choice_of_a_stream_is_checked_for_itself(tmp_path: Path) -> None:
    texts = (f"one {SECRET} end", f"two {SECRET}. End")
    provider = responding("")

    async def respond(request: web.Request) -> web.StreamResponse:
        head = {"id": "c1", "created": 1, "model": "m", "object": "chat.completion.chunk"}
        pieces = [(at, text[place : place + 3]) for place in range(0, 40, 3) for at, text in enumerate(texts)]
        choices: list[Json] = [
            {"index": at, "delta": {"content": piece}, "finish_reason": None} for at, piece in pieces
        ]
        choices += [{"index": at, "delta": {}, "finish_reason": "stop"} for at in range(2)]
        chunks = [*({**head, "choices": [choice]} for choice in choices), {**head, "choices": [], "usage": USAGE}]
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        return web.Response(text=text, content_type="text/event-stream")

    provider.respond = respond  # type: ignore[method-assign]
    async with gateway(tmp_path, provider) as here:
        stream = await here.chat(stream=True, n=2)
    chunks = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    for at, text in enumerate(texts):
        parts = [choice["delta"].get("content") or "" for choice in choices if choice["index"] == at]
        assert "".join(parts) == text.replace(SECRET, MASKED)
    assert [choice["index"] for choice in choices if choice["finish_reason"]] == [0, 1]


async def test_a_response_that_no_guard_can_read_does_not_leave(tmp_path: Path) -> None:
    provider = responding("ok")
    provider.message["tool_calls"] = [{"id": "t", "type": "function", "function": {"name": SECRET, "arguments": [1]}}]
    provider.message["content"] = {"odd": SECRET}
    async with gateway(tmp_path, provider) as here:
        body = {"messages": [{"role": "user", "content": "hello"}]}
        status, _, got = await here.post("/v1/chat/completions", body)
    assert status == 502, got
    assert SECRET not in json.dumps(got)


async def test_a_transcript_is_masked_beside_its_audio(tmp_path: Path) -> None:
    text = f"the key is {SECRET} here"
    sounds = [{"audio": {"id": "a1", "transcript": text[at : at + 4]}} for at in range(0, len(text), 4)]
    sounds.insert(1, {"audio": {"data": "AAAA"}})
    audio = {"id": "a1", "transcript": text, "data": "AAAA", "expires_at": 1}
    provider = Provider({"role": "assistant", "content": None, "audio": audio}, sounds)
    wanted: Json = {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "pcm16"}}
    async with gateway(tmp_path, provider) as here:
        whole = await here.chat(**wanted)
        streamed = [delta["audio"] for delta in deltas(await here.chat(stream=True, **wanted)) if delta.get("audio")]
    assert whole["choices"][0]["message"]["audio"]["transcript"] == f"the key is {MASKED} here"
    assert "".join(sound.get("transcript") or "" for sound in streamed) == f"the key is {MASKED} here"
    assert "AAAA" in [sound.get("data") for sound in streamed]


class Rewriter(rpc.GuardServiceServicer):
    """Guard that replaces whole messages, or responds in a way that no guard may."""

    faults = False

    async def Check(self, request: pb.CheckRequest, context: object) -> pb.CheckResponse:
        replace = pb.GuardReplace(content=request.content)
        kind = request.content.WhichOneof("message")
        if self.faults and kind == "generate_response":
            replace.content.image_response.SetInParent()
        elif self.faults:
            return pb.CheckResponse(replace=pb.GuardReplace(texts=[pb.TextReplacement(path="messages[9]", text="a")]))
        elif kind == "generate_request":
            replace.content.generate_request.model = "another"
            replace.content.generate_request.instructions.add(text=pb.TextPart(text="Be kind."))
        else:
            replace.content.generate_response.candidates[0].message.parts[0].text.text = "rewritten"
        return pb.CheckResponse(replace=replace)


@asynccontextmanager
async def served(guard: rpc.GuardServiceServicer) -> AsyncGenerator[str, None]:
    server = grpc.aio.server()
    rpc.add_GuardServiceServicer_to_server(guard, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


async def test_a_guard_may_replace_whole_messages(tmp_path: Path) -> None:
    async with served(Rewriter()) as target:
        guards = f"  - {{name: whole, kind: grpc, target: '{target}', content: true, timeout: 60}}\n"
        async with gateway(tmp_path, responding("as it came"), guards) as here:
            whole = await here.chat("hello", vendor_member=1)
            [sent] = here.provider.requests
    assert whole["choices"][0]["message"]["content"] == "rewritten"
    assert sent["messages"] == [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hello"}]
    assert (sent["model"], sent["vendor_member"]) == ("m", 1)


@pytest.mark.parametrize(("phase", "expected"), [("request", 0), ("response", 1)])
async def test_a_replacement_that_does_not_fit_is_a_failure_of_the_guard(
    phase: str, expected: int, tmp_path: Path
) -> None:
    guard = Rewriter()
    guard.faults = True
    async with served(guard) as target:
        row = f"name: whole, kind: grpc, target: '{target}', content: true, on: [{phase}], timeout: 60"
        async with gateway(tmp_path, responding("ok"), f"  - {{{row}}}\n") as here:
            body = {"messages": [{"role": "user", "content": "hello"}]}
            status, headers, got = await here.post("/v1/chat/completions", body)
            assert (status, headers["x-umg-guards"]) == (503, f"{phase}:whole=failed-closed"), got
            assert len(here.provider.requests) == expected
            opened = config(here.url, f"  - {{{row}, on_failure: open}}\n")
            here.running.service.reload(parse(opened, "test.yaml", {}))
            status, headers, got = await here.post("/v1/chat/completions", body)
    assert (status, headers["x-umg-guards"]) == (200, f"{phase}:whole=failed-open")
    assert got["choices"][0]["message"]["content"] == "ok"


class Growing(rpc.GuardServiceServicer):
    """Guard that puts a long text in the place of the first one."""

    text = "long " * 2**20

    async def Check(self, request: pb.CheckRequest, context: object) -> pb.CheckResponse:
        texts = [pb.TextReplacement(path=request.texts[0].path, text=self.text)]
        return pb.CheckResponse(replace=pb.GuardReplace(texts=texts))


async def test_a_guard_over_grpc_may_respond_with_more_than_the_usual_limit_of_a_message(tmp_path: Path) -> None:
    async with served(Growing()) as target:
        row = f"name: grows, kind: grpc, target: '{target}', on: [response], timeout: 60"
        async with gateway(tmp_path, responding("ok"), f"  - {{{row}}}\n") as here:
            whole = await here.chat("hello")
    assert whole["choices"][0]["message"]["content"] == Growing.text

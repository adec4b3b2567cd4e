"""The kit against a provider that answers wrongly: the checks of its faults fail, by their names."""

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import pytest_asyncio
from aiohttp import web
from typer.testing import CliRunner
from umg_conformance import result_reports
from umg_conformance.check_runner import Outcome, Result
from umg_conformance.check_selection import Target, check
from umg_conformance.http_client import UnreachableError
from umg_conformance.model_choice import KeyRefusedError

from tests.support.serving import serving
from umg_grpc.cli.commands import app

KEY = "sk-broken"
CALL = {"index": 0, "id": None, "type": "function", "function": {"name": "get_weather", "arguments": "no JSON"}}


@dataclass
class Provider:
    """Provider with the faults of a careless implementation of chat completions, which is busy at first."""

    calls: int = 0

    async def models(self, request: web.Request) -> web.Response:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return web.json_response({"error": {"message": "wrong key"}}, status=401)
        return web.json_response({"object": "list", "data": [{"id": "gpt-4-broken", "object": "model"}]})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        self.calls += 1
        if self.calls == 1:  # repeated by the kit
            return web.json_response({"error": {"message": "busy"}}, status=503, headers={"retry-after": "0"})
        body = await request.json() if request.can_read_body else {}
        if "messages" not in body:
            return web.json_response({"detail": "messages are needed"}, status=400)
        if body.get("stream"):
            return await self.stream(request, body)
        if body.get("tools"):
            return web.json_response(self.answer({"role": "assistant", "content": None, "tool_calls": [CALL]}, "stop"))
        return web.json_response(self.answer({"role": "assistant", "content": "A gate."}, "finished"))

    def answer(self, message: dict[str, Any], finish: str) -> dict[str, Any]:
        choice = {"index": 0, "message": message, "finish_reason": finish}
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 6}
        times = {"created": 1767323045123, "own_extension": True}  # milliseconds
        return {"id": "1", "object": "chat.completion", "model": "x", "choices": [choice], "usage": usage, **times}

    async def stream(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"event: ping\n\n")
        for number, text in enumerate(("A", " gate.")):
            delta = {"role": "assistant", "content": text}
            chunk = {"id": str(number), "object": "chunk", "choices": [{"index": 0, "delta": delta}]}
            await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
        assert request.transport is not None
        if body["messages"][0]["content"] == "break off":
            request.transport.close()
            await asyncio.Event().wait()
        return response


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url() -> AsyncGenerator[str, None]:
    provider, made = Provider(), web.Application()
    made.router.add_get("/v1/models", provider.models)
    made.router.add_post("/v1/chat/completions", provider.chat)
    async with serving(made, handler_cancellation=True) as base_url:
        yield base_url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def results(url: str) -> list[Result]:
    values = {"cut_prompt": "break off"}
    return await check(Target(url, KEY, faces=("chat", "rerank", "native"), values=values))


FAILED = {
    "answer.created": "body.created: expected at most 9999999999, got 1767323045123",
    "answer.model_as_called": 'body.model: expected "gpt-4-broken", got "x"',
    "answer.finish": 'body.choices[0].finish_reason: expected one of ["stop", "length"], got "finished"',
    "answer.usage_total": "body.usage.total_tokens: expected the sum of body.usage.prompt_tokens and body.usage.completion_tokens, 5, got 6",
    "answer.usage_details": "there is no body.usage.prompt_tokens_details",
    "answer.request_id": "there is no headers.x-request-id",
    "answer.known_keys": "body: expected an object without own_extension, got ",
    "length.finish": 'body.choices[0].finish_reason: expected "length", got "finished"',
    "tools.call": "body.choices[0].message.tool_calls[*].id: expected string, got null",
    "tools.arguments": 'expected a text that holds JSON of type object, got "no JSON"',
    "tool_choice_required.finish": 'expected "tool_calls", got "stop"',
    "stream.lines": 'expected no line that matches ^(event|id|retry):, got "event: ping"',
    "stream.order": 'events: expected ["data+", "[DONE]?"], got ["ping", "data+"]',
    "stream.end_mark": 'events: expected ["data+", "[DONE]"], got ["ping", "data+"]',
    "stream.object": 'expected "chat.completion.chunk", got "chunk"',
    "stream.same_id": 'events[?name=data].data.id: expected equal values, got ["0", "1"]',
    "stream.role_once": 'expected the texts to be "assistant", got "assistantassistant"',
    "stream.finish_once": "there is none",
    "stream_cut.error": "there is no events[-2].data.error",
    "missing_messages.body": "there is no body.error",
    "unknown_model.status": "POST /v1/chat/completions: expected status 404, got 200",
    "wrong_key.status": "POST /v1/chat/completions: expected status 401, got 200",
}
"""Check -> end or beginning of the text about its failure."""


@pytest.mark.parametrize("name", FAILED)
def test_a_fault_fails_the_check_of_its_name(name: str, results: list[Result]) -> None:
    (found,) = [result for result in results if (result.face, result.id) == ("chat", name)]
    assert found.outcome is Outcome.FAILED
    assert FAILED[name] in found.problem


def test_the_sound_parts_pass(results: list[Result]) -> None:
    passed = {result.id for result in results if result.face == "chat" and result.outcome is Outcome.PASSED}
    assert {"answer.status", "answer.object", "answer.message", "answer.usage", "stream.text", "tools.name"} <= passed


def test_a_face_without_a_route_fails_once(results: list[Result]) -> None:
    native = [result for result in results if result.face == "native"]
    assert [result.id for result in native if result.outcome is Outcome.FAILED] == ["answer.status"]
    causes = {result.problem for result in native[20:]}
    assert causes == {"not served: POST /v1beta/models/${model}:generateContent is 404"}


def test_a_face_without_a_model_is_skipped_and_names_the_option(results: list[Result]) -> None:
    rerank = [result for result in results if result.face == "rerank" and result.id.startswith("rank.")]
    assert {result.problem for result in rerank} == {"no rerank model: give one by --model rerank=ID"}


def test_recommended_checks_are_no_failures_of_the_junit_file(results: list[Result]) -> None:
    cases = {case.get("name"): case for case in ET.fromstring(result_reports.junit(results)).iter("testcase")}
    assert cases["answer.created"].find("failure") is not None
    assert cases["answer.request_id"].find("failure") is None
    skipped = cases["answer.request_id"].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "recommended: there is no headers.x-request-id"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_wrong_key_and_a_closed_port_are_named(url: str) -> None:
    with pytest.raises(KeyRefusedError, match="the key is refused: 401, wrong key"):
        await check(Target(url, "sk-other", faces=("chat",)))
    with pytest.raises(UnreachableError, match="GET /v1/models: Cannot connect to host"):
        await check(Target("http://127.0.0.1:1", KEY, faces=("chat",)))


OWN = """
face: mine
title: Mine
calls:
  - id: list
    reason: the list is there
    source: my document
    severity: {severity}
    request: {{method: GET, path: /v1/models}}
    checks:
      - {{id: rows, reason: it has a row, expect: [{{path: "body.data[0].id", equals: other}}]}}
"""


@pytest.mark.parametrize(("severity", "code"), [("required", 1), ("recommended", 0)])
@pytest.mark.asyncio(loop_scope="module")
async def test_the_command_prints_a_table_and_its_exit_code_is_that_of_required_checks(
    severity: str, code: int, url: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text(OWN.format(severity=severity))
    arguments = ["conformance", url, "--key", KEY, "--checks", str(tmp_path), "--junit", str(tmp_path / "out.xml")]
    ended = await asyncio.to_thread(CliRunner().invoke, app, arguments)
    assert ended.exit_code == code, ended.output
    assert f'{severity}: list.rows\n    body.data[0].id: expected "other", got "gpt-4-broken"' in ended.output
    assert "why: it has a row (my document)" in ended.output
    assert ET.parse(tmp_path / "out.xml").getroot().find("testsuite") is not None


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["http://127.0.0.1:1"], 2, "--key"),
        (["127.0.0.1:1", "--key", KEY], 2, "http://HOST:PORT"),
        (["http://127.0.0.1:1", "--key", KEY, "--set", "a"], 2, "NAME=VALUE"),
        (
            ["http://127.0.0.1:1", "--key", KEY, "--face", "holograms"],
            2,
            "umg: --face holograms: unknown; the faces are chat",
        ),
        (["http://127.0.0.1:1", "--key", KEY, "--face", "chat"], 2, "umg: GET /v1/models: Cannot connect"),
        (["http://127.0.0.1:1", "--face", "chat", "--list"], 0, "  answer.usage [required] callers are billed by it"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_command_names_a_wrong_option(
    arguments: list[str], code: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("UMG_API_KEY", raising=False)
    ended = CliRunner().invoke(app, ["conformance", *arguments])
    assert ended.exit_code == code
    assert text in ended.output

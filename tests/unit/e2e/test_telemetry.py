"""Spans and metrics that a collector of OpenTelemetry receives, of all operations, streams and failovers."""

import asyncio
import base64
import json
import socket
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
from structlog.testing import capture_logs

from tests.support.gateways import Running, running
from tests.support.images import PNG
from tests.support.providers.every_operation import EveryOperation
from tests.support.providers.server import serve_provider
from tests.support.proxies import NOWHERE
from tests.support.telemetry_collector import Collector, ReceivedSpan, collector
from umg_grpc.base.errors import UmgError
from umg_grpc.service.telemetry.content_capture import CAPTURE_VARIABLE, REDACT_VARIABLE
from umg_grpc.service.telemetry.otlp_export import open_telemetry
from umg_grpc.v1 import pb, rpc

TRACE_ID, SPAN_ID = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
SAMPLED = {"traceparent": f"00-{TRACE_ID}-{SPAN_ID}-01", "tracestate": "congo=t61rcWkgMzE"}
CONFIG = """
retries: {{repeats: 1, backoff: 0.001, budget: 1}}
channels:
  - name: main
    protocols: [chat, embeddings, rerank]
    base_url: {url}/v1
    api_key: sk-provider
    models: [{{id: m, upstream: real}}]
  - name: spare
    protocols: [chat]
    base_url: {url}/v1
    api_key: sk-provider
    priority: 1
    models: [{{id: m, upstream: other}}]
"""
HEDGE = "models: {m: {hedge: %s}}\n"
SECRET = "a prompt that no span may have"
CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": SECRET}], "temperature": 0.5}


class Setting:
    def __init__(self, gateway: Running, provider: EveryOperation, session: aiohttp.ClientSession) -> None:
        self.gateway, self.provider, self.session = gateway, provider, session

    async def post(self, path: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> int:
        async with self.session.post(self.gateway.url + path, json=body, headers=headers or {}) as answer:
            await answer.read()
            return answer.status


@asynccontextmanager
async def setting(
    url: str, data: Path, monkeypatch: pytest.MonkeyPatch, *, config: str = CONFIG, hedge: str = "", **more: str
) -> AsyncGenerator[Setting, None]:
    """Run a gateway with telemetry, whose spans are exported at the end. `hedge`: seconds, "" for no hedges. `more`:
    further variables.
    """
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_TIMEOUT": "1", **more}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    async with (
        serve_provider(EveryOperation()) as provider,
        running(
            (config.format(url=provider.url) if config is CONFIG else config) + (HEDGE % hedge if hedge else ""),
            data,
            variables,
        ) as gateway,
        aiohttp.ClientSession(headers=gateway.headers) as session,
    ):
        yield Setting(gateway, provider, session)


async def test_each_call_of_every_operation_has_a_span_and_one_for_its_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with collector() as received:
        async with setting(received.url, tmp_path, monkeypatch) as made:
            assert await made.post("/v1/chat/completions", CHAT, SAMPLED) == 200
            assert await made.post("/v1/chat/completions", {**CHAT, "stream": True}) == 200
            assert await made.post("/v1/embeddings", {"model": "m", "input": SECRET}) == 200
            assert await made.post("/v1/rerank", {"model": "m", "query": SECRET, "documents": ["d"]}) == 200
            await _generate(made.gateway)
            sent = [request.headers["traceparent"] for request in made.provider.received]
            port = int(made.provider.url.rpartition(":")[2])
        assert received.resource["service.name"] == "unified-model-gateway"
        assert received.resource["service.instance.id"]
        assert [span.name.rpartition("/")[2] for span in received.calls] == [
            *("Generate", "StreamGenerate", "Embed", "Rerank", "Generate")
        ]
        assert [span.name for span in received.attempts] == [
            *("chat real", "chat real", "embeddings real", "rerank real", "chat real")
        ]
        for call, attempt, parent in zip(received.calls, received.attempts, sent, strict=True):
            assert (attempt.trace_id, attempt.parent_id, attempt.kind) == (call.trace_id, call.span_id, "CLIENT")
            assert parent == f"00-{attempt.trace_id}-{attempt.span_id}-01"
            assert attempt.attributes["server.port"] == port
            assert attempt.attributes["umg.attempt.outcome"] == "ok"
            assert call.seconds >= attempt.seconds > 0
        first = received.calls[0]
        assert (first.trace_id, first.parent_id) == (TRACE_ID, SPAN_ID)
        assert len({span.trace_id for span in received.calls}) == 5
        _check_attributes(received)
        _check_metrics(received)
        assert SECRET not in repr(received)


SIMULATED = """
channels: [{name: sandbox, protocols: [sandbox], pace: 0, models: [famO-5, imgA-3-0-t2i-250415, imgC-1, clips-1]}]
models: {clips-1: {capabilities: {operations: [videos]}}}
"""


async def test_attempts_of_images_and_videos_have_the_names_of_their_operations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with collector() as received:
        async with setting(received.url, tmp_path, monkeypatch, config=SIMULATED) as made:
            assert await made.post("/v1/images/generations", {"model": "imgA-3-0-t2i-250415", "prompt": SECRET}) == 200
            edit = {"model": "imgC-1", "prompt": SECRET, "image": base64.b64encode(PNG).decode()}
            assert await made.post("/v1/images/edits", edit) == 200
            count = {"model": "famO-5", "messages": CHAT["messages"]}
            assert await made.post("/v1/messages/count_tokens", count) == 200
            task_id = await _make_video(made)
            assert await made.post(f"/v1/videos/{task_id}/remix", {"prompt": SECRET}) == 200
        assert [span.name for span in received.attempts] == [
            "generate_content imgA-3-0-t2i-250415",
            "generate_content imgC-1",
            "create_video clips-1",
            "remix_video clips-1",
        ]
        names = [span.attributes["gen_ai.operation.name"] for span in received.attempts]
        assert names == ["generate_content", "generate_content", "create_video", "remix_video"]
        assert {name: sum(count for _, count in series) for name, series in received.metrics.items()} == {
            "umg.client.images.duration": 2,
            "umg.client.videos.duration": 2,
        }
        assert SECRET not in repr(received)


async def _make_video(made: Setting) -> str:
    async with made.session.post(
        f"{made.gateway.url}/v1/videos", json={"model": "clips-1", "prompt": SECRET}
    ) as answer:
        task_id: str = (await answer.json())["id"]
    async with grpc.aio.insecure_channel(made.gateway.grpc) as channel:
        watch = rpc.VideoServiceStub(channel).WatchVideoTask(
            pb.WatchVideoTaskRequest(task_id=task_id), metadata=[("authorization", f"Bearer {made.gateway.key}")]
        )
        *_, last = [message.task.state async for message in watch]
    assert last == pb.VIDEO_TASK_STATE_SUCCEEDED
    return task_id


async def _generate(gateway: Running) -> None:
    parts = [pb.Part(text=pb.TextPart(text=SECRET))]
    request = pb.GenerateRequest(model="m", messages=[pb.Message(role=pb.ROLE_USER, parts=parts)])
    async with grpc.aio.insecure_channel(gateway.grpc) as channel:
        metadata = [("authorization", f"Bearer {gateway.key}")]
        await rpc.GenerationServiceStub(channel).Generate(request, metadata=metadata)


def _check_attributes(received: Collector) -> None:
    chat, stream, embedding, ranking, _ = received.attempts
    assert (
        chat.attributes.items()
        >= {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": "real",
            "gen_ai.request.temperature": 0.5,
            "gen_ai.response.id": "c-1",
            "gen_ai.usage.input_tokens": 11,
            "gen_ai.usage.output_tokens": 7,
            "server.address": "127.0.0.1",
            "umg.channel": "main",
        }.items()
    )
    assert stream.attributes["gen_ai.request.stream"] is True
    assert stream.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    assert 0 < stream.attributes["gen_ai.response.time_to_first_chunk"] <= stream.seconds
    assert stream.attributes["gen_ai.usage.output_tokens"] == 7
    assert embedding.attributes["gen_ai.usage.input_tokens"] == 3
    assert ranking.attributes["gen_ai.operation.name"] == "rerank"
    call = received.calls[0].attributes
    assert (call["rpc.method"], call["rpc.response.status_code"]) == ("umg.v1.GenerationService/Generate", "OK")
    assert (call["umg.model"], call["umg.channel"], call["umg.face"]) == ("m", "main", "chat")


def _check_metrics(received: Collector) -> None:
    counts = {name: sum(count for _, count in series) for name, series in received.metrics.items()}
    assert counts == {
        "gen_ai.client.inference.duration": 3,
        "gen_ai.client.inference.time_to_first_chunk": 1,
        "gen_ai.client.inference.usage.input_tokens": 33,
        "gen_ai.client.inference.usage.output_tokens": 21,
        "gen_ai.client.embeddings.duration": 1,
        "umg.client.rerank.duration": 1,
    }
    [(attributes, _)] = received.metrics["gen_ai.client.embeddings.duration"]
    assert attributes.keys() == {
        *("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "server.address", "server.port")
    }


@pytest.mark.parametrize("stream", [False, True])
async def test_each_attempt_of_a_call_has_a_span_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    async with collector() as received:
        async with setting(received.url, tmp_path, monkeypatch) as made:
            made.provider.failures = [500, 401]
            assert await made.post("/v1/chat/completions", {**CHAT, "stream": stream}) == 200
            sent = [request.headers["traceparent"] for request in made.provider.received]
        [call] = received.calls
        assert call.attributes["umg.attempts"] == 3
        assert not call.is_error
        assert [_fact(span) for span in received.attempts] == [
            ("main", "transient", "server_error", 500, True),
            ("spare", "down", "wrong_key", 401, True),
            ("main", "ok", None, None, False),
        ]
        assert {span.parent_id for span in received.attempts} == {call.span_id}
        assert sent == [f"00-{span.trace_id}-{span.span_id}-01" for span in received.attempts]
        [used] = [span for span in received.attempts if "gen_ai.usage.input_tokens" in span.attributes]
        assert used is received.attempts[-1]
        durations = received.metrics["gen_ai.client.inference.duration"]
        assert sorted(str(series.get("error.type")) for series, _ in durations) == ["None", "server_error", "wrong_key"]


def _fact(span: ReceivedSpan) -> tuple[Any, ...]:
    found = span.attributes
    names = ("umg.channel", "umg.attempt.outcome", "error.type", "http.response.status_code")
    return (*(found.get(name) for name in names), span.is_error)


@pytest.mark.parametrize("stream", [False, True])
async def test_both_attempts_of_a_hedged_call_have_a_span(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    async with collector() as received:
        async with setting(received.url, tmp_path, monkeypatch, hedge="0.05") as made:
            made.provider.silent = 1
            assert await made.post("/v1/chat/completions", {**CHAT, "stream": stream}) == 200
            sent = [request.headers["traceparent"] for request in made.provider.received]
        [call] = received.calls
        facts = {(*_fact(span)[:2], "gen_ai.usage.input_tokens" in span.attributes) for span in received.attempts}
        assert facts == {("main", "ambiguous", False), ("spare", "ok", True)}
        assert {span.parent_id for span in received.attempts} == {call.span_id}
        assert set(sent) == {f"00-{span.trace_id}-{span.span_id}-01" for span in received.attempts}
        assert len(set(sent)) == 2


async def test_a_caller_that_leaves_ends_both_spans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with collector() as received:
        async with setting(received.url, tmp_path, monkeypatch) as made:
            made.provider.silent = 1
            call = asyncio.create_task(made.post("/v1/chat/completions", {**CHAT, "stream": True}))
            await made.provider.stalled.wait()
            call.cancel()
            await asyncio.wait({call})
        assert [span.attributes["error.type"] for span in received.calls] == ["CANCELLED"]
        assert [_fact(span)[:2] for span in received.attempts] == [("main", "left")]


async def test_the_span_of_a_failed_call_has_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with collector() as received:
        async with setting(received.url, tmp_path, monkeypatch) as made:
            assert await made.post("/v1/chat/completions", {**CHAT, "model": "none"}, SAMPLED) == 404
            made.provider.failures = [500] * 9
            assert await made.post("/v1/chat/completions", CHAT) == 502
        unknown, failed = received.calls
        assert (unknown.attributes["error.type"], unknown.is_error) == ("MODEL_NOT_FOUND", False)
        assert (failed.attributes["error.type"], failed.is_error) == ("UPSTREAM_FAILED", True)


async def test_a_trace_that_its_caller_does_not_sample_is_not_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with collector() as received:
        async with setting(received.url, tmp_path, monkeypatch) as made:
            unsampled = {"traceparent": f"00-{TRACE_ID}-{SPAN_ID}-00"}
            assert await made.post("/v1/chat/completions", CHAT, unsampled) == 200
            [sent] = [request.headers["traceparent"] for request in made.provider.received]
        assert received.spans == []
        assert sent.startswith(f"00-{TRACE_ID}-")
        assert sent.endswith("-00")


async def test_a_collector_on_this_machine_has_no_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with collector() as received:
        async with setting(received.url, tmp_path, monkeypatch, **NOWHERE) as made:
            assert await made.post("/v1/chat/completions", CHAT) == 200
        assert len(received.calls) == 1
        assert received.metrics


async def test_a_collector_that_does_not_answer_affects_no_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as closed:  # bound, and never listening
        closed.bind(("127.0.0.1", 0))
        async with setting(f"http://127.0.0.1:{closed.getsockname()[1]}", tmp_path, monkeypatch) as made:
            statuses = [await made.post("/v1/chat/completions", CHAT) for _ in range(20)]
            began = time.monotonic()
        assert statuses == [200] * 20
        assert time.monotonic() - began < 10


def redact(text: str) -> str:
    return text.replace("private", "[redacted]")


def fail_to_redact(text: str) -> str:
    raise RuntimeError(text)


REDACTED = {"role": "user", "parts": [{"type": "text", "content": "a prompt that is [redacted]"}]}
HELLO = [{"role": "assistant", "parts": [{"type": "text", "content": "Hello"}], "finish_reason": "stop"}]


async def test_content_is_recorded_on_demand_and_redacted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turn = {"role": "user", "content": "a prompt that is private"}
    chat = {"model": "m", "messages": [{"role": "system", "content": "Be kind"}, turn]}
    messages = {"model": "m", "max_tokens": 9, "system": "Be kind", "messages": [turn]}
    variables = {CAPTURE_VARIABLE: "true", REDACT_VARIABLE: f"{__name__}:redact"}
    async with collector() as received:
        async with setting(received.url, tmp_path, monkeypatch, **variables) as made:
            for path, body in (("/v1/chat/completions", chat), ("/v1/messages", messages)):
                for stream in (False, True):
                    assert await made.post(path, {**body, "stream": stream}) == 200
        for span in received.attempts:
            prompt = json.loads(span.attributes["gen_ai.input.messages"])
            assert prompt[-1] == REDACTED
            instructions = span.attributes.get("gen_ai.system_instructions")
            assert (len(prompt), instructions is not None) in {(2, False), (1, True)}
            assert json.loads(span.attributes["gen_ai.output.messages"]) == HELLO
        assert len(received.attempts) == 4
        assert "private" not in repr(received)


async def test_a_redaction_that_fails_leaves_the_content_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {CAPTURE_VARIABLE: "true", REDACT_VARIABLE: f"{__name__}:fail_to_redact"}
    async with collector() as received:
        with capture_logs() as lines:
            async with setting(received.url, tmp_path, monkeypatch, **variables) as made:
                assert await made.post("/v1/chat/completions", CHAT) == 200
        assert "content of a span is left out" in repr(lines)
        assert SECRET not in repr(lines) + repr(received)


@pytest.mark.parametrize("hook", ["none.there:redact", "json:none", "json", ":"])
async def test_a_redaction_hook_that_is_not_there_prevents_the_start(hook: str) -> None:
    with pytest.raises(UmgError, match="expected MODULE:FUNCTION"):
        async with open_telemetry(
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", CAPTURE_VARIABLE: "true", REDACT_VARIABLE: hook}
        ):
            pass


async def test_telemetry_is_off_without_a_collector_or_its_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    collected = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
    off: list[dict[str, str]] = [{}, {**collected, "OTEL_SDK_DISABLED": "true"}]
    for environment in off:
        async with open_telemetry(environment) as telemetry:
            assert telemetry is None
    with capture_logs() as lines:
        async with open_telemetry({**collected, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}) as telemetry:
            assert telemetry is None
        monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
        async with open_telemetry(collected) as telemetry:
            assert telemetry is None
    assert [line.get("expected") or line["install"] for line in lines] == [
        "grpc",
        "pip install 'unified-model-gateway[otel]'",
    ]

"""Reasoning state that a chat provider returns in members of its own, and requires in the next request: for callers of
every format, over sockets.
"""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.pairs.table import TEXT_FACES
from tests.support.gateways import Running, channel, running
from tests.support.providers.server import ReceivedRequest, RecordingProvider, Written, serve_provider
from tests.unit.wire.accumulate import accumulate
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.gateway_headers import DROPPED_HEADER
from umg_grpc.wire.text_format_interface import TextFormat

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
CALL = {"id": "call_77", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'}}


@dataclass(frozen=True)
class Carrier:
    """Message of a provider that calls a tool, and the members that it requires in the next request."""

    id: str
    message: dict[str, Any]
    required: dict[str, Any]


ENCRYPTED = {"type": "reasoning.encrypted", "data": "RU5D", "id": "call_77", "format": "google-gemini-v1", "index": 0}
SIGNED = {"type": "reasoning.text", "text": "I think", "signature": "U0lH", "format": "anthropic-claude-v1", "index": 0}
THINKING = {"type": "thinking", "thinking": "I think", "signature": "U0lH"}
SIGNED_CALL = CALL | {"provider_specific_fields": {"thought_signature": "U0lH"}}
G_CALL = CALL | {"extra_content": {"google": {"thought_signature": "U0lH"}}}
CARRIERS = [
    Carrier(
        id="encrypted reasoning",
        message={"reasoning": "I think", "reasoning_details": [ENCRYPTED]},
        required={"reasoning_details": [ENCRYPTED], "reasoning": "I think"},
    ),
    Carrier(
        id="signed text",
        message={"reasoning": "I think", "reasoning_details": [SIGNED]},
        required={"reasoning_details": [SIGNED], "reasoning": "I think"},
    ),
    Carrier(
        id="encrypted reasoning without a text",
        message={"reasoning_details": [ENCRYPTED]},
        required={"reasoning_details": [ENCRYPTED]},
    ),
    Carrier(
        id="thinking blocks",
        message={"reasoning_content": "I think", "thinking_blocks": [THINKING]},
        required={"thinking_blocks": [THINKING]},
    ),
    Carrier(
        id="opaque reasoning",
        message={"reasoning_text": "I think", "reasoning_opaque": "T1BB"},
        required={"reasoning_text": "I think", "reasoning_opaque": "T1BB"},
    ),
    Carrier(
        id="a signature of the call",
        message={"tool_calls": [SIGNED_CALL]},
        required={"tool_calls": [SIGNED_CALL]},
    ),
    Carrier(
        id="vendor G's signature of the call",
        message={"tool_calls": [G_CALL]},
        required={"tool_calls": [G_CALL]},
    ),
]


def provider_of(carrier: Carrier) -> RecordingProvider:
    """Return a provider that calls a tool in every answer."""
    message = {"role": "assistant", "content": None, "tool_calls": [CALL], **carrier.message}

    def respond(received: ReceivedRequest) -> Written:
        head = {"id": "chatcmpl-1", "created": 1, "model": "m"}
        if not received.json.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
            return json.dumps(head | {"object": "chat.completion", "choices": [choice]}).encode()
        calls = [{"index": 0, **call} for call in message["tool_calls"]]
        thoughts = {name: value for name, value in message.items() if name not in {"tool_calls", "content", "role"}}
        deltas = [{"role": "assistant", "content": ""}, thoughts, {"tool_calls": calls}]
        choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
        chunks = [json.dumps(head | {"object": "chat.completion.chunk", "choices": [choice]}) for choice in choices]
        text = "".join(f"data: {data}\n\n" for data in [*chunks, "[DONE]"])
        return web.Response(text=text, content_type="text/event-stream")

    return RecordingProvider(respond=respond)


def conversation(parts: Sequence[pb.Part] = ()) -> pb.GenerateRequest:
    """Return the first request, or the next one with these parts of the response and the result of its call."""
    request = pb.GenerateRequest(model="m", max_output_tokens=100, include=["reasoning.encrypted_content"])
    request.tools.add().function.name = "get_weather"
    request.tools[0].function.parameters_json = '{"type":"object","properties":{"city":{"type":"string"}}}'
    request.messages.add(role=pb.ROLE_USER).parts.add().text.text = "hi"
    if parts:
        request.messages.add(role=pb.ROLE_ASSISTANT, parts=parts)
        result = request.messages.add(role=pb.ROLE_TOOL).parts.add().tool_result
        result.call_id, result.name = "call_77", "get_weather"
        result.parts.add().text.text = "5 C"
    return request


async def answer(
    gateway: Running, face: TextFormat, request: pb.GenerateRequest, *, stream: bool
) -> tuple[list[pb.Part], str]:
    """Return the parts of the response to a caller of the format, as its client decodes them, and the drops."""
    body = json.loads(face.encode_request(request, "m", stream).body)
    if face.name != "responses":
        body.pop("include", None)
    path = (
        PATHS.get(face.name) or f"/v1beta/models/m:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"
    )
    async with (
        aiohttp.ClientSession(gateway.url, headers=gateway.headers) as session,
        session.post(path, json=body) as reply,
    ):
        received = await reply.read()
        assert reply.status == 200, received
    dropped = reply.headers.get(DROPPED_HEADER, "")
    if not stream:
        return list(face.decode_response(received, request, False).candidates[0].message.parts), dropped
    decoder = face.translating_decoder(request)
    messages = [message for message in (decoder.feed(received), decoder.close()) if message is not None]
    return list(accumulate(messages).candidates[0].message.parts), dropped


def without_states(parts: Sequence[pb.Part], *, text: bool) -> list[pb.Part]:
    """Return the calls, as clients keep them that do not know reasoning state. `text`: whether they keep the text of
    the reasoning.
    """
    kept = list[pb.Part]()
    for part in parts:
        if part.HasField("tool_call"):
            kept.append(pb.Part(tool_call=part.tool_call))
        elif text and any(part.reasoning.texts):
            kept.append(pb.Part(reasoning=part.reasoning))
    return kept


PAIRS = list(itertools.product(TEXT_FACES, [False, True], ["everything", "texts", "calls"]))


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda carrier: carrier.id)
async def test_the_next_request_has_the_state_of_the_answer(tmp_path: Path, carrier: Carrier) -> None:
    async with (
        serve_provider(provider_of(carrier)) as provider,
        running("channels:\n" + channel("c", "chat", provider.url, "m"), tmp_path) as gateway,
    ):
        for case in PAIRS:
            face, stream, returned = case
            parts, _ = await answer(gateway, TEXT_FORMATS[face], conversation(), stream=stream)
            kept = parts if returned == "everything" else without_states(parts, text=returned == "texts")
            _, dropped = await answer(gateway, TEXT_FORMATS[face], conversation(kept), stream=stream)
            sent = provider.received[-1].json["messages"][1]
            assert {name: sent.get(name) for name in carrier.required} == carrier.required, case
            assert "state" not in dropped, case
            assert "thinking" not in dropped, case


@pytest.mark.parametrize("carrier", CARRIERS, ids=lambda carrier: carrier.id)
async def test_a_continued_response_has_the_state_of_the_stored_one(tmp_path: Path, carrier: Carrier) -> None:
    tools = [{"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}]
    result = {"type": "function_call_output", "call_id": "call_77", "output": "5 C"}
    async with (
        serve_provider(provider_of(carrier)) as provider,
        running("channels:\n" + channel("c", "chat", provider.url, "m"), tmp_path) as gateway,
        aiohttp.ClientSession(gateway.url, headers=gateway.headers) as session,
    ):
        body: dict[str, object] = {"model": "m", "input": "hi", "tools": tools}
        async with session.post(PATHS["responses"], json=body) as reply:
            first = await reply.json()
        body = {"model": "m", "previous_response_id": first["id"], "input": [result], "tools": tools}
        async with session.post(PATHS["responses"], json=body) as reply:
            assert reply.status == 200, await reply.text()
    sent = provider.received[-1].json["messages"][1]
    assert {name: sent.get(name) for name in carrier.required} == carrier.required

"""Ids of tool calls of providers that count from `call_0` again in every answer, for all pairs of formats."""

import itertools
import json
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import msgspec
import pytest
from aiohttp import web

from tests.pairs.table import TEXT_FACES, TEXT_PROVIDERS
from tests.support.gateways import Running, channel, running
from tests.support.providers.server import ReceivedRequest, RecordingProvider, Written, serve_provider
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.core.tool_call_id_pairing import conversation_ids, original_id, unused_id
from umg_grpc.wire.text_format_interface import TextFormat

SECOND = "call_second"
FIRST, RENAMED, THIRD = "call_0", "call_0_umg_repeat2", "call_0_umg_repeat3"
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}


def weather_call(call_id: str, city: str) -> pb.Part:
    return pb.Part(
        tool_call=pb.ToolCall(call_id=call_id, name="get_weather", arguments_json=json.dumps({"city": city}))
    )


def conversation(*ids: str) -> pb.GenerateRequest:
    """Return a request whose conversation has one responseed call for each of the ids."""
    request = pb.GenerateRequest(model="m", max_output_tokens=100)
    request.tools.add().function.name = "get_weather"
    request.tools[0].function.parameters_json = '{"type":"object","properties":{"city":{"type":"string"}}}'
    request.messages.add(role=pb.ROLE_USER).parts.add().text.text = "hi"
    for call_id in ids:
        request.messages.add(role=pb.ROLE_ASSISTANT).parts.append(weather_call(call_id, "Oslo"))
        result = request.messages.add(role=pb.ROLE_TOOL).parts.add().tool_result
        result.call_id, result.name = call_id, "get_weather"
        result.parts.add().text.text = "5"
    return request


def provider_of(protocol: TextFormat) -> RecordingProvider:
    """Return a provider that answers every request by a call with the id `call_0`."""
    response = pb.GenerateResponse(response_id="r1", model="m", create_time={"seconds": 1})
    candidate = response.candidates.add(finish_reason=pb.FINISH_REASON_TOOL_CALLS)
    candidate.message.role = pb.ROLE_ASSISTANT
    candidate.message.parts.append(weather_call(FIRST, "Rome"))
    response.usage.input_tokens = response.usage.output_tokens = 5

    def respond(received: ReceivedRequest) -> Written:
        if not (received.json.get("stream") or "streamGenerateContent" in received.path):
            return protocol.encode_response(response, pb.GenerateRequest())
        encoder = protocol.stream_encoder(pb.GenerateRequest())
        body = encoder.feed(response_to_events(response)) + encoder.close()
        return web.Response(body=body, content_type="text/event-stream")

    return RecordingProvider(respond=respond)


async def answered_ids(gateway: Running, face: TextFormat, request: pb.GenerateRequest, *, stream: bool) -> list[str]:
    """Return the ids of the calls in the response to a request of a caller of the format `face`."""
    encoded = face.encode_request(request, "m", stream).body
    body = msgspec.json.decode(encoded.replace(SECOND.encode(), RENAMED.encode()))  # an encoder would map it back
    path = (
        PATHS.get(face.name) or f"/v1beta/models/m:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"
    )
    async with (
        aiohttp.ClientSession(gateway.url, headers=gateway.headers) as session,
        session.post(path, json=body) as answer,
    ):
        received = await answer.read()
        assert answer.status == 200, received
    decoded_parts = list[pb.Part]()
    if stream:
        decoder = face.translating_decoder(request)
        events = [event for message in (decoder.feed(received), decoder.close()) if message for event in message.events]
        decoded_parts = [event.part_started for event in events if event.HasField("part_started")]
    else:
        decoded = face.decode_response(received, request, False)
        decoded_parts = list(decoded.candidates[0].message.parts)
    return [part.tool_call.call_id for part in decoded_parts if part.HasField("tool_call")]


PAIRS = list(itertools.product(TEXT_FACES, TEXT_PROVIDERS))


@pytest.mark.parametrize("stream", [False, True], ids=["unary", "stream"])
@pytest.mark.parametrize(("face", "protocol"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
async def test_a_repeated_id_is_renamed_for_the_caller_and_mapped_back_for_the_provider(
    tmp_path: Path, face: str, protocol: str, *, stream: bool
) -> None:
    codec, upstream = TEXT_FORMATS[face], TEXT_FORMATS[protocol]
    async with serve_provider(provider_of(upstream)) as provider:
        config = "channels:\n" + channel("c", protocol, provider.url, "m")
        async with running(config, tmp_path) as gateway:
            assert await answered_ids(gateway, codec, conversation(), stream=stream) == [FIRST]
            assert await answered_ids(gateway, codec, conversation(FIRST), stream=stream) == [RENAMED]
            assert await answered_ids(gateway, codec, conversation(FIRST, SECOND), stream=stream) == [THIRD]
    sent = upstream.decode_request(provider.received[-1].body, {}, "m").canonical
    # providers of messages reject an id that is used twice
    expected = {FIRST, RENAMED} if protocol == "messages" else {FIRST}
    assert conversation_ids(sent) == expected


@dataclass(frozen=True)
class Id:
    id: str
    call_id: str
    original: str


IDS = [
    Id("a provider's id", "call_9", "call_9"),
    Id("a renamed id", "call_9_umg_repeat2", "call_9"),
    Id("an id that was renamed by two gateways", "c_umg_repeat2_umg_repeat3", "c_umg_repeat2"),
    Id("an end without a number", "call_umg_repeat", "call_umg_repeat"),
    Id("an end without an id", "_umg_repeat2", "_umg_repeat2"),
]


@pytest.mark.parametrize("case", IDS, ids=lambda case: case.id)
def test_the_end_of_a_renamed_id_is_removed(case: Id) -> None:
    assert original_id(case.call_id) == case.original


def test_an_id_gets_the_first_number_that_is_free() -> None:
    assert unused_id("a", {"b"}) == "a"
    assert unused_id("a", {"a", "a_umg_repeat2"}) == "a_umg_repeat3"


@pytest.mark.parametrize("protocol", ["chat", "responses"])
async def test_an_id_of_an_earlier_response_is_not_repeated_in_the_one_that_continues_it(
    tmp_path: Path, protocol: str
) -> None:
    tools = [{"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}]
    async with (
        serve_provider(provider_of(TEXT_FORMATS[protocol])) as provider,
        running("channels:\n" + channel("c", protocol, provider.url, "m"), tmp_path) as gateway,
        aiohttp.ClientSession(gateway.url, headers=gateway.headers) as session,
    ):
        body: dict[str, object] = {"model": "m", "tools": tools, "input": "hi"}
        ids = []
        for _ in range(3):
            async with session.post(PATHS["responses"], json=body) as answer:
                answered = await answer.json()
            ids.append(answered["output"][0]["call_id"])
            output = {"type": "function_call_output", "call_id": ids[-1], "output": "5"}
            body = {"model": "m", "tools": tools, "input": [output], "previous_response_id": answered["id"]}
    assert ids == [FIRST, RENAMED, THIRD]

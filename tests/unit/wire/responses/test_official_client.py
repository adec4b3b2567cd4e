"""Our answers as the openai package reads them, over a real connection."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from openai import APIError, AsyncOpenAI, omit
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from tests.unit.wire.responses import strategies as some
from tests.unit.wire.responses.streams import encoded, payloads_of
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.responses import RESPONSES_FORMAT, stored_responses

ANSWER = pb.GenerateResponse(
    response_id="resp_1",
    model="m",
    create_time={"seconds": 7},
    usage=pb.Usage(input_tokens=3, output_tokens=4, reasoning_tokens=2),
    candidates=[
        pb.Candidate(
            finish_reason=pb.FINISH_REASON_TOOL_CALLS,
            message=pb.Message(
                role=pb.ROLE_ASSISTANT,
                parts=[
                    pb.Part(reasoning=pb.ReasoningPart(texts=["Let me think"])),
                    pb.Part(text=pb.TextPart(text="It rains \U0001f327")),
                    pb.Part(tool_call=pb.ToolCall(call_id="c1", name="f", arguments_json='{"a":1}')),
                    pb.Part(tool_call=pb.ToolCall(call_id="c2", name="g", arguments_json="{}")),
                ],
            ),
        )
    ],
)


async def answer(request: web.Request) -> web.StreamResponse:
    """Respond as a face of this format that gives one response."""
    canonical, stream, _ = RESPONSES_FORMAT.decode_request(await request.read(), {})
    if not stream:
        return web.Response(body=RESPONSES_FORMAT.encode_response(ANSWER, canonical), content_type="application/json")
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    encoder = RESPONSES_FORMAT.stream_encoder(canonical)
    frames = RESPONSES_FORMAT.heartbeat + encoder.feed(response_to_events(ANSWER)) + RESPONSES_FORMAT.heartbeat
    if canonical.user == "fail":
        frames += encoder.error(UmgError(pb.ERROR_REASON_UPSTREAM_CUT, "the stream broke off"))
    else:
        frames += encoder.close()
    for at in range(0, len(frames), 97):
        await response.write(frames[at : at + 97])
    return response


async def get(request: web.Request) -> web.Response:
    kept = pb.StoredResponse(response=ANSWER, request=pb.GenerateRequest(model="m"))
    if request.query.get("stream") == "true":
        return web.Response(body=stored_responses.encode_events(kept), content_type="text/event-stream")
    return web.Response(body=stored_responses.encode_stored(kept), content_type="application/json")


@pytest.fixture
async def client() -> AsyncIterator[AsyncOpenAI]:
    app = web.Application()
    app.router.add_post("/v1/responses", answer)
    app.router.add_get("/v1/responses/resp_1", get)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        async with AsyncOpenAI(base_url=f"http://{host}:{port}/v1", api_key="k", max_retries=0) as openai:
            yield openai
    finally:
        await runner.cleanup()


TOOLS = [{"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}, "strict": False} for name in "fg"]  # fmt: skip


async def test_an_answer_is_decoded_equally_streamed_and_unstreamed(client: AsyncOpenAI) -> None:
    whole = await client.responses.create(model="m", input="Hi", tools=TOOLS)
    async with client.responses.stream(model="m", input="Hi", tools=TOOLS) as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()
    assert whole.output_text == final.output_text == "It rains \U0001f327"
    read = [event async for event in await client.responses.create(model="m", input="Hi", tools=TOOLS, stream=True)]
    assert [(event.type, event.response.output) for event in read[-1:]] == [("response.completed", whole.output)]
    assert (whole.usage, final.usage and final.usage.total_tokens) == (final.usage, 7)
    assert [kinds[0], kinds[-1]] == ["response.created", "response.completed"]


async def test_an_error_in_the_middle_is_the_clients_own(client: AsyncOpenAI) -> None:
    stream = await client.responses.create(model="m", input="Hi", stream=True, user="fail")
    with pytest.raises(APIError, match="the stream broke off"):
        async for _ in stream:
            pass


async def test_a_stored_response_is_encoded_from_its_record(client: AsyncOpenAI) -> None:
    found = await client.responses.retrieve("resp_1")
    events = [event async for event in await client.responses.retrieve("resp_1", stream=True)]
    assert events[-1].type == "response.completed"
    assert events[-1].response == found


EVENT: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(some.responses())
def test_every_event_is_one_of_the_official_types_and_the_helper_takes_them_all(response: pb.GenerateResponse) -> None:
    state = ResponseStreamState(input_tools=omit, text_format=omit)
    for payload in payloads_of(encoded([response_to_events(response)], some.ANSWERED)):
        state.handle_event(EVENT.validate_python(payload, strict=True))
    whole = response.candidates[0].finish_reason not in (pb.FINISH_REASON_LENGTH, pb.FINISH_REASON_CONTENT_FILTER)
    assert (state._completed_response is not None) == whole

"""From a face to a provider of its format and back, only necessary changes are made: all other bytes are equal."""

import json
from collections.abc import AsyncGenerator, Iterator
from itertools import cycle
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.pairs.matrix.agents import AGENTS, BYTES
from tests.pairs.table import TEXT_FACES, every_face
from tests.support.callers.requests import Json, Request
from tests.support.providers.scenarios import CITY_SCHEMA, PNG
from tests.support.recorded_gateway import RecordedGateway, recorded_gateway
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.response_to_events import response_to_events

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RecordedGateway, None]:
    async with recorded_gateway(tmp_path_factory.mktemp("same")) as made:
        yield made


PLAIN = pb.GenerateResponse(
    response_id="resp_1",
    model="theirs",
    candidates=[
        pb.Candidate(
            message=pb.Message(
                role=pb.ROLE_ASSISTANT,
                parts=[
                    pb.Part(text=pb.TextPart(text="Grüezi \U0001f30d")),
                    pb.Part(tool_call=pb.ToolCall(call_id="call_1", name="f", arguments_json='{"a":1.0}')),
                ],
            ),
            finish_reason=pb.FINISH_REASON_TOOL_CALLS,
        )
    ],
    usage=pb.Usage(input_tokens=3, output_tokens=5),
)
PLAIN.create_time.seconds = 1_700_000_000
WITH_USAGE = pb.GenerateRequest(model="theirs", face_hints=pb.FaceHints(include_usage=True))


def whole(face: str) -> bytes:
    return TEXT_FORMATS[face].encode_response(PLAIN, WITH_USAGE)


def streamed(face: str) -> bytes:
    encoder = TEXT_FORMATS[face].stream_encoder(WITH_USAGE)
    return encoder.feed(response_to_events(PLAIN)) + encoder.close()


def fields(body: bytes, *less: str) -> dict[str, bytes]:
    """Return the members of a body, each to the byte."""
    read = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    return {name: bytes(value) for name, value in read.items() if name not in less}


@every_face
async def test_two_megabytes_of_a_coding_agent_arrive_as_they_were_sent(gateway: RecordedGateway, face: str) -> None:
    body = AGENTS[face](f"m-{face}")
    assert len(body) >= BYTES
    gateway.provider.received.clear()
    gateway.set_answer(whole(face))
    got = await gateway.caller.send(face, f"m-{face}", body)
    assert got.status == 200, got.body
    assert "x-umg-dropped" not in got.headers
    [arrived] = [request.body for request in gateway.provider.received]
    if face == "native":
        assert arrived == body
    else:
        assert fields(arrived, "model", "stream") == fields(body, "model")
        assert json.loads(arrived)["model"] == "theirs"


BETAS = {
    "messages": {"anthropic-beta": "context-1m-2025-08-07,interleaved-thinking-2025-05-14", "anthropic-version": "2023-06-01"},
    "chat": {"openai-beta": "assistants=v2"},
    "responses": {"openai-beta": "responses=v1"},
}  # fmt: skip


@pytest.mark.parametrize("face", BETAS)
async def test_headers_that_change_the_meaning_of_a_body_are_passed_on(gateway: RecordedGateway, face: str) -> None:
    gateway.provider.received.clear()
    gateway.set_answer(whole(face))
    got = await gateway.caller.send(face, f"m-{face}", TEXT_FACES[face].body(Request("hi"), f"m-{face}"), **BETAS[face])
    assert got.status == 200, got.body
    arrived = gateway.provider.received[0].headers
    assert {name: arrived.get(name) for name in BETAS[face]} == BETAS[face]


REQUESTS = (
    Request("hi", system="Be brief.", history=(("user", "one"), ("assistant", "two"))),
    Request("hi", image=PNG, tools=("get_weather",), reasoning=True),
    Request("hi", schema=CITY_SCHEMA, stop="END"),
)
# Members that cannot name an object in the provider's account, as `x_id` could, which the gateway would reject. Hypothesis
# draws texts of any alphabet from the constants of the code too, `cached_content` among them.
names = st.text("abcdefghjk", min_size=1, max_size=8).map("x_".__add__)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text('ab é"\\\n\u2028😀', max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
modest = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)


def objects(value: Any) -> Iterator[Json]:
    """Yield every object in a document."""
    if isinstance(value, dict):
        yield value
        for each in list(value.values()):
            yield from objects(each)
    if isinstance(value, list):
        for each in value:
            yield from objects(each)


def sprinkle(document: Json | list[Json], data: st.DataObject) -> None:
    """Add unknown members at every level.

    The levels take turns with a few members, as many draws take long; the names differ at each level.
    """
    members = cycle(data.draw(st.lists(st.dictionaries(names, json_values, max_size=1), min_size=2, max_size=8)))
    for level, (each, added) in enumerate(zip(list(objects(document)), members, strict=False)):
        each.update({f"{name}_{level}": value for name, value in added.items()})


def written(document: Json, data: st.DataObject) -> bytes:
    """Serialize the document with random spacing and escapes, as clients may."""
    spaces = data.draw(st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")]))
    return json.dumps(document, separators=spaces, ensure_ascii=data.draw(st.booleans())).encode()


@every_face
@modest
@given(data=st.data())
async def test_unknown_fields_of_a_request_are_passed_through_at_every_level(
    gateway: RecordedGateway, face: str, data: st.DataObject
) -> None:
    document = json.loads(json.dumps(TEXT_FACES[face].body(data.draw(st.sampled_from(REQUESTS)), f"m-{face}")))
    sprinkle(document, data)
    body = written(document, data)
    gateway.provider.received.clear()
    gateway.set_answer(whole(face))
    got = await gateway.caller.send(face, f"m-{face}", body)
    assert got.status == 200, got.body
    assert fields(gateway.provider.received[0].body, "model", "stream") == fields(body, "model")


@every_face
@modest
@given(data=st.data())
async def test_unknown_fields_of_a_response_are_passed_through_at_every_level(
    gateway: RecordedGateway, face: str, data: st.DataObject
) -> None:
    document = json.loads(whole(face))
    sprinkle(document, data)
    provided = written(document, data)
    gateway.set_answer(provided)
    got = await gateway.caller.send(face, f"m-{face}", TEXT_FACES[face].body(Request("hi"), f"m-{face}"))
    assert got.status == 200, got.body
    named = "modelVersion" if face == "native" else "model"
    assert fields(got.body, named) == fields(provided, named)
    assert json.loads(got.body)[named] == f"m-{face}"


@every_face
@modest
@given(data=st.data())
async def test_unknown_fields_of_a_stream_are_passed_through_at_every_level(
    gateway: RecordedGateway, face: str, data: st.DataObject
) -> None:
    frames = [frame.partition("data: ") for frame in streamed(face).decode().split("\n\n")]
    documents = {at: json.loads(payload) for at, (_, _, payload) in enumerate(frames) if payload not in ("", "[DONE]")}
    sprinkle(list(documents.values()), data)
    payloads = {at: written(document, data).decode() for at, document in documents.items()}
    stream = "\n\n".join(f"{head}{mark}{payloads.get(at, rest)}" for at, (head, mark, rest) in enumerate(frames))
    provided = stream.encode()
    gateway.set_answer(provided)
    body = TEXT_FACES[face].body(Request("hi"), f"m-{face}", stream=True)
    got = await gateway.caller.send(face, f"m-{face}", body, stream=True)
    assert got.status == 200, got.body
    assert events_of(face, got.body) == events_of(face, provided)


def events_of(face: str, stream: bytes) -> list[Any]:
    """Return the events, each with its members to the byte, without the model's name."""
    found: list[Any] = []
    for line in stream.split(b"\n"):
        if not line.startswith(b"data: {"):
            found.append(line)
            continue
        event = fields(line[6:], "model", "modelVersion")
        for inner in ("response", "message"):
            if event.get(inner, b"").startswith(b"{"):
                event[inner] = fields(event[inner], "model")  # type: ignore[assignment]
        found.append(event)
    return found

"""From a face to a provider of its format and back, nothing is changed that need not be: to the byte."""

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import msgspec
import pytest
import pytest_asyncio
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.e2e.gateways import channel, running
from tests.matrix.agents import AGENTS, BYTES
from tests.matrix.calling import Caller
from tests.matrix.faces import FACES, Json, Wish, asked_for_a_stream
from tests.providers.scenarios import CITY_SCHEMA, PNG
from tests.wire.chat.strategies import json_values
from umg_grpc.v1 import pb
from umg_grpc.wire import FORMATS
from umg_grpc.wire.replay import replay

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Echo:
    """A provider that keeps what it gets and answers what it is given."""

    caller: Caller
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    answer: bytes = b""
    stream: bool = False


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def echo(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Echo, None]:
    """A gateway with a channel of each format to one provider."""
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        made = Echo(Caller(session, "", ""))

        async def answer(request: web.Request) -> web.Response:
            made.bodies.append(await request.read())
            made.headers.append({name.lower(): value for name, value in request.headers.items()})
            kind = "text/event-stream" if made.stream else "application/json"
            return web.Response(body=made.answer, content_type=kind)

        app = web.Application(client_max_size=1 << 28)
        app.router.add_post("/{path:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        root = f"http://127.0.0.1:{runner.addresses[0][1]}"
        config = "channels:\n" + "".join(channel(name, name, root, f"m-{name}", "theirs") for name in FACES)
        gateway = await stack.enter_async_context(running(config, tmp_path_factory.mktemp("same")))
        made.caller = Caller(session, gateway.url, gateway.key)
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
ASKED = pb.GenerateRequest(model="theirs", include_usage=True)


def whole(face: str) -> bytes:
    return FORMATS[face].encode_response(PLAIN, ASKED)


def streamed(face: str) -> bytes:
    encoder = FORMATS[face].stream_encoder(ASKED)
    return encoder.feed(replay(PLAIN)) + encoder.close()


def fields(body: bytes, *less: str) -> dict[str, bytes]:
    """The members of a body, each to the byte."""
    read = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    return {name: bytes(value) for name, value in read.items() if name not in less}


@pytest.mark.parametrize("face", FACES)
async def test_two_megabytes_of_a_coding_agent_arrive_as_they_were_sent(echo: Echo, face: str) -> None:
    body = AGENTS[face](f"m-{face}")
    assert len(body) >= BYTES
    echo.bodies.clear()
    echo.answer, echo.stream = whole(face), False
    got = await echo.caller.send(face, f"m-{face}", body)
    assert got.status == 200, got.body
    assert "x-umg-dropped" not in got.headers
    [arrived] = echo.bodies
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
async def test_headers_that_change_what_a_body_means_arrive(echo: Echo, face: str) -> None:
    echo.headers.clear()
    echo.answer, echo.stream = whole(face), False
    got = await echo.caller.send(face, f"m-{face}", FACES[face].body(Wish("hi"), f"m-{face}", None), **BETAS[face])
    assert got.status == 200, got.body
    arrived = echo.headers[0]
    assert {name: arrived.get(name) for name in BETAS[face]} == BETAS[face]


WISHES = (
    Wish("hi", system="Be brief.", history=(("user", "one"), ("assistant", "two"))),
    Wish("hi", image=PNG, tools=("get_weather",), thinking=True),
    Wish("hi", schema=CITY_SCHEMA, stop="END"),
)
names = st.text("abcdefghijk", min_size=1, max_size=8).map("x_".__add__)
modest = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)


def objects(value: Any) -> Iterator[Json]:
    """Every object in a document."""
    if isinstance(value, dict):
        yield value
        for each in list(value.values()):
            yield from objects(each)
    if isinstance(value, list):
        for each in value:
            yield from objects(each)


def sprinkle(document: Json, data: st.DataObject) -> None:
    """Adds unknown members at every level."""
    for each in list(objects(document)):
        each.update(data.draw(st.dictionaries(names, json_values, max_size=1)))


def written(document: Json, data: st.DataObject) -> bytes:
    """As some client would: spaced and escaped in its own way."""
    spaces = data.draw(st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")]))
    return json.dumps(document, separators=spaces, ensure_ascii=data.draw(st.booleans())).encode()


@pytest.mark.parametrize("face", FACES)
@modest
@given(data=st.data())
async def test_what_nobody_knows_arrives_with_the_rest_at_every_level(
    echo: Echo, face: str, data: st.DataObject
) -> None:
    document = json.loads(json.dumps(FACES[face].body(data.draw(st.sampled_from(WISHES)), f"m-{face}", None)))
    sprinkle(document, data)
    body = written(document, data)
    echo.bodies.clear()
    echo.answer, echo.stream = whole(face), False
    got = await echo.caller.send(face, f"m-{face}", body)
    assert got.status == 200, got.body
    assert b"x_" not in echo.bodies[0]


@pytest.mark.parametrize("face", FACES)
@modest
@given(data=st.data())
async def test_what_nobody_knows_comes_back_with_the_rest_at_every_level(
    echo: Echo, face: str, data: st.DataObject
) -> None:
    document = json.loads(whole(face))
    sprinkle(document, data)
    echo.answer, echo.stream = written(document, data), False
    got = await echo.caller.send(face, f"m-{face}", FACES[face].body(Wish("hi"), f"m-{face}", None))
    assert got.status == 200, got.body
    named = "modelVersion" if face == "native" else "model"
    assert fields(got.body, named) == fields(echo.answer, named)
    assert json.loads(got.body)[named] == f"m-{face}"


@pytest.mark.parametrize("face", FACES)
@modest
@given(data=st.data())
async def test_what_nobody_knows_streams_with_the_rest_at_every_level(
    echo: Echo, face: str, data: st.DataObject
) -> None:
    frames = []
    for frame in streamed(face).decode().split("\n\n"):
        head, mark, told = frame.partition("data: ")
        if told and told != "[DONE]":
            document = json.loads(told)
            sprinkle(document, data)
            told = written(document, data).decode()
        frames.append(head + mark + told)
    echo.answer, echo.stream = "\n\n".join(frames).encode(), True
    body = asked_for_a_stream(FACES[face], FACES[face].body(Wish("hi"), f"m-{face}", None))
    got = await echo.caller.send(face, f"m-{face}", body, stream=True)
    assert got.status == 200, got.body
    assert told_of(face, got.body) == told_of(face, echo.answer)


def told_of(face: str, stream: bytes) -> list[Any]:
    """The events, each with its members to the byte, save the model's name."""
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

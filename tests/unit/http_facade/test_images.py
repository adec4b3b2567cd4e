"""Image paths: forms, shapes, streams and their failures, in front of a scripted service."""

import base64
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from typing import Any, TypeAlias

import aiohttp
import grpc
import pytest

from http_facade.app import Runner, make_app
from tests.support.images import JPEG, PNG
from tests.unit.http_facade.conftest import KEY, SETTINGS, channel_to, fail
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.core.sse import split

Context: TypeAlias = "grpc.aio.ServicerContext[object, object]"

GENERATIONS, EDITS, VARIATIONS = "/v1/images/generations", "/v1/images/edits", "/v1/images/variations"
LARGE = bytes(range(256)) * 2**13
"""File of 2 MiB."""
FAILURE = UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "it failed")
BAD_INPUT = UmgError(pb.ERROR_REASON_INVALID_FIELD, "`inputs[1]`: it is too large", field="inputs[1]")
BAD_NUMBER = UmgError(pb.ERROR_REASON_INVALID_FIELD, "`n`: too many", field="n")


@dataclass
class Service(rpc.ImageServiceServicer):
    """Service whose behaviour the model's name selects. It records the requests."""

    requests: list[pb.GenerateImageRequest] = field(default_factory=list)

    async def GenerateImage(self, request: pb.GenerateImageRequest, context: Context) -> pb.GenerateImageResponse:
        self.requests.append(request)
        await context.send_initial_metadata((("x-umg-dropped", "style"), ("not-shown", "1")))
        errors = {"bad input": BAD_INPUT, "bad number": BAD_NUMBER, "fail": FAILURE}
        if request.model in errors:
            await fail(context, errors[request.model])
        data = LARGE if request.model == "large" else PNG
        return pb.GenerateImageResponse(result=pb.ImageResult(images=[pb.Image(data=data)] * (request.n or 1)))

    async def StreamGenerateImage(
        self, message: pb.StreamGenerateImageRequest, context: Context
    ) -> AsyncIterator[pb.StreamGenerateImageResponse]:
        request = message.request
        self.requests.append(request)
        await context.send_initial_metadata((("x-umg-dropped", "style"),))
        if request.model == "fail":
            await fail(context, FAILURE)
        if request.model == "empty":
            return
        yield _events(pb.ImageEvent(started=pb.ImageStarted()))
        image = pb.Image(data=LARGE if request.model == "large" else PNG, mime_type="image/png")
        yield _events(pb.ImageEvent(completed=pb.ImageCompleted(image=image)))
        yield _events(pb.ImageEvent(finished=pb.ImageFinished(result=pb.ImageResult())))


def _events(*events: pb.ImageEvent) -> pb.StreamGenerateImageResponse:
    return pb.StreamGenerateImageResponse(events=events)


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Face:
    url: str
    client: aiohttp.ClientSession
    service: Service

    async def post(self, path: str, body: object = None, **arguments: Any) -> Reply:
        headers = {**KEY, **arguments.pop("headers", {})}
        async with self.client.post(self.url + path, json=body, headers=headers, **arguments) as answer:
            return Reply(answer.status, answer.headers, await answer.read())

    async def form(self, *parts: tuple[str, str] | tuple[str, bytes, str], path: str = EDITS) -> Reply:
        form = aiohttp.FormData(default_to_multipart=True)
        for name, value, *file_name in parts:
            part = BytesIO(value) if isinstance(value, bytes) else value
            form.add_field(name, part, filename=file_name[0] if file_name else None)
        return await self.post(path, data=form)

    @property
    def last(self) -> pb.GenerateImageRequest:
        return self.service.requests[-1]


MakeFace: TypeAlias = Callable[..., Awaitable[Face]]


@pytest.fixture(params=["socket", "in-process"])
async def make_face(request: pytest.FixtureRequest) -> AsyncIterator[MakeFace]:
    """Yield a function that starts a facade with other settings than the usual, on either channel."""
    async with AsyncExitStack() as stack:

        async def make(**changes: object) -> Face:
            service = Service()
            channel = await channel_to(request.param, stack, partial(rpc.add_ImageServiceServicer_to_server, service))
            runner = Runner(make_app(channel, replace(SETTINGS, **{"drain_seconds": 1, **changes})))
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            port = await runner.listen("127.0.0.1", 0)
            client = await stack.enter_async_context(aiohttp.ClientSession())
            return Face(f"http://127.0.0.1:{port}", client, service)

        yield make


@pytest.fixture
async def face(make_face: MakeFace) -> Face:
    return await make_face()


# --- bodies


async def test_a_form_reaches_the_service(face: Face) -> None:
    files: list[tuple[str, bytes, str]] = [
        ("image[]", PNG, "a.png"),
        ("image[]", JPEG, "b.jpg"),
        ("mask", PNG, "m.png"),
    ]
    reply = await face.form(("model", "m"), ("prompt", "a kite"), ("n", "2"), *files)
    assert reply.status == 200, reply.body
    assert (face.last.model, face.last.prompt, face.last.n) == ("m", "a kite", 2)
    assert [(image.data, image.mime_type, image.file_name) for image in face.last.inputs] == [
        (PNG, "image/png", "a.png"),
        (JPEG, "image/jpeg", "b.jpg"),
    ]
    assert face.last.mask.data == PNG
    assert not face.last.HasField("source")
    assert face.last.operation == pb.IMAGE_OPERATION_EDIT


async def test_a_large_file_of_a_form_is_unchanged(make_face: MakeFace) -> None:
    face = await make_face(body_limit_bytes=4 * 2**20)
    data = PNG + LARGE
    assert (await face.form(("model", "m"), ("image", data, "a.png"), path=VARIATIONS)).status == 200
    assert face.last.inputs[0].data == data
    assert face.last.operation == pb.IMAGE_OPERATION_VARIATION


async def test_a_form_may_be_compressed(face: Face) -> None:
    fields = (b'name="model"', b"m"), (b'name="image"; filename="a.png"', PNG)
    parts = [b"--b\r\ncontent-disposition: form-data; %s\r\n\r\n%s\r\n" % field for field in fields]
    body = b"".join(parts) + b"--b--\r\n"
    headers = {"content-type": "multipart/form-data; boundary=b", "content-encoding": "gzip"}
    assert (await face.post(EDITS, data=gzip.compress(body), headers=headers)).status == 200
    assert face.last.model == "m"


async def test_a_form_beyond_the_limit_is_refused(make_face: MakeFace) -> None:
    face = await make_face(body_limit_bytes=1000)
    reply = await face.form(("model", "m"), ("image", PNG + bytes(1000), "a.png"))
    assert (reply.status, reply.json["code"]) == (413, 413)


@pytest.mark.parametrize(
    ("content_type", "status"),
    [("multipart/form-data", 400), ("multipart/form-data; boundary=x", 400), ("multipart/mixed; boundary=b", 415)],
)
async def test_a_broken_form_is_an_error_in_both_shapes(face: Face, content_type: str, status: int) -> None:
    reply = await face.post(EDITS, data=b"--b\r\n\r\n--b--", headers={"content-type": content_type})
    assert reply.status == status
    assert reply.json.keys() == {"code", "msg", "error"}
    assert face.service.requests == []


async def test_errors_name_the_field_as_the_caller_wrote_it(face: Face) -> None:
    picture = base64.b64encode(PNG).decode()
    content = [{"image": picture}, {"image": picture}, {"text": "p"}]
    structured = {"input": {"messages": [{"role": "user", "content": content}]}, "parameters": {"n": 2}}
    named = [
        ({"model": "bad input", "prompt": "p", "image": [picture, picture]}, "image[1]"),
        ({"model": "bad input", "prompt": "p", "image": picture, "images": [picture]}, "images[0]"),
        ({"model": "bad input", **structured}, "input.messages[0].content[1].image"),
        ({"model": "bad number", **structured}, "parameters.n"),
        ({"model": "bad number", "prompt": "p", "n": 2}, "n"),
    ]
    for body, path in named:
        reply = await face.post(GENERATIONS, body)
        error = reply.json["error"]
        assert (reply.status, error["param"]) == (400, path)
        assert error["message"].startswith(f"`{path}`: ")
    reply = await face.form(("model", "bad input"), ("image[]", PNG, "a.png"), ("image[]", PNG, "b.png"))
    assert reply.json["error"]["param"] == "image[1]"


async def test_a_path_may_end_with_a_slash(face: Face) -> None:
    body = {"model": "m", "prompt": "p", "image": base64.b64encode(PNG).decode()}
    for path in (GENERATIONS, EDITS):
        reply = await face.post(f"{path}/", body, allow_redirects=False)
        assert (reply.status, reply.json["data"] != []) == (200, True)


# --- answers


async def test_the_shape_depends_on_the_caller_only_where_the_document_has_one(face: Face) -> None:
    body = {"model": "m", "prompt": "p", "image": base64.b64encode(PNG).decode()}
    documented = await face.post(GENERATIONS, body)
    assert documented.json.keys() == {"code", "msg", "data"}
    assert documented.headers["vary"] == "User-Agent, x-umg-shape"
    assert (documented.headers["x-umg-dropped"], "not-shown" in documented.headers) == ("style", False)
    sdk = await face.post(GENERATIONS, body, headers={"user-agent": "OpenAI/Python 2.24.0"})
    assert sdk.json["data"] == documented.json["data"]["data"]
    edited = await face.post(EDITS, body)
    assert edited.json["data"] == sdk.json["data"]
    assert "vary" not in edited.headers
    wrong = await face.post(GENERATIONS, body, headers={"x-umg-shape": "round"})
    assert (wrong.status, wrong.json["error"]["param"]) == (400, "x-umg-shape")


async def test_a_large_answer_is_sent_in_pieces(face: Face) -> None:
    reply = await face.post(GENERATIONS, {"model": "large", "prompt": "p", "n": 2})
    assert [base64.b64decode(item["b64_json"]) for item in reply.json["data"]["data"]] == [LARGE] * 2
    assert reply.headers["transfer-encoding"] == "chunked"


# --- streams


async def test_a_stream_is_sent_as_events(face: Face) -> None:
    for model, data in (("m", PNG), ("large", LARGE)):
        reply = await face.post(GENERATIONS, {"model": model, "prompt": "p", "stream": True})
        assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert reply.headers["x-umg-dropped"] == "style"
        [event] = split(reply.body)
        assert event.name == b"image_generation.completed"
        assert base64.b64decode(json.loads(event.data or b"")["b64_json"]) == data


async def test_a_form_selects_a_stream(face: Face) -> None:
    reply = await face.form(("model", "m"), ("prompt", "p"), ("image", PNG, "a.png"), ("stream", "true"))
    [event] = split(reply.body)
    assert event.name == b"image_edit.completed"


async def test_a_stream_that_fails_before_its_first_event_is_an_error(face: Face) -> None:
    for model, message in (("fail", "it failed"), ("empty", "the provider's stream ended before it began")):
        reply = await face.post(GENERATIONS, {"model": model, "prompt": "p", "stream": True})
        assert (reply.status, reply.json["msg"]) == (502, message)

"""Answers of many megabytes: written piece by piece, as fast as their reader reads, while other calls are served."""

import asyncio
import struct
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from typing import TypeAlias

import aiohttp
import grpc
import pytest

from http_facade.app import Runner, make_app
from tests.support import logs
from tests.unit.http_facade.conftest import KEY, SETTINGS
from umg_grpc.base.inprocess_channel import InProcessChannel, InProcessServer
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS
from umg_grpc.wire.unary_format_interface import ClientShape

Context: TypeAlias = "grpc.aio.ServicerContext[object, object]"

VECTORS, LENGTH = 1024, 1024
JSON_BYTES = VECTORS * LENGTH * 8  # at least
PACKED = [struct.pack(f"<{LENGTH}f", *(place + number / 7 for number in range(LENGTH))) for place in range(VECTORS)]
ANSWER = pb.EmbedResponse(
    model="large",
    embeddings=[pb.Embedding(values=values) for values in PACKED],
    usage=pb.EmbeddingUsage(input_tokens=3, total_tokens=3),
)
SMALL = pb.EmbedResponse(model="small", embeddings=ANSWER.embeddings[:1], usage=ANSWER.usage)


class Service(rpc.EmbeddingServiceServicer):
    """Service whose answer the model's name selects."""

    async def Embed(self, request: pb.EmbedRequest, context: Context) -> pb.EmbedResponse:
        await context.send_initial_metadata((("x-umg-dropped", "user"), ("not-shown", "1")))
        if request.model == "passed":
            source = pb.SourceDocument(format=request.source.format, body=b'{"data":[]}' + b" " * JSON_BYTES)
            return pb.EmbedResponse(model="passed", source=source)
        return ANSWER if request.model == "large" else SMALL


@dataclass
class Face:
    port: int
    client: aiohttp.ClientSession
    runner: Runner
    stack: AsyncExitStack

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    async def small(self) -> None:
        """Make a small call, which must be answered."""
        small = {"model": "small", "input": "a", "encoding_format": "base64"}
        async with self.client.post(self.url("/v1/embeddings"), json=small, headers=KEY) as answer:
            assert answer.status == 200
            await answer.read()

    async def begun(self, version: str = "1.1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Start a call and read only the first byte of its response. The connection is closed with the facade at the
        latest.
        """
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**16)
        self.stack.push_async_callback(_leave, writer)
        body = b'{"model":"large","input":"a"}'
        head = f"POST /v1/embeddings HTTP/{version}\r\nhost: x\r\nauthorization: {KEY['authorization']}\r\n"
        writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        assert await reader.readexactly(1) == b"H"
        return reader, writer

    async def until_calls_ended(self, tasks: int) -> None:
        """Wait until at most this number of tasks is left. Raises TimeoutError when that takes long."""
        async with asyncio.timeout(60):
            while len(asyncio.all_tasks()) > tasks:
                await self.small()


async def _leave(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with suppress(ConnectionError):
        await writer.wait_closed()


MakeFace: TypeAlias = Callable[..., Awaitable[Face]]


@pytest.fixture
async def make_face() -> AsyncIterator[MakeFace]:
    with logs.library_warnings() as warnings:
        async with AsyncExitStack() as stack:

            async def make(**changes: object) -> Face:
                server = InProcessServer()
                rpc.add_EmbeddingServiceServicer_to_server(Service(), server)
                app = make_app(InProcessChannel(server), replace(SETTINGS, **{"drain_seconds": 1, **changes}))
                runner = Runner(app)
                await runner.setup()
                stack.push_async_callback(runner.cleanup)
                port = await runner.listen("127.0.0.1", 0)
                client = await stack.enter_async_context(aiohttp.ClientSession())
                face = Face(port, client, runner, stack)
                await face.small()  # modules that are loaded at first use are loaded now
                return face

            yield make
    assert warnings.records == []  # warnings of aiohttp and asyncio


@dataclass(frozen=True)
class RequestCase:
    id: str
    path: str
    body: dict[str, object]
    face: str


ITEM: dict[str, object] = {"content": {"parts": [{"text": "a"}]}}
REQUEST_CASES = [
    RequestCase("numbers", "/v1/embeddings", {"model": "large", "input": "a"}, "embeddings"),
    RequestCase(
        "base64", "/v1/embeddings", {"model": "large", "input": "a", "encoding_format": "base64"}, "embeddings"
    ),
    RequestCase("native", "/v1beta/models/large:batchEmbedContents", {"requests": [ITEM]}, "native_embeddings"),
]


@pytest.mark.parametrize("case", REQUEST_CASES, ids=lambda case: case.id)
async def test_a_large_answer_has_the_bytes_and_headers_of_a_small_one(case: RequestCase, make_face: MakeFace) -> None:
    face, codec = await make_face(cors_origins=("*",)), EMBEDDING_FORMATS[case.face]
    encoding = pb.EMBEDDING_ENCODING_BASE64 if case.id == "base64" else pb.EMBEDDING_ENCODING_UNSPECIFIED
    whole = codec.encode_response(ANSWER, pb.EmbedRequest(encoding=encoding), ClientShape.DOCUMENTED)
    sent = {**KEY, "x-request-id": "mine", "origin": "https://a.example"}
    async with face.client.post(face.url(case.path), json=case.body, headers=sent) as answer:
        assert await answer.read() == whole
        assert answer.headers["transfer-encoding"] == "chunked"
        large = {name.lower(): value for name, value in answer.headers.items()}
    small = {name: value if value != "large" else "small" for name, value in case.body.items()}
    async with face.client.post(face.url(case.path.replace("large", "small")), json=small, headers=sent) as answer:
        assert "transfer-encoding" not in answer.headers
        same = {name.lower(): value for name, value in answer.headers.items()}
    del same["content-length"], same["date"]
    assert large.items() >= same.items()
    assert (large["x-umg-dropped"], large["x-request-id"], "not-shown" in large) == ("user", "mine", False)


async def test_a_large_same_format_body_is_passed_through(make_face: MakeFace) -> None:
    face = await make_face()
    async with face.client.post(face.url("/v1/embeddings"), json={"model": "passed", "input": "a"}, headers=KEY) as answer:  # fmt: skip
        assert await answer.read() == b'{"data":[]}' + b" " * JSON_BYTES


async def test_an_http_1_0_client_gets_the_complete_large_answer(make_face: MakeFace) -> None:
    face = await make_face()
    reader, _ = await face.begun("1.0")
    body = (await reader.read()).partition(b"\r\n\r\n")[2]
    assert body == EMBEDDING_FORMATS["embeddings"].encode_response(ANSWER, pb.EmbedRequest(), ClientShape.DOCUMENTED)


async def test_unread_large_answers_are_not_buffered(make_face: MakeFace) -> None:
    face = await make_face()
    await face.begun()  # loads the modules that encode large answers
    tracemalloc.start()
    try:
        for _ in range(10):
            await face.begun()
        for _ in range(20):
            await face.small()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * JSON_BYTES / 3  # ten answers; how much of each piece leaves at once is the kernel's choice


async def test_other_calls_are_answered_while_a_large_answer_is_encoded(make_face: MakeFace) -> None:
    face = await make_face()
    reader, _ = await face.begun()
    read = served = 0
    while read < JSON_BYTES:
        read += len(await reader.read(2**16))
        if read > served * 2**20:
            await face.small()
            served += 1
    assert served > JSON_BYTES / 2**20


async def test_a_client_that_disconnects_ends_the_encoding(make_face: MakeFace) -> None:
    face = await make_face()
    tasks = len(asyncio.all_tasks())
    for _ in range(5):
        _, writer = await face.begun()
        writer.transport.abort()
    await face.until_calls_ended(tasks)


async def test_a_client_that_does_not_read_is_disconnected_after_the_timeout(make_face: MakeFace) -> None:
    face = await make_face(write_timeout_seconds=0.1)
    tasks = len(asyncio.all_tasks())
    reader, _ = await face.begun()
    await face.until_calls_ended(tasks)
    came = bytearray()
    with suppress(ConnectionError):
        while data := await reader.read(2**16):
            came += data
    assert not came.endswith(b"0\r\n\r\n")


async def test_an_answer_in_flight_is_ended_before_the_face_closes(make_face: MakeFace) -> None:
    face = await make_face(drain_seconds=600)
    reader, _ = await face.begun()
    ending = asyncio.create_task(face.runner.cleanup())
    answer = await reader.read()
    assert answer.endswith(b'"total_tokens":3}}\r\n0\r\n\r\n')
    await ending

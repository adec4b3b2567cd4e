"""Connect protocol: the methods of the schema over HTTP, in protobuf and JSON, unary and streamed."""

import asyncio
import base64
import gzip
import io
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from tests.unit.http_facade.conftest import BODY_LIMIT, KEY, LARGE, Face, MakeFace
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

GENERATION = "/umg.v1.GenerationService"
PROTO, JSON = "application/proto", "application/json"
STREAM_PROTO, STREAM_JSON = "application/connect+proto", "application/connect+json"
LIMITED = UmgError(pb.ERROR_REASON_RATE_LIMITED, "slower", limit="rpm", retry_after_seconds="7")


def encoded(message: Message, kind: str) -> bytes:
    return message.SerializeToString() if kind.endswith("proto") else json_format.MessageToJson(message).encode()


def framed(message: bytes, flags: int = 0) -> bytes:
    return struct.pack(">BI", flags, len(message)) + message


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes
    messages: list[bytes] = field(default_factory=list)
    end: dict[str, Any] = field(default_factory=dict)

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = self.end["error"] if self.end else json.loads(self.body)
        return found

    def details(self) -> dict[str, bytes]:
        return {each["type"]: base64.b64decode(each["value"] + "==") for each in self.error["details"]}


async def unary(face: Face, method: str, body: bytes, kind: str, **headers: str) -> Answer:
    sent = {**KEY, "content-type": kind, **headers}
    async with face.client.post(face.url(method), data=io.BytesIO(body), headers=sent) as answer:
        return Answer(answer.status, answer.headers, await answer.read())


async def streamed(face: Face, model: str, kind: str, body: bytes | None = None, **headers: str) -> Answer:
    """Call `StreamGenerate`, and return the messages and the end of its stream."""
    request = pb.StreamGenerateRequest(request=pb.GenerateRequest(model=model))
    sent = framed(encoded(request, kind)) if body is None else body
    answer = await unary(face, f"{GENERATION}/StreamGenerate", sent, kind, **headers)
    rest = answer.body
    while rest:
        flags, length = struct.unpack_from(">BI", rest)
        message, rest = rest[5 : 5 + length], rest[5 + length :]
        if flags == 2:
            assert not rest
            answer.end = {"error": {}, **json.loads(message)}
        else:
            assert flags == 0
            answer.messages.append(message)
    return answer


@pytest.mark.parametrize("kind", [PROTO, JSON])
async def test_a_unary_method_answers_in_the_encoding_of_its_request(face: Face, kind: str) -> None:
    face.service.initial = (("x-umg-channel", "c"),)
    answer = await unary(face, f"{GENERATION}/Generate", encoded(pb.GenerateRequest(model="m"), kind), kind)
    assert (answer.status, answer.headers["content-type"]) == (200, kind)
    assert answer.headers["x-umg-channel"] == "c"
    parsed = pb.GenerateResponse()
    if kind == PROTO:
        parsed.ParseFromString(answer.body)
    else:
        json_format.Parse(answer.body, parsed)
    assert (parsed.model, parsed.candidates[0].message.parts[0].text.text) == ("m", "hello")
    assert face.service.requests == [pb.GenerateRequest(model="m")]
    assert face.service.metadata[-1]["authorization"] == KEY["authorization"]
    assert face.service.metadata[-1]["x-umg-face"] == "connect"


@pytest.mark.parametrize("kind", [STREAM_PROTO, STREAM_JSON])
async def test_a_stream_has_an_envelope_for_each_message_and_one_for_its_end(face: Face, kind: str) -> None:
    answer = await streamed(face, "m", kind)
    assert (answer.status, answer.headers["content-type"], answer.end) == (200, kind, {"error": {}})
    parsed = [pb.StreamGenerateResponse() for _ in answer.messages]
    for message, body in zip(parsed, answer.messages, strict=True):
        if kind == STREAM_PROTO:
            message.ParseFromString(body)
        else:
            json_format.Parse(body, message)
    texts = [event.text_delta for message in parsed for event in message.events if event.HasField("text_delta")]
    assert texts == ["one ", "two"]


@pytest.mark.parametrize("kind", [PROTO, JSON])
async def test_a_failed_call_has_its_code_and_details(face: Face, kind: str) -> None:
    face.service.failure = LIMITED
    body = encoded(pb.GenerateRequest(model="fail"), kind)
    answer = await unary(face, f"{GENERATION}/Generate", body, kind, **{"x-request-id": "req_1"})
    assert (answer.status, answer.headers["content-type"], answer.headers["retry-after"]) == (429, JSON, "7")
    check_limited(answer)


def check_limited(answer: Answer) -> None:
    assert (answer.error["code"], answer.error["message"]) == ("resource_exhausted", "slower")
    found = answer.details()
    info = error_details_pb2.ErrorInfo.FromString(found["google.rpc.ErrorInfo"])
    assert (info.reason, info.domain, info.metadata["limit"]) == ("RATE_LIMITED", "umg", "rpm")
    assert error_details_pb2.RetryInfo.FromString(found["google.rpc.RetryInfo"]).retry_delay.seconds == 7
    assert error_details_pb2.RequestInfo.FromString(found["google.rpc.RequestInfo"]).request_id == "req_1"


@pytest.mark.parametrize("kind", [STREAM_PROTO, STREAM_JSON])
@pytest.mark.parametrize(("model", "messages"), [("fail", 0), ("break", 2)])
async def test_a_failed_stream_ends_with_its_error(face: Face, model: str, messages: int, kind: str) -> None:
    face.service.failure = LIMITED
    answer = await streamed(face, model, kind, **{"x-request-id": "req_1"})
    assert (answer.status, answer.headers["content-type"], len(answer.messages)) == (200, kind, messages)
    check_limited(answer)


async def test_an_unexpected_failure_shows_nothing_of_the_inside(face: Face) -> None:
    answer = await unary(face, f"{GENERATION}/Generate", encoded(pb.GenerateRequest(model="crash"), PROTO), PROTO)
    assert (answer.status, answer.error["code"]) == (500, "internal")
    assert b"nobody" not in answer.body
    ended = await streamed(face, "crash mid", STREAM_PROTO)
    assert (len(ended.messages), ended.error["code"]) == (2, "internal")
    assert b"nobody" not in ended.body


@dataclass(frozen=True)
class Refusal:
    id: str
    status: int
    code: str
    message: str
    method: str = f"{GENERATION}/Generate"
    body: bytes = b"{}"
    kind: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


REFUSALS = [
    Refusal("a method that the service lacks", 404, "unimplemented", "it has Generate,", method=f"{GENERATION}/Nothing"),
    Refusal("a service that the schema lacks", 404, "unimplemented", "no such path", method="/umg.v1.NoService/Do"),
    Refusal("no JSON", 400, "invalid_argument", "JSON of a umg.v1.GenerateRequest", body=b"{"),
    Refusal("no UTF-8", 400, "invalid_argument", "JSON of a umg.v1.GenerateRequest", body=b"\xff"),
    Refusal("an unknown field", 400, "invalid_argument", 'no field named "modle"', body=b'{"modle": "m"}'),
    Refusal("another version", 400, "invalid_argument", "version 1", headers={"connect-protocol-version": "2"}),
    Refusal("a timeout that is no number", 400, "invalid_argument", "whole milliseconds", headers={"connect-timeout-ms": "1s"}),
    Refusal("a long timeout", 400, "invalid_argument", "ten digits", headers={"connect-timeout-ms": "1" * 11}),
    Refusal("a compression that is unknown", 501, "unimplemented", "gzip", headers={"content-encoding": "br"}),
    Refusal("a large body", 413, "resource_exhausted", "larger than", body=b" " * (BODY_LIMIT + 1)),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
async def test_a_call_that_is_not_of_the_protocol_is_refused(face: Face, case: Refusal) -> None:
    answer = await unary(face, case.method, case.body, case.kind, **case.headers)
    assert (answer.status, answer.error["code"]) == (case.status, case.code)
    assert case.message in answer.error["message"]
    assert face.service.requests == []


@pytest.mark.parametrize(
    ("method", "kind"),
    [("Generate", "text/plain"), ("Generate", STREAM_PROTO), ("StreamGenerate", ""), ("StreamGenerate", JSON)],
)
async def test_a_body_of_no_protocol_is_refused_in_plain_text(face: Face, method: str, kind: str) -> None:
    answer = await unary(face, f"{GENERATION}/{method}", b"{}", kind)
    assert (answer.status, answer.headers["content-type"]) == (415, "text/plain; charset=utf-8")
    assert (b"application/connect+proto" if method == "StreamGenerate" else b"application/proto") in answer.body
    assert face.service.requests == []


REQUEST = pb.StreamGenerateRequest(request=pb.GenerateRequest(model="m")).SerializeToString()
BODIES = [
    ("nothing", b"", {}, "unimplemented"),
    ("a cut envelope", b"\x00\x00\x00\x00\x05abc", {}, "invalid_argument"),
    ("a cut head", b"\x00\x00", {}, "invalid_argument"),
    ("an unknown flag", framed(b"", flags=4), {}, "invalid_argument"),
    ("two envelopes", framed(b"") + framed(b""), {}, "unimplemented"),
    ("a compressed envelope without a compression", framed(b"", flags=1), {}, "internal"),
    ("no gzip", framed(b"abc", flags=1), {"connect-content-encoding": "gzip"}, "invalid_argument"),
    ("an unknown compression", framed(b""), {"connect-content-encoding": "br"}, "unimplemented"),
    ("a large message", framed(b" " * (BODY_LIMIT + 1)), {}, "resource_exhausted"),
    (
        "a message that is large once decompressed",
        framed(gzip.compress(b" " * (BODY_LIMIT + 1)), flags=1),
        {"connect-content-encoding": "gzip"},
        "resource_exhausted",
    ),
]


@pytest.mark.parametrize(("body", "headers", "code"), [case[1:] for case in BODIES], ids=[case[0] for case in BODIES])
async def test_a_body_without_one_envelope_is_refused(
    face: Face, body: bytes, headers: Mapping[str, str], code: str
) -> None:
    answer = await streamed(face, "m", STREAM_PROTO, body, **headers)
    assert (answer.status, answer.error["code"], answer.messages) == (200, code, [])


async def test_a_message_may_be_compressed(face: Face) -> None:
    body = framed(gzip.compress(REQUEST), flags=1)
    answer = await streamed(face, "m", STREAM_PROTO, body, **{"connect-content-encoding": "gzip"})
    assert (answer.end, len(answer.messages)) == ({"error": {}}, 4)


WEB_PROTO, WEB_JSON = "application/grpc-web+proto", "application/grpc-web+json"


async def over_grpc_web(
    face: Face, method: str, kind: str, request: Message, **headers: str
) -> tuple[Answer, dict[str, str]]:
    """Call a method by gRPC-Web. Return the response with its messages, and its trailers."""
    answer = await unary(face, method, framed(encoded(request, kind)), kind, **headers)
    rest, trailers = answer.body, dict[str, str]()
    while rest:
        flags, length = struct.unpack_from(">BI", rest)
        message, rest = rest[5 : 5 + length], rest[5 + length :]
        if flags == 128:
            assert not rest
            trailers = dict(line.split(": ", 1) for line in message.decode().splitlines())
        else:
            answer.messages.append(message)
    return answer, trailers


@pytest.mark.parametrize("kind", [WEB_PROTO, WEB_JSON, "application/grpc-web"])
async def test_grpc_web_ends_an_answer_with_its_trailers(face: Face, kind: str) -> None:
    encoding = PROTO if kind == "application/grpc-web" else kind
    request = pb.GenerateRequest(model="m")
    answer = await unary(face, f"{GENERATION}/Generate", framed(encoded(request, encoding)), kind)
    assert (answer.status, answer.headers["content-type"]) == (200, kind)
    assert answer.body.endswith(framed(b"grpc-status: 0\r\n", flags=128))
    streamed = pb.StreamGenerateRequest(request=request)
    answer = await unary(face, f"{GENERATION}/StreamGenerate", framed(encoded(streamed, encoding)), kind)
    assert answer.body.endswith(framed(b"grpc-status: 0\r\n", flags=128))


@pytest.mark.parametrize(("model", "messages"), [("fail", 0), ("break", 2)])
async def test_a_failed_call_of_grpc_web_has_its_status_and_details(face: Face, model: str, messages: int) -> None:
    face.service.failure = LIMITED
    request = pb.StreamGenerateRequest(request=pb.GenerateRequest(model=model))
    answer, trailers = await over_grpc_web(face, f"{GENERATION}/StreamGenerate", WEB_PROTO, request)
    assert (answer.status, len(answer.messages)) == (200, messages)
    assert (trailers["grpc-status"], trailers["grpc-message"]) == ("8", "slower")
    status = status_pb2.Status.FromString(base64.b64decode(trailers["grpc-status-details-bin"] + "=="))
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert info.reason == "RATE_LIMITED"


@pytest.mark.parametrize(("given", "status"), [("60S", "0"), ("1M", "0"), ("5", "3"), ("123456789m", "3")])
async def test_a_timeout_of_grpc_web_has_a_unit(face: Face, given: str, status: str) -> None:
    request = pb.GenerateRequest(model="m")
    headers = {"grpc-timeout": given}
    _, trailers = await over_grpc_web(face, f"{GENERATION}/Generate", WEB_PROTO, request, **headers)
    assert trailers["grpc-status"] == status


async def test_an_unknown_method_is_refused_to_grpc_web_in_its_own_form(face: Face) -> None:
    answer, trailers = await over_grpc_web(face, "/umg.v1.NoService/Do", WEB_PROTO, pb.GenerateRequest())
    assert (answer.status, answer.headers["content-type"]) == (404, WEB_PROTO)
    assert trailers["grpc-status"] == "12"


async def test_bytes_that_are_no_message_are_refused_by_the_service(face: Face) -> None:
    answer = await unary(face, f"{GENERATION}/Generate", b"\xff\xff", PROTO)
    assert answer.status >= 400
    assert face.service.requests == []


@pytest.mark.parametrize("stream", [False, True], ids=["unary", "stream"])
async def test_the_key_is_checked_before_the_body_is_read(make_face: MakeFace, stream: bool) -> None:
    face = await make_face(find_key=lambda _: None)
    face.service.failure = UmgError(pb.ERROR_REASON_INVALID_KEY, "no such key")
    if stream:
        answer = await streamed(face, "m", STREAM_PROTO, b"no envelope")
        assert answer.status == 200
    else:
        answer = await unary(face, f"{GENERATION}/Generate", b"\xff\xff", PROTO)
        assert answer.status == 401
    assert answer.error["code"] == "unauthenticated"


async def test_a_timeout_reaches_the_service(face: Face) -> None:
    body = encoded(pb.GenerateRequest(model="m"), PROTO)
    answer = await unary(face, f"{GENERATION}/Generate", body, PROTO, **{"connect-timeout-ms": "60000"})
    assert answer.status == 200
    seconds = face.service.seconds_left[-1]
    assert seconds is not None
    assert 30 < seconds < 61  # gRPC rounds the rest of the time up


async def test_a_large_answer_is_whole(face: Face) -> None:
    answer = await unary(face, f"{GENERATION}/Generate", encoded(pb.GenerateRequest(model="large"), PROTO), PROTO)
    parsed = pb.GenerateResponse.FromString(answer.body)
    assert len(parsed.candidates[0].message.parts[0].text.text) == LARGE


async def test_a_caller_that_leaves_a_stream_cancels_the_call(face: Face) -> None:
    face.service.left_at = asyncio.get_running_loop().create_future()
    request = pb.StreamGenerateRequest(request=pb.GenerateRequest(model="wait mid"))
    sent = {**KEY, "content-type": STREAM_PROTO}
    url = face.url(f"{GENERATION}/StreamGenerate")
    async with face.client.post(url, data=framed(encoded(request, PROTO)), headers=sent) as answer:
        await answer.content.readexactly(5)
        await face.service.reached.wait()
        answer.close()
    await face.service.left_at


@pytest.mark.parametrize("kind", [STREAM_PROTO, "application/grpc-web+proto"])
async def test_a_slow_stream_has_its_headers_early(face: Face, kind: str) -> None:
    request = pb.StreamGenerateRequest(request=pb.GenerateRequest(model="slow"))
    sent = {**KEY, "content-type": kind}
    url = face.url(f"{GENERATION}/StreamGenerate")
    async with face.client.post(url, data=framed(encoded(request, PROTO)), headers=sent) as answer:
        assert answer.headers["x-umg-waiting"] == "true"
        face.service.go_on.set()
        assert len(await answer.read())


async def test_a_page_of_an_allowed_origin_may_call_methods(make_face: MakeFace) -> None:
    face = await make_face(cors_origins=("https://page.test",))
    origin = {"origin": "https://page.test", "access-control-request-method": "POST"}
    wanted = {
        "access-control-request-headers": "authorization,connect-protocol-version,connect-timeout-ms,content-type"
    }
    url = face.url(f"{GENERATION}/StreamGenerate")
    async with face.client.options(url, headers={**origin, **wanted}) as answer:
        assert answer.status == 204
        assert answer.headers["access-control-allow-headers"] == wanted["access-control-request-headers"]
    answered = await streamed(face, "m", STREAM_JSON, origin="https://page.test")
    assert answered.headers["access-control-allow-origin"] == "https://page.test"


async def test_a_shutdown_ends_a_stream_with_an_error(face: Face) -> None:
    request = pb.StreamGenerateRequest(request=pb.GenerateRequest(model="wait mid"))
    sent = {**KEY, "content-type": STREAM_PROTO}
    url = face.url(f"{GENERATION}/StreamGenerate")
    async with face.client.post(url, data=framed(encoded(request, PROTO)), headers=sent) as answer:
        await face.service.reached.wait()
        stopped = asyncio.create_task(face.runner.cleanup())
        body = await answer.read()
        await stopped
    assert b'"code":"unavailable"' in body
    assert answer.headers["content-type"] == STREAM_PROTO

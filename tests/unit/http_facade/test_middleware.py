"""Properties of every answer: a request id, requested CORS headers, a log line, and no secrets."""

import asyncio
import io
import json
import re
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from tests.support import logs
from tests.unit.http_facade.conftest import CHAT, KEY, Face, MakeFace, body
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.text_format_interface import BIG_BYTES

JSON = {"content-type": "application/json"}
PAGE = "https://page.example"


@dataclass(frozen=True)
class RequestId:
    id: str
    given: str | None
    kept: bool


@pytest.mark.parametrize(
    "case",
    [
        RequestId(id="none", given=None, kept=False),
        RequestId(id="a sane one", given="trace:42/a", kept=True),
        RequestId(id="one of 128 characters", given="x" * 128, kept=True),
        RequestId(id="one of 129 characters", given="x" * 129, kept=False),
        RequestId(id="one with a blank", given="a b", kept=False),
        RequestId(id="an empty one", given="", kept=False),
        RequestId(id="one beyond ASCII", given="né", kept=False),
    ],
    ids=lambda case: case.id,
)
async def test_every_answer_has_the_callers_request_id_or_a_new_one(face: Face, case: RequestId) -> None:
    headers = KEY if case.given is None else {**KEY, "x-request-id": case.given}
    seen = set()
    for path, model, stream in ((CHAT, "m", False), (CHAT, "m", True), (CHAT, "crash", False), ("/none", "m", False)):
        async with face.client.post(face.url(path), json=body(model, stream=stream), headers=headers) as answer:
            request_id = answer.headers["x-request-id"]
            seen.add(request_id)
            assert (request_id == case.given) is case.kept
            assert case.kept or request_id.startswith("req_")
            if path == CHAT:
                assert face.service.metadata[-1]["x-request-id"] == request_id
    assert len(seen) == (1 if case.kept else 4)


async def test_no_answer_names_the_software_of_the_server(face: Face) -> None:
    for method, path in (("GET", "/healthz"), ("GET", "/none"), ("PATCH", CHAT)):
        async with face.client.request(method, face.url(path)) as answer:
            assert answer.headers["server"] == "umg"


@dataclass(frozen=True)
class Sent:
    id: str
    headers: dict[str, str]
    metadata: dict[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()


@pytest.mark.parametrize(
    "case",
    [
        Sent(id="a key", headers=KEY, metadata={**KEY, "x-umg-face": "chat"}, absent=("x-umg-strict",)),
        Sent(id="no key", headers={}, absent=("authorization",)),
        Sent(id="a key in another place", headers={"x-api-key": "k"}, absent=("authorization", "x-api-key")),
        Sent(id="another scheme", headers={"authorization": "Basic eA=="}, metadata={"authorization": "Basic eA=="}),
        Sent(id="a strict caller", headers={"x-umg-strict": "true"}, metadata={"x-umg-strict": "true"}),
    ],
    ids=lambda case: case.id,
)
async def test_a_call_has_the_metadata_that_the_service_needs(face: Face, case: Sent) -> None:
    for stream in (False, True):
        async with face.chat("m", stream=stream, headers=case.headers) as answer:
            assert answer.status == 200
        metadata = face.service.metadata[-1]
        assert metadata.items() >= case.metadata.items()
        assert not set(case.absent) & set(metadata)


async def test_a_malformed_key_is_401(face: Face) -> None:
    async with face.chat("m", headers={"authorization": "Bearer né"}) as answer:
        assert answer.status == 401


async def test_a_strictness_that_is_neither_true_nor_false_is_refused(face: Face) -> None:
    async with face.chat("m", headers={"x-umg-strict": "maybe"}) as answer:
        assert answer.status == 400
        assert "x-umg-strict must be true or false" in await answer.text()


async def test_headers_of_the_format_are_sent_with_the_source_document(face: Face) -> None:
    async with face.chat("m", headers={"OpenAI-Beta": "x=v1", "cookie": "a=b"}) as answer:
        assert answer.status == 200
    assert face.service.requests[-1].source.format == "chat"
    assert json.loads(face.service.requests[-1].source.body) == body("m")
    assert "cookie" not in face.service.requests[-1].source.headers


async def test_a_body_too_big_for_the_event_loop_is_decoded_in_a_thread(face: Face) -> None:
    data = json.dumps({**body("m"), "messages": [{"role": "user", "content": "x" * 2**20}]}).encode()
    async with face.client.post(face.url(CHAT), data=io.BytesIO(data), headers=JSON) as answer:
        assert answer.status == 200
    assert len(face.service.requests[-1].source.body) > 2**20


async def test_cors_allows_a_page_of_a_configured_origin(make_face: MakeFace) -> None:
    face = await make_face(cors_origins=(PAGE,))
    preflight = {
        "origin": PAGE,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,x-stainless-os",
    }
    async with face.client.options(face.url(CHAT), headers=preflight) as answer:
        assert answer.status == 204
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert "POST" in answer.headers["access-control-allow-methods"]
        assert answer.headers["access-control-allow-headers"] == preflight["access-control-request-headers"]
        assert int(answer.headers["access-control-max-age"]) > 0
    for model, stream, status in (("m", False, 200), ("m", True, 200), ("crash", False, 500)):
        async with face.chat(model, stream=stream, headers={"origin": PAGE}) as answer:
            assert answer.status == status
            assert answer.headers["access-control-allow-origin"] == PAGE
            assert "x-request-id" in answer.headers["access-control-expose-headers"]
            assert "Origin" in answer.headers["vary"]
    async with face.client.get(face.url("/v1/models"), headers={"origin": PAGE}) as answer:
        assert answer.headers.getall("vary")[0].startswith("Authorization, ")
        assert answer.headers.getall("vary")[1:] == ["Origin"]


async def test_cors_does_not_allow_a_page_of_another_origin(make_face: MakeFace) -> None:
    face = await make_face(cors_origins=(PAGE,))
    headers = {"origin": "https://other.example", "access-control-request-method": "POST"}
    for method, status in (("OPTIONS", 405), ("POST", 415)):
        async with face.client.request(method, face.url(CHAT), headers=headers) as answer:
            assert answer.status == status
            assert "access-control-allow-origin" not in answer.headers


async def test_cors_allows_every_page_with_a_star(make_face: MakeFace) -> None:
    face = await make_face(cors_origins=("*",))
    async with face.chat("m", headers={"origin": PAGE}) as answer:
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "vary" not in answer.headers


async def test_there_are_no_cors_headers_without_configured_origins(face: Face) -> None:
    headers = {"origin": PAGE, "access-control-request-method": "POST"}
    async with face.client.options(face.url(CHAT), headers=headers) as answer:
        assert answer.status == 405
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]


async def test_the_log_has_a_line_for_each_request_and_no_secret(face: Face) -> None:
    with capture_logs() as lines:
        async with face.client.post(face.url(f"{CHAT}?key=s3cret"), json=body("m"), headers=KEY) as answer:
            request_id = answer.headers["x-request-id"]
        async with face.client.get(face.url("/v1/models/nobody?key=s3cret"), headers=KEY):
            pass
        async with face.client.get(face.url("/s3cret?key=s3cret")):
            pass
        async with face.client.get(face.url("/healthz")):
            pass
    lines = [line for line in lines if line["event"] == "request"]
    first, second, third, fourth = lines
    assert first["ms"] > 0
    assert (first["method"], first["route"], first["status"], first["request_id"]) == ("POST", CHAT, 200, request_id)
    assert (second["route"], second["status"], second["failure"]) == ("/v1/models/{model}", 404, "MODEL_NOT_FOUND")
    assert (third["route"], third["status"], third["failure"]) == (None, 404, "PATH_NOT_FOUND")
    assert [line["log_level"] for line in lines] == ["info", "info", "info", "debug"]
    assert fourth["status"] == 200
    assert "s3cret" not in str(lines)
    assert "umg-key" not in str(lines)


async def test_a_broken_stream_is_logged_as_broken(face: Face) -> None:
    with capture_logs() as lines:
        async with face.chat("crash mid", stream=True) as answer:
            await answer.read()
    assert [(line["status"], line["failure"]) for line in lines if line["event"] == "request"] == [(200, "INTERNAL")]


async def test_a_caller_that_disconnected_is_logged_as_gone(face: Face) -> None:
    with capture_logs() as lines:
        _, writer = await face.raw()
        data = json.dumps(body("wait", stream=True)).encode()
        writer.write(b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (CHAT.encode(), len(data), data))
        await face.service.reached.wait()
        writer.close()
        while not lines:
            async with face.client.get(face.url("/none")):
                pass
    assert 499 in {line["status"] for line in lines}


async def test_an_unexpected_failure_is_logged_with_its_traceback_and_answered_with_its_id_only(
    make_face: MakeFace, quiet: logs.Warnings
) -> None:
    def explode() -> tuple[bytes, str]:
        raise ZeroDivisionError("what nobody may see")

    face = await make_face(metrics=explode)
    with capture_logs() as lines:
        async with face.client.get(face.url("/metrics")) as answer:
            assert (answer.status, answer.content_type) == (500, "application/json")
            message = (await answer.json())["error"]["message"]
    assert answer.headers["x-request-id"] in message
    assert "nobody" not in message
    (line,) = [line for line in lines if line["event"] == "unexpected failure"]
    assert line["request_id"] == answer.headers["x-request-id"]
    assert isinstance(line["exc_info"], ZeroDivisionError)
    assert quiet.records == []


@dataclass(frozen=True)
class Garbage:
    id: str
    data: bytes
    status: int


GARBAGE = [
    Garbage(id="no HTTP", data=b"hello there\r\n\r\n", status=400),
    Garbage(id="an unknown method", data=b"BREW /v1/models HTTP/1.1\r\n\r\n", status=400),
    Garbage(id="TLS", data=b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", status=400),
    Garbage(id="two lengths", data=b"POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", status=400),
    Garbage(id="a huge header", data=b"GET / HTTP/1.1\r\nx: " + b"s3cret" * 20000 + b"\r\n\r\n", status=431),
    Garbage(id="a huge path", data=b"GET /" + b"s3cret" * 20000 + b" HTTP/1.1\r\n\r\n", status=431),
    Garbage(id="HTTP 0.9", data=b"GET /healthz HTTP/0.9\r\nhost: x\r\n\r\n", status=400),
    Garbage(id="HTTP 2 in words", data=b"GET /healthz HTTP/2.0\r\nhost: x\r\n\r\n", status=505),
    Garbage(id="HTTP 3", data=b"GET /healthz HTTP/3.0\r\nhost: x\r\n\r\n", status=400),
    Garbage(id="HTTP 2 with a body", data=b"POST /v1/messages HTTP/2.0\r\ncontent-length: 2\r\n\r\n{}", status=505),
    Garbage(id="the preface of HTTP 2", data=b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", status=400),
    Garbage(id="very many headers", data=b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 500 + b"\r\n", status=400),
]


@pytest.mark.parametrize("case", GARBAGE, ids=lambda case: case.id)
async def test_invalid_http_gets_a_json_error_and_logs_no_traceback(
    face: Face, case: Garbage, quiet: logs.Warnings
) -> None:
    with capture_logs() as lines:
        reader, writer = await face.raw()
        writer.write(case.data)
        answer = await reader.read()
        writer.close()
    head, _, text = answer.partition(b"\r\n\r\n")
    assert int(head.split()[1]) == case.status
    assert json.loads(text)["error"]["message"].startswith("the request cannot be read")
    assert b"x-request-id: req_" in head
    assert b"aiohttp" not in head.lower()
    assert "s3cret" not in str(lines)
    assert quiet.records == []


async def test_a_request_of_another_http_version_is_refused_after_earlier_answers(face: Face) -> None:
    reader, writer = await face.raw()
    alive = b"GET /healthz HTTP/1.%d\r\nhost: x\r\nconnection: keep-alive\r\n\r\n"
    writer.write(alive % 1 + alive % 0 + alive.replace(b"1.%d", b"2.0") + alive % 1)
    answers = await reader.read()
    writer.close()
    assert re.findall(rb"HTTP/1\.\d (\d+)", answers) == [b"200", b"200", b"505"]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_an_unanswered_call_that_outlasts_the_drain_gets_an_error(face: Face, path: str, stream: bool) -> None:
    request_body = {**body("wait", stream=stream), "max_tokens": 9}
    call = asyncio.ensure_future(face.client.post(face.url(path), json=request_body, headers=KEY))
    await face.service.reached.wait()
    await face.runner.cleanup()
    async with await call as answer:
        assert answer.status == 503
        assert answer.headers["retry-after"] == "1"
        assert "shutting down" in (await answer.json())["error"]["message"]


@dataclass(frozen=True)
class Unmade:
    """Request that the face rejects after the service has verified its key."""

    id: str
    data: bytes
    status: int
    failure: str


POST = b"POST %b HTTP/1.1\r\nhost: x\r\nconnection: close\r\n" % CHAT.encode()
UNMADE = [
    Unmade(
        id="a body that never comes",
        data=POST + b"content-length: 9\r\n\r\n",
        status=400,
        failure="MALFORMED_BODY",
    ),
    Unmade(
        id="a body in chunks that never comes",
        data=POST + b"transfer-encoding: chunked\r\n\r\n",
        status=400,
        failure="MALFORMED_BODY",
    ),
    Unmade(id="no JSON", data=POST + b"content-length: 1\r\n\r\n{", status=400, failure="MALFORMED_BODY"),
    Unmade(
        id="a query of a list",
        data=b"GET /v1beta/models?pageSize=x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
        status=400,
        failure="INVALID_FIELD",
    ),
]


@pytest.mark.parametrize("case", UNMADE, ids=lambda case: case.id)
async def test_the_face_logs_its_own_refusal_after_the_service_checked_the_key(
    make_face: MakeFace, case: Unmade
) -> None:
    face = await make_face(calls_are_logged=True, upload_seconds=0.05)
    with capture_logs() as lines:
        reader, writer = await face.raw()
        writer.write(case.data)
        head = await reader.readuntil(b"\r\n\r\n")
        assert int(head.split()[1]) == case.status
        await reader.readuntil(b"}")  # the server continues to read the body for a while
        writer.close()
    assert len(face.service.metadata) == 1  # the key was verified once
    assert [(line["status"], line["failure"]) for line in lines] == [(case.status, case.failure)]
    assert lines[0]["request_id"] == face.service.metadata[0]["x-request-id"]


async def test_the_face_does_not_log_a_call_that_the_service_logs(make_face: MakeFace) -> None:
    face = await make_face(
        calls_are_logged=True, find_key=lambda sent: "known" if sent == KEY["authorization"] else None
    )
    face.service.failure = UmgError(pb.ERROR_REASON_INVALID_KEY, "no such key")
    other = {"authorization": "Bearer other"}
    with capture_logs() as lines:
        for model, content, key, status in (
            ("m", "hi", KEY, 200), ("m", "hi", other, 401), ("m", "x" * BIG_BYTES, other, 401), (None, "hi", other, 401),
        ):  # fmt: skip
            request_body = {"model": model, "messages": [{"role": "user", "content": content}]}
            async with face.client.post(face.url(CHAT), json=request_body, headers=key) as answer:
                assert answer.status == status
    assert lines == []

"""Order of checks: no part of a body is read or decoded before its caller's key is verified, and a large body delays no
other call.
"""

import asyncio
import gzip
import io
import json
import math
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

import pytest
from structlog.testing import capture_logs

from http_facade.exchange import key_check
from http_facade.routes import MODEL_CALL_SHAPES, ROUTE_TABLE
from tests.unit.http_facade.conftest import CHAT, KEY, Face, MakeFace, body
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FACES
from umg_grpc.wire.core.json_body_limits import MAX_LEVELS, MAX_MEMBERS, MAX_VALUES
from umg_grpc.wire.core.json_decoding import whole
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS
from umg_grpc.wire.rerank import RERANK_FORMATS
from umg_grpc.wire.text_format_interface import FaceRequest

PATHS = [re.sub(r"\{model.*?\}", "m", row.path) for row in ROUTE_TABLE if row.shape in MODEL_CALL_SHAPES]
JSON_PATHS = [path for path in PATHS if not path.endswith(("/transcriptions", "/translations"))]
"""Paths that read JSON, and not forms alone."""
UNKNOWN = UmgError(pb.ERROR_REASON_INVALID_KEY, "no such key")
HUGE = 64 * 2**20
SENDING = {**KEY, "content-type": "application/json"}


@dataclass(frozen=True)
class Sent:
    id: str
    data: bytes
    headers: tuple[tuple[str, str], ...] = ()


SENT = [
    Sent(id="a good body", data=json.dumps(body("m")).encode()),
    Sent(id="no JSON", data=b"{"),
    Sent(id="an unknown value", data=b'{"model":"m","messages":[{"role":"user","content":"a"}],"modalities":["x"]}'),
    Sent(id="many members", data=b"{%b}" % b",".join(b'"a%d":1' % number for number in range(40_000))),
    Sent(id="a large body", data=b'{"a":"%b"}' % (b"x" * 2**20)),
    Sent(id="an unknown type", data=b"<a/>", headers=(("content-type", "text/xml"),)),
    Sent(id="a bomb", data=gzip.compress(bytes(2**24), mtime=0), headers=(("content-encoding", "gzip"),)),
]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the formats whose decoders were called, in the order of their calls."""
    calls = list[str]()
    for formats in (TEXT_FACES, EMBEDDING_FORMATS, RERANK_FORMATS):
        for name, codec in formats.items():
            count = getattr(codec, "decode_count", None)
            watched = {"decode_request": _noted(calls, name, codec.decode_request)}
            if count is not None:
                watched["decode_count"] = _noted(calls, name, count)
            monkeypatch.setitem(formats, name, replace(codec, **watched))
    return calls


def _noted(calls: list[str], name: str, decode):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    def noted(body: bytes, headers: Mapping[str, str], model: str = "") -> object:
        calls.append(name)
        return decode(body, headers, model)

    return noted


@pytest.mark.parametrize("case", SENT, ids=lambda case: case.id)
async def test_a_body_without_a_valid_key_is_not_decoded(make_face: MakeFace, decoded: list[str], case: Sent) -> None:
    face = await make_face(find_key=lambda _: None)
    face.service.failure = UNKNOWN
    for path, authorization in product(PATHS, ({}, KEY)):
        headers = {"content-type": "application/json", **dict(case.headers), **authorization}
        async with face.client.post(face.url(path), data=io.BytesIO(case.data), headers=headers) as answer:
            assert (path, answer.status) == (path, 401)
            assert "no such key" in await answer.text()
    assert decoded == []


async def test_a_body_without_a_valid_key_is_refused_before_it_is_sent(make_face: MakeFace) -> None:
    face = await make_face(find_key=lambda _: None)
    face.service.failure = UNKNOWN
    reader, writer = await face.raw()
    writer.write(b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n" % CHAT.encode())
    assert await reader.readline() == b"HTTP/1.1 401 Unauthorized\r\n"


async def post_chat(face: Face, key: Mapping[str, str]) -> int:
    async with face.client.post(face.url(CHAT), json=body("m"), headers=key) as answer:
        return answer.status


async def test_a_recently_accepted_key_is_not_checked_again(make_face: MakeFace) -> None:
    checked_keys = list[str]()

    def find(authorization: str) -> str:
        checked_keys.append(authorization)
        return authorization

    face = await make_face(find_key=find)
    assert await post_chat(face, KEY) == 200
    assert checked_keys == [KEY["authorization"]]
    assert len(face.service.metadata) == len(face.service.requests) == 1


@pytest.mark.parametrize(("recent", "checks"), [(math.inf, 2), (-1.0, 4)], ids=["recent", "long ago"])
async def test_an_accepted_key_is_checked_again_after_its_lifetime(
    make_face: MakeFace, monkeypatch: pytest.MonkeyPatch, recent: float, checks: int
) -> None:
    monkeypatch.setattr(key_check, "RECENT_SECONDS", recent)
    face = await make_face(find_key=lambda _: None)
    other = {"authorization": "Bearer other"}
    assert [await post_chat(face, key) for key in (KEY, KEY, other, other)] == [200] * 4
    assert len(face.service.metadata) - len(face.service.requests) == checks


async def test_the_number_of_remembered_keys_is_bounded(make_face: MakeFace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_check, "RECENT_SECONDS", math.inf)
    monkeypatch.setattr(key_check, "MAX_RECENT", 2)
    face = await make_face(find_key=lambda _: None)
    for number in (1, 2, 3, 2, 3, 1):  # the first was evicted for the third
        assert await post_chat(face, {"authorization": f"Bearer {number}"}) == 200
    assert len(face.service.metadata) - len(face.service.requests) == 4


async def test_a_wrong_key_is_refused_before_an_invalid_header(make_face: MakeFace) -> None:
    face = await make_face(find_key=lambda _: None)
    headers = {**KEY, "x-umg-cache": "never"}
    assert await post_chat(face, headers) == 400
    face.service.failure = UNKNOWN
    assert await post_chat(face, {"authorization": "Bearer other", "x-umg-cache": "never"}) == 401


@dataclass(frozen=True)
class Large:
    id: str
    members: bytes
    """Members beside the model and the messages."""


LARGE = [
    Large(id="64 MiB", members=b'"x":"%b"' % (b"x" * HUGE)),
    Large(id="many members in few bytes", members=b'"x":{%b}' % b",".join(b'"%d":0' % at for at in range(9000))),
    Large(id="as many members as are taken", members=b'"x":{%b}' % b",".join(b'"%d":0' % at for at in range(99_000))),
]


@pytest.mark.parametrize("case", LARGE, ids=lambda case: case.id)
async def test_a_small_call_is_answered_while_a_large_body_is_decoded(
    make_face: MakeFace, monkeypatch: pytest.MonkeyPatch, case: Large
) -> None:
    began, answered = threading.Event(), threading.Event()
    chat = TEXT_FACES["chat"]

    def decode(data: bytes, headers: Mapping[str, str], model: str = "") -> FaceRequest:
        if len(data) > 10_000:
            began.set()
            assert answered.wait(60), "no other call is answered while a large body is decoded"
        return chat.decode_request(data, headers, model)

    monkeypatch.setitem(TEXT_FACES, "chat", replace(chat, decode_request=decode))
    face = await make_face(body_limit_bytes=HUGE + 2**20)
    data = b'{"model":"large body","messages":[{"role":"user","content":"hi"}],%b}' % case.members
    large = asyncio.ensure_future(face.client.post(face.url(CHAT), data=io.BytesIO(data), headers=SENDING).__aenter__())
    assert await asyncio.to_thread(began.wait, 60)
    assert await post_chat(face, KEY) == 200
    assert not large.done()
    answered.set()
    async with await large as answer:
        assert answer.status in {200, 413}  # the size of a message over a socket is limited, too
    assert face.service.requests[0].model == "m"


@dataclass(frozen=True)
class Beyond:
    id: str
    data: bytes
    message: str


BEYOND = [
    Beyond(
        id="500,000 members",
        data=b"{%b}" % b",".join(b'"%d":0' % number for number in range(500_000)),
        message=f"the body has more than {MAX_MEMBERS} members in its objects; send fewer",
    ),
    Beyond(
        id="a million numbers",
        data=b'{"input":[%b]}' % b",".join([b"0"] * 1_000_000),
        message=f"the body has more than {MAX_VALUES} values; send fewer",
    ),
    Beyond(
        id="deep",
        data=b'{"a":' * 201 + b"1" + b"}" * 201,
        message=f"the body is nested deeper than {MAX_LEVELS} levels; flatten it",
    ),
]


@pytest.mark.parametrize("case", BEYOND, ids=lambda case: case.id)
async def test_a_body_beyond_the_bounds_is_refused_by_the_bound_and_not_decoded(
    make_face: MakeFace, decoded: list[str], case: Beyond
) -> None:
    face = await make_face(body_limit_bytes=2**24)
    for path in JSON_PATHS:
        async with face.client.post(face.url(path), data=io.BytesIO(case.data), headers=SENDING) as answer:
            assert (path, answer.status, case.message in await answer.text()) == (path, 400, True)
    assert decoded == []


FAULTS = [TypeError("secret"), RecursionError("secret"), OverflowError("secret"), ZeroDivisionError("secret")]


@pytest.mark.parametrize("fault", [*FAULTS, UnicodeEncodeError("utf-8", "\ud800", 0, 1, "secret")], ids=repr)
async def test_a_crash_of_a_decoder_is_reported_as_a_malformed_body_and_logged_once_with_its_source_line(
    make_face: MakeFace, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def decode(data: bytes, headers: Mapping[str, str], model: str = "") -> FaceRequest:
        whole(1.0, "a")
        raise fault

    monkeypatch.setitem(TEXT_FACES, "chat", replace(TEXT_FACES["chat"], decode_request=decode))
    face = await make_face()
    with capture_logs() as lines:
        async with face.client.post(face.url(CHAT), json=body("m"), headers=KEY) as answer:
            assert answer.status == 400
            error = (await answer.json())["error"]
            assert (error["type"], "compare it with the format" in error["message"]) == ("invalid_request_error", True)
    decoder_lines = [line for line in lines if "place" in line]
    assert len(decoder_lines) == 1
    assert decoder_lines[0]["log_level"] == "error"
    assert decoder_lines[0]["place"].startswith(f"{type(fault).__name__} at umg_grpc.wire.core.request_body_decoding:")
    assert "secret" not in str(lines)


async def test_a_body_without_free_memory_is_refused_as_retryable(
    make_face: MakeFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decode(data: bytes, headers: Mapping[str, str], model: str = "") -> FaceRequest:
        raise MemoryError

    monkeypatch.setitem(TEXT_FACES, "chat", replace(TEXT_FACES["chat"], decode_request=decode))
    face = await make_face()
    async with face.chat("m") as answer:
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")

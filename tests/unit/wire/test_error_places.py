"""The cause of a refusal is read wherever providers and relays put it, from whole responses and from events."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.unit.wire.streams import decoder_of
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS
from umg_grpc.wire.errors.error_body_reading import Place
from umg_grpc.wire.errors.provider_errors import read_error
from umg_grpc.wire.rerank import RERANK_FORMATS

Decode = Callable[[int, Mapping[str, str], bytes], UmgError]
DECODERS: dict[str, Decode] = {
    **{name: codec.decode_error for name, codec in TEXT_FORMATS.items()},
    **{name: codec.decode_error for name, codec in EMBEDDING_FORMATS.items()},
    **{name: codec.decode_error for name, codec in RERANK_FORMATS.items()},
}
WORDS = "prompt is bad: 7 words"


@dataclass(frozen=True)
class Shape:
    id: str
    body: object
    words: str = WORDS


def quoted(value: object) -> str:
    return msgspec.json.encode(value).decode()


INNER = {"error": {"message": WORDS, "type": "invalid_request_error"}}
OPENROUTER = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": quoted(INNER)}}}
VIOLATIONS = [
    {"type": "extra_forbidden", "loc": ["body", "store"], "msg": "Extra inputs are not permitted", "input": False},
    {"type": "missing", "loc": ["body", "messages", 0, "role"], "msg": "Field required"},
]
BOTH = "store: Extra inputs are not permitted; messages.0.role: Field required"
# fmt: off
SHAPES = [
    Shape("OpenRouter: quoted by the relay", OPENROUTER),
    Shape("OpenRouter: words", {"error": {"message": "Provider returned error", "metadata": {"raw": WORDS}}}),
    Shape("OpenRouter: an object", {"error": {"message": "Provider returned error", "metadata": {"raw": INNER}}}),
    Shape("OpenRouter: without a cause", {"error": {"message": WORDS, "code": 400, "metadata": {"raw": ""}}}),
    Shape("OpenRouter: a page", {"error": {"message": WORDS, "metadata": {"raw": "<html><body>no</body></html>"}}}),
    Shape("two relays", {"error": {"message": quoted(OPENROUTER)}}),
    Shape("LiteLLM", {"error": {"message": f"litellm.BadRequestError: AnthropicException - {quoted(INNER)}"}}),
    Shape("Cloudflare", {"result": None, "success": False, "errors": [{"code": 5006, "message": WORDS}], "messages": []}),
    Shape("Watsonx", {"errors": [{"code": "invalid_input", "message": WORDS}], "trace": "1", "status_code": 400}),
    Shape("Baidu", {"error_code": 336003, "error_msg": WORDS}),
    Shape("a relay's msg", {"code": 400, "msg": WORDS, "success": False}),
    Shape("Bedrock", {"Message": WORDS}),
    Shape("Bedrock in lower case", {"message": WORDS}),
    Shape("MiniMax", {"base_resp": {"status_code": 2013, "status_msg": WORDS}}),
    Shape("Mistral's violations", {"detail": VIOLATIONS}, BOTH),
    Shape("Mistral's violations in a message", {"object": "error", "message": {"detail": VIOLATIONS}, "code": None}, BOTH),
    Shape("Mistral's violations as the message", {"object": "Error", "message": VIOLATIONS, "code": 3001}, BOTH),
    Shape("Mistral's words", {"object": "error", "message": WORDS, "type": "invalid_request_error", "code": "3051"}),
    Shape("FastAPI", {"detail": WORDS}),
    Shape("FastAPI with an object", {"detail": {"error": {"message": WORDS}}}),
    Shape("problem details", {"type": "about:blank", "status": 400, "title": "Bad Request", "detail": WORDS}),
    Shape("problem details without words", {"type": "about:blank", "status": 400, "title": WORDS}),
    Shape("xAI", {"code": "Client specified an invalid argument", "error": WORDS}),
    Shape("TGI", {"error": WORDS, "error_type": "validation"}),
    Shape("Spring", {"status": 400, "error": "Bad Request", "message": WORDS}),
    Shape("gRPC-gateway", {"code": 3, "message": WORDS, "details": []}),
    Shape("vendor G's chat", [{"error": {"code": 400, "message": WORDS, "status": "INVALID_ARGUMENT"}}]),
    Shape("vLLM before 0.10", {"object": "error", "message": WORDS, "type": "BadRequestError", "code": 400}),
    Shape("Volcengine", {"ResponseMetadata": {"Error": {"Code": "InvalidParameter", "Message": WORDS}}}),
    Shape("Tencent", {"Response": {"Error": {"Code": "InvalidParameter", "Message": WORDS}, "RequestId": "1"}}),
    Shape("Apigee", {"fault": {"faultstring": WORDS, "detail": {"errorcode": "steps.x"}}}),
    Shape("a list of messages", {"statusCode": 400, "error": "Bad Request", "message": ["first", "second"]}, "first; second"),
    Shape("words alone", WORDS.encode()),
    Shape("an event in place of a body", b"event: error\ndata: " + msgspec.json.encode(INNER) + b"\n\n"),
    Shape("a page", b"<!DOCTYPE html><html><head><title>400 Bad Request</title></head><body>nginx</body>", "400 Bad Request"),
    Shape("a page in a message", {"error": {"message": "<html><title>413 Too Large</title><p>x</p>"}}, "413 Too Large"),
]
# fmt: on


def as_bytes(body: object) -> bytes:
    return body if isinstance(body, bytes) else msgspec.json.encode(body)


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("case", SHAPES, ids=lambda case: case.id)
def test_callers_get_the_cause_of_a_refusal(name: str, case: Shape) -> None:
    error = DECODERS[name](400, {}, as_bytes(case.body))
    assert (error.name, error.message) == ("UPSTREAM_REJECTED", case.words)


@pytest.mark.parametrize("name", DECODERS)
def test_of_a_page_without_a_title_only_the_status_is_reported(name: str) -> None:
    error = DECODERS[name](400, {}, b"<html><body><h1>Ray ID 8885b5d9</h1></body></html>")
    assert error.message == "the provider refused the request (status 400)"


@pytest.mark.parametrize("name", TEXT_FORMATS)
@pytest.mark.parametrize("pass_", [True, False], ids=["passed", "translated"])
def test_an_event_of_a_stream_states_its_cause(name: str, pass_: bool) -> None:
    data = {"type": "error", **OPENROUTER}
    event = b"event: error\ndata: " + msgspec.json.encode(data) + b"\n\n"
    with raises_error(name="UPSTREAM_REJECTED", message=WORDS):
        decoder_of(TEXT_FORMATS[name], pb.GenerateRequest(), pass_).feed(event)


STATED_200 = [
    Shape("MiniMax", {"id": "1", "choices": None, "base_resp": {"status_code": 1008, "status_msg": WORDS}}),
    Shape("Baidu", {"error_code": 18, "error_msg": WORDS}),
    Shape("SiliconFlow", {"code": 20015, "message": WORDS, "data": None}),
]


@pytest.mark.parametrize("name", TEXT_FORMATS)
@pytest.mark.parametrize("pass_", [True, False], ids=["passed", "translated"])
@pytest.mark.parametrize("case", STATED_200, ids=lambda case: case.id)
def test_an_answer_with_status_200_states_its_failure(name: str, pass_: bool, case: Shape) -> None:
    with pytest.raises(UmgError) as caught:
        TEXT_FORMATS[name].decode_response(as_bytes(case.body), pb.GenerateRequest(), pass_)
    assert caught.value.facts is not None
    assert caught.value.facts.message == WORDS
    assert caught.value.failure is not Failure.AMBIGUOUS


@pytest.mark.parametrize("pass_", [True, False], ids=["passed", "translated"])
@pytest.mark.parametrize("case", STATED_200, ids=lambda case: case.id)
def test_a_chunk_without_choices_states_its_failure(pass_: bool, case: Shape) -> None:
    with pytest.raises(UmgError) as caught:
        decoder_of(TEXT_FORMATS["chat"], pb.GenerateRequest(), pass_).feed(b"data: " + as_bytes(case.body) + b"\n\n")
    assert caught.value.facts is not None
    assert caught.value.facts.message == WORDS


def test_the_codes_of_all_levels_are_read() -> None:
    inner = {"error": {"message": WORDS, "code": "rate_limit_exceeded", "type": "tokens", "param": "messages[0]"}}
    error = read_error(
        msgspec.json.encode({"error": {"code": 429, "message": "x", "metadata": {"raw": quoted(inner)}}})
    )
    assert (error.code, error.type, error.param) == ("rate_limit_exceeded", "tokens", "messages[0]")
    assert "429" in error.codes.split()


def test_an_error_inside_too_many_others_is_read_in_bounded_depth() -> None:
    body: object = INNER
    for _ in range(30):
        body = {"error": body}
    assert read_error(msgspec.json.encode(body)).message == ""


def test_every_place_has_its_vendors_and_its_source() -> None:
    rows = read_rows("error_places", Place)
    assert len({(row.part, row.path) for row in rows}) == len(rows)
    assert all(row.vendors and row.source and row.as_of for row in rows)

"""Every known wording of a provider for a request that is longer than the context gives callers of every format the
code, type and status by which clients shorten the conversation.
"""

from dataclasses import dataclass

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.unit.wire.streams import decoder_of
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.errors.error_classification import OverflowWording, ProviderError, is_overflow, overflow_wordings
from umg_grpc.wire.errors.http_status import http_status

WORDINGS = [row for row in overflow_wordings() if row.overflow and row.pattern]
OTHERS = [row for row in overflow_wordings() if not row.overflow and row.pattern]


@dataclass(frozen=True)
class Words:
    """Further wordings of servers, in the bodies in which they were seen."""

    id: str
    body: object
    status: int = 400


FURTHER = [
    Words("OpenAI's code", {"error": {"message": "x", "code": "context_length_exceeded"}}),
    Words("Copilot's code", {"error": {"message": "x", "code": "model_max_prompt_tokens_exceeded"}}),
    Words("Zhipu's code", {"error": {"message": "x", "code": "1261"}}),
    Words("llama.cpp", {"error": {"code": 400, "message": "x", "type": "exceed_context_size_error"}}),
    Words("TGI", {"error": "`inputs` must have less than 1024 tokens. Given: 2000", "error_type": "validation"}, 422),
    Words(
        "a relay in Chinese", {"error": {"type": "x", "message": "输入内容过长，请减少 Prompt 中的 token 数量后重试"}}
    ),
    Words("length in Chinese", {"message": "请求失败: 超过最大长度"}),
    Words("context in Chinese", {"error": {"message": "输入长度超过模型上限"}}),
    Words("tokens in Chinese", {"header": {}, "message": "token数量超过上限"}),
    Words(
        "SGLang, the sum", {"message": "Requested token count exceeds the model's maximum context length of 131072."}
    ),
    Words("by 413", {"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}, 413),
    Words("by 500", {"error": "prompt too long; exceeded max context length by 100 tokens"}, 500),
]


def refused(protocol: str, body: object, status: int = 400) -> UmgError:
    return TEXT_FORMATS[protocol].decode_error(status, {}, msgspec.json.encode(body))


def check(error: UmgError) -> None:
    """Assert that callers of the four formats get their words for a context that is too small."""
    assert (error.name, error.failure) == ("CONTEXT_TOO_LONG", Failure.CONTEXT)
    for face, codec in TEXT_FORMATS.items():
        status = http_status(error, face)
        shown = msgspec.json.decode(codec.encode_error(error, status))["error"]
        assert (status, shown["message"]) == (400, error.message)
        match face:
            case "chat" | "responses":
                assert (shown["code"], shown["type"]) == ("context_length_exceeded", "invalid_request_error")
            case "messages":
                assert (shown["type"], shown["details"]["error_code"]) == ("invalid_request_error", "context_too_long")
            case "native":
                assert (shown["code"], shown["status"]) == (400, "INVALID_ARGUMENT")


@pytest.mark.parametrize("protocol", TEXT_FORMATS)
@pytest.mark.parametrize("row", WORDINGS, ids=lambda row: row.example[:40])
def test_a_wording_is_an_overflow_for_callers_of_every_format(protocol: str, row: OverflowWording) -> None:
    error = refused(protocol, {"error": {"message": row.example, "type": "invalid_request_error", "code": None}})
    check(error)
    words = row.example.removeprefix("<400> InternalError.Algo.InvalidParameter: ")
    assert words in error.message


@pytest.mark.parametrize("protocol", TEXT_FORMATS)
@pytest.mark.parametrize("case", FURTHER, ids=lambda case: case.id)
def test_a_body_of_a_server_is_an_overflow_for_callers_of_every_format(protocol: str, case: Words) -> None:
    check(refused(protocol, case.body, case.status))


@pytest.mark.parametrize("name", TEXT_FORMATS)
@pytest.mark.parametrize("pass_", [True, False], ids=["passed", "translated"])
@pytest.mark.parametrize("row", WORDINGS, ids=lambda row: row.example[:40])
def test_a_wording_in_an_event_without_a_code_is_an_overflow(name: str, pass_: bool, row: OverflowWording) -> None:
    event = {"type": "error", "error": {"message": row.example}}
    with raises_error(name="CONTEXT_TOO_LONG"):
        data = b"event: error\ndata: " + msgspec.json.encode(event) + b"\n\n"
        decoder_of(TEXT_FORMATS[name], pb.GenerateRequest(), pass_).feed(data)


@pytest.mark.parametrize("protocol", TEXT_FORMATS)
@pytest.mark.parametrize("row", OTHERS, ids=lambda row: row.example[:40])
def test_a_similar_wording_is_no_overflow(protocol: str, row: OverflowWording) -> None:
    assert refused(protocol, {"error": {"message": row.example}}).name == "UPSTREAM_REJECTED"


@pytest.mark.parametrize(
    "message",
    [
        "Invalid value for search_context_size",
        "The temperature is too high",
        "max_tokens only supports up to 8192 tokens",
        "messages: at least one message is required",
        "stop only supports up to 4 sequences",
    ],
)
def test_another_refusal_is_no_overflow(message: str) -> None:
    assert not is_overflow(ProviderError(message=message))


def test_wordings_of_more_than_twelve_servers_are_known() -> None:
    vendors = {vendor.strip() for row in WORDINGS for vendor in row.vendors.split(",")}
    assert len(vendors) > 12
    assert all(row.source and row.as_of and bool(row.pattern) != bool(row.codes) for row in overflow_wordings())

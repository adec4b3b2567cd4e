"""The shape that a request selects, the page of its query, and the form of its errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import pytest
from multidict import CIMultiDict

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.model_list_page_token import encode_token, page_after, page_before
from umg_grpc.wire.model_lists import MODEL_LISTS, shape_for, shape_of

CHAT, MESSAGES, NATIVE, COHERE = "models", "messages_models", "key_native_models", "cohere_models"


@dataclass(frozen=True)
class Choice:
    id: str
    shape: str
    headers: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)


BEARER = {"Authorization": "Bearer k"}
VERSION = {"anthropic-version": "2023-06-01"}
CHOICES = [
    Choice("nothing", CHAT),
    Choice("a bearer", CHAT, BEARER),
    Choice("a key header of the messages format alone", CHAT, {"x-api-key": "k"}),
    Choice("a version", MESSAGES, VERSION),
    Choice("an unknown version", MESSAGES, {"Anthropic-Version": ""}),
    Choice("a version and a bearer", MESSAGES, VERSION | BEARER),
    Choice("a version and its key header", MESSAGES, VERSION | {"x-api-key": "k"}),
    Choice("a version and a native key", MESSAGES, VERSION | {"x-goog-api-key": "k"}, {"key": "k"}),
    Choice("the document's key header", NATIVE, {"x-vendorg-api-key": "k"}),
    Choice("the SDKs' key header", NATIVE, {"X-Goog-Api-Key": "k"}),
    Choice("a key header and a bearer", NATIVE, {"x-goog-api-key": "k"} | BEARER),
    Choice("a key in the query", NATIVE, {}, {"key": "k"}),
    Choice("a key in the query and a bearer", NATIVE, BEARER, {"key": "k"}),
    Choice("Cohere's SDK", COHERE, {"X-Fern-SDK-Name": "cohere"} | BEARER),
    Choice("Cohere's SDK in JavaScript", COHERE, {"x-fern-sdk-name": "cohere-ai"}),
    Choice("Cohere's SDK in Go", COHERE, {"x-fern-sdk-name": "github.com/cohere-ai/cohere-go/v2"}),
    Choice("an SDK of another vendor, made alike", CHAT, {"x-fern-sdk-name": "elevenlabs"}),
    Choice("Cohere's SDK with another vendor's header", MESSAGES, VERSION | {"x-fern-sdk-name": "cohere"}),
    Choice("a query without page options", CHAT, BEARER, {"limit": "2", "pageSize": "2"}),
]


@pytest.mark.parametrize("case", CHOICES, ids=lambda case: case.id)
def test_a_request_chooses_its_shape(case: Choice) -> None:
    headers = CIMultiDict(case.headers)
    assert shape_of(headers, case.query) == case.shape
    assert shape_for("models", headers, case.query) == case.shape
    for face in ("native_models", "chat", "messages"):  # a request without a choice
        assert shape_for(face, headers, case.query) == face


@dataclass(frozen=True)
class Page:
    id: str
    shape: str
    query: Mapping[str, str]
    request: Mapping[str, object]


PAGES = [
    Page("chat: all", CHAT, {}, {}),
    Page("chat: every query", CHAT, {"limit": "x", "after": "a", "pageSize": "0", "after_id": "a"}, {}),
    Page("messages: the default", MESSAGES, {"beta": "true"}, {"page_size": 20}),
    Page("messages: the least", MESSAGES, {"limit": "1"}, {"page_size": 1}),
    Page("messages: the most", MESSAGES, {"limit": "1000"}, {"page_size": 1000}),
    Page("messages: behind", MESSAGES, {"after_id": "vendor/a"}, {"page_size": 20, "page_token": encode_token(page_after("vendor/a"))}),
    Page("messages: before", MESSAGES, {"limit": "3", "before_id": "a"}, {"page_size": 3, "page_token": encode_token(page_before("a"))}),
    Page("messages: ids that say nothing", MESSAGES, {"before_id": "", "after_id": ""}, {"page_size": 20}),
    Page("cohere: the default", COHERE, {"default_only": "false"}, {"page_size": 20}),
    Page("cohere: a number of any kind", COHERE, {"page_size": "7.0", "page_token": "t"}, {"page_size": 7, "page_token": "t"}),
    Page("cohere: an endpoint", COHERE, {"endpoint": "embed"}, {"page_size": 20, "operation": pb.MODEL_OPERATION_EMBED}),
    Page("native: the default", NATIVE, {"key": "k"}, {"page_size": 50}),
    Page("native: the most", NATIVE, {"pageSize": "1000"}, {"page_size": 1000}),
    Page("native: a token", NATIVE, {"pageToken": "t"}, {"page_size": 50, "page_token": "t"}),
    Page("native: an empty token", NATIVE, {"pageToken": ""}, {"page_size": 50}),
    Page("native: snake", NATIVE, {"page_size": "2", "page_token": "t"}, {"page_size": 2, "page_token": "t"}),
]  # fmt: skip


@pytest.mark.parametrize("case", PAGES, ids=lambda case: case.id)
def test_a_query_is_decoded_to_a_page(case: Page) -> None:
    assert MODEL_LISTS[case.shape].decode_query(case.query) == pb.ListModelsRequest(**case.request)


NUMBERS = ("0", "1001", "-1", "abc", "", "1.0", "+5", " 5", "٥", "1" * 5000, "000000001" + "9" * 11)
REFUSED = [
    *(
        (shape, name, {name: number})
        for shape, name in ((MESSAGES, "limit"), (NATIVE, "pageSize"), (COHERE, "page_size"))
        for number in NUMBERS
        if (shape, number) != (COHERE, "1.0")
    ),
    (NATIVE, "page_size", {"page_size": "0"}),
    (COHERE, "page_size", {"page_size": "1.5"}),
    (COHERE, "endpoint", {"endpoint": "classify"}),
    (COHERE, "endpoint", {"endpoint": ""}),
    (COHERE, "default_only", {"endpoint": "chat", "default_only": "true"}),
    (MESSAGES, "before_id", {"before_id": "a", "after_id": "b"}),
]


@pytest.mark.parametrize(("shape", "name", "query"), REFUSED, ids=lambda value: str(value)[:30])
def test_a_wrong_query_is_refused_by_the_name_of_its_parameter(shape: str, name: str, query: Mapping[str, str]) -> None:
    with pytest.raises(UmgError) as caught:
        MODEL_LISTS[shape].decode_query(query)
    assert (caught.value.reason, caught.value.metadata) == (pb.ERROR_REASON_INVALID_FIELD, {"field": name})
    assert f"`{name}`" in caught.value.message


def test_a_canonical_field_has_its_name_in_the_callers_format() -> None:
    names = {
        face: [shape.wire_path(name) for name in ("page_size", "page_token", "after_id")]
        for face, shape in MODEL_LISTS.items()
    }
    assert names == {
        CHAT: ["page_size", "page_token", "after_id"],
        MESSAGES: ["limit", "page_token", "after_id"],
        NATIVE: ["pageSize", "pageToken", "after_id"],
        COHERE: ["page_size", "page_token", "after_id"],
        "native_models": ["pageSize", "pageToken", "after_id"],
        "ollama_models": ["page_size", "page_token", "after_id"],
        "ollama_running": ["page_size", "page_token", "after_id"],
    }


@dataclass(frozen=True)
class Refusal:
    id: str
    reason: "pb.ErrorReason.ValueType"
    status: int
    code: str  # the document's code
    type: str
    messages_type: str
    word: str
    message: str = "what to do"


WRONG_KEY = "Incorrect API key provided: what to do"
REFUSALS = [
    Refusal("no key", pb.ERROR_REASON_MISSING_KEY, 401, "invalid_api_key", "invalid_request_error", "authentication_error", "UNAUTHENTICATED"),
    Refusal("a bad key", pb.ERROR_REASON_INVALID_KEY, 401, "invalid_api_key", "invalid_request_error", "authentication_error", "UNAUTHENTICATED", WRONG_KEY),
    Refusal("an old key", pb.ERROR_REASON_KEY_EXPIRED, 401, "invalid_api_key", "invalid_request_error", "authentication_error", "UNAUTHENTICATED", WRONG_KEY),
    Refusal("no model", pb.ERROR_REASON_MODEL_NOT_FOUND, 404, "model_not_found", "invalid_request_error", "not_found_error", "NOT_FOUND"),
    Refusal("a bad query", pb.ERROR_REASON_INVALID_FIELD, 400, "invalid_field", "invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"),
    Refusal("too many calls", pb.ERROR_REASON_RATE_LIMITED, 429, "rate_limited", "rate_limit_error", "rate_limit_error", "RESOURCE_EXHAUSTED"),
    Refusal("a fault", pb.ERROR_REASON_INTERNAL, 500, "internal", "server_error", "api_error", "INTERNAL"),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_an_error_has_the_body_of_its_shape(case: Refusal) -> None:
    error = UmgError(case.reason, "what to do")
    bodies = {face: msgspec.json.decode(shape.encode_error(error, case.status)) for face, shape in MODEL_LISTS.items()}
    documented = {"message": "what to do", "type": case.type, "code": case.code}
    in_words = documented | {"message": case.message}
    assert bodies[CHAT] == {"error": in_words}
    assert bodies[NATIVE] == {"error": in_words | {"status": case.word}}
    assert bodies["native_models"] == {"error": {"code": case.status, "message": "what to do", "status": case.word}}
    assert bodies[COHERE]["message"] == bodies[COHERE]["error"]["message"] == case.message
    assert bodies[MESSAGES]["type"] == "error"
    assert bodies[MESSAGES]["error"].items() >= (documented | {"type": case.messages_type}).items()

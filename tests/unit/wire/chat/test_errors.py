"""Errors: the gateway's as a chat body, a provider's as the gateway's."""

from dataclasses import dataclass, field

import msgspec
import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import CHAT_FORMAT
from umg_grpc.wire.chat.errors import ERROR_KINDS

REJECTED, FAILED, LIMITED = (
    pb.ERROR_REASON_UPSTREAM_REJECTED,
    pb.ERROR_REASON_UPSTREAM_FAILED,
    pb.ERROR_REASON_UPSTREAM_RATE_LIMITED,
)


def test_every_reason_has_its_type_and_code() -> None:
    assert set(ERROR_KINDS) == set(pb.ErrorReason.values())


def test_an_error_has_message_type_param_and_code() -> None:
    error = UmgError(pb.ERROR_REASON_INVALID_FIELD, "`temperature`: too high", field="temperature")
    assert msgspec.json.decode(CHAT_FORMAT.encode_error(error, 400)) == {
        "error": {
            "message": "`temperature`: too high",
            "type": "invalid_request_error",
            "param": "temperature",
            "code": "invalid_value",
        }
    }


@pytest.mark.parametrize(
    ("reason", "status", "kind", "code"),
    [
        (pb.ERROR_REASON_MISSING_KEY, 401, "invalid_request_error", "invalid_api_key"),
        (pb.ERROR_REASON_MODEL_NOT_FOUND, 404, "invalid_request_error", "model_not_found"),
        (pb.ERROR_REASON_RATE_LIMITED, 429, "rate_limit_error", "rate_limit_exceeded"),
        (pb.ERROR_REASON_QUOTA_EXHAUSTED, 429, "insufficient_quota", "insufficient_quota"),
        (pb.ERROR_REASON_CONTEXT_TOO_LONG, 400, "invalid_request_error", "context_length_exceeded"),
        (pb.ERROR_REASON_BODY_TOO_LARGE, 413, "invalid_request_error", "request_too_large"),
        (pb.ERROR_REASON_INTERNAL, 500, "server_error", None),
        (pb.ERROR_REASON_UPSTREAM_FAILED, 502, "server_error", "upstream_failed"),
    ],
)
def test_clients_know_the_codes(reason: "pb.ErrorReason.ValueType", status: int, kind: str, code: str | None) -> None:
    error = msgspec.json.decode(CHAT_FORMAT.encode_error(UmgError(reason, "m"), status))["error"]
    assert error == {"message": "m", "type": kind, "param": None, "code": code}


@pytest.mark.parametrize("reason", [pb.ERROR_REASON_INVALID_KEY, pb.ERROR_REASON_KEY_EXPIRED])
def test_a_wrong_key_is_refused_in_the_words_that_clients_look_for(reason: "pb.ErrorReason.ValueType") -> None:
    error = msgspec.json.decode(CHAT_FORMAT.encode_error(UmgError(reason, "ask for another"), 401))["error"]
    assert error["message"] == "Incorrect API key provided: ask for another"
    assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_api_key")


@dataclass(frozen=True)
class Refusal:
    id: str
    status: int
    body: object
    reason: "pb.ErrorReason.ValueType"
    message: str
    metadata: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


def error(message: str, **more: object) -> dict[str, object]:
    return {"error": {"message": message, **more}}


DATES = {"date": "Thu, 09 Oct 2025 08:53:20 GMT", "retry-after": "Thu, 09 Oct 2025 08:53:25 GMT"}
REFUSALS = [
    Refusal("a bad value", 400, error("Invalid 'temperature': 3", type="invalid_request_error", param="temperature", code="x"), REJECTED, "Invalid 'temperature': 3", {"field": "temperature", "upstream_status": "400"}),
    Refusal("a problem without a path", 422, {"detail": [{"msg": "Field required"}]}, REJECTED, "Field required", {"upstream_status": "422"}),
    Refusal("a message beside it", 422, {"message": "bad body", "detail": [{"msg": "Field required"}]}, REJECTED, "bad body", {"upstream_status": "422"}),
    Refusal("a list that cannot be read", 422, {"detail": [1]}, REJECTED, "status 422", {"upstream_status": "422"}),
    Refusal("a list of nothing", 422, {"detail": []}, REJECTED, "status 422", {"upstream_status": "422"}),
    Refusal("a detail that is an object", 422, {"detail": {"msg": "x"}}, REJECTED, "x", {"upstream_status": "422"}),
    Refusal("a parameter that is no path", 400, error("bad", param="a b\nc"), REJECTED, "bad", {"upstream_status": "400"}),
    Refusal("a message of another type", 400, error("x") | {"error": {"message": [1]}}, REJECTED, "status 400", {"upstream_status": "400"}),
    Refusal("a long prompt", 400, error("This model's maximum context length is 8192 tokens.", code="context_length_exceeded", param="messages"), pb.ERROR_REASON_CONTEXT_TOO_LONG, "8192", {"field": "messages"}),
    Refusal("a value it does not know, by its code", 400, error("Unsupported value", code="unsupported_value", param="temperature"), pb.ERROR_REASON_UPSTREAM_REJECTED, "Unsupported", {"upstream_status": "400", "field": "temperature", "upstream_code": "unsupported_value"}),
    Refusal("a filtered prompt", 400, error("The response was filtered", code="content_filter"), pb.ERROR_REASON_CONTENT_BLOCKED, "filtered"),
    Refusal("our key", 401, error("Incorrect API key provided: sk-abc***xyz", code="invalid_api_key"), FAILED, "operator", {"upstream_status": "401"}),
    Refusal("its failure", 500, error("The server had an error, request req_123abc456"), FAILED, "had an error, request [id]", {"upstream_status": "500"}),
    Refusal("its failure about our account", 500, error("organization org-1 has no quota"), FAILED, "try again", {"upstream_status": "500"}),
    Refusal("a page", 502, b"<html><h1>502 Bad Gateway</h1>nginx/1.2 upstream.internal</html>", FAILED, "the provider failed (status 502); try again", {"upstream_status": "502"}),
    Refusal("its limit", 429, error("Rate limit reached for org-abc"), LIMITED, "rate limit is reached; try again later", {"retry_after_seconds": "1"}),
    Refusal("its limit as a date", 429, error("x"), LIMITED, "5 s", {"retry_after_seconds": "5"}, DATES),
    Refusal("a date without the time of the response", 429, error("x"), LIMITED, "later", {"retry_after_seconds": "1"}, {"retry-after": DATES["retry-after"]}),
    Refusal("a wait of ages", 429, error("x"), LIMITED, "86400 s", {"retry_after_seconds": "86400"}, {"retry-after": "9" * 30}),
    Refusal("a wait that cannot be read", 429, error("x"), LIMITED, "later", {"retry_after_seconds": "1"}, {"retry-after": "soon", "date": "now"}),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_a_providers_refusal_is_reported_without_our_secrets(case: Refusal) -> None:
    body = case.body if isinstance(case.body, bytes) else msgspec.json.encode(case.body)
    raised = CHAT_FORMAT.decode_error(case.status, case.headers, body)
    assert (raised.name, raised.metadata) == (
        pb.ErrorReason.Name(case.reason).removeprefix("ERROR_REASON_"),
        case.metadata,
    )
    assert case.message in raised.message
    for secret in ("sk-abc", "org-", "proj_", "req_123", "nginx", "internal", "API key"):
        assert secret not in raised.message

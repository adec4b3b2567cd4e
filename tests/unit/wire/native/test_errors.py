"""Errors: the gateway's as a native body, a provider's as the gateway's."""

from dataclasses import dataclass, field

import msgspec
import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.http_status import HTTP_STATUS, PROVIDERS_OWN
from umg_grpc.wire.native import NATIVE_FORMAT
from umg_grpc.wire.native.errors import STATUS_NAMES

REJECTED, FAILED, LIMITED, LONG = (
    pb.ERROR_REASON_UPSTREAM_REJECTED,
    pb.ERROR_REASON_UPSTREAM_FAILED,
    pb.ERROR_REASON_UPSTREAM_RATE_LIMITED,
    pb.ERROR_REASON_CONTEXT_TOO_LONG,
)
WORDS = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 405: "UNIMPLEMENTED", 409: "ABORTED",
    413: "INVALID_ARGUMENT", 415: "INVALID_ARGUMENT", 416: "OUT_OF_RANGE", 422: "INVALID_ARGUMENT", 424: "FAILED_PRECONDITION", 451: "PERMISSION_DENIED", 402: "FAILED_PRECONDITION", 429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL",
    501: "UNIMPLEMENTED", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}  # fmt: skip


def test_every_reason_has_its_status_and_code() -> None:
    assert set(HTTP_STATUS) == set(pb.ErrorReason.values())
    assert (
        {status: STATUS_NAMES[status] for status in {*HTTP_STATUS.values(), *map(int, PROVIDERS_OWN)}}
        == WORDS
        == STATUS_NAMES
    )


def test_an_error_has_code_message_and_status_and_where_it_is() -> None:
    error = UmgError(pb.ERROR_REASON_INVALID_FIELD, "`contents`: bad", field="contents")
    assert msgspec.json.decode(NATIVE_FORMAT.encode_error(error, 400)) == {
        "error": {
            "code": 400, "message": "`contents`: bad", "status": "INVALID_ARGUMENT",
            "details": [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [{"field": "contents", "description": "`contents`: bad"}]}],
        }
    }  # fmt: skip


def test_a_rate_limit_error_has_a_retry_time() -> None:
    error = UmgError(pb.ERROR_REASON_RATE_LIMITED, "slow", retry_after_seconds="7")
    body = msgspec.json.decode(NATIVE_FORMAT.encode_error(error, 429))["error"]
    assert body["details"] == [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}]


@pytest.mark.parametrize(("status", "word"), [(400, "INVALID_ARGUMENT"), (500, "INTERNAL")])
def test_an_unknown_error_reason_is_encoded_by_its_status(status: int, word: str) -> None:
    error = UmgError(pb.ERROR_REASON_INTERNAL, "m")
    error.reason = 9999
    assert msgspec.json.decode(NATIVE_FORMAT.encode_error(error, status))["error"] == {
        "code": status,
        "message": "m",
        "status": word,
    }


@dataclass(frozen=True)
class Refusal:
    id: str
    status: int
    body: object
    reason: "pb.ErrorReason.ValueType"
    message: str
    metadata: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


def error(code: int, message: str, status: str, *details: object) -> dict[str, object]:
    return {
        "error": {"code": code, "message": message, "status": status} | ({"details": list(details)} if details else {})
    }


VIOLATION = {
    "@type": "type.googleapis.com/google.rpc.BadRequest",
    "fieldViolations": [{"field": "generation_config.top_k", "description": "d"}],
}
RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"}
REFUSALS = [
    Refusal("a bad value", 400, error(400, "Invalid value at 'x'", "INVALID_ARGUMENT", {"@type": "other"}, VIOLATION), REJECTED, "Invalid value at 'x'", {"upstream_status": "400", "field": "generation_config.top_k"}),
    Refusal("in a list", 400, [error(400, "bad", "INVALID_ARGUMENT", VIOLATION)], REJECTED, "bad", {"upstream_status": "400", "field": "generation_config.top_k"}),
    Refusal("a key of ours", 400, error(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT"), FAILED, "operator", {"upstream_status": "400"}),
    Refusal("our country or billing", 400, error(400, "User location is not supported for the API use.", "FAILED_PRECONDITION"), FAILED, "operator", {"upstream_status": "400"}),
    Refusal("our rights", 403, error(403, "Permission denied on project projects/123456789012", "PERMISSION_DENIED"), FAILED, "operator", {"upstream_status": "403"}),
    Refusal("a model that it lacks", 404, error(404, "models/x is not found", "NOT_FOUND"), FAILED, "operator", {"upstream_status": "404"}),
    Refusal("a long prompt", 400, error(400, "The input token count (1052341) exceeds the maximum number of tokens allowed (1048576).", "INVALID_ARGUMENT"), LONG, "1048576", {"field": "messages"}),
    Refusal("its limit", 429, error(429, "You exceeded your current quota", "RESOURCE_EXHAUSTED", RETRY), LIMITED, "try again in 35 s", {"retry_after_seconds": "35"}),
    Refusal("its limit in a header", 429, error(429, "x", "RESOURCE_EXHAUSTED", RETRY), LIMITED, "7 s", {"retry_after_seconds": "7"}, {"retry-after": "7"}),
    Refusal("its limit without a time", 429, error(429, "x", "RESOURCE_EXHAUSTED"), LIMITED, "later", {"retry_after_seconds": "1"}),
    Refusal("its failure", 503, error(503, "The model is overloaded.", "UNAVAILABLE"), pb.ERROR_REASON_UPSTREAM_OVERLOADED, "overloaded", {"upstream_status": "503"}),
    Refusal("a page", 502, b"<html>nginx</html>", FAILED, "status 502", {"upstream_status": "502"}),
    Refusal("an empty list", 500, b"[]", FAILED, "status 500", {"upstream_status": "500"}),
    Refusal("details of another shape", 400, {"error": {"message": "bad", "details": {"a": 1}}}, REJECTED, "bad", {"upstream_status": "400"}),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_a_providers_refusal_is_reported_without_our_secrets(case: Refusal) -> None:
    body = case.body if isinstance(case.body, bytes) else msgspec.json.encode(case.body)
    raised = NATIVE_FORMAT.decode_error(case.status, case.headers, body)
    assert (raised.name, raised.metadata) == (
        pb.ErrorReason.Name(case.reason).removeprefix("ERROR_REASON_"),
        case.metadata,
    )
    assert case.message in raised.message
    for secret in ("API key", "123456789012", "nginx", "location"):
        assert secret not in raised.message

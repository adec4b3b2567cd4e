"""Errors: the gateway's as a native body, a provider's as the gateway's."""

import msgspec
import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.http_status import HTTP_STATUS, PROVIDERS_OWN
from umg_grpc.wire.native import NATIVE_FORMAT
from umg_grpc.wire.native.errors import STATUS_NAMES

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

"""Errors: the gateway's as this format writes them, a provider's as the gateway's."""

import msgspec
import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.http_status import HTTP_STATUS, http_status
from umg_grpc.wire.messages import MESSAGES_FORMAT, encode_count_error

VOCABULARY = {
    "invalid_request_error", "authentication_error", "billing_error", "permission_error", "not_found_error", "request_too_large", "rate_limit_error",
    "api_error", "timeout_error", "overloaded_error",
}  # fmt: skip


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"), (401, "authentication_error"), (402, "billing_error"), (403, "permission_error"), (404, "not_found_error"),
        (405, "invalid_request_error"), (413, "request_too_large"), (415, "invalid_request_error"), (429, "rate_limit_error"), (500, "api_error"),
        (501, "api_error"), (502, "api_error"), (503, "overloaded_error"), (504, "timeout_error"), (529, "overloaded_error"),
    ],
)  # fmt: skip
def test_a_status_has_its_type(status: int, kind: str) -> None:
    error = UmgError(pb.ERROR_REASON_INVALID_FIELD, "`a`: wrong", field="a")
    assert msgspec.json.decode(MESSAGES_FORMAT.encode_error(error, status)) == {
        "type": "error", "error": {"type": kind, "message": "`a`: wrong", "details": {"error_code": "invalid_field", "field": "a"}},
    }  # fmt: skip


@pytest.mark.parametrize("reason", pb.ErrorReason.values(), ids=pb.ErrorReason.Name)
def test_every_reason_is_encoded_in_the_formats_vocabulary(reason: "pb.ErrorReason.ValueType") -> None:
    error = UmgError(reason, "what happened")
    for write in (MESSAGES_FORMAT.encode_error, encode_count_error):
        stated = msgspec.json.decode(write(error, HTTP_STATUS[reason]))["error"]
        assert (stated["type"] in VOCABULARY, stated["message"]) == (True, "what happened")
    frame = MESSAGES_FORMAT.stream_encoder(pb.GenerateRequest()).error(error)
    head, data = frame.split(b"\ndata: ")
    streamed = msgspec.json.decode(data)
    assert (head, frame[-2:], streamed["type"], streamed["error"]["message"]) == (
        b"event: error",
        b"\n\n",
        "error",
        "what happened",
    )
    assert streamed["error"]["type"] in VOCABULARY


@pytest.mark.parametrize("reason", HTTP_STATUS, ids=pb.ErrorReason.Name)
def test_a_stream_names_an_error_as_its_status_does(reason: "pb.ErrorReason.ValueType") -> None:
    error = UmgError(reason, "what happened")
    frame = MESSAGES_FORMAT.stream_encoder(pb.GenerateRequest()).error(error)
    streamed = msgspec.json.decode(frame.partition(b"\ndata: ")[2])
    whole = msgspec.json.decode(MESSAGES_FORMAT.encode_error(error, http_status(error, "messages")))
    assert streamed["error"]["type"] == whole["error"]["type"]


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (pb.ERROR_REASON_MISSING_KEY, "invalid_api_key"), (pb.ERROR_REASON_INVALID_KEY, "invalid_api_key"), (pb.ERROR_REASON_KEY_EXPIRED, "invalid_api_key"),
        (pb.ERROR_REASON_MODEL_NOT_FOUND, "model_not_found"), (pb.ERROR_REASON_MISSING_FIELD, "missing_field"),
    ],
)  # fmt: skip
def test_a_refused_counting_call_has_a_body_of_both_shapes(reason: "pb.ErrorReason.ValueType", code: str) -> None:
    body = msgspec.json.decode(encode_count_error(UmgError(reason, "no"), HTTP_STATUS[reason]))
    assert body["type"] == "error"
    assert (body["error"]["message"], body["error"]["code"], body["error"]["type"] in VOCABULARY) == ("no", code, True)

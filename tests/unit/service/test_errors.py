"""Catalogue of errors: every reason has a status, and is transferred over a socket without loss."""

import re
from pathlib import Path

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from umg_grpc.base.errors import UmgError
from umg_grpc.base.grpc_status import DETAILS_KEY, HTTP_STATUSES, from_rpc, to_status
from umg_grpc.v1 import pb

PROTO = Path(__file__).parents[3] / "proto/umg/v1/error_reason.proto"
REASONS = sorted(pb.ErrorReason.values())


def documented() -> dict[str, str]:
    """Return reason -> gRPC status, as the comments of the schema state it."""
    found, comment = {}, ""
    for line in PROTO.read_text().splitlines():
        text = line.strip()
        if text.startswith("//"):
            comment += f" {text.removeprefix('//').strip()}"
        elif match := re.match(r"ERROR_REASON_(\w+) = \d+;", text):
            statuses = re.findall(r"\b([A-Z_]+), HTTP \d{3}", comment)
            found[match[1]] = statuses[-1] if statuses else ""
            comment = ""
        else:
            comment = ""
    return found


def test_every_reason_has_the_status_that_the_schema_documents() -> None:
    statuses = {
        pb.ErrorReason.Name(reason).removeprefix("ERROR_REASON_"): status for reason, status in HTTP_STATUSES.items()
    }
    assert {**{name: status.name for name, status in statuses.items()}, "UNSPECIFIED": ""} == documented()


@pytest.mark.parametrize("reason", REASONS, ids=pb.ErrorReason.Name)
def test_a_reason_crosses_a_socket(reason: pb.ErrorReason.ValueType) -> None:
    error = UmgError(reason, "say what to do", field="messages[0]")
    assert _crossed(error) == error_fields(error)


# The one key that is no text for readers: a number of seconds.
KEYS = st.text(min_size=1, max_size=20).filter(lambda key: key != "retry_after_seconds")


@given(st.text(max_size=100), st.dictionaries(KEYS, st.text(max_size=50), max_size=4))
def test_any_message_and_metadata_cross_a_socket(message: str, metadata: dict[str, str]) -> None:
    metadata.pop("reason", None), metadata.pop("message", None), metadata.pop("self", None)
    error = UmgError(pb.ERROR_REASON_INVALID_FIELD, message, **metadata)
    assert _crossed(error) == error_fields(error)


def test_a_retry_delay_is_also_in_the_standard_status_detail() -> None:
    from google.rpc import error_details_pb2, status_pb2

    error = UmgError(pb.ERROR_REASON_RATE_LIMITED, "wait", retry_after_seconds="3")
    status = status_pb2.Status.FromString(to_status(error))
    info = error_details_pb2.RetryInfo()
    assert any(detail.Unpack(info) for detail in status.details)
    assert info.retry_delay.seconds == 3


BARE = [
    (grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE"),
    (grpc.StatusCode.RESOURCE_EXHAUSTED, "BODY_TOO_LARGE"),
    (grpc.StatusCode.DATA_LOSS, "INTERNAL"),
]


@pytest.mark.parametrize(("code", "reason"), BARE, ids=[code.name for code, _ in BARE])
def test_a_failure_that_grpc_made_itself_gets_a_reason_too(code: grpc.StatusCode, reason: str) -> None:
    error = from_rpc(grpc.aio.AioRpcError(code, details="failed to connect to 10.0.0.1:50051"))
    assert error.name == reason
    assert "10.0.0.1" not in error.message


def test_a_reason_of_a_newer_server_reads_as_internal() -> None:
    error = UmgError(pb.ERROR_REASON_INTERNAL, "m")
    details = to_status(error).replace(b"INTERNAL", b"FROM_NEW")
    trailing = grpc.aio.Metadata((DETAILS_KEY, details))
    assert from_rpc(grpc.aio.AioRpcError(grpc.StatusCode.INTERNAL, trailing_metadata=trailing)).name == "INTERNAL"


def error_fields(error: UmgError) -> tuple[int, str, dict[str, str]]:
    return error.reason, error.message, dict(error.metadata)


def _crossed(error: UmgError) -> tuple[int, str, dict[str, str]]:
    trailing = grpc.aio.Metadata((DETAILS_KEY, to_status(error)))
    return error_fields(
        from_rpc(grpc.aio.AioRpcError(HTTP_STATUSES[error.reason], trailing_metadata=trailing, details=error.message))
    )

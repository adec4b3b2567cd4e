"""Refusals of Converse providers by status, exception and message."""

import json
from dataclasses import dataclass

import pytest

from umg_grpc.base.errors import Failure
from umg_grpc.v1 import pb
from umg_grpc.wire.converse import CONVERSE_FORMAT


@dataclass(frozen=True)
class Refusal:
    id: str
    status: int
    exception: str
    message: str
    reason: "pb.ErrorReason.ValueType"
    failure: Failure
    member: str = "message"


FAILED, LIMITED = pb.ERROR_REASON_UPSTREAM_FAILED, pb.ERROR_REASON_UPSTREAM_RATE_LIMITED
LONG, REJECTED = pb.ERROR_REASON_CONTEXT_TOO_LONG, pb.ERROR_REASON_UPSTREAM_REJECTED
CASES = [
    Refusal("throttled", 429, "ThrottlingException", "Too many tokens, please wait before trying again.", LIMITED, Failure.OVERLOADED),
    Refusal("not ready", 429, "ModelNotReadyException", "The model is not ready.", LIMITED, Failure.OVERLOADED),
    Refusal("the quota", 400, "ServiceQuotaExceededException", "The quota is used up.", pb.ERROR_REASON_UPSTREAM_QUOTA_EXHAUSTED, Failure.DOWN),
    Refusal("no access", 403, "AccessDeniedException", "You don't have access to the model.", FAILED, Failure.DOWN),
    Refusal("an expired token", 403, "ExpiredTokenException", "The security token is expired", FAILED, Failure.DOWN, member="Message"),
    Refusal("an expired token by 400", 400, "ExpiredTokenException", "The security token is expired", FAILED, Failure.DOWN),
    Refusal("a profile is needed", 400, "ValidationException", "Invocation of model ID x with on-demand throughput isn’t supported.", FAILED, Failure.DOWN),
    Refusal("an unknown id", 400, "ValidationException", "The provided model identifier is invalid.", FAILED, Failure.DOWN),
    Refusal("too long", 400, "ValidationException", "Input is too long for requested model.", LONG, Failure.CONTEXT),
    Refusal("too many bytes", 400, "ValidationException", "too many total text bytes: 31000000 > 27000000", LONG, Failure.CONTEXT),
    Refusal("invalid", 400, "ValidationException", "The text field is blank.", REJECTED, Failure.CALLER),
    Refusal("the model", 424, "ModelErrorException", "The model failed.", FAILED, Failure.TRANSIENT),
    Refusal("too slow", 408, "ModelTimeoutException", "Timed out.", pb.ERROR_REASON_UPSTREAM_TIMEOUT, Failure.TRANSIENT),
    Refusal("overload", 503, "ServiceUnavailableException", "Try later.", pb.ERROR_REASON_UPSTREAM_OVERLOADED, Failure.TRANSIENT),
    Refusal("internal", 500, "InternalServerException", "Oops.", FAILED, Failure.TRANSIENT),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_refusal_has_its_consequence_and_the_name_of_its_exception(case: Refusal) -> None:
    headers = {"x-amzn-errortype": f"{case.exception}:http://internal.amazon.com/coral/"}
    error = CONVERSE_FORMAT.decode_error(case.status, headers, json.dumps({case.member: case.message}).encode())
    assert (error.reason, error.failure) == (case.reason, case.failure)
    assert error.facts is not None
    assert error.facts.code == case.exception

"""Errors of image providers: their reasons, and the consequence for further attempts."""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import pytest

from tests.support.error_checks import raises_error
from umg_grpc.base.errors import Failure
from umg_grpc.v1 import pb
from umg_grpc.wire.images.providers import IMAGE_PROTOCOLS
from umg_grpc.wire.images.providers.dashscope_images import needs_task

BLOCKED, REJECTED = pb.ERROR_REASON_CONTENT_BLOCKED, pb.ERROR_REASON_UPSTREAM_REJECTED
FAILED, LIMITED = pb.ERROR_REASON_UPSTREAM_FAILED, pb.ERROR_REASON_UPSTREAM_RATE_LIMITED


@dataclass(frozen=True)
class Case:
    id: str
    protocol: str
    status: int
    error: dict[str, object]
    reason: "pb.ErrorReason.ValueType"
    failure: Failure

    @property
    def body(self) -> bytes:
        return msgspec.json.encode(self.error)


def openai(code: str | None, kind: str, message: str = "It went wrong.", param: str | None = None) -> dict[str, object]:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def ark(code: str) -> dict[str, object]:
    return {"error": {"code": code, "message": "It went wrong.", "param": "", "type": "BadRequest"}}


def native(code: int, status: str, message: str = "It went wrong.") -> dict[str, object]:
    return {"error": {"code": code, "message": message, "status": status}}


def flat(code: str, message: str = "It went wrong.") -> dict[str, object]:
    return {"code": code, "message": message, "request_id": "r-1"}


def ours(code: int, name: str | None, message: str = "It went wrong.") -> dict[str, object]:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": name}
    return {"code": code, "msg": message, "error": error}


CASES = [
    Case("moderation", "images", 400, openai("moderation_blocked", "image_generation_user_error"), BLOCKED, Failure.CALLER),
    Case("a wrong value", "images", 400, openai("invalid_value", "invalid_request_error", param="size"), REJECTED, Failure.CALLER),
    Case("a model that was shut down", "images", 404, openai("model_not_found", "invalid_request_error"), FAILED, Failure.DOWN),
    Case("a refusal", "umg_images", 400, ours(400, "content_filter"), BLOCKED, Failure.CALLER),
    Case("a wrong field", "umg_images", 400, ours(400, "invalid_value"), REJECTED, Failure.CALLER),
    Case("a wrong value", "native_images", 400, native(400, "INVALID_ARGUMENT"), REJECTED, Failure.CALLER),
    Case("an unknown model", "native_images", 404, native(404, "NOT_FOUND"), FAILED, Failure.DOWN),
    Case("a moderated text", "ark_images", 400, ark("InputTextSensitiveContentDetected"), BLOCKED, Failure.CALLER),
    Case("a moderated image", "ark_images", 400, ark("OutputImageSensitiveContentDetected"), BLOCKED, Failure.CALLER),
    Case("a moderated person", "ark_images", 400, ark("InputImageSensitiveContentDetected.PrivacyInformation"), BLOCKED, Failure.CALLER),
    Case("a wrong value", "ark_images", 400, ark("InvalidParameter"), REJECTED, Failure.CALLER),
    Case("a wrong key", "ark_images", 401, ark("AuthenticationError"), FAILED, Failure.DOWN),
    Case("an overdue account", "ark_images", 403, ark("AccountOverdueError"), FAILED, Failure.DOWN),
    Case("a model that is not open", "ark_images", 404, ark("ModelNotOpen"), FAILED, Failure.DOWN),
    Case("the rate limit", "ark_images", 429, ark("ModelAccountRpmRateLimitExceeded"), LIMITED, Failure.OVERLOADED),
    Case("the rate limit of an endpoint", "ark_images", 429, ark("RateLimitExceeded.EndpointRPMExceeded"), LIMITED, Failure.OVERLOADED),
    Case("the operator's limit", "ark_images", 429, ark("SetLimitExceeded"), LIMITED, Failure.DOWN),
    Case("an overload", "ark_images", 429, ark("ServerOverloaded"), LIMITED, Failure.OVERLOADED),
    Case("a failure", "ark_images", 500, ark("InternalServiceError"), FAILED, Failure.TRANSIENT),
    Case("moderation", "dashscope_images", 400, flat("DataInspectionFailed"), BLOCKED, Failure.CALLER),
    Case("a protected work", "dashscope_images", 400, flat("IPInfringementSuspect"), BLOCKED, Failure.CALLER),
    Case("a wrong value", "dashscope_images", 400, flat("InvalidParameter"), REJECTED, Failure.CALLER),
    Case("a wrong key", "dashscope_images", 401, flat("InvalidApiKey"), FAILED, Failure.DOWN),
    Case("no credit", "dashscope_images", 400, flat("Arrearage"), FAILED, Failure.DOWN),
    Case("a model that was not bought", "dashscope_images", 403, flat("AccessDenied.Unpurchased"), FAILED, Failure.DOWN),
    Case("an unknown model", "dashscope_images", 404, flat("ModelNotFound"), FAILED, Failure.DOWN),
    Case("the rate limit", "dashscope_images", 429, flat("Throttling.RateQuota"), LIMITED, Failure.OVERLOADED),
    Case("a failure", "dashscope_images", 500, flat("InternalError.Timeout"), FAILED, Failure.TRANSIENT),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.protocol}: {case.id}")
def test_an_error_is_classified(case: Case) -> None:
    error = IMAGE_PROTOCOLS[case.protocol].decode_error(case.status, {}, case.body)
    assert (error.name, error.failure) == (pb.ErrorReason.Name(case.reason).removeprefix("ERROR_REASON_"), case.failure)


INSIDE = [case for case in CASES if case.protocol in ("ark_images", "dashscope_images")]


@pytest.mark.parametrize("case", INSIDE, ids=lambda case: f"{case.protocol}: {case.id}")
def test_an_error_with_status_200_has_the_same_meaning(case: Case) -> None:
    with raises_error(reason=case.reason, failure=case.failure):
        IMAGE_PROTOCOLS[case.protocol].decode_response(case.body, pb.GenerateImageRequest())


@pytest.mark.parametrize("case", INSIDE, ids=lambda case: f"{case.protocol}: {case.id}")
def test_the_only_failed_item_of_a_success_has_the_same_meaning(case: Case) -> None:
    protocol = IMAGE_PROTOCOLS[case.protocol]
    body: dict[str, object] = {"data": [case.error]}
    decode = protocol.decode_response
    if protocol.tasks is not None:
        decode = protocol.tasks.decode_status  # type: ignore[assignment]
        body = {"output": {"task_status": "SUCCEEDED", "results": [case.error]}}
    with raises_error(reason=case.reason, failure=case.failure):
        decode(msgspec.json.encode(body), pb.GenerateImageRequest())


def refusals() -> Iterator[dict[str, object]]:
    yield {"promptFeedback": {"blockReason": "SAFETY"}}
    for reason in (
        *("SAFETY", "BLOCKLIST", "PROHIBITED_CONTENT", "RECITATION", "SPII"),
        *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
    ):
        yield {"candidates": [{"content": {"parts": [{"text": "no"}]}, "finishReason": reason}]}


@pytest.mark.parametrize("answer", list(refusals()), ids=str)
def test_a_native_answer_without_an_image_is_a_refusal(answer: dict[str, object]) -> None:
    with raises_error(reason=BLOCKED, failure=Failure.CALLER):
        IMAGE_PROTOCOLS["native_images"].decode_response(msgspec.json.encode(answer), pb.GenerateImageRequest())


@pytest.mark.parametrize("reason", ["NO_IMAGE", "OTHER", "IMAGE_OTHER", "STOP", "MAX_TOKENS"])
def test_a_native_answer_without_an_image_and_refusal_may_be_tried_again(reason: str) -> None:
    answer = {"candidates": [{"content": {"parts": [{"text": "I cannot."}]}, "finishReason": reason}]}
    with raises_error(reason=FAILED, failure=Failure.TRANSIENT):
        IMAGE_PROTOCOLS["native_images"].decode_response(msgspec.json.encode(answer), pb.GenerateImageRequest())


def test_only_the_refusal_of_a_synchronous_call_demands_a_task() -> None:
    decode_error = IMAGE_PROTOCOLS["dashscope_images"].decode_error
    sync = flat("AccessDenied", "current user api does not support synchronous calls.")
    assert needs_task(decode_error(403, {}, msgspec.json.encode(sync)))
    assert not needs_task(decode_error(403, {}, msgspec.json.encode(flat("AccessDenied", "Access denied."))))


@pytest.mark.parametrize("state", ["FAILED", "CANCELED", "UNKNOWN"])
def test_a_failed_task_raises_its_error(state: str) -> None:
    tasks = IMAGE_PROTOCOLS["dashscope_images"].tasks
    assert tasks is not None
    output = {"task_status": state, "code": "DataInspectionFailed", "message": "Refused."}
    with raises_error(reason=BLOCKED):
        tasks.decode_status(msgspec.json.encode({"output": output}), pb.GenerateImageRequest())


@pytest.mark.parametrize("state", ["PENDING", "SUSPENDED", "RUNNING", "LATER_WORD"])
def test_a_task_in_any_other_state_is_not_finished(state: str) -> None:
    tasks = IMAGE_PROTOCOLS["dashscope_images"].tasks
    assert tasks is not None
    body = msgspec.json.encode({"output": {"task_status": state, "task_id": "t-1"}})
    assert tasks.decode_status(body, pb.GenerateImageRequest()) is None

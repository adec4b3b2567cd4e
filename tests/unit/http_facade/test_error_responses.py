"""Error reasons as HTTP answers."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.unit.http_facade.conftest import Face
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.errors import INCORRECT_KEY
from umg_grpc.wire.errors.http_status import HTTP_STATUS

PROTO = Path(__file__).parents[3] / "proto/umg/v1/error_reason.proto"
REASONS = [name for name in pb.ErrorReason.keys() if name != "ERROR_REASON_UNSPECIFIED"]  # noqa: SIM118


def documented() -> dict[str, int]:
    """Return reason -> the HTTP status that its comment states."""
    statuses, comment = dict[str, int](), ""
    for line in PROTO.read_text().splitlines():
        text = line.strip()
        if text.startswith("//"):
            comment += " " + text.removeprefix("//").strip()
        elif (value := re.match(r"(ERROR_REASON_\w+) = ", text)) is not None:
            if (status := re.search(r"HTTP (\d+)\.$", comment)) is not None:
                statuses[value[1]] = int(status[1])
            comment = ""
        else:
            comment = ""
    return statuses


def test_every_reason_has_the_http_status_of_its_comment() -> None:
    table = {pb.ErrorReason.Name(reason): status for reason, status in HTTP_STATUS.items()}
    assert table.pop("ERROR_REASON_UNSPECIFIED") == 500
    assert table == documented()
    assert set(table) == set(REASONS)


@pytest.mark.parametrize("name", REASONS)
async def test_a_failed_call_is_json_with_the_status_of_its_reason(face: Face, name: str) -> None:
    reason = pb.ErrorReason.Value(name)
    face.service.failure = UmgError(reason, "what to do")
    for stream in (False, True):
        async with face.chat("fail", stream=stream) as answer:
            assert answer.status == HTTP_STATUS[reason]
            assert answer.content_type == "application/json"
            assert (await answer.json())["error"]["message"].removeprefix(f"{INCORRECT_KEY}: ") == "what to do"
            assert answer.headers.get("www-authenticate") == ("Bearer" if answer.status == 401 else None)


@dataclass(frozen=True)
class Hint:
    id: str
    error: UmgError
    retry_after: str | None = None
    should_retry: str | None = None


HINTS = [
    Hint(
        id="a rate limit has a retry time",
        error=UmgError(pb.ERROR_REASON_RATE_LIMITED, "slow down", retry_after_seconds="7.2"),
        retry_after="8",
    ),
    Hint(
        id="a wait of nothing is a second",
        error=UmgError(pb.ERROR_REASON_UPSTREAM_RATE_LIMITED, "slow down", retry_after_seconds="0"),
        retry_after="1",
    ),
    Hint(
        id="an overloaded gateway has a retry time",
        error=UmgError(pb.ERROR_REASON_UNAVAILABLE, "later", retry_after_seconds="30"),
        retry_after="30",
    ),
    Hint(
        id="a used-up budget is not tried again",
        error=UmgError(pb.ERROR_REASON_QUOTA_EXHAUSTED, "used up"),
        should_retry="false",
    ),
    Hint(
        id="a missing operation is not tried again",
        error=UmgError(pb.ERROR_REASON_NOT_IMPLEMENTED, "not here"),
        should_retry="false",
    ),
    Hint(id="a provider's failure is tried as clients like", error=UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "502")),
    *(
        Hint(
            id=f"a provider's {status}, which only the operator can correct, is not tried again",
            error=UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "the operator has to check", upstream_status=status),
            should_retry="false",
        )
        for status in ("401", "403", "404")
    ),
]


@pytest.mark.parametrize("case", HINTS, ids=lambda case: case.id)
async def test_an_error_states_whether_and_when_to_retry(face: Face, case: Hint) -> None:
    face.service.failure = case.error
    async with face.chat("fail") as answer:
        assert answer.headers.get("retry-after") == case.retry_after
        assert answer.headers.get("x-should-retry") == case.should_retry


async def test_metadata_of_a_failed_call_becomes_headers(face: Face) -> None:
    face.service.initial = (("x-ratelimit-remaining-requests", "0"), ("other", "hidden"))
    face.service.failure = UmgError(pb.ERROR_REASON_RATE_LIMITED, "slow down")
    async with face.chat("fail") as answer:
        assert answer.headers["x-ratelimit-remaining-requests"] == "0"
        assert "other" not in answer.headers


async def test_a_crash_of_the_service_is_answered_with_a_request_id_only(face: Face) -> None:
    async with face.chat("crash") as answer:
        text = await answer.text()
        assert answer.status == 500
        assert answer.headers["x-request-id"] in text
        assert "nobody" not in text


@pytest.mark.parametrize("quote", ["", "`"], ids=["bare", "quoted"])
@pytest.mark.parametrize("reason", [pb.ERROR_REASON_INVALID_FIELD, pb.ERROR_REASON_UNTRANSLATABLE])
async def test_an_error_names_the_field_by_the_callers_path(
    face: Face, reason: "pb.ErrorReason.ValueType", quote: str
) -> None:
    message = f"{quote}max_output_tokens{quote} must be at least 1"
    face.service.failure = UmgError(reason, message, field="max_output_tokens")
    async with face.chat("fail") as answer:
        error = (await answer.json())["error"]
    assert error["param"] == "max_tokens"
    assert error["message"] == f"{quote}max_tokens{quote} must be at least 1"

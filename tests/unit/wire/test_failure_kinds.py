"""Kinds of providers' failures, by the responses and the connection faults from which they follow."""

from dataclasses import dataclass

import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.base.provider_failure import FailureKind
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.failure_kinds import DNS_FAULT, PROXY_FAULT, TLS_FAULT, Evidence, kind_of
from umg_grpc.wire.errors.provider_errors import as_error, decode_error, from_provider


@dataclass(frozen=True)
class Answer:
    id: str
    status: int
    body: str
    kind: FailureKind
    code: str = ""


HTML = "<html><head><title>Sorry</title></head></html>"
ANSWERS = [
    Answer("a revoked key", 401, '{"error": {"message": "Incorrect API key", "code": "invalid_api_key"}}', FailureKind.WRONG_KEY, "invalid_api_key"),
    Answer("a key without permission", 403, '{"error": {"type": "permission_error", "message": "no"}}', FailureKind.WRONG_KEY, "permission_error"),
    Answer("an invalid key with status 400", 400, '{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}', FailureKind.WRONG_KEY, "INVALID_ARGUMENT"),
    Answer("an invalid key with a reason", 400, '{"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT", "details": [{"locale": "en"}, {"reason": "API_KEY_INVALID"}]}}', FailureKind.WRONG_KEY, "API_KEY_INVALID"),
    Answer("a status as code, and a type", 401, '{"error": {"code": "401", "type": "AuthenticationError", "message": "no"}}', FailureKind.WRONG_KEY, "AuthenticationError"),
    Answer("a status as the only code", 401, '{"error": {"code": 401, "message": "no"}}', FailureKind.WRONG_KEY, "401"),
    Answer("a number that is no status", 401, '{"error": {"code": "1002", "message": "no"}}', FailureKind.WRONG_KEY, "1002"),
    Answer("a page for a wrong key", 401, HTML, FailureKind.WRONG_KEY),
    Answer("an unpaid bill", 402, "{}", FailureKind.UNPAID),
    Answer("an exhausted quota", 429, '{"error": {"code": "insufficient_quota", "message": "check your plan"}}', FailureKind.UNPAID, "insufficient_quota"),
    Answer("no credit with status 400", 400, '{"error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}}', FailureKind.UNPAID, "invalid_request_error"),
    Answer("a rate limit", 429, '{"error": {"code": "rate_limit_exceeded", "message": "slow down"}}', FailureKind.RATE_LIMIT, "rate_limit_exceeded"),
    Answer("a quota per day", 429, '{"error": {"code": 429, "message": "Quota exceeded", "details": [{"violations": [{"quotaId": "RequestsPerDay"}]}]}}', FailureKind.RATE_LIMIT, "RequestsPerDay"),
    Answer("no credit, in words that others use for a limit", 429, '{"error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "You exceeded your current quota, please check your plan and billing details."}}', FailureKind.UNPAID, "insufficient_quota"),
    Answer("a quota per minute in the same words", 429, '{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota, please check your plan and billing details.", "details": [{"violations": [{"quotaId": "RequestsPerMinute"}]}]}}', FailureKind.RATE_LIMIT, "RESOURCE_EXHAUSTED"),
    Answer("a model that does not exist", 404, '{"error": {"code": "model_not_found", "message": "The model `x` does not exist"}}', FailureKind.WRONG_MODEL, "model_not_found"),
    Answer("a model by the message alone", 404, '{"error": {"type": "not_found_error", "message": "model: x"}}', FailureKind.WRONG_MODEL, "not_found_error"),
    Answer("a wrong address", 404, '{"detail": "Not Found"}', FailureKind.WRONG_ADDRESS),
    Answer("a wrong address at a gateway like this one", 404, '{"error": {"message": "no such path: GET /v1/v1/models"}}', FailureKind.WRONG_ADDRESS),
    Answer("a wrong address in words", 404, '{"error": {"message": "Invalid URL (POST /v1/models/x)"}}', FailureKind.WRONG_ADDRESS),
    Answer("a page for a wrong address", 404, HTML, FailureKind.WRONG_ADDRESS),
    Answer("a wrong method", 405, "", FailureKind.WRONG_ADDRESS),
    Answer("a firewall", 403, HTML, FailureKind.UNREADABLE),
    Answer("a proxy's credentials", 407, "", FailureKind.PROXY),
    Answer("an internal error", 500, '{"error": {"message": "oops"}}', FailureKind.SERVER_ERROR),
    Answer("a page for an internal error", 502, HTML, FailureKind.SERVER_ERROR),
    Answer("an overload", 529, '{"error": {"type": "overloaded_error"}}', FailureKind.SERVER_ERROR, "overloaded_error"),
    Answer("an invalid request", 400, '{"error": {"message": "bad temperature", "param": "temperature"}}', FailureKind.REQUEST),
    Answer("an invalid request that quotes an account's words", 400, '{"error": {"message": "messages: `my credit balance`", "param": "messages"}}', FailureKind.REQUEST),
]  # fmt: skip


@pytest.mark.parametrize("case", ANSWERS, ids=lambda case: case.id)
def test_an_answer_has_a_kind_and_its_status_and_code(case: Answer) -> None:
    facts = decode_error(case.status, {}, case.body.encode()).facts
    assert facts is not None
    assert (facts.kind, facts.status, facts.code) == (case.kind, case.status, case.code)


def test_an_error_in_a_stream_has_the_kind_of_the_status_that_it_states() -> None:
    facts = from_provider(200, as_error({"type": "authentication_error", "message": "no"})).facts
    assert facts is not None
    assert (facts.kind, facts.status, facts.message) == (FailureKind.WRONG_KEY, 200, "no")


@dataclass(frozen=True)
class Broken:
    id: str
    evidence: Evidence
    kind: FailureKind


UNREACHABLE = pb.ERROR_REASON_UPSTREAM_UNREACHABLE
BROKEN = [
    Broken("an unknown host", Evidence(UNREACHABLE, fault=DNS_FAULT), FailureKind.DNS),
    Broken("a certificate", Evidence(UNREACHABLE, fault=TLS_FAULT), FailureKind.CERTIFICATE),
    Broken("a proxy", Evidence(UNREACHABLE, fault=PROXY_FAULT), FailureKind.PROXY),
    Broken("a refused connection", Evidence(UNREACHABLE), FailureKind.UNREACHABLE),
    Broken("a deadline", Evidence(pb.ERROR_REASON_UPSTREAM_TIMEOUT), FailureKind.SLOW),
    Broken("a broken stream", Evidence(pb.ERROR_REASON_UPSTREAM_CUT, 200), FailureKind.BROKEN),
    Broken("a page in place of a stream", Evidence(pb.ERROR_REASON_UPSTREAM_CUT, 200, page=True), FailureKind.UNREADABLE),
    Broken("a response that cannot be read", Evidence(pb.ERROR_REASON_UPSTREAM_FAILED, 200), FailureKind.UNREADABLE),
    Broken("a redirect", Evidence(pb.ERROR_REASON_UPSTREAM_FAILED, 302), FailureKind.WRONG_ADDRESS),
    Broken("a blocked prompt", Evidence(pb.ERROR_REASON_CONTENT_BLOCKED, 200), FailureKind.REQUEST),
]  # fmt: skip


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.id)
def test_a_failure_without_an_error_body_has_a_kind(case: Broken) -> None:
    assert kind_of(case.evidence) is case.kind


def test_every_kind_follows_from_some_evidence() -> None:
    assert {case.kind for case in (*ANSWERS, *BROKEN)} == set(FailureKind)


def test_another_message_for_the_caller_keeps_the_facts() -> None:
    error = decode_error(401, {}, b"{}")
    assert isinstance(error, UmgError)
    assert error.with_message("other").facts is error.facts is not None

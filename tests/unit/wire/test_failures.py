"""The meaning of a provider's failure for further attempts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.error_checks import raises_error
from tests.unit.wire.streams import decoder_of
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.sse import SseSplitter
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS
from umg_grpc.wire.errors.error_classification import DEFAULT_TABLE, ProviderError
from umg_grpc.wire.rerank import RERANK_FORMATS
from umg_grpc.wire.shared_embedding_checks import other_length

CALLER, CONTEXT, TRANSIENT, OVERLOADED, DOWN, AMBIGUOUS = (
    Failure.CALLER,
    Failure.CONTEXT,
    Failure.TRANSIENT,
    Failure.OVERLOADED,
    Failure.DOWN,
    Failure.AMBIGUOUS,
)
Decode = Callable[[int, Mapping[str, str], bytes], UmgError]
DECODERS: dict[str, Decode] = {
    **{name: codec.decode_error for name, codec in TEXT_FORMATS.items()},
    **{name: codec.decode_error for name, codec in EMBEDDING_FORMATS.items()},
    **{name: codec.decode_error for name, codec in RERANK_FORMATS.items()},
}
REJECTED, LIMITED, FAILED = "UPSTREAM_REJECTED", "UPSTREAM_RATE_LIMITED", "UPSTREAM_FAILED"
LONG, BLOCKED, LARGE = "CONTEXT_TOO_LONG", "CONTENT_BLOCKED", "UPSTREAM_TOO_LARGE"
UNPAID, QUOTA, OVERLOAD, SLOW = (
    "UPSTREAM_UNPAID",
    "UPSTREAM_QUOTA_EXHAUSTED",
    "UPSTREAM_OVERLOADED",
    "UPSTREAM_TIMEOUT",
)
PAGE = b"<html><head><title>Attention Required</title></head></html>"


@dataclass(frozen=True)
class Refusal:
    id: str
    status: int
    body: object
    reason: str
    failure: Failure
    headers: dict[str, str] = field(default_factory=dict)
    format: str = "chat"


def openai(message: str, code: object = None, kind: str = "invalid_request_error", param: str | None = None) -> object:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def anthropic(kind: str, message: str, **details: str) -> object:
    return {"type": "error", "error": {"type": kind, "message": message, "details": details or None}}


def gemini(code: int, status: str, message: str, *details: object) -> object:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def quota(name: str) -> object:
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": name}]}


WAIT = {"retry-after": "7"}
RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}
TPM = "Request too large for gpt-x in organization org-1 on tokens per min (TPM): Limit 30000, Requested 90000."
SPENT = "You exceeded your current quota, please check your plan and billing details."
# fmt: off
REFUSALS = [
    # the request
    Refusal("a bad value", 400, openai("Invalid 'temperature'", param="temperature"), REJECTED, CALLER),
    Refusal("a schema's violation", 422, {"detail": [{"msg": "Field required"}]}, REJECTED, CALLER),
    Refusal("a large body", 413, PAGE, LARGE, CONTEXT),
    Refusal("a bad request without words", 400, b"", REJECTED, CALLER),
    Refusal("a long prompt", 400, openai("too long", "context_length_exceeded"), LONG, CONTEXT),
    Refusal("a long prompt in words", 400, openai("This model's maximum context length is 8192 tokens"), LONG, CONTEXT),
    Refusal("a long input", 400, openai("Invalid 'input[0]': maximum input length is 8192 tokens."), LONG, CONTEXT, format="embeddings"),
    Refusal("many inputs", 400, openai("Requested 416735 tokens, max 300000 tokens per request", "max_tokens_per_request", "max_tokens_per_request"), LONG, CONTEXT, format="embeddings"),
    Refusal("long documents", 400, {"message": "too many tokens: size limit exceeded by 11326 tokens"}, LONG, CONTEXT, format="rerank"),
    Refusal("a long prompt at vendor A", 400, anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), LONG, CONTEXT, format="messages"),
    Refusal("a long answer at vendor A", 400, anthropic("invalid_request_error", "input length and `max_tokens` exceed context limit: 199000 + 8000 > 200000"), LONG, CONTEXT, format="messages"),
    Refusal("a long prompt at vendor G", 400, gemini(400, "INVALID_ARGUMENT", "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576)."), LONG, CONTEXT, format="native"),
    Refusal("more than the account may send in a minute", 429, openai(TPM, "rate_limit_exceeded", "tokens"), LIMITED, CONTEXT),
    Refusal("the same as another provider encodes it", 413, openai(TPM, "rate_limit_exceeded", "tokens"), LARGE, CONTEXT),
    Refusal("a filtered prompt", 400, {"error": {"message": "filtered", "code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, BLOCKED, CALLER),
    Refusal("a filtered prompt in words alone", 400, gemini(400, "INVALID_ARGUMENT", "The prompt could not be submitted. This prompt contains sensitive words that violate Google's Responsible AI practices. Support codes: 58061214"), BLOCKED, CALLER),
    Refusal("a refused image in words alone", 400, {"code": "invalid-argument", "error": "Generated image rejected by content moderation."}, BLOCKED, CALLER),
    Refusal("filtered output at vendor A", 400, anthropic("invalid_request_error", "Output blocked by content filtering policy"), BLOCKED, CALLER, format="messages"),
    Refusal("filtered output at Bedrock", 400, {"message": "The generated text has been blocked by our content filters."}, BLOCKED, CALLER),
    Refusal("a flagged prompt", 400, openai("Invalid prompt: your prompt was flagged as potentially violating our usage policy.", "invalid_prompt"), BLOCKED, CALLER, format="responses"),
    Refusal("a prompt about attacks", 400, openai("This content was flagged for possible cybersecurity risk.", "cyber_policy", "invalid_request"), BLOCKED, CALLER, format="responses"),
    Refusal("a risk of the content", 400, openai("Content Exists Risk", "invalid_request_error"), BLOCKED, CALLER),
    Refusal("a filter by number", 400, {"error": {"code": "1301", "message": "系统检测到输入或生成内容可能包含不安全或敏感内容"}}, BLOCKED, CALLER),
    Refusal("sensitive content at Ark", 400, openai("The request failed because the input text may contain sensitive information.", "SensitiveContentDetected", "BadRequest"), BLOCKED, CALLER),
    Refusal("sensitive words at a relay", 400, openai("input contains sensitive words", "sensitive_words_detected", "new_api_error"), BLOCKED, CALLER),
    Refusal("sensitive content at MiniMax", 422, {"base_resp": {"status_code": 1026, "status_msg": "input new_sensitive"}}, BLOCKED, CALLER),
    Refusal("sensitive content at MiniMax by its words", 422, openai("input new_sensitive (1026)", kind="bad_request_error"), BLOCKED, CALLER),
    Refusal("a prompt about attacks by 403", 403, openai("We cannot help with this request.", "cyber_policy", "invalid_request"), BLOCKED, CALLER, format="responses"),
    Refusal("a text of the caller with words of a filter", 400, openai("Invalid value: 'rejected by content moderation'."), REJECTED, CALLER),
    Refusal("moderation by 403", 403, {"error": {"code": 403, "message": "Your chosen model requires moderation and your input was flagged"}}, BLOCKED, CALLER),
    Refusal("moderation by 403 at vendor X", 403, {"error": "Content violates usage guidelines. Team: t"}, BLOCKED, CALLER),
    Refusal("an account that was flagged", 403, openai("Your account was flagged"), FAILED, DOWN),
    Refusal("a foreign tool server", 424, openai("Error retrieving tool list from MCP server", "external_connector_error"), REJECTED, CALLER),
    Refusal("headers that are too large", 431, b"", FAILED, CALLER),
    Refusal("no endpoint that can do it", 404, {"error": {"code": 404, "message": "No endpoints found that support image input"}}, REJECTED, CONTEXT),
    # objects that the caller named
    Refusal("a forgotten response", 400, openai("Previous response with id 'resp_1' not found.", "previous_response_not_found", param="previous_response_id"), REJECTED, CALLER, format="responses"),
    Refusal("a forgotten response by 404", 404, openai("Response with id 'resp_1' not found."), REJECTED, CALLER, format="responses"),
    Refusal("an unknown item", 404, openai("Item with id 'rs_1' not found."), REJECTED, CALLER, format="responses"),
    Refusal("an unknown file", 404, openai("No such File object: file-1"), REJECTED, CALLER),
    Refusal("an unknown file at vendor A", 404, anthropic("not_found_error", "File not found: file_1"), REJECTED, CALLER, format="messages"),
    Refusal("another's file at vendor G", 403, gemini(403, "PERMISSION_DENIED", "You do not have permission to access the File abc or it may not exist."), REJECTED, CALLER, format="native"),
    Refusal("a file at vendor G that is not ready", 400, gemini(400, "FAILED_PRECONDITION", "The File abc is not in an ACTIVE state and usage is not allowed."), REJECTED, CALLER, format="native"),
    # the account
    Refusal("a bad key", 401, openai("Incorrect API key provided", "invalid_api_key"), FAILED, DOWN),
    Refusal("a bad key without words", 401, b"", FAILED, DOWN),
    Refusal("no credit", 402, openai("Insufficient Balance"), UNPAID, DOWN),
    Refusal("a suspended account at Fireworks", 412, openai("Account a is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices.", "PRECONDITION_FAILED", "error"), UNPAID, DOWN),
    Refusal("a model at Fireworks that did not load", 412, openai("the model failed to load", "PRECONDITION_FAILED", "error"), FAILED, DOWN),
    Refusal("a budget that comes back", 402, openai("in-flight budget"), LIMITED, OVERLOADED, WAIT),
    Refusal("no rights", 403, openai("Project does not have access to model `gpt`", "model_not_found"), FAILED, DOWN),
    Refusal("a firewall, which may dislike the prompt", 403, PAGE, FAILED, TRANSIENT),
    Refusal("a proxy that wants credentials", 407, b"", FAILED, DOWN),
    Refusal("a bad key by 400", 400, gemini(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", {"reason": "API_KEY_INVALID"}), FAILED, DOWN, format="native"),
    Refusal("a bad key by 400 at vendor G's chat", 400, [gemini(400, "INVALID_ARGUMENT", "API key not valid.")], FAILED, DOWN),
    Refusal("our country", 400, gemini(400, "FAILED_PRECONDITION", "User location is not supported for the API use."), FAILED, DOWN, format="native"),
    Refusal("no credit at vendor A", 400, anthropic("invalid_request_error", "Your credit balance is too low to access the API."), UNPAID, DOWN, format="messages"),
    Refusal("a limit of the operator at vendor A", 400, anthropic("invalid_request_error", "You have reached your specified API usage limits. You will regain access on 2026-02-01"), UNPAID, DOWN, format="messages"),
    Refusal("a spend cap at vendor A", 429, anthropic("rate_limit_error", "limit", error_code="enforced_spend_limit_reached"), QUOTA, DOWN, format="messages"),
    Refusal("a used-up quota", 429, openai(SPENT, "insufficient_quota", "insufficient_quota"), QUOTA, DOWN),
    Refusal("a project's spend limit", 429, openai(SPENT, "project_spend_limit_exceeded", "insufficient_quota"), QUOTA, DOWN, WAIT),
    Refusal("a used-up quota in words", 429, openai(SPENT), QUOTA, DOWN),
    Refusal("the same words for a minute's share", 429, gemini(429, "RESOURCE_EXHAUSTED", SPENT, quota("GenerateRequestsPerMinutePerProjectPerModel"), RETRY), LIMITED, OVERLOADED, format="native"),
    Refusal("the same without a time to wait", 429, gemini(429, "RESOURCE_EXHAUSTED", SPENT, quota("GenerateRequestsPerMinutePerProjectPerModel")), LIMITED, OVERLOADED, format="native"),
    Refusal("a day's share", 429, gemini(429, "RESOURCE_EXHAUSTED", SPENT, quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), RETRY), LIMITED, DOWN, format="native"),
    Refusal("a day's share at vendor G's chat", 429, [gemini(429, "RESOURCE_EXHAUSTED", SPENT, quota("GenerateRequestsPerDayPerProjectPerModel"), RETRY)], LIMITED, DOWN),
    Refusal("no prepaid credit at vendor G", 429, gemini(429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted. Please go to AI Studio to manage your project and billing."), QUOTA, DOWN, format="native"),
    Refusal("a month's share", 429, {"message": "You are using a Trial key, which is limited to 1000 API calls / month."}, LIMITED, DOWN, format="rerank"),
    # the model, the address
    Refusal("a model that it lacks", 404, openai("The model `x` does not exist", "model_not_found"), FAILED, DOWN),
    Refusal("a model that it lacks by 400", 400, openai("The requested model 'x' does not exist.", "model_not_found", param="model"), FAILED, DOWN, format="responses"),
    Refusal("a model of a tool that it lacks", 400, openai("no such model", "model_not_found", param="tools[0].model"), REJECTED, CALLER, format="responses"),
    Refusal("a model that vendor A lacks", 404, anthropic("not_found_error", "model: claude-x"), FAILED, DOWN, format="messages"),
    Refusal("a model that vendor G lacks", 404, gemini(404, "NOT_FOUND", "models/x is not found for API version v1beta"), FAILED, DOWN, format="native"),
    Refusal("no such deployment", 404, {"error": {"code": "DeploymentNotFound", "message": "The API deployment for this resource does not exist."}}, FAILED, DOWN),
    Refusal("no such path", 404, {"detail": "Not Found"}, FAILED, DOWN),
    Refusal("a page that is not there", 404, PAGE, FAILED, DOWN),
    Refusal("no such method", 405, b"", FAILED, DOWN),
    # load
    Refusal("a rate limit", 429, openai("Rate limit reached", "rate_limit_exceeded", "requests"), LIMITED, OVERLOADED),
    Refusal("a rate limit without words", 429, b"", LIMITED, OVERLOADED),
    Refusal("a minute's share of a trial", 429, {"message": "You are using a Trial key, which is limited to 40 API calls / minute."}, LIMITED, OVERLOADED, format="rerank"),
    Refusal("a rate limit of another kind", 429, {"object": "error", "message": "Rate limit exceeded", "type": "rate_limited", "code": "1300"}, LIMITED, OVERLOADED),
    Refusal("too much load, with a time", 529, anthropic("overloaded_error", "Overloaded"), OVERLOAD, OVERLOADED, WAIT, format="messages"),
    Refusal("too much load", 529, anthropic("overloaded_error", "Overloaded"), OVERLOAD, TRANSIENT, format="messages"),
    Refusal("too much load at vendor G", 503, gemini(503, "UNAVAILABLE", "The model is overloaded."), OVERLOAD, TRANSIENT, format="native"),
    Refusal("the same with a time", 503, gemini(503, "UNAVAILABLE", "The model is overloaded.", RETRY), OVERLOAD, OVERLOADED, format="native"),
    Refusal("a tier without capacity", 498, openai("no capacity", "capacity_exceeded"), OVERLOAD, OVERLOADED),
    # statuses and codes of vendors
    Refusal("a body above a vendor's limit", 413, anthropic("request_too_large", "Request exceeds the maximum size"), LARGE, CONTEXT, format="messages"),
    Refusal("a body above a vendor's limit by 400", 400, anthropic("request_too_large", "Request exceeds the maximum size"), LARGE, CONTEXT, format="messages"),
    Refusal("a kind of image by 415", 415, openai("Unsupported image type"), REJECTED, CONTEXT),
    Refusal("an address that takes no JSON", 415, b"", FAILED, DOWN),
    Refusal("a model that failed at Bedrock", 424, {"message": "The request failed due to an error while processing the model"}, FAILED, TRANSIENT),
    Refusal("content that the law forbids", 451, openai("not available for legal reasons"), REJECTED, DOWN),
    Refusal("no credit at DeepSeek", 402, openai("Insufficient Balance", "invalid_request_error"), UNPAID, DOWN),
    Refusal("no credit at vendor X", 403, {"code": "no permission", "error": "Your team has used all available credits"}, UNPAID, DOWN),
    Refusal("no credit at a relay", 403, {"code": "INSUFFICIENT_BALANCE", "message": "Insufficient account balance"}, UNPAID, DOWN),
    Refusal("no credit at MiniMax", 500, anthropic("api_error", "insufficient balance (1008)"), UNPAID, DOWN, format="messages"),
    Refusal("no credit at MiniMax's chat", 429, {"error": {"http_code": "429", "message": "insufficient balance (1008)", "type": "insufficient_balance_error"}}, QUOTA, DOWN),
    Refusal("no credit at Zhipu", 429, openai("余额不足或无可用资源包,请充值。", "1113"), QUOTA, DOWN),
    Refusal("a used-up quota at Moonshot", 429, openai("limit", kind="exceeded_current_quota_error"), QUOTA, DOWN),
    Refusal("throttling at Bedrock", 429, {"message": "Too many tokens, please wait before trying again."}, LIMITED, OVERLOADED),
    Refusal("a model at Bedrock that took too long", 408, {"message": "timeout"}, SLOW, TRANSIENT),
    Refusal("overload by 500", 500, openai("busy", "server_is_overloaded"), OVERLOAD, TRANSIENT),
    Refusal("a long prompt by 500", 500, {"error": "prompt too long; exceeded max context length by 100 tokens"}, LONG, CONTEXT),
    # the provider
    Refusal("a failure", 500, openai("The server had an error", kind="server_error"), FAILED, TRANSIENT),
    Refusal("a failure as a page", 500, PAGE, FAILED, TRANSIENT),
    Refusal("a request that took too long to arrive", 408, b"", SLOW, TRANSIENT),
    Refusal("a conflict", 409, openai("locked"), REJECTED, TRANSIENT),
    Refusal("too early", 425, b"", FAILED, TRANSIENT),
    Refusal("a proxy that lost it", 502, PAGE, FAILED, AMBIGUOUS),
    Refusal("a proxy that gave up", 504, b"", SLOW, AMBIGUOUS),
    Refusal("an unknown status", 499, b"", FAILED, TRANSIENT),
]
# fmt: on


def as_bytes(body: object) -> bytes:
    return body if isinstance(body, bytes) else msgspec.json.encode(body)


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: f"{case.format}: {case.id}")
def test_a_refusal_has_its_consequence_for_other_attempts(case: Refusal) -> None:
    error = DECODERS[case.format](case.status, case.headers, as_bytes(case.body))
    assert (error.name, error.failure) == (case.reason, case.failure)


# Bodies without a message, as proxies write them: the status means the same in every format.
@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize(
    "body", [b"", b"{}", b"null", b"[]", PAGE, b'{"error":"no"}', b'{"error":{"details":[1,{}]}}', b"\xff"]
)
def test_every_status_is_classified_for_any_body(name: str, body: bytes) -> None:
    for status in range(400, 600):
        error = DECODERS[name](status, {}, body)
        assert error.failure is not None
        assert (error.reason == pb.ERROR_REASON_UPSTREAM_RATE_LIMITED) == (status == 429)
        assert error.failure is not DOWN or status not in (400, 413, 422, 500, 503)


SECRETS = [
    "sk-proj-abcdef1234567890",
    "org-AbC123xyz789",
    "acct_1234567890",
    "tools.project-8f14e45fceea167a5a36",
    "node-7.internal.example",
    "10.20.30.40",
    "0f8fad5b-d9cb-469f-a165-70867728950e",
    "123456789012",
]


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("secret", SECRETS)
def test_the_field_that_a_provider_names_is_cleaned_as_its_message_is(name: str, secret: str) -> None:
    violation = [{"fieldViolations": [{"field": secret, "description": "bad"}]}]
    for inner in ({"param": secret}, {"details": violation}):
        body = msgspec.json.encode({"error": {"message": "Invalid value", **inner}})
        error = DECODERS[name](400, {}, body)
        assert secret not in str((error.message, error.metadata))


FIELDS = ["messages[3].content[0].image_url", "generation_config.temperature", "input[12]", "tools[0].function.name"]


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.parametrize("field", FIELDS)
def test_the_field_that_a_provider_names_reaches_the_caller(name: str, field: str) -> None:
    details = [{"@type": "other"}, {"fieldViolations": [{"field": field, "description": "d"}]}]
    for inner in ({"param": field}, {"details": details}):
        body = msgspec.json.encode({"error": {"message": "Invalid value", **inner}})
        assert DECODERS[name](400, {}, body).metadata["field"] == field


WORDS = st.sampled_from([
    "api key", "billing", "insufficient quota", "credit balance", "authentication", "'", '"', "`", "spend limit", "model: x", "no",
])  # fmt: skip


@given(st.lists(WORDS).map(" ".join), st.sampled_from(['"', "'", "`"]), st.sampled_from(sorted(DECODERS)))
def test_text_of_a_caller_in_an_error_message_does_not_suspend_a_channel(text: str, q: str, name: str) -> None:
    quoted = msgspec.json.encode({"error": {"message": f"Invalid value: {q}{text}{q}. Supported values are: {q}a{q}"}})
    assert DECODERS[name](400, {}, quoted).failure is CALLER
    named = msgspec.json.encode({"error": {"message": f"unknown tool {text}", "param": "tools[0].name"}})
    assert DECODERS[name](400, {}, named).failure is CALLER


@dataclass(frozen=True)
class Wait:
    id: str
    status: int
    seconds: str | None
    headers: dict[str, str] = field(default_factory=dict)
    body: object = b""
    format: str = "chat"


WAITS = [
    Wait("a header of 503", 503, "7", WAIT),
    Wait("milliseconds of 529", 529, "2", {"retry-after-ms": "1500"}),
    Wait("Azure's milliseconds", 429, "2", {"x-ms-retry-after-ms": "1500"}),
    Wait("a header of 500", 500, "7", WAIT),
    Wait("none", 503, None),
    Wait("a limit without a wait", 429, "1"),
    Wait("a used-up quota without a wait", 429, "60", body=openai(SPENT, "insufficient_quota")),
    Wait("details", 503, "35", body=gemini(503, "UNAVAILABLE", "busy", {"retryDelay": "34.4s"}), format="native"),
    Wait("details at vendor G's chat", 429, "7", body=[gemini(429, "RESOURCE_EXHAUSTED", "busy", RETRY)]),
    Wait("words", 429, "20", body=openai("Rate limit reached. Please try again in 20s. Visit us")),
    Wait("words with a fraction", 429, "2", body=openai("Please try again in 1.242s.")),
    Wait("words in milliseconds", 429, "1", body=openai("Please try again in 520ms.")),
    Wait("words in minutes", 429, "366", body=openai("Please try again in 6m6s.")),
    Wait("words in full", 429, "26", body=openai("Please retry after 26 seconds.")),
    Wait("words without a time", 429, "1", body=openai("Please try again in a while")),
    Wait("a header before words", 429, "7", WAIT, openai("Please try again in 20s.")),
    Wait("a bad key", 401, None, WAIT),
]


@pytest.mark.parametrize("case", WAITS, ids=lambda case: case.id)
def test_the_retry_time_reaches_the_caller(case: Wait) -> None:
    error = DECODERS[case.format](case.status, case.headers, as_bytes(case.body))
    assert error.metadata.get("retry_after_seconds") == case.seconds
    assert error.retry_after == (None if case.seconds is None else float(case.seconds))


@dataclass(frozen=True)
class Stated:
    id: str
    format: str
    data: object
    reason: str
    failure: Failure
    event: str = ""


def failed(code: str, message: str) -> object:
    return {"type": "response.failed", "response": {"status": "failed", "error": {"code": code, "message": message}}}


# fmt: off
STATED = [
    Stated("a number", "chat", {"error": {"code": 502, "message": "Provider disconnected"}}, FAILED, AMBIGUOUS),
    Stated("a limit", "chat", openai("Rate limit reached", "rate_limit_exceeded", "tokens"), LIMITED, OVERLOADED),
    Stated("a quota", "chat", openai(SPENT, "insufficient_quota", "insufficient_quota"), QUOTA, DOWN),
    Stated("a failure", "chat", openai("The server had an error", None, "server_error"), FAILED, TRANSIENT),
    Stated("words alone", "chat", {"error": "it broke"}, FAILED, TRANSIENT),
    Stated("a bad request", "chat", openai("bad tool call", None, "invalid_request_error"), REJECTED, CALLER),
    Stated("a long prompt", "chat", openai("too long", "context_length_exceeded"), LONG, CONTEXT),
    Stated("a long prompt in words alone", "chat", {"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}, LONG, CONTEXT),
    Stated("throttling by its name", "chat", {"error": {"message": "slow down", "code": "ThrottlingException"}}, LIMITED, OVERLOADED),
    Stated("an event", "chat", {"message": "it broke"}, FAILED, TRANSIENT, "error"),
    Stated("too much load", "messages", anthropic("overloaded_error", "Overloaded"), OVERLOAD, TRANSIENT, "error"),
    Stated("a bad key", "messages", anthropic("authentication_error", "no"), FAILED, DOWN, "error"),
    Stated("a failure", "messages", anthropic("api_error", "Internal server error"), FAILED, TRANSIENT, "error"),
    Stated("a limit", "native", gemini(429, "RESOURCE_EXHAUSTED", "busy", quota("PerMinute")), LIMITED, OVERLOADED),
    Stated("a day's share", "native", gemini(429, "RESOURCE_EXHAUSTED", "busy", quota("TokensPerDay")), LIMITED, DOWN),
    Stated("a status word", "native", {"error": {"message": "busy", "status": "UNAVAILABLE"}}, OVERLOAD, TRANSIENT),
    Stated("an event", "responses", {"type": "error", "code": "server_error", "message": "no"}, FAILED, TRANSIENT, "error"),
    Stated("a response that failed", "responses", failed("server_error", "no"), FAILED, TRANSIENT, "response.failed"),
    Stated("a response over a limit", "responses", failed("rate_limit_exceeded", "Please try again in 1.2s"), LIMITED, OVERLOADED, "response.failed"),
    Stated("a response to a long prompt", "responses", failed("context_length_exceeded", "too long"), LONG, CONTEXT, "response.failed"),
    Stated("a response to a bad image", "responses", failed("invalid_image", "bad"), REJECTED, CALLER, "response.failed"),
    Stated("a response to a bad prompt", "responses", failed("invalid_prompt", "bad"), BLOCKED, CALLER, "response.failed"),
]
# fmt: on


def sse(data: object, event: str = "") -> bytes:
    return (f"event: {event}\n".encode() if event else b"") + b"data: " + as_bytes(data) + b"\n\n"


@pytest.mark.parametrize("pass_", [True, False], ids=["passed", "translated"])
@pytest.mark.parametrize("case", STATED, ids=lambda case: f"{case.format}: {case.id}")
def test_an_error_in_a_stream_is_classified_by_its_code(case: Stated, pass_: bool) -> None:
    with raises_error(name=case.reason, failure=case.failure):
        decoder_of(TEXT_FORMATS[case.format], pb.GenerateRequest(), pass_).feed(sse(case.data, case.event))


@pytest.mark.parametrize("name", TEXT_FORMATS)
@pytest.mark.parametrize("pass_", [True, False], ids=["passed", "translated"])
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", PAGE, b'{"error":{"code":500}}', b"\xff\xfe"])
def test_an_undecodable_answer_is_an_ambiguous_failure(name: str, pass_: bool, body: bytes) -> None:
    with raises_error(failure=TRANSIENT if b"error" in body else AMBIGUOUS):
        TEXT_FORMATS[name].decode_response(body, pb.GenerateRequest(), pass_)
    stream = decoder_of(TEXT_FORMATS[name], pb.GenerateRequest(), pass_)
    with pytest.raises(UmgError) as caught:
        stream.feed(b"data: " + body + b"\n\n")
        stream.close()
    assert caught.value.failure in (TRANSIENT, AMBIGUOUS)


CUT_BLOCK = b'{"type":"message","content":[{"type":"tool_use","id":"a","name":"f","input":[]}]}'
NO_ANSWERS: list[tuple[str, bytes]] = [
    *(("chat", body) for body in (b"{}", b'{"choices":null}', b'{"choices":"x"}', b'{"error":"boom","choices":[]}', b"[" * 99999)),
    *(("native", body) for body in (b"{}", b'{"candidates":null}', b'{"candidates":[]}', b'{"candidates":"x"}', b'{"error":"boom","candidates":[]}', b"[" * 99999, b'{"promptFeedback":{}}')),
    *(("messages", body) for body in (b"{}", b'{"type":"message","content":{}}', b'{"type":"message","content":[1]}', b'{"type":"message","content":[{"type":"text"}]}', b'{"type":"message","content":[{"text":"a"}]}', CUT_BLOCK, b"[" * 9999)),
]  # fmt: skip


@pytest.mark.parametrize("pass_", [True, False], ids=["passed", "translated"])
@pytest.mark.parametrize(("name", "body"), NO_ANSWERS, ids=lambda value: repr(value[:70]))
def test_a_body_of_another_form_is_the_providers_failure_and_names_no_field(
    name: str, body: bytes, pass_: bool
) -> None:
    if pass_ and name == "messages" and b"content" in body:
        return  # passes as it came
    with raises_error(name="UPSTREAM_FAILED", field=None):
        TEXT_FORMATS[name].decode_response(body, pb.GenerateRequest(), pass_)


@pytest.mark.parametrize("name", [*EMBEDDING_FORMATS, *RERANK_FORMATS])
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", PAGE, b'{"error":{"code":500}}'])
def test_undecodable_vectors_or_scores_are_an_ambiguous_failure(name: str, body: bytes) -> None:
    with raises_error(failure=TRANSIENT if b"error" in body else AMBIGUOUS):
        if name in RERANK_FORMATS:
            ranked = pb.RerankRequest(query="q", documents=[pb.RerankDocument(text="d")])
            RERANK_FORMATS[name].decode_response(body, ranked, False)
        else:
            embedded = pb.EmbedRequest(inputs=[pb.EmbeddingInput(text="t")])
            EMBEDDING_FORMATS[name].decode_response(body, embedded, False)


@pytest.mark.parametrize("name", TEXT_FORMATS)
@pytest.mark.parametrize("pass_", [True, False], ids=["passed", "translated"])
def test_a_broken_stream_is_an_ambiguous_failure(name: str, pass_: bool) -> None:
    with raises_error(name="UPSTREAM_CUT", failure=AMBIGUOUS):
        decoder_of(TEXT_FORMATS[name], pb.GenerateRequest(), pass_).close()


def test_an_endless_event_is_not_retried_on_another_channel() -> None:
    with raises_error(failure=Failure.TOO_LARGE):
        SseSplitter(limit=8).whole(b"data: 1234567890")


def test_a_length_that_a_model_does_not_make_is_no_fault_of_the_channel() -> None:
    assert other_length(1536, 256, 0).failure is CONTEXT
    assert other_length(1536, 0, 256).failure is AMBIGUOUS


def test_the_last_row_fits_all() -> None:
    assert DEFAULT_TABLE[-1].fits(418, ProviderError(), False)


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("it's the organisation's billing", "it's the organisation's billing"),
        ("bad 'api key' here", "bad  here"),
        ("\"a\" then `billing` then 'b'", ""),
        ("cut off in 'api key", "cut off in "),
        ('cut off in "api key', "cut off in "),
        ("", ""),
    ],
)
def test_an_error_message_is_classified_without_its_quoted_text(message: str, left: str) -> None:
    assert ProviderError(message=message).own_words == left

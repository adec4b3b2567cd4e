"""The parts of a provider's message that reach a caller."""

from dataclasses import dataclass

import pytest

from tests.unit.wire.timing import within
from umg_grpc.wire.errors.error_message_redaction import clean


@dataclass(frozen=True)
class Case:
    id: str
    message: str
    cleaned: str


CASES = [
    Case(
        "a key and an address",
        "Incorrect API key provided: sk-proj-abcd************wxyz. You can find your API key at https://platform.provider.com/account/api-keys.",
        "Incorrect API key provided: [key]. You can find your API key at [url].",
    ),
    Case(
        "an organization",
        "Rate limit reached for gpt-4o in organization org-AbCdEfGhIjKlMnOpQrStUvWx on tokens per min (TPM): Limit 30000, Used 28000, Requested 4000. Please try again in 4s.",
        "Rate limit reached for gpt-4o in organization [id] on tokens per min (TPM): Limit 30000, Used 28000, Requested 4000. Please try again in 4s.",
    ),
    Case(
        "a request id",
        "The server had an error while processing your request. (Please include the request ID req_7f0c1b2a9e in your message.)",
        "The server had an error while processing your request. (Please include the request ID [id] in your message.)",
    ),
    Case("hosts", "connect to upstream-7f9c.prod.svc.cluster.local:8443 (10.2.3.4:443) failed", "connect to [host] ([host]) failed"),
    Case("an IPv6 host and a time of day", "fe80::1 and [2001:db8::1]:443 failed at 12:30:45", "[host] and [host] failed at 12:30:45"),
    Case(
        "a cloud account",
        "arn:aws:bedrock:us-east-1:123456789012:inference-profile/x denied for projects/my-proj-7/locations/us-central1",
        "[id] denied for projects/[id]/locations/us-central1",
    ),
    Case("a google key", "API key not valid. AIzaSyA-abcdefghijkl was refused", "API key not valid. [key] was refused"),
    Case("a token", "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-def is expired", "Bearer [key] is expired"),
    Case("an address of a person", "write to ops@provider.com", "write to [email]"),
    Case("a uuid", "trace 550e8400-e29b-41d4-a716-446655440000", "trace [id]"),
    Case("line ends and controls", "first\n\n\tsecond\x00 third\u2028fourth", "first second third fourth"),
]  # fmt: skip

UNCHANGED = [
    "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages, 1000 in the completion).",
    "Invalid schema for function 'get_weather': In context=('properties', 'city'), 'additionalProperties' is required",
    "Invalid value for `messages.1.content.0.text`: user_message is required; request_timeout; file_search; project management",
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
    "model meta-llama/Llama-3.1-8B-Instruct-Turbo or gpt-4o-2024-08-06 cannot take image/png at 12:30",
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_data_of_the_operator_is_masked(case: Case) -> None:
    assert clean(case.message) == case.cleaned


@pytest.mark.parametrize("message", UNCHANGED)
def test_information_for_the_caller_is_unchanged(message: str) -> None:
    assert clean(message) == message


def test_a_long_message_is_cut() -> None:
    assert clean("word " * 1000, limit=20) == "word word word wo..."


@pytest.mark.parametrize("piece", ["a-", "a.", "1.", "sk-", "a@", "eyJaaaaaaaa."])
def test_every_error_message_is_classified_quickly(piece: str) -> None:
    with within(0.5):
        for _ in range(5):
            clean(piece * 4000)

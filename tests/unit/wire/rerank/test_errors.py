"""Errors: the gateway's as each version's clients read them, a provider's as the gateway's."""

from dataclasses import dataclass, field

import msgspec
import pytest

from tests.unit.wire.rerank.strategies import FORMATS
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import CHAT_FORMAT
from umg_grpc.wire.rerank import RERANK_FORMAT, RERANK_V2


@pytest.mark.parametrize("reason", pb.ErrorReason.values(), ids=pb.ErrorReason.Name)
def test_errors_are_those_of_chat_and_clients_of_the_second_version_read_a_message(
    reason: "pb.ErrorReason.ValueType",
) -> None:
    error = UmgError(reason, 'what "happened"', field="documents[0]")
    for status in (400, 500):
        chat = CHAT_FORMAT.encode_error(error, status)
        assert RERANK_FORMAT.encode_error(error, status) == chat
        second = msgspec.json.decode(RERANK_V2.encode_error(error, status))
        assert second == {"message": second["error"]["message"], **msgspec.json.decode(chat)}


@dataclass(frozen=True)
class Refusal:
    id: str
    status: int
    body: bytes
    reason: "pb.ErrorReason.ValueType"
    message: str
    metadata: dict[str, str] = field(default_factory=dict)


REJECTED, FAILED = pb.ERROR_REASON_UPSTREAM_REJECTED, pb.ERROR_REASON_UPSTREAM_FAILED
# fmt: off
REFUSALS = [
    Refusal("cohere", 400, b'{"message":"invalid request: list of documents must not be empty"}', REJECTED, "must not be empty"),
    Refusal("cohere with an id", 422, b'{"id":"8f14","message":"top_n is too large"}', REJECTED, "top_n is too large"),
    Refusal("cohere, too long", 400, b'{"message":"too many tokens: max tokens must be less than 4096"}', pb.ERROR_REASON_CONTEXT_TOO_LONG, "too many tokens", {"field": "documents"}),
    Refusal("cohere, a bad token", 401, b'{"message":"invalid api token"}', FAILED, "operator"),
    Refusal("cohere, a limit", 429, b'{"message":"You are using a Trial key"}', pb.ERROR_REASON_UPSTREAM_RATE_LIMITED, "try again"),
    Refusal("cohere, a failure", 500, b'{"message":"internal server error"}', FAILED, "internal server error"),
    Refusal("jina", 400, b'{"detail":"documents: field required"}', REJECTED, "documents: field required"),
    Refusal("a schema's violations", 422, b'{"detail":[{"loc":["body","documents"],"msg":"Field required"}]}', REJECTED, "documents: Field required"),
    Refusal("as chat writes them", 400, b'{"error":{"message":"no such model here","type":"invalid_request_error","param":"top_n","code":null}}', REJECTED, "no such model here", {"field": "top_n"}),
    Refusal("at the top", 400, b'{"object":"error","message":"bad query","type":"BadRequestError","param":null,"code":400}', REJECTED, "bad query"),
    Refusal("a page", 502, b"<html>bad gateway</html>", FAILED, "status 502"),
    Refusal("nothing", 400, b"", REJECTED, "status 400"),
]
# fmt: on


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_a_providers_refusal_has_a_reason(case: Refusal, name: str) -> None:
    error = FORMATS[name].decode_error(case.status, {}, case.body)
    assert error.reason == case.reason
    assert case.message in error.message
    assert error.metadata.items() >= case.metadata.items()


def test_the_retry_time_of_a_provider_is_decoded() -> None:
    error = RERANK_FORMAT.decode_error(429, {"retry-after": "7"}, b"{}")
    assert error.metadata == {"retry_after_seconds": "7"}

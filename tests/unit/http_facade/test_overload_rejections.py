"""Rejection of unread requests: bytes that are recognised as a call of a model, and bytes for the HTTP parser."""

import json

import pytest

from http_facade.exchange.overload_rejections import Refusals, parse_model_call
from umg_grpc.base.errors import overloaded

BODY = b'{"model": "m"}'


def request(
    *headers: str, path: str = "/v1/chat/completions", line: str = "POST {} HTTP/1.1", body: bytes = BODY
) -> bytes:
    lines = [line.format(path), "Host: gateway", *(headers or (f"Content-Length: {len(body)}",))]
    return "".join(f"{text}\r\n" for text in (*lines, "")).encode() + body


LENGTH = f"Content-Length: {len(BODY)}"


@pytest.mark.parametrize(
    ("path", "error_format"),
    [
        ("/v1/chat/completions", "chat"),
        ("/v1/responses", "responses"),
        ("/v1/messages?beta=true", "messages"),
        ("/v1/messages/count_tokens", "count_tokens"),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", "native"),
        ("/v1/embeddings", "embeddings"),
        ("/v1/rerank", "rerank"),
    ],
)
def test_a_model_call_is_recognised_by_its_path(path: str, error_format: str) -> None:
    call = parse_model_call(request(path=path))
    assert call is not None
    assert (call.error_format, call.request_id) == (error_format, "")


def test_a_model_call_has_the_callers_request_id() -> None:
    call = parse_model_call(request("X-Request-Id:  Mine-1 ", LENGTH, "connection: Keep-Alive"))
    assert call is not None
    assert call.request_id == "Mine-1"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(request()[:-1], id="a body that is not all here"),
        pytest.param(request() + b"P", id="more than one request"),
        pytest.param(request()[:60], id="a part of a head"),
        pytest.param(b"", id="nothing"),
        pytest.param(request(path="/v1/models"), id="no call of a model"),
        pytest.param(request(line="GET {} HTTP/1.1"), id="another method"),
        pytest.param(request(line="POST {} HTTP/1.0"), id="another version"),
        pytest.param(request("Transfer-Encoding: chunked"), id="a body in chunks"),
        pytest.param(request(LENGTH, "Transfer-Encoding: chunked"), id="a body of two lengths"),
        pytest.param(request(LENGTH, LENGTH), id="its length twice"),
        pytest.param(request("Content-Length: +14"), id="a length that is no number"),
        pytest.param(request("Accept: */*"), id="no length"),
        pytest.param(request(LENGTH, "Expect: 100-continue"), id="a sender that waits"),
        pytest.param(request(LENGTH, "Connection: close"), id="a connection that ends"),
        pytest.param(request(LENGTH, "Connection: upgrade", "Upgrade: h2c"), id="another protocol"),
        pytest.param(request(LENGTH, "X-Long: a", " b"), id="a header on two lines"),
    ],
)
def test_other_requests_are_handled_by_the_parser(data: bytes) -> None:
    assert parse_model_call(data) is None


def test_each_refusal_has_an_id_of_its_own() -> None:
    refusals, call = Refusals(), parse_model_call(request(path="/v1/messages"))
    assert call is not None
    error = overloaded("the gateway is behind with its work")
    ids = set[str]()
    for _ in range(3):
        head, _, body = refusals.write(error, call).decode().partition("\r\n\r\n")
        status, *lines = head.split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        assert status == "HTTP/1.1 503 Service Unavailable"
        assert int(headers["content-length"]) == len(body)
        assert (headers["retry-after"], headers["connection"]) == ("1", "keep-alive")
        assert headers["x-request-id"] == headers["request-id"] == json.loads(body)["request_id"]
        ids.add(headers["x-request-id"])
    assert len(ids) == 3

"""Requests of the codec against those of the official cohere client."""

import json
from collections.abc import Callable

import cohere
import httpx
import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.rerank import RERANK_FORMAT, RERANK_V2


class Wire(httpx.BaseTransport):
    """A function in place of a network: connects the client and our codec with real bytes."""

    def __init__(self, answer: Callable[[httpx.Request], httpx.Response]) -> None:
        self._answer = answer

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        return self._answer(request)


def first_client(answer: Callable[[httpx.Request], httpx.Response]) -> cohere.Client:
    return cohere.Client("k", base_url="http://gateway.test", httpx_client=httpx.Client(transport=Wire(answer)))


def second_client(answer: Callable[[httpx.Request], httpx.Response]) -> cohere.ClientV2:
    return cohere.ClientV2("k", base_url="http://gateway.test", httpx_client=httpx.Client(transport=Wire(answer)))


def test_an_encoded_request_equals_that_of_the_official_client() -> None:
    written = list[dict[str, object]]()

    def provider(sent: httpx.Request) -> httpx.Response:
        written.append(json.loads(sent.content))
        return httpx.Response(200, json={"results": []})

    texts = ["a", "b"]
    second_client(provider).rerank(model="m", query="q", documents=texts, top_n=1, max_tokens_per_doc=9, priority=3)
    first_client(provider).rerank(
        model="m", query="q", documents=texts, top_n=1, max_chunks_per_doc=9, return_documents=False
    )
    request = pb.RerankRequest(query="q", documents=[pb.RerankDocument(text=text) for text in texts], top_n=1)
    request.max_tokens_per_document, request.priority = 9, 3
    assert msgspec.json.decode(RERANK_V2.encode_request(request, "m").body) == written[0]
    request.max_chunks_per_document = 9
    assert msgspec.json.decode(RERANK_FORMAT.encode_request(request, "m").body) == written[1]

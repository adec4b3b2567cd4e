"""Requests of cohere's own clients, and their reading of our answers."""

import json
from collections.abc import Callable

import cohere
import httpx
import msgspec
import pytest
from cohere.types.rerank_response import RerankResponse
from cohere.v2.types.v2rerank_response import V2RerankResponse

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.response_shape_selection import client_shape
from umg_grpc.wire.rerank import RERANK_FORMAT, RERANK_V2
from umg_grpc.wire.unary_format_interface import ClientShape

USAGE = pb.RerankUsage(total_tokens=12, search_units=1)


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


def answered(request: pb.RerankRequest) -> pb.RerankResponse:
    """Return a response as the service completes it: the documents in their order, the first is the best."""
    response = pb.RerankResponse(response_id="rerank-1", model=request.model, usage=USAGE)
    for index, document in enumerate(request.documents):
        result = response.results.add(index=index, relevance_score=1 / (1 + index))
        if request.return_documents:
            result.document.CopyFrom(document)
    return response


def gateway(sent: httpx.Request) -> httpx.Response:
    """Answer a request by the codecs alone, without a server."""
    codec = {"/v1/rerank": RERANK_FORMAT, "/v2/rerank": RERANK_V2}[sent.url.path]
    try:
        request, notes = codec.decode_request(sent.content, {})
    except UmgError as error:
        return httpx.Response(400, content=codec.encode_error(error, 400))
    assert not notes.uncarried
    return httpx.Response(200, content=codec.encode_response(answered(request), request, client_shape(sent.headers)))


def test_the_first_version_ranks_texts_and_objects() -> None:
    documents: list[str | dict[str, str]] = ["a", {"text": "b", "title": "B"}]
    answer = first_client(gateway).rerank(model="m", query="q", documents=documents, top_n=2, return_documents=True)
    assert answer.id == "rerank-1"
    assert [(result.index, result.relevance_score) for result in answer.results] == [(0, 1.0), (1, 0.5)]
    assert [result.document and result.document.text for result in answer.results] == ["a", "b"]
    assert answer.meta is not None
    assert answer.meta.api_version is not None
    assert answer.meta.billed_units is not None
    assert answer.meta.tokens is not None
    counts = (answer.meta.api_version.version, answer.meta.billed_units.search_units, answer.meta.tokens.input_tokens)
    assert counts == ("1", 1, 12)


def test_the_second_version_ranks_texts() -> None:
    client = second_client(gateway)
    answer = client.rerank(model="m", query="q", documents=["a", "b"], max_tokens_per_doc=512, priority=1)
    assert [(result.index, result.relevance_score) for result in answer.results] == [(0, 1.0), (1, 0.5)]
    assert answer.meta is not None
    assert answer.meta.api_version is not None
    assert answer.meta.api_version.version == "2"


def test_a_refusal_is_raised_with_its_message() -> None:
    with pytest.raises(cohere.BadRequestError) as caught:
        second_client(gateway).rerank(model="m", query="", documents=["a"])
    assert "`query`" in caught.value.body["message"]


def test_the_official_types_accept_every_answer() -> None:
    request = RERANK_FORMAT.decode_request(
        b'{"model":"m","query":"q","documents":["a",{"text":"b","n":1}],"return_documents":true}', {}
    ).canonical
    first = RERANK_FORMAT.encode_response(answered(request), request, ClientShape.SDK)
    second = RERANK_V2.encode_response(answered(request), request, ClientShape.DOCUMENTED)
    RerankResponse.model_validate_json(first)
    V2RerankResponse.model_validate_json(second)
    request.return_documents = False
    plain = RERANK_FORMAT.encode_response(answered(request), request, ClientShape.DOCUMENTED)
    assert [result.document for result in RerankResponse.model_validate_json(plain).results] == [None, None]


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

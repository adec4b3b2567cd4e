"""Answers: those of providers, and those for clients."""

import math
from dataclasses import dataclass, field

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.unit.wire.rerank.strategies import FORMATS
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.rerank import RERANK_FORMAT, RERANK_V2
from umg_grpc.wire.unary_format_interface import ClientShape


def make_request(documents: str, top_n: int | None = None) -> pb.RerankRequest:
    return pb.RerankRequest(
        model="m", query="q", documents=[pb.RerankDocument(text=text) for text in documents], top_n=top_n
    )


REQUEST = make_request("abc", 2)
RESULTS = [{"index": 2, "relevance_score": 0.75}, {"index": 0, "relevance_score": 0.5}]


@dataclass(frozen=True)
class Provider:
    """An answer with the two results of `RESULTS`, and the other decoded fields."""

    id: str
    body: dict[str, object]
    usage: pb.RerankUsage = field(default_factory=pb.RerankUsage)
    response_id: str = ""


# fmt: off
PROVIDERS = [
    Provider("cohere v1", {"id": "r1", "results": RESULTS, "meta": {"api_version": {"version": "1"}, "billed_units": {"search_units": 1}}}, pb.RerankUsage(search_units=1), "r1"),
    Provider("cohere v2", {"id": "r2", "results": RESULTS, "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 2.0}, "tokens": {"input_tokens": 30.0, "output_tokens": 0}}}, pb.RerankUsage(search_units=2, total_tokens=30), "r2"),
    Provider("jina", {"model": "j", "object": "list", "usage": {"total_tokens": 40, "prompt_tokens": 40}, "results": [result | {"document": {"text": "x"}} for result in RESULTS]}, pb.RerankUsage(total_tokens=40)),
    Provider("documents as strings", {"results": [result | {"document": "x"} for result in RESULTS], "usage": {"total_tokens": 1}}, pb.RerankUsage(total_tokens=1)),
    Provider("voyage", {"object": "list", "data": RESULTS, "model": "v", "usage": {"total_tokens": 26}}, pb.RerankUsage(total_tokens=26)),
    Provider("scores of another name", {"data": [{"index": result["index"], "score": result["relevance_score"], "object": "rank_result"} for result in RESULTS], "usage": {"prompt_tokens": 9, "total_tokens": 0}}, pb.RerankUsage(total_tokens=9)),
    Provider("siliconflow", {"id": "s", "results": RESULTS, "meta": {"billed_units": {"input_tokens": 19, "search_units": 0}, "tokens": None}}, pb.RerankUsage(total_tokens=19), "s"),
    Provider("infinity", {"id": None, "results": RESULTS, "meta": None, "usage": None, "error": None}),
    Provider("a usage of other types", {"id": 7, "results": RESULTS, "meta": "none", "usage": [1]}),
    Provider("a usage without counts", {"results": RESULTS, "usage": {"total_tokens": -1}, "meta": {"billed_units": {}}}),
    Provider("a usage beyond all numbers", {"results": RESULTS, "usage": {"total_tokens": 1e300}}, pb.RerankUsage(total_tokens=2**31 - 1)),
    Provider("whole numbers with a fraction", {"results": [{"index": 2.0, "relevance_score": 0.75}, {"index": 0.0, "relevance_score": 0.5}]}),
    Provider("results before data", {"results": RESULTS, "data": []}),
    Provider("more members than requested", {"results": [result | {"relevant_spans": [], "zork": 1} for result in RESULTS], "zork": {"a": []}}),
]
# fmt: on


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("case", PROVIDERS, ids=lambda case: case.id)
def test_a_providers_answer_is_decoded(case: Provider, name: str) -> None:
    for pass_ in (False, True):
        response = FORMATS[name].decode_response(msgspec.json.encode(case.body), REQUEST, pass_)
        assert [(result.index, result.relevance_score) for result in response.results] == [(2, 0.75), (0, 0.5)]
        assert (response.response_id, response.model) == (case.response_id, "m")
        assert response.usage == case.usage


def test_half_a_character_is_replaced_without_failing_the_answer() -> None:
    body = b'{"id":"\xff","results":[{"index":0,"relevance_score":0.5,"document":"a\\ud83d"}]}'
    assert len(RERANK_FORMAT.decode_response(body, make_request("a"), False).results) == 1


def test_raw_logits_become_probabilities_in_the_same_order() -> None:
    logits = {0: 7.741800308227539, 1: -2.33689022064209, 2: -11.016427993774414}
    body = msgspec.json.encode({"results": [{"index": index, "relevance_score": x} for index, x in logits.items()]})
    scores = [result.relevance_score for result in RERANK_FORMAT.decode_response(body, REQUEST, False).results]
    assert scores == [pytest.approx(1 / (1 + math.exp(-logit))) for logit in logits.values()]


def results(*given: object) -> bytes:
    return msgspec.json.encode({"results": list(given)})


GOOD = {"index": 0, "relevance_score": 0.5}
ODD = {
    "nothing": b"",
    "a page": b"<html>busy</html>",
    "a list": b"[]",
    "no results": b'{"id":"a"}',
    "null for results": b'{"results":null}',
    "a message": b'{"message":"busy"}',
    "results of another type": b'{"results":{"0":0.5}}',
    "a string for a result": results("a"),
    "no index": results({"relevance_score": 0.5}),
    "an index as text": results({"index": "0", "relevance_score": 0.5}),
    "a negative index": results({"index": -1, "relevance_score": 0.5}),
    "an index beyond the documents": results({"index": 3, "relevance_score": 0.5}),
    "a huge index": results({"index": 2**70, "relevance_score": 0.5}),
    "a fraction of an index": results({"index": 0.5, "relevance_score": 0.5}),
    "an index twice": results(GOOD, GOOD),
    "an index twice in other words": results(GOOD, {"index": 0.0, "relevance_score": 0.25}),
    "no score": results({"index": 0}),
    "null for a score": results({"index": 0, "relevance_score": None}),
    "a score as text": results({"index": 0, "relevance_score": "0.5"}),
    "a score without end": b'{"results":[{"index":0,"relevance_score":1e999}]}',
    "no number": b'{"results":[{"index":0,"relevance_score":NaN}]}',
    "too deep": b'{"results":' + b"[" * 100_000,
}


@pytest.mark.parametrize("odd", ODD)
def test_a_body_that_is_no_answer_is_the_providers_failure(odd: str) -> None:
    for codec in FORMATS.values():
        with pytest.raises(UmgError) as caught:
            codec.decode_response(ODD[odd], make_request("abc", 1), False)
        assert caught.value.reason == pb.ERROR_REASON_UPSTREAM_FAILED
        assert "provider" in caught.value.message


def test_an_error_body_with_a_success_status_is_an_error() -> None:
    body = b'{"error":{"message":"overloaded","code":"rate_limit_exceeded"}}'
    with raises_error(reason=pb.ERROR_REASON_UPSTREAM_RATE_LIMITED):
        RERANK_FORMAT.decode_response(body, REQUEST, False)


@pytest.mark.parametrize("given", range(4))
@pytest.mark.parametrize("top_n", [None, 1, 2, 3, 4, 2**31 - 1])
def test_fewer_results_than_requested_are_the_providers_failure(top_n: int | None, given: int) -> None:
    body = results(*({"index": index, "relevance_score": 0.5} for index in range(given)))
    wanted = min(top_n or 3, 3)
    if given >= wanted:  # the service cuts off results beyond `top_n`
        assert len(RERANK_FORMAT.decode_response(body, make_request("abc", top_n), False).results) == given
        return
    with pytest.raises(UmgError) as caught:
        RERANK_FORMAT.decode_response(body, make_request("abc", top_n), False)
    assert caught.value.reason == pb.ERROR_REASON_UPSTREAM_FAILED
    assert f"{given} of the {wanted} results" in caught.value.message


ANSWER = pb.RerankResponse(
    response_id="rerank-1",
    model="m",
    results=[
        pb.RerankResult(index=1, relevance_score=1, document=pb.RerankDocument(object_json='{"text": "b",  "n": 1.0}')),
        pb.RerankResult(index=0, relevance_score=0.25, document=pb.RerankDocument(text="a")),
        pb.RerankResult(index=2, document=pb.RerankDocument(text="")),
    ],
    usage=pb.RerankUsage(total_tokens=12, search_units=1),
)


def test_the_documents_shape_is_the_default() -> None:
    assert RERANK_FORMAT.encode_response(ANSWER, REQUEST, ClientShape.DOCUMENTED) == (
        b'{"id":"rerank-1","model":"m","results":['
        b'{"index":1,"relevance_score":1.0,"document":{"text": "b",  "n": 1.0}},'
        b'{"index":0,"relevance_score":0.25,"document":"a"},'
        b'{"index":2,"relevance_score":0.0,"document":""}],'
        b'"usage":{"prompt_tokens":12,"total_tokens":12},'
        b'"meta":{"api_version":{"version":"1"},"billed_units":{"search_units":1},"tokens":{"input_tokens":12}}}'
    )


def test_sdks_and_all_callers_of_the_second_version_get_objects() -> None:
    sdk = RERANK_FORMAT.encode_response(ANSWER, REQUEST, ClientShape.SDK)
    assert b'"document":{"text":"a"}' in sdk
    assert b'"document":{"text": "b",  "n": 1.0}' in sdk
    second = sdk.replace(b'{"version":"1"}', b'{"version":"2"}')
    assert {RERANK_V2.encode_response(ANSWER, REQUEST, shape) for shape in ClientShape} == {second}


def test_search_units_are_sent_only_where_they_are_known() -> None:
    answer = pb.RerankResponse(usage=pb.RerankUsage(total_tokens=12))
    body = msgspec.json.decode(RERANK_FORMAT.encode_response(answer, REQUEST, ClientShape.DOCUMENTED))
    assert body["meta"]["billed_units"] == {"input_tokens": 12}

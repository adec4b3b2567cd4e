"""Page docs/embeddings.md: the gateway behaves as it states on embeddings, reranking and model lists."""

import base64
import json
import math
import re
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tests.docs.tables import DOCS, quoted, rows
from tests.proofs.retrieval.corpus import PASSAGES, QUESTIONS
from tests.proofs.retrieval.test_retrieval import SEARCHES
from tests.support.callers.api import ApiClient
from umg_grpc.base.errors import UmgError
from umg_grpc.config import Config, built_in
from umg_grpc.knowledge.model_catalogue import MODEL_CATALOGUE
from umg_grpc.tokens.token_decoding import EMBEDDING_TOKENIZER, decode
from umg_grpc.upstream.http.embedding_batches import MAX_CONCURRENT_PARTS
from umg_grpc.v1 import pb
from umg_grpc.wire.core.response_shape_selection import client_shape
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS
from umg_grpc.wire.errors.http_status import HTTP_STATUS
from umg_grpc.wire.rerank import RERANK_FORMATS
from umg_grpc.wire.unary_format_interface import ClientShape

PAGE = (DOCS / "embeddings.md").read_text(encoding="utf-8")
FLAT = " ".join(PAGE.split())

pytestmark = pytest.mark.asyncio(loop_scope="module")


# --- models


async def test_the_table_of_models_is_the_catalogue() -> None:
    local = {model.id for model in built_in().channels[0].models}
    expected = []
    for model in MODEL_CATALOGUE.values():
        if not {pb.MODEL_OPERATION_EMBED, pb.MODEL_OPERATION_RERANK}.intersection(model.operations):
            continue
        embeds, own = model.HasField("embedding"), model.embedding.default_dimensions
        others = ", ".join(str(length) for length in model.embedding.dimensions if length != own)
        does = f"{'embeds' if embeds else 'ranks'}, {'on this machine' if model.id in local else 'simulated'}"
        lengths = "any below" if model.embedding.any_dimensions else others or "none"
        row = [
            f"`{model.id}`",
            does,
            str(own) if embeds else "",
            lengths if embeds else "",
            str(model.input_token_limit),
        ]
        expected.append(row)
    assert sorted(rows(PAGE, "Built-in models")) == sorted(expected)


async def test_the_retrieval_results_are_those_of_the_page() -> None:
    documented = re.search(
        r"Of (\d+) questions about (\d+) passages .*? first for (\d+), with 128 .*? (\d+), with 64 for (\d+)", FLAT
    )
    assert documented is not None
    found = {search.dimensions: search.found for search in SEARCHES if search.model == "wordllama-256"}
    assert [int(number) for number in documented.groups()] == [
        len(QUESTIONS),
        len(PASSAGES),
        *(found[size] for size in (256, 128, 64)),
    ]


async def test_vectors_have_length_one_and_similar_texts_have_similar_vectors(call: ApiClient) -> None:
    texts = ["A cat sleeps on the sofa.", "The kitten naps on the couch.", "Interest rates went up."]
    for cells in rows(PAGE, "Built-in models"):
        if cells[1].startswith("embeds"):
            [model] = quoted(cells[0])
            vectors = [
                item["embedding"]
                for item in (await call("/v1/embeddings", {"model": model, "input": texts})).body["data"]
            ]
            assert {len(vector) for vector in vectors} == {int(cells[2])}
            assert [math.hypot(*vector) for vector in vectors] == pytest.approx([1] * 3, abs=1e-4)
            near, far = np.array(vectors[1:]) @ np.array(vectors[0])
            assert near > far + 0.2


# --- embedding


@dataclass(frozen=True)
class RequestCase:
    id: str
    body: dict[str, Any]
    status: int = 200
    path: str = "/v1/embeddings"
    lengths: tuple[int, ...] = (256,)  # of the vectors
    message: str = ""


ONE, MANY = "/v1/models/wordllama-256:embedContent", "/v1beta/models/wordllama-256:batchEmbedContents"
CONTENT = {"content": {"parts": [{"text": "Hi"}]}}


def embed_body(**fields: Any) -> dict[str, Any]:
    return {"model": "wordllama-256", "input": "Hi", **fields}


REQUEST_CASES = [
    RequestCase("a text", embed_body()),
    RequestCase("a list of texts", embed_body(input=["Hi", "Ho"]), lengths=(256, 256)),
    RequestCase("an empty text", embed_body(input=""), 400),
    RequestCase("an empty text in a list", embed_body(input=["Hi", ""]), 400),
    RequestCase("an empty list", embed_body(input=[]), 400),
    RequestCase("the token ids of a text", embed_body(input=[13347, 11]), lengths=(256,)),
    RequestCase("lists of token ids", embed_body(input=[[13347], [11]]), lengths=(256, 256)),
    RequestCase("half a character", embed_body(input=[[9468]]), lengths=(256,)),
    RequestCase("an id that there is not", embed_body(input=[[150_000]]), 400, message="cl100k_base"),
    RequestCase("another length", embed_body(dimensions=64), lengths=(64,)),
    RequestCase("a length that the model has not", embed_body(dimensions=100), 400, message="64, 128, 256"),
    RequestCase(
        "a native content of several parts", {"content": {"parts": [{"text": "Hi"}, {"text": "Ho"}]}}, path=ONE
    ),
    RequestCase("a part that is no text", {"content": {"parts": [{"inlineData": {}}]}}, 400, ONE),
    RequestCase("the path's model in the body", {"model": "models/wordllama-256", **CONTENT}, path=ONE),
    RequestCase("another model in the body", {"model": "models/other", **CONTENT}, 400, ONE),
    RequestCase("a native length", {"outputDimensionality": 128, **CONTENT}, path=ONE, lengths=(128,)),
    RequestCase("a batch", {"requests": [CONTENT, {**CONTENT, "title": "T"}]}, path=MANY, lengths=(256, 256)),
    RequestCase("an empty batch", {"requests": []}, 400, MANY),
]


@pytest.mark.parametrize("case", REQUEST_CASES, ids=lambda case: case.id)
async def test_a_body_is_decoded_as_documented(case: RequestCase, call: ApiClient) -> None:
    answer = await call(case.path, case.body)
    assert answer.status == case.status, answer.body
    if case.status != 200:
        assert case.message in answer.body["error"]["message"]
        return
    vectors = answer.body.get("data") or answer.body.get("embeddings") or [answer.body["embedding"]]
    assert tuple(len(item.get("embedding") or item["values"]) for item in vectors) == case.lengths


async def test_base64_has_the_same_numbers_as_float32(call: ApiClient) -> None:
    numbers, packed = [
        (await call("/v1/embeddings", embed_body(encoding_format=name))).body["data"][0]["embedding"]
        for name in ("float", "base64")
    ]
    raw = base64.b64decode(packed, validate=True)
    assert raw == struct.pack("<256f", *numbers)


async def test_token_ids_are_decoded_with_the_documented_vocabulary(call: ApiClient) -> None:
    assert f"else with `{EMBEDDING_TOKENIZER}`" in PAGE
    ids = [13347, 1917]
    tokens, text = [
        (await call("/v1/embeddings", embed_body(input=documented))).body["data"]
        for documented in (ids, decode(ids, None))
    ]
    assert tokens == text
    assert decode([9468], None) == "�"
    source = EMBEDDING_FORMATS["embeddings"].decode_request(json.dumps(embed_body(input=[ids])).encode(), {}).canonical
    source.ClearField("source")
    assert json.loads(EMBEDDING_FORMATS["embeddings"].encode_request(source, "m").body)["input"] == [ids]


async def test_a_title_is_embedded_before_its_text(call: ApiClient) -> None:
    titled, joined = [
        (await call(ONE, body)).body["embedding"]
        for body in ({**CONTENT, "title": "Ho"}, {"content": {"parts": [{"text": "Ho"}, {"text": "Hi"}]}})
    ]
    assert titled == joined


async def test_the_documented_batch_sizes_are_those_of_the_formats() -> None:
    documented = re.search(r"else (\d+) texts for `embeddings` and (\d+) for `native_embeddings`", FLAT)
    assert documented is not None
    assert [int(size) for size in documented.groups()] == [
        EMBEDDING_FORMATS[name].max_items for name in ("embeddings", "native_embeddings")
    ]
    assert ("four at a time" in FLAT, MAX_CONCURRENT_PARTS) == (True, 4)


# --- reranking

DOCUMENTS = ["Bread and salt.", {"text": "The cat sleeps.", "n": 1}, "A cat.", ""]


def rerank_body(**fields: Any) -> dict[str, Any]:
    return {"model": "wordllama-rerank", "query": "Where does the cat sleep?", "documents": DOCUMENTS, **fields}


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank"])
async def test_documents_are_ranked_as_documented(path: str, call: ApiClient) -> None:
    whole = (await call(path, rerank_body())).body
    scores = [result["relevance_score"] for result in whole["results"]]
    assert scores == sorted(scores, reverse=True)
    assert 0 <= scores[-1] <= scores[0] <= 1
    assert sorted(result["index"] for result in whole["results"]) == [0, 1, 2, 3]
    assert (whole["results"][0]["index"], [result for result in whole["results"] if "document" in result]) == (1, [])
    assert whole["usage"]["total_tokens"] > 0
    assert "search_units" not in whole["meta"]["billed_units"]
    for top, count in ((1, 1), (99, 4)):
        assert (await call(path, rerank_body(top_n=top))).body["results"] == whole["results"][:count]
    alike = (await call(path, rerank_body(documents=["A cat."] * 3))).body["results"]
    assert [result["index"] for result in alike] == [0, 1, 2]


async def test_objects_are_ranked_by_the_named_fields(call: ApiClient) -> None:
    hidden = [{"text": "Bread.", "body": text} for text in ("Bread and salt.", "The cat sleeps on the sofa.")]
    best = (await call("/v1/rerank", rerank_body(documents=hidden, rank_fields=["body"]))).body["results"][0]
    assert best["index"] == 1
    assert (await call("/v1/rerank", rerank_body(documents=[{"title": "Bread."}]))).status == 400


async def test_logit_scores_are_converted_by_the_logistic_function() -> None:
    assert "`1 / (1 + exp(-score))`" in PAGE
    request = pb.RerankRequest(model="m", query="q", documents=[pb.RerankDocument(text=text) for text in "ab"])
    body = json.dumps({"results": [{"index": 0, "relevance_score": -2.0}, {"index": 1, "relevance_score": 3.0}]})
    answer = RERANK_FORMATS["rerank"].decode_response(body.encode(), request, False)
    assert [result.relevance_score for result in answer.results] == pytest.approx(
        [1 / (1 + math.exp(-score)) for score in (-2, 3)]
    )


# --- limits, reports, shapes


async def test_the_limits_are_enforced_as_documented(call: ApiClient) -> None:
    limits = {(cells[1].split(",")[0]): cells[2] for cells in rows(PAGE, "Limits")}
    usual = Config(channels=())
    sizes = [
        f"{usual.limits.embedding_inputs}",
        f"{usual.limits.rerank_documents}",
        "100",
        "the model's limit",
        f"{usual.body_limit >> 20} MiB",
    ]
    assert list(limits) == sizes
    assert list(limits.values()) == ["400", "400", "400", "400", "413"]
    assert (await call("/v1/embeddings", embed_body(input=["Hi"] * 2049))).status == 400
    assert (await call("/v1/rerank", rerank_body(documents=["Hi"] * 1001))).status == 400
    assert (await call("/v1/rerank", rerank_body(rank_fields=["text"] * 101))).status == 400
    assert (await call("/v1/embeddings", embed_body(input="cat " * 20_000))).status == 400
    assert (await call("/v1/rerank", rerank_body(query="cat " * 20_000))).status == 400
    assert (await call("/v1/rerank", rerank_body(documents=["cat " * 20_000]))).status == 200
    assert HTTP_STATUS[pb.ERROR_REASON_BODY_TOO_LARGE] == 413


@dataclass(frozen=True)
class DroppedField:
    """Body with a field that the provider's format does not have."""

    id: str
    face: str
    provider: str
    more: dict[str, Any]
    header: str = ""  # empty: rejected


DROPPED_FIELDS = [
    DroppedField("taskType", "native_embedding", "embeddings", {**CONTENT, "taskType": "CLUSTERING"}, "taskType"),
    DroppedField("title", "native_embedding", "embeddings", {**CONTENT, "title": "T"}, "title"),
    DroppedField("embedContentConfig.autoTruncate", "native_embedding", "embeddings", {**CONTENT, "embedContentConfig": {"autoTruncate": True}}, "embedContentConfig.autoTruncate"),
    DroppedField("embedContentConfig.mimeType", "native_embedding", "embeddings", {**CONTENT, "embedContentConfig": {"mimeType": "a/b"}}, "embedContentConfig.mimeType"),
    DroppedField("vectors of several lengths in one batch", "native_embeddings", "embeddings", {"requests": [{**CONTENT, "outputDimensionality": 1}, CONTENT]}),
    DroppedField("user", "embeddings", "native_embeddings", embed_body(user="u"), "user"),
    DroppedField("max_chunks_per_doc", "rerank", "rerank_v2", rerank_body(max_chunks_per_doc=1), "max_chunks_per_doc"),
    DroppedField("max_tokens_per_doc", "rerank_v2", "rerank", rerank_body(max_tokens_per_doc=1), "max_tokens_per_doc"),
    DroppedField("priority", "rerank_v2", "rerank", rerank_body(priority=1), "priority"),
    DroppedField("relevant_spans", "rerank_v2", "rerank_v2", rerank_body(relevant_spans={"mode": "enabled"}), "relevant_spans"),
    DroppedField("any unknown field", "embeddings", "native_embeddings", embed_body(zork=1), "zork"),
]  # fmt: skip


@pytest.mark.parametrize("case", DROPPED_FIELDS, ids=lambda case: case.id)
async def test_a_dropped_field_is_reported_as_documented(case: DroppedField) -> None:
    codecs: dict[str, Any] = EMBEDDING_FORMATS | RERANK_FORMATS
    request, notes = codecs[case.face].decode_request(json.dumps(case.more).encode(), {})
    [row] = [
        cells
        for cells in rows(PAGE, "Fields that a provider does not support")
        if case.id in (*quoted(cells[0]), cells[0])
    ]
    if not case.header:
        assert row[2] == "400"
        with pytest.raises(UmgError):
            codecs[case.provider].encode_request(request, "m", notes)
        return
    assert row[2] == ("counted: `+1`" if case.header == "+1" else "reported")
    report = codecs[case.provider].encode_request(request, "m", notes).report
    report.rename(codecs[case.face].wire_path)
    assert report.header() == case.header


async def test_every_documented_dropped_field_has_a_test() -> None:
    documented = {
        name
        for cells in rows(PAGE, "Fields that a provider does not support")
        for name in quoted(cells[0]) or [cells[0]]
    }
    assert documented == {case.id for case in DROPPED_FIELDS}


async def test_local_models_report_the_fields_that_they_ignore(call: ApiClient) -> None:
    embedded = await call(ONE, {**CONTENT, "taskType": "CLUSTERING"})
    ranked = await call("/v1/rerank", rerank_body(priority=1))
    assert [answer.headers["x-umg-dropped"] for answer in (embedded, ranked)] == ["taskType", "priority"]
    assert (await call("/v1/rerank", rerank_body(priority=1), x_umg_strict="true")).status == 400


@dataclass(frozen=True)
class Shaped:
    id: str
    headers: dict[str, str] = field(default_factory=dict)
    shape: ClientShape = ClientShape.SDK


SHAPED = [
    Shaped("nobody", {"user-agent": "curl/8"}, ClientShape.DOCUMENTED),
    Shaped("X-Stainless-*", {"x-stainless-lang": "python"}),
    Shaped("OpenAI/", {"user-agent": "AsyncOpenAI/Python 2.6.1"}),
    Shaped("ai-sdk", {"user-agent": "ai/7.0 ai-sdk/cohere/5.0"}),
    Shaped("cohere", {"user-agent": "cohere/7.3.1"}),
    Shaped("X-Fern-SDK-Name", {"x-fern-sdk-name": "cohere-ai"}),
    Shaped("x-umg-shape: documented", {"user-agent": "cohere/7", "x-umg-shape": "documented"}, ClientShape.DOCUMENTED),
    Shaped("x-umg-shape: sdk", {"user-agent": "curl/8", "x-umg-shape": "sdk"}),
]


@pytest.mark.parametrize("case", SHAPED, ids=lambda case: case.id)
async def test_an_answer_has_the_documented_shape(case: Shaped, call: ApiClient) -> None:
    assert case.id == "nobody" or f"`{case.id}`" in PAGE
    assert client_shape(case.headers) is case.shape
    headers = {name.replace("-", "_"): value for name, value in case.headers.items()}
    for path, shape in (("/v1/rerank", case.shape), ("/v2/rerank", ClientShape.SDK)):
        results = (await call(path, rerank_body(return_documents=True), **headers)).body["results"]
        texts = {result["index"]: result["document"] for result in results}
        assert texts[0] == (DOCUMENTS[0] if shape is ClientShape.DOCUMENTED else {"text": DOCUMENTS[0]})
        assert texts[1] == DOCUMENTS[1]


async def test_an_unknown_shape_is_refused(call: ApiClient) -> None:
    assert (await call("/v1/rerank", rerank_body(), x_umg_shape="other")).status == 400

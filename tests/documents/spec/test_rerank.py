"""Text document, "POST /v1/rerank" and "Rerank result"; readings, 16; and `/v2/rerank`, which SDKs call."""

from random import Random

import pytest

from tests.documents.spec.bodies import changed
from tests.documents.spec.callers import NO_ARRAYS, NO_BOOLEANS, NO_INTEGERS, NO_STRINGS
from tests.documents.spec.vector_callers import BEST, CAT, DOCUMENTS, QUERY, Rerank, RerankV2
from tests.support.callers.api import ApiClient

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODELS = ("rerank-v1", "wordllama-rerank")
every_model = pytest.mark.parametrize("model", MODELS)


# --- the response


@every_model
async def test_rerank_response_fields(rerank: Rerank, model: str) -> None:
    body = await rerank.answer(model=model)
    assert body.keys() >= {"model", "results", "usage"}
    assert body["model"] == model
    assert type(body["usage"]["total_tokens"]) is int
    assert body["usage"]["total_tokens"] > 0
    assert sorted(rerank.order(body)) == list(range(len(DOCUMENTS)))
    assert all(result.keys() == {"index", "relevance_score"} for result in body["results"])


@every_model
async def test_rerank_response_is_ordered_by_relevance(rerank: Rerank, model: str) -> None:
    body = await rerank.answer(model=model)
    scores = [result["relevance_score"] for result in body["results"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert rerank.order(body)[0] == BEST
    assert scores[0] > scores[1]
    backwards = await rerank.answer({"documents": list(reversed(DOCUMENTS))}, model=model)
    assert rerank.order(backwards)[0] == len(DOCUMENTS) - 1 - BEST  # a position in the input documents


async def test_rerank_response_equal_documents_keep_their_order(rerank: Rerank) -> None:
    body = await rerank.answer({"documents": [CAT, "x", CAT, CAT]})
    assert [index for index in rerank.order(body) if index != 1] == [0, 2, 3]


# --- the fields


async def test_rerank_field_model(rerank: Rerank) -> None:
    await rerank.misses("model")
    await rerank.refuses("model", "", *NO_STRINGS)
    error = rerank.error(await rerank.post(model="rerank-v9"), 404)
    assert "rerank-v9" in error["message"]
    assert error["code"] == "model_not_found"


async def test_rerank_field_query(rerank: Rerank) -> None:
    await rerank.misses("query")
    await rerank.refuses("query", "", *NO_STRINGS)
    bread = await rerank.answer(text="How do I make bread?")
    assert rerank.order(bread)[0] == 1


async def test_rerank_field_documents(rerank: Rerank) -> None:
    await rerank.misses("documents")
    await rerank.refuses("documents", [], *NO_ARRAYS)
    for wrong in (5, None, True, ["x"], {}, {"title": "x"}, {"text": 5}):
        await rerank.refuses("documents", ["x", wrong], named="documents[1]")
    assert rerank.order(await rerank.answer({"documents": [CAT]})) == [0]
    body = await rerank.answer({"documents": ["", CAT]})  # an empty document is ranked, too
    assert rerank.order(body) == [1, 0]


async def test_rerank_field_documents_may_be_objects_as_sdks_send_them(rerank: Rerank) -> None:
    objects = [{"text": text, "title": f"Note {place}", "n": 1.50} for place, text in enumerate(DOCUMENTS)]
    plain = await rerank.answer()
    body = await rerank.answer({"documents": objects})
    assert body["results"] == plain["results"]
    back = await rerank.answer({"documents": objects, "return_documents": True})
    assert [result["document"] for result in back["results"]] == [objects[index] for index in rerank.order(back)]
    by_title = await rerank.answer(
        {"documents": [{"title": text, "text": "?"} for text in DOCUMENTS], "rank_fields": ["title"]}
    )
    assert by_title["results"] == plain["results"]


async def test_rerank_field_top_n(rerank: Rerank) -> None:
    whole = await rerank.answer()
    for top in (1, 2, 3, 4, 2.0):
        body = await rerank.answer({"top_n": top})
        assert body["results"] == whole["results"][: int(top)]
    for top in (5, 1000, 2**31, 2**40):
        assert (await rerank.answer({"top_n": top}))["results"] == whole["results"]  # all
    await rerank.refuses("top_n", 0, -1, *NO_INTEGERS)
    await rerank.ignores_null("top_n")


async def test_rerank_field_return_documents(rerank: Rerank) -> None:
    for absent in ({}, {"return_documents": False}, {"return_documents": None}):
        body = await rerank.answer(absent)
        assert all("document" not in result for result in body["results"])
    body = await rerank.answer({"return_documents": True, "top_n": 3})
    assert [result["document"] for result in body["results"]] == [DOCUMENTS[index] for index in rerank.order(body)]
    await rerank.refuses("return_documents", *NO_BOOLEANS)


async def test_rerank_documents_have_the_form_that_sdks_read(rerank: Rerank, gateway: ApiClient) -> None:
    fields = {"return_documents": True, "top_n": 1}
    for agent in ({"user-agent": "cohere/7.3.1"}, {"x-fern-sdk-name": "cohere"}, {"x-umg-shape": "sdk"}):
        headers = {**gateway.server.headers, **agent}
        (result,) = (await gateway.post(rerank.path, rerank.body(fields), headers)).body["results"]
        assert result["document"] == {"text": CAT}
        headers["x-umg-shape"] = "documented"
        (result,) = (await gateway.post(rerank.path, rerank.body(fields), headers)).body["results"]
        assert result["document"] == CAT


async def test_rerank_limits_are_reported(rerank: Rerank) -> None:
    body = await rerank.answer({"documents": [f"{CAT} {number}" for number in range(1000)], "top_n": 1})
    assert len(body["results"]) == 1
    await rerank.refuses("documents", ["x"] * 1001)
    error = rerank.error(await rerank.post(text="word " * 9000), 400)
    assert (error["code"], error["param"]) == ("context_length_exceeded", "query")


async def test_rerank_fields_of_sdks_are_accepted(rerank: Rerank) -> None:
    await rerank.takes("max_chunks_per_doc", 1, 10)
    await rerank.takes("max_tokens_per_doc", 1, 4096)
    await rerank.takes("rank_fields", ["text"], [])
    reply = await rerank.post({"priority": 5, "x_unknown": 1})
    assert (reply.status, reply.headers["x-umg-dropped"]) == (200, "x_unknown, priority")
    for field, wrong in (
        ("priority", 1000),
        ("max_chunks_per_doc", 0),
        ("max_tokens_per_doc", "x"),
        ("rank_fields", [5]),
    ):
        reply = await rerank.post({field: wrong})
        assert field in rerank.error(reply, 400)["message"]


async def test_rerank_a_model_of_another_kind_is_refused(rerank: Rerank) -> None:
    for model, can in (("famO-5", "generate text"), ("text-embedding-3-small", "embed texts")):
        error = rerank.error(await rerank.post(model=model), 400)
        assert error["param"] == "model"
        assert model in error["message"]
        assert can in error["message"]


async def test_rerank_errors_have_the_formats_body(rerank: Rerank, rerank_v2: RerankV2, gateway: ApiClient) -> None:
    for face in (rerank, rerank_v2):
        replies = [
            (await face.post(key="sk-nobody"), 401),
            (await face.post(model="rerank-v9"), 404),
            (await face.post({"top_n": 0}), 400),
            (await gateway.send("POST", face.path, data=b"{"), 400),
            (await gateway.send("POST", face.path, data=b"[" * 100_000), 400),
            (await gateway.get(face.path), 405),
            (await face.post(text="[[fail:429]]"), 429),
        ]
        failed = await face.post(text="[[fail]]")
        assert failed.status >= 500
        for reply, status in [*replies, (failed, failed.status)]:
            assert reply.status == status, reply.text
            assert reply.body["error"].keys() == {"message", "type", "param", "code"}
            assert reply.body["error"]["message"]
            if face is rerank_v2:  # the field that its clients read
                assert reply.body["message"] == reply.body["error"]["message"]
        assert int(replies[-1][0].headers["retry-after"]) >= 1


async def test_rerank_no_change_of_a_good_body_is_a_server_error(
    rerank: Rerank, rerank_v2: RerankV2, gateway: ApiClient
) -> None:
    body = rerank.body(
        {
            "documents": [CAT, {"text": "x", "title": "t"}],
            "top_n": 1,
            "return_documents": True,
            "rank_fields": ["title", "text"],
            "max_chunks_per_doc": 3,
            "max_tokens_per_doc": 100,
            "priority": 1,
            "relevant_spans": {"mode": "enabled", "threshold": 0.5},
        }
    )
    random = Random("rerank")
    for face in (rerank, rerank_v2):
        assert (await gateway.post(face.path, body)).status == 200
        for _ in range(300):
            fields = changed(body, random)
            reply = await gateway.post(face.path, fields)
            assert reply.status in {200, 400, 404}, fields
            if reply.status != 200:
                assert face.error(reply, reply.status)["message"] if face is rerank else reply.body["message"]


# --- the second version, which is not in the document


@every_model
async def test_rerank_v2_answers_as_its_sdks_read_it(rerank: Rerank, rerank_v2: RerankV2, model: str) -> None:
    first = await rerank.answer(model=model)
    body = await rerank_v2.answer({"max_tokens_per_doc": None, "top_n": 3}, model=model)  # as LangChain writes it
    assert body["results"] == first["results"][:3]
    assert body["id"]
    assert body["meta"]["api_version"] == {"version": "2"}
    assert body["meta"]["tokens"]["input_tokens"] == body["usage"]["total_tokens"] > 0
    back = await rerank_v2.answer({"return_documents": True, "top_n": 1}, model=model)
    assert back["results"][0]["document"] == {"text": CAT}
    assert QUERY

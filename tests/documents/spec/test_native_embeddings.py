"""Text document, ":embedContent", ":batchEmbedContents" and "Embedding results"; readings, 16."""

from random import Random
from typing import Any

import pytest

from tests.documents.spec.bodies import changed
from tests.documents.spec.callers import NO_INTEGERS, NO_STRINGS
from tests.documents.spec.vector_callers import (
    BANK,
    CAT,
    DIMENSIONS,
    FIXED,
    KITTEN,
    Embeddings,
    NativeEmbedding,
    NativeEmbeddings,
    near,
)
from tests.support.callers.api import ApiClient, Reply

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALL = pytest.mark.parametrize("model", DIMENSIONS)
TASKS = ("RETRIEVAL_DOCUMENT", "RETRIEVAL_QUERY", "SEMANTIC_SIMILARITY", "CLASSIFICATION", "CLUSTERING")
# A number may be text in this format, as in proto-JSON.
NO_LENGTHS = tuple(value for value in NO_INTEGERS if value != "1")


def item(text: str = CAT, **fields: object) -> dict[str, object]:
    return {"content": {"parts": [{"text": text}]}, **fields}


# --- :embedContent


async def test_embed_content_response_fields(native_embedding: NativeEmbedding) -> None:
    body = await native_embedding.answer(text=CAT)
    assert body.keys() >= {"embedding", "metadata"}
    assert body["embedding"].keys() == {"values"}
    assert all(isinstance(number, float) for number in body["embedding"]["values"])
    usage = body["metadata"]["usage"]
    assert usage.keys() == {"prompt_tokens", "total_tokens"}
    assert 0 < usage["prompt_tokens"] == usage["total_tokens"]
    assert body["usageMetadata"] == {"promptTokenCount": usage["prompt_tokens"]}  # the field that SDKs read


@ALL
async def test_embed_content_response_has_the_documented_length(native_embedding: NativeEmbedding, model: str) -> None:
    cat, kitten, bank = await native_embedding.embed(CAT, KITTEN, BANK, model=model)
    assert {len(cat), len(kitten), len(bank)} == {DIMENSIONS[model]}
    assert near(cat, kitten) > max(near(cat, bank), near(kitten, bank)) + 0.2


async def test_embed_content_field_content(native_embedding: NativeEmbedding, gateway: ApiClient) -> None:
    for body in ({}, {"content": None}):
        reply = await gateway.post(native_embedding.path, body)
        assert "content" in native_embedding.error(reply, 400)["message"]
    for wrong in (5, True, ["x"], {}, {"parts": None}, {"parts": []}):
        await native_embedding.refuses("content", wrong)


async def test_embed_content_field_content_parts(native_embedding: NativeEmbedding) -> None:
    (alone,) = await native_embedding.embed(f"{CAT}\n{BANK}")
    several = await native_embedding.answer({"content": {"parts": [{"text": CAT}, {"text": BANK}]}})
    assert native_embedding.vectors(several) == [alone]  # parts of one content are one text
    for wrong in ("x", [5], [{"text": 5}], [{"text": None}], [{}]):
        await native_embedding.refuses("content.parts", wrong)
    image = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    await native_embedding.refuses("content.parts", [image], [{"text": CAT}, image])


async def test_embed_content_field_content_needs_one_text_that_is_not_empty(native_embedding: NativeEmbedding) -> None:
    for parts in ([{"text": ""}], [{"text": ""}, {"text": ""}]):
        await native_embedding.refuses("content.parts", parts)
    (alone,) = await native_embedding.embed(CAT)
    body = await native_embedding.answer({"content": {"parts": [{"text": ""}, {"text": CAT}]}})
    assert native_embedding.vectors(body) == [alone]


async def test_embed_content_field_content_may_have_a_role(native_embedding: NativeEmbedding) -> None:
    (alone,) = await native_embedding.embed(CAT)
    for content in ({"role": "user", "parts": [{"text": CAT}]}, {"parts": {"text": CAT}}):
        body = await native_embedding.answer({"content": content})
        assert native_embedding.vectors(body) == [alone], content
    await native_embedding.refuses("content", CAT)


@pytest.mark.parametrize("model", [model for model in DIMENSIONS if model != FIXED])
async def test_embed_content_field_output_dimensionality(native_embedding: NativeEmbedding, model: str) -> None:
    own = DIMENSIONS[model]
    for length in (64, 128, own):
        (vector,) = await native_embedding.embed(CAT, model=model, outputDimensionality=length)
        assert len(vector) == length
    field = "outputDimensionality"
    await native_embedding.refuses(field, 0, -1, own + 1, 2**31, *NO_LENGTHS, model=model)
    await native_embedding.ignores_null(field, model=model)
    (snake,) = await native_embedding.embed(CAT, model=model, output_dimensionality=64)
    assert len(snake) == 64


async def test_embed_content_field_output_dimensionality_only_of_models_that_support_it(
    native_embedding: NativeEmbedding,
) -> None:
    for length in (1, 512, DIMENSIONS[FIXED]):
        await native_embedding.refuses("outputDimensionality", length, model=FIXED)
    reply = await native_embedding.post({"outputDimensionality": 512}, model=FIXED)
    assert FIXED in native_embedding.error(reply, 400)["message"]


@ALL
async def test_embed_content_field_task_type(native_embedding: NativeEmbedding, model: str) -> None:
    for task in (*TASKS, "retrieval_query", "TASK_TYPE_UNSPECIFIED"):
        reply = await native_embedding.post({"taskType": task}, text=CAT, model=model)
        assert reply.status == 200, reply.text
        assert len(native_embedding.vectors(reply.body)[0]) == DIMENSIONS[model]
        dropped = task != "TASK_TYPE_UNSPECIFIED" and not model.startswith(("famG", "text-embedding-004"))
        assert ("taskType" in reply.headers.get("x-umg-dropped", "")) is dropped
    await native_embedding.refuses("taskType", *NO_STRINGS, model=model)
    await native_embedding.ignores_null("taskType", model=model)


async def test_embed_content_field_title(native_embedding: NativeEmbedding) -> None:
    plain, titled = [
        (await native_embedding.embed(CAT, taskType="RETRIEVAL_DOCUMENT", **fields))[0]
        for fields in ({}, {"title": "Pets"})
    ]
    assert 0.5 < near(plain, titled) < 1
    await native_embedding.refuses("title", *NO_STRINGS)


async def test_embed_content_the_model_comes_from_the_path(
    native_embedding: NativeEmbedding, gateway: ApiClient
) -> None:
    for model in DIMENSIONS:
        reply = await gateway.post(native_embedding.of(model), item())
        assert len(reply.body["embedding"]["values"]) == DIMENSIONS[model]
    unknown = native_embedding.error(await gateway.post(native_embedding.of("text-embedding-9"), item()), 404)
    assert unknown["status"] == "NOT_FOUND"
    assert "text-embedding-9" in unknown["message"]
    encoded = await gateway.post(f"/v1beta/models/models%2F{native_embedding.model}:embedContent", item())
    assert encoded.status == 200


async def test_embed_content_the_body_must_not_name_another_model(
    native_embedding: NativeEmbedding, gateway: ApiClient
) -> None:
    own, path = native_embedding.model, native_embedding.path
    usual = (await gateway.post(path, item())).body
    for named in (own, f"models/{own}", None):
        assert (await gateway.post(path, item(model=named))).body == usual
    for named in (FIXED, f"models/{FIXED}", f"models/models/{own}", own.upper(), *NO_STRINGS):
        error = native_embedding.error(await gateway.post(path, item(model=named)), 400)
        assert "model" in error["message"], named


# --- :batchEmbedContents


async def test_batch_embed_contents_response(native_embeddings: NativeEmbeddings) -> None:
    body = await native_embeddings.answer({"requests": [item(CAT), item(BANK)]})
    assert body.keys() >= {"embeddings", "metadata"}
    assert all(each.keys() == {"values"} for each in body["embeddings"])
    usage = body["metadata"]["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] == body["usageMetadata"]["promptTokenCount"] > 0


async def test_batch_embed_contents_gives_one_vector_a_request_in_order(
    native_embeddings: NativeEmbeddings, native_embedding: NativeEmbedding
) -> None:
    texts = (CAT, BANK, KITTEN, CAT)
    together = await native_embeddings.embed(*texts)
    assert len(together) == 4
    for vector, alone in zip(together, await native_embedding.embed(*texts), strict=True):
        assert vector == pytest.approx(alone, abs=1e-6)
    (one,) = await native_embeddings.embed(CAT)
    assert one == pytest.approx(together[0], abs=1e-6)


async def test_batch_embed_contents_field_requests(native_embeddings: NativeEmbeddings, gateway: ApiClient) -> None:
    for body in ({}, {"requests": None}, {"requests": []}, {"requests": "x"}, {"requests": 5}):
        reply = await gateway.post(native_embeddings.path, body)
        assert "requests" in native_embeddings.error(reply, 400)["message"]
    empty = {"content": {"parts": [{"text": ""}]}}
    for wrong in (5, {}, {"content": None}, {"content": {"parts": []}}, empty, {"content": {"parts": [{}]}}):
        error = native_embeddings.error(await native_embeddings.post({"requests": [item(), wrong]}), 400)
        assert "requests[1]" in error["message"]


async def test_batch_embed_contents_items_have_the_shape_of_a_single_body(
    native_embeddings: NativeEmbeddings,
) -> None:
    body = {
        "requests": [
            item(outputDimensionality=64, taskType="RETRIEVAL_QUERY"),
            item(BANK, outputDimensionality=128, title="Money"),
            item(KITTEN),
        ]
    }
    vectors = native_embeddings.vectors(await native_embeddings.answer(body))
    assert [len(vector) for vector in vectors] == [64, 128, DIMENSIONS[native_embeddings.model]]
    for field, values in (("outputDimensionality", (0, 99_999, "x", True)), ("taskType", (5,)), ("title", (5,))):
        for value in values:
            reply = await native_embeddings.post({"requests": [item(), item(**{field: value})]})
            assert f"requests[1].{field}" in native_embeddings.error(reply, 400)["message"], value


async def test_batch_embed_contents_items_must_not_name_another_model(native_embeddings: NativeEmbeddings) -> None:
    own = native_embeddings.model
    for named in (own, f"models/{own}"):
        assert len(await native_embeddings.embed(CAT, BANK, model=own)) == 2
        body = await native_embeddings.answer({"requests": [item(model=named), item(BANK)]})
        assert len(body["embeddings"]) == 2
    for requests in ([item(model=FIXED)], [item(model=own), item(model=f"models/{FIXED}")]):
        error = native_embeddings.error(await native_embeddings.post({"requests": requests}), 400)
        assert f"requests[{len(requests) - 1}].model" in error["message"]


async def test_batch_embed_contents_is_not_bounded_by_one_vendors_hundred(native_embeddings: NativeEmbeddings) -> None:
    vectors = await native_embeddings.embed(*[f"{CAT} {number}" for number in range(250)], model="wordllama-256")
    assert len(vectors) == 250


# --- both


async def test_native_embeddings_live_under_both_roots(
    native_embedding: NativeEmbedding, native_embeddings: NativeEmbeddings, gateway: ApiClient
) -> None:
    for face in (native_embedding, native_embeddings):
        beta, stable = [
            await gateway.post(f"{root}/models/{face.model}:{face.action}", face.body(text=CAT))
            for root in ("/v1beta", "/v1")
        ]
        assert beta.status == stable.status == 200
        assert beta.body == stable.body


async def test_native_embeddings_refuse_models_of_another_kind(
    native_embedding: NativeEmbedding, native_embeddings: NativeEmbeddings
) -> None:
    for face in (native_embedding, native_embeddings):
        for model, can in (("famG-2.5-pro", "generate text"), ("rerank-v1", "rerank documents")):
            message = face.error(await face.post(model=model), 400)["message"]
            assert model in message
            assert can in message


async def test_native_embeddings_unknown_fields_are_reported(
    native_embedding: NativeEmbedding, native_embeddings: NativeEmbeddings
) -> None:
    for reply, name in (
        (await native_embedding.post({"x_unknown": 1}), "x_unknown"),
        (await native_embeddings.post({"requests": [item(x_unknown=1)]}), "requests.x_unknown"),
    ):
        assert (reply.status, reply.headers["x-umg-dropped"]) == (200, name)


async def test_embedding_models_answer_in_both_formats_alike(
    embeddings: Embeddings, native_embedding: NativeEmbedding, native_embeddings: NativeEmbeddings
) -> None:
    for model in DIMENSIONS:
        ours = await embeddings.embed(CAT, BANK, model=model)
        assert await native_embeddings.embed(CAT, BANK, model=model) == ours
        for vector, alone in zip(ours, await native_embedding.embed(CAT, BANK, model=model), strict=True):
            assert vector == pytest.approx(alone, abs=1e-6)
        usage: list[Any] = [
            (await embeddings.answer({"input": [CAT]}, model=model))["usage"],
            (await native_embedding.answer(text=CAT, model=model))["metadata"]["usage"],
        ]
        assert usage[0] == usage[1]


async def test_embedding_errors_have_their_formats_bodies(
    embeddings: Embeddings, native_embedding: NativeEmbedding, native_embeddings: NativeEmbeddings, gateway: ApiClient
) -> None:
    for face in (embeddings, native_embedding, native_embeddings):
        for key in ("sk-nobody", ""):
            assert face.error(await face.post(key=key), 401)["message"]
        assert face.error(await gateway.get(face.path), 405)["message"]
        failed: Reply = await face.post(text="[[fail]]")
        assert 500 <= failed.status < 600
        assert face.error(failed, failed.status)["message"]
        busy = await face.post(text="[[fail:429]]")
        assert face.error(busy, 429)["message"]
        assert int(busy.headers["retry-after"]) >= 1
        for data in (b"{", b"", b"[]", b'"x"', b"\xff{}", b"[" * 100_000):
            reply = await gateway.send("POST", face.path, data=data)
            assert face.error(reply, 400)["message"], data


OPTIONS = {
    "outputDimensionality": 64,
    "taskType": "RETRIEVAL_QUERY",
    "title": "T",
    "model": "models/text-embedding-004",
}
CONTENT = {"role": "user", "parts": [{"text": CAT}, {"text": BANK}]}
GOOD: dict[str, dict[str, Any]] = {
    "embeddings": {"input": [CAT, BANK], "encoding_format": "float", "dimensions": 64, "user": "u"},
    "native_embedding": {"content": CONTENT, **OPTIONS},
    "native_embeddings": {"requests": [{"content": CONTENT, **OPTIONS}, {"content": CONTENT}]},
}


@pytest.mark.parametrize("face", GOOD)
async def test_embedding_no_change_of_a_good_body_is_a_server_error(face: str, gateway: ApiClient) -> None:
    made = {each.name: each(gateway) for each in (Embeddings, NativeEmbedding, NativeEmbeddings)}[face]
    body = GOOD[face] | ({"model": made.model} if face == "embeddings" else {})
    assert (await gateway.post(made.path, body)).status == 200
    random = Random(face)
    for _ in range(300):
        fields = changed(body, random)
        reply = await gateway.post(made.path, fields)
        assert reply.status in {200, 400, 404}, fields
        if reply.status != 200:
            assert made.error(reply, reply.status)["message"]

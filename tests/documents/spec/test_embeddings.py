"""Text document, "POST /v1/embeddings" and "Embedding results"; readings, 16."""

import math

import numpy as np
import pytest

from tests.documents.spec.callers import NO_INTEGERS, NO_STRINGS
from tests.documents.spec.vector_callers import BANK, CAT, DIMENSIONS, FIXED, KITTEN, Embeddings, from_base64, near
from tests.support.callers.api import ApiClient

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALL = pytest.mark.parametrize("model", DIMENSIONS)


# --- the response


async def test_embeddings_response_fields(embeddings: Embeddings) -> None:
    body = await embeddings.answer({"input": [CAT, BANK]})
    assert body.keys() == {"object", "data", "model", "usage"}
    assert body["object"] == "list"
    assert body["model"] == embeddings.model
    for index, item in enumerate(body["data"]):
        assert item.keys() == {"object", "index", "embedding"}
        assert (item["object"], item["index"]) == ("embedding", index)
        assert all(isinstance(number, float) and math.isfinite(number) for number in item["embedding"])


async def test_embeddings_response_usage(embeddings: Embeddings) -> None:
    one, two = [(await embeddings.answer({"input": texts}))["usage"] for texts in ([CAT], [CAT, BANK])]
    assert one.keys() == two.keys() == {"prompt_tokens", "total_tokens"}
    assert all(type(count) is int for usage in (one, two) for count in usage.values())
    assert 0 < one["prompt_tokens"] == one["total_tokens"] < two["prompt_tokens"] == two["total_tokens"]


@ALL
async def test_embeddings_response_has_vectors_of_the_documented_length(embeddings: Embeddings, model: str) -> None:
    vectors = await embeddings.embed(CAT, BANK, KITTEN, model=model)
    assert [len(vector) for vector in vectors] == [DIMENSIONS[model]] * 3
    assert near(vectors[0], vectors[2]) > max(near(vectors[0], vectors[1]), near(vectors[1], vectors[2])) + 0.2


# --- the fields


async def test_embeddings_field_model(embeddings: Embeddings) -> None:
    await embeddings.misses("model")
    await embeddings.refuses("model", "", *NO_STRINGS)
    reply = await embeddings.post(model="text-embedding-9")
    assert "text-embedding-9" in embeddings.error(reply, 404)["message"]
    assert embeddings.error(reply, 404)["code"] == "model_not_found"
    for model in DIMENSIONS:
        assert (await embeddings.answer(model=model))["model"] == model


async def test_embeddings_field_input(embeddings: Embeddings) -> None:
    await embeddings.misses("input")
    await embeddings.refuses("input", "", [], 5, True, {"text": "x"})
    await embeddings.refuses("input", ["x", ""], ["x", None], named="input[1]")
    await embeddings.refuses("input", [{"text": "x"}], [None], [""], named="input[0]")
    alone = await embeddings.answer({"input": CAT})
    assert alone == await embeddings.answer({"input": [CAT]})


async def test_embeddings_field_input_an_array_embeds_several_texts_in_order(embeddings: Embeddings) -> None:
    together = await embeddings.embed(CAT, BANK, KITTEN, CAT)
    assert together[0] == together[3]
    for text, vector in zip((CAT, BANK, KITTEN), together, strict=False):
        (alone,) = await embeddings.embed(text)
        assert alone == pytest.approx(vector, abs=1e-6)
    assert await embeddings.embed(KITTEN, BANK, CAT, CAT) == [together[place] for place in (2, 1, 0, 3)]


async def test_embeddings_field_input_of_tokens_as_sdks_send_it(embeddings: Embeddings) -> None:
    """Check cl100k_base, which clients use for every model; the tokens are of `Hello world` and `Hello`."""
    expected = await embeddings.embed("Hello world", "Hello")
    assert embeddings.vectors(await embeddings.answer({"input": [[9906, 1917], [9906]]})) == expected
    (alone,) = embeddings.vectors(await embeddings.answer({"input": [9906, 1917]}))
    assert alone == pytest.approx(expected[0], abs=1e-6)
    for wrong, field in (([[]], "input[0]"), ([[1], "x"], "input[1]"), ([1, [2]], "input[1]"), ([999_999], "input[0]")):
        await embeddings.refuses("input", wrong, named=field)


async def test_embeddings_field_encoding_format(embeddings: Embeddings) -> None:
    for wrong in ("hex", "", "FLOAT", *NO_STRINGS):
        await embeddings.refuses("encoding_format", wrong)
    usual = await embeddings.embed(CAT, BANK)
    assert await embeddings.embed(CAT, BANK, encoding_format="float") == usual  # the default
    await embeddings.ignores_null("encoding_format")


@ALL
async def test_embeddings_field_encoding_format_base64_is_the_same_vector(embeddings: Embeddings, model: str) -> None:
    numbers = await embeddings.embed(CAT, BANK, model=model)
    written = await embeddings.embed(CAT, BANK, model=model, encoding_format="base64")
    for vector, text in zip(numbers, written, strict=True):
        assert isinstance(text, str)
        decoded = from_base64(text)
        assert len(decoded) == DIMENSIONS[model]
        assert decoded == np.asarray(vector, "<f4").tolist()


@pytest.mark.parametrize("model", [model for model in DIMENSIONS if model != FIXED])
async def test_embeddings_field_dimensions(embeddings: Embeddings, model: str) -> None:
    own = DIMENSIONS[model]
    for length in (64, 128, own):
        vectors = await embeddings.embed(CAT, BANK, KITTEN, model=model, dimensions=length)
        assert {len(vector) for vector in vectors} == {length}
        assert near(vectors[0], vectors[2]) > near(vectors[0], vectors[1])
    assert len((await embeddings.embed(CAT, model=model, dimensions=64.0))[0]) == 64
    await embeddings.refuses("dimensions", 0, -1, own + 1, 2**31, 2**70, *NO_INTEGERS, model=model)
    await embeddings.ignores_null("dimensions", model=model)


async def test_embeddings_field_dimensions_only_of_models_that_support_it(embeddings: Embeddings) -> None:
    for length in (1, 512, DIMENSIONS[FIXED], 0):
        await embeddings.refuses("dimensions", length, model=FIXED)
    await embeddings.refuses("dimensions", 100, model="wordllama-256")  # its lengths are 64, 128 and 256
    message = embeddings.error(await embeddings.post({"dimensions": 512}, model=FIXED), 400)["message"]
    assert FIXED in message


async def test_embeddings_fields_of_sdks_are_accepted(embeddings: Embeddings) -> None:
    await embeddings.takes("user", "user-1")
    await embeddings.refuses("user", 5, True, ["x"])
    await embeddings.ignores_null("user")
    reply = await embeddings.post({"x_unknown": {"a": 1}})
    assert (reply.status, reply.headers["x-umg-dropped"]) == (200, "x_unknown")


async def test_embeddings_batches_up_to_the_vendors_limit(embeddings: Embeddings) -> None:
    texts = [f"{CAT} {number}" for number in range(2048)]
    vectors = await embeddings.embed(*texts, model="wordllama-256")
    assert len(vectors) == 2048
    for place in (0, 1000, 2047):
        (alone,) = await embeddings.embed(texts[place], model="wordllama-256")
        assert alone == pytest.approx(vectors[place], abs=1e-6)
    await embeddings.refuses("input", [*texts, "one more"])


async def test_embeddings_texts_above_the_models_length_are_refused(embeddings: Embeddings) -> None:
    reply = await embeddings.post({"input": [CAT, "word " * 9000]})
    error = embeddings.error(reply, 400)
    assert (error["code"], error["param"]) == ("context_length_exceeded", "input[1]")


async def test_embeddings_a_model_of_another_kind_is_refused(gateway: ApiClient, embeddings: Embeddings) -> None:
    for model, can in (("famO-5", "generate text"), ("rerank-v1", "rerank documents")):
        error = embeddings.error(await embeddings.post(model=model), 400)
        assert error["param"] == "model"
        assert model in error["message"]
        assert can in error["message"]
    reply = await gateway.post(
        "/v1/chat/completions", {"model": embeddings.model, "messages": [{"role": "user", "content": "x"}]}
    )
    assert reply.status == 400
    assert "embed texts" in reply.body["error"]["message"]

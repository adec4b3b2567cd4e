"""Channel of `wordllama-256`."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

import numpy as np
import pytest
import pytest_asyncio
from wordllama import WordLlamaInference

from tests.unit.upstream.vectors import SECONDS, embed_request, loaded_engine, rows, shared_model, vectors_of
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.model_catalogue import MODEL_CATALOGUE
from umg_grpc.upstream.local import EMBEDDING_MODEL as MODEL
from umg_grpc.upstream.local.wordllama import LocalEmbedding
from umg_grpc.upstream.local.wordllama.text_length_limits import LONGEST_TOKEN
from umg_grpc.v1 import pb
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS

MAX_TOKENS = MODEL_CATALOGUE[MODEL].input_token_limit
TEXTS = [
    "A cat sleeps.",
    "Interest rates rose again in March, the bank said.",
    "é",
    "漢字 and 😀",
    "  ",
    "a\x00b",
    "x" * 900,
]


@pytest_asyncio.fixture
async def upstream() -> AsyncGenerator[LocalEmbedding, None]:
    engine = loaded_engine()
    yield LocalEmbedding(engine)
    await engine.aclose()


async def test_vectors_are_those_of_the_library_at_length_one(upstream: LocalEmbedding) -> None:
    model = shared_model()
    library = WordLlamaInference(model._vectors, type(model._tokenizer).from_str(model._tokenizer.to_str()))
    found = await vectors_of(upstream, MODEL, TEXTS)
    assert found.dtype == np.dtype("<f4")
    np.testing.assert_allclose(found, library.embed(TEXTS, norm=True), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


async def test_a_text_has_the_same_vector_in_any_batch(upstream: LocalEmbedding) -> None:
    texts = [("word " * (1 + place * place % 400)).strip() + f" {place}" for place in range(700)]
    together = await vectors_of(upstream, MODEL, texts)
    for place in (0, 1, 350, 511, 512, 699):
        assert (together[place] == (await vectors_of(upstream, MODEL, [texts[place]]))[0]).all()


@pytest.mark.parametrize("length", [64, 128, 256])
async def test_a_shorter_vector_is_the_beginning_at_length_one(upstream: LocalEmbedding, length: int) -> None:
    full = await vectors_of(upstream, MODEL, TEXTS)
    cut = await vectors_of(upstream, MODEL, TEXTS, dimensions=length)
    assert cut.shape == (len(TEXTS), length)
    beginning = full[:, :length]
    np.testing.assert_allclose(cut, beginning / np.linalg.norm(beginning, axis=1, keepdims=True), atol=1e-6)


async def test_every_input_may_have_a_length_of_its_own(upstream: LocalEmbedding) -> None:
    request = embed_request("one", "two", "three", dimensions=128)
    request.inputs[1].dimensions = 64
    answer = await upstream.prepare(request, MODEL).send(SECONDS)
    assert [len(one.values) for one in answer.embeddings] == [512, 256, 512]
    alone = await upstream.prepare(embed_request("two", dimensions=64), MODEL).send(SECONDS)
    assert answer.embeddings[1] == alone.embeddings[0]


async def test_a_title_is_the_first_line_of_its_text(upstream: LocalEmbedding) -> None:
    titled = embed_request("It purrs.")
    titled.inputs[0].title = "Cats"
    answer = await upstream.prepare(titled, MODEL).send(SECONDS)
    assert (rows(answer) == await vectors_of(upstream, MODEL, ["Cats\nIt purrs."])).all()


async def test_usage_is_counted_by_the_models_own_vocabulary(upstream: LocalEmbedding) -> None:
    answer = await upstream.prepare(embed_request(*TEXTS), MODEL).send(SECONDS)
    tokens = sum(map(len, shared_model().tokenize(TEXTS)))
    assert answer.usage == pb.EmbeddingUsage(input_tokens=tokens, total_tokens=tokens)
    assert answer.model == "", "the service says it"


async def test_a_task_type_has_no_effect_and_is_reported(upstream: LocalEmbedding) -> None:
    request = embed_request("one", "two", task_type="CLUSTERING", user="me")
    request.inputs[1].task_type = "RETRIEVAL_QUERY"
    call = upstream.prepare(request, MODEL)
    assert call.report.header() == "task_type, inputs.task_type"
    assert (rows(await call.send(SECONDS)) == await vectors_of(upstream, MODEL, ["one", "two"])).all()


def test_unknown_fields_are_reported() -> None:
    body = b'{"model": "m", "input": "text", "shape": "round"}'
    request, notes = EMBEDDING_FORMATS["embeddings"].decode_request(body, {})
    report = LocalEmbedding(loaded_engine()).prepare(request, MODEL, notes).report
    assert report.header() == "shape"


def test_a_text_without_words_has_a_vector_of_zeros() -> None:
    vectors = shared_model().embed(shared_model().tokenize(["", "word"]))
    assert not vectors[0].any()
    assert np.isfinite(vectors).all()


@dataclass(frozen=True)
class Length:
    id: str
    text: str
    expected_message: str = ""  # empty: the text is not too long


LENGTHS = [
    Length("as many tokens as may be", "a " * MAX_TOKENS),
    Length("one token more", "a " * MAX_TOKENS + "a", f"{MAX_TOKENS + 1} tokens"),
    Length(
        "too many characters for so few tokens",
        "-" * (MAX_TOKENS * LONGEST_TOKEN + 1),
        f"{MAX_TOKENS * LONGEST_TOKEN + 1} characters",
    ),
    Length("nearly as many characters as tokens can have", "-" * (MAX_TOKENS * LONGEST_TOKEN - 64)),
]


@pytest.mark.parametrize("case", LENGTHS, ids=lambda case: case.id)
async def test_a_text_may_have_tokens_up_to_the_limit(upstream: LocalEmbedding, case: Length) -> None:
    text = case.text.strip()
    if not case.expected_message:
        answer = await upstream.prepare(embed_request("one", text), MODEL).send(SECONDS)
        assert answer.usage.input_tokens <= MAX_TOKENS + 1
        return
    with pytest.raises(UmgError) as caught:
        await upstream.prepare(embed_request("one", text), MODEL).send(SECONDS)
    assert (caught.value.reason, caught.value.failure) == (pb.ERROR_REASON_CONTEXT_TOO_LONG, Failure.CONTEXT)
    assert caught.value.metadata == {"field": "inputs[1].text"}
    assert case.expected_message in caught.value.message
    assert f"at most {MAX_TOKENS} tokens" in caught.value.message


def test_tokens_of_another_vocabulary_are_refused() -> None:
    request = embed_request("one")
    request.inputs.add().tokens.ids.extend([1, 2])
    with pytest.raises(UmgError) as caught:
        LocalEmbedding(loaded_engine()).prepare(request, MODEL)
    assert (caught.value.reason, caught.value.failure) == (pb.ERROR_REASON_UNSUPPORTED_FIELD, None)
    assert caught.value.metadata == {"field": "inputs[1].tokens"}

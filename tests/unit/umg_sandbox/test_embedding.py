"""Simulated embedding models."""

import asyncio
import math
import subprocess
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import numpy as np
import pytest
import pytest_asyncio

from tests.unit.umg_sandbox.clockwork import run
from tests.unit.umg_sandbox.vector_digest import digest
from tests.unit.upstream.vectors import SECONDS, embed_request, loaded_engine, rows, vectors_of
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.model_catalogue import MODEL_CATALOGUE
from umg_grpc.tokens import TokenCounter
from umg_grpc.upstream.local import EMBEDDING_MODEL
from umg_grpc.upstream.local.wordllama import LocalEmbedding, WordLlamaEngine
from umg_grpc.v1 import pb
from umg_sandbox.embedding_channel import SandboxEmbedding

MODELS = [model for model in MODEL_CATALOGUE.values() if pb.MODEL_OPERATION_EMBED in model.operations]
LARGE = "text-embedding-3-large"
CAT, KITTEN = "A cat sleeps on the warm sofa.", "The kitten is napping on the couch."
RATES, BANK = "The central bank raised interest rates.", "Interest rates went up after the bank's decision."
TEXTS = (CAT, RATES, KITTEN, BANK)
"""Texts of which the first is near the third, and the second near the fourth; the others are far."""


@pytest_asyncio.fixture
async def engine() -> AsyncGenerator[WordLlamaEngine, None]:
    made = loaded_engine()
    yield made
    await made.aclose()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.id)
async def test_vectors_have_the_documented_length_and_are_unit_vectors(
    engine: WordLlamaEngine, model: pb.Model
) -> None:
    vectors = await vectors_of(SandboxEmbedding(engine), model.id, TEXTS)
    assert vectors.shape == (4, model.embedding.default_dimensions)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.id)
async def test_angles_between_vectors_equal_those_of_the_local_model(engine: WordLlamaEngine, model: pb.Model) -> None:
    simulated = await vectors_of(SandboxEmbedding(engine), model.id, TEXTS)
    real = await vectors_of(LocalEmbedding(engine), EMBEDDING_MODEL, TEXTS)
    np.testing.assert_allclose(simulated @ simulated.T, real @ real.T, atol=1e-5)


@pytest.mark.parametrize("length", [64, 100, 128, 256, 1000, 2048, 3072])
async def test_shortened_vectors_of_similar_texts_stay_similar(engine: WordLlamaEngine, length: int) -> None:
    full = await vectors_of(SandboxEmbedding(engine), LARGE, TEXTS)
    cut = await vectors_of(SandboxEmbedding(engine), LARGE, TEXTS, dimensions=length)
    assert cut.shape == (4, length)
    beginning = full[:, :length]
    np.testing.assert_allclose(cut, beginning / np.linalg.norm(beginning, axis=1, keepdims=True), atol=1e-6)
    near = cut @ cut.T
    assert min(near[0, 2], near[1, 3]) > max(near[0, 1], near[0, 3], near[1, 2], near[2, 3]) + 0.2


async def test_every_block_of_256_numbers_keeps_the_angles(engine: WordLlamaEngine) -> None:
    full = await vectors_of(SandboxEmbedding(engine), LARGE, TEXTS)
    real = await vectors_of(LocalEmbedding(engine), EMBEDDING_MODEL, TEXTS)
    for start in range(0, 3072, 256):
        part = full[:, start : start + 256]
        np.testing.assert_allclose(part @ part.T * 12, real @ real.T, atol=1e-5)


async def test_vectors_of_different_models_are_unrelated(engine: WordLlamaEngine) -> None:
    made = {model.id: (await vectors_of(SandboxEmbedding(engine), model.id, [CAT]))[0] for model in MODELS}
    names = list(made)
    for place, one in enumerate(names):
        for other in names[place + 1 :]:
            length = min(len(made[one]), len(made[other]))
            assert abs(float(np.dot(made[one][:length], made[other][:length]))) < 0.5
            assert not np.array_equal(made[one][:length], made[other][:length])


PRINT_DIGEST = """
import asyncio
from tests.unit.umg_sandbox.vector_digest import digest
print(asyncio.run(digest()))
"""


def test_another_process_makes_the_same_vectors() -> None:
    other = subprocess.run([sys.executable, "-c", PRINT_DIGEST], capture_output=True, text=True, check=True)
    assert other.stdout == f"{asyncio.run(digest())}\n"


async def test_the_same_text_has_the_same_vector_in_a_batch(engine: WordLlamaEngine) -> None:
    vectors = await vectors_of(SandboxEmbedding(engine), LARGE, [CAT] * 600)
    assert (vectors == vectors[0]).all()
    alone = await vectors_of(SandboxEmbedding(engine), LARGE, [CAT])
    np.testing.assert_allclose(alone[0], vectors[0], atol=1e-6)


async def test_the_vector_of_a_text_does_not_depend_on_concurrent_calls(engine: WordLlamaEngine) -> None:
    upstream = SandboxEmbedding(engine)
    groups = [[f"text {number} of {size}" for number in range(size)] for size in (1, 3, 1, 2, 40)]
    alone = [await vectors_of(upstream, LARGE, texts) for texts in groups]
    cut = await vectors_of(upstream, LARGE, groups[1], dimensions=100)
    batches = engine.batches
    *together, small = await asyncio.gather(
        *(vectors_of(upstream, LARGE, texts) for texts in groups),
        vectors_of(upstream, LARGE, groups[1], dimensions=100),
    )
    assert engine.batches == batches + 1
    assert all((one == other).all() for one, other in zip(together, alone, strict=True))
    assert (small == cut).all()


async def test_a_model_without_a_documented_length_has_vectors_of_1536_numbers(engine: WordLlamaEngine) -> None:
    assert (await vectors_of(SandboxEmbedding(engine), "my-own", [CAT])).shape == (1, 1536)


async def test_usage_is_counted_as_by_the_vendors_of_the_models(engine: WordLlamaEngine) -> None:
    request = embed_request(*TEXTS)
    request.inputs[0].title = "Pets"
    answer = await SandboxEmbedding(engine).prepare(request, LARGE).send(SECONDS)
    count = TokenCounter(tokenizer="cl100k_base").count_text
    tokens = sum(map(count, ["Pets\n" + CAT, *TEXTS[1:]]))
    assert answer.usage == pb.EmbeddingUsage(input_tokens=tokens, total_tokens=tokens)
    own = SandboxEmbedding(engine, len)
    assert (await own.prepare(embed_request(CAT), LARGE).send(SECONDS)).usage.input_tokens == len(CAT)


@dataclass(frozen=True)
class TaskTypes:
    id: str
    model: str
    dropped: str


TASK_TYPES = [
    TaskTypes("a model with task types", "famG-embedding-001", ""),
    TaskTypes("a model that does not", LARGE, "inputs.task_type"),
    TaskTypes("an id of the operator's own", "my-own", "inputs.task_type"),
]


@pytest.mark.parametrize("case", TASK_TYPES, ids=lambda case: case.id)
def test_task_types_are_reported_where_a_model_does_not_know_them(case: TaskTypes) -> None:
    request = embed_request(CAT)
    request.inputs[0].task_type = "CLUSTERING"
    assert SandboxEmbedding(loaded_engine()).prepare(request, case.model).report.header() == case.dropped


@dataclass(frozen=True)
class Length:
    id: str
    model: str
    text: str
    refused: bool


LENGTHS = [
    Length("as long as clients make a chunk", LARGE, "é " * 4095 + "a", False),
    Length("8191 tokens that are more of the local model's", LARGE, "ungefähr" * 2047, False),
    Length("too long", LARGE, "a " * 8200, True),
    Length("far too long", LARGE, "a " * 2**20, True),
    Length("too long for a model with less room", "text-embedding-004", "a " * 2100, True),
]


@pytest.mark.parametrize("case", LENGTHS, ids=lambda case: case.id)
async def test_a_text_may_have_the_documented_length_of_the_model(engine: WordLlamaEngine, case: Length) -> None:
    async def make_request() -> pb.EmbedResponse:
        return await SandboxEmbedding(engine).prepare(embed_request(CAT, case.text), case.model).send(SECONDS)

    if not case.refused:
        assert rows(await make_request()).any()
        return
    with pytest.raises(UmgError) as caught:
        await make_request()
    assert caught.value.reason == pb.ERROR_REASON_CONTEXT_TOO_LONG
    assert caught.value.metadata == {"field": "inputs[1].text"}
    assert str(MODEL_CATALOGUE[case.model].input_token_limit) in caught.value.message


@dataclass(frozen=True)
class Fault:
    id: str
    text: str
    reason: "pb.ErrorReason.ValueType"
    metadata: dict[str, str]
    failure: Failure | None
    seconds: float = math.inf


FAULTS = [
    Fault("fail", "please [[fail]]", pb.ERROR_REASON_UPSTREAM_FAILED, {"upstream_status": "500"}, Failure.TRANSIENT),
    Fault("fail in the middle", "[[fail:mid]]", pb.ERROR_REASON_UPSTREAM_FAILED, {"upstream_status": "500"}, Failure.TRANSIENT),
    Fault("busy", "[[fail:429]]", pb.ERROR_REASON_UPSTREAM_RATE_LIMITED, {"retry_after_seconds": "1"}, Failure.OVERLOADED),
    Fault("slow", "[[slow]]", pb.ERROR_REASON_UPSTREAM_TIMEOUT, {"deadline": "first_byte"}, Failure.AMBIGUOUS),
    Fault("slow for the caller", "[[slow]]", pb.ERROR_REASON_DEADLINE_EXCEEDED, {"deadline": "total"}, None, 10),
]  # fmt: skip


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case.id)
def test_a_fault_mark_in_any_text_makes_the_call_fail(case: Fault) -> None:
    upstream = SandboxEmbedding(WordLlamaEngine(), first_byte_seconds=30, total_seconds=60)
    call = upstream.prepare(embed_request(CAT, case.text, RATES), LARGE)
    with pytest.raises(UmgError) as caught:
        run(call.send(case.seconds))
    assert (caught.value.reason, caught.value.metadata) == (case.reason, case.metadata)
    assert caught.value.failure is case.failure

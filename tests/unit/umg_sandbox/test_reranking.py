"""Simulated rerankers."""

import math

import pytest

from tests.unit.umg_sandbox.clockwork import run
from tests.unit.umg_sandbox.test_embedding import FAULTS, Fault
from tests.unit.upstream.vectors import SECONDS, loaded_engine, rerank_request
from umg_grpc.base.errors import UmgError
from umg_grpc.upstream.local import RERANK_MODEL
from umg_grpc.upstream.local.wordllama import LocalRerank, WordLlamaEngine
from umg_grpc.v1 import pb
from umg_sandbox.rerank_channel import SandboxRerank

MODEL = "rerank-v1"
QUERY = "Where does the kitten sleep?"
DOCUMENTS = ("The central bank raised interest rates.", "A cat sleeps on the warm sofa.", "", "Bake the bread.")


async def test_ranking_and_usage_equal_those_of_the_local_model() -> None:
    engine = loaded_engine()
    request = rerank_request(QUERY, *DOCUMENTS, top_n=3)
    simulated = await SandboxRerank(engine).prepare(request, MODEL).send(SECONDS)
    real = await LocalRerank(engine).prepare(request, RERANK_MODEL).send(SECONDS)
    assert simulated == real
    assert simulated.results[0].index == 1
    await engine.aclose()


async def test_documents_are_cut_at_the_documented_limit() -> None:
    engine = loaded_engine()
    answer = await SandboxRerank(engine).prepare(rerank_request("a", "a " * 9000), MODEL).send(SECONDS)
    assert answer.usage.total_tokens == 1 + 4096
    with pytest.raises(UmgError) as caught:
        await SandboxRerank(engine).prepare(rerank_request("a " * 5000, "a"), MODEL).send(SECONDS)
    assert caught.value.reason == pb.ERROR_REASON_CONTEXT_TOO_LONG
    await engine.aclose()


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case.id)
def test_a_fault_mark_in_the_query_makes_the_call_fail(case: Fault) -> None:
    upstream = SandboxRerank(WordLlamaEngine(), first_byte_seconds=30, total_seconds=60)
    with pytest.raises(UmgError) as caught:
        run(upstream.prepare(rerank_request(case.text, *DOCUMENTS), MODEL).send(case.seconds))
    assert (caught.value.reason, caught.value.metadata) == (case.reason, case.metadata)


async def test_a_fault_mark_in_a_document_has_no_effect() -> None:
    engine = loaded_engine()
    answer = await SandboxRerank(engine).prepare(rerank_request(QUERY, "[[fail]]", "x"), MODEL).send(SECONDS)
    assert len(answer.results) == 2
    assert math.isfinite(answer.results[0].relevance_score)
    await engine.aclose()


def test_unsupported_options_are_reported() -> None:
    call = SandboxRerank(loaded_engine()).prepare(rerank_request(QUERY, *DOCUMENTS, priority=1), MODEL)
    assert call.report.header() == "priority"

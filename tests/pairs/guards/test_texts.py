"""Guards of texts, by every face: each decision and failure of each kind of guard, whole and streamed."""

import json
from pathlib import Path

import grpc
import pytest

from tests.pairs.guards.table import (
    FAILURES,
    FILTERED,
    REQUEST,
    RESPONSE,
    TEXT_QUESTIONS,
    Cell,
    cells_of,
    config,
    problem,
)
from tests.proofs.soak.callers import Callers, callers
from tests.proofs.soak.questions import GRPC, Question, generate, prompt
from tests.proofs.soak.reading import READERS, ReceivedAnswer
from tests.support.gateways import KEY, Running, running
from tests.support.guards import REASON, REFUSE, SECRET, guard_servers
from tests.support.providers.faulty.server import faulty_upstream
from umg_grpc.v1 import pb, rpc

STREAM_ERRORS = ("503", "UNAVAILABLE", "is not available")


@pytest.mark.parametrize("protocol", ["chat", "messages"])
async def test_each_guard_decides_for_every_face_of_text(protocol: str, tmp_path: Path) -> None:
    async with faulty_upstream() as upstream, guard_servers() as servers:
        async with running(config(servers, upstream.url(), protocol), tmp_path) as gateway:
            found = await _problems(gateway)
        refused = [cell for cell in cells_of(TEXT_QUESTIONS) if cell.fails and cell.behaviour.phase == REQUEST]
        assert not any(found), "\n".join(filter(None, found))
        assert upstream.count("none").calls == len(found) - len(refused)  # no refused request has been sent


async def _problems(gateway: Running) -> list[str]:
    async with callers(gateway.url, gateway.grpc, KEY) as calling:
        return [await _problem(calling, gateway.grpc, cell) for cell in cells_of(TEXT_QUESTIONS)]


async def _problem(calling: Callers, address: str, cell: Cell) -> str:
    if cell.behaviour.does == REFUSE and cell.behaviour.phase == RESPONSE:
        return await _problem_of_refusal(calling, address, cell)
    called = await calling.call_with_prompt(cell.question, cell.behaviour.id, prompt(SECRET), cell.right)
    if cell.behaviour.does in FAILURES and cell.fails and cell.question.stream and called.detail:
        is_stated = any(words in called.detail for words in STREAM_ERRORS)
        return "" if is_stated else f"{cell.id}: {called.outcome.value}: {called.detail}"
    return problem(cell, called, called.headers)


async def _problem_of_refusal(calling: Callers, address: str, cell: Cell) -> str:
    """Return the difference from a response that a content filter cut off: nothing of the secret leaves."""
    received, body = await _refused(calling, address, cell.question, cell.behaviour.id)
    if SECRET[:4] in body:
        return f"{cell.id}: {body}"
    if cell.question.format == "cohere" and cell.question.stream:
        return "" if REASON in received.error or "hidden0000" in received.error else f"{cell.id}: {received}"
    if not received.ended or received.finish != FILTERED[cell.question.format]:
        return f"{cell.id}: {received}"
    return f"{cell.id}: {received}" if received.text and not cell.question.stream else ""


async def _refused(calling: Callers, address: str, question: Question, model: str) -> tuple[ReceivedAnswer, str]:
    """Return the response to a question as its reader takes it, and its bytes."""
    received = ReceivedAnswer()
    if question.over == GRPC:
        if question.stream:
            await calling._stream(model, prompt(SECRET), received)
        else:
            async with grpc.aio.insecure_channel(address) as channel:
                stub = rpc.GenerationServiceStub(channel)
                metadata = [("authorization", f"Bearer {KEY}")]
                whole = await stub.Generate(generate(model, prompt(SECRET)), metadata=metadata)
                [candidate] = whole.candidates
                assert whole.usage.output_tokens  # the provider has charged it
                received.text = "".join(part.text.text for part in candidate.message.parts)
                received.finish = pb.FinishReason.Name(candidate.finish_reason)
                received.ended = True
        return received, received.text
    response = await calling._post(question, model, prompt(SECRET))
    reader, body = READERS[question.format], response.body.decode()
    assert response.status == 200, body
    if question.stream:
        assert reader.stream is not None
        return reader.stream(response.body), body
    return reader.whole(json.loads(body)), body


def test_the_table_has_every_face_of_text() -> None:
    assert {question.format for question in TEXT_QUESTIONS} == set(FILTERED)

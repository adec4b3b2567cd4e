"""Table of fallbacks: cause x format of the failing provider x face, streamed or not, over HTTP and gRPC."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.pairs.faults.gateway import CONFIG, channel
from tests.pairs.faults.table import IMAGE_QUESTIONS
from tests.pairs.table import Kind, protocols_of
from tests.proofs.soak.callers import Callers, CallResult, Outcome, callers
from tests.proofs.soak.questions import EMBED, GENERATE, GRPC, HTTP, IMAGE, RERANK, TEXT, Question
from tests.support.gateways import KEY, running
from tests.support.providers.faulty.image_answers import IMAGE_FORMATS, STREAMED_FORMATS
from tests.support.providers.faulty.right_answers import FORMATS, TEXT_FORMATS
from tests.support.providers.faulty.server import REFUSES, Upstream, faulty_upstream

CAUSES = {
    "context": ("context-too-long",),
    "content": ("content-refused",),
    "unavailable": ("status-500", "status-429", "status-401", REFUSES, "limit-seconds"),
    "quota": ("out-of-credit",),
}
"""Cause -> faults of the provider with this cause. The first one of a cause is tested in every cell."""
OTHERS = {
    "context": "content",
    "content": "unavailable",
    "unavailable": "quota",
    "quota": "context",
}
"""Cause -> another one, whose fallback must not be called."""
HEALTHY, NO_FAULT = "healthy", "none"
CALLERS_FAULTS = ("status-400", "status-422")
"""Faults after which no fallback is called: the request is wrong for every model."""


@dataclass(frozen=True)
class Cell:
    """Call of a model whose provider fails by a cause."""

    fault: str
    question: Question
    number: int
    cause: str = ""
    """Cause under which the model has a fallback; "" for a fallback for every cause."""

    @property
    def model(self) -> str:
        return f"model-{self.number}"

    @property
    def nonce(self) -> str:
        return f"fallback{self.number:08d}"

    @property
    def id(self) -> str:
        return f"{self.fault}: {self.question.id}"


def questions(protocol: str) -> Iterator[Question]:
    """Yield all calls of the operation of a provider's format."""
    if protocol in IMAGE_FORMATS:
        for stream in (False, True) if protocol in STREAMED_FORMATS else (False,):
            yield Question(GRPC, IMAGE_QUESTIONS.get(protocol, IMAGE), stream)
    elif protocol in TEXT_FORMATS:
        for stream in (False, True):
            yield from (Question(HTTP, face, stream) for face in TEXT)
            yield Question(GRPC, GENERATE, stream)
    elif protocol in protocols_of(Kind.RERANKING):
        yield from (Question(HTTP, "rerank"), Question(GRPC, RERANK))
    else:
        yield from (*(Question(HTTP, face) for face in ("embeddings", "native_embeddings")), Question(GRPC, EMBED))


def cells(protocol: str) -> list[Cell]:
    """Return the cells of a failing provider's format: each cause by each face, and its further faults by one face."""
    selected = [*questions(protocol)]
    made = [(faults[0], question, cause) for cause, faults in CAUSES.items() for question in selected]
    made += [(fault, selected[0], cause) for cause, faults in CAUSES.items() for fault in faults[1:]]
    return [Cell(fault, question, number, cause) for number, (fault, question, cause) in enumerate(made)]


def config(upstream: Upstream, protocol: str, table: list[Cell]) -> str:
    """Return the config: a channel for each fault, the fallback at a provider of another format where there is one, and
    a fallback of each model for its cause alone.
    """
    others = [each for each in TEXT_FORMATS if each != protocol] if protocol in TEXT_FORMATS else [protocol]
    channels = [
        channel(fault, protocol, upstream.url(fault), [cell.model for cell in table if cell.fault == fault])
        for fault in dict.fromkeys(cell.fault for cell in table)
    ]
    lists = [f"  {cell.model}: {{{cell.cause}: [{HEALTHY}]}}" for cell in table]
    healthy = channel(NO_FAULT, others[0], upstream.url(NO_FAULT), [HEALTHY])
    return f"{CONFIG}{''.join(channels)}{healthy}fallbacks:\n" + "\n".join(lists)


def problem(cell: Cell, called: CallResult) -> str:
    """Return the difference from the right answer of the fallback, "" for none."""
    if called.outcome is not Outcome.RIGHT:
        return f"{cell.id}: {called.outcome.value}: {called.detail}"
    route = called.headers.get("x-umg-route", "")
    expected = f"fallback={HEALTHY}; cause={cell.cause}; channel={NO_FAULT}; attempts="
    if cell.question.over == HTTP and not (route.startswith(expected) and f"reason={cell.fault}: " in route):
        return f"{cell.id}: {route}"
    return ""


async def results(calling: Callers, table: list[Cell]) -> list[CallResult]:
    return [await calling.call(cell.question, cell.model, cell.nonce) for cell in table]


@pytest.mark.parametrize("protocol", [*FORMATS, *IMAGE_FORMATS])
async def test_a_fallback_answers_every_caller_for_every_cause(protocol: str, tmp_path: Path) -> None:
    table = cells(protocol)
    async with faulty_upstream() as upstream:
        async with running(config(upstream, protocol, table), tmp_path) as gateway:
            async with callers(gateway.url, gateway.grpc, KEY) as calling:
                called = await results(calling, table)
            exposition = gateway.service.metrics.exposition().decode()
        found = [problem(cell, result) for cell, result in zip(table, called, strict=True)]
        assert not any(found), "\n".join(filter(None, found))
        assert upstream.count(NO_FAULT).calls == len(table)
    counted = [line for line in exposition.splitlines() if line.startswith("umg_fallbacks_total{")]
    assert sum(float(line.rpartition(" ")[2]) for line in counted) == len(table)


@pytest.mark.parametrize("protocol", ["chat", "messages", "embeddings", "rerank", "images"])
async def test_no_fallback_is_called_for_another_cause_or_an_error_of_the_caller(protocol: str, tmp_path: Path) -> None:
    first = next(questions(protocol))
    other = [Cell(faults[0], first, number, OTHERS[cause]) for number, (cause, faults) in enumerate(CAUSES.items())]
    table = other + [
        Cell(fault, first, len(other) + at, cause)
        for at, (fault, cause) in enumerate((fault, cause) for fault in CALLERS_FAULTS for cause in CAUSES)
    ]
    async with faulty_upstream() as upstream, running(config(upstream, protocol, table), tmp_path) as gateway:
        async with callers(gateway.url, gateway.grpc, KEY) as calling:
            called = await results(calling, table)
        assert {result.outcome for result in called} <= {Outcome.FAILED, Outcome.REFUSED}
        assert upstream.count(NO_FAULT).calls == 0


AFTER_OUTPUT = ("reset-mid", "close-mid", "error-mid")


@pytest.mark.parametrize("protocol", TEXT_FORMATS)
async def test_no_fallback_is_called_after_output(protocol: str, tmp_path: Path) -> None:
    streamed = [question for question in questions(protocol) if question.stream]
    made = [(fault, question) for fault in AFTER_OUTPUT for question in streamed]
    table = [Cell(fault, question, number, "unavailable") for number, (fault, question) in enumerate(made)]
    async with faulty_upstream() as upstream, running(config(upstream, protocol, table), tmp_path) as gateway:
        async with callers(gateway.url, gateway.grpc, KEY) as calling:
            called = await results(calling, table)
        assert {result.outcome for result in called} == {Outcome.CUT}
        assert upstream.count(NO_FAULT).calls == 0

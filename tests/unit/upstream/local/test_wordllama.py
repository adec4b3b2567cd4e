"""Engine of wordllama: one thread that all calls share."""

import asyncio
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Event, get_ident

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.upstream.vectors import SECONDS, embed_request, loaded_engine, shared_model, vectors_of
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.upstream.local import wordllama_unavailable
from umg_grpc.upstream.local.wordllama import LocalEmbedding, WordLlamaEngine
from umg_grpc.upstream.local.wordllama.engine import BATCH_COST, TEXT_COST, portion
from umg_grpc.upstream.local.wordllama.model import WordLlamaModel, unit
from umg_grpc.upstream.local.wordllama.text_length_limits import LONGEST_TOKEN
from umg_grpc.v1 import pb

MODEL = "wordllama-256"
SHORT = [f"short text number {number} about something" for number in range(2048)]


@pytest_asyncio.fixture
async def engine() -> AsyncGenerator[WordLlamaEngine, None]:
    made = loaded_engine()
    yield made
    await made.aclose()


@dataclass
class GatedLoader:
    """Loader of the model that blocks an engine's thread until `opened` is set."""

    opened: Event = field(default_factory=Event)

    def load(self) -> WordLlamaModel:
        self.opened.wait()
        return shared_model()


@dataclass(eq=False)
class Note:
    """Work that records the order in which calls are processed."""

    name: str
    log: list[str]
    done: list[str] = field(default_factory=list)

    def __call__(self, model: WordLlamaModel, first: int, texts: Sequence[str]) -> Sequence[str]:
        assert first == len(self.done)
        self.log.append(self.name)
        self.done += texts
        return texts


@dataclass(eq=False)
class Broken:
    """Work that fails at its second portion."""

    error: Exception

    def __call__(self, model: WordLlamaModel, first: int, texts: Sequence[str]) -> Sequence[str]:
        if first:
            raise self.error
        return texts


def ignore(made: Sequence[str]) -> None:
    """Discard the made texts."""


async def entered(*calls: asyncio.Task[None]) -> None:
    """Wait until all calls have reached the engine, which each does at its first step."""
    await asyncio.sleep(0)


async def test_calls_that_come_while_the_thread_works_are_taken_together() -> None:
    gate = GatedLoader()
    engine = WordLlamaEngine(gate.load)
    log = list[str]()
    notes = [Note(f"{number}", log) for number in range(200)]
    calls = [asyncio.create_task(engine.run([note.name], note, ignore, SECONDS)) for note in notes]
    await entered(*calls)
    assert (engine.batches, log) == (1, [])
    gate.opened.set()
    await asyncio.gather(*calls)
    assert engine.batches == 2, "the first alone, then all that had come meanwhile"
    assert log == [note.name for note in notes]
    await engine.aclose()


async def test_a_call_to_an_idle_engine_waits_for_no_others(engine: WordLlamaEngine) -> None:
    for number in range(3):
        await engine.run(["text"], Note("one", []), ignore, SECONDS)
        assert engine.batches == number + 1


@dataclass(eq=False)
class Shared:
    """Work of several calls, which rejects a bad text."""

    portions: list[Sequence[str]] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)

    def __call__(self, model: WordLlamaModel, first: int, texts: Sequence[str]) -> Sequence[str]:
        self.portions.append(texts)
        self.threads.append(get_ident())
        if "bad" in texts:
            place = first + texts.index("bad")
            raise UmgError(pb.ERROR_REASON_CONTEXT_TOO_LONG, f"{place} is bad", field=f"inputs[{place}].text")
        return [text.upper() for text in texts]


async def test_the_texts_of_waiting_calls_are_processed_in_one_batch() -> None:
    gate, work = GatedLoader(), Shared()
    engine = WordLlamaEngine(gate.load)
    inputs = [["first"], ["a", "b"], ["c"], ["d", "e", "f"]]
    made: list[list[str]] = [[] for _ in inputs]
    calls = [
        asyncio.create_task(engine.run(texts, work, taken.extend, SECONDS))
        for texts, taken in zip(inputs, made, strict=True)
    ]
    await entered(*calls)
    gate.opened.set()
    await asyncio.gather(*calls)
    assert work.portions == [["first"], ["a", "b", "c", "d", "e", "f"]]
    assert made == [["FIRST"], ["A", "B"], ["C"], ["D", "E", "F"]]
    await engine.aclose()


async def test_an_error_in_a_shared_batch_is_raised_to_its_own_call_alone(engine: WordLlamaEngine) -> None:
    work, made = Shared(), list[str]()
    await engine.run(["first"], work, ignore, SECONDS)
    failed, *done = await asyncio.gather(
        engine.run(["good", "bad"], work, made.extend, SECONDS),
        engine.run(["a"], work, made.extend, SECONDS),
        engine.run(["b"], work, made.extend, SECONDS),
        return_exceptions=True,
    )
    assert isinstance(failed, UmgError)
    assert failed.metadata == {"field": "inputs[1].text"}
    assert done == [None, None]
    assert made == ["A", "B"]
    assert engine.batches == 2


async def test_little_work_needs_no_thread_unless_it_is_done_for_the_first_time(engine: WordLlamaEngine) -> None:
    work, here = Shared(), get_ident()
    for texts in (["new"], ["known"], SHORT, ["again"]):
        await engine.run(texts, work, ignore, SECONDS)
    assert [thread == here for thread in work.threads] == [False, True, *[False] * (len(work.threads) - 3), True]


async def test_little_work_waits_while_the_thread_works(engine: WordLlamaEngine) -> None:
    loop, begun, more, log = asyncio.get_running_loop(), asyncio.Event(), Event(), list[str]()
    note = Note("small", log)
    await engine.run(["known"], note, ignore, SECONDS)
    note.done = []

    def work(model: WordLlamaModel, first: int, texts: Sequence[str]) -> Sequence[str]:
        loop.call_soon_threadsafe(begun.set)
        more.wait()
        log.append("large")
        return texts

    large = asyncio.create_task(engine.run(["text"], work, ignore, SECONDS))
    await begun.wait()
    small = asyncio.create_task(engine.run(["text"], note, ignore, SECONDS))
    await entered(small)
    more.set()
    await asyncio.gather(large, small)
    assert log == ["small", "large", "small"]


async def test_a_small_call_does_not_wait_for_the_end_of_a_large_one() -> None:
    gate, log = GatedLoader(), list[str]()
    engine = WordLlamaEngine(gate.load)
    large, small = Note("large", log), Note("small", log)
    calls = [
        asyncio.create_task(engine.run(SHORT, large, ignore, SECONDS)),
        asyncio.create_task(engine.run(["text"], small, ignore, SECONDS)),
    ]
    await entered(*calls)
    gate.opened.set()
    await asyncio.gather(*calls)
    assert log[:3] == ["large", "small", "large"]
    assert large.done == SHORT, "all of them, in order"
    await engine.aclose()


async def test_a_call_whose_caller_cancelled_is_not_processed() -> None:
    gate, log = GatedLoader(), list[str]()
    engine = WordLlamaEngine(gate.load)
    first = asyncio.create_task(engine.run(["text"], Note("first", log), ignore, SECONDS))
    left = asyncio.create_task(engine.run(SHORT, Note("left", log), ignore, SECONDS))
    last = asyncio.create_task(engine.run(["text"], Note("last", log), ignore, SECONDS))
    await entered(first, left, last)
    left.cancel()
    gate.opened.set()
    await asyncio.gather(first, last)
    with pytest.raises(asyncio.CancelledError):
        await left
    assert log == ["first", "last"]
    await engine.aclose()


async def test_a_caller_that_leaves_in_the_middle_stops_the_rest_of_its_call(engine: WordLlamaEngine) -> None:
    loop, begun, more = asyncio.get_running_loop(), asyncio.Event(), Event()
    portions = list[int]()

    def work(model: WordLlamaModel, first: int, texts: Sequence[str]) -> Sequence[str]:
        portions.append(first)
        loop.call_soon_threadsafe(begun.set)
        more.wait()
        return texts

    call = asyncio.create_task(engine.run(SHORT, work, ignore, SECONDS))
    await begun.wait()
    call.cancel()
    await asyncio.wait([call])
    more.set()
    await engine.run(["text"], Note("next", []), ignore, SECONDS)
    assert portions == [0]


async def test_a_call_fails_at_its_deadline_and_the_engine_continues() -> None:
    gate, log = GatedLoader(), list[str]()
    engine = WordLlamaEngine(gate.load)
    with pytest.raises(UmgError) as caught:
        await engine.run(["text"], Note("late", log), ignore, 0.01)
    assert caught.value.reason == pb.ERROR_REASON_DEADLINE_EXCEEDED
    assert (caught.value.metadata, caught.value.failure) == ({"deadline": "total"}, None)  # the caller's
    gate.opened.set()
    await engine.run(["text"], Note("next", log), ignore, SECONDS)
    assert log[-1] == "next"
    await engine.aclose()


async def test_a_channels_own_deadline_bounds_a_call_that_has_more_time() -> None:
    gate = GatedLoader()
    engine = WordLlamaEngine(gate.load)
    with pytest.raises(UmgError) as caught:
        await LocalEmbedding(engine, total_seconds=0.01).prepare(embed_request("text"), MODEL).send(SECONDS)
    assert (caught.value.reason, caught.value.failure) == (pb.ERROR_REASON_UPSTREAM_TIMEOUT, Failure.AMBIGUOUS)
    gate.opened.set()
    await engine.aclose()


async def test_an_unexpected_failure_fails_its_own_call_alone(engine: WordLlamaEngine) -> None:
    bad, good, other = Broken(ValueError("a secret")), Note("good", []), Note("other", [])
    failed, *done = await asyncio.gather(
        engine.run(SHORT, bad, ignore, SECONDS),
        engine.run(SHORT, good, ignore, SECONDS),
        engine.run(["text"], other, ignore, SECONDS),
        return_exceptions=True,
    )
    assert isinstance(failed, UmgError)
    assert (failed.reason, failed.failure) == (pb.ERROR_REASON_UPSTREAM_FAILED, Failure.TRANSIENT)
    assert "secret" not in failed.message
    assert done == [None, None]
    assert (good.done, other.done) == (SHORT, ["text"])
    await engine.run(["text"], Note("next", []), ignore, SECONDS)


async def test_a_callers_own_mistake_is_raised_unchanged(engine: WordLlamaEngine) -> None:
    mistake = UmgError(pb.ERROR_REASON_CONTEXT_TOO_LONG, "too long", field="inputs[1].text")
    with pytest.raises(UmgError) as caught:
        await engine.run(SHORT, Broken(mistake), ignore, SECONDS)
    assert (caught.value.reason, caught.value.metadata) == (mistake.reason, mistake.metadata)


@pytest.mark.parametrize(("retry_seconds", "loads"), [(0, 2), (3600, 1)], ids=["at the next call", "later"])
async def test_a_model_that_could_not_be_loaded_is_tried_again(retry_seconds: float, loads: int) -> None:
    tries = list[int]()

    def load() -> WordLlamaModel:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("the disk is on fire")
        return shared_model()

    engine = WordLlamaEngine(load, retry_seconds=retry_seconds)
    with pytest.raises(UmgError) as caught:
        await engine.run(["text"], Note("first", []), ignore, SECONDS)
    assert (caught.value.reason, caught.value.failure) == (pb.ERROR_REASON_UNAVAILABLE, Failure.DOWN)
    for name in ("second", "third"):
        with suppress(UmgError):
            await engine.run(["text"], Note(name, []), ignore, SECONDS)
    assert len(tries) == loads
    await engine.aclose()


class Panic(BaseException):
    """Panic as the tokenizer's library raises it."""


async def test_a_panic_in_the_thread_is_raised_to_its_callers_and_ends_nothing() -> None:
    class Panicking(Note):
        def __call__(self, model: WordLlamaModel, first: int, texts: Sequence[str]) -> Sequence[str]:
            raise Panic("index out of bounds")

    engine = WordLlamaEngine(shared_model)
    with pytest.raises(UmgError) as caught:
        await engine.run(["text"], Panicking("first", []), ignore, SECONDS)
    assert caught.value.reason == pb.ERROR_REASON_UPSTREAM_FAILED
    await engine.run(["text"], Note("second", []), ignore, SECONDS)
    await engine.aclose()


async def test_without_the_package_a_call_fails_and_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wordllama_unavailable() is None
    monkeypatch.setitem(sys.modules, "wordllama", None)
    assert "pip install wordllama" in (wordllama_unavailable() or "")
    engine = WordLlamaEngine()
    with pytest.raises(UmgError) as caught:
        await LocalEmbedding(engine).prepare(embed_request("text"), MODEL).send(SECONDS)
    assert (caught.value.reason, caught.value.failure) == (pb.ERROR_REASON_UNAVAILABLE, Failure.DOWN)
    assert "needs wordllama: `pip install wordllama`" in caught.value.message
    await engine.aclose()


async def test_a_closing_engine_fails_waiting_calls_and_accepts_no_more() -> None:
    gate = GatedLoader()
    engine = WordLlamaEngine(gate.load)
    large = asyncio.create_task(engine.run(SHORT, Note("large", []), ignore, SECONDS))
    waiting = asyncio.create_task(engine.run(["text"], Note("waiting", []), ignore, SECONDS))
    await entered(large, waiting)
    closing = asyncio.create_task(engine.aclose())
    await asyncio.sleep(0)
    gate.opened.set()
    await closing
    with pytest.raises(UmgError):
        await engine.run(["text"], Note("late", []), ignore, SECONDS)
    for failed in await asyncio.gather(large, waiting, return_exceptions=True):
        assert isinstance(failed, UmgError)
        assert (failed.reason, failed.failure) == (pb.ERROR_REASON_UNAVAILABLE, Failure.NOT_SENT)


async def test_an_engine_that_was_never_called_closes_at_once() -> None:
    await WordLlamaEngine().aclose()


async def test_many_tasks_get_their_own_vectors(engine: WordLlamaEngine) -> None:
    upstream = LocalEmbedding(engine)
    sizes = [1 + number * number % 700 for number in range(60)]
    inputs = [[f"text {number} of {size}" for number in range(size)] for size in sizes]
    together = await asyncio.gather(*(vectors_of(upstream, MODEL, texts) for texts in inputs))
    for texts, vectors in zip(inputs, together, strict=True):
        assert (vectors == unit(shared_model().embed(shared_model().tokenize(texts)))).all()


async def test_a_batch_of_all_sizes_takes_little_memory(engine: WordLlamaEngine) -> None:
    upstream = LocalEmbedding(engine)
    texts = [*SHORT[:1800], "and so on " * 2700, *("word " * (2 * size) for size in range(247))]
    request = embed_request(*texts)
    await vectors_of(upstream, MODEL, ["loaded"])
    tracemalloc.start()
    try:
        answer = await upstream.prepare(request, MODEL).send(SECONDS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(answer.embeddings) == len(texts)
    assert peak < 32 * 2**20, "padded to the longest, one group of 64 would take 1 GB"


@given(st.lists(st.integers(0, 200_000), max_size=60))
def test_portions_hold_every_text_once_and_in_order(sizes: Sequence[int]) -> None:
    texts = ["x" * size for size in sizes]
    first, portions = 0, list[Sequence[str]]()
    while first < len(texts):
        end, cost = portion(texts, first, BATCH_COST)
        assert cost == sum(TEXT_COST + len(text) for text in texts[first:end])
        assert cost <= BATCH_COST or end == first + 1, "a text that is larger than a portion has one of its own"
        portions.append(texts[first:end])
        first = end
    assert [text for found in portions for text in found] == texts


def test_no_text_is_refused_by_its_size_that_could_be_short_enough() -> None:
    assert max(map(len, shared_model()._tokenizer.get_vocab())) == LONGEST_TOKEN


LOADING = """
import logging, sys
from umg_grpc.base import gateway_log
from umg_grpc.upstream.local.wordllama import LocalEmbedding, WordLlamaEngine
assert not {"numpy", "wordllama", "tokenizers"} & set(sys.modules), "they come with the first call"
if "configured" in sys.argv:
    gateway_log.configure("info", "json")
root = logging.getLogger()
before = (list(root.handlers), root.level)
from umg_grpc.upstream.local.wordllama.model import load
load()
assert "wordllama" in sys.modules
assert (list(root.handlers), root.level) == before, (root.handlers, root.level)
logging.getLogger("some.library").info("hidden")
logging.getLogger("some.library").warning("shown")
"""


@pytest.mark.parametrize("form", ["configured", "bare"])
def test_the_library_does_not_touch_the_log(form: str) -> None:
    command = [sys.executable, "-W", "error", "-c", LOADING, form]
    run = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert run.returncode == 0, run.stderr
    assert "shown" in run.stderr
    assert "hidden" not in run.stderr
    assert run.stdout == ""
    assert len(run.stderr.splitlines()) == 1

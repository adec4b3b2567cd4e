"""Pace of a stream, and the failures that a prompt can select."""

import asyncio
import math
from contextlib import aclosing
from dataclasses import dataclass, field

import pytest

from tests.upstream.sandbox.asking import (
    Heard,
    ask,
    assistant,
    called,
    count,
    deltas,
    function,
    hear,
    heard,
    result,
    sandbox,
    text,
    user,
)
from tests.upstream.sandbox.clockwork import run
from umg_grpc.errors import Failure, UmgError
from umg_grpc.upstream.sandbox import SandboxText
from umg_grpc.v1 import pb


@dataclass
class Told:
    """Messages of a stream with their times, and its error."""

    messages: list[pb.StreamGenerateResponse] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    error: UmgError | None = None
    ended: float = 0


def listen(request: pb.GenerateRequest, upstream: SandboxText, seconds: float = math.inf) -> Told:
    async def listening() -> Told:
        told, loop = Told(), asyncio.get_running_loop()
        begun = loop.time()
        try:
            async for message in upstream.prepare(request, "famO-5", stream=True).stream(seconds):
                told.messages.append(message)
                told.times.append(loop.time() - begun)
        except UmgError as error:
            told.error = error
        told.ended = loop.time() - begun
        return told

    return run(listening())


def failure(request: pb.GenerateRequest, seconds: float = math.inf, upstream: SandboxText | None = None) -> UmgError:
    """Return the error of a call that is not streamed."""
    with pytest.raises(UmgError) as caught:
        run((upstream or sandbox()).prepare(request, "famO-5", stream=False).send(seconds))
    return caught.value


@pytest.mark.parametrize("pace", [50, 10, 2000])
def test_a_stream_keeps_its_pace(pace: float) -> None:
    told = listen(ask("Tell me something"), sandbox(tokens_per_second=pace))
    tokens = sum(count(event.text_delta) for event in deltas(told.messages, "text_delta"))
    assert told.times[0] == 0
    assert told.times[-1] == pytest.approx(tokens / pace)
    steps = [later - sooner for sooner, later in zip(told.times[1:], told.times[2:], strict=False)]
    assert max(steps) <= 4 / pace + 1e-9, "no piece is more than four tokens"


def test_fifty_tokens_a_second_is_the_pace_when_nothing_is_said() -> None:
    told = listen(ask("Hi"), SandboxText(count, lambda: "me"))
    tokens = sum(count(event.text_delta) for event in deltas(told.messages, "text_delta"))
    assert told.times[-1] == pytest.approx(tokens / 50)


def test_without_a_pace_a_stream_comes_at_once_in_several_messages() -> None:
    told = listen(ask("Hi"), sandbox(tokens_per_second=0))
    assert told.times[-1] == 0
    assert len(told.messages) > 2


def test_a_listener_who_leaves_ends_the_stream() -> None:
    async def leaving() -> float:
        call = sandbox(tokens_per_second=1).prepare(ask("Hi"), "famO-5", stream=True)
        async with aclosing(call.stream(math.inf)) as messages:
            async for _ in messages:
                break
        return asyncio.get_running_loop().time()

    assert run(leaving()) == 0


def test_a_cancelled_listener_is_not_kept_waiting() -> None:
    async def cancelled() -> float:
        call = sandbox().prepare(ask("[[slow]]"), "famO-5", stream=True)
        waiting = asyncio.ensure_future(anext(call.stream(math.inf)))
        await asyncio.sleep(1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return asyncio.get_running_loop().time()

    assert run(cancelled()) == 1


def test_a_stream_ends_at_its_deadline() -> None:
    told = listen(ask("Hi"), sandbox(tokens_per_second=10), seconds=1.5)
    assert told.error is not None
    assert (told.error.reason, told.error.metadata) == (pb.ERROR_REASON_UPSTREAM_TIMEOUT, {"deadline": "total"})
    assert told.error.failure is None  # the deadline is the caller's
    assert told.ended == pytest.approx(1.5)
    assert len(told.messages) > 2


@dataclass(frozen=True)
class Fault:
    id: str
    words: str
    reason: "pb.ErrorReason.ValueType"
    metadata: dict[str, str]
    failure: Failure


FAULTS = [
    Fault(id="a failure", words="please [[fail]] now", reason=pb.ERROR_REASON_UPSTREAM_FAILED, metadata={"upstream_status": "500"}, failure=Failure.TRANSIENT),
    Fault(id="a rate limit", words="[[fail:429]]", reason=pb.ERROR_REASON_UPSTREAM_RATE_LIMITED, metadata={"retry_after_seconds": "1"}, failure=Failure.OVERLOADED),
    Fault(id="a stall", words="[[slow]]", reason=pb.ERROR_REASON_UPSTREAM_TIMEOUT, metadata={"deadline": "first_byte"}, failure=Failure.AMBIGUOUS),
]  # fmt: skip


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case.id)
def test_what_fails_before_the_first_byte_fails_both_ways(case: Fault) -> None:
    told, whole = listen(ask(case.words), sandbox()), failure(ask(case.words))
    assert told.messages == []
    for error in (told.error, whole):
        assert error is not None
        assert (error.reason, error.metadata, error.failure) == (case.reason, case.metadata, case.failure)


@pytest.mark.parametrize(
    ("seconds", "deadline", "ended"), [(math.inf, "first_byte", 60), (5, "total", 5), (500, "first_byte", 60), (0, "total", 0)]
)  # fmt: skip
def test_a_stall_lasts_until_the_deadline_and_not_for_ever(seconds: float, deadline: str, ended: float) -> None:
    told = listen(ask("[[slow]]"), sandbox(), seconds)
    assert told.error is not None
    assert (told.error.metadata["deadline"], told.ended) == (deadline, ended)
    assert (told.error.failure is None) is (deadline == "total")  # the caller's own is no failure


@pytest.mark.parametrize(
    ("timeout", "deadline", "ended"),
    [({"first_byte_seconds": 2}, "first_byte", 2), ({"first_byte_seconds": 9, "total_seconds": 3}, "total", 3)],
)
def test_a_stall_ends_at_the_deadlines_of_the_channel(timeout: dict[str, float], deadline: str, ended: float) -> None:
    upstream = sandbox(**timeout)
    told, whole = listen(ask("[[slow]]"), upstream), failure(ask("[[slow]]"), upstream=upstream)
    assert told.error is not None
    assert (told.error.metadata["deadline"], whole.metadata["deadline"], told.ended) == (deadline, deadline, ended)
    assert told.error.failure is Failure.AMBIGUOUS


def test_a_stream_is_no_longer_than_the_channel_may_take() -> None:
    told = listen(ask("Hi"), sandbox(tokens_per_second=10, total_seconds=1.5))
    assert told.error is not None
    assert (told.error.metadata, told.ended) == ({"deadline": "total"}, pytest.approx(1.5))
    assert told.error.failure is Failure.AMBIGUOUS


@pytest.mark.parametrize("pace", [0, 50])
def test_a_stream_breaks_in_the_middle(pace: float) -> None:
    told = listen(ask("Hello [[fail:mid]]"), sandbox(tokens_per_second=pace))
    begun = "".join(event.text_delta for event in deltas(told.messages, "text_delta"))
    assert told.error is not None
    assert (told.error.reason, told.error.failure) == (pb.ERROR_REASON_UPSTREAM_CUT, Failure.AMBIGUOUS)
    assert begun.startswith("This is a simulated answer")
    assert deltas(told.messages, "finished") == []


def test_what_breaks_in_the_middle_of_a_stream_is_a_failure_of_the_whole() -> None:
    error = failure(ask("Hello [[fail:mid]]"))
    assert (error.reason, error.metadata) == (pb.ERROR_REASON_UPSTREAM_FAILED, {"upstream_status": "500"})


def both(request: pb.GenerateRequest) -> list[Heard]:
    return [hear(request), heard(listen(request, sandbox()).messages)]


def test_a_refusal_is_one() -> None:
    for answer in both(ask("[[refuse]] this", tools=[function("this")], logprobs=True)):
        assert (answer.kinds, answer.finish) == (["refusal"], "REFUSAL")
        refusal = answer.parts[0].refusal
        assert "simulated" in refusal.text
        assert "".join(entry.token for entry in refusal.logprobs) == refusal.text
        assert answer.usage.output_tokens == count(refusal.text)


def test_a_blocked_prompt_has_no_answer() -> None:
    for answer in both(ask("[[block]]")):
        assert list(answer.response.candidates) == []
        assert answer.response.block_reason == "SAFETY"
        assert answer.response.prompt_safety_ratings[0].blocked
        assert (answer.usage.input_tokens, answer.usage.output_tokens) == (count("[[block]]"), 0)


@pytest.mark.parametrize(
    "request_",
    [
        ask("[[fail]]", assistant("Hm"), user("again")),
        ask("[[fail]]", assistant(called("f")), user(result("x"))),
        ask("Hi", assistant("[[fail]]"), user("again")),
        ask("Hi", instructions=[text("[[fail]]")]),
        ask("Hi", assistant(called("f")), user(result("[[fail]]"))),
        ask("fail [fail] [[FAIL]] [[fail:500]]"),
    ],
    ids=["an earlier turn", "before a call", "an answer", "instructions", "a result", "other brackets"],
)
def test_only_what_the_user_said_last_counts(request_: pb.GenerateRequest) -> None:
    assert hear(request_).finish == "STOP"


def test_a_continued_answer_still_belongs_to_what_the_user_said_last() -> None:
    assert failure(ask("[[fail]]", assistant("I think that"))).reason == pb.ERROR_REASON_UPSTREAM_FAILED

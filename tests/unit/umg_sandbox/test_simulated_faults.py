"""Pace of a stream, and the failures that a prompt can select."""

import asyncio
import math
from contextlib import aclosing
from dataclasses import dataclass, field

import pytest

from tests.unit.umg_sandbox.clockwork import run
from tests.unit.umg_sandbox.sandbox_calls import (
    SandboxAnswer,
    aggregate,
    assistant,
    called,
    count,
    deltas,
    function,
    generate,
    make_request,
    result,
    sandbox,
    text,
    user,
)
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_sandbox import SandboxText


@dataclass
class TimedStream:
    messages: list[pb.StreamGenerateResponse] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    error: UmgError | None = None
    ended: float = 0


def read_stream(request: pb.GenerateRequest, upstream: SandboxText, seconds: float = math.inf) -> TimedStream:
    async def read() -> TimedStream:
        streamed, loop = TimedStream(), asyncio.get_running_loop()
        begun = loop.time()
        try:
            async for message in upstream.prepare(request, "famO-5", stream=True).stream(seconds):
                streamed.messages.append(message)
                streamed.times.append(loop.time() - begun)
        except UmgError as error:
            streamed.error = error
        streamed.ended = loop.time() - begun
        return streamed

    return run(read())


def failure(request: pb.GenerateRequest, seconds: float = math.inf, upstream: SandboxText | None = None) -> UmgError:
    """Return the error of a call that is not streamed."""
    with pytest.raises(UmgError) as caught:
        run((upstream or sandbox()).prepare(request, "famO-5", stream=False).send(seconds))
    return caught.value


@pytest.mark.parametrize("pace", [50, 10, 2000])
def test_a_stream_keeps_its_pace(pace: float) -> None:
    streamed = read_stream(make_request("Tell me something"), sandbox(tokens_per_second=pace))
    tokens = sum(count(event.text_delta) for event in deltas(streamed.messages, "text_delta"))
    assert streamed.times[0] == 0
    assert streamed.times[-1] == pytest.approx(tokens / pace)
    steps = [later - sooner for sooner, later in zip(streamed.times[1:], streamed.times[2:], strict=False)]
    assert max(steps) <= 4 / pace + 1e-9, "no piece is more than four tokens"


def test_the_default_pace_is_fifty_tokens_a_second() -> None:
    streamed = read_stream(make_request("Hi"), SandboxText(lambda: "me", count))
    tokens = sum(count(event.text_delta) for event in deltas(streamed.messages, "text_delta"))
    assert streamed.times[-1] == pytest.approx(tokens / 50)


def test_a_stream_without_a_pace_is_sent_at_once_in_several_messages() -> None:
    streamed = read_stream(make_request("Hi"), sandbox(tokens_per_second=0))
    assert streamed.times[-1] == 0
    assert len(streamed.messages) > 2


def test_closing_the_stream_early_ends_it() -> None:
    async def leaving() -> float:
        call = sandbox(tokens_per_second=1).prepare(make_request("Hi"), "famO-5", stream=True)
        async with aclosing(call.stream(math.inf)) as messages:
            async for _ in messages:
                break
        return asyncio.get_running_loop().time()

    assert run(leaving()) == 0


def test_cancelling_a_call_ends_it_at_once() -> None:
    async def cancelled() -> float:
        call = sandbox().prepare(make_request("[[slow]]"), "famO-5", stream=True)
        waiting = asyncio.ensure_future(anext(call.stream(math.inf)))
        await asyncio.sleep(1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return asyncio.get_running_loop().time()

    assert run(cancelled()) == 1


def test_a_stream_ends_at_its_deadline() -> None:
    streamed = read_stream(make_request("Hi"), sandbox(tokens_per_second=10), seconds=1.5)
    assert streamed.error is not None
    assert (streamed.error.reason, streamed.error.metadata) == (
        pb.ERROR_REASON_DEADLINE_EXCEEDED,
        {"deadline": "total"},
    )
    assert streamed.error.failure is None  # the deadline is the caller's
    assert streamed.ended == pytest.approx(1.5)
    assert len(streamed.messages) > 2


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
def test_a_fault_before_the_first_byte_fails_streamed_and_unstreamed_calls(case: Fault) -> None:
    streamed, complete = read_stream(make_request(case.words), sandbox()), failure(make_request(case.words))
    assert streamed.messages == []
    for error in (streamed.error, complete):
        assert error is not None
        assert (error.reason, error.metadata, error.failure) == (case.reason, case.metadata, case.failure)


@pytest.mark.parametrize(
    ("seconds", "deadline", "ended"), [(math.inf, "first_byte", 60), (5, "total", 5), (500, "first_byte", 60), (0, "total", 0)]
)  # fmt: skip
def test_a_stall_ends_at_the_deadline_of_the_call(seconds: float, deadline: str, ended: float) -> None:
    streamed = read_stream(make_request("[[slow]]"), sandbox(), seconds)
    assert streamed.error is not None
    assert (streamed.error.metadata["deadline"], streamed.ended) == (deadline, ended)
    assert (streamed.error.failure is None) is (deadline == "total")  # the caller's own is no failure


@pytest.mark.parametrize(
    ("timeout", "deadline", "ended"),
    [({"first_byte_seconds": 2}, "first_byte", 2), ({"first_byte_seconds": 9, "total_seconds": 3}, "total", 3)],
)
def test_a_stall_ends_at_the_deadlines_of_the_channel(timeout: dict[str, float], deadline: str, ended: float) -> None:
    upstream = sandbox(**timeout)
    streamed, complete = (
        read_stream(make_request("[[slow]]"), upstream),
        failure(make_request("[[slow]]"), upstream=upstream),
    )
    assert streamed.error is not None
    assert (streamed.error.metadata["deadline"], complete.metadata["deadline"], streamed.ended) == (
        deadline,
        deadline,
        ended,
    )
    assert streamed.error.failure is Failure.AMBIGUOUS


def test_a_stream_ends_at_the_total_deadline_of_the_channel() -> None:
    streamed = read_stream(make_request("Hi"), sandbox(tokens_per_second=10, total_seconds=1.5))
    assert streamed.error is not None
    assert (streamed.error.metadata, streamed.ended) == ({"deadline": "total"}, pytest.approx(1.5))
    assert streamed.error.failure is Failure.AMBIGUOUS


@pytest.mark.parametrize("pace", [0, 50])
def test_a_fault_cuts_a_stream_in_the_middle(pace: float) -> None:
    streamed = read_stream(make_request("Hello [[fail:mid]]"), sandbox(tokens_per_second=pace))
    begun = "".join(event.text_delta for event in deltas(streamed.messages, "text_delta"))
    assert streamed.error is not None
    assert (streamed.error.reason, streamed.error.failure) == (pb.ERROR_REASON_UPSTREAM_CUT, Failure.AMBIGUOUS)
    assert begun.startswith("This is a simulated answer")
    assert deltas(streamed.messages, "finished") == []


def test_a_fault_in_the_middle_of_a_stream_fails_an_unstreamed_call() -> None:
    error = failure(make_request("Hello [[fail:mid]]"))
    assert (error.reason, error.metadata) == (pb.ERROR_REASON_UPSTREAM_FAILED, {"upstream_status": "500"})


def both(request: pb.GenerateRequest) -> list[SandboxAnswer]:
    return [generate(request), aggregate(read_stream(request, sandbox()).messages)]


def test_a_refusal_has_a_refusal_part_and_its_finish_reason() -> None:
    for answer in both(make_request("[[refuse]] this", tools=[function("this")], logprobs=True)):
        assert (answer.kinds, answer.finish) == (["refusal"], "REFUSAL")
        refusal = answer.parts[0].refusal
        assert "simulated" in refusal.text
        assert "".join(entry.token for entry in refusal.logprobs) == refusal.text
        assert answer.usage.output_tokens == count(refusal.text)


def test_a_blocked_prompt_has_no_answer() -> None:
    for answer in both(make_request("[[block]]")):
        assert list(answer.response.candidates) == []
        assert answer.response.block_reason == "SAFETY"
        assert answer.response.prompt_safety_ratings[0].blocked
        assert (answer.usage.input_tokens, answer.usage.output_tokens) == (count("[[block]]"), 0)


@pytest.mark.parametrize(
    "request_",
    [
        make_request("[[fail]]", assistant("Hm"), user("again")),
        make_request("[[fail]]", assistant(called("f")), user(result("x"))),
        make_request("Hi", assistant("[[fail]]"), user("again")),
        make_request("Hi", instructions=[text("[[fail]]")]),
        make_request("Hi", assistant(called("f")), user(result("[[fail]]"))),
        make_request("fail [fail] [[FAIL]] [[fail:500]]"),
    ],
    ids=["an earlier turn", "before a call", "a response", "instructions", "a result", "other brackets"],
)
def test_only_a_fault_in_the_last_user_message_has_an_effect(request_: pb.GenerateRequest) -> None:
    assert generate(request_).finish == "STOP"


def test_a_fault_in_the_last_user_message_applies_to_a_continued_answer() -> None:
    assert failure(make_request("[[fail]]", assistant("I think that"))).reason == pb.ERROR_REASON_UPSTREAM_FAILED

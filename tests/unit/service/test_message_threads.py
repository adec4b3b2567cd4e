"""Threads: each is continued once, by the caller that created it, within five minutes."""

from collections.abc import AsyncIterator
from datetime import timedelta
from math import inf
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import func, select, text

from tests.support.store_fixtures import Clock
from umg_grpc.base.errors import UmgError
from umg_grpc.config import Channel
from umg_grpc.routing import Target
from umg_grpc.service.conversations.message_threads import IDLE_TIME, Thread, Threads
from umg_grpc.service.conversations.stored_responses import SMALL_BYTES, ResponseOrigin
from umg_grpc.store import Store, open_store
from umg_grpc.store.database_time import GivenClock
from umg_grpc.store.expired_row_sweep import Bounds
from umg_grpc.store.table_definitions import ThreadRow
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.facts_beside_request import NO_NOTES, DecodedRequest

ME = "key_me"
HERE = ResponseOrigin("main", "")
NO_BOUND = Bounds(0, 0)
MAX_BYTES = 2**20


@pytest.fixture
def store(emptied_store: Store) -> Store:
    return emptied_store


@pytest.fixture
async def threads(store: Store, clock: Clock) -> AsyncIterator[Threads]:
    threads = Threads(store, bounds=NO_BOUND, max_bytes=MAX_BYTES, clock=GivenClock(clock))
    threads.start()
    yield threads
    await threads.aclose()


def body(previous_id: str = "", *turns: object, **fields: object) -> pb.GenerateRequest:
    thread = {"type": "continue", "previous_message_id": previous_id} if previous_id else {"type": "create"}
    body_fields = {"model": "m", "max_tokens": 9, "messages": turns, "thread": thread, **fields}
    return TEXT_FORMATS["messages"].decode_request(msgspec.json.encode(body_fields), {}).canonical


def plain(previous_id: str = "", *words: str, **fields: object) -> pb.GenerateRequest:
    """Return the same request with the schema's own fields."""
    made = pb.GenerateRequest(model="m", thread=pb.Thread(previous_response_id=previous_id), **fields)
    for each in words:
        made.messages.add(role=pb.ROLE_USER).parts.add().text.text = each
    return made


def user(words: str, **fields: object) -> dict[str, object]:
    return {"role": "user", "content": [{"type": "text", "text": words, **fields}]}


def answer(response_id: str) -> pb.GenerateResponse:
    message = pb.Message(role=pb.ROLE_ASSISTANT, parts=[pb.Part(text=pb.TextPart(text="Hello"))])
    return pb.GenerateResponse(response_id=response_id, candidates=[pb.Candidate(message=message)])


async def open_thread(threads: Threads, request: pb.GenerateRequest, *, seconds: float = inf) -> Thread:
    return await threads.open(ME, DecodedRequest(request, NO_NOTES), seconds)


async def turn(
    threads: Threads, request: pb.GenerateRequest, response_id: str, origin: ResponseOrigin = HERE
) -> Thread:
    thread = await open_thread(threads, request)
    assert await threads.keep(ME, thread, answer(response_id), origin)
    await threads.close(ME, thread)
    return thread


async def refused(threads: Threads, request: pb.GenerateRequest) -> UmgError:
    with pytest.raises(UmgError) as caught:
        await open_thread(threads, request)
    return caught.value


def texts(request: pb.GenerateRequest) -> list[str]:
    return [part.text.text for message in request.messages for part in message.parts]


TOOL = {"name": "look", "input_schema": {"type": "object"}, "eager_input_streaming": True}


async def test_a_conversation_is_whole_again_in_the_callers_own_json(threads: Threads) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    await turn(
        threads, body("", user("One", **mark), system=[{"type": "text", "text": "S", **mark}], tools=[TOOL]), "a"
    )
    await turn(threads, body("a", user("Two")), "b")
    thread = await open_thread(threads, body("b", user("Three", **mark), temperature=0.5))
    whole = msgspec.json.decode(thread.whole.canonical.source.body)
    assert whole == {
        "model": "m",
        "max_tokens": 9,
        "temperature": 0.5,
        "system": [{"type": "text", "text": "S", **mark}],
        "tools": [TOOL],
        "messages": [
            user("One"),
            {"role": "assistant", "content": [{"type": "text", "text": "Hello"}]},
            user("Two"),
            {"role": "assistant", "content": [{"type": "text", "text": "Hello"}]},
            user("Three", **mark),
        ],
    }
    assert texts(thread.whole.canonical) == ["One", "Hello", "Two", "Hello", "Three"]
    assert not thread.whole.canonical.HasField("thread")
    assert (thread.whole.canonical.temperature, thread.whole.canonical.tools[0].function.name) == (0.5, "look")


async def test_a_conversation_that_the_caller_filled_in_is_whole_again(threads: Threads) -> None:
    tool = pb.Tool(function=pb.FunctionTool(name="look"))
    system = [pb.Part(text=pb.TextPart(text="S"))]
    await turn(threads, plain("", "One", instructions=system, tools=[tool]), "a")
    thread = await open_thread(threads, plain("a", "Two", seed=4))
    assert texts(thread.whole.canonical) == ["One", "Hello", "Two"]
    assert (
        thread.whole.canonical.seed,
        list(thread.whole.canonical.tools),
        list(thread.whole.canonical.instructions),
    ) == (4, [tool], system)


@pytest.mark.parametrize("began", [body, plain])
async def test_a_thread_is_continued_in_another_form(threads: Threads, began: object) -> None:
    one, two = (
        (body("", user("One")), plain("a", "Two")) if began is body else (plain("", "One"), body("a", user("Two")))
    )
    await turn(threads, one, "a")
    await turn(threads, two, "b")
    thread = await open_thread(threads, plain("b", "Three"))
    assert texts(thread.whole.canonical) == ["One", "Hello", "Two", "Hello", "Three"]


async def test_an_answer_without_content_adds_no_turn(threads: Threads) -> None:
    thread = await open_thread(threads, body("", user("One")))
    assert await threads.keep(ME, thread, pb.GenerateResponse(response_id="a"), HERE)
    assert texts((await open_thread(threads, body("a", user("Two")))).whole.canonical) == [
        "One",
        "Two",
    ]


async def test_an_unfinished_turn_is_continued_without_new_messages(threads: Threads) -> None:
    await turn(threads, body("", user("One")), "a")
    assert texts((await open_thread(threads, body("a"))).whole.canonical) == ["One", "Hello"]


async def test_an_answer_is_continued_by_one_call_at_a_time(threads: Threads, store: Store, clock: Clock) -> None:
    await turn(threads, body("", user("One")), "a")
    first = await open_thread(threads, body("a", user("Two")), seconds=30)
    other = Threads(store, bounds=NO_BOUND, max_bytes=MAX_BYTES, clock=GivenClock(clock))  # of another process
    assert (await refused(other, body("a", user("Two")))).reason == pb.ERROR_REASON_THREAD_CONTINUE_IN_FLIGHT
    await threads.close(ME, first)  # it failed
    second = await open_thread(other, body("a", user("Two")), seconds=30)
    clock.time += timedelta(seconds=31)  # its process has ended
    await open_thread(threads, body("a", user("Two")), seconds=30)
    await other.close(ME, second)  # its claim has passed to another call
    assert (await refused(other, body("a", user("Two")))).reason == pb.ERROR_REASON_THREAD_CONTINUE_IN_FLIGHT


@pytest.mark.parametrize("previous_id", ["nothing", "x" * 512, "a\0b", "é"], ids=["unknown", "long", "zero", "other"])
async def test_an_unknown_thread_is_not_found(threads: Threads, previous_id: str) -> None:
    error = await refused(threads, plain(previous_id, "Two"))
    assert (error.reason, error.metadata["id"]) == (pb.ERROR_REASON_THREAD_NOT_FOUND, previous_id)


async def test_a_thread_is_gone_five_minutes_after_its_last_answer(threads: Threads, clock: Clock) -> None:
    await turn(threads, body("", user("One")), "a")
    clock.time += IDLE_TIME - timedelta(seconds=1)
    await turn(threads, body("a", user("Two")), "b")
    clock.time += IDLE_TIME - timedelta(seconds=1)
    await turn(threads, body("b", user("Three")), "c")
    clock.time += IDLE_TIME
    assert (await refused(threads, body("c", user("Four")))).reason == pb.ERROR_REASON_THREAD_NOT_FOUND


@pytest.mark.parametrize("field", ["instructions", "tools"])
async def test_fields_of_the_thread_must_not_be_sent_again(threads: Threads, field: str) -> None:
    value = {"instructions": [pb.Part()], "tools": [pb.Tool()]}[field]
    error = await refused(threads, plain("a", "Two", **{field: value}))
    assert (error.reason, error.metadata["field"]) == (pb.ERROR_REASON_INVALID_FIELD, field)


async def test_a_provider_that_gives_one_id_twice_has_a_thread_all_the_same(threads: Threads) -> None:
    await turn(threads, body("", user("One")), "a")
    await turn(threads, body("a", user("Two")), "a")
    assert texts((await turn(threads, body("a", user("Three")), "a")).whole.canonical)[-1] == "Three"


async def test_a_conversation_that_is_too_large_is_not_stored(threads: Threads) -> None:
    large = body("", user("x" * MAX_BYTES))
    thread = await open_thread(threads, large)
    assert not await threads.keep(ME, thread, answer("a"), HERE)
    assert (await refused(threads, body("a", user("Two")))).reason == pb.ERROR_REASON_THREAD_NOT_FOUND


async def test_a_large_conversation_is_whole_again(threads: Threads) -> None:
    await turn(threads, body("", user("x" * SMALL_BYTES)), "a")
    await turn(threads, body("a", user("y" * SMALL_BYTES)), "b")
    whole = (await open_thread(threads, body("b", user("z")))).whole.canonical
    assert list(map(len, texts(whole))) == [SMALL_BYTES, 5, SMALL_BYTES, 5, 1]


async def test_a_continued_answer_leaves_its_conversation_to_the_next(threads: Threads, store: Store) -> None:
    await turn(threads, body("", user("One")), "a")
    await turn(threads, body("a", user("Two")), "b")
    async with store.read() as session:
        kept = select(ThreadRow.object_id, func.length(ThreadRow.conversation) > 0).order_by(ThreadRow.object_id)
        assert [(name, bool(held)) for name, held in await session.execute(kept)] == [("a", False), ("b", True)]


async def test_an_id_that_cannot_be_named_is_not_stored(threads: Threads) -> None:
    thread = await open_thread(threads, body("", user("One")))
    for name in ("", "x" * 513, "a\nb"):
        assert not await threads.keep(ME, thread, answer(name), HERE)


async def test_a_database_that_fails_is_a_thread_that_is_lost(tmp_path: Path) -> None:
    store = await open_store("sqlite", tmp_path)
    threads = Threads(store, bounds=NO_BOUND, max_bytes=MAX_BYTES)
    async with store.write() as session:
        await session.execute(text("DROP TABLE threads"))
    assert (await refused(threads, body("a", user("Two")))).reason == pb.ERROR_REASON_THREAD_NOT_FOUND
    await store.aclose()


def thread_of(origin: ResponseOrigin, previous_id: str = "a") -> Thread:
    request = body(previous_id, user("Two"))
    whole = Thread(DecodedRequest(body("", user("One"), user("Two")), NO_NOTES), ResponseOrigin("", "")).whole
    return Thread(DecodedRequest(request, NO_NOTES), origin, continued=whole)


KNOWN = ResponseOrigin("main", "a")


MAIN = Target(Channel(name="main", protocols=("messages",), models=()), "m", "famC", frozenset())


def test_a_provider_without_the_thread_is_sent_the_whole_conversation() -> None:
    thread = thread_of(KNOWN)
    lost = UmgError(pb.ERROR_REASON_THREAD_NOT_FOUND, "gone")
    assert thread.recovers_from(thread.request_for(MAIN).canonical, lost)
    sent = thread.request_for(MAIN).canonical
    assert texts(sent) == ["One", "Two"]
    assert not thread.recovers_from(sent, lost)


@pytest.mark.parametrize(
    "error",
    [
        UmgError(pb.ERROR_REASON_THREAD_UNSUPPORTED_REQUEST, "no"),
        UmgError(pb.ERROR_REASON_UPSTREAM_REJECTED, "thread: Extra inputs are not permitted"),
        UmgError(pb.ERROR_REASON_UPSTREAM_REJECTED, "unknown field", field="thread.type"),
    ],
)
@pytest.mark.parametrize("previous_id", ["", "a"])
def test_a_provider_without_threads_is_sent_the_conversation(error: UmgError, previous_id: str) -> None:
    thread = (
        thread_of(KNOWN, previous_id)
        if previous_id
        else Thread(DecodedRequest(body("", user("One")), NO_NOTES), ResponseOrigin("", ""))
    )
    assert thread.recovers_from(thread.request_for(MAIN).canonical, error)
    sent = thread.request_for(MAIN).canonical
    assert not sent.HasField("thread")
    assert b"thread" not in sent.source.body
    assert not thread.recovers_from(sent, error)


@pytest.mark.parametrize("reason", [pb.ERROR_REASON_THREAD_FINGERPRINT_MISMATCH, pb.ERROR_REASON_UPSTREAM_REJECTED])
def test_another_refusal_is_not_recovered_from(reason: "pb.ErrorReason.ValueType") -> None:
    thread = thread_of(KNOWN)
    assert not thread.recovers_from(thread.request_for(MAIN).canonical, UmgError(reason, "messages: too many"))

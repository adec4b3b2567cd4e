"""Reasoning store: a model's reasoning before its tool calls is restored with them, only for the caller that received
it.
"""

import asyncio
import base64
import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from tests.support.databases import Database, Postgres, create_database
from tests.support.store_fixtures import Clock
from tests.unit.wire.timing import within
from umg_grpc.service.conversations.reasoning_restore import ENTRY_BYTES
from umg_grpc.service.conversations.reasoning_state import makers, needs, pinned_channel, without_states_of_others
from umg_grpc.service.conversations.reasoning_store import MAX_INLINE_ENTRIES, ReasoningStore
from umg_grpc.store import Store, open_store
from umg_grpc.store.database_time import GivenClock
from umg_grpc.store.expired_row_sweep import Bounds
from umg_grpc.store.table_definitions import ReasoningRow
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import CHAT_FORMAT

ME, YOU = "key_me", "key_you"
CHANNEL = "main"
UNBOUNDED = Bounds(owner_bytes=0, total_bytes=0)
MEGABYTE = 2**20
PATIENCE_SECONDS = 30.0
"""Maximum time for a read or a write, which takes milliseconds on an idle machine."""


@pytest.fixture
def store(emptied_store: Store) -> Store:
    return emptied_store


@asynccontextmanager
async def opened(
    store: Store, clock: Clock, *, memory_bytes: int = MEGABYTE, bounds: Bounds = UNBOUNDED
) -> AsyncIterator[ReasoningStore]:
    reasoning_store = ReasoningStore(
        store,
        lifetime=timedelta(days=1),
        memory_bytes=memory_bytes,
        bounds=bounds,
        clock=GivenClock(clock),
        read_seconds=PATIENCE_SECONDS,
    )
    reasoning_store.start()
    try:
        yield reasoning_store
    finally:
        await reasoning_store.aclose()


@pytest.fixture
async def reasoning_store(store: Store, clock: Clock) -> AsyncIterator[ReasoningStore]:
    async with opened(store, clock) as reasoning_store:
        yield reasoning_store


def state(data: str, channel: str = "") -> pb.ReasoningState:
    return pb.ReasoningState(data=data, format="messages", channel=channel)


def thought(text: str, signature: str = "", channel: str = "") -> pb.Part:
    signed = state(signature, channel) if signature else None
    return pb.Part(reasoning=pb.ReasoningPart(texts=[text]), state=signed)


def call(call_id: str, signature: str = "", channel: str = "") -> pb.Part:
    signed = state(signature, channel) if signature else None
    return pb.Part(tool_call=pb.ToolCall(call_id=call_id, name="f", arguments_json="{}"), state=signed)


def text(content: str) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=content))


def result(call_id: str) -> pb.Message:
    return pb.Message(role=pb.ROLE_TOOL, parts=[pb.Part(tool_result=pb.ToolResult(call_id=call_id))])


def turn(*parts: pb.Part) -> pb.Message:
    return pb.Message(role=pb.ROLE_ASSISTANT, parts=parts)


def request(*messages: pb.Message) -> pb.GenerateRequest:
    question = pb.Message(role=pb.ROLE_USER, parts=[text("Weather?")])
    return pb.GenerateRequest(model="m", messages=[question, *messages])


@dataclass(frozen=True)
class Case:
    id: str
    answer: Sequence[pb.Part]
    sent: Sequence[pb.Message]
    restored: Sequence[pb.Message]
    also: Sequence[Sequence[pb.Part]] = field(default=())  # further answers


REDACTED = pb.Part(reasoning=pb.ReasoningPart(redacted=True), state=state("hidden"))
REDACTED_BACK = pb.Part(reasoning=pb.ReasoningPart(redacted=True), state=state("hidden", CHANNEL))

CASES = [
    Case(
        id="reasoning with its signature precedes the call again",
        answer=[thought("hm", "s"), call("a")],
        sent=[turn(call("a")), result("a")],
        restored=[turn(thought("hm", "s", CHANNEL), call("a")), result("a")],
    ),
    Case(
        id="thoughts stand before the text that came between them and the call",
        answer=[thought("hm", "s"), text("Let me see."), call("a")],
        sent=[turn(text("Let me see."), call("a"))],
        restored=[turn(thought("hm", "s", CHANNEL), text("Let me see."), call("a"))],
    ),
    Case(
        id="a hidden thought comes back hidden",
        answer=[REDACTED, thought("hm", "s"), call("a")],
        sent=[turn(call("a"))],
        restored=[turn(REDACTED_BACK, thought("hm", "s", CHANNEL), call("a"))],
    ),
    Case(
        id="a call's own state is on it again",
        answer=[call("a", "s"), call("b")],
        sent=[turn(call("a"), call("b"))],
        restored=[turn(call("a", "s", CHANNEL), call("b"))],
    ),
    Case(
        id="parallel calls have their thoughts once, before the first",
        answer=[thought("hm", "s"), call("a"), call("b")],
        sent=[turn(call("a"), call("b"))],
        restored=[turn(thought("hm", "s", CHANNEL), call("a"), call("b"))],
    ),
    Case(
        id="also when only the second of them was sent",
        answer=[thought("hm", "s"), call("a"), call("b")],
        sent=[turn(call("b"))],
        restored=[turn(thought("hm", "s", CHANNEL), call("b"))],
    ),
    Case(
        id="thoughts between calls stay between them",
        answer=[thought("1", "s1"), call("a"), thought("2", "s2"), call("b")],
        sent=[turn(call("a"), call("b"))],
        restored=[turn(thought("1", "s1", CHANNEL), call("a"), thought("2", "s2", CHANNEL), call("b"))],
    ),
    Case(
        id="items that are messages of their own are one turn",
        answer=[thought("hm", "s"), text("Let me see."), call("a"), call("b")],
        sent=[turn(text("Let me see.")), turn(call("a")), turn(call("b"))],
        restored=[turn(thought("hm", "s", CHANNEL), text("Let me see.")), turn(call("a")), turn(call("b"))],
    ),
    Case(
        id="every turn has its own thoughts",
        answer=[thought("1", "s1"), call("a")],
        also=[[thought("2", "s2"), call("b")]],
        sent=[turn(call("a")), result("a"), turn(call("b")), result("b")],
        restored=[
            *(turn(thought("1", "s1", CHANNEL), call("a")), result("a")),
            *(turn(thought("2", "s2", CHANNEL), call("b")), result("b")),
        ],
    ),
    Case(
        id="of a provider that uses its ids again the last turn is known",
        answer=[thought("1", "s1"), call("call_0", "t1")],
        also=[[thought("2", "s2"), call("call_0", "t2")]],
        sent=[turn(call("call_0")), result("call_0"), turn(call("call_0")), result("call_0")],
        restored=[
            *(turn(call("call_0")), result("call_0")),
            *(turn(thought("2", "s2", CHANNEL), call("call_0", "t2", CHANNEL)), result("call_0")),
        ],
    ),
    Case(
        id="thoughts that came back with their state stay, and their channel is known",
        answer=[thought("hm", "s+/="), call("a", "t")],
        sent=[turn(thought("hm", "s-_"), call("a", "t"))],
        restored=[turn(thought("hm", "s-_", CHANNEL), call("a", "t", CHANNEL))],
    ),
    Case(
        id="thoughts that came back without their state give way to those with it",
        answer=[thought("hm", "s"), call("a")],
        sent=[turn(pb.Part(reasoning=pb.ReasoningPart(summaries=["hm"])), text("So:"), call("a"))],
        restored=[turn(thought("hm", "s", CHANNEL), text("So:"), call("a"))],
    ),
    Case(
        id="a message that held nothing but such thoughts goes with them",
        answer=[thought("hm", "s"), call("a")],
        sent=[turn(thought("h")), turn(thought("m")), turn(call("a"))],
        restored=[turn(thought("hm", "s", CHANNEL)), turn(call("a"))],
    ),
    Case(
        id="thoughts without a state come back where there are none",
        answer=[thought("hm"), call("a")],
        sent=[turn(call("a"))],
        restored=[turn(thought("hm"), call("a"))],
    ),
    Case(
        id="and not where there are",
        answer=[thought("hm"), call("a")],
        sent=[turn(thought("as the caller has it"), call("a"))],
        restored=[turn(thought("as the caller has it"), call("a"))],
    ),
    Case(
        id="the state of a turn without calls has its channel again",
        answer=[thought("hm", "s"), text("Sunny.")],
        sent=[turn(thought("hm", "s"), text("Sunny."))],
        restored=[turn(thought("hm", "s", CHANNEL), text("Sunny."))],
    ),
    Case(
        id="an unknown call is left alone",
        answer=[thought("hm", "s"), call("a")],
        sent=[turn(call("z")), turn(call(""))],
        restored=[turn(call("z")), turn(call(""))],
    ),
    Case(
        id="a call without an id is not remembered",
        answer=[thought("hm"), call("")],
        sent=[turn(call(""))],
        restored=[turn(call(""))],
    ),
]


@pytest.mark.parametrize("elsewhere", [False, True], ids=["in this process", "in another"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_reasoning_state_is_restored(store: Store, clock: Clock, case: Case, elsewhere: bool) -> None:
    async with opened(store, clock) as reasoning_store, opened(store, clock) as other:
        for answer in (case.answer, *case.also):
            reasoning_store.remember(ME, CHANNEL, answer)
        assert await reasoning_store.flushed(PATIENCE_SECONDS)
        sent = request(*case.sent)
        before = sent.SerializeToString(deterministic=True)
        restored = await (other if elsewhere else reasoning_store).restore(ME, sent)
        assert list(restored.messages) == list(request(*case.restored).messages)
        assert sent.SerializeToString(deterministic=True) == before, "the caller's request stays as it is"
        assert (restored is sent) == (case.sent == case.restored)
        assert await (other if elsewhere else reasoning_store).restore(YOU, sent) is sent, (
            "another caller knows nothing"
        )


async def test_all_reasoning_states_of_a_long_conversation_are_restored(reasoning_store: ReasoningStore) -> None:
    for number in range(3 * MAX_INLINE_ENTRIES):
        reasoning_store.remember(ME, CHANNEL, [thought(f"{number}", "s"), call(f"{number}")])
    restored = await reasoning_store.restore(
        ME, request(*(turn(call(f"{number}")) for number in range(3 * MAX_INLINE_ENTRIES)))
    )
    assert [message.parts[0].reasoning.texts[0] for message in restored.messages[1:]] == [
        str(number) for number in range(3 * MAX_INLINE_ENTRIES)
    ]


async def test_only_reasoning_state_of_the_channel_is_restored(reasoning_store: ReasoningStore) -> None:
    reasoning_store.remember(ME, CHANNEL, [thought("hm", "s"), call("a", "t")])
    reasoning_store.remember(ME, "other", [thought("hm", "u"), call("b")])
    restored = await reasoning_store.restore(
        ME, request(turn(call("a")), result("a"), turn(call("b"))), channel="other"
    )
    assert list(restored.messages[1:]) == [turn(call("a")), result("a"), turn(thought("hm", "u", "other"), call("b"))]


async def test_the_newest_state_pins_the_channel(reasoning_store: ReasoningStore) -> None:
    reasoning_store.remember(ME, "first", [thought("hm", "s"), call("a")])
    reasoning_store.remember(ME, "second", [thought("hm", "t"), call("b")])
    sent = request(turn(call("a")), result("a"), turn(call("b")), result("b"))
    assert pinned_channel(sent) == ""
    assert pinned_channel(await reasoning_store.restore(ME, sent)) == "second"
    assert pinned_channel(await reasoning_store.restore(ME, request(turn(thought("hm", "s"))))) == "first"


@pytest.mark.parametrize(
    ("sent", "needed"),
    [
        (request(), False),
        (request(turn(text("Hi"))), False),
        (request(turn(thought("hm"), text("Hi"))), False),
        (request(turn(call(""))), False),
        (request(result("a")), False),
        (request(turn(thought("hm", "s", CHANNEL))), False),
        (request(turn(thought("hm", "s"))), True),
        (request(turn(text("Hi"), call("a")), result("a")), True),
    ],
)
async def test_a_request_that_needs_no_stored_state_is_unchanged(
    reasoning_store: ReasoningStore, sent: pb.GenerateRequest, needed: bool
) -> None:
    assert needs(sent) is needed
    if not needed:
        assert await reasoning_store.restore(ME, sent) is sent


async def test_ids_and_states_of_any_length_are_remembered(reasoning_store: ReasoningStore) -> None:
    long, odd = "x" * 100_000, "\0'\U0001f600"
    reasoning_store.remember(ME, CHANNEL, [thought("hm", long), call(long), call(odd)])
    assert await reasoning_store.flushed(PATIENCE_SECONDS)
    restored = await reasoning_store.restore(ME, request(turn(call(odd))))
    assert restored.messages[1] == turn(thought("hm", long, CHANNEL), call(odd))


async def test_recently_used_state_is_kept_and_other_state_expires(
    store: Store, module_database: Database, clock: Clock
) -> None:
    other_store = await open_store(module_database.url, module_database.data_dir)
    async with opened(store, clock) as reasoning_store, opened(other_store, clock) as other:
        reasoning_store.remember(ME, CHANNEL, [thought("hm"), call("used")])
        reasoning_store.remember(ME, CHANNEL, [thought("hm"), call("unused")])
        used, unused = request(turn(call("used"))), request(turn(call("unused")))
        for _ in range(3):
            clock.time += timedelta(hours=20)
            assert await reasoning_store.restore(ME, used) is not used
            assert await reasoning_store.flushed(PATIENCE_SECONDS)
        assert await other.restore(ME, used) is not used
        assert await reasoning_store.restore(ME, unused) is unused
        await reasoning_store.sweep()
        async with store.read() as session:
            assert await session.scalar(select(func.count()).select_from(ReasoningRow)) == 1
        clock.time += timedelta(days=1)
        assert await reasoning_store.restore(ME, used) is used
        assert await other.restore(ME, used) is used
    await other_store.aclose()


async def test_state_used_by_another_process_does_not_expire(
    store: Store, module_database: Database, clock: Clock
) -> None:
    other_store = await open_store(module_database.url, module_database.data_dir)
    async with opened(store, clock) as reasoning_store, opened(other_store, clock) as other:
        reasoning_store.remember(ME, CHANNEL, [thought("hm"), call("a")])
        assert await reasoning_store.flushed(PATIENCE_SECONDS)
        sent = request(turn(call("a")))
        clock.time += timedelta(hours=20)
        assert await other.restore(ME, sent) is not sent
        assert await other.flushed(PATIENCE_SECONDS)
        clock.time += timedelta(hours=20)
        assert await reasoning_store.restore(ME, sent) is not sent
    await other_store.aclose()


async def test_a_use_is_not_written_each_time(store: Store, module_database: Database, clock: Clock) -> None:
    async with opened(store, clock) as reasoning_store:
        reasoning_store.remember(ME, CHANNEL, [thought("hm"), call("a")])
        assert await reasoning_store.flushed(PATIENCE_SECONDS)
        async with store.write() as session:
            await session.execute(ReasoningRow.__table__.delete())
        sent = request(turn(call("a")))
        for _ in range(10):
            clock.time += timedelta(minutes=5)
            assert await reasoning_store.restore(ME, sent) is not sent
        assert await reasoning_store.flushed(PATIENCE_SECONDS)
        async with store.read() as session:
            assert await session.scalar(select(func.count()).select_from(ReasoningRow)) == 0


async def test_state_evicted_from_memory_is_found_in_the_store(store: Store, clock: Clock) -> None:
    async with opened(store, clock, memory_bytes=20 * ENTRY_BYTES) as reasoning_store:
        names = [f"call {number}" for number in range(100)]
        for name in names:
            reasoning_store.remember(ME, CHANNEL, [thought("hm"), call(name)])
            assert 0 < reasoning_store.size <= 20 * ENTRY_BYTES
        for name in names:
            sent = request(turn(call(name)))
            assert await reasoning_store.restore(ME, sent) is not sent, name
            assert reasoning_store.size <= 20 * ENTRY_BYTES
        long = "x" * 20 * ENTRY_BYTES
        reasoning_store.remember(ME, CHANNEL, [thought(long), call("too long")])
        sent = request(turn(call("too long")))
        assert await reasoning_store.restore(ME, sent) is sent


async def test_the_store_is_held_to_its_bounds(store: Store, clock: Clock) -> None:
    bounds = Bounds(owner_bytes=5 * ENTRY_BYTES, total_bytes=8 * ENTRY_BYTES)
    async with opened(store, clock, bounds=bounds) as reasoning_store:
        for number in range(10):
            for owner in (ME, YOU):
                clock.time += timedelta(seconds=1)
                reasoning_store.remember(owner, CHANNEL, [thought("hm"), call(f"call {number}")])
        assert await reasoning_store.flushed(PATIENCE_SECONDS)
        await reasoning_store.sweep()
        async with store.read() as session:
            sizes = select(ReasoningRow.owner, func.sum(ReasoningRow.size_bytes)).group_by(ReasoningRow.owner)
            left = {owner: int(size) for owner, size in await session.execute(sizes)}
    assert set(left) == {ME, YOU}
    assert max(left.values()) <= bounds.owner_bytes
    assert 0 < sum(left.values()) <= bounds.total_bytes


async def test_without_its_database_the_reasoning_store_uses_its_memory(tmp_path: Path, clock: Clock) -> None:
    store = await open_store("sqlite", tmp_path)
    async with opened(store, clock) as reasoning_store:
        with closing(sqlite3.connect(tmp_path / "umg.db", isolation_level=None, check_same_thread=False)) as stranger:
            stranger.execute("ALTER TABLE reasoning RENAME TO elsewhere")
            reasoning_store.remember(ME, CHANNEL, [thought("hm"), call("a")])
            sent = request(turn(call("a"), call("unknown")))
            restored = await reasoning_store.restore(ME, sent)
            assert restored.messages[1] == turn(thought("hm"), call("a"), call("unknown"))
            await asyncio.to_thread(stranger.execute, "ALTER TABLE elsewhere RENAME TO reasoning")
    async with store.read() as session:
        assert await session.scalar(select(func.count()).select_from(ReasoningRow)) == 1, "written when it is back"
    await store.aclose()


async def test_an_unknown_call_is_looked_up_once(postgres: Postgres, tmp_path: Path, clock: Clock) -> None:
    store = await open_store(postgres.create("asked_once"), tmp_path)
    async with opened(store, clock) as reasoning_store, opened(store, clock) as other:
        sent = request(turn(call("a")))
        assert await reasoning_store.restore(ME, sent) is sent
        other.remember(ME, CHANNEL, [thought("hm"), call("a")])
        assert await other.flushed(PATIENCE_SECONDS)
        assert await reasoning_store.restore(ME, sent) is sent, "that it is not there is remembered for a while"
        clock.time += timedelta(minutes=1)
        assert await reasoning_store.restore(ME, sent) is not sent
        reasoning_store.remember(ME, CHANNEL, [thought("hm"), call("b")])
        assert await reasoning_store.restore(ME, request(turn(call("b")))) != request(turn(call("b")))
    await store.aclose()


names = st.sampled_from(["a", "b", "c", "d", "e", "\0", "long" * 99])
signatures = st.just("") | st.binary(min_size=1, max_size=6).map(lambda data: base64.b64encode(data).decode())
owners = st.sampled_from([ME, YOU])
answers = st.lists(
    st.one_of(
        st.builds(thought, st.text(max_size=5), signatures),
        st.builds(text, st.text(max_size=5)),
        st.builds(call, names, signatures),
    ),
    max_size=6,
    unique_by=lambda part: part.tool_call.call_id if part.HasField("tool_call") else id(part),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(owners, answers), max_size=8), st.integers(4, 40))
def test_stored_state_is_restored_only_for_its_owner(
    tmp_path_factory: pytest.TempPathFactory, remembered: list[tuple[str, list[pb.Part]]], entries: int
) -> None:
    directory = tmp_path_factory.mktemp("reasoning_store")
    asyncio.run(_comes_back(directory, remembered, entries * ENTRY_BYTES))


async def _comes_back(directory: Path, remembered: list[tuple[str, list[pb.Part]]], memory_bytes: int) -> None:
    """Check that the reasoning is restored, for any limit of memory, and also by a process whose memory is empty."""
    await create_database(directory)
    store, clock = await open_store("sqlite", directory), Clock()
    expected = dict[tuple[str, str], list[pb.Part]]()
    async with opened(store, clock, memory_bytes=memory_bytes) as reasoning_store, opened(store, clock) as other:
        for owner, answer in remembered:
            calls = {part.tool_call.call_id: place for place, part in enumerate(answer) if part.HasField("tool_call")}
            reasoning_store.remember(owner, CHANNEL, answer)
            assert reasoning_store.size <= memory_bytes
            for call_id, place in calls.items():
                thoughts = [_signed(part) for part in answer[:place] if part.HasField("reasoning")]
                if thoughts or answer[place].HasField("state"):
                    expected[owner, call_id] = [*thoughts, _signed(answer[place])]
        assert await reasoning_store.flushed(PATIENCE_SECONDS)
        for each in (reasoning_store, other):
            for owner in (ME, YOU):
                for call_id in ("a", "b", "c", "d", "e", "\0", "long" * 99):
                    restored = await each.restore(owner, request(turn(call(call_id))))
                    assert list(restored.messages[1].parts) == expected.get((owner, call_id), [call(call_id)])
                assert each.size <= MEGABYTE
    await store.aclose()


def _signed(part: pb.Part) -> pb.Part:
    signed = pb.Part()
    signed.CopyFrom(part)
    if signed.HasField("state"):
        signed.state.channel = CHANNEL
    return signed


def test_a_long_conversation_is_searched_quickly() -> None:
    long = request(*(turn(text("x" * 1000)) for _ in range(10_000)))
    with within(0.2):
        assert not needs(long)


async def test_a_state_that_a_client_has_written_anew_is_cut_for_another_channel(
    reasoning_store: ReasoningStore,
) -> None:
    item = {"type": "reasoning.encrypted", "data": "RU5D", "index": 0}
    message = {"role": "assistant", "content": "Hi", "reasoning_details": [item]}
    provided = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    answer = (
        CHAT_FORMAT.decode_response(json.dumps(provided).encode(), pb.GenerateRequest(), False).candidates[0].message
    )
    reasoning_store.remember(ME, CHANNEL, answer.parts)
    message["reasoning_details"] = [dict(reversed(item.items()))]
    returned = CHAT_FORMAT.decode_request(json.dumps({"model": "m", "messages": [message]}).encode(), {}).canonical
    known = makers(await reasoning_store.restore(ME, returned))
    assert set(known.values()) == {CHANNEL}
    assert without_states_of_others(returned, CHANNEL, known) is returned
    assert not without_states_of_others(returned, "another", known).messages[0].parts[0].HasField("state")

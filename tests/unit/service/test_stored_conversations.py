"""Stored conversations: a response can be read, continued, listed and deleted only by the caller that created it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select

from tests.support.databases import Database
from tests.support.store_fixtures import Clock
from umg_grpc.base.errors import UmgError
from umg_grpc.config import Channel
from umg_grpc.routing import Target
from umg_grpc.service.conversations.response_input_items import items_of
from umg_grpc.service.conversations.stored_responses import (
    MAX_NAMED,
    SMALL_BYTES,
    Continued,
    Conversations,
    ResponseOrigin,
    new_response_id,
)
from umg_grpc.store import Store, database_outages, open_store
from umg_grpc.store.database_time import GivenClock
from umg_grpc.store.expired_row_sweep import Bounds
from umg_grpc.store.table_definitions import ResponseRow
from umg_grpc.v1 import pb
from umg_grpc.wire.facts_beside_request import NO_NOTES, DecodedRequest

ME, YOU = "key_me", "key_you"
CHANNEL = "main"


@pytest.fixture
def store(emptied_store: Store) -> Store:
    return emptied_store


@pytest.fixture
async def conversations(store: Store, clock: Clock) -> AsyncIterator[Conversations]:
    async with opened(store, clock) as conversations:
        yield conversations


@asynccontextmanager
async def opened(
    store: Store,
    clock: Clock,
    bounds: Bounds = Bounds(owner_bytes=0, total_bytes=0),  # noqa: B008  frozen
) -> AsyncIterator[Conversations]:
    conversations = Conversations(store, lifetime=timedelta(days=30), bounds=bounds, clock=GivenClock(clock))
    conversations.start()
    try:
        yield conversations
    finally:
        await conversations.aclose()


def channel(name: str, protocol: str) -> Target:
    return Target(Channel(name=name, protocols=(protocol,), models=()), "m", "famO", frozenset())


def message_of(text: str, role: "pb.Role.ValueType" = pb.ROLE_USER) -> pb.Message:
    return pb.Message(role=role, parts=[pb.Part(text=pb.TextPart(text=text))])


def make_request(*texts: str, previous: str = "", **fields: object) -> pb.GenerateRequest:
    body: dict[str, object] = {"model": "m", "input": [{"role": "user", "content": text} for text in texts]}
    body |= {"previous_response_id": previous} if previous else {}
    request = pb.GenerateRequest(model="m", previous_response_id=previous, messages=map(message_of, texts), **fields)
    request.source.format, request.source.body = "responses", json.dumps({**body, "x_new": 1.0}).encode()
    return request


def answered(text: str, response_id: str = "") -> pb.GenerateResponse:
    message = message_of(text, pb.ROLE_ASSISTANT)
    return pb.GenerateResponse(
        response_id=response_id or new_response_id(),
        model="m",
        candidates=[pb.Candidate(message=message, finish_reason=pb.FINISH_REASON_STOP)],
    )


async def continue_(conversations: Conversations, request: pb.GenerateRequest, owner: str = ME) -> Continued:
    return await conversations.continue_(owner, DecodedRequest(request, NO_NOTES))


async def keep(
    conversations: Conversations,
    request: pb.GenerateRequest,
    response: pb.GenerateResponse,
    continued: Continued | None = None,
    *,
    owner: str = ME,
    upstream_response_id: str = "",
) -> str:
    assert await conversations.keep(
        owner, request, response, channel=CHANNEL, streamed=True, continued=continued,
        upstream_response_id=upstream_response_id,
    )  # fmt: skip
    return response.response_id


def texts(request: pb.GenerateRequest) -> list[str]:
    return [message.parts[0].text.text for message in request.messages]


def listed(response_id: str, **fields: object) -> pb.ListInputItemsRequest:
    return pb.ListInputItemsRequest(response_id=response_id, **fields)


async def test_a_stored_response_is_returned_unchanged(conversations: Conversations) -> None:
    request = make_request("Hi", instructions=[pb.Part(text=pb.TextPart(text="Be brief."))], store=True)
    response = answered("Hello")
    response.source.format, response.source.body = "responses", b'{"id": "x"}'
    stored = await conversations.get(ME, await keep(conversations, request, response))
    assert (stored.response, stored.streamed) == (response, True)
    echoed = pb.GenerateRequest()
    echoed.CopyFrom(stored.request)
    assert json.loads(echoed.source.body) == {"model": "m", "x_new": 1.0}, "the body without its input"
    assert echoed.source.body == b'{"model":"m","x_new":1.0}', "numbers stay as they were written"
    echoed.messages.extend(request.messages)
    echoed.source.body = request.source.body
    assert echoed == request
    assert stored.request.messages == []


async def test_a_conversation_continues_when_earlier_responses_are_deleted(
    conversations: Conversations, clock: Clock
) -> None:
    first = await keep(conversations, make_request("one"), answered("1"))
    clock.time += timedelta(days=20)
    request = make_request("two", previous=first)
    continued = await continue_(conversations, request)
    assert texts(continued.whole.canonical) == ["one", "1", "two"]
    second = await keep(conversations, request, answered("2"), continued)
    await conversations.delete(ME, first)
    clock.time += timedelta(days=20)  # the first would have expired too
    request = make_request("three", "four", previous=second)
    continued = await continue_(conversations, request)
    assert texts(continued.whole.canonical) == ["one", "1", "two", "2", "three", "four"]
    third = await keep(conversations, request, answered("3"), continued)
    assert texts((await continue_(conversations, make_request(previous=third))).whole.canonical) == [
        *("one", "1", "two", "2", "three", "four", "3")
    ]


async def test_options_of_the_previous_request_are_not_inherited(conversations: Conversations) -> None:
    first = make_request("one", instructions=[pb.Part(text=pb.TextPart(text="Be brief."))], temperature=1)
    response_id = await keep(conversations, first, answered("1"), upstream_response_id="resp_theirs")
    request = make_request("two", previous=response_id, top_p=0.5)
    body = request.source.body
    continued = await continue_(conversations, request)
    assert continued.whole.canonical.previous_response_id == ""
    assert list(continued.whole.canonical.instructions) == [], "they are not inherited"
    assert not continued.whole.canonical.HasField("temperature")
    assert continued.whole.canonical.top_p == 0.5
    assert continued.whole.canonical.source.body == body
    assert continued.whole.notes.edited == ("messages", "previous_response_id")
    assert continued.origin == ResponseOrigin(CHANNEL, "resp_theirs")
    assert (request.previous_response_id, texts(request)) == (response_id, ["two"]), "the caller's stays as it is"

    by_id, notes = continued.request_for(channel(CHANNEL, "responses"))
    assert (by_id.previous_response_id, texts(by_id)) == ("resp_theirs", ["two"])
    assert notes.edited == ("previous_response_id",)
    request.previous_response_id = "resp_theirs"
    assert continued.request_for(channel(CHANNEL, "responses")).canonical is request
    for other in (channel(CHANNEL, "chat"), channel("other", "responses")):
        assert continued.request_for(other) is continued.whole


async def test_reasoning_state_is_stored_with_the_name_of_its_channel(conversations: Conversations) -> None:
    response = answered("1")
    state = pb.ReasoningState(data="opaque", format="responses")
    response.candidates[0].message.parts.insert(0, pb.Part(reasoning=pb.ReasoningPart(item_id="rs_1"), state=state))
    response_id = await keep(conversations, make_request("one"), response)
    continued = await continue_(conversations, make_request("two", previous=response_id))
    thought = continued.whole.canonical.messages[1].parts[0]
    assert (thought.state.data, thought.state.channel) == ("opaque", CHANNEL)
    assert not response.candidates[0].message.parts[0].state.channel, "the caller's answer is not touched"


async def test_an_empty_answer_adds_no_message(conversations: Conversations) -> None:
    for response in (answered(""), answered("")):
        del response.candidates[0].message.parts[:]
        response_id = await keep(conversations, make_request("one"), response)
        assert texts((await continue_(conversations, make_request("two", previous=response_id))).whole.canonical) == [
            "one",
            "two",
        ]


async def test_large_conversations_are_stored(conversations: Conversations) -> None:
    long = "0123456789" * (SMALL_BYTES // 5)
    request = make_request(long)
    response_id = await keep(conversations, request, answered(long))
    continued = await continue_(conversations, make_request("two", previous=response_id))
    assert texts(continued.whole.canonical) == [long, long, "two"]
    assert (await conversations.get(ME, response_id)).response.candidates[0].message == message_of(
        long, pb.ROLE_ASSISTANT
    )
    page = await conversations.list_items(ME, listed(response_id))
    assert [item.parts[0].text.text for item in page.items] == [long]


async def test_another_process_finds_a_response_at_once(store: Store, module_database: Database, clock: Clock) -> None:
    other = await open_store(module_database.url, module_database.data_dir)
    async with opened(store, clock) as mine, opened(other, clock) as theirs:
        for number in range(20):
            response_id = await keep(mine, make_request(str(number)), answered("1"))
            continued = await continue_(theirs, make_request("two", previous=response_id))
            assert texts(continued.whole.canonical) == [str(number), "1", "two"]
    await other.aclose()


@dataclass(frozen=True)
class Unknown:
    id: str
    response_id: str
    owner: str = ME


UNKNOWN = [
    Unknown(id="one that never was", response_id="resp_never"),
    Unknown(id="another caller's", response_id="resp_known", owner=YOU),
    Unknown(id="one that was deleted", response_id="resp_deleted"),
    Unknown(id="one that has expired", response_id="resp_old"),
    Unknown(id="none", response_id=""),
    Unknown(id="one with a character that databases refuse", response_id="resp_\0"),
    Unknown(id="one longer than any", response_id="resp_" + "x" * 5000),
]


@pytest.mark.parametrize("case", UNKNOWN, ids=lambda case: case.id)
async def test_a_response_that_is_not_the_callers_does_not_exist(
    conversations: Conversations, clock: Clock, case: Unknown
) -> None:
    await keep(conversations, make_request("one"), answered("1", "resp_old"))
    clock.time += timedelta(days=30)
    await keep(conversations, make_request("one"), answered("1", "resp_known"))
    await keep(conversations, make_request("one"), answered("1", "resp_deleted"))
    await conversations.delete(ME, "resp_deleted")
    request = make_request("two", previous=case.response_id)
    calls = {
        "continue": (continue_(conversations, request, case.owner), "previous_response_id"),
        "get": (conversations.get(case.owner, case.response_id), None),
        "delete": (conversations.delete(case.owner, case.response_id), None),
        "cancel": (conversations.cancel(case.owner, case.response_id), None),
        "list": (conversations.list_items(case.owner, listed(case.response_id)), None),
    }
    for name, (call, field) in calls.items():
        with pytest.raises(UmgError) as caught:
            await call
        assert caught.value.reason == pb.ERROR_REASON_OBJECT_NOT_FOUND, name
        assert (caught.value.metadata.get("field"), caught.value.metadata["id"]) == (field, case.response_id[:512])
    assert (await conversations.get(ME, "resp_known")).response.response_id == "resp_known"


async def test_deleting_returns_the_origin_of_the_response(conversations: Conversations) -> None:
    response_id = await keep(conversations, make_request("one"), answered("1"), upstream_response_id="resp_theirs")
    assert await conversations.delete(ME, response_id) == ResponseOrigin(CHANNEL, "resp_theirs")


async def test_two_callers_may_have_responses_of_one_id(conversations: Conversations) -> None:
    for owner in (ME, YOU):
        await keep(conversations, make_request(owner), answered("1", "resp_1"), owner=owner)
    await conversations.delete(YOU, "resp_1")
    assert texts((await continue_(conversations, make_request(previous="resp_1"))).whole.canonical) == [ME, "1"]


async def test_of_two_responses_of_one_id_the_later_stays(conversations: Conversations) -> None:
    await keep(conversations, make_request("one"), answered("1", "resp_1"))
    await keep(conversations, make_request("two"), answered("2", "resp_1"))
    assert texts((await continue_(conversations, make_request(previous="resp_1"))).whole.canonical) == ["two", "2"]


@pytest.mark.parametrize("status", ["", "incomplete"])
async def test_a_finished_response_cannot_be_cancelled(conversations: Conversations, status: str) -> None:
    response = answered("1")
    response.status = status
    await keep(conversations, make_request("one"), response)
    with pytest.raises(UmgError) as caught:
        await conversations.cancel(ME, response.response_id)
    assert caught.value.reason == pb.ERROR_REASON_WRONG_STATE
    assert caught.value.metadata == {"state": status or "completed"}


@pytest.mark.parametrize("response_id", ["", "no\nline", "x" * 513])
async def test_an_id_that_cannot_be_looked_up_is_not_stored(conversations: Conversations, response_id: str) -> None:
    response = answered("1")
    response.response_id = response_id
    assert not await conversations.keep(ME, make_request("one"), response, channel=CHANNEL, streamed=False)


async def test_the_oldest_responses_go_when_there_are_too_many_bytes(store: Store, clock: Clock) -> None:
    async with opened(store, clock, Bounds(owner_bytes=3000, total_bytes=0)) as conversations:
        ids = []
        for number in range(20):
            clock.time += timedelta(seconds=1)
            ids.append(await keep(conversations, make_request(f"{number}"), answered("1")))
        await keep(conversations, make_request("mine"), answered("1"), owner=YOU)
        await conversations.sweep()
        async with store.read() as session:
            left = list(
                await session.scalars(
                    select(ResponseRow.object_id).where(ResponseRow.owner == ME).order_by(ResponseRow.create_time)
                )
            )
            size = await session.scalar(select(func.sum(ResponseRow.size_bytes)).where(ResponseRow.owner == ME))
            total_rows = await session.scalar(select(func.count()).select_from(ResponseRow))
    assert 0 < len(left) < 20
    assert left == ids[-len(left) :]
    assert size <= 3000
    assert total_rows == len(left) + 1


async def test_keeping_many_at_once_loses_none(conversations: Conversations) -> None:
    ids = await asyncio.gather(*(keep(conversations, make_request(str(n)), answered(str(n))) for n in range(200)))
    for number, response_id in enumerate(ids):
        request = (await continue_(conversations, make_request(previous=response_id))).whole.canonical
        assert texts(request) == [str(number)] * 2


def test_an_id_of_ours_cannot_be_guessed() -> None:
    ids = {new_response_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(each) == 37 and each.startswith("resp_") and each[5:].isalnum() for each in ids)


# --- items


CALL = pb.Part(tool_call=pb.ToolCall(call_id="c", name="f", arguments_json="{}"))
RESULT = pb.Part(tool_result=pb.ToolResult(call_id="c"))
THOUGHT = pb.Part(reasoning=pb.ReasoningPart(texts=["hm"], item_id="rs_theirs"))
IMAGE = pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, uri="https://a.test/"))
SEARCH = pb.Part(server_tool_call=pb.ServerToolCall(call_id="ws_theirs", name="web_search"))
NEW = pb.Part(opaque=pb.OpaquePart(format="responses", type="new", json='{"type": "new", "id": "new_theirs"}'))
ODD = pb.Part(opaque=pb.OpaquePart(format="responses", type="odd", json='{"type": "odd", "id": 7}'))


async def test_the_items_of_a_request_are_listed_with_ids_that_stay(conversations: Conversations) -> None:
    first = await keep(conversations, make_request("zero"), answered("0"))
    request = make_request("one", previous=first)
    given_id = message_of("two")
    given_id.message_id = "msg_theirs"
    turn = pb.Message(
        role=pb.ROLE_ASSISTANT, parts=[THOUGHT, *message_of("three").parts, *message_of("four").parts, CALL, SEARCH]
    )
    request.messages.extend([given_id, turn, pb.Message(role=pb.ROLE_USER, parts=[RESULT, IMAGE])])
    request.messages.extend([pb.Message(parts=[NEW]), pb.Message(parts=[ODD]), given_id])
    response_id = await keep(conversations, request, answered("5"), await continue_(conversations, request))

    page = await conversations.list_items(ME, listed(response_id, ascending=True))
    ids = [item.message_id for item in page.items]
    assert [[part.WhichOneof("kind") for part in item.parts] for item in page.items] == [
        *(["text"], ["text"], ["reasoning"], ["text", "text"], ["tool_call"], ["server_tool_call"]),
        *(["tool_result"], ["media"], ["opaque"], ["opaque"], ["text"]),
    ]
    assert [each.split("_")[0] for each in ids] == [
        *("msg", "msg", "rs", "msg", "fc", "ws", "fco", "msg", "new", "msg", "msg")
    ]
    assert [each for each in ids if each.endswith("theirs")] == ["msg_theirs", "rs_theirs", "ws_theirs", "new_theirs"]
    assert len(set(ids)) == len(ids)
    assert page.items[4].parts[0].tool_call.item_id == ids[4]
    assert page.items[6].parts[0].tool_result.item_id == ids[6]
    assert {item.role for item in page.items[2:6]} == {pb.ROLE_ASSISTANT}
    assert page.next_page_token == ""
    assert await conversations.list_items(ME, listed(response_id, ascending=True)) == page

    newest_first = await conversations.list_items(ME, listed(response_id))
    assert [item.message_id for item in newest_first.items] == ids[::-1]


@pytest.mark.parametrize("ascending", [True, False])
async def test_pages_of_items_follow_one_another(conversations: Conversations, ascending: bool) -> None:
    words = [str(number) for number in range(45)]
    response_id = await keep(conversations, make_request(*words), answered("1"))
    pages, token = [], ""
    while True:
        page = await conversations.list_items(
            ME, listed(response_id, page_size=20, page_token=token, ascending=ascending)
        )
        pages.append([item.parts[0].text.text for item in page.items])
        token = page.next_page_token
        if not token:
            break
    assert [len(page) for page in pages] == [20, 20, 5]
    assert [word for page in pages for word in page] == (words if ascending else words[::-1])
    after = page.items[-1].message_id
    last = await conversations.list_items(ME, listed(response_id, page_token=after, ascending=ascending))
    assert (list(last.items), last.next_page_token) == ([], "")
    default = await conversations.list_items(ME, listed(response_id))
    assert (len(default.items), default.next_page_token) == (20, default.items[-1].message_id)


@given(
    st.lists(
        st.sampled_from([CALL, RESULT, THOUGHT, IMAGE, SEARCH, NEW, *message_of("a").parts]), min_size=1, max_size=8
    )
)
def test_items_are_the_message_in_pieces(parts: list[pb.Part]) -> None:
    message = pb.Message(role=pb.ROLE_USER, parts=parts, name="n")
    items = list(items_of(message))
    assert [part.WhichOneof("kind") for item in items for part in item.parts] == [
        part.WhichOneof("kind") for part in parts
    ]
    assert {(item.role, item.name) for item in items} == {(pb.ROLE_USER, "n")}
    assert all(len(item.parts) == 1 or not item.parts[0].HasField("tool_call") for item in items)


async def test_items_of_too_many_responses_are_refused_before_any_is_read(conversations: Conversations) -> None:
    named = [
        pb.Message(
            parts=[
                pb.Part(
                    opaque=pb.OpaquePart(
                        format="responses",
                        type="item_reference",
                        json=json.dumps({"type": "item_reference", "id": f"msg_umg_{number:032x}_0"}),
                    )
                )
            ]
        )
        for number in range(MAX_NAMED + 1)
    ]
    with pytest.raises(UmgError) as caught:
        await conversations.resolve(ME, pb.GenerateRequest(model="m", messages=named))
    assert (caught.value.reason, caught.value.metadata["field"]) == (pb.ERROR_REASON_INVALID_FIELD, "input")
    with pytest.raises(UmgError) as caught:
        await conversations.resolve(ME, pb.GenerateRequest(model="m", messages=named[1:]))
    assert caught.value.reason == pb.ERROR_REASON_OBJECT_NOT_FOUND


async def test_an_unknown_response_may_be_tried_again_until_ten_seconds_after_an_outage(
    conversations: Conversations, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons = list[pb.ErrorReason.ValueType]()

    async def read() -> None:
        with pytest.raises(UmgError) as caught:
            await conversations.get(ME, "resp_unknown")
        reasons.append(caught.value.reason)

    await read()
    store.reconnection.mark_away(OSError("the connection is lost"))
    async with asyncio.timeout(60):
        await store.reconnection.returned.wait()
    await read()
    monkeypatch.setattr(database_outages, "UNWRITTEN_SECONDS", 0.0)
    await read()
    assert reasons == [
        pb.ERROR_REASON_OBJECT_NOT_FOUND,
        pb.ERROR_REASON_UNAVAILABLE,
        pb.ERROR_REASON_OBJECT_NOT_FOUND,
    ]

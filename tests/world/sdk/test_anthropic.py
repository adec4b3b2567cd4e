"""The official anthropic SDK, unmodified, against the gateway: it drives a model of another vendor's family."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

import anthropic
import pytest
import pytest_asyncio
from anthropic import AsyncAnthropic
from anthropic.types import Message, TextBlock, ThinkingBlock, ToolUseBlock

from tests.support.gateways import Running
from tests.world.sdk.cases import (
    DESCRIPTION,
    RESULT,
    SCHEMA,
    SEARCH,
    TIME,
    WEATHER,
    WEATHER_AND_TIME_QUESTION,
    WEATHER_QUESTION,
    check_arguments,
    picture_base64,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL = "famO-5"
TOOLS = [{"name": name, "description": DESCRIPTION, "input_schema": SCHEMA} for name in (WEATHER, TIME)]
THINKING = {"type": "enabled", "budget_tokens": 2048}
LIMIT = 4096


@pytest_asyncio.fixture(loop_scope="module")
async def client(sandbox: Running) -> AsyncGenerator[AsyncAnthropic, None]:
    async with AsyncAnthropic(base_url=sandbox.url, api_key=sandbox.key, max_retries=0) as sdk:
        yield sdk


def user(text: str) -> list[dict[str, object]]:
    return [{"role": "user", "content": text}]


async def create_message(client: AsyncAnthropic, stream: bool, **fields: object) -> Message:
    """Return the response, whole or aggregated by the SDK."""
    request = {"model": MODEL, "max_tokens": LIMIT, **fields}
    if not stream:
        return await client.messages.create(**request)
    async with client.messages.stream(**request) as events:
        return await events.get_final_message()


def text_of(message: Message) -> str:
    return "".join(block.text for block in message.content if isinstance(block, TextBlock))


def calls_of(message: Message) -> list[ToolUseBlock]:
    return [block for block in message.content if isinstance(block, ToolUseBlock)]


both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@both_ways
async def test_an_answer(client: AsyncAnthropic, stream: bool) -> None:
    message = await create_message(client, stream, messages=user("Hello there"), system="Be brief.")
    assert text_of(message)
    assert (message.role, message.model, message.stop_reason) == ("assistant", MODEL, "end_turn")
    assert message.usage.input_tokens > 0
    assert message.usage.output_tokens > 0


async def test_a_streamed_answer_has_the_text_of_the_whole_one(client: AsyncAnthropic) -> None:
    whole, streamed = [
        await create_message(client, stream, messages=user("Tell me of the sea.")) for stream in (False, True)
    ]
    assert text_of(whole) == text_of(streamed)
    assert whole.usage.output_tokens == streamed.usage.output_tokens


@both_ways
async def test_a_tool_in_two_stages_with_thinking(client: AsyncAnthropic, stream: bool) -> None:
    first = await create_message(client, stream, messages=user(WEATHER_QUESTION), tools=TOOLS, thinking=THINKING)
    assert isinstance(first.content[0], ThinkingBlock)
    assert first.content[0].thinking
    assert first.content[0].signature
    (call,) = calls_of(first)
    assert (call.name, first.stop_reason) == (WEATHER, "tool_use")
    check_arguments(call.input)
    history = [
        *user(WEATHER_QUESTION),
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": RESULT}]},
    ]
    second = await create_message(client, stream, messages=history, tools=TOOLS, thinking=THINKING)
    assert RESULT in text_of(second)
    assert second.stop_reason == "end_turn"


@both_ways
async def test_parallel_tools(client: AsyncAnthropic, stream: bool) -> None:
    message = await create_message(client, stream, messages=user(WEATHER_AND_TIME_QUESTION), tools=TOOLS)
    calls = calls_of(message)
    assert sorted(call.name for call in calls) == sorted([WEATHER, TIME])
    assert len({call.id for call in calls}) == 2
    for call in calls:
        check_arguments(call.input)
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": f"{call.name}: {RESULT}"} for call in calls]
    history = [
        *user(WEATHER_AND_TIME_QUESTION),
        {"role": "assistant", "content": message.content},
        {"role": "user", "content": results},
    ]
    second = await create_message(client, stream, messages=history, tools=TOOLS)
    assert all(f"{call.name}: {RESULT}" in text_of(second) for call in calls)


@both_ways
async def test_a_forced_tool(client: AsyncAnthropic, stream: bool) -> None:
    message = await create_message(
        client, stream, messages=user("Hello"), tools=TOOLS, tool_choice={"type": "tool", "name": TIME}
    )
    assert [call.name for call in calls_of(message)] == [TIME]


async def test_at_most_one_tool_when_parallel_use_is_off(client: AsyncAnthropic) -> None:
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    message = await create_message(
        client, False, messages=user(WEATHER_AND_TIME_QUESTION), tools=TOOLS, tool_choice=choice
    )
    assert len(calls_of(message)) == 1


@both_ways
async def test_an_image_is_seen(client: AsyncAnthropic, stream: bool) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": picture_base64()}
    content = [{"type": "image", "source": source}, {"type": "text", "text": "What is it?"}]
    message = await create_message(client, stream, messages=[{"role": "user", "content": content}])
    assert "image/png" in text_of(message)
    assert "31" in text_of(message)
    assert "17" in text_of(message)


@both_ways
async def test_a_search_gives_citations(client: AsyncAnthropic, stream: bool) -> None:
    tool = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    message = await create_message(client, stream, messages=user(SEARCH), tools=[tool])
    kinds = [block.type for block in message.content]
    assert "server_tool_use" in kinds
    assert "web_search_tool_result" in kinds
    cited = [
        citation for block in message.content if isinstance(block, TextBlock) for citation in block.citations or ()
    ]
    assert cited
    assert all(citation.type == "web_search_result_location" for citation in cited)
    assert all(citation.url.startswith("https://") for citation in cited)
    assert message.stop_reason == "end_turn"


@both_ways
async def test_limits_and_stop_sequences(client: AsyncAnthropic, stream: bool) -> None:
    short = await create_message(client, stream, messages=user("Tell me of the sea."), max_tokens=5)
    assert short.stop_reason == "max_tokens"
    assert short.usage.output_tokens <= 5
    whole = text_of(await create_message(client, False, messages=user("Tell me of the sea.")))
    word = whole.split()[6]
    stopped = await create_message(client, stream, messages=user("Tell me of the sea."), stop_sequences=[word])
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", word)
    assert word not in text_of(stopped)


async def test_tokens_are_counted(client: AsyncAnthropic) -> None:
    fewer = await client.messages.count_tokens(model=MODEL, messages=user("Hello"))
    more = await client.messages.count_tokens(model=MODEL, messages=user("Hello"), system="Be brief.", tools=TOOLS)
    assert 0 < fewer.input_tokens < more.input_tokens


async def test_cancelling_a_stream_leaves_the_client_usable(client: AsyncAnthropic) -> None:
    async with client.messages.stream(model=MODEL, max_tokens=LIMIT, messages=user("Tell me of the sea.")) as events:
        async for text in events.text_stream:
            assert text
            break
    assert text_of(await create_message(client, False, messages=user("Hello")))


@dataclass(frozen=True)
class Failure:
    id: str
    call: Callable[[AsyncAnthropic], Awaitable[object]]
    raises: type[anthropic.APIStatusError]
    expected_message: str


def failing(**fields: object) -> Callable[[AsyncAnthropic], Awaitable[object]]:
    return lambda client: create_message(client, False, **{"messages": user("Hi"), **fields})


FAILURES = [
    Failure("an unknown model", failing(model="nope"), anthropic.NotFoundError, "nope"),
    Failure("no tokens", failing(max_tokens=0), anthropic.BadRequestError, "max_tokens"),
    Failure("no messages", failing(messages=[]), anthropic.BadRequestError, "messages"),
    Failure("a budget of 1024", failing(thinking={"type": "enabled", "budget_tokens": 1024}), anthropic.BadRequestError, "thinking.budget_tokens"),
    Failure("a role of another format", failing(messages=[{"role": "tool", "content": "x"}]), anthropic.BadRequestError, "messages[0].role"),
    Failure("a rate limit", failing(messages=user("[[fail:429]]")), anthropic.RateLimitError, ""),
    Failure("a broken provider", failing(messages=user("[[fail]]")), anthropic.InternalServerError, ""),
    Failure("a wrong key", lambda client: client.with_options(api_key="sk-umg-wrong").messages.create(model=MODEL, max_tokens=1, messages=user("Hi")), anthropic.AuthenticationError, "key"),
    Failure("a wrong key for counting", lambda client: client.with_options(api_key="sk-umg-wrong").messages.count_tokens(model=MODEL, messages=user("Hi")), anthropic.AuthenticationError, "key"),
]  # fmt: skip


@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case.id)
async def test_a_failure_is_the_sdks_own_exception(case: Failure, client: AsyncAnthropic) -> None:
    with pytest.raises(case.raises) as caught:
        await case.call(client)
    assert case.expected_message in caught.value.message
    assert caught.value.request_id


async def test_a_stream_that_breaks_off_raises(client: AsyncAnthropic) -> None:
    with pytest.raises(anthropic.APIStatusError):
        await create_message(client, True, messages=user("[[fail:mid]] Tell me of the sea."))


async def test_the_older_header_is_a_key_too(sandbox: Running) -> None:
    headers = {"x-api-key": sandbox.key, "Authorization": anthropic.omit}
    async with AsyncAnthropic(base_url=sandbox.url, api_key=sandbox.key, default_headers=headers) as sdk:
        assert text_of(await create_message(sdk, False, messages=user("Hello")))

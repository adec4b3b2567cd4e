"""The official openai SDK, unmodified, against models of other vendors' families: chat completions and responses."""

import json
from collections.abc import AsyncGenerator

import openai
import pytest
import pytest_asyncio
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from pydantic import BaseModel

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

MODEL = "famC-sonnet-4-5"
CHAT_TOOLS = [
    {"type": "function", "function": {"name": name, "description": DESCRIPTION, "parameters": SCHEMA, "strict": True}}
    for name in (WEATHER, TIME)
]
TOOLS = [
    {"type": "function", "name": name, "description": DESCRIPTION, "parameters": SCHEMA, "strict": True}
    for name in (WEATHER, TIME)
]

both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@pytest_asyncio.fixture(loop_scope="module")
async def client(sandbox: Running) -> AsyncGenerator[AsyncOpenAI, None]:
    async with AsyncOpenAI(base_url=f"{sandbox.url}/v1", api_key=sandbox.key, max_retries=0) as sdk:
        yield sdk


def user(text: str) -> list[dict[str, object]]:
    return [{"role": "user", "content": text}]


class City(BaseModel):
    name: str
    population: int
    tags: list[str]


# --- chat completions


async def chat(client: AsyncOpenAI, stream: bool, **fields: object) -> ChatCompletion:
    """Return the response, whole or aggregated by the SDK."""
    request = {"model": MODEL, **fields}
    if not stream:
        return await client.chat.completions.create(**request)
    async with client.chat.completions.stream(**request, stream_options={"include_usage": True}) as events:
        async for _ in events:
            pass
        return await events.get_final_completion()


@both_ways
async def test_a_chat_answer(client: AsyncOpenAI, stream: bool) -> None:
    answer = await chat(client, stream, messages=user("Hello there"))
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == MODEL
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


@both_ways
async def test_a_chat_tool_in_two_stages_with_thinking(client: AsyncOpenAI, stream: bool) -> None:
    """Check that the signature is kept for stage two: the SDK strips fields that chat does not have."""
    thinking = {"thinking": {"type": "enabled", "budget_tokens": 2048}}
    first = await chat(client, stream, messages=user(WEATHER_QUESTION), tools=CHAT_TOOLS, extra_body=thinking)
    message = first.choices[0].message
    assert first.choices[0].finish_reason == "tool_calls"
    assert message.model_extra
    assert message.model_extra["reasoning_content"]
    (call,) = message.tool_calls or ()
    assert call.function.name == WEATHER
    check_arguments(json.loads(call.function.arguments))
    turn = {"role": "assistant", "content": None, "tool_calls": [call.model_dump(include={"id", "type", "function"})]}
    history = [*user(WEATHER_QUESTION), turn, {"role": "tool", "tool_call_id": call.id, "content": RESULT}]
    second = await chat(client, stream, messages=history, tools=CHAT_TOOLS, extra_body=thinking)
    assert RESULT in (second.choices[0].message.content or "")


@both_ways
async def test_parallel_chat_tools(client: AsyncOpenAI, stream: bool) -> None:
    answer = await chat(client, stream, messages=user(WEATHER_AND_TIME_QUESTION), tools=CHAT_TOOLS)
    calls = answer.choices[0].message.tool_calls or ()
    assert sorted(call.function.name for call in calls) == sorted([WEATHER, TIME])
    assert len({call.id for call in calls}) == 2


async def test_chat_output_is_parsed_by_the_sdk(client: AsyncOpenAI) -> None:
    answer = await client.chat.completions.parse(model=MODEL, messages=user("Describe Paris."), response_format=City)
    assert isinstance(answer.choices[0].message.parsed, City)


@both_ways
async def test_an_image_in_chat(client: AsyncOpenAI, stream: bool) -> None:
    content = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture_base64()}"}},
    ]
    answer = await chat(client, stream, messages=[{"role": "user", "content": content}])
    assert "image/png" in (answer.choices[0].message.content or "")


@both_ways
async def test_a_search_in_chat_gives_annotations(client: AsyncOpenAI, stream: bool) -> None:
    answer = await chat(client, stream, model="famO-5", messages=user(SEARCH), web_search_options={})
    message = answer.choices[0].message
    assert message.annotations
    for annotation in message.annotations:
        cited = annotation if isinstance(annotation, dict) else annotation.model_dump()
        place = cited["url_citation"]
        assert place["url"].startswith("https://")
        assert 0 <= place["start_index"] < place["end_index"] <= len(message.content or "")


# --- responses


async def respond(client: AsyncOpenAI, stream: bool, **fields: object) -> Response:
    request = {"model": MODEL, **fields}
    if not stream:
        return await client.responses.create(**request)
    async with client.responses.stream(**request) as events:
        numbers = [event.sequence_number async for event in events]
        assert numbers == list(range(len(numbers)))
        return await events.get_final_response()


@both_ways
async def test_a_response(client: AsyncOpenAI, stream: bool) -> None:
    response = await respond(client, stream, input="Hello there", instructions="Be brief.")
    assert response.output_text
    assert (response.status, response.model, response.instructions) == ("completed", MODEL, "Be brief.")
    assert response.usage is not None
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens


@both_ways
@pytest.mark.parametrize("kept", [True, False], ids=["continued by id", "replayed"])
async def test_a_response_tool_in_two_stages_with_reasoning(client: AsyncOpenAI, stream: bool, kept: bool) -> None:
    options = {
        "tools": TOOLS,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "store": kept,
        "include": ["reasoning.encrypted_content"],
    }
    first = await respond(client, stream, input=user(WEATHER_QUESTION), **options)
    kinds = [item.type for item in first.output]
    assert kinds[0] == "reasoning"
    assert kinds[-1] == "function_call"
    call = first.output[-1]
    assert call.name == WEATHER
    check_arguments(json.loads(call.arguments))
    result = {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}
    if kept:
        second = await respond(client, stream, input=[result], previous_response_id=first.id, **options)
        assert second.previous_response_id == first.id
    else:
        history = [*user(WEATHER_QUESTION), *(item.model_dump(exclude_none=True) for item in first.output), result]
        second = await respond(client, stream, input=history, **options)
    assert RESULT in second.output_text


async def test_items_may_be_named_instead_of_sent_again(client: AsyncOpenAI) -> None:
    """Check items by id, the AI SDK's default: stored reasoning is sent along, although the client never received it."""
    options = {"tools": TOOLS, "reasoning": {"effort": "medium"}}
    first = await client.responses.create(model=MODEL, input=user(WEATHER_QUESTION), **options)
    call = first.output[-1]
    named = [{"type": "item_reference", "id": item.id} for item in first.output]
    result = {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}
    second = await client.responses.create(model=MODEL, input=[*user(WEATHER_QUESTION), *named, result], **options)
    assert RESULT in second.output_text
    unknown = {"type": "item_reference", "id": f"msg_umg_{'0' * 32}_0"}
    with pytest.raises(openai.NotFoundError) as caught:
        await client.responses.create(model=MODEL, input=[*user("Hi"), unknown])
    assert unknown["id"] in caught.value.message or "0" * 32 in caught.value.message


@both_ways
async def test_parallel_response_tools(client: AsyncOpenAI, stream: bool) -> None:
    response = await respond(client, stream, input=WEATHER_AND_TIME_QUESTION, tools=TOOLS)
    calls = [item for item in response.output if item.type == "function_call"]
    assert sorted(call.name for call in calls) == sorted([WEATHER, TIME])
    assert len({call.call_id for call in calls}) == 2


async def test_response_output_is_parsed_by_the_sdk(client: AsyncOpenAI) -> None:
    response = await client.responses.parse(model=MODEL, input="Describe Paris.", text_format=City)
    assert isinstance(response.output_parsed, City)


@both_ways
async def test_a_search_gives_a_call_and_annotations(client: AsyncOpenAI, stream: bool) -> None:
    response = await respond(client, stream, model="famO-5", input=SEARCH, tools=[{"type": "web_search_preview"}])
    kinds = [item.type for item in response.output]
    assert "web_search_call" in kinds
    (message,) = [item for item in response.output if item.type == "message"]
    annotations = [annotation for part in message.content for annotation in part.annotations]
    assert annotations
    assert all(annotation.type == "url_citation" for annotation in annotations)


@both_ways
async def test_an_image_and_a_file_in_a_response(client: AsyncOpenAI, stream: bool) -> None:
    content = [
        {"type": "input_text", "text": "What are they?"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{picture_base64()}", "detail": "auto"},
        {"type": "input_file", "filename": "note.txt", "file_data": "data:text/plain;base64,SGVsbG8gdGhlcmU="},
    ]
    response = await respond(client, stream, input=[{"role": "user", "content": content}])
    assert "image/png" in response.output_text
    assert "text/plain" in response.output_text


@both_ways
async def test_a_response_that_was_cut_by_its_limit(client: AsyncOpenAI, stream: bool) -> None:
    if stream:
        events = [
            event
            async for event in await client.responses.create(
                model=MODEL, input="Tell me of the sea.", max_output_tokens=5, stream=True
            )
        ]
        assert events[-1].type == "response.incomplete"
        response = events[-1].response
    else:
        response = await client.responses.create(model=MODEL, input="Tell me of the sea.", max_output_tokens=5)
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"


async def test_a_stored_response_is_found_listed_and_forgotten(client: AsyncOpenAI) -> None:
    response = await client.responses.create(model=MODEL, input="Hello there", metadata={"trip": "7"})
    found = await client.responses.retrieve(response.id)
    assert found.output_text == response.output_text
    assert found.metadata == {"trip": "7"}
    items = await client.responses.input_items.list(response.id)
    assert [item.role for item in items.data] == ["user"]
    assert items.data[0].content[0].text == "Hello there"
    await client.responses.delete(response.id)
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(response.id)
    with pytest.raises(openai.NotFoundError):
        await client.responses.create(model=MODEL, input="Go on", previous_response_id=response.id)


async def test_a_response_with_store_false_is_not_stored(client: AsyncOpenAI) -> None:
    response = await client.responses.create(model=MODEL, input="Hello there", store=False)
    with pytest.raises(openai.NotFoundError):
        await client.responses.retrieve(response.id)


async def test_input_tokens_are_counted(client: AsyncOpenAI) -> None:
    fewer = await client.responses.input_tokens.count(model=MODEL, input="Hello there")
    more = await client.responses.input_tokens.count(model=MODEL, input="Hello there", tools=TOOLS)
    assert 0 < fewer.input_tokens < more.input_tokens


FAILURES = {
    "an unknown model": ({"model": "nope"}, openai.NotFoundError, "nope"),
    "a temperature out of range": ({"temperature": 3}, openai.BadRequestError, "temperature"),
    "a background response": ({"background": True}, openai.BadRequestError, "background"),
    "an unknown earlier response": ({"previous_response_id": "resp_x"}, openai.NotFoundError, "resp_x"),
    "a rate limit": ({"input": "[[fail:429]]"}, openai.RateLimitError, ""),
    "a broken provider": ({"input": "[[fail]]"}, openai.InternalServerError, ""),
}


@pytest.mark.parametrize("case", FAILURES)
async def test_a_failure_is_the_sdks_own_exception(case: str, client: AsyncOpenAI) -> None:
    fields, raises, expected_message = FAILURES[case]
    with pytest.raises(raises) as caught:
        await client.responses.create(**{"model": MODEL, "input": "Hi", **fields})
    assert expected_message in caught.value.message
    assert caught.value.request_id


async def test_a_response_stream_that_breaks_off_raises(client: AsyncOpenAI) -> None:
    with pytest.raises((openai.APIError, RuntimeError)):
        await respond(client, True, input="[[fail:mid]] Tell me of the sea.")


async def test_cancelling_a_stream_leaves_the_client_usable(client: AsyncOpenAI) -> None:
    async with client.responses.stream(model=MODEL, input="Tell me of the sea.") as events:
        async for event in events:
            assert event.type == "response.created"
            break
    assert (await respond(client, False, input="Hello")).output_text

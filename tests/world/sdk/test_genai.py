"""The official google-genai SDK, unmodified, against the gateway: it drives a model of another vendor's family."""

import gc
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from google import genai
from google.genai import errors, types
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
    picture,
)

# The SDK subclasses the session of aiohttp. It does not close the connection of a stream that breaks off or, on a busy
# machine, of some other calls; which test runs when it is collected is chance.
pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
    pytest.mark.filterwarnings(
        r"ignore:Exception ignored in. <function Connection.__del__:pytest.PytestUnraisableExceptionWarning"
    ),
]

MODEL = "famR-1"
TOOLS = [
    types.Tool(
        function_declarations=[
            types.FunctionDeclaration(name=name, description=DESCRIPTION, parameters_json_schema=SCHEMA)
            for name in (WEATHER, TIME)
        ]
    )
]
THINKING = types.ThinkingConfig(include_thoughts=True, thinking_budget=1024)


@pytest_asyncio.fixture(loop_scope="module", params=["v1", "v1beta"])
async def client(request: pytest.FixtureRequest, sandbox: Running) -> AsyncGenerator[genai.client.AsyncClient, None]:
    options = types.HttpOptions(base_url=sandbox.url, api_version=request.param)
    sdk = genai.Client(api_key=sandbox.key, http_options=options)
    try:
        yield sdk.aio
    finally:
        await sdk.aio.aclose()
        sdk.close()


class Answer:
    def __init__(self, chunks: list[types.GenerateContentResponse]) -> None:
        self.chunks = chunks
        self.parts = [
            part
            for chunk in chunks
            for candidate in chunk.candidates or ()
            if candidate.content
            for part in candidate.content.parts or ()
        ]
        self.text = "".join(part.text for part in self.parts if part.text and not part.thought)
        self.thoughts = "".join(part.text for part in self.parts if part.text and part.thought)
        self.calls = [part.function_call for part in self.parts if part.function_call]
        self.finish = [c.finish_reason for chunk in chunks for c in chunk.candidates or () if c.finish_reason]
        self.usage = chunks[-1].usage_metadata
        self.grounding = [
            c.grounding_metadata for chunk in chunks for c in chunk.candidates or () if c.grounding_metadata
        ]


async def generate(
    client: genai.client.AsyncClient, stream: bool, contents: object, model: str = MODEL, **config: object
) -> Answer:
    made = types.GenerateContentConfig(**config)
    if not stream:
        return Answer([await client.models.generate_content(model=model, contents=contents, config=made)])
    streamed = await client.models.generate_content_stream(model=model, contents=contents, config=made)
    return Answer([chunk async for chunk in streamed])


both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@both_ways
async def test_an_answer(client: genai.client.AsyncClient, stream: bool) -> None:
    answer = await generate(client, stream, "Hello there", system_instruction="Be brief.")
    assert answer.text
    assert answer.finish == [types.FinishReason.STOP]
    assert answer.chunks[-1].model_version == MODEL
    assert answer.usage is not None
    assert answer.usage.prompt_token_count
    assert answer.usage.candidates_token_count
    assert answer.usage.total_token_count >= answer.usage.prompt_token_count + answer.usage.candidates_token_count


async def test_a_streamed_answer_has_the_text_of_the_whole_one(client: genai.client.AsyncClient) -> None:
    whole, streamed = [await generate(client, stream, "Tell me of the sea.") for stream in (False, True)]
    assert whole.text == streamed.text
    assert len(streamed.chunks) > 1


@both_ways
async def test_a_tool_in_two_stages_with_thinking(client: genai.client.AsyncClient, stream: bool) -> None:
    first = await generate(client, stream, WEATHER_QUESTION, tools=TOOLS, thinking_config=THINKING)
    assert first.thoughts
    (call,) = first.calls
    assert call.name == WEATHER
    check_arguments(call.args)
    history = [
        types.Content(role="user", parts=[types.Part(text=WEATHER_QUESTION)]),
        types.Content(role="model", parts=first.parts),
        types.Content(
            role="user",
            parts=[
                types.Part(
                    function_response=types.FunctionResponse(id=call.id, name=WEATHER, response={"output": RESULT})
                )
            ],
        ),
    ]
    second = await generate(client, stream, history, tools=TOOLS, thinking_config=THINKING)
    assert RESULT in second.text
    assert second.finish == [types.FinishReason.STOP]


@both_ways
async def test_parallel_tools(client: genai.client.AsyncClient, stream: bool) -> None:
    answer = await generate(client, stream, WEATHER_AND_TIME_QUESTION, tools=TOOLS)
    assert sorted(str(call.name) for call in answer.calls) == sorted([WEATHER, TIME])
    for call in answer.calls:
        check_arguments(call.args)


@both_ways
async def test_a_forced_tool(client: genai.client.AsyncClient, stream: bool) -> None:
    choice = types.FunctionCallingConfig(mode="ANY", allowed_function_names=[TIME])
    answer = await generate(
        client, stream, "Hello", tools=TOOLS, tool_config=types.ToolConfig(function_calling_config=choice)
    )
    assert [call.name for call in answer.calls] == [TIME]


async def test_the_sdk_calls_a_python_function_by_itself(client: genai.client.AsyncClient) -> None:
    cities = []

    def get_weather(city: str) -> str:
        """The weather of a city."""
        cities.append(city)
        return RESULT

    answer = await generate(client, False, WEATHER_QUESTION, tools=[get_weather])
    assert len(cities) == 1
    assert RESULT in answer.text


class City(BaseModel):
    name: str
    population: int


@both_ways
async def test_structured_output_is_parsed_by_the_sdk(client: genai.client.AsyncClient, stream: bool) -> None:
    answer = await generate(
        client, stream, "Describe Paris.", response_mime_type="application/json", response_schema=City
    )
    assert City.model_validate_json(answer.text).name
    if not stream:
        assert isinstance(answer.chunks[0].parsed, City)


@both_ways
async def test_an_image_is_seen(client: genai.client.AsyncClient, stream: bool) -> None:
    image = types.Part.from_bytes(data=picture(), mime_type="image/png")
    answer = await generate(client, stream, [image, "What is it?"])
    assert "image/png" in answer.text
    assert "31" in answer.text


@both_ways
async def test_a_search_gives_sources(client: genai.client.AsyncClient, stream: bool) -> None:
    answer = await generate(client, stream, SEARCH, tools=[types.Tool(google_search=types.GoogleSearch())])
    grounding = answer.grounding[-1]
    assert grounding.grounding_chunks
    assert grounding.grounding_chunks[0].web.uri.startswith("https://")
    supports = grounding.grounding_supports or []
    assert supports
    for support in supports:
        start, end = support.segment.start_index or 0, support.segment.end_index
        assert answer.text.encode()[start:end].decode() == support.segment.text


@both_ways
async def test_an_image_is_made(client: genai.client.AsyncClient, stream: bool) -> None:
    answer = await generate(
        client, stream, "Draw the sea.", "famG-2.5-flash-image", response_modalities=["TEXT", "IMAGE"]
    )
    images = [part.inline_data for part in answer.parts if part.inline_data]
    assert images
    assert images[0].data.startswith((b"\x89PNG", b"\xff\xd8"))


async def test_tokens_are_counted(client: genai.client.AsyncClient) -> None:
    counted = await client.models.count_tokens(model=MODEL, contents="Hello there")
    assert counted.total_tokens


async def test_a_chat_of_the_sdk(client: genai.client.AsyncClient) -> None:
    chat = client.chats.create(model=MODEL)
    assert (await chat.send_message("Hello")).text
    assert [chunk.text async for chunk in await chat.send_message_stream("And again")]


async def test_cancelling_a_stream_leaves_the_client_usable(client: genai.client.AsyncClient) -> None:
    async for chunk in await client.models.generate_content_stream(model=MODEL, contents="Tell me of the sea."):
        assert chunk.candidates
        break
    assert (await generate(client, False, "Hello")).text


FAILURES = {
    "an unknown model": ({"model": "nope"}, 404, "nope"),
    "a temperature out of range": ({"temperature": 3.0}, 400, "temperature"),
    "a rate limit": ({"contents": "[[fail:429]]"}, 429, ""),
    "a broken provider": ({"contents": "[[fail]]"}, 502, ""),
}


@pytest.mark.parametrize("case", FAILURES)
async def test_a_failure_is_the_sdks_own_exception(case: str, client: genai.client.AsyncClient) -> None:
    fields, status, expected_message = FAILURES[case]
    arguments = {"contents": "Hi", **fields}
    with pytest.raises(errors.APIError) as caught:
        await generate(client, False, **arguments)
    assert caught.value.code == status
    assert expected_message in str(caught.value.message)
    assert isinstance(caught.value, errors.ClientError if status < 500 else errors.ServerError)


async def test_a_wrong_key_is_refused(sandbox: Running) -> None:
    with genai.Client(api_key="sk-umg-wrong", http_options=types.HttpOptions(base_url=sandbox.url)) as sdk:
        with pytest.raises(errors.ClientError) as caught:
            await generate(sdk.aio, False, "Hi")
        assert (caught.value.code, caught.value.status) == (401, "UNAUTHENTICATED")
        await sdk.aio.aclose()


async def test_a_stream_that_breaks_off_raises(client: genai.client.AsyncClient) -> None:
    with pytest.raises(errors.APIError):
        await generate(client, True, "[[fail:mid]] Tell me of the sea.")
    gc.collect()  # in no other test

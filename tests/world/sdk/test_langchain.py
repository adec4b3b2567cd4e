"""LangChain, unmodified, against the gateway: its chat models of two vendors, with tools and structured output."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field

from tests.support.gateways import Running
from tests.world.agents.document import documented
from tests.world.sdk.cases import RESULT, TIME, WEATHER, WEATHER_AND_TIME_QUESTION, WEATHER_QUESTION

pytestmark = pytest.mark.asyncio(loop_scope="module")


@tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return RESULT


@tool
def get_time(city: str) -> str:
    """The time in a city."""
    return "noon"


class City(BaseModel):
    """A city."""

    name: str = Field(description="Its name")
    population: int


@pytest_asyncio.fixture(loop_scope="module", params=["chat", "responses", "messages"])
async def model(request: pytest.FixtureRequest, sandbox: Running) -> AsyncGenerator[BaseChatModel, None]:
    if request.param == "messages":
        yield ChatAnthropic(
            model="famG-2.5-pro", base_url=sandbox.url, api_key=sandbox.key, max_retries=0, max_tokens=2048
        )
        return
    yield ChatOpenAI(
        model="famC-sonnet-4-5",
        base_url=f"{sandbox.url}/v1",
        api_key=sandbox.key,
        max_retries=0,
        use_responses_api=request.param == "responses",
    )


async def test_an_answer(model: BaseChatModel) -> None:
    answer = await model.ainvoke("Hello there")
    assert answer.text
    assert answer.usage_metadata
    assert answer.usage_metadata["total_tokens"] > 0


async def test_a_stream_put_together(model: BaseChatModel) -> None:
    whole: AIMessageChunk | None = None
    async for chunk in model.astream("Tell me of the sea."):
        whole = chunk if whole is None else whole + chunk
    assert whole is not None
    assert whole.text == (await model.ainvoke("Tell me of the sea.")).text


async def test_tools_in_two_stages(model: BaseChatModel) -> None:
    bound = model.bind_tools([get_weather, get_time])
    question = HumanMessage(WEATHER_AND_TIME_QUESTION)
    first = await bound.ainvoke([question])
    assert sorted(call["name"] for call in first.tool_calls) == sorted([WEATHER, TIME])
    results = [
        await {WEATHER: get_weather, TIME: get_time}[call["name"]].ainvoke({**call, "type": "tool_call"})
        for call in first.tool_calls
    ]
    assert all(isinstance(result, ToolMessage) for result in results)
    second = await bound.ainvoke([question, first, *results])
    assert RESULT in second.text
    assert "noon" in second.text


async def test_a_streamed_tool_call(model: BaseChatModel) -> None:
    whole: AIMessageChunk | None = None
    async for chunk in model.bind_tools([get_weather]).astream(WEATHER_QUESTION):
        whole = chunk if whole is None else whole + chunk
    assert whole is not None
    (call,) = whole.tool_calls
    assert call["name"] == WEATHER
    assert isinstance(call["args"]["city"], str)


async def test_structured_output(model: BaseChatModel) -> None:
    city = await model.with_structured_output(City).ainvoke("Describe Paris.")
    assert isinstance(city, City)


async def test_the_documented_lines_print_an_answer(
    sandbox: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UMG_API_KEY", sandbox.key)
    await asyncio.to_thread(exec, documented("LangChain", sandbox.url), {})
    assert "simulated answer" in capsys.readouterr().out

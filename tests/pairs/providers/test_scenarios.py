"""Every scenario in every format, as the vendor's own SDK reads it, streamed and not: the fakes are faithful and alike."""

import json
from dataclasses import replace

import openai
import pytest

from tests.pairs.table import TEXT_PROVIDERS
from tests.support.callers.format_free_answers import Answer as CallerAnswer
from tests.support.callers.requests import Request, Turn
from tests.support.callers.sdk_callers import SdkCaller, sdk_caller
from tests.support.providers.native import Native
from tests.support.providers.responses import Responses
from tests.support.providers.scenarios import CITY, CUSTOM, PNG, TEXT, Answer, Call, ScenarioRequest
from tests.support.providers.strict_providers import KEY, Provider, provider, text_provider
from tests.support.scenario_cases import CASES, FINISH_WORDS, SDK_CASES, Case

# google-genai subclasses the session of aiohttp
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")


async def _call(sdk: SdkCaller, request: Request, streamed: bool, previous: Turn | None = None) -> CallerAnswer:
    return await (sdk.stream if streamed else sdk.call)(request, previous)


async def _passes(case: Case, name: str, streamed: bool, server: Provider, stored: bool = False) -> None:
    request = replace(case.request, stored=stored)
    async with sdk_caller(name, server.url, KEY) as sdk:
        answer = await _call(sdk, request, streamed)
        assert answer == case.expected_by_sdk(name)
        if case.after:
            second = await _call(sdk, replace(request, choice="auto"), streamed, answer.turn)
            assert (second.text, second.finish) == (case.after, FINISH_WORDS[name]["STOP"])
    assert server.refusals == []


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", TEXT_PROVIDERS)
@pytest.mark.parametrize("case", SDK_CASES, ids=lambda case: case.id)
async def test_a_scenario_reads_alike_in_every_sdk(case: Case, name: str, streamed: bool) -> None:
    async with provider(name) as server:
        await _passes(case, name, streamed, server)


@pytest.mark.parametrize("name", TEXT_PROVIDERS)
async def test_a_stream_may_be_cut_at_any_byte(name: str) -> None:
    case = next(case for case in CASES if case.id == "thinking-tools")
    async with provider(name, cut=1) as server:
        await _passes(case, name, True, server)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("scenario", ["parallel", "thinking-tools"])
async def test_responses_are_continued_by_their_id(scenario: str, streamed: bool) -> None:
    case = next(case for case in CASES if case.id == scenario)
    async with provider("responses") as server:
        await _passes(case, "responses", streamed, server, stored=True)


@pytest.mark.parametrize("scenario", ["parallel", "thinking-tools"])
async def test_native_calls_may_have_no_ids(scenario: str) -> None:
    case = next(case for case in CASES if case.id == scenario)
    async with text_provider(Native(call_ids=False)) as server:
        await _passes(case, "native", True, server)


async def test_native_draws() -> None:
    async with provider("native") as server, sdk_caller("native", server.url, KEY) as sdk:
        found = await sdk.sdk.aio.models.generate_content(  # type: ignore[attr-defined]
            model="m", contents="scenario: drawing", config={"response_modalities": ["TEXT", "IMAGE"]}
        )
    assert found.candidates[0].content.parts[1].inline_data.data == PNG


NAMESPACE = {
    "type": "namespace",
    "name": "work",
    "description": "",
    "tools": [
        {"type": "custom", "name": "exec", "description": "", "format": {"type": "text"}},
        {"type": "function", "name": "wait", "description": "", "strict": False, "parameters": {"type": "object"}},
    ],
}


def calls_of_a_namespace(request: ScenarioRequest) -> Answer:
    """Answer with a call of each declared tool, the custom ones with a text."""
    calls = [Call(name, {}, free="1 + 1" if schema == CUSTOM else None) for name, schema in request.tools.items()]
    return Answer(calls=tuple(calls))


@pytest.mark.parametrize("place", ["tools", "input"])
async def test_responses_call_the_tools_of_a_namespace(place: str) -> None:
    question: dict[str, object] = {"type": "message", "role": "user", "content": "hi"}
    added: dict[str, object] = {"type": "additional_tools", "role": "developer", "tools": [NAMESPACE]}
    body = {"tools": [NAMESPACE], "input": [question]} if place == "tools" else {"input": [added, question]}
    async with (
        text_provider(Responses(), model=calls_of_a_namespace) as server,
        openai.AsyncOpenAI(base_url=server.base_url, api_key=KEY, max_retries=0) as sdk,
        sdk.responses.stream(model="m", **body) as stream,  # type: ignore[arg-type]
    ):
        response = await stream.get_final_response()
    found = [item.model_dump(include={"type", "name", "namespace", "input", "arguments"}) for item in response.output]
    assert found == [
        {"type": "custom_tool_call", "name": "exec", "namespace": "work", "input": "1 + 1"},
        {"type": "function_call", "name": "wait", "namespace": "work", "arguments": "{}"},
    ]


async def test_two_turns_of_one_role_are_taken_by_a_native_provider_that_does_not_alternate() -> None:
    async with text_provider(Native(alternates=False)) as server, sdk_caller("native", server.url, KEY) as sdk:
        found = await sdk.sdk.aio.models.generate_content(  # type: ignore[attr-defined]
            model="m", contents=[{"role": "user", "parts": [{"text": text}]} for text in ("Hi.", "scenario: plain")]
        )
    assert found.text == TEXT


def test_the_structured_answer_is_the_city() -> None:
    case = next(case for case in CASES if case.id == "structured")
    assert json.loads(case.answer.text) == CITY

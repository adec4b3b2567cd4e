"""Every scenario in every format, as the vendor's own SDK reads it, streamed and not: the fakes are faithful, and they
say the same.
"""

import json
from dataclasses import replace

import pytest

from tests.providers import FORMATS, KEY, Native, Provider, provider, serving
from tests.providers.callers import Caller, Shown, Wish, caller
from tests.providers.cases import CASES, ENDED, GAVE, Case
from tests.providers.scenarios import CITY, PNG

# google-genai subclasses the session of aiohttp
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")


async def _ask(sdk: Caller, wish: Wish, streamed: bool) -> Shown:
    return await (sdk.stream(wish) if streamed else sdk.ask(wish))


async def _passes(case: Case, name: str, streamed: bool, server: Provider, keeps: bool = False) -> None:
    async with caller(name, server.root_url, KEY, keeps=keeps) as sdk:
        answer = await _ask(sdk, case.wish, streamed)
        assert answer == case.expected(name)
        if case.after:
            second = await _ask(sdk, replace(case.wish, choice="auto", before=answer, results=GAVE), streamed)
            assert (second.text, second.finish) == (case.after, ENDED[name])
    assert server.refusals == []


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_scenario_reads_alike_in_every_sdk(case: Case, name: str, streamed: bool) -> None:
    async with provider(name) as server:
        await _passes(case, name, streamed, server)


@pytest.mark.parametrize("name", FORMATS)
async def test_a_stream_may_be_cut_at_any_byte(name: str) -> None:
    case = next(case for case in CASES if case.id == "thinking-tools")
    async with provider(name, cut=1) as server:
        await _passes(case, name, True, server)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("scenario", ["parallel", "thinking-tools"])
async def test_responses_are_continued_by_their_id(scenario: str, streamed: bool) -> None:
    case = next(case for case in CASES if case.id == scenario)
    async with provider("responses") as server:
        await _passes(case, "responses", streamed, server, keeps=True)


@pytest.mark.parametrize("scenario", ["parallel", "thinking-tools"])
async def test_native_calls_may_have_no_ids(scenario: str) -> None:
    case = next(case for case in CASES if case.id == scenario)
    async with serving(Native(call_ids=False)) as server:
        await _passes(case, "native", True, server)


async def test_native_draws() -> None:
    async with provider("native") as server, caller("native", server.root_url, KEY) as sdk:
        found = await sdk.sdk.aio.models.generate_content(  # type: ignore[attr-defined]
            model="m", contents="scenario: drawing", config={"response_modalities": ["TEXT", "IMAGE"]}
        )
    assert found.candidates[0].content.parts[1].inline_data.data == PNG


def test_the_structured_answer_is_the_city() -> None:
    case = next(case for case in CASES if case.id == "structured")
    assert json.loads(case.shown.text) == CITY

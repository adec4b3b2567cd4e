"""The face of Cohere's chat, which no provider has, in front of every strict provider."""

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

import aiohttp
import pytest
import pytest_asyncio

from tests.pairs.matrix.gateway_of_all import gateway_of_all
from tests.pairs.table import TEXT_CLIENTS, every_strict_provider
from tests.support.callers.cohere_http_client import answer_of
from tests.support.callers.format_free_answers import Answer
from tests.support.callers.http_caller import events
from tests.support.callers.requests import Json, Request, Turn
from tests.support.gateways import Running
from tests.support.providers.scenarios import TEXT
from tests.support.providers.strict_providers import Provider
from tests.support.scenario_cases import CASES, ONLY, Case

pytestmark = pytest.mark.asyncio(loop_scope="module")

CLIENT = TEXT_CLIENTS["cohere"]
UNSAYABLE = {"file": "a PDF", "forced": "the choice of one tool", "citations": "a web search"}
"""Case -> part of its request that the format does not have."""
SAYABLE = [case for case in CASES if case.id not in UNSAYABLE and case.id not in ONLY]
DROPPED = {
    ("thinking", "chat"): "thinking.token_budget=effort low",
    ("thinking", "responses"): "thinking.token_budget=effort low",
    ("thinking-tools", "chat"): "thinking.token_budget=effort low",
    ("thinking-tools", "responses"): "thinking.token_budget=effort low",
    ("stop", "responses"): "stop_sequences=by the gateway",
}
"""Case and provider -> changes that the answer reports."""
REFUSALS = {
    400: 400,
    401: 502,
    403: 502,
    404: 502,
    413: 413,
    429: 429,
    500: 502,
    502: 502,
    503: 503,
    504: 504,
    529: 503,
}
"""Status of a provider -> status of the caller."""


@dataclass
class Received:
    """Answer of the gateway: its status, headers and JSON, aggregated from a stream."""

    status: int
    dropped: str
    retry_after: str | None
    body: Json


@dataclass
class World:
    """Gateway with a channel to each provider."""

    gateway: Running
    providers: dict[str, Provider]
    session: aiohttp.ClientSession

    async def call(
        self, upstream: str, request: Request, *, stream: bool, previous: Turn | None = None, whole: bool = True
    ) -> Received:
        """Call a provider. `whole`: whether the stream must be complete; otherwise its last event is the body."""
        body = CLIENT.body(request, f"via-{upstream}", previous, stream=stream)
        url, headers = self.gateway.url + CLIENT.path("", stream), CLIENT.credentials(self.gateway.key)
        async with self.session.post(url, json=body, headers=headers) as response:
            read, dropped = await response.read(), response.headers.get("x-umg-dropped", "")
            if response.content_type != "text/event-stream":
                found = json.loads(read)
            else:
                found = CLIENT.aggregate(events(read)) if whole else events(read)[-1]
            return Received(response.status, dropped, response.headers.get("retry-after"), found)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World, None]:
    async with (
        gateway_of_all(tmp_path_factory.mktemp("cohere")) as (gateway, providers),
        aiohttp.ClientSession() as session,
    ):
        yield World(gateway, providers, session)


def expected(case: Case, upstream: str) -> Answer:
    """Return the answer that a caller of this format receives."""
    answer = replace(case.answer, **case.by_upstream.get(upstream, {}))
    finish = answer.finish
    if finish in {"REFUSAL", "CONTENT_FILTER"}:
        finish = "STOP" if answer.refusal and finish == "REFUSAL" else "ERROR"
    usage = (*answer.usage[:3], 0)
    return replace(answer, text=answer.text + answer.refusal, refusal="", notice="", finish=finish, usage=usage)


streamed_or_not = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@streamed_or_not
@every_strict_provider
@pytest.mark.parametrize("case", SAYABLE, ids=lambda case: case.id)
async def test_every_case_passes_through_every_pair(world: World, case: Case, upstream: str, stream: bool) -> None:
    server = world.providers[upstream]
    before = len(server.refusals)
    got = await world.call(upstream, case.request, stream=stream)
    assert got.status == 200, (got.body, server.refusals[before:])
    received, wanted = answer_of(got.body), expected(case, upstream)
    if stream and upstream in case.ends_early:
        wanted = replace(wanted, usage=received.usage)
    assert received == wanted
    assert got.dropped == DROPPED.get((case.id, upstream), "")
    if case.after:
        turn = CLIENT.turn(got.body)
        second = await world.call(upstream, replace(case.request, choice="auto"), stream=stream, previous=turn)
        assert second.status == 200, (second.body, server.refusals[before:])
        assert answer_of(second.body).text == case.after
    assert server.refusals[before:] == []


@streamed_or_not
@every_strict_provider
@pytest.mark.parametrize("status", REFUSALS)
async def test_a_refusal_before_the_first_byte_has_the_faces_own_error_body(
    world: World, status: int, upstream: str, stream: bool
) -> None:
    got = await world.call(upstream, Request(f"scenario: error-{status}"), stream=stream)
    assert got.status == REFUSALS[status]
    assert CLIENT.is_error(json.dumps(got.body).encode())
    assert got.body["message"] == got.body["error"]["message"]
    assert got.retry_after == ("7" if status == 429 else None)


@every_strict_provider
@pytest.mark.parametrize("scenario", ["error-mid", "error-event", "cut", "ends-early"])
async def test_a_stream_that_breaks_is_no_short_answer(world: World, scenario: str, upstream: str) -> None:
    got = await world.call(upstream, Request(f"scenario: {scenario}"), stream=True, whole=False)
    if got.status == 200:
        assert (got.body["type"], got.body["delta"]["finish_reason"]) == ("message-end", "ERROR")
        assert got.body["delta"]["error"]
        assert TEXT not in got.body["delta"]["error"]
    else:
        assert got.status >= 500
        assert got.body["message"]

"""The text faces of Ollama's API, which no provider has, in front of every strict provider."""

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

import aiohttp
import pytest
import pytest_asyncio

from tests.pairs.matrix.gateway_of_all import gateway_of_all
from tests.pairs.table import TEXT_CLIENTS, every_strict_provider
from tests.support.callers import ollama_http_client as client
from tests.support.callers.format_free_answers import Answer
from tests.support.callers.requests import Json, Request, Turn
from tests.support.gateways import Running
from tests.support.providers.scenarios import TEXT
from tests.support.providers.strict_providers import Provider
from tests.support.scenario_cases import CASES, ONLY, Case

pytestmark = pytest.mark.asyncio(loop_scope="module")

FACES = {TEXT_CLIENTS[name].path("", True): TEXT_CLIENTS[name] for name in ("ollama_chat", "ollama_generate")}
WITHOUT_CHOICE = ("forced", "required")
"""Cases whose request requires a tool, for which the format has no field."""
SAYABLE = [case for case in CASES if case.id not in ("file", "citations", *WITHOUT_CHOICE, *ONLY)]
BY_FACE = {
    "/api/chat": SAYABLE,
    "/api/generate": [case for case in SAYABLE if not case.request.tools and not case.request.history],
}
ALWAYS = "options.num_ctx, keep_alive"
DROPPED = {
    ("thinking", "chat"): "think",
    ("thinking", "responses"): "think=effort medium",
    ("thinking", "native"): "think=budget -1",
    ("stop", "responses"): "options.stop=by the gateway",
}
"""Case and provider -> changes that the answer reports beside `ALWAYS`."""
REFUSALS = {400: 400, 401: 502, 413: 413, 429: 429, 500: 502, 503: 503, 504: 504}
"""Status of a provider -> status of the caller."""


@dataclass
class Received:
    """Answer of the gateway: its status, headers and JSON, aggregated from a stream."""

    status: int
    dropped: str
    lines: list[Json]

    @property
    def answer(self) -> Json:
        return client.aggregate(self.lines)


@dataclass
class World:
    """Gateway with a channel to each provider."""

    gateway: Running
    providers: dict[str, Provider]
    session: aiohttp.ClientSession

    async def call(
        self, path: str, upstream: str, request: Request, *, stream: bool, previous: Turn | None = None
    ) -> Received:
        body = FACES[path].body(request, f"via-{upstream}", previous, stream=stream)
        async with self.session.post(self.gateway.url + path, json=body, headers=self.gateway.headers) as response:
            read, dropped = await response.read(), response.headers.get("x-umg-dropped", "")
            if response.status == 200:
                assert response.content_type == ("application/x-ndjson" if stream else "application/json")
            lines = read.decode().splitlines() if stream else [read]  # as the client in Python splits them
            return Received(response.status, dropped, [json.loads(line) for line in lines])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World, None]:
    async with (
        gateway_of_all(tmp_path_factory.mktemp("ollama")) as (gateway, providers),
        aiohttp.ClientSession() as session,
    ):
        yield World(gateway, providers, session)


def expected(case: Case, upstream: str) -> Answer:
    """Return the answer that a caller of this format receives."""
    answer = replace(case.answer, **case.by_upstream.get(upstream, {}))
    finish = {"TOOL_CALLS": "STOP", "STOP_SEQUENCE": "STOP", "REFUSAL": "CONTENT_FILTER"}.get(
        answer.finish, answer.finish
    )
    usage = (answer.usage[0], 0, answer.usage[2], 0)
    return replace(answer, text=answer.text + answer.refusal, refusal="", notice="", finish=finish, usage=usage)


streamed_or_not = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
every_path = pytest.mark.parametrize("path", FACES)


@streamed_or_not
@every_strict_provider
@pytest.mark.parametrize(
    ("path", "case"),
    [(path, case) for path, cases in BY_FACE.items() for case in cases],
    ids=lambda value: value if isinstance(value, str) else value.id,
)
async def test_every_case_passes_through_every_pair(
    world: World, path: str, case: Case, upstream: str, stream: bool
) -> None:
    server = world.providers[upstream]
    before = len(server.refusals)
    got = await world.call(path, upstream, case.request, stream=stream)
    assert got.status == 200, (got.lines, server.refusals[before:])
    received, wanted = client.answer_of(got.answer), expected(case, upstream)
    if stream and upstream in case.ends_early:
        wanted = replace(wanted, usage=received.usage)
    assert received == wanted
    more = DROPPED.get((case.id.removesuffix("-tools"), upstream), "")
    assert sorted(got.dropped.split(", ")) == sorted(filter(None, [*ALWAYS.split(", "), *more.split(", ")]))
    for strips in (False, True) if case.after else ():
        turn = client.turn_of(got.answer, strips=strips)
        second = await world.call(path, upstream, replace(case.request, choice="auto"), stream=stream, previous=turn)
        assert second.status == 200, (second.lines, server.refusals[before:])
        after = case.after
        if strips and upstream == "chat":  # its fake finds the reasoning by the ids of the calls alone
            after = after.replace("thoughts came back", "thoughts are lost")
        assert client.answer_of(second.answer).text == after, strips
    assert server.refusals[before:] == []


@streamed_or_not
@every_strict_provider
@every_path
@pytest.mark.parametrize("status", REFUSALS)
async def test_a_refusal_before_the_first_byte_has_the_faces_own_error_body(
    world: World, status: int, path: str, upstream: str, stream: bool
) -> None:
    got = await world.call(path, upstream, Request(f"scenario: error-{status}"), stream=stream)
    assert got.status == REFUSALS[status]
    [body] = got.lines
    assert body.keys() == {"error"}
    assert isinstance(body["error"], str)


@every_strict_provider
@every_path
@pytest.mark.parametrize("scenario", ["error-mid", "error-event", "cut", "ends-early"])
async def test_a_stream_that_breaks_is_no_short_answer(world: World, scenario: str, path: str, upstream: str) -> None:
    got = await world.call(path, upstream, Request(f"scenario: {scenario}"), stream=True)
    *pieces, last = got.lines
    assert got.status == 200
    assert last.keys() == {"error"}
    shown = "".join(piece["message"]["content"] if "message" in piece else piece["response"] for piece in pieces)
    assert shown, "what came before the break was shown"
    assert TEXT.startswith(shown)

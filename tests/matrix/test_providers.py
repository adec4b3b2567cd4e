"""Every face in front of every provider: each refuses what its vendor's own SDK types do not allow, so that a 200 proves
the dialect, and says the same in every scenario, so that the answers prove the translation.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import aiohttp
import pytest
import pytest_asyncio

from tests.e2e import gateways
from tests.e2e.gateways import SEARCHES_AND_THINKS, channel, running
from tests.matrix.calling import Caller, heard, until_it_breaks
from tests.matrix.cases import CASES, ONLY, SHOWN, Case
from tests.matrix.faces import FACES, Wish, is_the_faces_own
from tests.providers import FORMATS as PROVIDERS
from tests.providers import KEY, Provider, provider
from tests.providers.scenarios import TEXT
from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Gate:
    """A gateway, and the providers behind it."""

    caller: Caller
    providers: dict[str, Provider]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Gate, None]:
    """One gateway with a channel to each provider."""
    async with AsyncExitStack() as stack:
        providers = {name: await stack.enter_async_context(provider(name)) for name in PROVIDERS}
        channels = [
            channel(name, name, made.base_url, f"via-{name}", "m").replace(gateways.KEY, KEY) + SEARCHES_AND_THINKS
            for name, made in providers.items()
        ]
        data = tmp_path_factory.mktemp("matrix")
        gateway = await stack.enter_async_context(running("channels:\n" + "".join(channels), data))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Gate(Caller(session, gateway.url, gateway.key), providers)


streamed_or_not = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
every_upstream = pytest.mark.parametrize("upstream", PROVIDERS)
every_face = pytest.mark.parametrize("face", FACES)


async def passes(gate: Gate, case: Case, face: str, upstream: str, stream: bool) -> None:
    model, server = f"via-{upstream}", gate.providers[upstream]
    before = len(server.refusals)
    got = await gate.caller.ask(face, model, case.wish, stream=stream)
    refused = server.refusals[before:]
    assert got.status == 200, (got.body, refused)
    assert heard(got.canonical) == case.expected(face, upstream, stream=stream)
    assert got.headers.get("x-umg-dropped", "") == case.told(face, upstream)
    if case.after:
        wish = replace(case.wish, choice="auto")
        second = await gate.caller.ask(face, model, wish, stream=stream, before=got.turn)
        assert second.status == 200, (second.body, server.refusals[before:])
        assert heard(second.canonical).text == case.after
    assert server.refusals[before:] == []


@streamed_or_not
@every_upstream
@pytest.mark.parametrize(
    ("face", "case"),
    [(face, case) for case in CASES for face in ONLY.get(case.id, FACES)],
    ids=lambda value: value if isinstance(value, str) else value.id,
)
async def test_a_wish_comes_true_through_every_pair(
    gate: Gate, case: Case, face: str, upstream: str, stream: bool
) -> None:
    await passes(gate, case, face, upstream, stream)


@streamed_or_not
@every_upstream
@pytest.mark.parametrize("name", ["tools", "parallel", "forced", "thinking-tools"])
async def test_a_client_may_strip_what_the_chat_format_does_not_name(
    gate: Gate, name: str, upstream: str, stream: bool
) -> None:
    case = next(case for case in CASES if case.id == name)
    await passes(gate, replace(case, wish=replace(case.wish, strips=True)), "chat", upstream, stream)


@streamed_or_not
@pytest.mark.parametrize("strips", [False, True], ids=["all of it comes back", "the client strips it"])
@pytest.mark.parametrize("upstream", ["responses", "messages", "native"])
async def test_a_chat_caller_may_ask_for_the_thoughts(gate: Gate, upstream: str, strips: bool, stream: bool) -> None:
    await passes(gate, replace(SHOWN, wish=replace(SHOWN.wish, strips=strips)), "chat", upstream, stream)


@streamed_or_not
@pytest.mark.parametrize("upstream", PROVIDERS)
async def test_a_responses_caller_with_thoughts_goes_on_by_the_id(gate: Gate, upstream: str, stream: bool) -> None:
    case = next(case for case in CASES if case.id == "thinking-tools")
    await passes(gate, replace(case, wish=replace(case.wish, keeps=True)), "responses", upstream, stream)


@streamed_or_not
@every_upstream
async def test_chat_takes_no_files(gate: Gate, upstream: str, stream: bool) -> None:
    case = next(case for case in CASES if case.id == "file")
    got = await gate.caller.ask("chat", f"via-{upstream}", case.wish, stream=stream)
    assert got.status == 400
    assert "/v1/responses" in got.error.message


# what the provider says -> what the caller is told: the status, and whether in the provider's own words
REFUSALS = {400: (400, True), 401: (502, False), 403: (502, False), 404: (502, False), 413: (400, True)} | {
    429: (429, False), 500: (502, True), 502: (502, True), 503: (502, True), 504: (502, True), 529: (502, True),
}  # fmt: skip


@streamed_or_not
@every_upstream
@every_face
@pytest.mark.parametrize("status", REFUSALS)
async def test_a_refusal_is_told_before_the_first_byte_in_the_faces_own_body(
    gate: Gate, status: int, face: str, upstream: str, stream: bool
) -> None:
    got = await gate.caller.ask(face, f"via-{upstream}", Wish(f"scenario: error-{status}"), stream=stream)
    expected, in_its_words = REFUSALS[status]
    assert (got.status, got.stream) == (expected, False)
    assert is_the_faces_own(face, got.body)
    message = json.loads(got.body)["error"]["message"]
    assert (f"the provider says {status}" in message) == in_its_words
    assert got.headers.get("retry-after") == ("7" if status == 429 else None)


@every_upstream
@every_face
@pytest.mark.parametrize("scenario", ["error-mid", "error-event", "cut", "ends-early"])
async def test_a_stream_that_breaks_is_no_short_answer(gate: Gate, scenario: str, face: str, upstream: str) -> None:
    got = await gate.caller.ask(face, f"via-{upstream}", Wish(f"scenario: {scenario}"), stream=True)
    assert (got.status, got.stream) == (200, True)
    with pytest.raises(UmgError) as failure:
        got.canonical  # noqa: B018
    assert failure.value.reason in (pb.ERROR_REASON_UPSTREAM_FAILED, pb.ERROR_REASON_UPSTREAM_CUT)
    shown = "".join(event.text_delta for event in until_it_breaks(face, got.body))
    assert shown, "what came before the break was shown"
    assert TEXT.startswith(shown)


@every_upstream
@every_face
async def test_an_answer_in_one_piece_that_fails_is_an_error(gate: Gate, face: str, upstream: str) -> None:
    got = await gate.caller.ask(face, f"via-{upstream}", Wish("scenario: error-mid"), stream=False)
    assert (got.status, is_the_faces_own(face, got.body)) == (502, True)

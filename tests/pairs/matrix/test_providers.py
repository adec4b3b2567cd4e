"""Every face in front of every strict provider: each refuses requests that its vendor's own SDK types do not allow, so
that a 200 proves a valid request, and answers every scenario alike, so that equal answers prove the translation.
"""

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

import aiohttp
import pytest
import pytest_asyncio

from tests.pairs.matrix.gateway_of_all import gateway_of_all
from tests.pairs.table import TEXT_CLIENTS, TEXT_FACES, every_strict_provider
from tests.proofs.soak.reading import READERS
from tests.support.callers.http_caller import HttpCaller, events_before_error
from tests.support.callers.requests import Request
from tests.support.providers.scenarios import TEXT
from tests.support.providers.strict_providers import Provider
from tests.support.scenario_cases import CASES, VISIBLE_REASONING, Case, can_express
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class GatewayUnderTest:
    """A gateway, and the providers behind it."""

    caller: HttpCaller
    providers: dict[str, Provider]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[GatewayUnderTest, None]:
    """Yield one gateway with a channel to each provider."""
    async with (
        gateway_of_all(tmp_path_factory.mktemp("matrix")) as (made, providers),
        aiohttp.ClientSession() as session,
    ):
        yield GatewayUnderTest(HttpCaller(session, made.url, made.key), providers)


every_face = pytest.mark.parametrize("face", TEXT_CLIENTS)
streamed_or_not = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


async def passes(gateway: GatewayUnderTest, case: Case, face: str, upstream: str, stream: bool) -> None:
    model, server = f"via-{upstream}", gateway.providers[upstream]
    before = len(server.refusals)
    got = await gateway.caller.call(face, model, case.request, stream=stream)
    refused = server.refusals[before:]
    assert got.status == 200, (got.body, refused)
    received, expected = got.answer, case.expected(face, upstream, stream=stream)
    if stream and upstream in case.ends_early:
        assert 0 < received.usage[2] <= expected.usage[2]
        expected = replace(expected, usage=received.usage)
    assert received == expected
    dropped = filter(None, (TEXT_CLIENTS[face].uncarried, case.dropped_header(face, upstream)))
    assert got.headers.get("x-umg-dropped", "") == ", ".join(dropped)
    if case.after:
        request = replace(case.request, choice="auto")
        second = await gateway.caller.call(face, model, request, stream=stream, previous=got.turn)
        assert second.status == 200, (second.body, server.refusals[before:])
        assert second.answer.text == case.after
    assert server.refusals[before:] == []


@streamed_or_not
@every_strict_provider
@pytest.mark.parametrize(
    ("face", "case"),
    [(face, case) for case in CASES for face in TEXT_CLIENTS if can_express(face, case)],
    ids=lambda value: value if isinstance(value, str) else value.id,
)
async def test_every_case_passes_through_every_pair(
    gateway: GatewayUnderTest, case: Case, face: str, upstream: str, stream: bool
) -> None:
    if upstream in case.refused:
        got = await gateway.caller.call(face, f"via-{upstream}", case.request, stream=stream)
        assert (got.status, got.is_error) == (400, True)
        return
    await passes(gateway, case, face, upstream, stream)


@streamed_or_not
@every_strict_provider
@pytest.mark.parametrize(
    ("face", "name"),
    [
        *(("chat", name) for name in ("tools", "parallel", "forced", "thinking-tools")),
        *(("ollama_chat", name) for name in ("tools", "parallel", "indented", "no-arguments", "thinking-tools")),
    ],
)
async def test_a_client_may_remove_unknown_fields_and_the_ids_of_calls(
    gateway: GatewayUnderTest, face: str, name: str, upstream: str, stream: bool
) -> None:
    case = next(case for case in CASES if case.id == name)
    if (face, upstream) == ("ollama_chat", "chat"):  # its fake finds the reasoning by the ids of the calls alone
        case = replace(case, after=case.after.replace("thoughts came back", "thoughts are lost"))
    await passes(gateway, replace(case, request=replace(case.request, strips_unknown=True)), face, upstream, stream)


@streamed_or_not
@pytest.mark.parametrize("strips", [False, True], ids=["all of it comes back", "the client strips it"])
@pytest.mark.parametrize("upstream", ["responses", "messages", "native"])
async def test_a_chat_caller_may_request_the_reasoning(
    gateway: GatewayUnderTest, upstream: str, strips: bool, stream: bool
) -> None:
    await passes(
        gateway,
        replace(VISIBLE_REASONING, request=replace(VISIBLE_REASONING.request, strips_unknown=strips)),
        "chat",
        upstream,
        stream,
    )


@streamed_or_not
@every_strict_provider
async def test_a_responses_caller_with_reasoning_continues_by_the_id(
    gateway: GatewayUnderTest, upstream: str, stream: bool
) -> None:
    case = next(case for case in CASES if case.id == "thinking-tools")
    await passes(gateway, replace(case, request=replace(case.request, stored=True)), "responses", upstream, stream)


# the provider's status -> the caller's status, and whether the caller gets the provider's own message
REFUSALS = {400: (400, True), 401: (502, False), 403: (502, False), 404: (502, False), 413: (413, True)} | {
    429: (429, False), 500: (502, True), 502: (502, True), 503: (503, True), 504: (504, True), 529: (503, True),
}  # fmt: skip


@streamed_or_not
@every_strict_provider
@every_face
@pytest.mark.parametrize("status", REFUSALS)
async def test_a_refusal_before_the_first_byte_has_the_faces_own_error_body(
    gateway: GatewayUnderTest, status: int, face: str, upstream: str, stream: bool
) -> None:
    got = await gateway.caller.call(face, f"via-{upstream}", Request(f"scenario: error-{status}"), stream=stream)
    expected, in_its_words = REFUSALS[status]
    if expected == 503 and face == "messages":
        expected = 529
    assert (got.status, got.stream) == (expected, False)
    assert got.is_error
    message = READERS[face].error(json.loads(got.body))
    assert (f"the provider says {status}" in message) == in_its_words
    assert got.headers.get("retry-after") == ("7" if status == 429 else None)


@every_strict_provider
@every_face
@pytest.mark.parametrize("scenario", ["error-mid", "error-event", "cut", "ends-early"])
async def test_a_stream_that_breaks_is_no_short_answer(
    gateway: GatewayUnderTest, scenario: str, face: str, upstream: str
) -> None:
    got = await gateway.caller.call(face, f"via-{upstream}", Request(f"scenario: {scenario}"), stream=True)
    assert (got.status, got.stream) == (200, True)
    read = READERS[face].stream
    assert read is not None
    received = read(got.body)
    assert received.error
    assert TEXT not in received.error
    assert received.text, "what came before the break was shown"
    assert TEXT.startswith(received.text)
    if face in TEXT_FACES:
        with pytest.raises(UmgError) as failure:
            got.canonical  # noqa: B018
        assert failure.value.reason in (
            pb.ERROR_REASON_UPSTREAM_FAILED,
            pb.ERROR_REASON_UPSTREAM_OVERLOADED,
            pb.ERROR_REASON_UPSTREAM_CUT,
        )
        assert received.text == "".join(event.text_delta for event in events_before_error(face, got.body))


@every_strict_provider
@every_face
async def test_an_answer_in_one_piece_that_fails_is_an_error(
    gateway: GatewayUnderTest, face: str, upstream: str
) -> None:
    got = await gateway.caller.call(face, f"via-{upstream}", Request("scenario: error-mid"), stream=False)
    assert (got.status, got.is_error) == (502, True)

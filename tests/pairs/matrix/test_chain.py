"""A gateway behind a gateway: a request through every pair of formats gets the same answer, streamed or not, as a
request to the gateway behind.
"""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

import aiohttp
import pytest
import pytest_asyncio

from tests.pairs.table import ROOTS, TEXT_FACES, every_face, every_upstream
from tests.support.callers.format_free_answers import Answer, canonical_answer
from tests.support.callers.http_caller import HttpCaller, events_before_error
from tests.support.callers.requests import Request
from tests.support.gateways import SANDBOX, SEARCHES_AND_REASONS, channel, running
from tests.support.providers.scenarios import CITY_SCHEMA, PDF, PNG
from umg_grpc.base.errors import UmgError

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL = "sim"  # a model without a family: a family's rules would change the request differently for each format


@dataclass
class Chain:
    """A caller of the gateway in front, and one of the gateway behind it."""

    front: HttpCaller
    behind: HttpCaller
    direct: dict[tuple[str, str, bool], tuple[Answer, Answer]] = field(default_factory=dict)
    """Answers of the gateway behind, by case, face and whether they are streamed: it gives the same ones each time."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chain(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Chain, None]:
    """Yield a gateway with one channel for each format, all to the same gateway behind it, which simulates a provider."""
    async with AsyncExitStack() as stack:
        simulated = SANDBOX.replace("models: [", f"models: [{MODEL}, ")
        inner = await stack.enter_async_context(running(simulated, tmp_path_factory.mktemp("inner")))
        channels = [
            channel(name, name, inner.url + root, f"via-{name}", MODEL) + SEARCHES_AND_REASONS
            for name, root in ROOTS.items()
        ]
        config = "channels:\n" + "".join(channels)
        outer = await stack.enter_async_context(running(config, tmp_path_factory.mktemp("outer")))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Chain(HttpCaller(session, outer.url, outer.key), HttpCaller(session, inner.url, inner.key))


@dataclass(frozen=True)
class Case:
    """A request, with or without a second stage, and a part of its response."""

    id: str
    request: Request
    finish: str = "STOP"
    again: bool = False  # the calls are run, and their results sent
    shows: str = ""  # a word of the last answer
    unlike: frozenset[str] = frozenset()  # fields of `Answer` in which the pairs may differ; each has its reason below


SCHEMAS = {
    "get_weather": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
        "required": ["city", "days"],
        "additionalProperties": False,
    },
    "get_time": {"type": "object", "properties": {"zone_name": {"type": "string"}}, "required": ["zone_name"]},
}
BOTH = ("get_weather", "get_time")
# Each format has its own measure of the amount and form of reasoning (docs/fidelity.md, reasoning); and reasoning
# tokens are output.
REASONS = frozenset({"reasoning", "usage"})
# A search is a tool in some formats, which counts as input, and an option in others.
SEARCHES = frozenset({"usage"})


def case(name: str, text: str, **options: object) -> Case:
    made = {key: options.pop(key) for key in list(options) if key in Request.__dataclass_fields__}
    return Case(name, Request(text, schemas=SCHEMAS, **made), **options)  # type: ignore[arg-type]


CASES = [
    case("plain", "Tell me of Zürich \U0001f30d.", shows="Zürich \U0001f30d"),
    case("system", "Tell me of Zürich.", system="Be brief and kind.", shows="Be brief"),
    case("multi-turn", "And now?", history=(("user", "Begin here."), ("assistant", "I did.")), shows="turn 2"),
    case("image", "What is on it?", image=PNG, shows="2 x 2"),
    case("file", "What is in it?", file=PDF, shows="application/pdf"),
    case("tools", "Use get_weather please.", tools=BOTH, finish="TOOL_CALLS", again=True, shows="21 degrees"),
    case("parallel", "get_weather and get_time now.", tools=BOTH, finish="TOOL_CALLS", again=True, shows="noon"),
    case("forced", "What?", tools=BOTH, choice="get_time", finish="TOOL_CALLS", again=True, shows="noon"),
    case("required", "What?", tools=BOTH, choice="required", finish="TOOL_CALLS"),
    case("structured", "The city.", schema=CITY_SCHEMA, shows="rivers"),
    case("thinking", "Think of Zürich.", reasoning=True, unlike=REASONS, shows="Zürich"),
    case(
        "thinking-tools",
        "Think, then get_weather and get_time.",
        tools=BOTH,
        reasoning=True,
        finish="TOOL_CALLS",
        again=True,
        unlike=REASONS,
        shows="noon",
    ),
    case(
        "hidden thoughts",
        "[[redacted]] get_time",
        tools=BOTH,
        reasoning=True,
        finish="TOOL_CALLS",
        again=True,
        unlike=REASONS,
    ),
    case("citations", "What is new in Zürich?", search=True, shows="search found", unlike=SEARCHES),
    case("stop", "Go to the STOP sign, then home.", stop="STOP"),
    case("length", "Tell me of Zürich.", limit=20, finish="LENGTH"),
    case("refusal", "[[refuse]]", finish="CONTENT_FILTER"),
    case("blocked", "[[block]]", finish="CONTENT_FILTER"),
]


def spans_aside(answer: Answer) -> Answer:
    """Return the response with the citations of its texts, but without the cited spans."""
    return replace(answer, citations=tuple((url, title, "") for url, title, _ in answer.citations))


def as_every_face(answer: Answer) -> Answer:
    """Return the response in the terms that all faces share: a refusal is text, and ends as if a filter had cut it."""
    finish = {"STOP_SEQUENCE": "STOP", "REFUSAL": "CONTENT_FILTER"}.get(answer.finish, answer.finish)
    return replace(answer, text=answer.text + answer.refusal, refusal="", notice="", finish=finish)


def prompt_aside(answer: Answer) -> Answer:
    """Return the response without the prompt's token count: a history is counted in its format's own form."""
    return replace(answer, usage=(0, *answer.usage[1:]))


def comparable(answer: Answer, case: Case, formats: set[str], *, stream: bool) -> Answer:
    """Return the response without the fields in which the formats on its way may differ (docs/fidelity.md)."""
    answer = replace(answer, **{name: getattr(Answer(), name) for name in case.unlike})
    if "messages" in formats and stream:  # a source belongs to a block there, which ends before the source is sent
        answer = spans_aside(answer)
    if case.request.stop and "responses" in formats:  # responses takes no stop sequence, and reports that
        answer = replace(answer, text="", usage=(0, 0, 0, 0), finish="")
    if {"messages", "native"} & formats:  # these have no part for a refusal, and the others no end by a stop sequence
        answer = as_every_face(answer)
    return answer


async def last_answer(caller: HttpCaller, face: str, model: str, case: Case, *, stream: bool) -> tuple[Answer, Answer]:
    """Return the first answer and the last, which is the response to the results where the calls are run."""
    got = await caller.call(face, model, case.request, stream=stream)
    assert got.status == 200, got.body
    first = last = canonical_answer(got.canonical)
    if case.again:
        again = await caller.call(face, model, replace(case.request, choice="auto"), stream=stream, previous=got.turn)
        assert again.status == 200, again.body
        last = canonical_answer(again.canonical)
    return first, last


async def direct_answer(chain: Chain, face: str, case: Case, *, stream: bool) -> tuple[Answer, Answer]:
    """Return the same of the gateway behind, which is called once for each case."""
    key = case.id, face, stream
    if key not in chain.direct:
        chain.direct[key] = await last_answer(chain.behind, face, MODEL, case, stream=stream)
    return chain.direct[key]


PAIRS = [(case, face) for case in CASES for face in TEXT_FACES]
streamed_or_not = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
named = {"argnames": ("case", "face"), "argvalues": PAIRS, "ids": [f"{face}-{case.id}" for case, face in PAIRS]}


@streamed_or_not
@every_upstream
@pytest.mark.parametrize(**named)
async def test_the_answer_is_that_without_the_gateway_in_front(
    chain: Chain, case: Case, face: str, upstream: str, stream: bool
) -> None:
    through = await last_answer(chain.front, face, f"via-{upstream}", case, stream=stream)
    direct = await direct_answer(chain, face, case, stream=stream)
    formats = {face, upstream} if upstream != face else set[str]()
    for one, other in zip(through, direct, strict=True):
        assert comparable(one, case, formats, stream=stream) == comparable(other, case, formats, stream=stream)
    assert case.shows in direct[1].text


@streamed_or_not
@pytest.mark.parametrize(**named)
async def test_all_faces_give_the_same_answer(chain: Chain, case: Case, face: str, stream: bool) -> None:
    own = await direct_answer(chain, face, case, stream=stream)
    other = await direct_answer(chain, "messages", case, stream=False)
    for one, two in zip(own, other, strict=True):
        formats = {face, "messages"}
        same = comparable(one, case, formats, stream=True), comparable(two, case, formats, stream=True)
        assert prompt_aside(same[0]) == prompt_aside(same[1])
    assert as_every_face(own[0]).finish == case.finish


@every_upstream
@every_face
async def test_a_failure_before_the_answer_has_the_faces_own_error_body(chain: Chain, face: str, upstream: str) -> None:
    for stream in (False, True):
        got = await chain.front.call(face, f"via-{upstream}", Request("[[fail]]"), stream=stream)
        assert (got.status, got.stream) == (502, False)
        assert "simulated" in got.error.message


@every_upstream
@every_face
async def test_a_failure_in_its_middle_ends_a_stream_as_an_error(chain: Chain, face: str, upstream: str) -> None:
    got = await chain.front.call(face, f"via-{upstream}", Request("Tell me. [[fail:mid]]"), stream=True)
    assert (got.status, got.stream) == (200, True)
    with pytest.raises(UmgError):
        got.canonical  # noqa: B018
    assert "".join(event.text_delta for event in events_before_error(face, got.body)).startswith("This is a simulated")

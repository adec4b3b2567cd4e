"""A gateway behind a gateway: the same model asked through every pair of formats gives the same answer, streamed or not,
as asked without the gateway in front.
"""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import aiohttp
import pytest
import pytest_asyncio

from tests.e2e.gateways import SANDBOX, SEARCHES_AND_THINKS, channel, running
from tests.matrix.calling import Caller, Heard, heard, until_it_breaks
from tests.matrix.faces import FACES, Wish
from tests.providers.scenarios import CITY_SCHEMA, PDF, PNG
from umg_grpc.errors import UmgError

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL = "sim"  # of no family, whose rules would make another request of each format's
ROOTS = {"chat": "/v1", "responses": "/v1", "messages": "/v1", "native": "/v1beta"}


@dataclass
class Chain:
    """Who asks the gateway in front, and who asks the one behind it."""

    front: Caller
    behind: Caller


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chain(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Chain, None]:
    """A gateway with one channel for each format, all to the same gateway behind it, which simulates."""
    async with AsyncExitStack() as stack:
        simulated = SANDBOX.replace("models: [", f"models: [{MODEL}, ")
        inner = await stack.enter_async_context(running(simulated, tmp_path_factory.mktemp("inner")))
        channels = [
            channel(name, name, inner.url + root, f"via-{name}", MODEL) + SEARCHES_AND_THINKS
            for name, root in ROOTS.items()
        ]
        config = "channels:\n" + "".join(channels)
        outer = await stack.enter_async_context(running(config, tmp_path_factory.mktemp("outer")))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Chain(Caller(session, outer.url, outer.key), Caller(session, inner.url, inner.key))


@dataclass(frozen=True)
class Case:
    """A wish, with or without a second stage, and what its answer shows."""

    id: str
    wish: Wish
    finish: str = "STOP"
    again: bool = False  # the calls are run, and their results sent
    shows: str = ""  # a word of the last answer
    unlike: frozenset[str] = frozenset()  # fields of `Heard` in which the pairs may differ; each has its reason below


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
# How much is thought, and how it is shown, each format says in its own measure (docs/fidelity.md, reasoning); and thoughts
# are output.
THINKS = frozenset({"thought", "usage"})
# A search is a tool to some formats, which counts as input, and an option to others.
SEARCHES = frozenset({"usage"})


def case(name: str, text: str, **options: object) -> Case:
    made = {key: options.pop(key) for key in list(options) if key in Wish.__dataclass_fields__}
    return Case(name, Wish(text, schemas=SCHEMAS, **made), **options)  # type: ignore[arg-type]


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
    case("thinking", "Think of Zürich.", thinking=True, unlike=THINKS, shows="Zürich"),
    case(
        "thinking-tools",
        "Think, then get_weather and get_time.",
        tools=BOTH,
        thinking=True,
        finish="TOOL_CALLS",
        again=True,
        unlike=THINKS,
        shows="noon",
    ),
    case(
        "hidden thoughts",
        "[[redacted]] get_time",
        tools=BOTH,
        thinking=True,
        finish="TOOL_CALLS",
        again=True,
        unlike=THINKS,
    ),
    case("citations", "What is new in Zürich?", search=True, shows="search found", unlike=SEARCHES),
    case("stop", "Go to the STOP sign, then home.", stop="STOP"),
    case("length", "Tell me of Zürich.", limit=20, finish="LENGTH"),
    case("refusal", "[[refuse]]", finish="CONTENT_FILTER"),
    case("blocked", "[[block]]", finish="CONTENT_FILTER"),
]


def spans_aside(told: Heard) -> Heard:
    """With the sources of a text, but not the words that each stands for."""
    return replace(told, sources=tuple((url, title, "") for url, title, _ in told.sources))


def as_every_face(told: Heard) -> Heard:
    """What the answer is in the words that all faces have: a refusal is text, and ends like what a filter cut."""
    finish = {"STOP_SEQUENCE": "STOP", "REFUSAL": "CONTENT_FILTER"}.get(told.finish, told.finish)
    return replace(told, text=told.text + told.refusal, refusal="", notice="", finish=finish)


def prompt_aside(told: Heard) -> Heard:
    """Without the count of the prompt: a history is counted in the words of its format."""
    return replace(told, usage=(0, *told.usage[1:]))


def comparable(told: Heard, case: Case, formats: set[str], *, stream: bool) -> Heard:
    """The answer, less that in which the formats that it passed through may differ (docs/fidelity.md)."""
    told = replace(told, **{name: getattr(Heard(), name) for name in case.unlike})
    if "messages" in formats and stream:  # a source belongs to a block there, which is over before it is told
        told = spans_aside(told)
    if case.wish.stop and "responses" in formats:  # it takes no stop sequence, and reports that
        told = replace(told, text="", usage=(0, 0, 0, 0), finish="")
    if {"messages", "native"} & formats:  # a refusal has no part of its own there, and a stop sequence no end in others
        told = as_every_face(told)
    return told


async def last_answer(caller: Caller, face: str, model: str, case: Case, *, stream: bool) -> tuple[Heard, Heard]:
    """The first answer and, where its calls are run, that to their results."""
    got = await caller.ask(face, model, case.wish, stream=stream)
    assert got.status == 200, got.body
    first = last = heard(got.canonical)
    if case.again:
        again = await caller.ask(face, model, replace(case.wish, choice="auto"), stream=stream, before=got.turn)
        assert again.status == 200, again.body
        last = heard(again.canonical)
    return first, last


PAIRS = [
    (case, face)
    for case in CASES
    for face in FACES
    if (case.id, face) != ("file", "chat")  # which takes none (chat rule 8)
]
streamed_or_not = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
named = {"argnames": ("case", "face"), "argvalues": PAIRS, "ids": [f"{face}-{case.id}" for case, face in PAIRS]}


@streamed_or_not
@pytest.mark.parametrize("upstream", FACES)
@pytest.mark.parametrize(**named)
async def test_the_answer_is_that_without_the_gateway_in_front(
    chain: Chain, case: Case, face: str, upstream: str, stream: bool
) -> None:
    if (case.id, upstream) == ("file", "chat"):
        refused = await chain.front.ask(face, "via-chat", case.wish, stream=stream)
        assert (refused.status, "/v1/responses" in refused.error.message) == (400, True)
        return
    through = await last_answer(chain.front, face, f"via-{upstream}", case, stream=stream)
    direct = await last_answer(chain.behind, face, MODEL, case, stream=stream)
    formats = {face, upstream} if upstream != face else set[str]()
    for one, other in zip(through, direct, strict=True):
        assert comparable(one, case, formats, stream=stream) == comparable(other, case, formats, stream=stream)
    assert case.shows in direct[1].text


@streamed_or_not
@pytest.mark.parametrize(**named)
async def test_the_faces_say_the_same(chain: Chain, case: Case, face: str, stream: bool) -> None:
    own = await last_answer(chain.behind, face, MODEL, case, stream=stream)
    other = await last_answer(chain.behind, "messages", MODEL, case, stream=False)
    for one, two in zip(own, other, strict=True):
        formats = {face, "messages"}
        same = comparable(one, case, formats, stream=True), comparable(two, case, formats, stream=True)
        assert prompt_aside(same[0]) == prompt_aside(same[1])
    assert as_every_face(own[0]).finish == case.finish


@pytest.mark.parametrize("upstream", FACES)
@pytest.mark.parametrize("face", FACES)
async def test_a_failure_before_the_answer_is_told_in_the_faces_own_body(
    chain: Chain, face: str, upstream: str
) -> None:
    for stream in (False, True):
        got = await chain.front.ask(face, f"via-{upstream}", Wish("[[fail]]"), stream=stream)
        assert (got.status, got.stream) == (502, False)
        assert "simulated" in got.error.message


@pytest.mark.parametrize("upstream", FACES)
@pytest.mark.parametrize("face", FACES)
async def test_a_failure_in_its_middle_ends_a_stream_as_an_error(chain: Chain, face: str, upstream: str) -> None:
    got = await chain.front.ask(face, f"via-{upstream}", Wish("Tell me. [[fail:mid]]"), stream=True)
    assert (got.status, got.stream) == (200, True)
    with pytest.raises(UmgError):
        got.canonical  # noqa: B018
    assert "".join(event.text_delta for event in until_it_breaks(face, got.body)).startswith("This is a simulated")

"""What is asked through every pair, and what each end makes of the answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.matrix.calling import Heard
from tests.matrix.faces import Wish
from tests.providers.scenarios import (
    CITED,
    CITY_SCHEMA,
    INDENTED,
    PAGES,
    PDF,
    PNG,
    REFRESH,
    REFUSAL,
    SHORT,
    STOP,
    STOPPED,
    TEXT,
    THOUGHT,
    TIME,
    WEATHER,
    Call,
    Media,
)
from umg_grpc.wire import FORMATS

Pair = tuple[str, str]  # face, upstream


@dataclass(frozen=True)
class Case:
    """A wish, and what a provider answers it."""

    id: str
    wish: Wish
    says: Heard
    after: str = ""  # what is said once the calls were run
    of: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # what the provider of a format says differently
    by: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # what the callers of a format hear differently
    dropped: Mapping[Pair, str] = field(default_factory=dict)
    """What x-umg-dropped says where a pair cannot say all of it; with the canonical names, which the caller's replace."""

    def told(self, face: str, upstream: str) -> str:
        """x-umg-dropped."""
        entries = [entry.partition("=") for entry in self.dropped.get((face, upstream), "").split(", ")]
        return ", ".join(f"{FORMATS[face].wire_path(name)}{mark}{instead}" for name, mark, instead in entries if name)

    def expected(self, face: str, upstream: str, *, stream: bool) -> Heard:
        """What the caller hears."""
        says = replace(self.says, **{**self.of.get(upstream, {}), **self.by.get(face, {})})
        if face == "chat" and upstream in ("responses", "native") and not self.wish.thoughts_shown:
            says = replace(says, thought="")  # `reasoning_effort` does not ask for the thoughts; these two wait for it
        if face == "messages" and stream and upstream != "messages" and says.sources:
            # a source belongs to a block, and these tell theirs when the text is over
            says = replace(says, sources=tuple((url, title, says.text) for url, title, _ in says.sources))
        return SHOWS[face](says)


def _chat_shows(says: Heard) -> Heard:
    if says.finish == "REFUSAL" and not says.refusal:
        says = replace(says, finish="CONTENT_FILTER")
    return replace(says, notice="", finish={"STOP_SEQUENCE": "STOP"}.get(says.finish, says.finish))


def _messages_shows(says: Heard) -> Heard:
    finish = "REFUSAL" if says.finish == "CONTENT_FILTER" else says.finish
    return replace(says, text=says.text + says.refusal, refusal="", finish=finish)


def _native_shows(says: Heard) -> Heard:
    finish = {"STOP_SEQUENCE": "STOP", "REFUSAL": "CONTENT_FILTER"}.get(says.finish, says.finish)
    return replace(says, text=says.text + says.refusal, refusal="", finish=finish)


# What each face can say of an answer (docs/fields.md, the values of FinishReason and the rows of Part.refusal and
# Candidate.finish_message).
SHOWS: dict[str, Callable[[Heard], Heard]] = {
    "chat": _chat_shows,
    "responses": _chat_shows,
    "messages": _messages_shows,
    "native": _native_shows,
}


def says(text: str = "", **more: Any) -> Heard:
    return Heard(text=text, **({"usage": (40, 10, 12, 0), "finish": "STOP"} | more))


def called(*calls: Call, **more: Any) -> Heard:
    told = tuple((call.name, dict(call.arguments)) for call in calls)
    return says(calls=told, **({"finish": "TOOL_CALLS"} | more))


def case(name: str, answer: Heard, **options: Any) -> Case:
    """Of a wish that only names the scenario, and of what `options` says of it."""
    made = {key: options.pop(key) for key in list(options) if key in Wish.__dataclass_fields__}
    scenario = name.partition(",")[0]
    return Case(name, Wish(text=f"scenario: {scenario}", **made), answer, **options)


BOTH = "The tools said: get_weather gave 21 degrees; get_time gave noon."
FORCED = "The tools said: get_time gave noon."
CITY_TEXT = '{"city":"Zürich","people":443037,"rivers":["Limmat","Sihl"],"place":{"north":47.37,"east":8.54}}'
TOOLS = ("get_weather", "get_time")
THINKING: dict[Pair, str] = {
    ("chat", "messages"): "reasoning.effort=budget_tokens 2400",
    ("chat", "native"): "reasoning.effort=budget 24576",
    ("responses", "chat"): "reasoning.summary",
    ("responses", "messages"): "reasoning.summary, reasoning.effort=budget_tokens 2400",
    ("responses", "native"): "reasoning.effort=budget 24576",
    ("messages", "chat"): "reasoning.budget_tokens=effort low",
    ("messages", "responses"): "reasoning.budget_tokens=effort low",
    ("native", "chat"): "reasoning.include_thoughts, reasoning.budget_tokens=effort low",
    ("native", "responses"): "reasoning.budget_tokens=effort low",
    ("native", "messages"): "reasoning.budget_tokens=1025",
}
NO_NAME, NO_FORM = (
    "response_format.json_schema.name",
    "response_format.json_schema.name, response_format.json_schema.strict",
)
THOUGHT_ABOUT = {"thinking": True, "dropped": THINKING}
COUNTED = (40, 10, 17, 5)  # with the thoughts

CASES = [
    case("plain", says(TEXT)),
    case("system", says("The system said: Be brief.\n\nBe kind."), system="Be brief.\n\nBe kind."),
    case(
        "multi-turn",
        says("user: one / assistant: two / user: scenario: multi-turn"),
        history=(("user", "one"), ("assistant", "two")),
    ),
    case(
        "image",
        says(f"I saw {Media('image/png', PNG).seen}."),
        image=PNG,
    ),
    case(
        "file",
        says(f"I read {Media('application/pdf', PDF).seen}."),
        file=PDF,
        dropped={("responses", "native"): "filename"},
    ),
    case(
        "tools",
        called(WEATHER, text="Let me look. "),
        tools=TOOLS,
        after="The tools said: get_weather gave 21 degrees.",
    ),
    case("parallel", called(WEATHER, TIME), tools=TOOLS, after=BOTH),
    case("parallel, by the id of the response", called(WEATHER, TIME), tools=TOOLS, after=BOTH, keeps=True),
    case("indented", called(*INDENTED), tools=TOOLS, after=BOTH),
    case("no-arguments", called(REFRESH), tools=("refresh",), after="The tools said: refresh gave done."),
    case("forced", called(TIME), tools=TOOLS, choice="get_time", after=FORCED),
    case("required", called(WEATHER), tools=("get_weather",), choice="required"),
    case(
        "structured",
        says(CITY_TEXT),
        schema=CITY_SCHEMA,
        dropped={
            ("chat", "messages"): NO_NAME,
            ("responses", "messages"): NO_NAME,
            ("chat", "native"): NO_FORM,
            ("responses", "native"): NO_FORM,
        },
    ),
    case("thinking", says(TEXT, thought=THOUGHT, usage=COUNTED), **THOUGHT_ABOUT),
    case(
        "thinking-tools",
        called(WEATHER, TIME, thought=THOUGHT, usage=COUNTED),
        tools=TOOLS,
        after=f"{BOTH} My thoughts came back.",
        **THOUGHT_ABOUT,
    ),
    case("citations", says(CITED, sources=tuple(PAGES)), search=True),
    case("citations, not asked for", says(CITED)),
    case(
        "stop",
        says("one two "),
        stop=STOP,
        of={"messages": {"finish": "STOP_SEQUENCE"}, "responses": {"text": STOPPED}},
        by={"responses": {"text": STOPPED, "finish": "STOP"}},  # whose callers cannot name one
        dropped={(face, "responses"): "stop_sequences" for face in ("chat", "messages", "native")},
    ),
    case("length", says(SHORT, finish="LENGTH"), limit=20),
    case(
        "refusal",
        says(refusal=REFUSAL, finish="REFUSAL"),
        of={
            "messages": {"refusal": "", "notice": REFUSAL},
            "native": {"refusal": "", "notice": REFUSAL, "finish": "CONTENT_FILTER"},
        },
    ),
    case(
        "filtered",
        says("Hello, wör", finish="CONTENT_FILTER"),
        of={"messages": {"notice": REFUSAL, "finish": "REFUSAL"}, "native": {"notice": REFUSAL}},
    ),
    case(
        "blocked",
        says(finish="CONTENT_FILTER"),
        of={
            "messages": {"notice": REFUSAL, "finish": "REFUSAL"},
            "native": {"notice": "the prompt was blocked: SAFETY"},
        },
    ),
    case("heartbeat", says(TEXT)),
]
"""On every pair, save for the two that one face alone can wish for."""

ONLY = {"file": ("responses", "messages", "native"), "parallel, by the id of the response": ("responses",)}

SHOWN = case(
    "thinking-tools, shown",
    called(WEATHER, TIME, thought=THOUGHT, usage=COUNTED),
    tools=TOOLS,
    after=f"{BOTH} My thoughts came back.",
    thinking=True,
    thoughts_shown=True,
    dropped={("chat", "responses"): "reasoning.budget_tokens=effort low"},
)

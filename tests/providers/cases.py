"""The scenarios as callers meet them: what is wished for, and what an SDK of each format shows then."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.providers.callers import Shown, Wish
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
    STOPPED,
    TEXT,
    THOUGHT,
    TIME,
    WEATHER,
    Media,
)

CALLED = {"chat": "tool_calls", "responses": "completed", "messages": "tool_use", "native": "STOP"}
ENDED = {"chat": "stop", "responses": "completed", "messages": "end_turn", "native": "STOP"}
CUT_SHORT = {"chat": "length", "responses": "max_output_tokens", "messages": "max_tokens", "native": "MAX_TOKENS"}
REFUSED = {"chat": "stop", "responses": "completed", "messages": "refusal", "native": "SAFETY"}
FILTERED = {"chat": "content_filter", "responses": "content_filter", "messages": "refusal", "native": "SAFETY"}
COUNTED = (40, 10, 12, 0)
THOUGHT_COUNTED = (40, 10, 17, 5)
GAVE = {"get_weather": "21 degrees", "get_time": "noon", "refresh": "done"}


@dataclass(frozen=True)
class Case:
    """A wish and what comes of it, on every format alike but for what `finish` and `differs` say."""

    id: str
    wish: Wish
    shown: Shown
    finish: Mapping[str, str] = field(default_factory=lambda: ENDED)
    after: str = ""  # what is said once the calls were run
    differs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by format

    def expected(self, name: str) -> Shown:
        """What the SDK of a format shows."""
        return replace(self.shown, finish=self.finish[name], **self.differs.get(name, {}))


def _called(*calls: Any) -> tuple[tuple[str, dict[str, Any]], ...]:
    return tuple((call.name, dict(call.arguments)) for call in calls)


def _case(name: str, shown: Shown, **options: Any) -> Case:
    """Of a wish that only names the scenario, and of what `options` says of it."""
    named = {key: options.pop(key) for key in list(options) if key in Wish.__dataclass_fields__}
    return Case(name, Wish(text=f"scenario: {name}", **named), shown, **options)


def shown(text: str = "", **more: Any) -> Shown:
    return Shown(text=text, **({"usage": COUNTED} | more))


SAW = Media("image/png", PNG).seen
READ = Media("application/pdf", PDF).seen
BOTH = "The tools said: get_weather gave 21 degrees; get_time gave noon."
SOURCES = tuple((url, title, said) for url, title, said in PAGES)

CASES = [
    _case("plain", shown(TEXT)),
    _case("system", shown("The system said: Be brief.\n\nBe kind."), system="Be brief.\n\nBe kind."),
    _case(
        "multi-turn",
        shown("user: one / assistant: two / user: scenario: multi-turn"),
        history=(("user", "one"), ("assistant", "two")),
    ),
    _case("image", shown(f"I saw {SAW}."), image=PNG),
    _case("file", shown(f"I read {READ}."), file=PDF),
    _case(
        "tools",
        shown("Let me look. ", calls=_called(WEATHER)),
        tools=("get_weather", "get_time"),
        finish=CALLED,
        after="The tools said: get_weather gave 21 degrees.",
    ),
    _case(
        "parallel",
        shown(calls=_called(WEATHER, TIME)),
        tools=("get_weather", "get_time"),
        finish=CALLED,
        after=BOTH,
    ),
    _case(
        "indented",
        shown(calls=_called(*INDENTED)),
        tools=("get_weather", "get_time"),
        finish=CALLED,
        after=BOTH,
    ),
    _case(
        "no-arguments",
        shown(calls=_called(REFRESH)),
        tools=("refresh",),
        finish=CALLED,
        after="The tools said: refresh gave done.",
    ),
    _case(
        "forced",
        shown(calls=_called(TIME)),
        tools=("get_weather", "get_time"),
        choice="get_time",
        finish=CALLED,
        after="The tools said: get_time gave noon.",
    ),
    _case("required", shown(calls=_called(WEATHER)), tools=("get_weather",), choice="required", finish=CALLED),
    _case(
        "structured",
        shown('{"city":"Zürich","people":443037,"rivers":["Limmat","Sihl"],"place":{"north":47.37,"east":8.54}}'),
        schema=CITY_SCHEMA,
    ),
    _case("thinking", shown(TEXT, thought=THOUGHT, usage=THOUGHT_COUNTED), thinking=True),
    _case(
        "thinking-tools",
        shown(thought=THOUGHT, calls=_called(WEATHER, TIME), usage=THOUGHT_COUNTED),
        tools=("get_weather", "get_time"),
        thinking=True,
        finish=CALLED,
        after=f"{BOTH} My thoughts came back.",
    ),
    _case("citations", shown(CITED, sources=SOURCES), search=True),
    Case("citations, not asked for", Wish("scenario: citations"), shown(CITED)),
    _case(
        "stop",
        shown("one two "),
        stop="STOP",
        finish=ENDED | {"messages": "stop_sequence"},
        differs={"responses": {"text": STOPPED}},
    ),
    _case("length", shown(SHORT), limit=20, finish=CUT_SHORT),
    # google-genai does not read `finishMessage` of the vendor's own API
    _case("refusal", shown(refusal=REFUSAL), finish=REFUSED, differs={"native": {"refusal": ""}}),
    _case(
        "filtered",
        shown("Hello, wör"),
        finish=FILTERED,
        differs={"messages": {"refusal": REFUSAL}},
    ),
    _case(
        "blocked",
        shown(),
        finish=FILTERED | {"native": ""},
        differs={"messages": {"refusal": REFUSAL}},
    ),
    Case("heartbeat", Wish("scenario: heartbeat"), shown(TEXT)),
]

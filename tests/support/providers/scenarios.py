"""Answers of the fake providers, independent of the format. A scenario, named in the last user text that names one
(`scenario: parallel`), gives the same texts, calls and counts in each format.
"""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

NAMED = re.compile(r"scenario: ([a-z0-9-]+)")

WORDS = ("Hello", ", wör", "ld \U0001f30d", "\u2028", "— done.")
TEXT = "".join(WORDS)
THOUGHTS = ("The user ", "wants \u201ctools\u201d ", "— I shall ", "look.")
THOUGHT = "".join(THOUGHTS)
CITED = "Zürich lies on the Limmat. \U0001f30d Its lake has 88 km². Ask a guide."
PAGES = (
    ("https://example.org/z%C3%BCrich", "Zürich", "Zürich lies on the Limmat."),
    ("https://example.org/lake", "The lake", "Its lake has 88 km²."),
)
QUERY = "Zürich river and lake"
CUSTOM = {"type": "custom"}
STOPPED = "one two STOP three four"
STOP = "STOP"
SHORT = "This answer is cut in the mid"
LIMIT = 64  # up to this many tokens the scenario `length` is cut
REFUSAL = "I cannot help with that."
CITY = {"city": "Zürich", "people": 443037, "rivers": ["Limmat", "Sihl"], "place": {"north": 47.37, "east": 8.54}}
CITY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "people": {"type": "integer"},
        "rivers": {"type": "array", "items": {"type": "string"}},
        "place": {
            "type": "object",
            "properties": {"north": {"type": "number"}, "east": {"type": "number"}},
            "required": ["north", "east"],
            "additionalProperties": False,
        },
    },
    "required": ["city", "people", "rivers", "place"],
    "additionalProperties": False,
}
# Schemas of the arguments of the tools that the scenarios call, by name. A tool is called only where it was declared.
TOOLS: dict[str, dict[str, Any]] = {
    "get_weather": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "mime_type": {"type": "string"}},
        "required": ["city"],
    },
    "get_time": {"type": "object", "properties": {"zone_name": {"type": "string"}}, "required": ["zone_name"]},
    "refresh": {"type": "object", "properties": {}},
}
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nGNgOMFwgouL8QQXFwMDAwAW+QKC3vYCCAAAAABJRU5ErkJggg=="
)
PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"


@dataclass(frozen=True)
class Call:
    """A tool call of the model. In formats with namespaces, the name of a tool in one is `namespace.name`."""

    name: str
    arguments: Mapping[str, Any]
    line_end: str = ""  # separator of the lines on which the model writes the arguments; "": all on one line
    free: str | None = None  # the input of a custom tool, which takes text in place of arguments

    @property
    def text(self) -> str:
        if self.line_end:
            return json.dumps(self.arguments, indent=2, ensure_ascii=False).replace("\n", self.line_end)
        return json.dumps(self.arguments, separators=(",", ":"), ensure_ascii=False)


WEATHER = Call("get_weather", {"city": "Zürich", "days": 3, "mime_type": "a\u2028b"})
TIME = Call("get_time", {"zone_name": "Europe/Zurich"})
REFRESH = Call("refresh", {})
INDENTED = (
    Call("get_weather", {"city": "Z\u2029\x85", "days": 3, "mime_type": "a\u2028b\n\r"}, line_end="\n"),
    Call("get_time", {"zone_name": "Europe/Zurich"}, line_end="\r\n"),
)


@dataclass(frozen=True)
class Source:
    """A page that supports the response from `start` to `end` (code points)."""

    url: str
    title: str
    start: int
    end: int


SOURCES = tuple(
    Source(url, title, CITED.index(passage), CITED.index(passage) + len(passage)) for url, title, passage in PAGES
)


@dataclass(frozen=True)
class Usage:
    """Token counts: `prompt` with cached and written ones, `output` with those of reasoning."""

    prompt: int = 40
    cached: int = 10
    output: int = 12
    thoughts: int = 0
    written: int = 0  # to the prompt cache, for the usual time
    written_long: int = 0  # for the longer time, an hour in messages
    has_misses: bool = False  # whether chat also states the tokens that were not read, as DeepSeek does


@dataclass(frozen=True)
class Answer:
    """Answer of a scenario, in the pieces in which it is streamed."""

    words: tuple[str, ...] = ()
    thoughts: tuple[str, ...] = ()
    signed: bool = False  # with reasoning state that must come back
    calls: tuple[Call, ...] = ()
    sources: tuple[Source, ...] = ()
    image: bytes = b""
    refusal: str = ""
    finish: Literal["stop", "stop_sequence", "length", "refusal", "filter", "blocked"] = "stop"
    usage: Usage = Usage()
    breaks: Literal["", "error", "error-event", "cut", "ends", "waits"] = ""  # the failure in the middle of the stream

    @property
    def text(self) -> str:
        return "".join(self.words)

    @property
    def thought(self) -> str:
        return "".join(self.thoughts)


@dataclass(frozen=True)
class Failure:
    """Refusal of a request before the first byte of a response."""

    status: int  # 0: the connection is cut
    message: str


@dataclass(frozen=True)
class Media:
    """The content of an image or a document as it arrived: its bytes, or its address."""

    type: str = ""
    data: bytes = b""
    address: str = ""

    @property
    def seen(self) -> str:
        if self.address:
            return f"something at {self.address}"
        return f"{self.type}, {len(self.data)} bytes, {hashlib.sha256(self.data).hexdigest()[:12]}"


@dataclass(frozen=True)
class Result:
    name: str
    text: str
    failed: bool = False
    media: tuple[Media, ...] = ()

    @property
    def seen(self) -> str:
        outcome = f"{self.name} {'failed' if self.failed else 'gave'} {self.text}"
        return "; ".join([outcome, *(media.seen for media in self.media)])


@dataclass(frozen=True)
class ScenarioRequest:
    model: str = ""
    stream: bool = False
    system: str = ""
    turns: tuple[tuple[str, str], ...] = ()  # (user or assistant, text); those of one role in a row are joined
    media: tuple[Media, ...] = ()
    tools: Mapping[str, Any] = field(default_factory=dict)  # schemas by name; CUSTOM for a tool that takes text
    choice: str = "auto"  # auto, none, required, or the name of the tool
    results: tuple[Result, ...] = ()  # results of the calls of the last turn
    thinking: bool = False  # whether reasoning is selected
    thought_back: bool = False  # whether the state of the reasoning before the results came back unchanged
    json: bool = False
    schema: Any = None
    stops: tuple[str, ...] = ()
    limit: int | None = None
    search: bool = False
    draws: bool = False

    @property
    def step(self) -> str:
        """Text that differs between the requests of a conversation, for the ids of their answers: Claude Code takes
        answers of one id for parts of one message.
        """
        return f"{self.turns} {self.results}"

    @property
    def last_of_user(self) -> str:
        """Text of the user's last turn; "" without one."""
        return next((text for role, text in reversed(self.turns) if role == "user"), "")

    @property
    def scenario(self) -> str:
        for role, text in reversed(self.turns):
            if role == "user" and (found := NAMED.findall(text)):
                return str(found[-1])
        return "plain"


def turns(conversation: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the turns of a conversation, adjacent ones of one role joined: some formats require that and others do
    not.
    """
    joined: list[tuple[str, str]] = []
    for role, text in conversation:
        if joined and joined[-1][0] == role:
            joined[-1] = (role, "\n".join(part for part in (joined[-1][1], text) if part))
        else:
            joined.append((role, text))
    return tuple(joined)


def answer_to(request: ScenarioRequest) -> Answer | Failure:
    name = request.scenario
    if name in ERRORS:
        return ERRORS[name]
    if name not in SCENARIOS:
        return Failure(400, f"there is no scenario {name}; there are {', '.join([*SCENARIOS, *ERRORS])}")
    return SCENARIOS[name](request)


def _split(text: str) -> tuple[str, ...]:
    return tuple(text[start : start + 7] for start in range(0, len(text), 7))


def text_answer(text: str) -> Answer:
    return Answer(_split(text))


def _calls(request: ScenarioRequest, *calls: Call, before: str = "") -> Answer:
    """Return tool calls; the tools' results, once they were run; the name of a tool that was not declared as expected."""
    if request.results:
        return text_answer(f"The tools said: {'; '.join(result.seen for result in request.results)}.")
    for call in calls:
        declared = request.tools.get(call.name)
        if declared is None or set(declared.get("properties") or {}) != set(TOOLS[call.name]["properties"]):
            return text_answer(f"No tool {call.name} as it should be: {declared}.")
    return Answer(_split(before), calls=calls)


def _forced(request: ScenarioRequest) -> Answer:
    if not request.results and request.choice != TIME.name:
        return text_answer(f"The tool was not forced: {request.choice}.")
    return _calls(request, TIME)


def _required(request: ScenarioRequest) -> Answer:
    if not request.results and request.choice != "required":
        return text_answer(f"No tool was required: {request.choice}.")
    return _calls(request, WEATHER)


def _thinking(request: ScenarioRequest) -> Answer:
    if not request.thinking:
        return Answer(WORDS)
    return Answer(WORDS, THOUGHTS, signed=True, usage=Usage(output=17, thoughts=5))


def _thinking_tools(request: ScenarioRequest) -> Answer:
    if request.results:
        back = "came back" if request.thought_back else "are lost"
        return text_answer(
            f"The tools said: {'; '.join(result.seen for result in request.results)}. My thoughts {back}."
        )
    answer = _calls(request, WEATHER, TIME)
    if not request.thinking or not answer.calls:
        return answer
    return Answer(answer.words, THOUGHTS, signed=True, calls=answer.calls, usage=Usage(output=17, thoughts=5))


def _structured(request: ScenarioRequest) -> Answer:
    """Return a response in JSON: as a call if the caller forces a tool of that schema, as SDKs do for models without
    JSON output, else as text.
    """
    wanted = list(request.tools) if request.choice == "required" else [request.choice]
    for name in wanted:
        if set(request.tools.get(name, {}).get("properties", {})) == set(CITY_SCHEMA["properties"]):
            return Answer(calls=(Call(name, CITY),))
    if not request.json:
        return text_answer("No JSON was asked for.")
    if request.schema is not None and set(request.schema.get("properties", {})) != set(CITY_SCHEMA["properties"]):
        return text_answer(f"Not the schema: {json.dumps(request.schema)}")
    return text_answer(json.dumps(CITY, separators=(",", ":"), ensure_ascii=False))


def _citations(request: ScenarioRequest) -> Answer:
    return Answer(_split(CITED), sources=SOURCES if request.search else ())


def _stop(request: ScenarioRequest) -> Answer:
    if STOP not in request.stops:
        return text_answer(STOPPED)
    return Answer(_split(STOPPED[: STOPPED.index(STOP)]), finish="stop_sequence")


def _length(request: ScenarioRequest) -> Answer:
    if request.limit is None or request.limit > LIMIT:
        return text_answer(f"{SHORT}dle.")
    return Answer(_split(SHORT), finish="length")


def _drawing(request: ScenarioRequest) -> Answer:
    return Answer(("Here it is: ",), image=PNG) if request.draws else text_answer("No image was asked for.")


def _breaking(breaks: Literal["error", "error-event", "cut", "ends"]) -> Callable[[ScenarioRequest], Answer | Failure]:
    return lambda request: Answer(WORDS, breaks=breaks) if request.stream else Failure(500, "the model fell over")


SCENARIOS: dict[str, Callable[[ScenarioRequest], Answer | Failure]] = {
    "plain": lambda request: Answer(WORDS),
    "system": lambda request: text_answer(f"The system said: {request.system}"),
    "multi-turn": lambda request: text_answer(" / ".join(f"{role}: {text}" for role, text in request.turns)),
    "image": lambda request: text_answer(f"I saw {'; '.join(media.seen for media in request.media) or 'nothing'}."),
    "file": lambda request: text_answer(f"I read {'; '.join(media.seen for media in request.media) or 'nothing'}."),
    "tools": lambda request: _calls(request, WEATHER, before="Let me look. "),
    "parallel": lambda request: _calls(request, WEATHER, TIME),
    "indented": lambda request: _calls(request, *INDENTED),
    "no-arguments": lambda request: _calls(request, REFRESH),
    "forced": _forced,
    "required": _required,
    "structured": _structured,
    "thinking": _thinking,
    "thinking-tools": _thinking_tools,
    "citations": _citations,
    "stop": _stop,
    "length": _length,
    "refusal": lambda request: Answer(refusal=REFUSAL, finish="refusal"),
    "filtered": lambda request: Answer(WORDS[:2], finish="filter"),
    "blocked": lambda request: Answer(finish="blocked"),
    "drawing": _drawing,
    "heartbeat": lambda request: Answer(WORDS),
    "endless": lambda request: Answer(WORDS, breaks="waits"),
    "error-mid": _breaking("error"),
    "error-event": _breaking("error-event"),
    "cut": _breaking("cut"),
    "ends-early": _breaking("ends"),
}
ERRORS = {
    f"error-{status}": Failure(status, f"the provider says {status}")
    for status in (400, 401, 403, 404, 413, 429, 500, 502, 503, 504, 529)
}

"""Scenarios of the fake providers as test cases: the request, and the response that callers of each format receive from a
provider of each format.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.support.callers.format_free_answers import Answer
from tests.support.callers.requests import Request
from tests.support.providers.scenarios import (
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
from umg_grpc.wire import TEXT_FACES

Pair = tuple[str, str]  # face, upstream


@dataclass(frozen=True)
class Case:
    """Test case: a request, and a provider's answer to it."""

    id: str
    request: Request
    answer: Answer
    after: str = ""  # text of the second answer, after the calls were run
    by_upstream: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # differences of a provider's answer
    ends_early: frozenset[str] = frozenset()
    """Upstreams whose stream the gateway may end before the usage comes, so that it estimates the usage."""
    refused: frozenset[str] = frozenset()
    """Upstreams that cannot express the request, so that the gateway refuses it."""
    by_face: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # differences that a face's callers receive
    dropped: Mapping[Pair, str] = field(default_factory=dict)
    """Value of x-umg-dropped, with canonical names, where a pair cannot express all of the request."""

    def dropped_header(self, face: str, upstream: str) -> str:
        """Return the value of x-umg-dropped in the caller's names."""
        entries = [entry.partition("=") for entry in self.dropped.get((face, upstream), "").split(", ")]
        return ", ".join(
            f"{TEXT_FACES[face].wire_path(name)}{mark}{instead}" for name, mark, instead in entries if name
        )

    def expected(self, face: str, upstream: str, *, stream: bool) -> Answer:
        answer = replace(self.answer, **{**self.by_upstream.get(upstream, {}), **self.by_face.get(face, {})})
        if face == "chat" and upstream in ("responses", "native") and not self.request.visible_reasoning:
            answer = replace(answer, reasoning="")  # `reasoning_effort` selects no visible reasoning
        if face == "messages" and stream and upstream != "messages" and answer.citations:
            # a citation belongs to a block, and these providers send it after the text
            cited = tuple((url, title, answer.text) for url, title, _ in answer.citations)
            answer = replace(answer, citations=cited)
        return EXPRESSED[face](answer)

    def expected_by_sdk(self, face: str, upstream: str = "", *, stream: bool = False) -> Answer:
        """Return the response as the SDK of the caller's format shows it; without an upstream that of the format's own
        provider.
        """
        answer = self.expected(face, upstream or face, stream=stream)
        finish = FINISH_WORDS[face][answer.finish]
        if self.id == "blocked" and face == "native" and upstream in ("", "native"):
            finish = ""  # there is no candidate that could have a reason
        notice = answer.notice if face == "messages" else ""  # the SDK of native ignores `finishMessage`
        return replace(answer, finish=finish, notice=notice)


def _in_chat(answer: Answer) -> Answer:
    if answer.finish == "REFUSAL" and not answer.refusal:
        answer = replace(answer, finish="CONTENT_FILTER")
    return replace(answer, notice="", finish={"STOP_SEQUENCE": "STOP"}.get(answer.finish, answer.finish))


def _in_messages(answer: Answer) -> Answer:
    finish = "REFUSAL" if answer.finish == "CONTENT_FILTER" else answer.finish
    return replace(answer, text=answer.text + answer.refusal, refusal="", finish=finish)


def _in_native(answer: Answer) -> Answer:
    finish = {"STOP_SEQUENCE": "STOP", "REFUSAL": "CONTENT_FILTER"}.get(answer.finish, answer.finish)
    return replace(answer, text=answer.text + answer.refusal, refusal="", finish=finish)


def _in_ollama(answer: Answer) -> Answer:
    answer = _in_native(answer)
    finish = "STOP" if answer.finish == "TOOL_CALLS" else answer.finish
    return replace(answer, notice="", finish=finish, usage=(answer.usage[0], 0, answer.usage[2], 0))


def _in_cohere(answer: Answer) -> Answer:
    finish = answer.finish
    if finish in ("REFUSAL", "CONTENT_FILTER"):
        finish = "STOP" if answer.refusal and finish == "REFUSAL" else "ERROR"
    text, usage = answer.text + answer.refusal, (*answer.usage[:3], 0)
    return replace(answer, text=text, refusal="", notice="", finish=finish, usage=usage)


# The parts of a response that each face can express (docs/fields.md, the values of FinishReason and the rows of
# Part.refusal and Candidate.finish_message).
EXPRESSED: dict[str, Callable[[Answer], Answer]] = {
    "chat": _in_chat,
    "responses": _in_chat,
    "messages": _in_messages,
    "native": _in_native,
    "ollama_chat": _in_ollama,
    "ollama_generate": _in_ollama,
    "cohere": _in_cohere,
}
FINISH_WORDS: dict[str, dict[str, str]] = {
    "chat": {
        "STOP": "stop",
        "TOOL_CALLS": "tool_calls",
        "LENGTH": "length",
        "REFUSAL": "stop",
        "CONTENT_FILTER": "content_filter",
    },
    "responses": {
        "STOP": "completed",
        "TOOL_CALLS": "completed",
        "LENGTH": "max_output_tokens",
        "REFUSAL": "completed",
        "CONTENT_FILTER": "content_filter",
    },
    "messages": {
        "STOP": "end_turn",
        "STOP_SEQUENCE": "stop_sequence",
        "TOOL_CALLS": "tool_use",
        "LENGTH": "max_tokens",
        "REFUSAL": "refusal",
    },
    "native": {"STOP": "STOP", "TOOL_CALLS": "STOP", "LENGTH": "MAX_TOKENS", "CONTENT_FILTER": "SAFETY"},
}
"""Face -> FinishReason -> the face's own word."""


def answer(text: str = "", **more: Any) -> Answer:
    return Answer(text=text, **({"usage": (40, 10, 12, 0), "finish": "STOP"} | more))


def answer_with_calls(*calls: Call, **more: Any) -> Answer:
    made = tuple((call.name, dict(call.arguments)) for call in calls)
    return answer(calls=made, **({"finish": "TOOL_CALLS"} | more))


def case(name: str, answer: Answer, **options: Any) -> Case:
    """Return a case whose request only names the scenario, with the fields in `options`."""
    named = {key: options.pop(key) for key in list(options) if key in Request.__dataclass_fields__}
    return Case(name, Request(text=f"scenario: {name.partition(',')[0]}", **named), answer, **options)


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
    ("chat", "converse"): "reasoning.effort=budget_tokens 2400",
    ("responses", "converse"): "reasoning.summary, reasoning.effort=budget_tokens 2400",
    ("native", "converse"): "reasoning.budget_tokens=1025",
    ("cohere", "chat"): "reasoning.budget_tokens=effort low",
    ("cohere", "responses"): "reasoning.budget_tokens=effort low",
    **{
        (face, upstream): f"reasoning.mode{instead}"
        for face in ("ollama_chat", "ollama_generate")
        for upstream, instead in (("chat", ""), ("responses", "=effort medium"), ("native", "=budget -1"))
    },
}
NO_NAME, NO_NAME_NOR_STRICT = (
    "response_format.json_schema.name",
    "response_format.json_schema.name, response_format.json_schema.strict",
)
WITH_REASONING = (40, 10, 17, 5)  # with reasoning
UNCOUNTED = {"converse": {"usage": (40, 10, 17, 0)}}  # whose usage does not count reasoning by itself
REASONED = {"reasoning": True, "dropped": THINKING, "by_upstream": UNCOUNTED}

CASES = [
    case("plain", answer(TEXT)),
    case("system", answer("The system said: Be brief.\n\nBe kind."), system="Be brief.\n\nBe kind."),
    case(
        "multi-turn",
        answer("user: one / assistant: two / user: scenario: multi-turn"),
        history=(("user", "one"), ("assistant", "two")),
    ),
    case(
        "image",
        answer(f"I saw {Media('image/png', PNG).seen}."),
        image=PNG,
    ),
    case(
        "file",
        answer(f"I read {Media('application/pdf', PDF).seen}."),
        file=PDF,
        dropped={("responses", "native"): "filename", ("chat", "native"): "filename"},
    ),
    case(
        "tools",
        answer_with_calls(WEATHER, text="Let me look. "),
        tools=TOOLS,
        after="The tools said: get_weather gave 21 degrees.",
    ),
    case("parallel", answer_with_calls(WEATHER, TIME), tools=TOOLS, after=BOTH),
    case("parallel, by the id of the response", answer_with_calls(WEATHER, TIME), tools=TOOLS, after=BOTH, stored=True),
    case("indented", answer_with_calls(*INDENTED), tools=TOOLS, after=BOTH),
    case("no-arguments", answer_with_calls(REFRESH), tools=("refresh",), after="The tools said: refresh gave done."),
    case("forced", answer_with_calls(TIME), tools=TOOLS, choice="get_time", after=FORCED),
    case("required", answer_with_calls(WEATHER), tools=("get_weather",), choice="required"),
    case(
        "structured",
        answer(CITY_TEXT),
        schema=CITY_SCHEMA,
        dropped={
            ("chat", "messages"): NO_NAME,
            ("responses", "messages"): NO_NAME,
            ("chat", "native"): NO_NAME_NOR_STRICT,
            ("responses", "native"): NO_NAME_NOR_STRICT,
        },
    ),
    case("thinking", answer(TEXT, reasoning=THOUGHT, usage=WITH_REASONING), **REASONED),
    case(
        "thinking-tools",
        answer_with_calls(WEATHER, TIME, reasoning=THOUGHT, usage=WITH_REASONING),
        tools=TOOLS,
        after=f"{BOTH} My thoughts came back.",
        **REASONED,
    ),
    case("citations", answer(CITED, citations=tuple(PAGES)), search=True, refused=frozenset({"converse"})),
    case("citations, not requested", answer(CITED)),
    case(
        "stop",
        answer("one two "),
        stop=STOP,
        # a provider of responses has no stop sequences: the gateway ends the text itself, before the usage of a stream
        by_upstream={name: {"finish": "STOP_SEQUENCE"} for name in ("messages", "responses", "converse")},
        ends_early=frozenset({"responses"}),
        by_face={"responses": {"text": STOPPED, "finish": "STOP"}},  # its clients cannot request one
        dropped={(face, "responses"): "stop_sequences=by the gateway" for face in EXPRESSED if face != "responses"},
    ),
    case("length", answer(SHORT, finish="LENGTH"), limit=20),
    case(
        "refusal",
        answer(refusal=REFUSAL, finish="REFUSAL"),
        by_upstream={
            "messages": {"refusal": "", "notice": REFUSAL},
            "native": {"refusal": "", "notice": REFUSAL, "finish": "CONTENT_FILTER"},
            "converse": {"refusal": "", "text": REFUSAL, "finish": "CONTENT_FILTER"},
        },
    ),
    case(
        "filtered",
        answer("Hello, wör", finish="CONTENT_FILTER"),
        by_upstream={"messages": {"notice": REFUSAL, "finish": "REFUSAL"}, "native": {"notice": REFUSAL}},
    ),
    case(
        "blocked",
        answer(finish="CONTENT_FILTER"),
        by_upstream={
            "messages": {"notice": REFUSAL, "finish": "REFUSAL"},
            "native": {"notice": "the prompt was blocked: SAFETY"},
            "converse": {"text": REFUSAL, "notice": "Guardrail blocked."},
        },
    ),
    case("heartbeat", answer(TEXT)),
]
"""Cases of every pair, save for the one that only one face can express."""

SDK_CASES = [case for case in CASES if not case.request.stored]
"""Cases of every SDK with a provider of its own format."""

WITHOUT_PARTS = {"file": "a PDF", "citations": "a web search", "forced": "the choice of one tool"}
"""Case -> part of its request that the formats of callers alone do not have."""
INEXPRESSIBLE: Mapping[str, Collection[str]] = {
    "cohere": WITHOUT_PARTS,
    "ollama_chat": (*WITHOUT_PARTS, "required"),
    "ollama_generate": (*WITHOUT_PARTS, *(case.id for case in CASES if case.request.tools or case.request.history)),
}
"""Face -> cases whose request its format does not have."""


def can_express(face: str, case: Case) -> bool:
    """Return whether the format of a face has the request of a case."""
    return (face == "responses" or not case.request.stored) and case.id not in INEXPRESSIBLE.get(face, ())


VISIBLE_REASONING = case(
    "thinking-tools, visible",
    answer_with_calls(WEATHER, TIME, reasoning=THOUGHT, usage=WITH_REASONING),
    tools=TOOLS,
    after=f"{BOTH} My thoughts came back.",
    reasoning=True,
    visible_reasoning=True,
    dropped={("chat", "responses"): "reasoning.budget_tokens=effort low"},
)

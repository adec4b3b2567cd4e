"""Simulated prompt caches: the tokens that each vendor reads and writes, and its refusals."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.proofs.cache import controls
from tests.proofs.cache.prompt_caches import CacheRequest, CacheUse, SteppedClock, VendorCaches, common_bytes
from tests.proofs.cache.prompts import Block, Prompt, prompt_of
from tests.proofs.cache.vendor_rules import MODELS, RULES, RULES_OF
from tests.support.providers.server import RefusedError

KIND = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


def prompt(*blocks: tuple[int, str]) -> Prompt:
    """Return a prompt of blocks with a number of tokens and the lifetime of their mark, each with a text of its own."""
    return Prompt(
        tuple(
            Block(bytes([65 + at]) * (4 * tokens), lifetime, is_message=True)
            for at, (tokens, lifetime) in enumerate(blocks)
        )
    )


@dataclass(frozen=True)
class Call:
    """Call some seconds after the one before."""

    prompt: Prompt
    use: tuple[int, int, int]
    """Tokens read, written, and written for the long time."""
    after: float = 1.0
    account: str = "a"
    key: str = ""
    automatic: str = ""
    is_long: bool = False


@dataclass(frozen=True)
class Case:
    """Calls of one vendor, in order."""

    id: str
    vendor: str
    calls: tuple[Call, ...]
    minimum: int = 1024


SHORT, LONG, LONGER = prompt((1000, "")), prompt((2000, "")), prompt((2000, ""), (300, ""))
MARKED = prompt((2000, "5m"), (10, ""))
CASES = [
    Case("openai: steps of 128 from 1024 on", "openai", (Call(LONG, (0, 0, 0)), Call(LONGER, (1920, 0, 0)))),
    Case("openai: too short", "openai", (Call(SHORT, (0, 0, 0)), Call(SHORT, (0, 0, 0)))),
    Case(
        "openai: five minutes from the last use",
        "openai",
        (
            Call(LONG, (0, 0, 0)),
            Call(LONG, (1920, 0, 0), after=290),
            Call(LONG, (1920, 0, 0), after=290),
            Call(LONG, (0, 0, 0), after=301),
        ),
    ),
    Case(
        "openai: a day where the request selects it",
        "openai",
        (Call(LONG, (0, 0, 0), is_long=True), Call(LONG, (1920, 0, 0), after=86_000)),
    ),
    Case("openai: of each account", "openai", (Call(LONG, (0, 0, 0)), Call(LONG, (0, 0, 0), account="b"))),
    Case("openai: of each key", "openai", (Call(LONG, (0, 0, 0), key="one"), Call(LONG, (0, 0, 0), key="other"))),
    Case(
        "openai: another server from the sixteenth call of a minute on",
        "openai",
        (Call(LONG, (0, 0, 0)), *[Call(LONG, (1920, 0, 0))] * 14, Call(LONG, (0, 0, 0)), Call(LONG, (1920, 0, 0))),
    ),
    Case(
        "openai breakpoints: exactly to the end of the prompt before, written each time",
        "openai breakpoints",
        (Call(LONG, (0, 2000, 0), automatic="30m"), Call(LONGER, (2000, 300, 0), automatic="30m")),
    ),
    Case(
        "openai breakpoints: none in explicit mode without marks",
        "openai breakpoints",
        (Call(LONG, (0, 0, 0)), Call(LONG, (0, 0, 0))),
    ),
    Case(
        "openai breakpoints: twelve hours",
        "openai breakpoints",
        (
            Call(LONG, (0, 0, 2000), automatic="12h", is_long=True),
            Call(LONG, (2000, 0, 0), after=43_000, automatic="30m"),
        ),
    ),
    Case(
        "openai breakpoints: half an hour",
        "openai breakpoints",
        (Call(LONG, (0, 2000, 0), automatic="30m"), Call(LONG, (0, 2000, 0), after=1801, automatic="30m")),
    ),
    Case("anthropic: nothing without a mark", "anthropic", (Call(LONG, (0, 0, 0)), Call(LONG, (0, 0, 0)))),
    Case("anthropic: up to the mark", "anthropic", (Call(MARKED, (0, 2000, 0)), Call(MARKED, (2000, 0, 0)))),
    Case(
        "anthropic: a shorter prompt than the minimum is no error",
        "anthropic",
        (Call(MARKED, (0, 0, 0)), Call(MARKED, (0, 0, 0))),
        minimum=2048,
    ),
    Case(
        "anthropic: five minutes from the last use",
        "anthropic",
        (
            Call(MARKED, (0, 2000, 0)),
            Call(MARKED, (2000, 0, 0), after=299),
            Call(MARKED, (2000, 0, 0), after=299),
            Call(MARKED, (0, 2000, 0), after=300),
        ),
    ),
    Case(
        "anthropic: an hour before five minutes",
        "anthropic",
        (
            Call(prompt((2000, "1h"), (500, "5m")), (0, 500, 2000)),
            Call(prompt((2000, "1h"), (500, "5m")), (2000, 500, 0), after=301),
            Call(prompt((2000, "1h"), (500, "5m"), (40, "5m")), (2500, 40, 0)),
        ),
    ),
    Case(
        "anthropic: a mark finds an entry within twenty blocks",
        "anthropic",
        (
            Call(prompt((2000, "5m")), (0, 2000, 0)),
            Call(prompt((2000, ""), *[(10, "")] * 18, (10, "5m")), (2000, 190, 0)),
        ),
    ),
    Case(
        "anthropic: a mark does not find an entry twenty blocks before",
        "anthropic",
        (
            Call(prompt((2000, "5m")), (0, 2000, 0)),
            Call(prompt((2000, ""), *[(10, "")] * 19, (10, "5m")), (0, 2200, 0)),
        ),
    ),
    Case(
        "anthropic: of each account", "anthropic", (Call(MARKED, (0, 2000, 0)), Call(MARKED, (0, 2000, 0), account="b"))
    ),
    Case("gemini: the longest beginning", "gemini", (Call(LONG, (0, 0, 0)), Call(LONGER, (2000, 0, 0)))),
    Case(
        "gemini: too short for a larger model", "gemini", (Call(LONG, (0, 0, 0)), Call(LONGER, (0, 0, 0))), minimum=4096
    ),
    Case("deepseek: blocks of 64", "deepseek", (Call(LONG, (0, 0, 0)), Call(LONGER, (1984, 0, 0))), minimum=64),
    Case(
        "vllm: blocks of 16",
        "vllm",
        (Call(SHORT, (0, 0, 0)), Call(prompt((1000, ""), (1, "")), (992, 0, 0))),
        minimum=16,
    ),
    Case(
        "vllm: the last token is computed in each call",
        "vllm",
        (Call(prompt((1024, "")), (0, 0, 0)), Call(prompt((1024, "")), (1008, 0, 0))),
        minimum=16,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_cache_reads_and_writes_as_its_vendor_describes(case: Case) -> None:
    clock = SteppedClock()
    caches = VendorCaches(RULES_OF[case.vendor], clock)
    found = []
    for call in case.calls:
        clock.now += call.after
        request = CacheRequest(call.account, "m", call.key, call.automatic, is_long=call.is_long)
        found.append(caches.use(request, call.prompt, case.minimum))
    assert found == [CacheUse(call.prompt.tokens, *call.use) for call in case.calls]


@dataclass(frozen=True)
class Refusal:
    id: str
    format: str
    vendor: str
    body: dict[str, Any] = field(repr=False)
    message: str


def chat(**more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi", **more.pop("part", {})}]}], **more}


def marked(*marks: dict[str, str]) -> dict[str, Any]:
    parts = [{"type": "text", "text": "hi", "cache_control": mark} for mark in marks]
    return {"messages": [{"role": "user", "content": parts}]}


REFUSALS = [
    Refusal("five marks", "messages", "anthropic", marked(*[KIND] * 5), controls.TOO_MANY.format(most=4, found=5)),
    Refusal(
        "four marks and one of the whole request",
        "messages",
        "anthropic",
        {**marked(*[KIND] * 4), "cache_control": KIND},
        controls.TOO_MANY.format(most=4, found=5),
    ),
    Refusal(
        "an hour after five minutes",
        "messages",
        "anthropic",
        marked(KIND, HOUR),
        controls.LONGER_FIRST.format(at="messages.0.content.1"),
    ),
    Refusal(
        "another lifetime",
        "messages",
        "anthropic",
        marked({"type": "ephemeral", "ttl": "2h"}),
        "messages.0.content.0.cache_control.ttl: Input should be '5m' or '1h'",
    ),
    Refusal(
        "options at an earlier model",
        "chat",
        "openai",
        chat(prompt_cache_options={"mode": "implicit"}),
        "Unsupported parameter: 'prompt_cache_options' is not supported with this model.",
    ),
    Refusal(
        "a breakpoint at an earlier model",
        "chat",
        "openai",
        chat(part={"prompt_cache_breakpoint": {"mode": "explicit"}}),
        "Unsupported parameter: 'messages[0].content[0].prompt_cache_breakpoint' is not supported with this model.",
    ),
    Refusal(
        "two lifetimes",
        "chat",
        "openai breakpoints",
        chat(prompt_cache_options={"ttl": "12h"}, prompt_cache_retention="24h"),
        "'prompt_cache_retention' cannot be used together with 'prompt_cache_options.ttl'.",
    ),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_cache_controls_are_refused_as_the_vendor_refuses_them(case: Refusal) -> None:
    with pytest.raises(RefusedError) as caught:
        controls.judge(case.format, RULES_OF[case.vendor], case.body, prompt_of(case.format, case.body))
    assert caught.value.message == case.message


def test_a_prompt_is_the_same_with_text_as_a_string_or_as_a_part_and_with_or_without_marks() -> None:
    forms = ["hi", [{"type": "text", "text": "hi"}], [{"type": "text", "text": "hi", "cache_control": KIND}]]
    found = {prompt_of("messages", {"messages": [{"role": "user", "content": form}]}).text for form in forms}
    assert len(found) == 1


def test_the_longest_common_beginning_of_two_texts_is_found() -> None:
    assert [common_bytes(b"abcd", other) for other in (b"abcd", b"abx", b"", b"abcde", b"xbcd")] == [4, 2, 0, 4, 0]


def test_every_row_has_a_source_and_a_day() -> None:
    assert all(row.source.startswith("https://") and row.as_of >= "2026-11-01" for row in (*RULES, *MODELS))
    assert {model.vendor for model in MODELS} == set(RULES_OF)

"""The drivers of the JavaScript SDKs against the strict providers: they say and show what the Python SDKs do, so that a
failure against the gateway is the gateway's.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest

from tests.providers import KEY, provider
from tests.providers.callers import Wish
from tests.providers.cases import CASES, ENDED, GAVE, Case
from tests.providers.scenarios import CITY, TEXT
from tests.providers.server import UNKNOWN
from tests.sdk.node_runner import Job, Node


@dataclass(frozen=True)
class Sdk:
    """A script and whom it speaks to."""

    id: str
    script: str
    format: str
    says: dict[str, Any]


SDKS = [
    Sdk("openai chat", "openai.mjs", "chat", {"format": "chat"}),
    Sdk("openai responses", "openai.mjs", "responses", {"format": "responses"}),
    Sdk("openai responses, kept", "openai.mjs", "responses", {"format": "responses", "keeps": True}),
    Sdk("anthropic", "anthropic.mjs", "messages", {}),
    Sdk("google", "google.mjs", "native", {}),
]


def jobs(cases: list[Case]) -> list[Job]:
    """Each case whole and streamed, with the second stage where it has one."""
    return [
        Job(f"{case.id} {'streamed' if streamed else 'whole'}", case.wish, streamed, GAVE if case.after else None)
        for case in cases
        for streamed in (False, True)
    ]


def expected(case: Case, name: str) -> dict[str, Any]:
    """What the script of a format prints for it."""
    shown = case.expected(name)
    return {
        "text": shown.text,
        "thought": shown.thought,
        "calls": [list(call) for call in shown.calls],
        "sources": [list(source) for source in shown.sources],
        "refusal": shown.refusal,
        "finish": shown.finish,
        "usage": list(shown.usage),
        "parsed": CITY if case.wish.schema else None,
    }


@pytest.mark.parametrize("sdk", SDKS, ids=lambda sdk: sdk.id)
async def test_the_sdk_shows_what_the_provider_said(sdk: Sdk, node: Node) -> None:
    async with provider(sdk.format) as server:
        found = await node.run(sdk.script, jobs(CASES), root=server.root_url, key=KEY, model="m", **sdk.says)
        assert server.refusals == []
    for case in CASES:
        for way in ("whole", "streamed"):
            answer = found[f"{case.id} {way}"]
            assert answer.get("shown") == expected(case, sdk.format), (case.id, way, answer)
            if case.after:
                assert (answer["second"]["text"], answer["second"]["finish"]) == (case.after, ENDED[sdk.format])


@dataclass(frozen=True)
class Vercel:
    """A provider of `ai`, the format that it speaks, and the scenarios that it has no words for."""

    id: str
    format: str
    without: tuple[str, ...] = ()
    model: str = "m"
    titled: bool = True  # whether it shows the titles of sources


VERCEL = [
    Vercel("openai", "responses", titled=False),  # takes them from the search, which has addresses alone
    # reads no `reasoning_content`, so that it cannot send it back either; asks for no search
    Vercel("openai-chat", "chat", ("thinking", "thinking-tools", "citations")),
    Vercel("openai-compatible", "chat", ("citations",)),
    Vercel("anthropic", "messages"),  # asks a model that it does not know for JSON by a tool
    Vercel("google", "native", model="gemini-3-pro"),  # searches by models that it knows alone
]
FINISHES = {"length": "length", "refusal": "content-filter", "filtered": "content-filter", "blocked": "content-filter"}


def shown_by_vercel(case: Case, vercel: Vercel) -> dict[str, Any]:
    """As `ai` shows it: one vocabulary of its own; sources without their words, a refusal as text."""
    shown = expected(case, vercel.format)
    shown["finish"] = "tool-calls" if shown["calls"] else FINISHES.get(case.id, "stop")
    shown["sources"] = [[url, title if vercel.titled else None, ""] for url, title, _ in shown["sources"]]
    if vercel.format in ("chat", "responses"):
        shown["text"] += shown["refusal"]
    return shown | {"refusal": ""}


def after(case: Case, vercel: Vercel) -> str:
    """Google's provider returns a result with the tool's name around it."""
    if vercel.format != "native":
        return case.after
    said = case.after
    for name, gave in GAVE.items():
        said = said.replace(f"{name} gave {gave}", f'{name} gave {{"name":"{name}","content":"{gave}"}}')
    return said


@pytest.mark.parametrize("vercel", VERCEL, ids=lambda vercel: vercel.id)
async def test_vercels_ai_shows_what_the_provider_said(vercel: Vercel, node: Node) -> None:
    cases = [case for case in CASES if case.id not in vercel.without]
    async with provider(vercel.format) as server:
        connection = {"root": server.root_url, "key": KEY, "model": vercel.model, "provider": vercel.id}
        found = await node.run("ai.mjs", jobs(cases), **connection)
        assert server.refusals == []
    for case in cases:
        for way in ("whole", "streamed"):
            answer = found[f"{case.id} {way}"]
            assert answer.get("shown") == shown_by_vercel(case, vercel), (case.id, way, answer)
            if case.after:
                assert answer["second"]["text"] == after(case, vercel)


@dataclass(frozen=True)
class Failing:
    """What goes wrong, and what it is for the SDKs that have a class for each status."""

    id: str
    scenario: str
    status: int
    error: str
    key: str = KEY
    model: str = "m"
    bad: bool = False


FAILURES = [
    Failing("a wrong key", "plain", 401, "AuthenticationError", key="wrong"),
    Failing("an unknown model", "plain", 404, "NotFoundError", model=UNKNOWN),
    Failing("a bad field", "plain", 400, "BadRequestError", bad=True),
    Failing("a rate limit", "error-429", 429, "RateLimitError"),
    Failing("a broken provider", "error-502", 502, "InternalServerError"),
]
CLASSES = {"google.mjs": "ApiError", "ai.mjs": "APICallError"}
ALL = [*SDKS, *(Sdk(f"ai {each.id}", "ai.mjs", each.format, {"provider": each.id}) for each in VERCEL)]


def failures() -> list[Job]:
    """Each failure, whole and streamed."""
    return [
        Job(
            f"{case.id} {way}",
            Wish(f"scenario: {case.scenario}"),
            way == "streamed",
            bad=case.bad,
            connection={"key": case.key, "model": case.model},
        )
        for case in FAILURES
        for way in ("whole", "streamed")
    ]


@pytest.mark.parametrize("sdk", ALL, ids=lambda sdk: sdk.id)
async def test_a_failure_is_the_sdks_own_error(sdk: Sdk, node: Node) -> None:
    async with provider(sdk.format) as server:
        found = await node.run(sdk.script, failures(), root=server.root_url, **sdk.says)
    for case in FAILURES:
        # the vendor's own answer to a bad key is a 400
        status = 400 if (case.status, sdk.format) == (401, "native") else case.status
        for way in ("whole", "streamed"):
            error = found[f"{case.id} {way}"]["error"]
            assert (error["status"], error["class"]) == (status, CLASSES.get(sdk.script, case.error)), (case.id, error)


@pytest.mark.parametrize("sdk", ALL, ids=lambda sdk: sdk.id)
async def test_a_failure_in_the_middle_of_a_stream_is_an_error(sdk: Sdk, node: Node) -> None:
    job = Job("mid", Wish("scenario: error-mid"), streamed=True)
    async with provider(sdk.format) as server:
        found = await node.run(sdk.script, [job], root=server.root_url, key=KEY, model="m", **sdk.says)
    assert "the model fell over" in found["mid"]["error"]["message"], found


@pytest.mark.parametrize("sdk", ALL, ids=lambda sdk: sdk.id)
async def test_a_stream_that_is_left_stops_the_provider(sdk: Sdk, node: Node) -> None:
    job = Job("left", Wish("scenario: endless"), aborted=True)
    async with provider(sdk.format) as server:
        found = await node.run(sdk.script, [job], root=server.root_url, key=KEY, model="m", **sdk.says)
        await asyncio.wait_for(server.left.wait(), 5)
    assert TEXT.startswith(found["left"]["shown"]["seen"]), found
    assert found["left"]["shown"]["seen"]

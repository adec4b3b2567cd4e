"""The official JavaScript SDKs, and the result of a scenario as each shows it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.callers.format_free_answers import Answer
from tests.support.callers.requests import RESULTS, Request
from tests.support.providers.scenarios import CITY
from tests.support.providers.strict_text_server import UNKNOWN
from tests.support.scenario_cases import Case
from tests.world.sdk.node_runner import Job

WAYS = ("whole", "streamed")
# The finish reasons of Vercel's `ai`, which are the same for all its providers.
FINISHES = {"length": "length", "refusal": "content-filter", "filtered": "content-filter", "blocked": "content-filter"}


@dataclass(frozen=True)
class Sdk:
    """A script, its format, and the fields that it cannot express."""

    id: str
    script: str
    format: str
    options: dict[str, Any]  # options of the script
    error: str = ""  # class of its errors, if all have the same
    without: tuple[str, ...] = ()  # scenarios that it cannot express
    model: str = "m"
    titled: bool = True  # whether it shows the titles of citations

    @property
    def is_ai(self) -> bool:
        return self.script == "ai.mjs"

    def shows(self, case: Case, answer: Answer) -> dict[str, Any]:
        """Return the expected output of the script, where `answer` is the one as the SDK of the format shows it."""
        printed = {
            "text": answer.text,
            "reasoning": answer.reasoning,
            "calls": [list(call) for call in answer.calls],
            "citations": [list(citation) for citation in answer.citations],
            "refusal": answer.refusal or answer.notice,
            "finish": answer.finish,
            "usage": list(answer.usage),
            "parsed": CITY if case.request.schema else None,
        }
        return self._by_ai(case, printed) if self.is_ai else printed

    def _by_ai(self, case: Case, shown: dict[str, Any]) -> dict[str, Any]:
        shown["finish"] = "tool-calls" if shown["calls"] else FINISHES.get(case.id, "stop")
        shown["citations"] = [[url, title if self.titled else None, ""] for url, title, _ in shown["citations"]]
        if self.format in ("chat", "responses"):
            shown["text"] += shown["refusal"]
        return shown | {"refusal": ""}

    def after(self, case: Case) -> str:
        """Return the text of the second answer; google's provider of `ai` sends each result in an object."""
        text = case.after
        if self.is_ai and self.format == "native":
            for name, gave in RESULTS.items():
                text = text.replace(f"{name} gave {gave}", f'{name} gave {{"name":"{name}","content":"{gave}"}}')
        return text


def _ai(name: str, wire_format: str, **more: Any) -> Sdk:
    return Sdk(f"ai {name}", "ai.mjs", wire_format, {"provider": name}, "APICallError", **more)


SDKS = [
    Sdk("openai chat", "openai.mjs", "chat", {"format": "chat"}),
    Sdk("openai responses", "openai.mjs", "responses", {"format": "responses"}),
    Sdk("openai responses, kept", "openai.mjs", "responses", {"format": "responses", "keeps": True}),
    Sdk("azure chat", "openai.mjs", "chat", {"format": "chat", "azure": True}),
    Sdk("azure responses", "openai.mjs", "responses", {"format": "responses", "azure": True}),
    Sdk("anthropic", "anthropic.mjs", "messages", {}),
    Sdk("google", "google.mjs", "native", {}, "ApiError"),
    _ai("openai", "responses", titled=False),  # takes sources from the search, which has only URLs
    # reads no `reasoning_content`, so that it cannot send it back either; has no search
    _ai("openai-chat", "chat", without=("thinking", "thinking-tools", "citations")),
    _ai("openai-compatible", "chat", without=("citations",)),
    _ai("anthropic", "messages"),  # gets JSON from an unknown model by a tool
    _ai("google", "native", model="gemini-3-pro"),  # searches only with models that it recognizes
]


def jobs(cases: Sequence[Case]) -> list[Job]:
    """Return each case whole and streamed, with the second stage where it has one."""
    return [
        Job(f"{case.id} {way}", case.request, way == "streamed", RESULTS if case.after else None)
        for case in cases
        for way in WAYS
    ]


@dataclass(frozen=True)
class Failing:
    id: str
    scenario: str
    status: int
    error: str
    connection: dict[str, str] = field(default_factory=dict)
    bad: bool = False

    def jobs(self) -> list[Job]:
        """Return the failing request whole and streamed."""
        request = Request(f"scenario: {self.scenario}")
        return [
            Job(f"{self.id} {way}", request, way == "streamed", bad=self.bad, connection=self.connection)
            for way in WAYS
        ]


FAILURES = [
    Failing("a wrong key", "plain", 401, "AuthenticationError", {"key": "wrong"}),
    Failing("an unknown model", "plain", 404, "NotFoundError", {"model": UNKNOWN}),
    Failing("a bad field", "plain", 400, "BadRequestError", bad=True),
    Failing("a rate limit", "error-429", 429, "RateLimitError"),
    Failing("a broken provider", "error-502", 502, "InternalServerError"),
]
BREAKS = Job("breaks", Request("scenario: error-mid"), streamed=True)
LEAVES = Job("leaves", Request("scenario: endless"), aborted=True)

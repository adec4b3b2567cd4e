"""The official JavaScript SDKs and what each shows of a scenario."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.providers.callers import Shown, Wish
from tests.providers.cases import GAVE, Case
from tests.providers.scenarios import CITY
from tests.providers.server import UNKNOWN
from tests.sdk.node_runner import Job

WAYS = ("whole", "streamed")
# The finish reasons of Vercel's `ai`, which has one vocabulary for all its providers.
FINISHES = {"length": "length", "refusal": "content-filter", "filtered": "content-filter", "blocked": "content-filter"}


@dataclass(frozen=True)
class Sdk:
    """A script, the format that it speaks, and what it has no words for."""

    id: str
    script: str
    format: str
    says: dict[str, Any]  # what the script asks for
    error: str = ""  # class of its errors, where there is one for all
    without: tuple[str, ...] = ()  # scenarios
    model: str = "m"
    titled: bool = True  # whether it shows the titles of sources

    @property
    def is_ai(self) -> bool:
        return self.script == "ai.mjs"

    def shows(self, case: Case, shown: Shown) -> dict[str, Any]:
        """What the script prints, where `shown` is what the SDK of the format shows."""
        printed = {
            "text": shown.text,
            "thought": shown.thought,
            "calls": [list(call) for call in shown.calls],
            "sources": [list(source) for source in shown.sources],
            "refusal": shown.refusal,
            "finish": shown.finish,
            "usage": list(shown.usage),
            "parsed": CITY if case.wish.schema else None,
        }
        return self._by_ai(case, printed) if self.is_ai else printed

    def _by_ai(self, case: Case, shown: dict[str, Any]) -> dict[str, Any]:
        """Sources without their words, a refusal as text."""
        shown["finish"] = "tool-calls" if shown["calls"] else FINISHES.get(case.id, "stop")
        shown["sources"] = [[url, title if self.titled else None, ""] for url, title, _ in shown["sources"]]
        if self.format in ("chat", "responses"):
            shown["text"] += shown["refusal"]
        return shown | {"refusal": ""}

    def after(self, case: Case) -> str:
        """What is said of the results; google's provider of `ai` sends them with the tool's name around them."""
        said = case.after
        if self.is_ai and self.format == "native":
            for name, gave in GAVE.items():
                said = said.replace(f"{name} gave {gave}", f'{name} gave {{"name":"{name}","content":"{gave}"}}')
        return said


def _ai(name: str, wire_format: str, **more: Any) -> Sdk:
    return Sdk(f"ai {name}", "ai.mjs", wire_format, {"provider": name}, "APICallError", **more)


SDKS = [
    Sdk("openai chat", "openai.mjs", "chat", {"format": "chat"}),
    Sdk("openai responses", "openai.mjs", "responses", {"format": "responses"}),
    Sdk("openai responses, kept", "openai.mjs", "responses", {"format": "responses", "keeps": True}),
    Sdk("anthropic", "anthropic.mjs", "messages", {}),
    Sdk("google", "google.mjs", "native", {}, "ApiError"),
    _ai("openai", "responses", titled=False),  # takes sources from the search, which has addresses alone
    # reads no `reasoning_content`, so that it cannot send it back either; asks for no search
    _ai("openai-chat", "chat", without=("thinking", "thinking-tools", "citations")),
    _ai("openai-compatible", "chat", without=("citations",)),
    _ai("anthropic", "messages"),  # asks a model that it does not know for JSON by a tool
    _ai("google", "native", model="gemini-3-pro"),  # searches by models that it knows alone
]


def jobs(cases: Sequence[Case]) -> list[Job]:
    """Each case whole and streamed, with the second stage where it has one."""
    return [
        Job(f"{case.id} {way}", case.wish, way == "streamed", GAVE if case.after else None)
        for case in cases
        for way in WAYS
    ]


@dataclass(frozen=True)
class Failing:
    """What goes wrong, and the class of the error where an SDK has one for each status."""

    id: str
    scenario: str
    status: int
    error: str
    connection: dict[str, str] = field(default_factory=dict)
    bad: bool = False

    def jobs(self) -> list[Job]:
        """Whole and streamed."""
        wish = Wish(f"scenario: {self.scenario}")
        return [
            Job(f"{self.id} {way}", wish, way == "streamed", bad=self.bad, connection=self.connection) for way in WAYS
        ]


FAILURES = [
    Failing("a wrong key", "plain", 401, "AuthenticationError", {"key": "wrong"}),
    Failing("an unknown model", "plain", 404, "NotFoundError", {"model": UNKNOWN}),
    Failing("a bad field", "plain", 400, "BadRequestError", bad=True),
    Failing("a rate limit", "error-429", 429, "RateLimitError"),
    Failing("a broken provider", "error-502", 502, "InternalServerError"),
]
BREAKS = Job("breaks", Wish("scenario: error-mid"), streamed=True)
LEAVES = Job("leaves", Wish("scenario: endless"), aborted=True)

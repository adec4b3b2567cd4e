"""Table of guards: kind of guard x decision or failure x phase x face, whole and streamed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.proofs.soak import questions
from tests.proofs.soak.callers import CallResult, Outcome
from tests.proofs.soak.questions import EMBED, GENERATE, GRPC, HTTP, IMAGE_BYTES, RERANK, TEXT, Question
from tests.support.guards import AWAY, HIDDEN, MASK, PASS, REFUSE, SECRET, SLOW, GuardServers
from tests.support.providers.faulty import right_answers

PATTERNS, WEBHOOK, GRPC_GUARD = "patterns", "webhook", "grpc"
OPEN, CLOSED = "open", "closed"
REQUEST, RESPONSE = "request", "response"
FAILURES = (SLOW, AWAY)
SECONDS = {SLOW: 0.02, AWAY: 5}
"""Time limits of guards that fail."""
TEXT_QUESTIONS = (
    *(Question(HTTP, name, stream) for name in TEXT for stream in (False, True)),
    *(Question(GRPC, GENERATE, stream) for stream in (False, True)),
)
OTHER_QUESTIONS = (
    *(Question(HTTP, name) for name in ("embeddings", "native_embeddings", "rerank")),
    *(Question(GRPC, name) for name in (EMBED, RERANK)),
)
IMAGE_QUESTIONS = tuple(Question(GRPC, IMAGE_BYTES, stream) for stream in (False, True))


@dataclass(frozen=True)
class Behaviour:
    """Guard of one model, with its decision or failure."""

    kind: str
    does: str
    phase: str
    on_failure: str = CLOSED

    @property
    def id(self) -> str:
        """Name of the guard, and of the model whose calls it checks."""
        return f"{self.does}-{self.kind}-{self.phase}-{self.on_failure}"

    def row(self, servers: GuardServers) -> str:
        """Return the row of the config."""
        common = f"name: {self.id}, kind: {self.kind}, on: [{self.phase}], models: [{self.id}]"
        if self.kind == PATTERNS:
            found = "sets: [cards]" if self.does == PASS else f"patterns: {{hidden0000: {SECRET}}}"
            return f"  - {{{common}, {found}, action: {REFUSE if self.does == REFUSE else MASK}}}\n"
        place = f"url: {servers.url}" if self.kind == WEBHOOK else f"target: '{servers.target}'"
        if self.does == AWAY:
            place = "url: http://127.0.0.1:9/" if self.kind == WEBHOOK else "target: '127.0.0.1:9'"
        limits = f"timeout: {SECONDS.get(self.does, 30)}, on_failure: {self.on_failure}"
        return f"  - {{{common}, {place}, {limits}, stream: {{window: 7, hold_back: 20}}}}\n"


BEHAVIOURS = (
    *(Behaviour(kind, does, phase) for kind in (PATTERNS, WEBHOOK, GRPC_GUARD) for does in (PASS, MASK, REFUSE)
      for phase in (REQUEST, RESPONSE)),
    *(Behaviour(kind, does, phase, how) for kind in (WEBHOOK, GRPC_GUARD) for does in FAILURES
      for phase in (REQUEST, RESPONSE) for how in (OPEN, CLOSED)),
)  # fmt: skip
QUIET = "log: {level: error}\noverload: {lag: 60}\nunpriced: free\n"
FILTERED = {
    "chat": "content_filter",
    "responses": "incomplete",
    "messages": "refusal",
    "native": "SAFETY",
    "ollama_chat": "content_filter",
    "ollama_generate": "content_filter",
    "cohere": "ERROR",
    GENERATE: "FINISH_REASON_CONTENT_FILTER",
}
"""Format -> the end of a response that a content filter cut off."""


@dataclass(frozen=True)
class Cell:
    """Call of a model with a guard."""

    behaviour: Behaviour
    question: Question

    @property
    def id(self) -> str:
        return f"{self.behaviour.id}: {self.question.id}"

    @property
    def fails(self) -> bool:
        """Whether the call is an error: a text response that is refused is none."""
        does, phase, how = self.behaviour.does, self.behaviour.phase, self.behaviour.on_failure
        if not self.is_checked:
            return False
        return (does == REFUSE and phase == REQUEST) or (does in FAILURES and how == CLOSED)

    @property
    def is_checked(self) -> bool:
        """Whether the guard is called: vectors and rankings have no text."""
        return self.question.is_text or self.behaviour.phase == REQUEST

    @property
    def right(self) -> str:
        """Text of the response."""
        behaviour, masked = self.behaviour, f"[{HIDDEN.upper()}]"
        if behaviour.does != MASK or not (self.question.is_text or behaviour.phase == REQUEST):
            return questions.right(self.question, SECRET)
        if behaviour.kind != PATTERNS:
            return questions.right(self.question, HIDDEN)
        if self.question.is_text:
            return right_answers.text(f"nonce-{masked}" if behaviour.phase == RESPONSE else "")
        if self.question.format == IMAGE_BYTES:  # the provider recognizes no masked nonce
            return questions.right(self.question, HIDDEN).replace(f"nonce-{HIDDEN}", "")
        return questions.right(self.question, masked)

    @property
    def decision(self) -> str:
        """Decision in the header."""
        does = self.behaviour.does
        if does in FAILURES:
            return f"failed-{self.behaviour.on_failure}"
        return {PASS: "allow", MASK: "masked", REFUSE: "refused"}[does]


def config(servers: GuardServers, url: str, *protocols: str) -> str:
    """Return the config of a gateway with a model for each guard, at a provider of each format."""
    models = ", ".join(each.id for each in BEHAVIOURS)
    channels = "".join(
        f"  - {{name: {each}, protocols: [{each}], base_url: '{url}', api_key: k, models: [{models}]}}\n"
        for each in protocols
    )
    return f"{QUIET}channels:\n{channels}guards:\n" + "".join(each.row(servers) for each in BEHAVIOURS)


def cells_of(selected: Iterable[Question]) -> Iterator[Cell]:
    for behaviour in BEHAVIOURS:
        yield from (Cell(behaviour, question) for question in selected)


def problem(cell: Cell, called: CallResult, headers: Mapping[str, str]) -> str:
    """Return the difference from the expected outcome, "" for none."""
    header = headers.get("x-umg-guards", "")
    if cell.question.over == HTTP and header not in _headers(cell):
        return f"{cell.id}: x-umg-guards is {header!r}: {called.detail}"
    if cell.fails:
        status = "400" if cell.behaviour.does == REFUSE else "503"
        words = ("INVALID_ARGUMENT GUARD_REFUSED", "UNAVAILABLE UNAVAILABLE")[cell.behaviour.does != REFUSE]
        expected = status if cell.question.over == HTTP else words
        is_right = called.outcome in (Outcome.FAILED, Outcome.CUT, Outcome.REFUSED)
        return "" if is_right and expected in called.detail else f"{cell.id}: {called.outcome.value}: {called.detail}"
    return "" if called.outcome is Outcome.RIGHT else f"{cell.id}: {called.outcome.value}: {called.detail}"


def _headers(cell: Cell) -> tuple[str, ...]:
    if not cell.is_checked:
        return ("",)
    stated = f"{cell.behaviour.phase}:{cell.behaviour.id}={cell.decision}"
    if cell.question.stream and cell.behaviour.phase == RESPONSE:  # of a stream those before its first byte
        return ("", stated, f"{cell.behaviour.phase}:{cell.behaviour.id}=allow")
    return (stated,)

"""What providers' refusals mean: one table for all formats, over which a format lays rows of its own.

Words are a last resort: a status or a code says it where providers have one. What may only be said of the gateway's own
account is looked for outside of quotes and where no field of the request is named: a caller who has his own words
quoted back must not be able to put a channel out of use.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from umg_grpc.errors import Failure
from umg_grpc.v1 import pb


@dataclass
class ProviderError:
    """What a provider says of a failure, in whatever shape; what it does not say is empty."""

    message: str = ""
    type: str = ""
    param: str = ""
    code: str | int | float | None = None
    hints: str = ""  # codes that stand deeper in it: a status word, reasons and quotas of details
    unsupported: str = ""  # features that the provider does not have, with commas between them
    wait: float | None = None  # seconds until another attempt, where the body says so
    page: bool = False  # a page for people, of whatever stands before the provider

    @property
    def codes(self) -> str:
        """All of it that is made for programs."""
        return f"{'' if self.code is None else self.code} {self.type} {self.hints}"

    @property
    def field(self) -> str:
        """The field of the request that it names; not the model, which is the operator's choice."""
        return "" if self.param == "model" else self.param

    @property
    def own_words(self) -> str:
        """The message less all between its first quote and its last: the request's words may stand there."""
        if (first := _OPENING.search(self.message)) is None:
            return self.message
        last = max((end.end() for end in _CLOSING.finditer(self.message, first.end())), default=len(self.message))
        return self.message[: first.start()] + self.message[last:]


_OPENING, _CLOSING = re.compile(r"[\"`“‘]|(?<!\w)'"), re.compile(r"[\"`”’]|'(?!\w)")


@dataclass(frozen=True)
class Row:
    """One kind of refusal, and what it means. It fits where all fits that it asks for."""

    statuses: Collection[int]  # HTTP statuses; none for all
    reason: "pb.ErrorReason.ValueType"
    failure: Failure
    codes: re.Pattern[str] | None = None  # found in a code or type
    words: re.Pattern[str] | None = None  # found in a code, a type or the message
    own_words: re.Pattern[str] | None = None  # the same, outside of quotes
    waits: bool | None = None  # whether the provider says how long to wait
    named: bool | None = None  # whether it names a field of the request
    page: bool = False  # whether it must be a page for people

    def fits(self, status: int, error: ProviderError, waits: bool) -> bool:
        """Whether the refusal is of this kind."""
        if self.statuses and status not in self.statuses:
            return False
        if self.waits not in (None, waits) or self.named not in (None, bool(error.field)) or self.page > error.page:
            return False
        if self.codes is not None and not self.codes.search(error.codes):
            return False
        if self.words is not None and not self.words.search(f"{error.codes} {error.message}"):
            return False
        return self.own_words is None or bool(self.own_words.search(f"{error.codes} {error.own_words}"))


Table = tuple[Row, ...]


def row_of(table: Iterable[Row], status: int, error: ProviderError, waits: bool) -> Row:
    """The first row that fits; the last fits all."""
    return next(row for row in table if row.fits(status, error, waits))


def _any(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


REJECTED, LIMITED, FAILED = (
    pb.ERROR_REASON_UPSTREAM_REJECTED,
    pb.ERROR_REASON_UPSTREAM_RATE_LIMITED,
    pb.ERROR_REASON_UPSTREAM_FAILED,
)
LONG, BLOCKED = pb.ERROR_REASON_CONTEXT_TOO_LONG, pb.ERROR_REASON_CONTENT_BLOCKED
BAD = frozenset({400, 413, 422})

TOO_LONG = _any(
    r"(?<![\w.])context[ _](?:length|window|size|limit)",  # and no field that is called so (`search_context_size`)
    r"maximum (?:context|prompt length|input length)",
    r"too many tokens",
    r"(?:prompt|input) is too long",
    r"exceed_context_size",
)
# More at once than the account may send in a minute: it is never taken there.
TOO_MUCH = _any(r"request too large\b.{0,300}\btokens per min")
FILTERED = _any(r"content_?filter", r"content_policy", r"moderation", r"responsibleai", r"safety", r"data_inspection")
# Moderation at the providers that answer it with 403.
FLAGGED = _any(
    r"requires moderation",
    r"\b(?:input|prompt|content|request|messages?)\b.{0,40}\b(?:flagged|usage (?:guidelines|polic))",
    r"guardrail",
)
OURS = _any(
    r"api[ _-]?key", r"authentication", r"unauthori[sz]ed", r"billing", r"insufficient[ _]quota", r"credit balance",
    r"\barrearage\b", r"(?:usage|spend(?:ing)?) limit",
)  # fmt: skip
QUOTA = _any(
    r"insufficient_quota", r"credit_balance", r"(?:spend|usage)_limit", r"billing", r"exceeded_current_quota",
    r"per_?day", r"per_?month",
)  # fmt: skip
SPENT = _any(
    r"credit balance", r"spend(?:ing)? (?:limit|cap)", r"(?:calls|requests) ?/ ?(?:month|day)\b", r"monthly",
    r"insufficient (?:balance|credit|quota)", r"out of credits",
)  # fmt: skip
CHECK_QUOTA = _any(r"exceeded your current quota")  # some say so for a minute's share, too
NO_MODEL = _any(
    r"model_not_found", r"(?:invalid|unknown)_model", r"model_(?:decommissioned|deprecated)", r"deployment_?not_?found"
)
# What a caller may have named, as providers speak of it.
OBJECT = _any(
    r"\b(?:response|item|file|conversation|container|vector ?store|cached ?content|prompt|thread|assistant)\b"
    r".{0,120}(?:not found|not exist|no access|no permission|active state|expired)",
    r"\bno such (?:response|item|file|conversation|container|vector ?store|prompt)\b",
    r"permission to access the (?:file|cached ?content)",
    r"previous_response_not_found",
)
NO_ENDPOINT = _any(r"no (?:endpoints?|allowed providers|providers?)\b.{0,60}\b(?:found|available|support|match)")
FOREIGN_SERVER = _any(r"external_connector", r"\bmcp\b")
MALFORMED_CALLS = frozenset({411, 414, 416, 417, 421, 431})
NOT_THERE = frozenset({404, 405, 406, 410, 415, 426})
LOADED = frozenset({503, 529})
PERHAPS_MADE = frozenset({502, 504, 520, 524})  # of proxies, which do not know what became of it

DEFAULT: Table = (
    # the request
    Row(BAD, LONG, Failure.CONTEXT, words=TOO_LONG),
    Row({413}, REJECTED, Failure.CONTEXT, words=TOO_MUCH),
    Row(BAD, BLOCKED, Failure.CALLER, codes=FILTERED),
    Row({400, 404}, FAILED, Failure.DOWN, codes=NO_MODEL, named=False),
    Row(BAD, FAILED, Failure.DOWN, own_words=OURS, named=False),
    Row(BAD, REJECTED, Failure.CALLER),
    Row({403}, BLOCKED, Failure.CALLER, words=FLAGGED),
    Row({403, 404}, REJECTED, Failure.CALLER, own_words=OBJECT),
    Row({403, 404}, REJECTED, Failure.CALLER, named=True),
    Row({404}, REJECTED, Failure.CONTEXT, words=NO_ENDPOINT),
    Row({424}, FAILED, Failure.CALLER, words=FOREIGN_SERVER),
    Row(MALFORMED_CALLS, FAILED, Failure.CALLER),
    # the account, the address
    Row({402}, FAILED, Failure.OVERLOADED, waits=True),
    Row({403}, FAILED, Failure.TRANSIENT, page=True),  # a firewall, which may dislike what the request says
    Row({498}, FAILED, Failure.OVERLOADED, words=_any(r"capacity")),
    Row({401, 402, 403, 407, 451, 498}, FAILED, Failure.DOWN),
    Row(NOT_THERE, FAILED, Failure.DOWN),
    # too much
    Row({429}, LIMITED, Failure.CONTEXT, words=TOO_MUCH),
    Row({429}, LIMITED, Failure.DOWN, codes=QUOTA),
    Row({429}, LIMITED, Failure.DOWN, own_words=SPENT),
    Row({429}, LIMITED, Failure.DOWN, own_words=CHECK_QUOTA, waits=False),
    Row({429}, LIMITED, Failure.OVERLOADED),
    Row(LOADED, FAILED, Failure.OVERLOADED, waits=True),
    # the provider
    Row(PERHAPS_MADE, FAILED, Failure.AMBIGUOUS),
    Row((), FAILED, Failure.TRANSIENT),
)

STATED = {
    "authentication_error": 401, "billing_error": 402, "permission_error": 403, "not_found_error": 404,
    "invalid_request_error": 400, "request_too_large": 413, "rate_limit_error": 429, "timeout_error": 504,
    "overloaded_error": 529,
    "context_length_exceeded": 400, "content_filter": 400, "invalid_api_key": 401, "model_not_found": 404,
    "insufficient_quota": 429, "rate_limit_exceeded": 429, "slow_down": 429, "server_is_overloaded": 503,
    "INVALID_ARGUMENT": 400, "FAILED_PRECONDITION": 400, "UNAUTHENTICATED": 401, "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404, "RESOURCE_EXHAUSTED": 429, "UNAVAILABLE": 503, "DEADLINE_EXCEEDED": 504,
}  # fmt: skip
"""The status of an error that has none: by its code, its type, or its status word."""

_HTTP_ERROR = re.compile(r"[45]\d\d", re.ASCII)


def stated(error: ProviderError) -> int:
    """The status that an error inside a good answer states; 500 where it states none."""
    for said in error.codes.split():
        if _HTTP_ERROR.fullmatch(said):
            return int(said)
        if said in STATED:
            return STATED[said]
    return 500

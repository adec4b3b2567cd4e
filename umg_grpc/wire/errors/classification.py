"""Classification of provider errors by one table for all formats, in front of which a format may put further rows.

Words in messages are used only if a provider sends no distinctive status or code. Words that mean the gateway's own
account count only outside of quotes, and only if the error names no field: a caller whose text is quoted in an error
must not be able to disable a channel.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from umg_grpc.errors import Failure
from umg_grpc.v1 import pb


@dataclass
class ProviderError:
    """Error of a provider, with the same fields for all formats. A field that the provider did not send is "" or
    None.
    """

    message: str = ""
    type: str = ""
    param: str = ""
    code: str | int | float | None = None
    hints: str = ""  # nested codes: a status word, reasons and quotas of details
    reason: str = ""  # reason of the details, which is also one of the hints
    unsupported: str = ""  # features that the provider does not support, separated by commas
    wait: float | None = None  # seconds until another attempt, if the body states them
    page: bool = False  # whether the body is not JSON, as a page of a proxy or firewall

    @property
    def codes(self) -> str:
        """All machine-readable codes of the error, joined by spaces."""
        return f"{'' if self.code is None else self.code} {self.type} {self.hints}"

    @property
    def field(self) -> str:
        """Field of the request that the error names; "" if it names none, or the model, which the operator has
        chosen.
        """
        return "" if self.param == "model" else self.param

    @property
    def own_words(self) -> str:
        """Message without the text between its first and its last quotation mark, which may repeat text of the
        caller.
        """
        if (first := _OPENING.search(self.message)) is None:
            return self.message
        last = max((end.end() for end in _CLOSING.finditer(self.message, first.end())), default=len(self.message))
        return self.message[: first.start()] + self.message[last:]


_OPENING, _CLOSING = re.compile(r"[\"`“‘]|(?<!\w)'"), re.compile(r"[\"`”’]|'(?!\w)")


@dataclass(frozen=True)
class Row:
    """Row of the table for the classification of errors: conditions for the status and the words of a provider's
    error, and the reason and consequence (`failure`) of an error that satisfies all of them.
    """

    statuses: Collection[int]  # HTTP statuses; empty for all
    reason: "pb.ErrorReason.ValueType"
    failure: Failure
    codes: re.Pattern[str] | None = None  # searched in a code or type
    words: re.Pattern[str] | None = None  # searched in a code, a type or the message
    own_words: re.Pattern[str] | None = None  # the same, without the quoted text of the message
    waits: bool | None = None  # whether the provider states the time to wait
    named: bool | None = None  # whether it names a field of the request
    page: bool = False  # whether the error must be a page (`ProviderError.page`)

    def fits(self, status: int, error: ProviderError, waits: bool) -> bool:
        """Return whether an error with an HTTP status satisfies all conditions of the row. `waits`: whether the
        provider states the time to wait before another attempt.
        """
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
    """Return the first row of `table` that an error with an HTTP status satisfies; the last row of a table must match
    every error. `waits`: whether the provider states the time to wait before another attempt.
    """
    return next(row for row in table if row.fits(status, error, waits))


def _any_of(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


REJECTED, LIMITED, FAILED = (
    pb.ERROR_REASON_UPSTREAM_REJECTED,
    pb.ERROR_REASON_UPSTREAM_RATE_LIMITED,
    pb.ERROR_REASON_UPSTREAM_FAILED,
)
LONG, BLOCKED = pb.ERROR_REASON_CONTEXT_TOO_LONG, pb.ERROR_REASON_CONTENT_BLOCKED
BAD_REQUEST_STATUSES = frozenset({400, 413, 422})

TOO_LONG = _any_of(
    r"(?<![\w.])context[ _](?:length|window|size|limit)",  # but not a field with that name (`search_context_size`)
    r"maximum (?:context|prompt length|input length)",
    r"too many tokens",
    r"(?:prompt|input) is too long",
    r"exceed_context_size",
)
# A request with more tokens than the account's limit per minute: the account never accepts it.
ABOVE_TOKEN_LIMIT = _any_of(r"request too large\b.{0,300}\btokens per min")
FILTERED = _any_of(
    r"content_?filter", r"content_policy", r"moderation", r"responsibleai", r"safety", r"data_inspection"
)
# Moderation errors of providers that send them with status 403.
MODERATED = _any_of(
    r"requires moderation",
    r"\b(?:input|prompt|content|request|messages?)\b.{0,40}\b(?:flagged|usage (?:guidelines|polic))",
    r"guardrail",
)
ACCOUNT_ERROR = _any_of(
    r"api[ _-]?key", r"authentication", r"unauthori[sz]ed", r"billing", r"insufficient[ _]quota", r"credit balance",
    r"\barrearage\b", r"(?:usage|spend(?:ing)?) limit",
)  # fmt: skip
QUOTA_CODES = _any_of(
    r"insufficient_quota", r"credit_balance", r"(?:spend|usage)_limit", r"billing", r"exceeded_current_quota",
    r"per_?day", r"per_?month",
)  # fmt: skip
NO_CREDIT = _any_of(
    r"credit balance", r"spend(?:ing)? (?:limit|cap)", r"(?:calls|requests) ?/ ?(?:month|day)\b", r"monthly",
    r"insufficient (?:balance|credit|quota)", r"out of credits",
)  # fmt: skip
QUOTA_EXCEEDED = _any_of(r"exceeded your current quota")  # some providers send this for a limit per minute, too
MINUTE_QUOTA = _any_of(r"per_?minute")
NO_MODEL = _any_of(
    r"model_not_found", r"(?:invalid|unknown)_model", r"model_(?:decommissioned|deprecated)", r"deployment_?not_?found"
)
# Objects that a caller may have named, in the words of providers.
OBJECT = _any_of(
    r"\b(?:response|item|file|conversation|container|vector ?store|cached ?content|prompt|thread|assistant)\b"
    r".{0,120}(?:not found|not exist|no access|no permission|active state|expired)",
    r"\bno such (?:response|item|file|conversation|container|vector ?store|prompt)\b",
    r"permission to access the (?:file|cached ?content)",
    r"previous_response_not_found",
)
NO_ENDPOINT = _any_of(r"no (?:endpoints?|allowed providers|providers?)\b.{0,60}\b(?:found|available|support|match)")
FOREIGN_SERVER = _any_of(r"external_connector", r"\bmcp\b")
BAD_CALL_STATUSES = frozenset({411, 414, 416, 417, 421, 431})
NOT_FOUND_STATUSES = frozenset({404, 405, 406, 410, 415, 426})
OVERLOAD_STATUSES = frozenset({503, 529})
# statuses of proxies, which do not know whether the provider executed the request
AMBIGUOUS_STATUSES = frozenset({502, 504, 520, 524})

DEFAULT: Table = (
    # errors of the request
    Row(BAD_REQUEST_STATUSES, LONG, Failure.CONTEXT, words=TOO_LONG),
    Row({413}, REJECTED, Failure.CONTEXT, words=ABOVE_TOKEN_LIMIT),
    Row(BAD_REQUEST_STATUSES, BLOCKED, Failure.CALLER, codes=FILTERED),
    Row({400, 404}, FAILED, Failure.DOWN, codes=NO_MODEL, named=False),
    Row(BAD_REQUEST_STATUSES, FAILED, Failure.DOWN, own_words=ACCOUNT_ERROR, named=False),
    Row(BAD_REQUEST_STATUSES, REJECTED, Failure.CALLER),
    Row({403}, BLOCKED, Failure.CALLER, words=MODERATED),
    Row({403, 404}, REJECTED, Failure.CALLER, own_words=OBJECT),
    Row({403, 404}, REJECTED, Failure.CALLER, named=True),
    Row({404}, REJECTED, Failure.CONTEXT, words=NO_ENDPOINT),
    Row({424}, FAILED, Failure.CALLER, words=FOREIGN_SERVER),
    Row(BAD_CALL_STATUSES, FAILED, Failure.CALLER),
    # errors of the account or of the channel's address
    Row({402}, FAILED, Failure.OVERLOADED, waits=True),
    Row({403}, FAILED, Failure.TRANSIENT, page=True),  # a firewall, which may object to the content of the request
    Row({498}, FAILED, Failure.OVERLOADED, words=_any_of(r"capacity")),
    Row({401, 402, 403, 407, 451, 498}, FAILED, Failure.DOWN),
    Row(NOT_FOUND_STATUSES, FAILED, Failure.DOWN),
    # rate limits and overload
    Row({429}, LIMITED, Failure.CONTEXT, words=ABOVE_TOKEN_LIMIT),
    Row({429}, LIMITED, Failure.DOWN, codes=QUOTA_CODES),
    Row({429}, LIMITED, Failure.DOWN, own_words=NO_CREDIT),
    Row({429}, LIMITED, Failure.OVERLOADED, codes=MINUTE_QUOTA),
    Row({429}, LIMITED, Failure.DOWN, own_words=QUOTA_EXCEEDED, waits=False),
    Row({429}, LIMITED, Failure.OVERLOADED),
    Row(OVERLOAD_STATUSES, FAILED, Failure.OVERLOADED, waits=True),
    # failures of the provider
    Row(AMBIGUOUS_STATUSES, FAILED, Failure.AMBIGUOUS),
    Row((), FAILED, Failure.TRANSIENT),
)

STATUSES_OF_CODES = {
    "authentication_error": 401, "billing_error": 402, "permission_error": 403, "not_found_error": 404,
    "invalid_request_error": 400, "request_too_large": 413, "rate_limit_error": 429, "timeout_error": 504,
    "overloaded_error": 529,
    "context_length_exceeded": 400, "content_filter": 400, "invalid_api_key": 401, "model_not_found": 404,
    "insufficient_quota": 429, "rate_limit_exceeded": 429, "slow_down": 429, "server_is_overloaded": 503,
    "INVALID_ARGUMENT": 400, "FAILED_PRECONDITION": 400, "UNAUTHENTICATED": 401, "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404, "RESOURCE_EXHAUSTED": 429, "UNAVAILABLE": 503, "DEADLINE_EXCEEDED": 504,
}  # fmt: skip
"""Code, type or status word of an error -> HTTP status with the same meaning, for errors inside a response with
status 200.
"""

HTTP_ERROR = re.compile(r"[45]\d\d", re.ASCII)


def stated_status(error: ProviderError) -> int:
    """Return the HTTP status by which an error in a response with status 200 is classified: the one that it states or
    that its code implies; 500 if there is none.
    """
    for code in error.codes.split():
        if HTTP_ERROR.fullmatch(code):
            return int(code)
        if code in STATUSES_OF_CODES:
            return STATUSES_OF_CODES[code]
    return 500

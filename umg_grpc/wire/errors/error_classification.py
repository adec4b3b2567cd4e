"""Classification of provider errors by one table for all formats: `knowledge/data/provider_errors.json`, with a source
for each row. `overflow_wordings.json` has the wordings for requests that are too long, `error_codes.json` the codes of
errors in responses with status 200.

Words in messages are used only if a provider sends no distinctive status or code. Words about the gateway's own account
count only outside of quotes, and only if the error names no field: a caller whose text is quoted in an error must not
be able to disable a channel.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache

from msgspec import Struct

from umg_grpc.base.errors import Failure
from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.v1 import pb


@dataclass
class ProviderError:
    """Error of a provider, with the same fields for all formats. A field that was not sent is "" or None."""

    message: str = ""
    type: str = ""
    param: str = ""
    code: str | int | float | None = None
    hints: str = ""  # nested codes: a status word, reasons and quotas of details
    reason: str = ""  # reason of the details, which is also one of the hints
    categories: str = ""  # findings of a content filter, separated by commas
    unsupported: str = ""  # features that the provider does not support, separated by commas
    wait: float | None = None  # seconds until another attempt, if the body states them
    page: bool = False  # whether the body is not JSON, as a page of a proxy or firewall

    @property
    def codes(self) -> str:
        """All machine-readable codes of the error, joined by spaces."""
        return f"{'' if self.code is None else self.code} {self.type} {self.hints}"

    @property
    def field(self) -> str:
        """Field of the request that the error names. "" if there is none, and for the model, which the operator
        chooses.
        """
        return "" if self.param == "model" else self.param

    @property
    def own_words(self) -> str:
        """Message without the text between its outer quotation marks, which may repeat text of the caller."""
        if (first := _OPENING.search(self.message)) is None:
            return self.message
        last = max((end.end() for end in _CLOSING.finditer(self.message, first.end())), default=len(self.message))
        return self.message[: first.start()] + self.message[last:]


_OPENING, _CLOSING = re.compile(r"[\"`“‘]|(?<!\w)'"), re.compile(r"[\"`”’]|'(?!\w)")


class ErrorRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the data file: conditions that an error must all satisfy, and the reason and consequence of the error."""

    name: str = ""
    """Name by which code refers to the patterns of the row; "" for most rows."""
    meaning: str
    statuses: tuple[int, ...] = ()
    protocols: tuple[str, ...] = ()
    """Wire formats of the providers to which the row applies; empty for all."""
    sign: str = ""
    """Words or codes by which the error is recognised, as documentation; the patterns below decide."""
    codes: str = ""
    words: str = ""
    own_words: str = ""
    overflow: bool = False
    waits: bool | None = None
    named: bool | None = None
    page: bool = False
    reason: str
    failure: Failure
    vendors: str
    source: str
    as_of: str


class OverflowWording(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the wordings with which providers reject a request that is longer than the context of a model."""

    pattern: str = ""
    codes: str = ""
    """Pattern in the codes of an error, for a row without a pattern of messages."""
    overflow: bool = True
    """False for a message that looks like one of these wordings but has another meaning. These rows come first."""
    example: str
    vendors: str
    source: str
    as_of: str


class StatedCode(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the codes: code, type or status word of an error, and the HTTP status with the same meaning."""

    code: str
    status: int
    vendors: str
    source: str
    as_of: str


Pattern = str | re.Pattern[str]


@dataclass(frozen=True)
class ClassificationRow:
    """Row of the classification table: conditions for a provider's error, and the reason and consequence (`failure`) of
    an error that satisfies them all. A pattern that is a text ignores case.
    """

    statuses: Collection[int]  # HTTP statuses; empty for all
    reason: "pb.ErrorReason.ValueType"
    failure: Failure
    codes: Pattern | None = None  # searched in a code or type
    words: Pattern | None = None  # searched in a code, a type or the message
    own_words: Pattern | None = None  # the same, without the quoted text of the message
    overflow: bool = False  # whether the error must state that the request is longer than the context
    waits: bool | None = None  # whether the provider states the time to wait
    named: bool | None = None  # whether it names a field of the request
    page: bool = False  # whether the error must be a page (`ProviderError.page`)

    def fits(self, status: int, error: ProviderError, waits: bool) -> bool:
        """Return whether an error satisfies all conditions. `waits`: whether the provider states a time to wait."""
        if self.statuses and status not in self.statuses:
            return False
        if self.waits not in (None, waits) or self.named not in (None, bool(error.field)) or self.page > error.page:
            return False
        if self.codes is not None and not has(self.codes, error.codes):
            return False
        if self.words is not None and not has(self.words, f"{error.codes} {error.message}"):
            return False
        if self.overflow and not is_overflow(error):
            return False
        return self.own_words is None or has(self.own_words, f"{error.codes} {error.own_words}")


Table = tuple[ClassificationRow, ...]


def row_of(table: Iterable[ClassificationRow], status: int, error: ProviderError, waits: bool) -> ClassificationRow:
    """Return the first row of `table` that an error with an HTTP status satisfies; the last row of a table must match
    every error. `waits`: whether the provider states the time to wait before another attempt.
    """
    return next(row for row in table if row.fits(status, error, waits))


def has(pattern: Pattern, text: str) -> bool:
    """Return whether a pattern occurs in a text. The pattern is compiled at its first use, as most are never needed."""
    return _compiled(pattern).search(text) is not None


@cache
def _compiled(pattern: Pattern) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE) if isinstance(pattern, str) else pattern


def is_overflow(error: ProviderError) -> bool:
    """Return whether an error states, in one of the known wordings, that the request is longer than the context."""
    message, codes = _any_overflow()
    if not message.search(error.message) and not codes.search(error.codes):
        return False  # most errors: one search in place of one for each row
    for row in overflow_wordings():
        if has(row.pattern, error.message) if row.pattern else has(row.codes, error.codes):
            return row.overflow
    return False


@cache
def _any_overflow() -> tuple[re.Pattern[str], re.Pattern[str]]:
    rows = [row for row in overflow_wordings() if row.overflow]
    messages = "|".join(f"(?:{row.pattern})" for row in rows if row.pattern)
    codes = "|".join(f"(?:{row.codes})" for row in rows if row.codes)
    return re.compile(messages, re.IGNORECASE), re.compile(codes, re.IGNORECASE)


@cache
def overflow_wordings() -> tuple[OverflowWording, ...]:
    """Return the rows of the table of wordings."""
    return tuple(read_rows("overflow_wordings", OverflowWording))


@cache
def error_rows() -> tuple[ErrorRow, ...]:
    """Return the rows of the table of errors, in the order in which they are tried."""
    return tuple(read_rows("provider_errors", ErrorRow))


def table_for(protocol: str = "") -> Table:
    """Return the classification table for providers of a wire format; for "", the rows that apply to all formats."""
    return tuple(_row(row) for row in error_rows() if not row.protocols or protocol in row.protocols)


def _row(row: ErrorRow) -> ClassificationRow:
    return ClassificationRow(
        frozenset(row.statuses),
        pb.ErrorReason.Value(f"ERROR_REASON_{row.reason}"),
        row.failure,
        codes=row.codes or None,
        words=row.words or None,
        own_words=row.own_words or None,
        overflow=row.overflow,
        waits=row.waits,
        named=row.named,
        page=row.page,
    )


LIMITED_REASON, FAILED_REASON, BLOCKED_REASON = (
    pb.ERROR_REASON_UPSTREAM_RATE_LIMITED,
    pb.ERROR_REASON_UPSTREAM_FAILED,
    pb.ERROR_REASON_CONTENT_BLOCKED,
)
DEFAULT_TABLE = table_for()
CHANNEL_STATUSES = frozenset(
    str(status)
    for row in DEFAULT_TABLE
    if row.reason == FAILED_REASON and row.failure is Failure.DOWN and not (row.codes or row.words or row.own_words)
    for status in row.statuses
)
"""Values of `upstream_status` with which a provider rejects all calls until the operator corrects the channel."""

_NAMED = {row.name: row for row in error_rows() if row.name}
FILTERED_CODES = re.compile(_NAMED["filtered"].codes, re.IGNORECASE)
NO_MODEL = re.compile(_NAMED["no model"].codes, re.IGNORECASE)
ACCOUNT_ERROR = re.compile(_NAMED["account"].own_words, re.IGNORECASE)
NOT_FOUND_STATUSES = frozenset(_NAMED["not found"].statuses)

HTTP_ERROR = re.compile(r"[45]\d\d", re.ASCII)


def stated_status(error: ProviderError) -> int:
    """Return the HTTP status for an error in a response with status 200: stated, or implied by its code, else 500."""
    for code in error.codes.split():
        if HTTP_ERROR.fullmatch(code):
            return int(code)
        if code in _statuses_of_codes():
            return _statuses_of_codes()[code]
    return 400 if is_overflow(error) else 500


@cache
def _statuses_of_codes() -> dict[str, int]:
    return {row.code: row.status for row in read_rows("error_codes", StatedCode)}

"""Conversion of providers' errors to callers' errors, without details of the operator's account. Most formats have
errors like `{error: {message, type, code}}`: rows of the format classify them, then the table of
`error_classification`.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import TypeVar

import msgspec
from msgspec import Raw

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.provider_failure import ProviderFailure
from umg_grpc.v1 import pb
from umg_grpc.wire.core.split_character_repair import decode
from umg_grpc.wire.core.sse import BYTE_ORDER_MARK
from umg_grpc.wire.errors.content_filter_findings import categories_in
from umg_grpc.wire.errors.error_body_reading import MAX_CHARACTERS, stated, values_of
from umg_grpc.wire.errors.error_classification import (
    ACCOUNT_ERROR,
    DEFAULT_TABLE,
    HTTP_ERROR,
    ProviderError,
    Table,
    row_of,
    stated_status,
)
from umg_grpc.wire.errors.error_message_redaction import clean
from umg_grpc.wire.errors.failure_kinds import Evidence, kind_of

Decoded = TypeVar("Decoded")
OK_CODES = frozenset({"", "0", "200", "success", "ok", "base_resp.0", "error_code.0"})
"""Codes that mean success, in lower case, some with a prefix (tigerowo/infinite-canvas, handler/video_task.go)."""
NO_ERRORS = frozenset({b"", b"null", b"{}", b'""', b"false"})


def is_error(raw: Raw) -> bool:
    """Return whether the member `error` of a body states an error: it is not absent, null, "" or empty."""
    return bytes(raw) not in NO_ERRORS


def is_ok(code: object) -> bool:
    """Return whether the code of a response means success. An absent code does, too."""
    return code is None or str(code).strip().lower() in OK_CODES


NO_RESPONSE = ": it contains no response"


def unreadable(why: str = "") -> UmgError:
    """Return the error UPSTREAM_FAILED for a response that cannot be decoded. `why`: addition to the message. Its
    `failure` is AMBIGUOUS, as the provider may have executed the call.
    """
    message = f"the provider's response cannot be read{why}; try again"
    return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(Failure.AMBIGUOUS)


def read_response(decoder: msgspec.json.Decoder[Decoded], body: bytes) -> Decoded:
    """Return a provider's JSON decoded by `decoder`. Raise UmgError(UPSTREAM_FAILED) if it does not match the type."""
    try:
        return decode(decoder, body)
    except (ValueError, RecursionError):
        raise unreadable() from None


def no_response(body: bytes, table: Table = DEFAULT_TABLE, *, too_long: str = "messages") -> UmgError:
    """Return the error that a response with status 200 states instead of output (`base_resp`), or UPSTREAM_FAILED."""
    return failure_in_response(body, table, too_long=too_long) or unreadable(NO_RESPONSE)


def failure_in_response(body: bytes, table: Table = DEFAULT_TABLE, *, too_long: str = "messages") -> UmgError | None:
    """Return the error that a body or event without output states by a code and a message; None if it states none."""
    if b"code" not in body:  # the cheapest check first: heartbeats of streams have no choices either
        return None
    error = read_error(body)
    if not error.message or is_ok(error.code):
        return None
    return from_provider(200, error, too_long=too_long, table=table)


def cut_off() -> UmgError:
    """Return the error UPSTREAM_CUT for a stream that ended before its end marker."""
    message = "the provider's stream broke off before its end; the response is incomplete; try again"
    return UmgError(pb.ERROR_REASON_UPSTREAM_CUT, message).with_failure(Failure.AMBIGUOUS)


ACCOUNT_WORDS = re.compile(
    r"credential|permission|quota|account|organi[sz]ation|subscription|\btoken is", re.IGNORECASE
)
MAX_CODE_CHARACTERS = 80
MAX_PAGE_BYTES = 1 << 16
LONGEST_WAIT = 24 * 60 * 60
QUOTA_CODE = "insufficient_quota"
"""Code of a used-up quota. In formats without a code for it, the header `x-should-retry` of a 429 states it."""
NO_WAIT, NO_QUOTA_WAIT = 1, 60  # seconds of a 429 without a stated wait: a used-up quota lasts longer
CODE_FORM = re.compile(r"^[a-z][a-z_]{1,63}$")
PATH_FORM = re.compile(r"^[\w.\[\]-]{1,200}$")
GATEWAY_CALL_STATUSES = frozenset({400, 401, 402, 403, 404, 407})


def decode_error(
    status: int, headers: Mapping[str, str], body: bytes, *, too_long: str = "messages", table: Table = DEFAULT_TABLE
) -> UmgError:
    """Return the caller's error for a failed call. `headers`: by lower-case name. `too_long`: canonical field that the
    error names if the request exceeds the model's context.
    """
    return from_provider(status, read_error(body), headers, too_long=too_long, table=table)


def read_error(body: bytes) -> ProviderError:
    """Return the error in a body of any usual shape. A text, or the title of an HTML page, is its message."""
    try:
        return as_error(msgspec.json.decode(body.removeprefix(BYTE_ORDER_MARK)))
    except (ValueError, RecursionError):
        pass
    try:
        text = body[:MAX_PAGE_BYTES].decode()
    except UnicodeDecodeError:
        text = ""
    return replace(as_error(text), page=bool(body.strip()))


def as_error(value: object) -> ProviderError:
    """Return the provider's error from a decoded error body, or from the member `error` of one."""
    found = stated(value)
    details = [
        detail for level in found.levels for detail in _details(level.get("details")) if isinstance(detail, dict)
    ]
    params = (level.get("param") for level in found.levels)
    code, kind = next(iter(found.codes), None), next(iter(found.types), "")
    outer = [str(each) for each in (*found.codes[1:], *found.types[1:])]
    hints = [hint for level in (*found.levels, *details) for hint in _hints(level)]
    return ProviderError(
        message=found.message,
        type=kind,
        param=next((param for param in params if isinstance(param, str) and param), next(_fields(details), "")),
        code=code,
        hints=" ".join(dict.fromkeys([*hints, *filter(_HINT.fullmatch, outer)]))[:MAX_CHARACTERS],
        reason=next(_reasons(details), ""),
        categories=categories_in(found.levels),
        unsupported=",".join(_unsupported(details))[:MAX_CHARACTERS],
        wait=next(_waits(details), None) or _wait_of_message(found.message),
    )


def _details(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


_ANY = msgspec.json.Decoder()
_HINT = re.compile(r"[\w./:-]{1,200}", re.ASCII)


def _hints(value: dict[str, object]) -> Iterator[str]:
    yield from (hint for hint in values_of(value, "hint") if isinstance(hint, str) and _HINT.fullmatch(hint))
    for violation in _violations(value, "violations"):
        yield from _hints(violation)


def _reasons(details: list[dict[str, object]]) -> Iterator[str]:
    for detail in details:
        if isinstance(reason := detail.get("reason"), str) and _HINT.fullmatch(reason):
            yield reason


def _fields(details: list[dict[str, object]]) -> Iterator[str]:
    for detail in details:
        for violation in _violations(detail, "fieldViolations"):
            if isinstance(field := violation.get("field"), str) and field:
                yield field


def _unsupported(details: list[dict[str, object]]) -> Iterator[str]:
    for detail in details:
        listed = detail.get("unsupported")
        for feature in listed if isinstance(listed, list) else []:
            if isinstance(feature, str) and _HINT.fullmatch(feature) and clean(feature) == feature:
                yield feature


def _violations(value: Mapping[str, object], name: str) -> list[dict[str, object]]:
    listed = value.get(name)
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


_DELAY = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s", re.ASCII)
_WAIT = re.compile(
    r"(?:try again|retry) (?:in|after) (?:(\d{1,4})h)?(?:(\d{1,4})m(?!s))?"
    r"(?:(\d{1,9}(?:\.\d{1,9})?) ?(ms|s(?:ec(?:ond)?s?)?)\b)?",
    re.IGNORECASE | re.ASCII,
)


def _waits(details: list[dict[str, object]]) -> Iterator[float]:
    for detail in details:
        delay = detail.get("retryDelay")
        if isinstance(delay, str) and (found := _DELAY.fullmatch(delay)):
            yield float(found[1])


def _wait_of_message(message: str) -> float | None:
    found = _WAIT.search(message)
    if found is None or not any(found.groups()):
        return None
    last = float(found[3] or 0) / (1000 if (found[4] or "").lower() == "ms" else 1)
    return int(found[1] or 0) * 3600 + int(found[2] or 0) * 60 + last


def stated_in(error: Raw, *, too_long: str) -> UmgError:
    """Return the caller's error for the member `error` of a response with status 200, as `from_provider` does."""
    return from_provider(200, as_error(read_response(_ANY, bytes(error))), too_long=too_long)


def from_provider(
    status: int,
    error: ProviderError,
    headers: Mapping[str, str] | None = None,
    *,
    too_long: str = "messages",
    table: Table = DEFAULT_TABLE,
) -> UmgError:
    """Return the caller's error for a provider's error. `status`: HTTP status; for 200, the status that the error
    states is used. `headers`: by lower-case name. `too_long`: canonical field that the error names if the request
    exceeds the model's context.
    """
    provider_status = status
    if status < 400:
        status = stated_status(error)
    headers = headers or {}
    header_seconds = _retry_after(headers)
    if status == 429 and headers.get("x-should-retry") == "false":
        error = replace(error, hints=f"{error.hints} {QUOTA_CODE}".strip())  # SDKs do not repeat the call either
    seconds = _whole_seconds(error.wait) if header_seconds is None and error.wait is not None else header_seconds
    row = row_of(table, status, error, waits=seconds is not None)
    metadata = {"upstream_status": str(provider_status)}
    match row.reason:
        case pb.ERROR_REASON_UPSTREAM_RATE_LIMITED:
            advice = "later" if seconds is None else f"in {seconds} s"
            message = f"the provider's rate limit is reached; try again {advice}"
            # not every provider states the time to wait
            default_wait = NO_QUOTA_WAIT if row.failure is Failure.DOWN else NO_WAIT
            metadata = {"retry_after_seconds": str(default_wait if seconds is None else seconds)}
        case pb.ERROR_REASON_UPSTREAM_FAILED | pb.ERROR_REASON_UPSTREAM_OVERLOADED | pb.ERROR_REASON_UPSTREAM_TIMEOUT:
            message = _failure_message(status, provider_status, error)
            metadata |= _wait(row.failure, seconds)
        case pb.ERROR_REASON_UPSTREAM_UNPAID:
            message = "the operator's account with the provider has no credit left; the operator has to add some"
        case pb.ERROR_REASON_UPSTREAM_QUOTA_EXHAUSTED:
            message = "the operator's account with the provider has used up its quota; the operator has to raise it"
            metadata |= {"retry_after_seconds": str(NO_QUOTA_WAIT if seconds is None else seconds)}
        case _:  # all other reasons of the table are errors of the request
            message = clean(error.message) or f"the provider refused the request (status {status})"
            if row.reason == pb.ERROR_REASON_CONTENT_BLOCKED and error.categories:
                message = f"{message} Filtered categories: {error.categories.replace(',', ', ')}."
            metadata = _request_metadata(row.reason, error, metadata, too_long)
    # the upstream masks the message, since it has the key
    kind = kind_of(Evidence(row.reason, status, error, page=error.page))
    facts = ProviderFailure(kind, provider_status, _stated_code(error), error.message)
    return UmgError(row.reason, message, **metadata).with_failure(row.failure).with_facts(facts)


def _wait(failure: Failure, seconds: int | None) -> dict[str, str]:
    if seconds is None or failure in (Failure.CALLER, Failure.DOWN):
        return {}
    return {"retry_after_seconds": str(seconds)}


def _stated_code(error: ProviderError) -> str:
    code = "" if error.code is None else str(error.code)
    if not code or HTTP_ERROR.fullmatch(code):
        code = error.reason or error.type or error.hints.partition(" ")[0] or code
    return clean(code, MAX_CODE_CHARACTERS)


def _request_metadata(
    reason: "pb.ErrorReason.ValueType", error: ProviderError, metadata: dict[str, str], too_long: str
) -> dict[str, str]:
    """Return `metadata` with the field and further facts for the caller, for an error that the request caused.
    `too_long`: canonical field to name if the request exceeds the model's context.
    """
    if reason == pb.ERROR_REASON_CONTEXT_TOO_LONG:
        return {"field": too_long}
    if reason == pb.ERROR_REASON_CONTENT_BLOCKED and error.categories:
        return {"categories": error.categories}
    if reason == pb.ERROR_REASON_THREAD_UNSUPPORTED_REQUEST and error.unsupported:
        return {"unsupported": error.unsupported}
    if reason == pb.ERROR_REASON_UPSTREAM_TOO_LARGE:
        return metadata
    if reason != pb.ERROR_REASON_UPSTREAM_REJECTED:
        return {}
    # a path that `clean` would change is not a valid path
    if PATH_FORM.match(error.param) and clean(error.param) == error.param:
        metadata["field"] = error.param
    if isinstance(error.code, str) and CODE_FORM.match(error.code):
        metadata["upstream_code"] = error.code
    return metadata


def _failure_message(status: int, provider_status: int, error: ProviderError) -> str:
    """Return the message for callers if the provider failed or rejected the gateway's credentials. `provider_status`:
    HTTP status that the provider sent; `status` may be one that the error states.
    """
    if status in GATEWAY_CALL_STATUSES:
        return f"the provider refused the gateway's own call (status {status}); the operator has to check the channel"
    # the status of an error inside a response with status 200 is not informative
    shown_status = f" (status {provider_status})" if provider_status >= 400 else ""
    words = f"{error.codes} {error.message}"
    if error.message and not ACCOUNT_ERROR.search(words) and not ACCOUNT_WORDS.search(words):
        return f"the provider failed{shown_status}: {clean(error.message)}"
    return f"the provider failed{shown_status}; try again"


def _retry_after(headers: Mapping[str, str]) -> int | None:
    wait = headers.get("retry-after", "")
    try:
        if (milliseconds := headers.get("retry-after-ms") or headers.get("x-ms-retry-after-ms")) is not None:
            return _whole_seconds(float(milliseconds) / 1000)
        if wait.replace(".", "", 1).isdigit():
            return _whole_seconds(float(wait))
        if wait and "date" in headers:
            return _whole_seconds(
                (parsedate_to_datetime(wait) - parsedate_to_datetime(headers["date"])).total_seconds()
            )
    except (ValueError, TypeError):
        pass
    return None


def _whole_seconds(seconds: float) -> int:
    return math.ceil(min(max(0, seconds), LONGEST_WAIT))

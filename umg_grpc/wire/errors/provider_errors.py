"""Refusals of providers, whatever their format: what the caller is told, and what is not.

The formats write errors alike (`{error: {message, type, code}}` with one or the other left out or added). What they
mean says the table of `refusals`, with a format's own rows before it.
"""

import math
import re
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime

import msgspec
from msgspec import Raw, Struct

from umg_grpc.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.clean import clean
from umg_grpc.wire.json import given
from umg_grpc.wire.refusals import DEFAULT, OURS, ProviderError, Table, row_of, stated
from umg_grpc.wire.sse import BOM


def is_error(raw: Raw) -> bool:
    """Whether a member `error` states one."""
    return given(raw) and bytes(raw) not in (b"{}", b'""', b"false")


NO_ANSWER = ": it holds no answer"


def unreadable(why: str = "") -> UmgError:
    """For an answer that is not what the format says: something was made that nobody can read."""
    message = f"the provider's answer cannot be read{why}; try again"
    return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).of(Failure.AMBIGUOUS)


def cut_off() -> UmgError:
    """For a stream without an end."""
    message = "the provider's stream broke off before its end; the answer is not whole, try again"
    return UmgError(pb.ERROR_REASON_UPSTREAM_CUT, message).of(Failure.AMBIGUOUS)


class Violation(Struct):
    """One of `detail` of a body that was checked against a schema, as many Python servers write it."""

    msg: str
    loc: list[str | int] = []


ACCOUNT = re.compile(r"credential|permission|quota|account|organi[sz]ation|subscription|\btoken is", re.IGNORECASE)
MOST_CHARACTERS = 4000  # that are looked through
LONGEST_WAIT = 24 * 60 * 60
NO_WAIT, NO_QUOTA_WAIT = 1, 60  # told of a 429 that does not say for how long: a used-up quota stays so for longer
CODE = re.compile(r"^[a-z][a-z_]{1,63}$")
PATH = re.compile(r"^[\w.\[\]-]{1,200}$")
REFUSED_US = frozenset({400, 401, 402, 403, 404, 407})


def decode_error(
    status: int, headers: Mapping[str, str], body: bytes, *, too_long: str = "messages", table: Table = DEFAULT
) -> UmgError:
    """What the caller is told of a refused call. Whatever concerns the gateway's own account with the provider is not
    told. `too_long`, `table`: see `from_provider`.
    """
    return from_provider(status, read_error(body), headers, too_long=too_long, table=table)


def read_error(body: bytes) -> ProviderError:
    """The error of a body in any of the usual shapes; an empty one where it cannot be read (HTML, nothing)."""
    try:
        value = msgspec.json.decode(body.removeprefix(BOM))
    except (ValueError, RecursionError):
        return ProviderError(page=bool(body.strip()))
    if isinstance(value, list) and value:  # vendor G's chat endpoint
        value = value[0]
    if isinstance(value, dict) and value.get("error"):
        value = value["error"]
    return as_error(value)


def as_error(value: object) -> ProviderError:
    """The value of a member `error`: an object, or just a message."""
    if isinstance(value, str):
        return ProviderError(message=value[:MOST_CHARACTERS], wait=_told_wait(value[:MOST_CHARACTERS]))
    if not isinstance(value, dict):
        return ProviderError()
    message, kind, param = (_text(value.get(name)) for name in ("message", "type", "param"))
    message = (message or _detail(value.get("detail")))[:MOST_CHARACTERS]
    details = [detail for detail in _details(value.get("details")) if isinstance(detail, dict)]
    code = value.get("code")
    return ProviderError(
        message=message,
        type=kind,
        param=param or next(_fields(details), ""),
        code=code if isinstance(code, str | int | float) else None,
        hints=" ".join([*_hints(value), *(hint for detail in details for hint in _hints(detail))])[:MOST_CHARACTERS],
        unsupported=",".join(_unsupported(details))[:MOST_CHARACTERS],
        wait=next(_waits(details), None) or _told_wait(message),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _detail(value: object) -> str:
    """The message of a member `detail`: a text, or a list of what is wrong, of which the first is told."""
    if isinstance(value, str):
        return value
    try:
        first = msgspec.convert(value, list[Violation])[0]
    except (ValueError, IndexError):
        return ""
    where = ".".join(str(step) for step in first.loc if step != "body")
    return f"{where}: {first.msg}" if where else first.msg


def _details(value: object) -> list[object]:
    """The members `details`: a list of objects, or one."""
    return value if isinstance(value, list) else [value]


HINTS = ("status", "reason", "error_code", "quotaId", "quotaMetric")
_HINT = re.compile(r"[\w./:-]{1,200}", re.ASCII)


def _hints(value: Mapping[str, object]) -> Iterator[str]:
    """The codes that an error or one of its details has beside `code` and `type`."""
    inner = value.get("innererror")
    told = [value.get(name) for name in HINTS] + ([inner.get("code")] if isinstance(inner, dict) else [])
    yield from (hint for hint in told if isinstance(hint, str) and _HINT.fullmatch(hint))
    for violation in _violations(value, "violations"):
        yield from _hints(violation)


def _fields(details: list[dict[str, object]]) -> Iterator[str]:
    """The fields of the request that details name."""
    for detail in details:
        for violation in _violations(detail, "fieldViolations"):
            if isinstance(field := violation.get("field"), str) and field:
                yield field


def _unsupported(details: list[dict[str, object]]) -> Iterator[str]:
    """The features that details name as unsupported."""
    for detail in details:
        listed = detail.get("unsupported")
        for feature in listed if isinstance(listed, list) else []:
            if isinstance(feature, str) and _HINT.fullmatch(feature):
                yield feature


def _violations(value: Mapping[str, object], name: str) -> list[dict[str, object]]:
    listed = value.get(name)
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


_DELAY = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s", re.ASCII)
_TOLD_WAIT = re.compile(
    r"(?:try again|retry) (?:in|after) (?:(\d{1,4})h)?(?:(\d{1,4})m(?!s))?"
    r"(?:(\d{1,9}(?:\.\d{1,9})?) ?(ms|s(?:ec(?:ond)?s?)?)\b)?",
    re.IGNORECASE | re.ASCII,
)


def _waits(details: list[dict[str, object]]) -> Iterator[float]:
    """The seconds until another attempt that details tell."""
    for detail in details:
        delay = detail.get("retryDelay")
        if isinstance(delay, str) and (told := _DELAY.fullmatch(delay)):
            yield float(told[1])


def _told_wait(message: str) -> float | None:
    """The seconds until another attempt that a message tells: in a stream there are no headers."""
    told = _TOLD_WAIT.search(message)
    if told is None or not any(told.groups()):
        return None
    last = float(told[3] or 0) / (1000 if (told[4] or "").lower() == "ms" else 1)
    return int(told[1] or 0) * 3600 + int(told[2] or 0) * 60 + last


def from_provider(
    status: int,
    error: ProviderError,
    headers: Mapping[str, str] | None = None,
    *,
    too_long: str = "messages",
    table: Table = DEFAULT,
) -> UmgError:
    """The error under an HTTP status, its own or the one that the error itself states (status 200). `too_long`: the
    canonical name of what a request has too much of when it passes the model's context. `table`: the format's.
    """
    answered = status
    if status < 400:
        status = stated(error)
    said = _retry_after(headers or {})
    seconds = _whole(error.wait) if said is None and error.wait is not None else said
    row = row_of(table, status, error, waits=seconds is not None)
    told = {"upstream_status": str(answered)}
    match row.reason:
        case pb.ERROR_REASON_UPSTREAM_RATE_LIMITED:
            message = f"the provider's rate limit is reached; {_when(seconds)}"
            unsaid = NO_QUOTA_WAIT if row.failure is Failure.DOWN else NO_WAIT  # not every provider says for how long
            told = {"retry_after_seconds": str(unsaid if seconds is None else seconds)}
        case pb.ERROR_REASON_UPSTREAM_FAILED:
            message = _failed(status, answered, error)
            if seconds is not None and row.failure not in (Failure.CALLER, Failure.DOWN):
                told["retry_after_seconds"] = str(seconds)
        case _:
            message = clean(error.message) or f"the provider refused the request (status {status})"
            told = _of_request(row.reason, error, told, too_long)
    return UmgError(row.reason, message, **told).of(row.failure)


def _of_request(
    reason: "pb.ErrorReason.ValueType", error: ProviderError, told: dict[str, str], too_long: str
) -> dict[str, str]:
    """What varies of a refusal that is the request's own fault."""
    if reason == pb.ERROR_REASON_CONTEXT_TOO_LONG:
        return {"field": too_long}
    if reason == pb.ERROR_REASON_THREAD_UNSUPPORTED_REQUEST and error.unsupported:
        return {"unsupported": error.unsupported}
    if reason != pb.ERROR_REASON_UPSTREAM_REJECTED:
        return {}
    if PATH.match(error.param):
        told["field"] = error.param
    if isinstance(error.code, str) and CODE.match(error.code):
        told["upstream_code"] = error.code
    return told


def _failed(status: int, answered: int, error: ProviderError) -> str:
    """What a caller may read of a failure of the provider, or of the gateway's own at it."""
    if status in REFUSED_US:
        return f"the provider refused the gateway's own call (status {status}); the operator has to check the channel"
    told = f" (status {answered})" if answered >= 400 else ""  # an error inside a good answer says nothing by it
    words = f"{error.codes} {error.message}"
    if error.message and not OURS.search(words) and not ACCOUNT.search(words):
        return f"the provider failed{told}: {clean(error.message)}"
    return f"the provider failed{told}; try again"


def _when(seconds: int | None) -> str:
    return "try again later" if seconds is None else f"try again in {seconds} s"


def _retry_after(headers: Mapping[str, str]) -> int | None:
    """Whole seconds to wait; a date counts from the answer's own `date`."""
    wait = headers.get("retry-after", "")
    try:
        if (said := headers.get("retry-after-ms") or headers.get("x-ms-retry-after-ms")) is not None:
            return _whole(float(said) / 1000)
        if wait.replace(".", "", 1).isdigit():
            return _whole(float(wait))
        if wait and "date" in headers:
            return _whole((parsedate_to_datetime(wait) - parsedate_to_datetime(headers["date"])).total_seconds())
    except (ValueError, TypeError):
        pass
    return None


def _whole(seconds: float) -> int:
    """Rounded up, at most a day."""
    return math.ceil(min(max(0, seconds), LONGEST_WAIT))

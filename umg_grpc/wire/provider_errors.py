"""Refusals of providers, whatever their format: what the caller is told, and what is not.

The formats write errors alike (`{error: {message, type, code}}` with one or the other left out or added); each format's
`decode_error` reads its own and hands it on here.
"""

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import msgspec
from msgspec import Raw, Struct

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.clean import clean
from umg_grpc.wire.json import given
from umg_grpc.wire.sse import BOM


def is_error(raw: Raw) -> bool:
    """Whether a member `error` states one."""
    return given(raw) and bytes(raw) not in (b"{}", b'""', b"false")


NO_ANSWER = ": it holds no answer"


def unreadable(why: str = "") -> UmgError:
    """For an answer that is not what the format says."""
    return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, f"the provider's answer cannot be read{why}; try again")


def cut_off() -> UmgError:
    """For a stream without an end."""
    return UmgError(
        pb.ERROR_REASON_UPSTREAM_CUT,
        "the provider's stream broke off before its end; the answer is not whole, try again",
    )


class ProviderError(Struct):
    """`error` of a provider's body, as far as it keeps to the format."""

    message: str = ""
    type: str = ""
    param: str = ""
    code: str | int | float | None = None


class Violation(Struct):
    """One of `detail` of a body that was checked against a schema, as many Python servers write it."""

    msg: str
    loc: list[str | int] = []


CONTEXT = re.compile(
    r"(?<![\w.])context[ _](?:length|window|size)|maximum context|too many tokens|prompt is too long"
    r"|exceed_context_size",  # and no field that is called so (`search_context_size`)
    re.IGNORECASE,
)
BLOCKED = re.compile(r"content_filter|content_policy|moderation|responsibleai|safety", re.IGNORECASE)
OURS = re.compile(
    r"api[ _-]?key|authentication|unauthori[sz]ed|billing|insufficient[ _]quota", re.IGNORECASE
)  # our account, not the request
ACCOUNT = re.compile(r"credential|permission|quota|account|organi[sz]ation|subscription|\btoken is", re.IGNORECASE)
LONGEST_WAIT = 24 * 60 * 60
HTTP_ERROR = re.compile(r"[45]\d\d", re.ASCII)
STATED = {"rate_limit_exceeded": 429, "rate_limit_error": 429}  # code or type of an error without a status
CODE = re.compile(r"^[a-z][a-z_]{1,63}$")
PATH = re.compile(r"^[\w.\[\]-]{1,200}$")


def decode_error(status: int, headers: Mapping[str, str], body: bytes, *, too_long: str = "messages") -> UmgError:
    """What the caller is told of a refused call. Whatever concerns the gateway's own account with the provider is not
    told. `too_long`: see `from_provider`.
    """
    return from_provider(status, read_error(body), headers, too_long=too_long)


def read_error(body: bytes) -> ProviderError:
    """The error of a body in any of the usual shapes; an empty one where it cannot be read (HTML, nothing)."""
    try:
        value = msgspec.json.decode(body.removeprefix(BOM))
    except (ValueError, RecursionError):
        return ProviderError()
    if isinstance(value, list) and value:  # vendor G's chat endpoint
        value = value[0]
    if isinstance(value, dict) and value.get("error"):
        value = value["error"]
    return as_error(value)


def as_error(value: object) -> ProviderError:
    """The value of a member `error`: an object, or just a message."""
    if isinstance(value, str):
        return ProviderError(message=value)
    if not isinstance(value, dict):
        return ProviderError()
    texts = {name: text for name in ("message", "type", "param") if isinstance(text := value.get(name), str)}
    if "message" not in texts:
        texts["message"] = _detail(value.get("detail"))
    code = value.get("code")
    return ProviderError(**texts, code=code if isinstance(code, str | int | float) else None)


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


def from_provider(
    status: int, error: ProviderError, headers: Mapping[str, str] | None = None, *, too_long: str = "messages"
) -> UmgError:
    """The error under an HTTP status, its own or the one that the error itself states (status 200). `too_long`: the
    canonical name of what a request has too much of when it passes the model's context.
    """
    answered = status
    if status < 400:
        stated = str(error.code or error.type)
        status = int(stated) if HTTP_ERROR.fullmatch(stated) else STATED.get(stated, 502)
    words = f"{error.code} {error.type} {error.message}"
    metadata = {"upstream_status": str(answered)}
    if status == 429:
        seconds = _retry_after(headers or {})
        wait = "try again later" if seconds is None else f"try again in {seconds} s"
        message = f"the provider's rate limit is reached; {wait}"
        retry_after = str(1 if seconds is None else seconds)  # not every provider says for how long
        return UmgError(pb.ERROR_REASON_UPSTREAM_RATE_LIMITED, message, retry_after_seconds=retry_after)
    if status in (400, 413, 422):
        if PATH.match(error.param):
            metadata["field"] = error.param
        message = clean(error.message) or f"the provider refused the request (status {status})"
        if CONTEXT.search(words):
            return UmgError(pb.ERROR_REASON_CONTEXT_TOO_LONG, message, field=too_long)
        if BLOCKED.search(f"{error.code} {error.type}"):
            return UmgError(pb.ERROR_REASON_CONTENT_BLOCKED, message)
        if not OURS.search(words):
            if isinstance(error.code, str) and CODE.match(error.code):
                metadata["upstream_code"] = error.code
            return UmgError(pb.ERROR_REASON_UPSTREAM_REJECTED, message, **metadata)
        metadata.pop("field", None)
    told = f" (status {answered})" if answered >= 400 else ""  # an error inside a good answer says nothing by it
    if status in (400, 401, 402, 403, 404, 407):
        message = (
            f"the provider refused the gateway's own call (status {status}); the operator has to check the channel"
        )
    elif error.message and not OURS.search(words) and not ACCOUNT.search(words):
        message = f"the provider failed{told}: {clean(error.message)}"
    else:
        message = f"the provider failed{told}; try again"
    return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message, **metadata)


def _retry_after(headers: Mapping[str, str]) -> int | None:
    """Whole seconds to wait, rounded up, at most a day; a date counts from the answer's own `date`."""
    wait = headers.get("retry-after", "")
    try:
        if "retry-after-ms" in headers:
            seconds = float(headers["retry-after-ms"]) / 1000
        elif wait.replace(".", "", 1).isdigit():
            seconds = float(wait)
        elif wait and "date" in headers:
            seconds = (parsedate_to_datetime(wait) - parsedate_to_datetime(headers["date"])).total_seconds()
        else:
            return None
        return math.ceil(min(max(0, seconds), LONGEST_WAIT))
    except (ValueError, TypeError):
        return None

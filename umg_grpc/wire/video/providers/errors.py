"""Errors of video providers: their classification, and their messages for callers, without the provider's name."""

import re
from collections.abc import Mapping

from umg_grpc.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.classification import DEFAULT, ProviderError, Row, Table
from umg_grpc.wire.errors.provider_errors import from_provider
from umg_grpc.wire.errors.redact import clean

PROMPT = "parameters.prompt"
"""Canonical field that is too large in a request that is too long."""
REJECTED, BLOCKED, FAILED, LIMITED = (
    pb.ERROR_REASON_UPSTREAM_REJECTED,
    pb.ERROR_REASON_CONTENT_BLOCKED,
    pb.ERROR_REASON_UPSTREAM_FAILED,
    pb.ERROR_REASON_UPSTREAM_RATE_LIMITED,
)
DECIDED_STATUSES = frozenset({501, 503})
"""Statuses above 499 with which a provider states that it did not execute the request, if its body is an error."""
UNDECIDED_STATUSES = frozenset({408, 425, 499})
_NAMES = (
    *(r"openai", r"sora", r"google", r"vertex ?ai", r"gemini", r"veo", r"alibaba(?: cloud)?", r"aliyun", r"dashscope"),
    *(r"bailian", r"tongyi", r"bytedance", r"byteplus", r"volcengine", r"volcano engine", r"seedance", r"doubao"),
    *(r"modelark", r"kling(?: ?ai)?", r"kuaishou", r"jimeng", r"minimax", r"hailuo"),
)
_VENDORS = re.compile(
    rf"\b(?:(?:{'|'.join(_NAMES)})\b(?P<model>[-._][\w.-]*\w)?|(?P<id>wanx?\d[\w.-]*\w))", re.IGNORECASE
)
_ACCOUNT = re.compile(r"\b(account\s*[:#(\[]?\s*)\d{6,}", re.IGNORECASE)


def public_message(message: str) -> str:
    """Return a provider's message for callers: without hosts, keys and account ids, and without the names of providers
    and of their models.
    """
    return _without_names(clean(message))


def _without_names(message: str) -> str:
    return _VENDORS.sub(_hide, _ACCOUNT.sub(r"\1[id]", message))


def _hide(match: re.Match[str]) -> str:
    return "[model]" if match["model"] or match["id"] else "[provider]"


def rows(reason: "pb.ErrorReason.ValueType", failure: Failure, *codes: str) -> Row:
    """Return the row of errors with one of these codes and any status."""
    return Row((), reason, failure, codes=re.compile(rf"(?<![\w.])(?:{'|'.join(codes)})(?![\w])", re.IGNORECASE))


def refused(status: int, headers: Mapping[str, str], error: ProviderError, table: Table = ()) -> UmgError:
    """Return the error of a failed call, classified by the protocol's own rows, else by the common ones."""
    found = from_provider(status, error, headers, too_long=PROMPT, table=(*table, *DEFAULT))
    found.message = _without_names(found.message)
    return found


def refused_submission(
    status: int, headers: Mapping[str, str], body: bytes, error: ProviderError, table: Table = ()
) -> UmgError:
    """Return the error of a submission that failed: AMBIGUOUS unless the provider clearly refused it.

    After an HTML page, which no provider makes, and after a failure of the provider it is unknown whether the task
    exists.
    """
    found = refused(status, headers, error, table)
    undecided = status in UNDECIDED_STATUSES or (status >= 500 and status not in DECIDED_STATUSES)
    if is_page(headers, body) or (undecided and found.failure in (Failure.TRANSIENT, Failure.OVERLOADED)):
        found.with_failure(Failure.AMBIGUOUS)
    return found


def is_unknown(status: int, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether the response to a query states that the provider does not have the task. An HTML page does not: a
    proxy made it.
    """
    return status == 404 and not is_page(headers, body)


def is_page(headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether a body is HTML, which a proxy or firewall made."""
    return headers.get("content-type", "").lower().startswith("text/html") or body.lstrip()[:1] == b"<"

"""Errors of video providers: their classification, and their messages for callers, without the provider's name."""

import re
from collections.abc import Mapping

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.error_classification import DEFAULT_TABLE, ClassificationRow, ProviderError, Table
from umg_grpc.wire.errors.error_message_redaction import clean
from umg_grpc.wire.errors.provider_errors import from_provider, read_error

PROMPT_FIELD = "parameters.prompt"
"""Canonical field that an error names if the provider rejects the request as too long."""
REJECTED_REASON, BLOCKED_REASON, FAILED_REASON, LIMITED_REASON = (
    pb.ERROR_REASON_UPSTREAM_REJECTED,
    pb.ERROR_REASON_CONTENT_BLOCKED,
    pb.ERROR_REASON_UPSTREAM_FAILED,
    pb.ERROR_REASON_UPSTREAM_RATE_LIMITED,
)
DECIDED_STATUSES = frozenset({501, 503})
"""HTTP statuses above 499 which mean, if the body contains an error, that the provider did not execute the request."""
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
    """Return a provider's message without hosts, keys, account ids and names of providers and models, for callers."""
    return _without_names(clean(message))


def _without_names(message: str) -> str:
    return _VENDORS.sub(_hide, _ACCOUNT.sub(r"\1[id]", message))


def _hide(match: re.Match[str]) -> str:
    return "[model]" if match["model"] or match["id"] else "[provider]"


def rows(reason: "pb.ErrorReason.ValueType", failure: Failure, *codes: str) -> ClassificationRow:
    """Return a classification row: errors with one of `codes`, at any HTTP status, get this reason and `failure`."""
    return ClassificationRow(
        (), reason, failure, codes=re.compile(rf"(?<![\w.])(?:{'|'.join(codes)})(?![\w])", re.IGNORECASE)
    )


def refused(status: int, headers: Mapping[str, str], error: ProviderError, table: Table = ()) -> UmgError:
    """Return a failed call's error by the rows of `table`, else of all protocols. `headers`: by lower-case name."""
    found = from_provider(status, error, headers, too_long=PROMPT_FIELD, table=(*table, *DEFAULT_TABLE))
    found.message = _without_names(found.message)
    return found


def failed_call(status: int, headers: Mapping[str, str], body: bytes, *, table: Table = ()) -> UmgError:
    """Return the error of a failed call other than a submission or a query, by its body, as `refused` does."""
    return refused(status, headers, read_error(body), table)


def refused_submission(
    status: int, headers: Mapping[str, str], body: bytes, error: ProviderError, table: Table = ()
) -> UmgError:
    """Return the error of a failed submission. Its `failure` is AMBIGUOUS unless the provider clearly rejected the
    task, since after a proxy's HTML page or a failure of the provider the task may exist.
    """
    found = refused(status, headers, error, table)
    undecided = status in UNDECIDED_STATUSES or (status >= 500 and status not in DECIDED_STATUSES)
    if is_page(headers, body) or (undecided and found.failure in (Failure.TRANSIENT, Failure.OVERLOADED)):
        found.with_failure(Failure.AMBIGUOUS)
    return found


def is_unknown(status: int, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether a query's response means an unknown task: status 404, but not with a proxy's HTML page."""
    return status == 404 and not is_page(headers, body)


def is_page(headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether a body is an HTML page, which comes from a proxy or firewall and not from the provider."""
    return headers.get("content-type", "").lower().startswith("text/html") or body.lstrip()[:1] == b"<"

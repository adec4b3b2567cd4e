"""Kinds of provider failures for operators: a table selects `FailureKind` by reason, status, code, connection fault."""

import re
from collections.abc import Collection
from typing import NamedTuple

from umg_grpc.base.provider_failure import FailureKind
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.error_classification import NO_MODEL, NOT_FOUND_STATUSES, ProviderError

FAILED_REASON, LIMITED_REASON, CUT_REASON = (
    pb.ERROR_REASON_UPSTREAM_FAILED,
    pb.ERROR_REASON_UPSTREAM_RATE_LIMITED,
    pb.ERROR_REASON_UPSTREAM_CUT,
)
UNREACHABLE_REASON, UNAVAILABLE_REASON, TIMEOUT_REASON = (
    pb.ERROR_REASON_UPSTREAM_UNREACHABLE,
    pb.ERROR_REASON_UNAVAILABLE,
    pb.ERROR_REASON_UPSTREAM_TIMEOUT,
)
UNPAID_REASON, QUOTA_REASON, OVERLOADED_REASON = (
    pb.ERROR_REASON_UPSTREAM_UNPAID,
    pb.ERROR_REASON_UPSTREAM_QUOTA_EXHAUSTED,
    pb.ERROR_REASON_UPSTREAM_OVERLOADED,
)
PROXY_FAULT, DNS_FAULT, TLS_FAULT = "proxy", "dns", "tls"
"""Values of `fault`: the step that failed when a connection was opened; "" for any other failure."""

NO_CREDIT = re.compile(
    r"insufficient[ _](?:quota|balance|credit|funds)|billing_|credit[ _]balance|out of credits|arrearage|payment"
    r"|spend(?:ing)?[ _](?:limit|cap)",
    re.IGNORECASE,
)
NO_URL = re.compile(r"(?:invalid|unknown|unrecognized(?: request)?)[ _]url|no such path", re.IGNORECASE)
ANY_MODEL = re.compile(r"\bmodels?\b", re.IGNORECASE)
ACCOUNT_STATUSES = frozenset({400, 401, 403, 413, 422, 451, 498})  # 400, 413 and 422 as UPSTREAM_FAILED: the account
SERVER_STATUSES = frozenset({408, 409, 425, *range(500, 600)})


class Evidence(NamedTuple):
    """Facts about the failure of a provider's call, from which the kind of the failure is determined."""

    reason: "pb.ErrorReason.ValueType"
    status: int = 0
    """HTTP status. For an error in a response with status 200, the status that the error states."""
    error: ProviderError = ProviderError()
    fault: str = ""
    """Step that failed when a connection was opened: `PROXY_FAULT`, `DNS_FAULT` or `TLS_FAULT`; "" otherwise."""
    page: bool = False
    """Whether the response has an error body that is not JSON, for example HTML."""


class FailureKindRow(NamedTuple):
    """Row of the table of failure kinds. A failure must satisfy all its conditions; empty ones are not checked."""

    kind: FailureKind
    reasons: Collection["pb.ErrorReason.ValueType"] = ()
    statuses: Collection[int] = ()
    words: re.Pattern[str] | None = None  # searched in the codes, and in the message without its quotes
    fault: str = ""
    page: bool = False

    def fits(self, evidence: Evidence) -> bool:
        if self.reasons and evidence.reason not in self.reasons:
            return False
        if self.statuses and evidence.status not in self.statuses:
            return False
        if self.page > evidence.page or self.fault not in ("", evidence.fault):
            return False
        return self.words is None or bool(self.words.search(f"{evidence.error.codes} {evidence.error.own_words}"))


KIND_ROWS = (
    # no connection
    FailureKindRow(FailureKind.PROXY, {UNREACHABLE_REASON}, fault=PROXY_FAULT),
    FailureKindRow(FailureKind.DNS, {UNREACHABLE_REASON}, fault=DNS_FAULT),
    FailureKindRow(FailureKind.CERTIFICATE, {UNREACHABLE_REASON}, fault=TLS_FAULT),
    FailureKindRow(FailureKind.UNREACHABLE, {UNREACHABLE_REASON, UNAVAILABLE_REASON}),
    FailureKindRow(FailureKind.SLOW, {TIMEOUT_REASON}),
    # an error of the account, of the address or of the model
    FailureKindRow(FailureKind.PROXY, {FAILED_REASON}, {407}),
    FailureKindRow(FailureKind.UNPAID, {UNPAID_REASON, QUOTA_REASON}),
    FailureKindRow(FailureKind.UNPAID, {FAILED_REASON, LIMITED_REASON}, {402}),
    FailureKindRow(FailureKind.UNPAID, {FAILED_REASON, LIMITED_REASON}, {*ACCOUNT_STATUSES, 429}, words=NO_CREDIT),
    FailureKindRow(FailureKind.RATE_LIMIT, {LIMITED_REASON}),
    FailureKindRow(FailureKind.WRONG_MODEL, {FAILED_REASON}, {400, 404}, words=NO_MODEL),
    FailureKindRow(FailureKind.WRONG_ADDRESS, {FAILED_REASON}, {404}, words=NO_URL),
    FailureKindRow(FailureKind.WRONG_MODEL, {FAILED_REASON}, {404, 410}, words=ANY_MODEL),
    FailureKindRow(FailureKind.UNREADABLE, {FAILED_REASON}, {403}, page=True),  # a firewall
    FailureKindRow(FailureKind.WRONG_KEY, {FAILED_REASON}, ACCOUNT_STATUSES),
    FailureKindRow(FailureKind.WRONG_ADDRESS, {FAILED_REASON}, {*range(300, 400), *NOT_FOUND_STATUSES}),
    # a failure of the provider
    FailureKindRow(FailureKind.SERVER_ERROR, {OVERLOADED_REASON}),
    FailureKindRow(FailureKind.SERVER_ERROR, {FAILED_REASON}, SERVER_STATUSES),
    FailureKindRow(FailureKind.REQUEST, {FAILED_REASON}, range(400, 500)),
    FailureKindRow(FailureKind.UNREADABLE, {CUT_REASON}, page=True),
    FailureKindRow(FailureKind.BROKEN, {CUT_REASON}),
    FailureKindRow(FailureKind.UNREADABLE, {FAILED_REASON}),
    FailureKindRow(FailureKind.REQUEST),
)


def kind_of(evidence: Evidence) -> FailureKind:
    """Return the kind of a failure from the first row that the failure satisfies. The last row has no conditions."""
    return next(row.kind for row in KIND_ROWS if row.fits(evidence))

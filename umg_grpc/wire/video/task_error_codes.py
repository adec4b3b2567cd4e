"""Codes of failed video tasks, which the service, the HTTP APIs for callers and the codecs of providers share."""

from umg_grpc.v1 import pb

TASK_FAILED = "task_failed"
CONTENT_POLICY_VIOLATION = "content_policy_violation"
INVALID_REQUEST = "invalid_request"
TASK_EXPIRED = "task_expired"
TASK_CANCELLED = "task_cancelled"
SUBMIT_UNCONFIRMED = "submit_unconfirmed"

STATUS_CODES = {
    TASK_FAILED: 500,
    CONTENT_POLICY_VIOLATION: 400,
    INVALID_REQUEST: 400,
    TASK_EXPIRED: 504,
    TASK_CANCELLED: 499,
    SUBMIT_UNCONFIRMED: 502,
}
"""Code of a failure -> HTTP status with the same meaning, for HTTP APIs whose codes are numbers."""


def task_error(code: str, message: str) -> pb.VideoTaskError:
    """Return the reason of a failure or cancellation, with a `code` of this module and a text for the caller."""
    return pb.VideoTaskError(code=code, status_code=STATUS_CODES[code], message=message)

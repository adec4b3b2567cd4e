"""Errors of failed calls, with the reasons of the gateway's error catalogue."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from betterproto2 import Message
from grpclib.const import Status as Code
from grpclib.encoding.base import StatusDetailsCodecBase
from grpclib.exceptions import GRPCError, StreamTerminatedError

from umg_client.v1 import ErrorReason
from umg_client.v1.google.rpc import ErrorInfo, RetryInfo, Status

Detail = TypeVar("Detail", bound=Message)

DOMAIN = "umg"
TYPES = "type.googleapis.com/google.rpc."

# Reasons of a status without our details, which a proxy or a library on the way has made.
BARE_STATUS = {
    Code.UNAVAILABLE: ErrorReason.UNAVAILABLE,
    Code.DEADLINE_EXCEEDED: ErrorReason.DEADLINE_EXCEEDED,
    Code.RESOURCE_EXHAUSTED: ErrorReason.BODY_TOO_LARGE,
    Code.CANCELLED: ErrorReason.CANCELLED,
    Code.UNIMPLEMENTED: ErrorReason.NOT_IMPLEMENTED,
}
# Reasons of calls that the gateway refused, or that its provider refused or never received: repeating them is safe.
NOT_DONE = frozenset(
    {
        ErrorReason.UNAVAILABLE,
        ErrorReason.RATE_LIMITED,
        ErrorReason.UPSTREAM_RATE_LIMITED,
        ErrorReason.UPSTREAM_UNREACHABLE,
    }
)
PASSING = frozenset({ErrorReason.RATE_LIMITED, ErrorReason.UPSTREAM_RATE_LIMITED, ErrorReason.UPSTREAM_TIMEOUT})
"""Reasons that can be gone at the next call, besides all those with the code UNAVAILABLE."""


class UmgError(Exception):
    """Error of a failed call.

    `reason` is a member of `ErrorReason`, which documents its meaning and the keys of `metadata`. `code` is the gRPC
    status. `message` is for people. `request_id` identifies the call in the log of the gateway. `retry_after` is the
    number of seconds to wait before another attempt, None where the gateway states none. `done` is whether the provider
    may have done something. The exception of grpclib is the `__cause__`.
    """

    def __init__(
        self,
        reason: ErrorReason,
        code: Code,
        message: str,
        request_id: str,
        *,
        metadata: Mapping[str, str] | None = None,
        retry_after: float | None = None,
        done: bool = True,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.code = code
        self.message = message
        self.request_id = request_id
        self.metadata = metadata or {}
        self.retry_after = retry_after
        self.done = done

    @property
    def field(self) -> str:
        """Path of the field that the error is about, "" if there is none."""
        return self.metadata.get("field", "")

    @property
    def retryable(self) -> bool:
        """Whether the same call may succeed later."""
        return self.code is Code.UNAVAILABLE or self.reason in PASSING

    def __str__(self) -> str:
        return f"{self.reason.name}: {self.message} (request id {self.request_id})"


class StatusDetailsCodec(StatusDetailsCodecBase):
    """Codec between the trailing metadata `grpc-status-details-bin` and `google.rpc.Status`."""

    def encode(self, status: Code, message: str | None, details: Status) -> bytes:
        return bytes(details)

    def decode(self, status: Code, message: str | None, data: bytes) -> Status:
        return Status.parse(data)


@contextmanager
def failures(request_id: str) -> Iterator[None]:
    """Raise each failure of a call in the block as `UmgError`."""
    try:
        yield
    except GRPCError as error:
        raise from_status(error, request_id) from error
    except StreamTerminatedError as error:
        message = f"the connection to the gateway broke: {error}"
        raise UmgError(ErrorReason.UNAVAILABLE, Code.UNAVAILABLE, message, request_id) from error
    except OSError as error:
        if (
            isinstance(error, TimeoutError) and error.errno is None
        ):  # grpclib's deadline; one of the socket has a number
            raise late(request_id) from error
        message = f"the gateway cannot be reached: {error}"
        raise UmgError(ErrorReason.UNAVAILABLE, Code.UNAVAILABLE, message, request_id, done=False) from error


def late(request_id: str) -> UmgError:
    """Return the error for a call whose own deadline passed."""
    message = "the call's own deadline passed before the response; give it more time"
    return UmgError(ErrorReason.DEADLINE_EXCEEDED, Code.DEADLINE_EXCEEDED, message, request_id)


def from_status(error: GRPCError, request_id: str) -> UmgError:
    """Return the `UmgError` of a failed status. A reason newer than this client becomes UNSPECIFIED."""
    message = error.message or error.status.name
    retry = _detail(error, RetryInfo)
    seconds = retry.retry_delay.total_seconds() if retry is not None and retry.retry_delay is not None else None
    info = _detail(error, ErrorInfo)
    if info is None or info.domain != DOMAIN:
        if error.status is Code.DEADLINE_EXCEEDED:
            return late(request_id)
        reason = BARE_STATUS.get(error.status, ErrorReason.UNSPECIFIED)
        return UmgError(reason, error.status, message, request_id, retry_after=seconds)
    reason = ErrorReason.__members__.get(info.reason, ErrorReason.UNSPECIFIED)
    return UmgError(
        reason,
        error.status,
        message,
        request_id,
        metadata=info.metadata,
        retry_after=seconds,
        done=reason not in NOT_DONE,
    )


def _detail(error: GRPCError, kind: type[Detail]) -> Detail | None:
    """Return the first detail of this type in the status of an error; None if there is none."""
    details = error.details.details if isinstance(error.details, Status) else []
    return next((kind.parse(detail.value) for detail in details if detail.type_url == TYPES + kind.__name__), None)

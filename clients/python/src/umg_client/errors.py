"""Errors of failed calls, with the reasons of the gateway's error catalogue."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from grpclib.const import Status as Code
from grpclib.encoding.base import StatusDetailsCodecBase
from grpclib.exceptions import GRPCError, StreamTerminatedError

from umg_client.v1 import ErrorReason
from umg_client.v1.google.rpc import ErrorInfo, Status

DOMAIN = "umg"
INFO_TYPE = "type.googleapis.com/google.rpc.ErrorInfo"

# Reasons of a status without our details, which a proxy or a library on the way has made.
BARE_STATUS = {
    Code.UNAVAILABLE: ErrorReason.UNAVAILABLE,
    Code.DEADLINE_EXCEEDED: ErrorReason.UPSTREAM_TIMEOUT,
    Code.RESOURCE_EXHAUSTED: ErrorReason.BODY_TOO_LARGE,
    Code.CANCELLED: ErrorReason.CANCELLED,
    Code.UNIMPLEMENTED: ErrorReason.NOT_IMPLEMENTED,
}


class UmgError(Exception):
    """Error of a failed call.

    `reason` is a member of `ErrorReason`, which documents its meaning and the keys of `metadata`. `message` is for
    people. `request_id` identifies the call in the log of the gateway. The exception of grpclib is the `__cause__`.
    """

    def __init__(self, reason: ErrorReason, message: str, metadata: Mapping[str, str], request_id: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.metadata = metadata
        self.request_id = request_id

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
    except TimeoutError as error:  # before OSError, its base class
        message = "the call took longer than its deadline"
        raise UmgError(ErrorReason.UPSTREAM_TIMEOUT, message, {}, request_id) from error
    except (OSError, StreamTerminatedError) as error:
        message = f"the connection to the gateway failed: {error}"
        raise UmgError(ErrorReason.UNAVAILABLE, message, {}, request_id) from error


def from_status(error: GRPCError, request_id: str) -> UmgError:
    """Return the `UmgError` of a failed status. A reason newer than this client becomes UNSPECIFIED."""
    message = error.message or error.status.name
    if isinstance(error.details, Status):
        for detail in error.details.details:
            if detail.type_url != INFO_TYPE:
                continue
            info = ErrorInfo.parse(detail.value)
            if info.domain == DOMAIN:
                reason = ErrorReason.__members__.get(info.reason, ErrorReason.UNSPECIFIED)
                return UmgError(reason, message, info.metadata, request_id)
    return UmgError(BARE_STATUS.get(error.status, ErrorReason.UNSPECIFIED), message, {}, request_id)

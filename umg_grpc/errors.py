"""The one exception of the gateway."""

from enum import Enum
from typing import Self

from umg_grpc.v1 import pb

MAX_MESSAGE_CHARACTERS = 2000


class Failure(Enum):
    """What a failed attempt means for those that could follow. Each is classified once, where it is met: the answers of
    providers by the table of their format, what goes wrong with connections by `upstream.transport`.
    """

    CALLER = "caller"
    """The request itself is wrong: it fails the same way everywhere."""
    CONTEXT = "context"
    """The request is too long for the provider's model: another model may take it."""
    NOT_SENT = "not sent"
    """The provider got nothing of it: asking again, here or elsewhere, makes nothing twice."""
    TRANSIENT = "transient"
    """The provider says that it failed: nothing was made, and another attempt may be better."""
    OVERLOADED = "overloaded"
    """The provider has too much to do, or the account has used up its share for now. `retry_after` says how long."""
    OTHER_KEY = "other key"
    """The channel's key is no good or has used up its share, and the channel has another."""
    DOWN = "down"
    """The channel cannot serve the model until somebody mends it: its key is no good, its account has no credit, its
    address or the model there does not exist.
    """
    AMBIGUOUS = "ambiguous"
    """The provider may have taken it and be at work, or have made what nobody could read: asking again may make, and
    cost, the same twice.
    """


class UmgError(Exception):
    """A failed call: a reason of the catalogue (`error_reason.proto`), a message for the caller that says what to do,
    and what varies.

    `metadata` has the keys that the reason's comment names, each value as text. Nothing in it or in the message may be
    secret: both reach the caller. `cause` is for the log alone.

    An error of a provider says besides what it means for whoever would ask again: `failure`. It is None for what no
    provider was asked.
    """

    cause = ""
    failure: Failure | None = None

    def __init__(self, reason: "pb.ErrorReason.ValueType", message: str, **metadata: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message[:MAX_MESSAGE_CHARACTERS]
        self.metadata = metadata

    def of(self, failure: Failure, cause: str = "") -> Self:
        """The error itself, which now says what it means for whoever would ask again, and its cause for the log."""
        self.failure = failure
        self.cause = cause or self.cause
        return self

    def saying(self, message: str, **metadata: str) -> "UmgError":
        """The same error in other words; `metadata` is added to what it has."""
        told = UmgError(self.reason, message, **{**self.metadata, **metadata})
        told.cause, told.failure = self.cause, self.failure
        return told

    @property
    def retry_after(self) -> float | None:
        """Seconds to wait before another attempt, where somebody said so."""
        said = self.metadata.get("retry_after_seconds")
        return None if said is None else float(said)

    @property
    def name(self) -> str:
        """The reason as `google.rpc.ErrorInfo` writes it: `MODEL_NOT_FOUND`."""
        return pb.ErrorReason.Name(self.reason).removeprefix("ERROR_REASON_")

    def __repr__(self) -> str:
        return f"UmgError({self.name}, {self.message!r}, {self.metadata})"


def internal(request_id: str) -> UmgError:
    """What a caller is told of anything unexpected: where to look, and nothing of what happened."""
    return UmgError(pb.ERROR_REASON_INTERNAL, f"internal error; the log has it under request id {request_id}")


AGAIN_SECONDS = 1
"""When those should come again that found no room."""


def come_again(why: str) -> UmgError:
    """UNAVAILABLE, for what passes by itself, and soon."""
    message = f"{why}; try again in {AGAIN_SECONDS} s"
    return UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds=str(AGAIN_SECONDS))


def shutting_down() -> UmgError:
    """What ends an answer that a drain did not wait for."""
    message = "the gateway is shutting down; try again"
    return UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds="1")

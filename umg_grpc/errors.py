"""The one exception of the gateway."""

from umg_grpc.v1 import pb

MAX_MESSAGE_CHARACTERS = 2000


class UmgError(Exception):
    """A failed call: a reason of the catalogue (`error_reason.proto`), a message for the caller that says what to do,
    and what varies.

    `metadata` has the keys that the reason's comment names, each value as text. Nothing in it or in the message may be
    secret: both reach the caller. `cause` is for the log alone.
    """

    cause = ""

    def __init__(self, reason: "pb.ErrorReason.ValueType", message: str, **metadata: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message[:MAX_MESSAGE_CHARACTERS]
        self.metadata = metadata

    @property
    def name(self) -> str:
        """The reason as `google.rpc.ErrorInfo` writes it: `MODEL_NOT_FOUND`."""
        return pb.ErrorReason.Name(self.reason).removeprefix("ERROR_REASON_")

    def __repr__(self) -> str:
        return f"UmgError({self.name}, {self.message!r}, {self.metadata})"


def internal(request_id: str) -> UmgError:
    """What a caller is told of anything unexpected: where to look, and nothing of what happened."""
    return UmgError(pb.ERROR_REASON_INTERNAL, f"internal error; the log has it under request id {request_id}")

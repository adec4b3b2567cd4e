"""Exception class of the gateway, `UmgError`, and the classes of failures that decide whether a call is attempted
again.

All layers raise `UmgError`. `grpc_status` converts it to and from gRPC statuses, and the codecs of the wire formats
encode it for callers of HTTP.
"""

from enum import Enum
from typing import Self

from umg_grpc.base.provider_failure import ProviderFailure, ProviderRefusal
from umg_grpc.v1 import pb

MAX_MESSAGE_CHARACTERS = 2000


class Failure(Enum):
    """Consequence of a failed attempt: whether, where and when the call may be attempted again.

    Each failure is classified once, where it occurs: responses of providers by the table of their format, connection
    failures by the HTTP client.
    """

    CALLER = "caller"
    """The request itself is wrong: it fails the same way on every channel."""
    CONTEXT = "context"
    """The request is too long for the provider's model: another model may accept it."""
    NOT_SENT = "not sent"
    """The provider received nothing of the request: a retry, on this or another channel, cannot execute it twice."""
    TRANSIENT = "transient"
    """The provider reports a failure: it generated nothing, and another attempt may succeed."""
    OVERLOADED = "overloaded"
    """The provider is overloaded, or the account reached its rate limit. `retry_after` is the time to wait."""
    MODEL = "model"
    """The model failed at its turn, for example by an unreadable tool call. Another attempt at it may succeed."""
    OTHER_KEY = "other key"
    """The channel's key is invalid or has reached its limit, and the channel has another key."""
    DOWN = "down"
    """The channel cannot serve the model until an operator corrects its key, credit, address or model id."""
    TOO_LARGE = "too large"
    """The provider's response exceeds the gateway's limit: another attempt would fail and cost the same."""
    AMBIGUOUS = "ambiguous"
    """The provider may execute the request, or its response cannot be decoded: a retry may execute it twice."""


OWN_MODULES = ("umg_grpc.", "http_facade.")


def place_of(error: BaseException) -> str:
    """Return the type of an exception, and the gateway's module and line that raised it. No values: maybe secret."""
    place, traceback = "", error.__traceback__
    while traceback is not None:
        module = traceback.tb_frame.f_globals.get("__name__", "")
        if not place or str(module).startswith(OWN_MODULES):
            place = f"{module}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return f"{type(error).__name__} at {place}"


def _utf8_text(text: str) -> str:
    return text if text.isascii() else text.encode(errors="replace").decode()


def _utf8_texts(texts: dict[str, str]) -> dict[str, str]:
    return {name: _utf8_text(text) for name, text in texts.items()}


class UmgError(Exception):
    """Failed call: a reason (`error_reason.proto`), a message for the caller that states the remedy, and metadata.

    `metadata` has the keys that the reason's comment names, with text values. Neither metadata nor message may contain
    secrets, since callers see both. Only for operators (log, metrics, `umg models`) are `cause`, `facts` of a
    provider's failure, and `place`, the line at which the gateway's own decoder failed. `refusal` is a provider's
    refusal as it came, only for the repair of the request.

    `failure` is the consequence for further attempts; None if no provider was called. `usage` has the tokens of a
    response that failed after the provider generated it, for which the provider charges.
    """

    cause = ""
    place = ""
    failure: Failure | None = None
    facts: ProviderFailure | None = None
    refusal: ProviderRefusal | None = None
    usage: "pb.Usage | None" = None

    def __init__(self, reason: "pb.ErrorReason.ValueType", message: str, **metadata: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = _utf8_text(message[:MAX_MESSAGE_CHARACTERS])
        self.metadata = metadata if all(map(str.isascii, metadata.values())) else _utf8_texts(metadata)

    def with_failure(self, failure: Failure, cause: str = "") -> Self:
        """Set the consequence for further attempts, and the cause for the log ("" keeps it). Return this error."""
        self.failure = failure
        self.cause = cause or self.cause
        return self

    def with_facts(self, facts: ProviderFailure | None) -> Self:
        """Set the facts about the provider's failure, for operators alone; None removes them. Return this error."""
        self.facts = facts
        return self

    def with_refusal(self, refusal: ProviderRefusal) -> Self:
        self.refusal = refusal
        return self

    def with_usage(self, usage: "pb.Usage | None") -> Self:
        """Set the tokens for which the provider charges; None for an unknown number. Return this error."""
        self.usage = usage
        return self

    def at(self, place: str) -> Self:
        """Set the line (see `place_of`) at which the gateway's decoder failed, for the log. Return this error."""
        self.place = place
        return self

    def with_message(self, message: str, **metadata: str) -> "UmgError":
        """Return a copy of this error with another message. `metadata` is added to the metadata."""
        changed = UmgError(self.reason, message, **{**self.metadata, **metadata})
        changed.cause, changed.failure, changed.facts = self.cause, self.failure, self.facts
        changed.refusal, changed.usage = self.refusal, self.usage
        return changed

    @property
    def retry_after(self) -> float | None:
        """Seconds after which another attempt may succeed; None if unknown."""
        seconds = self.metadata.get("retry_after_seconds")
        return None if seconds is None else float(seconds)

    @property
    def name(self) -> str:
        """Name of the reason as in `google.rpc.ErrorInfo`, for example `MODEL_NOT_FOUND`."""
        return pb.ErrorReason.Name(self.reason).removeprefix("ERROR_REASON_")

    def __repr__(self) -> str:
        return f"UmgError({self.name}, {self.message!r}, {self.metadata})"


def internal(request_id: str) -> UmgError:
    """Return the error that callers get for an unexpected exception: it names the request id for the log."""
    return UmgError(pb.ERROR_REASON_INTERNAL, f"internal error; the log has it under request id {request_id}")


AGAIN_SECONDS = 1
"""Seconds clients should wait before retrying after a rejection by overload (`Retry-After`)."""


def overloaded(why: str) -> UmgError:
    """Return the error UNAVAILABLE for a short overload of this process: the caller may soon repeat the call."""
    message = f"{why}; try again in {AGAIN_SECONDS} s"
    return UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds=str(AGAIN_SECONDS))


def shutting_down() -> UmgError:
    """Return the error for a call that is still running when the drain time of a shutdown ends."""
    message = "the gateway is shutting down; try again"
    return UmgError(pb.ERROR_REASON_UNAVAILABLE, message, retry_after_seconds="1")

"""What the gateway knows of the call that it is serving."""

import secrets
import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import inf

from umg_grpc.access.caller import Caller
from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.headers import TIMEOUT, is_request_id, is_strict, timeout_seconds


@dataclass(slots=True)
class Call:
    """One call, from its first byte to its log line."""

    method: str
    metadata: Mapping[str, str]  # what came with it, by lower-case name
    trusted: bool  # whether it came from our own facade, without a socket
    request_id: str
    headers: dict[str, str] = field(default_factory=dict)  # initial metadata to send
    known_caller: Caller | None = None
    ends_at: float = inf  # when nobody waits any more, on the monotonic clock
    # for the log and the metrics
    model: str = ""
    channel: str = ""
    attempts: int = 0
    abandoned: list[str] = field(default_factory=list)  # channels that were asked too and were left for this one
    is_kept: bool = False  # whether its answer was made for another call, which had its cost
    usage: pb.Usage | None = None

    @property
    def caller(self) -> Caller:
        """Who calls. Raises UmgError(MISSING_KEY) in a call that no interceptor authenticated."""
        if self.known_caller is None:
            raise UmgError(pb.ERROR_REASON_MISSING_KEY, "this call has no credentials")
        return self.known_caller

    def limit(self, seconds: float | None) -> None:
        """Takes the caller's deadline: that of the connection, in `seconds`, or `x-umg-timeout`, if that is shorter.
        Raises UmgError(INVALID_FIELD).
        """
        if (asked := self.metadata.get(TIMEOUT)) is not None:
            seconds = min(timeout_seconds(asked), inf if seconds is None else seconds)
        if seconds is not None and seconds != inf:
            self.ends_at = time.monotonic() + seconds

    def seconds_left(self) -> float:
        """Until the caller's deadline; infinite without one."""
        return inf if self.ends_at == inf else self.ends_at - time.monotonic()

    @property
    def strict(self) -> bool:
        """Whether the caller wants a refusal where something would be dropped. Raises UmgError(INVALID_FIELD)."""
        return is_strict(self.metadata.get("x-umg-strict"))


CURRENT: ContextVar[Call] = ContextVar("call")


def current() -> Call:
    """The call being served. A streaming servicer asks at its first step: later steps may run in another context."""
    return CURRENT.get()


def request_id_of(given: str | None) -> str:
    """The caller's own request id where it is one, else a new one."""
    return given if given is not None and is_request_id(given) else f"req_{secrets.token_hex(16)}"

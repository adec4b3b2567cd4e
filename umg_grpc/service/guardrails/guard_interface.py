"""Interface of the guards, which the driver runs and the adapters implement."""

from abc import ABC, abstractmethod

from umg_grpc.config.config_values import GuardRow
from umg_grpc.v1 import pb

MAX_RESPONSE_BYTES = 64 * 2**20
"""Maximum size of a decision that a service sends."""
ALLOW_RESPONSE = pb.CheckResponse(allow=pb.GuardAllow())
"""Response of a guard that lets the content pass. Must not be modified."""


class GuardFailedError(Exception):
    """Failure of a guard: it could not be called, or returned no decision. The text of the error is for the log."""


class Guard(ABC):
    """Guard of the config."""

    is_local = False
    """Whether the guard decides in this process, so that it needs no time limit."""

    def __init__(self, row: GuardRow) -> None:
        self.row = row

    @abstractmethod
    async def check(self, request: pb.CheckRequest) -> pb.CheckResponse:
        """Decide whether the content of a request may pass; the caller limits the time. Raise GuardFailedError."""

    def due(self, context: str, text: str) -> int:
        """Return the length of the text's beginning to check now, 0 to wait for more. `context`: text before it."""
        return len(text) if len(text) >= self.row.window + self.row.hold_back else 0

    @property
    def hold_back(self) -> int:
        """Number of characters at the end of a checked text that the caller does not get before the next check."""
        return self.row.hold_back

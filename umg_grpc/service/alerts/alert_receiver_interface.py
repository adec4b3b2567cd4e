"""Interface of the receivers of alerts, and the failure of an attempt."""

from typing import Protocol

from umg_grpc.v1 import pb


class ReceiverFailedError(Exception):
    """Failure of an attempt to notify a receiver. Its text has neither URLs nor secrets."""

    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        """Create the error. `is_final`: whether the receiver refuses all further attempts of this notification."""
        super().__init__(reason)
        self.is_final = is_final


class AlertReceiverClient(Protocol):
    """Client of one receiver."""

    async def send(self, sent: pb.AlertNotification) -> None:
        """Send a notification, and wait until the receiver has accepted it. Raise ReceiverFailedError."""
        ...

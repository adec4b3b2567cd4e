"""Interface of a client's connection, as the handling of a request uses it."""

from typing import Protocol

from http_facade.exchange.server_settings import Settings


class ClientConnection(Protocol):
    """Connection of a client, implemented by the server in `http_facade.server.connections`."""

    settings: Settings
    authorization: str | None
    """Credentials of the last call; None before the first one."""
    known_key: object
    """The key in these credentials, if a service in this process has validated it; else None."""
    is_over_limit: bool
    is_expected: bool
    """Whether the load shedder has admitted the next call."""

    async def write(self, head: bytes, body: bytes = b"") -> None:
        """Write a response's beginning (`head`) or a later part, then `body`, and wait until the write buffer is nearly
        empty. If the client disconnects, its handler is cancelled.
        """

    def write_now(self, data: bytes) -> None:
        """Write a part of a response without waiting. Do nothing if the client is disconnected."""

    def is_closed_by_client(self) -> bool:
        """Return whether the client has closed the connection, even if the event loop has not noticed it yet."""
        ...

    def abort(self) -> None:
        """Close the connection without a response."""

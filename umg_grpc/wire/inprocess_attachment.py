"""Python objects that the HTTP face passes to an in-process service beside a request."""

import msgspec

from umg_grpc.wire.request_notes import RequestNotes


class Attachment(msgspec.Struct, eq=False):
    """Objects that the HTTP face passes by reference beside a request to a service in its own process, never over a
    socket.
    """

    notes: RequestNotes | None = None
    """Notes of the decoder about the caller's body; None for a request without a body."""
    known_key: object = None
    """The caller's key after its check by the service (a `KnownKey`); None if the service still has to check it."""

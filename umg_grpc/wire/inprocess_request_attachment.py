"""Python objects that the HTTP face passes to a service in the same process beside a request."""

import msgspec

from umg_grpc.wire.facts_beside_request import RequestNotes


class Attachment(msgspec.Struct, eq=False):
    """Objects passed by reference from the HTTP face to a service in the same process."""

    notes: RequestNotes | None = None  # the decoder's; None for a request without a body
    known_key: object = None
    """The caller's key after its check by the service (a `KnownKey`); None if the service still has to check it."""

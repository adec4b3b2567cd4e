"""State of the provisional usage record of a call, while a provider answers."""

from collections.abc import Sequence

import msgspec

from umg_grpc.access.usage_record_writer import UsageLog
from umg_grpc.operations.canonical_message_unions import CanonicalRequest
from umg_grpc.store.in_flight_record_file import NO_SLOT
from umg_grpc.store.usage_record_table import UsageRecord
from umg_grpc.v1 import pb


class UsageInFlight(msgspec.Struct, eq=False):
    """Provisional usage record of a call in flight, in a file. If the process is killed while a provider answers, the
    record charges the estimated cost, since the provider may charge for the call.
    """

    log: UsageLog
    request: CanonicalRequest
    model: pb.Model
    record: UsageRecord | None = None
    """The provisional record, which becomes the final one; None before the first attempt."""
    estimated: Sequence[str] = ()
    """Fields of the record with estimates, which the final record does not have."""
    slot: int = NO_SLOT
    """Place of the record in the file, while it is there."""
    attempts: int = 0
    """Attempts that were sent and have not failed."""

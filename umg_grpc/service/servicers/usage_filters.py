"""Filters and page tokens of the requests that list calls or sum up usage."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeAlias, TypeVar

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.base.time_units import time_of
from umg_grpc.service.servicers.timestamps import utc
from umg_grpc.store.key_selection import KeySelection
from umg_grpc.store.usage_parts import CallFilter
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import invalid
from umg_grpc.wire.core.model_list_page_token import PageBoundary, decode_token, encode_token
from umg_grpc.wire.protobuf_json import enum_names

DEFAULT_SPAN = timedelta(days=30)
REASON_PREFIX = "ERROR_REASON_"
OPERATION_NAMES = enum_names(pb.ModelOperation.DESCRIPTOR)
FIRST_TIME = datetime.min.replace(tzinfo=UTC)

Selection: TypeAlias = pb.ListUsageRequest | pb.GetCallSummaryRequest | pb.ListRequestRecordsRequest
PositionT = TypeVar("PositionT", bound="Position")


class Position(msgspec.Struct, array_like=True):
    """Position in a list at which the next page begins, encoded in the page token. It includes the time span of the
    list in microseconds since 1970, so that all pages have the same span.
    """

    since: int
    until: int

    def token(self) -> str:
        """Return the page token for the page that begins at this position."""
        return encode_token(PageBoundary(msgspec.json.encode(self).decode()))

    def apply_to(self, calls: CallFilter) -> CallFilter:
        """Return the filter with the time span of the first page. Raise UmgError(INVALID_FIELD) for another span."""
        try:
            return replace(calls, since=time_of(self.since), until=time_of(self.until))
        except OverflowError:
            raise unknown_token() from None


def position_of(token: str, kind: type[PositionT]) -> PositionT:
    """Decode a page token to a position of the class `kind`. Raise UmgError(INVALID_FIELD) for an invalid token."""
    try:
        return msgspec.json.decode(decode_token(token).id, type=kind)
    except msgspec.DecodeError:
        raise unknown_token() from None


def unknown_token() -> UmgError:
    """Return the error for a page token that does not belong to this request."""
    return invalid(
        "page_token", "it belongs to another request; send it with the request that returned it, or send no token"
    )


def span_of(request: Selection | pb.ListEndUserUsageRequest, now: datetime) -> tuple[datetime, datetime]:
    """Return start and end of the time span of a request. Raise UmgError(INVALID_FIELD) for a start after `now`."""
    until = utc(request.end_time) if request.HasField("end_time") else now
    since = utc(request.start_time) if request.HasField("start_time") else until - min(DEFAULT_SPAN, until - FIRST_TIME)
    if since > until:
        raise invalid("start_time", "it is in the future; give an earlier one")
    return since, until


def selected(request: Selection, now: datetime, keys: KeySelection) -> CallFilter:
    """Return the filter of records that a request describes. `keys`: whose calls are selected. Raise
    UmgError(INVALID_FIELD) for a start after `now`.
    """
    since, until = span_of(request, now)
    only = {"key": request.key_ids, "model": request.models, "channel": request.channels, "agent": request.agents}
    if not isinstance(request, pb.ListRequestRecordsRequest):
        return CallFilter(since, until, only, keys=keys, tag=request.tag_name)
    reasons = (pb.ErrorReason.Name(reason).removeprefix(REASON_PREFIX) for reason in request.reasons)
    operations = (OPERATION_NAMES[operation] for operation in request.operations)
    return CallFilter(
        since,
        until,
        {**only, "end_user": request.end_users, "reason": [*reasons], "operation": [*operations]},
        failed=request.failed_only,
        keys=keys,
        request_id_prefix=request.request_id_prefix,
        min_duration_micros=request.min_duration.ToMicroseconds(),
    )

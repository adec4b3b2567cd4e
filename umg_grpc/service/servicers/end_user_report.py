"""Usage of end users, as messages of `umg.v1`."""

from typing import Annotated

import msgspec

from umg_grpc.base.time_units import micros_of, time_of
from umg_grpc.service.servicers.administration_errors import converted_errors
from umg_grpc.service.servicers.timestamps import timestamp
from umg_grpc.service.servicers.usage_filters import Position, position_of, span_of, unknown_token
from umg_grpc.store.database_time import Clock, utc_of
from umg_grpc.store.end_user_usage import EndUserFilter, EndUserUsage
from umg_grpc.store.key_selection import EVERY_KEY, KeySelection
from umg_grpc.store.usage_sum_queries import FOREVER_MICROS
from umg_grpc.store.usage_tables import DAY_BUCKET
from umg_grpc.store.usage_totals import next_start, start_of
from umg_grpc.v1 import pb

PAGE_SIZE = 1000
MAX_OFFSET = 10**9


class _EndUserPosition(Position, array_like=True):
    """Position in the list of end users, encoded in a page token: the number of end users on the pages before."""

    offset: Annotated[int, msgspec.Meta(ge=0, le=MAX_OFFSET)]


class EndUserReport:
    """Reader of the usage of end users, page by page."""

    def __init__(self, usage: EndUserUsage, clock: Clock) -> None:
        self._usage = usage
        self._clock = clock

    @converted_errors()
    async def list(
        self, request: pb.ListEndUserUsageRequest, keys: KeySelection = EVERY_KEY
    ) -> pb.ListEndUserUsageResponse:
        """Return one page of the usage of end users by `keys`. Raise UmgError(INVALID_FIELD) for a wrong time or
        token.
        """
        since, until = (micros_of(time) for time in span_of(request, utc_of(self._clock)))
        offset = 0
        if request.page_token:
            position = position_of(request.page_token, _EndUserPosition)
            since, until, offset = position.since, position.until, position.offset
        if not 0 <= since <= until <= FOREVER_MICROS:
            raise unknown_token()
        since, until = start_of(DAY_BUCKET, since), next_start(DAY_BUCKET, until)
        size = request.page_size if request.HasField("page_size") else PAGE_SIZE
        found = await self._usage.sums(EndUserFilter(since, until, request.key_ids, keys), offset, size + 1)
        response = pb.ListEndUserUsageResponse(
            entries=[
                pb.EndUserUsage(
                    end_user=each.end_user,
                    request_count=each.requests,
                    failed_request_count=each.failed,
                    input_tokens=each.input_tokens,
                    output_tokens=each.output_tokens,
                    micro_credits=each.micro_credits,
                )
                for each in found[:size]
            ],
            start_time=timestamp(time_of(since)),
            end_time=timestamp(time_of(until)),
        )
        if len(found) > size:
            response.next_page_token = _EndUserPosition(since, until, offset + size).token()
        return response

"""Summary of calls, and the filters of records, as administrators read them, over gRPC and HTTP on both databases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration

from tests.support.databases import Database
from tests.unit.e2e.test_operator_view import DAY, FACES, MIDNIGHT, client, gateway_with_records, record, timestamp
from umg_grpc.base.errors import UmgError
from umg_grpc.cli.admin_client import CommandError
from umg_grpc.v1 import pb

RECORDS = [
    record(0, MIDNIGHT, model="m", micro_credits=5, duration_micros=10**6, first_byte_micros=10**5),
    record(1, MIDNIGHT + DAY, model="m", micro_credits=7, duration_micros=3 * 10**6, cached=True),
    record(2, MIDNIGHT + DAY, model="n", operation="embed", micro_credits=100, duration_micros=2 * 10**6),
    record(
        3,
        MIDNIGHT + DAY + timedelta(hours=1),
        model="n",
        micro_credits=1,
        status="UNAVAILABLE",
        reason="UPSTREAM_UNPAID",
        failure_kind="unpaid",
        duration_micros=9 * 10**6,
    ),
]
SPAN = {"start_time": timestamp(MIDNIGHT + DAY), "end_time": timestamp(MIDNIGHT + 2 * DAY)}


@pytest.mark.parametrize("face", FACES)
async def test_a_summary_has_the_span_and_the_one_before(prepared_database: Database, face: str) -> None:
    async with gateway_with_records(prepared_database, RECORDS) as gateway, client(gateway, face) as admin:
        summary = await admin.call(pb.GetCallSummaryRequest(**SPAN), pb.GetCallSummaryResponse)
        assert (
            summary.total.request_count,
            summary.total.failed_request_count,
            summary.total.cached_request_count,
        ) == (
            *(3, 1),
            1,
        )
        assert (summary.total.micro_credits, summary.previous.micro_credits) == (108, 5)
        assert summary.previous.end_time == summary.total.start_time
        assert (summary.bucket, len(summary.buckets)) == (pb.USAGE_BUCKET_HOUR, 24)
        assert [(group.value, group.current.micro_credits) for group in summary.groups] == [("n", 101), ("m", 7)]
        assert [*summary.groups[0].micro_credits[:2]] == [100, 1]
        assert [(each.kind, each.request_count) for each in summary.failures_by_kind] == [("unpaid", 1)]
        assert summary.total.whole_call.call_count == 2
        assert summary.total.whole_call.p99.ToTimedelta() == pytest.approx(timedelta(seconds=3), rel=0.07)
        assert not summary.total.HasField("first_byte")
        assert summary.previous.first_byte.call_count == 1


@dataclass(frozen=True)
class Refused:
    id: str
    field: str
    fields: Mapping[str, Any]


REFUSED = [
    Refused("too many buckets", "bucket", {"bucket": pb.USAGE_BUCKET_MINUTE, **SPAN}),
    Refused("a tag without a name", "tag_name", {"group_by": pb.USAGE_DIMENSION_TAG}),
    Refused("a span that ends before it begins", "end_time", {**SPAN, "end_time": timestamp(MIDNIGHT)}),
]


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
async def test_a_malformed_summary_is_refused(prepared_database: Database, face: str, case: Refused) -> None:
    async with gateway_with_records(prepared_database, RECORDS) as gateway, client(gateway, face) as admin:
        with pytest.raises((UmgError, CommandError), match=case.field):
            await admin.call(pb.GetCallSummaryRequest(**case.fields), pb.GetCallSummaryResponse)


@dataclass(frozen=True)
class Listed:
    id: str
    expected: Sequence[int]
    fields: Mapping[str, Any]


LISTED = [
    Listed("a reason", [3], {"reasons": [pb.ERROR_REASON_UPSTREAM_UNPAID]}),
    Listed("another reason", [], {"reasons": [pb.ERROR_REASON_CANCELLED]}),
    Listed("an operation", [2], {"operations": [pb.MODEL_OPERATION_EMBED]}),
    Listed("a duration", [3, 1], {"min_duration": Duration(seconds=2, nanos=500_000_000)}),
    Listed("a request id", [2], {"request_id_prefix": RECORDS[2].request_id}),
]


@pytest.mark.parametrize("face", FACES)
async def test_records_are_selected_by_further_filters(prepared_database: Database, face: str) -> None:
    async with gateway_with_records(prepared_database, RECORDS) as gateway, client(gateway, face) as admin:
        for case in LISTED:
            request = pb.ListRequestRecordsRequest(
                start_time=timestamp(MIDNIGHT), end_time=SPAN["end_time"], **case.fields
            )
            found = await admin.call(request, pb.ListRequestRecordsResponse)
            expected = [RECORDS[number].request_id for number in case.expected]
            assert [each.request_id for each in found.records] == expected, case.id
        with pytest.raises((UmgError, CommandError), match="request_id_prefix"):
            await admin.call(pb.ListRequestRecordsRequest(request_id_prefix="re"), pb.ListRequestRecordsResponse)

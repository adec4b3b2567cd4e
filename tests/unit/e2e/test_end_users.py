"""Usage of end users and the end user of records, as administrators read them, over gRPC and HTTP on both databases."""

from datetime import timedelta

import pytest

from tests.support.databases import Database
from tests.unit.e2e.test_operator_view import DAY, FACES, MIDNIGHT, client, gateway_with_records, record, timestamp
from umg_grpc.base.errors import UmgError
from umg_grpc.cli.admin_client import AdminClient, CommandError
from umg_grpc.v1 import pb

RECORDS = [
    record(0, MIDNIGHT, end_user="ada"),
    record(1, MIDNIGHT + timedelta(hours=23), end_user="ben", key_id="key_b", micro_credits=20),
    record(2, MIDNIGHT + timedelta(hours=1)),
    record(3, MIDNIGHT + DAY, end_user="ada", status="UNAVAILABLE", reason="UPSTREAM_FAILED", micro_credits=1),
]
LATER = {"start_time": timestamp(MIDNIGHT), "end_time": timestamp(MIDNIGHT + 2 * DAY)}


async def pages(admin: AdminClient, **fields: object) -> list[pb.EndUserUsage]:
    found, token = list[pb.EndUserUsage](), ""
    while True:
        request = pb.ListEndUserUsageRequest(**{**LATER, **fields}, page_size=1, page_token=token)
        page = await admin.call(request, pb.ListEndUserUsageResponse)
        found.extend(page.entries)
        if not (token := page.next_page_token):
            return found


@pytest.mark.parametrize("face", FACES)
async def test_the_usage_of_end_users_is_listed_by_cost_selected_and_paged(
    prepared_database: Database, face: str
) -> None:
    database = prepared_database
    async with gateway_with_records(database, RECORDS) as gateway, client(gateway, face) as admin:
        ada = pb.EndUserUsage(
            end_user="ada",
            request_count=2,
            failed_request_count=1,
            input_tokens=28,
            output_tokens=10,
            micro_credits=8,
        )
        ben = pb.EndUserUsage(end_user="ben", request_count=1, input_tokens=14, output_tokens=5, micro_credits=20)
        assert await pages(admin) == [ben, ada]
        assert await pages(admin, key_ids=["key_b"]) == [ben]
        assert await pages(admin, tags={"team": "search"}) == []
        for name in ("project_ids", "user_ids"):
            with pytest.raises((UmgError, CommandError), match="there is no such"):
                await pages(admin, **{name: ["unknown"]})
        noon = MIDNIGHT + DAY / 2
        request = pb.ListEndUserUsageRequest(start_time=timestamp(noon), end_time=timestamp(noon + DAY / 4))
        day = await admin.call(request, pb.ListEndUserUsageResponse)
        assert [(each.end_user, each.request_count) for each in day.entries] == [("ben", 1), ("ada", 1)]
        assert (day.start_time, day.end_time) == (timestamp(MIDNIGHT), timestamp(MIDNIGHT + DAY))
        recent = await admin.call(pb.ListEndUserUsageRequest(), pb.ListEndUserUsageResponse)
        assert [each.end_user for each in recent.entries] == ["ben", "ada"]


@pytest.mark.parametrize("face", FACES)
async def test_records_have_their_end_user_and_are_selected_by_it(prepared_database: Database, face: str) -> None:
    async with gateway_with_records(prepared_database, RECORDS) as gateway, client(gateway, face) as admin:
        request = pb.ListRequestRecordsRequest(**LATER, end_users=["ada", "nobody"])
        found = await admin.call(request, pb.ListRequestRecordsResponse)
        assert [(each.request_id, each.end_user) for each in found.records] == [("req-3", "ada"), ("req-0", "ada")]
        one = await admin.call(pb.GetRequestRecordRequest(request_id="req-1"), pb.GetRequestRecordResponse)
        assert one.record.end_user == "ben"


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("page_token", {"page_token": "bLYxlT5bMCwyLFtdXQ"}),  # of ListUsage
        ("start_time", {"start_time": timestamp(MIDNIGHT + 3 * DAY)}),
        ("page_size", {"page_size": 0}),
    ],
)
async def test_wrong_requests_are_rejected(prepared_database: Database, field: str, values: dict[str, object]) -> None:
    async with gateway_with_records(prepared_database, ()) as gateway, client(gateway, "http") as admin:
        with pytest.raises(CommandError, match=field):
            await admin.call(pb.ListEndUserUsageRequest(**values), pb.ListEndUserUsageResponse)  # type: ignore[arg-type]

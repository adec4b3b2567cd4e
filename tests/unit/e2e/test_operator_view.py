"""Usage, records of requests and channels as operators read them: over gRPC and HTTP, on both databases."""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import aiohttp
import grpc
import msgspec
import pytest
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from tests.support.databases import Database
from tests.support.gateways import KEY, Running, running
from tests.support.http_admin import HttpAdmin
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.base.provider_failure import FailureKind, ProviderFailure
from umg_grpc.base.time_units import micros_of
from umg_grpc.cli.admin_client import AdminClient, CommandError
from umg_grpc.store.channel_failure_file import ChannelFailures
from umg_grpc.store.usage_record_table import AttemptRecord, CallDetails, UsageRecord, UsageRecords
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.core.model_list_page_token import PageBoundary, encode_token

ResponseT = TypeVar("ResponseT", bound=Message)

CONFIG = """
database: {database}
channels:
  - {{name: main, protocols: [sandbox], pace: 0, models: [{{id: famO-5, upstream: real-5}}]}}
  - {{name: spare, protocols: [sandbox], pace: 0, priority: 1, models: [famO-5, famX-4]}}
aliases: {{fast: famX-4}}
"""
DAY = timedelta(days=1)
MIDNIGHT = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - DAY
FACES = ["grpc", "http"]


def timestamp(time: datetime) -> Timestamp:
    message = Timestamp()
    message.FromDatetime(time)
    return message


class GrpcAdmin:
    """Client of the service over a socket."""

    def __init__(self, stub: "rpc.AdminServiceAsyncStub", key: str) -> None:
        self._stub = stub
        self._key = key

    async def call(self, request: Message, kind: type[ResponseT]) -> ResponseT:
        method = getattr(self._stub, type(request).__name__.removesuffix("Request"))
        try:
            response = await method(request, metadata=[("authorization", f"Bearer {self._key}")])
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error) from None
        assert isinstance(response, kind)
        return response


@asynccontextmanager
async def client(gateway: Running, face: str, key: str = KEY) -> AsyncGenerator[AdminClient, None]:
    if face == "http":
        yield HttpAdmin(gateway.url, key)
    else:
        async with grpc.aio.insecure_channel(gateway.grpc) as channel:
            yield GrpcAdmin(rpc.AdminServiceStub(channel), key)


def record(number: int, start: datetime, **changed: object) -> UsageRecord:
    made = UsageRecord(
        record_id=f"boot-{number}", request_id=f"req-{number}", key_id="key_a", operation="generate",
        method="GenerationService/StreamGenerate", face="chat", model="famO-5", channel="main",
        start_micros=micros_of(start), duration_micros=2_500_000, status="OK", reason="", attempts=1, cached=False,
        estimated=False, input_tokens=10, cache_read_tokens=4, output_tokens=5, micro_credits=7,
    )  # fmt: skip
    return msgspec.structs.replace(made, **changed)


RECORDS = [
    record(0, MIDNIGHT),
    record(1, MIDNIGHT + timedelta(hours=1), model="famX-4", channel="spare", operation="embed"),
    record(2, MIDNIGHT + timedelta(hours=1, minutes=59), key_id="key_b", agent="codex"),
    record(
        3,
        MIDNIGHT + DAY,
        status="UNAVAILABLE",
        reason="UPSTREAM_FAILED",
        micro_credits=0,
        input_tokens=0,
        cache_read_tokens=0,
        output_tokens=0,
    ),
]
SPAN = {"start_time": timestamp(MIDNIGHT), "end_time": timestamp(MIDNIGHT + 2 * DAY)}


@pytest.fixture
def database(prepared_database: Database) -> Database:
    return prepared_database


@asynccontextmanager
async def gateway_with_records(
    database: Database, records: Sequence[UsageRecord] = RECORDS
) -> AsyncGenerator[Running, None]:
    async with running(CONFIG.format(database=database.url), database.data_dir) as gateway:
        await UsageRecords(gateway.service.store).insert([msgspec.json.encode(each) for each in records])
        yield gateway


def groups(response: pb.ListUsageResponse) -> list[tuple[object, ...]]:
    """Return the groups, each with its hour, its set fields and its number of calls."""
    return [
        (
            (entry.start_time.ToDatetime(UTC) - MIDNIGHT) // timedelta(hours=1),
            *(getattr(entry, name) for name in ("key_id", "model", "channel", "agent") if entry.HasField(name)),
            entry.request_count,
        )
        for entry in response.entries
    ]


@dataclass(frozen=True)
class Query:
    id: str
    request: pb.ListUsageRequest
    groups: list[tuple[object, ...]]


QUERIES = [
    Query("everything", pb.ListUsageRequest(**SPAN), [(0, 4)]),
    Query("days", pb.ListUsageRequest(bucket=pb.USAGE_BUCKET_DAY, **SPAN), [(0, 3), (24, 1)]),
    Query("hours", pb.ListUsageRequest(bucket=pb.USAGE_BUCKET_HOUR, **SPAN), [(0, 1), (1, 2), (24, 1)]),
    Query(
        "keys and models of hours",
        pb.ListUsageRequest(
            bucket=pb.USAGE_BUCKET_DAY, group_by=[pb.USAGE_DIMENSION_MODEL, pb.USAGE_DIMENSION_KEY], **SPAN
        ),
        [(0, "key_a", "famO-5", 1), (0, "key_a", "famX-4", 1), (0, "key_b", "famO-5", 1), (24, "key_a", "famO-5", 1)],
    ),
    Query(
        "channels",
        pb.ListUsageRequest(group_by=[pb.USAGE_DIMENSION_CHANNEL], **SPAN),
        [(0, "main", 3), (0, "spare", 1)],
    ),
    Query(
        "agents of keys",
        pb.ListUsageRequest(group_by=[pb.USAGE_DIMENSION_AGENT, pb.USAGE_DIMENSION_KEY], **SPAN),
        [(0, "key_a", "", 3), (0, "key_b", "codex", 1)],
    ),
    Query(
        "one agent",
        pb.ListUsageRequest(agents=["codex"], bucket=pb.USAGE_BUCKET_HOUR, **SPAN),
        [(1, 1)],
    ),
    Query("one key", pb.ListUsageRequest(key_ids=["key_b"], **SPAN), [(0, 1)]),
    Query("one model", pb.ListUsageRequest(models=["famX-4", "none"], **SPAN), [(0, 1)]),
    Query("one channel", pb.ListUsageRequest(channels=["main"], key_ids=["key_a"], **SPAN), [(0, 2)]),
    Query("nothing", pb.ListUsageRequest(models=["none"], **SPAN), []),
]


@pytest.mark.parametrize("face", FACES)
async def test_usage_is_grouped_selected_and_paged(database: Database, face: str) -> None:
    async with gateway_with_records(database) as gateway, client(gateway, face) as admin:
        for query in QUERIES:
            whole = await admin.call(query.request, pb.ListUsageResponse)
            assert (groups(whole), whole.next_page_token) == (query.groups, ""), query.id
            paged, token = pb.ListUsageResponse(), ""
            while len(paged.entries) < len(whole.entries):
                request = pb.ListUsageRequest(page_size=1, page_token=token)
                request.MergeFrom(query.request)
                page = await admin.call(request, pb.ListUsageResponse)
                paged.entries.extend(page.entries)
                token = page.next_page_token
            assert (list(paged.entries), token) == (list(whole.entries), ""), query.id
        [entry] = (await admin.call(pb.ListUsageRequest(**SPAN), pb.ListUsageResponse)).entries
        units = {quantity.unit: quantity.count for quantity in entry.quantities}
        tokens = {
            pb.BILLABLE_UNIT_INPUT_TOKEN: 30,
            pb.BILLABLE_UNIT_CACHE_READ_TOKEN: 12,
            pb.BILLABLE_UNIT_OUTPUT_TOKEN: 15,
        }
        assert units == tokens
        assert (entry.failed_request_count, entry.micro_credits, entry.end_time) == (1, 21, SPAN["end_time"])
        operations = pb.ListUsageRequest(group_by=[pb.USAGE_DIMENSION_OPERATION], **SPAN)
        found = (await admin.call(operations, pb.ListUsageResponse)).entries
        assert [each.operation for each in found] == [pb.MODEL_OPERATION_EMBED, pb.MODEL_OPERATION_GENERATE]


@pytest.mark.parametrize("face", FACES)
async def test_a_key_reads_its_own_usage_and_balance(database: Database, face: str) -> None:
    async with gateway_with_records(database, ()) as gateway, client(gateway, face) as admin:
        settings = pb.KeySettings(name="app", budget_micro_credits=50)
        made = await admin.call(pb.CreateKeyRequest(settings=settings), pb.CreateKeyResponse)
        mine = [record(number, datetime.now(UTC), key_id=made.key.key_id) for number in range(2)]
        await UsageRecords(gateway.service.store).insert([msgspec.json.encode(each) for each in mine])
        async with client(gateway, face, made.secret) as own:
            found = await own.call(pb.GetUsageRequest(), pb.GetUsageResponse)
            found.key.ClearField("last_use_time")  # written in the background, at any time after this call began
            assert found.key == made.key
            assert (found.usage.request_count, found.usage.micro_credits) == (2, 14)
            assert (found.remaining_micro_credits, found.usage.start_time) == (50, made.key.create_time)
            listed = await own.call(pb.ListUsageRequest(group_by=[pb.USAGE_DIMENSION_KEY]), pb.ListUsageResponse)
            assert [(each.key_id, each.request_count) for each in listed.entries] == [(made.key.key_id, 2)]
            for denied in (pb.GetUsageRequest(key_id="bootstrap"), pb.ListChannelsRequest()):
                with pytest.raises((UmgError, CommandError), match="may not administer"):
                    await own.call(denied, pb.GetUsageResponse)
        again = await admin.call(pb.GetUsageRequest(key_id="app"), pb.GetUsageResponse)
        again.key.ClearField("last_use_time")
        assert again.key == found.key
        unlimited = await admin.call(pb.GetUsageRequest(key_id="bootstrap"), pb.GetUsageResponse)
        assert not unlimited.HasField("remaining_micro_credits")
        with pytest.raises((UmgError, CommandError), match="no such key"):
            await admin.call(pb.GetUsageRequest(key_id="none"), pb.GetUsageResponse)


DETAILS = CallDetails(
    attempts=[
        AttemptRecord(channel="main", model="real-5", start_micros=1000, duration_micros=2000, status=429, request_id="req_up", reason="RATE_LIMITED", kind="unpaid", code="insufficient_quota", message="check your plan"),
        AttemptRecord(channel="spare", model="famO-5", start_micros=4000, duration_micros=5000, status=0, request_id="", reason="CANCELLED"),
    ],
    message="try again",
    first_output_micros=1_250_000,
    dropped=["seed"],
)  # fmt: skip


@pytest.mark.parametrize("face", FACES)
async def test_a_record_has_all_facts_of_its_call(database: Database, face: str) -> None:
    failed = record(
        1,
        MIDNIGHT,
        request_id="a/b?c#d",
        status="UNAVAILABLE",
        reason="UPSTREAM_FAILED",
        estimated=True,
        details=DETAILS,
    )
    older = record(0, MIDNIGHT - DAY, request_id="a/b?c#d", cached=True, method="GenerationService/Generate")
    async with gateway_with_records(database, [failed, older]) as gateway, client(gateway, face) as admin:
        found = await admin.call(pb.GetRequestRecordRequest(request_id="a/b?c#d"), pb.GetRequestRecordResponse)
        record_, [earlier] = found.record, found.earlier_records
        assert (record_.key_id, record_.model, record_.channel, record_.face) == ("key_a", "famO-5", "main", "chat")
        assert (record_.status, record_.reason, record_.message) == (
            "UNAVAILABLE",
            pb.ERROR_REASON_UPSTREAM_FAILED,
            "try again",
        )
        assert (record_.start_time, record_.duration.ToMilliseconds()) == (timestamp(MIDNIGHT), 2500)
        assert (record_.first_byte_duration.ToMilliseconds(), [*record_.dropped]) == (1250, ["seed"])
        assert (record_.streamed, record_.tokens_estimated, record_.cached) == (True, True, False)
        assert record_.method == "/umg.v1.GenerationService/StreamGenerate"
        refused, left = record_.attempts
        assert (refused.channel, refused.upstream_model, refused.upstream_status_code) == ("main", "real-5", 429)
        assert (refused.upstream_request_id, refused.failure_kind, refused.upstream_code) == (
            "req_up",
            "unpaid",
            "insufficient_quota",
        )
        assert (refused.upstream_message, refused.reason) == ("check your plan", pb.ERROR_REASON_RATE_LIMITED)
        assert refused.remedy == "the account has no credit or quota left: check its bill at the provider"
        assert not left.HasField("remedy")
        assert (refused.start_time.ToMicroseconds(), refused.duration.ToMicroseconds()) == (
            failed.start_micros + 1000,
            2000,
        )
        assert (left.reason, left.HasField("upstream_status_code"), left.HasField("upstream_request_id")) == (
            pb.ERROR_REASON_CANCELLED,
            False,
            False,
        )
        assert (earlier.cached, earlier.streamed, len(earlier.attempts)) == (True, False, 0)
        with pytest.raises((UmgError, CommandError), match="there is no record of none"):
            await admin.call(pb.GetRequestRecordRequest(request_id="none"), pb.GetRequestRecordResponse)


@pytest.mark.parametrize("face", FACES)
async def test_a_caller_reads_its_own_records_without_the_route(database: Database, face: str) -> None:
    async with gateway_with_records(database, ()) as gateway, client(gateway, face) as admin:
        keys = {
            name: await admin.call(pb.CreateKeyRequest(settings=pb.KeySettings(name=name, show_route=name == "routed")), pb.CreateKeyResponse)
            for name in ("plain", "routed")
        }  # fmt: skip
        rows = [
            record(number, MIDNIGHT, request_id="same", key_id=made.key.key_id, details=DETAILS)
            for number, made in enumerate(keys.values())
        ]
        rows.append(record(9, MIDNIGHT, request_id="another"))
        await UsageRecords(gateway.service.store).insert([msgspec.json.encode(each) for each in rows])
        for name, made in keys.items():
            async with client(gateway, face, made.secret) as own:
                found = await own.call(pb.GetRequestRecordRequest(request_id="same"), pb.GetRequestRecordResponse)
            assert (found.record.key_id, len(found.earlier_records)) == (made.key.key_id, 0)
            assert (found.record.channel, len(found.record.attempts)) == ("main" if name == "routed" else "", 0)
            assert found.record.message == "try again"
            async with client(gateway, face, made.secret) as own:
                with pytest.raises((UmgError, CommandError), match="there is no record of another"):
                    await own.call(pb.GetRequestRecordRequest(request_id="another"), pb.GetRequestRecordResponse)


@pytest.mark.parametrize("face", FACES)
async def test_records_are_listed_newest_first_selected_and_paged(database: Database, face: str) -> None:
    async with gateway_with_records(database) as gateway, client(gateway, face) as admin:

        async def ids(**fields: object) -> list[str]:
            found, token = list[str](), ""
            while True:
                request = pb.ListRequestRecordsRequest(**{**SPAN, **fields}, page_size=2, page_token=token)
                page = await admin.call(request, pb.ListRequestRecordsResponse)
                found += [each.request_id for each in page.records]
                if not (token := page.next_page_token):
                    return found

        assert await ids() == ["req-3", "req-2", "req-1", "req-0"]
        assert await ids(failed_only=True) == ["req-3"]
        assert await ids(key_ids=["key_b"]) == ["req-2"]
        assert await ids(models=["famX-4"], channels=["spare"]) == ["req-1"]
        assert await ids(end_time=timestamp(MIDNIGHT + timedelta(hours=1))) == ["req-0"]


@dataclass(frozen=True)
class Refused:
    id: str
    request: Message
    field: str


REFUSED = [
    Refused("a span that ends before it begins", pb.ListUsageRequest(start_time=SPAN["end_time"], end_time=SPAN["start_time"]), "end_time"),
    Refused("a span of the future", pb.ListUsageRequest(start_time=timestamp(datetime.now(UTC) + DAY)), "start_time"),
    Refused("too many buckets", pb.ListUsageRequest(bucket=pb.USAGE_BUCKET_MINUTE), "bucket"),
    Refused("a page of nothing", pb.ListUsageRequest(page_size=0), "page_size"),
    Refused("an invalid token", pb.ListUsageRequest(page_token="x"), "page_token"),
    Refused("a token of another request", pb.ListUsageRequest(page_token="bLYxlT5bMCwyLFtdXQ", bucket=pb.USAGE_BUCKET_DAY), "page_token"),
    Refused("records of an invalid token", pb.ListRequestRecordsRequest(page_token="x"), "page_token"),
    Refused("a token with a time beyond a column", pb.ListRequestRecordsRequest(page_token=encode_token(PageBoundary(f'[0,1,{2**63},"x"]'))), "page_token"),
    Refused("a page of too many records", pb.ListRequestRecordsRequest(page_size=1001), "page_size"),
    Refused("no id", pb.GetRequestRecordRequest(), "request_id"),
]  # fmt: skip


async def test_a_malformed_request_is_rejected_by_its_field(database: Database) -> None:
    async with gateway_with_records(database, ()) as gateway, client(gateway, "grpc") as admin:
        for case in REFUSED:
            with pytest.raises(UmgError) as caught:
                await admin.call(case.request, Message)
            assert caught.value.metadata.get("field", "") == case.field, (case.id, caught.value.message)
            assert caught.value.name in {"INVALID_FIELD", "MISSING_FIELD"}, case.id


@pytest.mark.parametrize("face", FACES)
async def test_the_channels_of_each_model_have_their_health(database: Database, face: str) -> None:
    async with gateway_with_records(database, ()) as gateway, client(gateway, face) as admin:
        found = await admin.call(pb.ListChannelsRequest(), pb.ListChannelsResponse)
    channels = [(each.channel, each.upstream_model, each.state) for each in found.channels]
    closed = pb.CIRCUIT_STATE_CLOSED
    assert channels == [("main", "real-5", closed), ("spare", "famO-5", closed), ("spare", "famX-4", closed)]
    models = {each.model: (each.alias_of, [channel.channel for channel in each.channels]) for each in found.models}
    assert models == {"famO-5": ("", ["main", "spare"]), "famX-4": ("", ["spare"]), "fast": ("famX-4", ["spare"])}
    assert not any(each.HasField("last_failure") for each in found.channels)


UNPAID = ProviderFailure(FailureKind.UNPAID, 429, "insufficient_quota", "check your plan", "req_up", "real-5", "provider.example", "/v1/chat/completions", "text/html", "wxyz")  # fmt: skip


UNPAID_FACTS = ("unpaid", 429, "insufficient_quota", "check your plan")


async def fail(gateway: Running, database: Database) -> None:
    """Record a failure of the channel `main` that opens its circuit breaker."""
    failures = ChannelFailures(database.data_dir)
    failures.start()
    failures.record("main", UNPAID)
    await failures.aclose()
    health = gateway.service._shared.health
    error = UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "unpaid").with_failure(Failure.DOWN)
    health.end("main", "real-5", error, health.begin("main", "real-5"))


@pytest.mark.parametrize("face", FACES)
async def test_a_failing_channel_has_its_breaker_and_its_last_failure(database: Database, face: str) -> None:
    async with gateway_with_records(database, ()) as gateway, client(gateway, face) as admin:
        await fail(gateway, database)
        found = (await admin.call(pb.ListChannelsRequest(), pb.ListChannelsResponse)).channels[0]
    assert (found.channel, found.state, found.calls_in_flight) == ("main", pb.CIRCUIT_STATE_OPEN, 0)
    assert found.open_duration.ToSeconds() > 0
    failure = found.last_failure
    assert (failure.kind, failure.upstream_status_code, failure.code, failure.message) == UNPAID_FACTS
    assert (failure.upstream_request_id, failure.host, failure.path) == ("req_up", UNPAID.host, UNPAID.path)
    assert (failure.content_type, failure.key_tail, failure.time.seconds > 0) == ("text/html", "wxyz", True)


async def test_the_json_has_readable_names(database: Database) -> None:
    async with gateway_with_records(database) as gateway, aiohttp.ClientSession() as session:
        path = (
            f"{gateway.url}/admin/v1/usage?group_by=channel,model&bucket=day&start_time={MIDNIGHT:%Y-%m-%dT%H:%M:%SZ}"
        )
        async with session.get(path, headers=gateway.headers) as answer:
            body = await answer.json()
        assert (answer.status, answer.headers["cache-control"]) == (200, "no-store")
        begins = [body.pop(f"{kind}_begin_time") for kind in ("record", "minute", "hour", "day")]
        assert [*body] == ["entries", "next_page_token"]
        assert begins == [f"{MIDNIGHT:%Y-%m-%dT%H:%M:%SZ}"] * 4
        first = body["entries"][0]
        assert (first["model"], first["channel"], first["key_id"], first["operation"]) == ("famO-5", "main", None, None)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT00:00:00Z", first["start_time"])
        assert {"unit": "cache_read_token", "count": 8} in first["quantities"]
        async with session.get(f"{gateway.url}/admin/v1/usage?model=x", headers=gateway.headers) as answer:
            error = (await answer.json())["error"]
        assert (answer.status, error["param"]) == (400, "model")
        assert "models" in error["message"]

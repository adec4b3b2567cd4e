"""JSON and queries of messages: each comes back as it was, and a malformed query is rejected by its parameter."""

from dataclasses import dataclass

import msgspec
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from tests.support.error_checks import raises_error
from tests.support.http_admin import from_json, to_query
from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import from_query, to_json

TIME = Timestamp(seconds=1_700_000_000, nanos=5_000_000)
KEY = pb.Key(
    key_id="key_1",
    prefix="sk-umg-abcd",
    settings=pb.KeySettings(
        name="app",
        model_patterns=["famG-*"],
        budget_micro_credits=2**40,
        budget_period=pb.BUDGET_PERIOD_DAY,
        operations=[pb.KEY_OPERATION_EMBED],
        expire_time=TIME,
        tags={"b": "2", "a": "1"},
        requests_per_minute=0,
    ),
    create_time=TIME,
)
RECORD = pb.RequestRecord(
    request_id="req",
    operation=pb.MODEL_OPERATION_GENERATE,
    duration=Duration(seconds=1, nanos=500_000_000),
    reason=pb.ERROR_REASON_UNAVAILABLE,
    attempts=[pb.RequestAttempt(channel="main", upstream_status_code=503, duration=Duration(seconds=2))],
    quantities=[pb.Quantity(unit=pb.BILLABLE_UNIT_INPUT_TOKEN, count=2**40)],
)
MESSAGES: list[Message] = [pb.Key(), KEY, pb.RequestRecord(), RECORD, pb.ListKeysResponse(keys=[KEY, pb.Key()])]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: f"{message.DESCRIPTOR.name} {message.ByteSize()}")
def test_a_message_survives_its_json_and_back(message: Message) -> None:
    assert from_json(type(message), msgspec.json.decode(msgspec.json.encode(to_json(message)))) == message


def test_fields_have_their_names_and_readable_values() -> None:
    record = to_json(RECORD)
    assert (record["duration_seconds"], record["first_byte_duration_seconds"]) == (1.5, None)
    assert (record["operation"], record["reason"], record["task_id"]) == ("generate", "unavailable", None)
    assert record["quantities"] == [{"unit": "input_token", "count": 2**40}]
    settings = to_json(KEY)["settings"]
    assert isinstance(settings, dict)
    assert [*settings["tags"]] == ["a", "b"]
    assert (settings["budget_period"], settings["operations"]) == ("day", ["embed"])
    assert to_json(pb.KeySettings())["budget_period"] == "none"


REQUESTS: list[Message] = [
    pb.ListKeysRequest(),
    pb.ListKeysRequest(page_size=5, page_token="a=b&c", include_ended=True),
    pb.ListUsageRequest(
        start_time=TIME,
        models=["a", "b"],
        group_by=[pb.USAGE_DIMENSION_MODEL, pb.USAGE_DIMENSION_KEY],
        bucket=pb.USAGE_BUCKET_DAY,
    ),
    pb.ListRequestRecordsRequest(min_duration=Duration(seconds=2, nanos=500_000_000)),
    pb.ListRequestRecordsRequest(min_duration=Duration(seconds=3), reasons=[pb.ERROR_REASON_UPSTREAM_UNPAID]),
]


@pytest.mark.parametrize(
    "request_message", REQUESTS, ids=lambda message: f"{message.DESCRIPTOR.name} {message.ByteSize()}"
)
def test_a_request_survives_its_query_and_back(request_message: Message) -> None:
    assert from_query(type(request_message), to_query(request_message)) == request_message


def test_a_list_may_have_commas() -> None:
    found = from_query(pb.ListUsageRequest, [("models", "a, b"), ("models", "c")])
    assert [*found.models] == ["a", "b", "c"]


@dataclass(frozen=True)
class Rejection:
    id: str
    parameters: list[tuple[str, str]]
    field: str


REJECTIONS = [
    Rejection("an unknown parameter", [("model", "a")], "model"),
    Rejection("an unknown value", [("bucket", "week")], "bucket"),
    Rejection("an unknown item", [("group_by", "key,colour")], "group_by"),
    Rejection("a time without a zone", [("start_time", "2030-01-31")], "start_time"),
    Rejection("no time", [("end_time", "soon")], "end_time"),
    Rejection("no number", [("page_size", "-1")], "page_size"),
]


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_a_malformed_query_is_rejected_by_its_parameter(case: Rejection) -> None:
    with raises_error(reason=pb.ERROR_REASON_INVALID_FIELD, metadata={"field": case.field}):
        from_query(pb.ListUsageRequest, case.parameters)

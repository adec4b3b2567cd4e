"""Selection of past calls, which the requests for usage, summaries and records have in common."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

from google.protobuf.timestamp_pb2 import Timestamp


class CallSelection(TypedDict):
    """Fields that `ListUsageRequest`, `GetCallSummaryRequest` and `ListRequestRecordsRequest` share. An empty list
    selects all.
    """

    start_time: Timestamp | None
    end_time: Timestamp | None
    key_ids: Sequence[str]
    models: Sequence[str]
    channels: Sequence[str]
    agents: Sequence[str]
    project_ids: Sequence[str]
    tags: Mapping[str, str]

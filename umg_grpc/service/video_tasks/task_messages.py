"""Conversion of the database rows of video tasks to messages of `umg.v1`."""

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from google.protobuf.timestamp_pb2 import Timestamp

from umg_grpc.access.signed_file_links import FileLinks
from umg_grpc.store.blob_store import Blob
from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.store.video_task_results import TaskResult, results_of
from umg_grpc.store.video_task_table import QUEUED_STATE, SUBMITTING_STATE, SUCCEEDED_STATE, TERMINAL_STATES
from umg_grpc.v1 import pb

MAX_ESTIMATE = 95
"""Maximum progress in percent that is estimated for a task whose provider reports none."""
TYPICAL_SECONDS = 60.0
"""Age of a task in seconds at which the estimated progress is two thirds of `MAX_ESTIMATE`."""
MAX_RUNNING = 99


class TaskView:
    """Converter of database rows of video tasks to messages, with signed links to the results."""

    def __init__(self, links: FileLinks, now: Callable[[], int]) -> None:
        """Create a converter. `links`: makes signed links to results. `now`: returns microseconds since 1970."""
        self._links = links
        self._now = now

    def task(self, row: MediaTask) -> pb.VideoTask:
        """Return the task as a message for its owner, with its results as signed links."""
        request = pb.CreateVideoTaskRequest.FromString(row.request)
        results = [self._result(result) for result in results_of(row)]
        task = pb.VideoTask(
            task_id=row.task_id,
            entry=pb.VideoEntry.ValueType(row.entry),
            kind=pb.VideoTaskKind.ValueType(row.kind),
            model=row.model,
            state=pb.VideoTaskState.ValueType(row.state),
            progress_percent=self._progress(row),
            parameters=request.parameters if request.HasField("parameters") else None,
            remixed_from_task_id=row.source_task_id,
            external_task_id=row.external_task_id,
            callback_url=row.callback_url,
            callback_error=row.callback_error,
            results=results,
            create_time=_timestamp(row.create_micros),
            update_time=_timestamp(row.update_micros),
        )
        if row.error is not None:
            task.error.ParseFromString(row.error)
        if row.usage is not None and row.state == SUCCEEDED_STATE:
            task.usage.ParseFromString(row.usage)
        for name, micros in (("start_time", row.start_micros), ("complete_time", row.complete_micros)):
            if micros is not None:
                getattr(task, name).CopyFrom(_timestamp(micros))
        if row.state == SUCCEEDED_STATE and row.expire_micros is not None:
            ends = [each.url_expire_time.ToMicroseconds() for each in results if each.HasField("url_expire_time")]
            task.expire_time.CopyFrom(_timestamp(self._expire_micros(row, ends)))
        return task

    def _expire_micros(self, row: MediaTask, ends: list[int]) -> int:
        """Return the Unix microseconds at which the first result expires, at least a second after the task's end."""
        after = (row.complete_micros or row.create_micros) + 10**6
        return max(after, min([row.expire_micros or after, *ends]))

    def _progress(self, row: MediaTask) -> int:
        """Return the progress of a task in percent, as the provider reported it or estimated by the task's age."""
        if row.state == SUCCEEDED_STATE:
            return 100
        if row.state in TERMINAL_STATES:
            return min(row.progress or 0, MAX_RUNNING)
        if row.state in {SUBMITTING_STATE, QUEUED_STATE}:
            return 0
        if row.progress is not None:
            return min(row.progress, MAX_RUNNING)
        seconds = (self._now() - (row.start_micros or row.create_micros)) / 1e6
        return int(MAX_ESTIMATE * (1 - math.exp(-max(0.0, seconds) / TYPICAL_SECONDS)))

    def _result(self, result: TaskResult) -> pb.VideoResult:
        found = pb.VideoResult(
            variant=pb.VideoVariant.ValueType(result.variant),
            blob_id=result.blob_id or None,
            mime_type=result.mime_type,
            size_bytes=result.size_bytes,
            duration_seconds=result.duration_seconds,
            width=result.width,
            height=result.height,
        )
        if result.blob_id:
            blob = Blob(result.blob_id, result.size_bytes or 0)
            found.url = self._links.url_of(blob)
            found.url_expire_time.FromDatetime(self._links.expire_time_of(blob))
        elif result.url and not result.needs_key:  # a relay's address may need its key, too
            found.url = result.url
            if result.url_expire_micros is not None:
                found.url_expire_time.CopyFrom(_timestamp(result.url_expire_micros))
        return found


def _timestamp(micros: int) -> Timestamp:
    moment = Timestamp()
    moment.FromDatetime(datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros))
    return moment

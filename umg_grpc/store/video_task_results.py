"""Result files of a video task, as the column `results` of its row has them in JSON."""

from collections.abc import Sequence

import msgspec

from umg_grpc.store.tables import MediaTask
from umg_grpc.v1 import pb


class TaskResult(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One video or image that a task produced. Its bytes are at `url`, at `needs_key`, or in the blob store."""

    variant: int = pb.VIDEO_VARIANT_VIDEO
    url: str = ""
    """Address at the provider that needs no credentials."""
    needs_key: str = ""
    """Address, or path below the channel's base URL, that only the channel's key can read."""
    blob_id: str = ""
    """Id of the bytes in the blob store; "" if they are at the provider alone."""
    mime_type: str = "video/mp4"
    size_bytes: int | None = None
    duration_seconds: float | None = None
    width: int | None = None
    height: int | None = None
    url_expire_micros: int | None = None
    """Time at which `url` expires, in microseconds since 1970."""


_RESULTS = msgspec.json.Decoder(list[TaskResult])


def results_of(task: MediaTask) -> list[TaskResult]:
    """Return the results of a task; empty before it has succeeded."""
    return _RESULTS.decode(task.results) if task.results else []


def results_text(results: Sequence[TaskResult]) -> str:
    """Return results as the JSON text that the table stores."""
    return msgspec.json.encode(results).decode()

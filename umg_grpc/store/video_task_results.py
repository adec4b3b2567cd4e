"""Result files of a video task, as the column `results` of its database row stores them in JSON."""

from collections.abc import Sequence

import msgspec

from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.v1 import pb


class TaskResult(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One video or image of a task, at the provider (`url` or `needs_key`), in the blob store (`blob_id`), or both."""

    variant: int = pb.VIDEO_VARIANT_VIDEO
    url: str = ""
    """Address of the bytes at the provider for which no credentials are needed; "" if there is none."""
    needs_key: str = ""
    """Address or path (below the base URL) of the bytes at the provider that needs the channel's key; "" if there is
    none.
    """
    blob_id: str = ""
    """Id of the bytes in the blob store; "" if only the provider has them."""
    mime_type: str = "video/mp4"
    size_bytes: int | None = None
    duration_seconds: float | None = None
    width: int | None = None
    height: int | None = None
    url_expire_micros: int | None = None
    """Time at which `url` expires, in microseconds since 1970; None if it does not or the time is unknown."""


_RESULTS = msgspec.json.Decoder(list[TaskResult])


def results_of(task: MediaTask) -> list[TaskResult]:
    """Return the results of a task; empty before it has succeeded."""
    return _RESULTS.decode(task.results) if task.results else []


def results_text(results: Sequence[TaskResult]) -> str:
    """Return results as the JSON text of the column `results`."""
    return msgspec.json.encode(results).decode()

"""Interface of an entry, one of the HTTP APIs for callers of video tasks: decodes its requests, and encodes tasks as it
has them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.multipart_forms import FormPart


class TaskEncoder(Protocol):
    """Encoder of a task as the JSON body of an entry. Without a request id (in notifications), a body that has one
    contains the task's id instead.
    """

    def __call__(self, task: pb.VideoTask, request_id: str = "", /) -> bytes:
        """Encode a task as a body."""
        ...


@dataclass(frozen=True)
class EntryFormat:
    """Functions that decode the requests of one entry and encode its answers, without I/O."""

    name: str
    """Name of the entry as a face in logs, metrics and errors, e.g. `video_d`."""
    entry: "pb.VideoEntry.ValueType"
    decode_create: Callable[[bytes, Mapping[str, str]], pb.CreateVideoTaskRequest]
    """(JSON body, parameters of the path and the query) -> request. That of a documented model has the documented
    defaults and is checked against the rules of its model (`umg_grpc.video_request_checks`); the service checks all
    others. Raises UmgError with the document's own text and the path of the field in the body.
    """
    encode_created: TaskEncoder
    """Task -> JSON body of the answer to its submission."""
    encode_task: TaskEncoder
    """Task -> JSON body of a query. Also the body of the notification of the caller's `callback_url`."""
    encode_error: Callable[[UmgError, int], bytes]
    """(error, HTTP status) -> JSON body."""
    wire_path: Callable[[str], str]
    """Path of a canonical field (`parameters.seed`) in the entry's body. For errors only."""
    decode_query: Callable[[Mapping[str, str]], pb.GetVideoTaskRequest]
    """(parameters of the path and the query) -> look-up of the task. Raises UmgError."""
    decode_form: Callable[[list[FormPart], Mapping[str, str]], pb.CreateVideoTaskRequest] | None = None
    """`decode_create` of a `multipart/form-data` body; None for an entry without one."""
    decode_posted_query: Callable[[bytes, Mapping[str, str]], pb.GetVideoTaskRequest | None] | None = None
    """(JSON body, parameters) -> look-up of a task, for an entry whose submissions and queries have one path; None if
    the body is that of a submission.
    """
    notifies: bool = False
    """Whether a caller may name a `callback_url`."""
    key_headers: tuple[str, ...] = ()
    """Headers that hold a caller's key besides `Authorization`: none of the entries has one (readings, 2)."""
    key_parameter: str = ""
    error_paths: tuple[str, ...] = ()
    """Beginnings of paths whose errors have the entry's bodies, although no route has the path."""

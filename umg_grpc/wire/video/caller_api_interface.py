"""Interface of the seven HTTP APIs for callers of video tasks, which the specification of videos calls entries:
functions that decode their requests and encode their responses.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.multipart_forms import FormPart


class TaskEncoder(Protocol):
    """Function that encodes a task as the JSON body of one HTTP API for videos."""

    def __call__(self, task: pb.VideoTask, request_id: str = "", /) -> bytes:
        """Return the JSON body for a task. `request_id`: id of the HTTP request, in some bodies ("": the task's id)."""
        ...


@dataclass(frozen=True)
class EntryFormat:
    """One of the HTTP APIs for callers of video tasks: functions that decode requests and encode responses."""

    name: str
    """Name of the API in logs, metrics and errors, for example `video_d`."""
    entry: "pb.VideoEntry.ValueType"
    decode_create: Callable[[bytes, Mapping[str, str]], pb.CreateVideoTaskRequest]
    """(JSON body, parameters of path and query) -> request. A documented model gets the documented defaults and is
    checked against its rules here; the service checks all other requests. Raises UmgError with the specification's text
    and the field's path in the body.
    """
    encode_created: TaskEncoder
    """Task -> JSON body of the response to its submission."""
    encode_task: TaskEncoder
    """Task -> JSON body of the response to a query, and of a notification to the caller's `callback_url`."""
    encode_error: Callable[[UmgError, int], bytes]
    """(error, HTTP status) -> JSON body."""
    wire_path: Callable[[str], str]
    """Canonical field path (`parameters.seed`) -> path in this API's body, for errors."""
    decode_query: Callable[[Mapping[str, str]], pb.GetVideoTaskRequest]
    """(parameters of the path and the query) -> look-up of the task. Raises UmgError."""
    decode_form: Callable[[list[FormPart], Mapping[str, str]], pb.CreateVideoTaskRequest] | None = None
    """`decode_create` for a `multipart/form-data` body; None for an API without forms."""
    decode_posted_query: Callable[[bytes, Mapping[str, str]], pb.GetVideoTaskRequest | None] | None = None
    """(JSON body, parameters) -> look-up, or None for a submission, if both have one path; None for other APIs."""
    notifies: bool = False
    """Whether a request may contain a `callback_url`, to which the gateway sends notifications about the task."""
    key_headers: tuple[str, ...] = ()
    """Headers that may contain a caller's key besides `Authorization`: none in any of these APIs."""
    key_parameter: str = ""
    error_paths: tuple[str, ...] = ()
    """Prefixes of URL paths: a call of a path with this prefix, but no route, gets an error body of this API."""

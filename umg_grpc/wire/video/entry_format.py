"""Interface of one entry of the video document: a view of the canonical task in the entry's vocabulary."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb


@dataclass(frozen=True)
class EntryFormat:
    """Codec of one entry. All functions are pure."""

    name: str
    """Name of the entry as a face in logs, metrics and errors, e.g. `video_d`."""
    entry: "pb.VideoEntry.ValueType"
    decode_create: Callable[[bytes, Mapping[str, str]], pb.CreateVideoTaskRequest]
    """(JSON body, parameters of the path and the query) -> request, with the documented defaults of the entry and its
    model and checked against its rules. Raises UmgError with the document's own text.
    """
    encode_created: Callable[[pb.VideoTask], bytes]
    """Task -> JSON body of the answer to its submission."""
    encode_task: Callable[[pb.VideoTask], bytes]
    """Task -> JSON body of a query. Also the body of the notification of the caller's `callback_url`."""
    encode_error: Callable[[UmgError, int], bytes]
    """(error, HTTP status) -> JSON body."""
    wire_path: Callable[[str], str]
    """Path of a canonical field (`parameters.seed`) in the entry's body. For errors only."""
    notifies: bool = False
    """Whether a caller may name a `callback_url`."""

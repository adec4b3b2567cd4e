"""Interface of a video provider's protocol: functions without I/O between video tasks and HTTP messages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from umg_grpc.base.errors import UmgError
from umg_grpc.wire.core.key_headers import DEFAULT_KEY_HEADER
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.video.provider_task import ProviderStatus, ProviderTask, Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRequest:
    """HTTP request to a video provider, without the channel's address and credentials."""

    method: str
    path: str
    """Path below the channel's base URL, with the query."""
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    report: Report = field(default_factory=Report)
    """Parts of the submission that the provider does not support, by their canonical paths."""


class Implied(NamedTuple):
    """Value that a parameter has at the provider although the caller did not state it."""

    value: str
    by: str
    """The stated parameter that means it."""


StatusOrMore = ProviderStatus | UmgError | ProviderRequest
"""Status of a task, error of its query, or a further request to the provider whose response completes the status."""

Statuses = Mapping[str, StatusOrMore]
"""The provider's task id -> status of the task; a task that the provider did not report is absent."""


@dataclass(frozen=True, kw_only=True)
class VideoProtocol:
    """Protocol of a video provider: the functions that encode its calls and decode its responses, without I/O. A query
    returns the error OBJECT_NOT_FOUND for a task that the provider does not have, and the state `SUCCEEDED` without
    results for a task that succeeded without a usable file.
    """

    name: str
    encode_create: Callable[[Submission], ProviderRequest]
    """Raises UmgError for a part that the provider does not support and that cannot be left out. All media are inline
    (`data`) or addresses that the provider accepts: `HttpVideo` fetches the others before.
    """
    decode_created: Callable[[int, Mapping[str, str], bytes, Submission], ProviderTask]
    """(HTTP status, headers by lower-case name, body, submission) -> the task, without `key_id`. Raises UmgError with
    its `failure`: a clear refusal lets the service try another channel, `Failure.AMBIGUOUS` never.
    """
    encode_query: Callable[[Sequence[ProviderTask]], ProviderRequest]
    """Tasks of one key and one batch, at most `max_batch`."""
    decode_status: Callable[[int, Mapping[str, str], bytes, Sequence[ProviderTask]], Statuses]
    """(HTTP status, headers by lower-case name, body, tasks of the query). Raises UmgError if the query failed."""
    decode_error: Callable[[int, Mapping[str, str], bytes], UmgError]
    """(HTTP status, headers by lower-case name, body) of any other call that failed."""
    takes_media_urls: bool = True
    """Whether the provider fetches `http` and `https` addresses itself."""
    implied: Callable[[Submission], Mapping[str, Implied]] | None = None
    """Submission -> values that stated parameters imply for others, as a size the resolution; None without any."""
    rules_model: Callable[[Submission], str] | None = None
    """Submission -> id by which the rules of the vendor are found; None for the id of the model alone."""
    takes_open_length: bool = False
    """Whether models may select the length (`duration` -1 of the additional fields)."""
    takes_drafts: bool = False
    """Whether a video can be made of the draft of a finished task."""
    max_batch: int = 1
    """Maximum number of tasks in one query."""
    batch_of: Callable[[ProviderTask], str] | None = None
    """Task -> name, equal for tasks that one query may contain; None if it may contain all tasks of a key."""
    encode_find: Callable[[Submission], ProviderRequest] | None = None
    """Look-up of a task by the gateway's id, after a submission with an unknown outcome; None if unsupported."""
    decode_found: Callable[[int, Mapping[str, str], bytes, Submission], ProviderTask | None] | None = None
    """(HTTP status, headers by lower-case name, body, submission) of a look-up -> the task, None if there is none."""
    encode_cancel: Callable[[ProviderTask], ProviderRequest] | None = None
    """Cancellation of a task; None if the provider has none."""
    decode_cancelled: Callable[[int, Mapping[str, str], bytes], bool] | None = None
    """Whether the provider has cancelled the task. Raises UmgError if it did not decide. None: `2xx` means cancelled,
    `400`, `404`, `405`, `409`, `422` not.
    """
    key_header: str = DEFAULT_KEY_HEADER
    """Header for the key if the config has no `auth`: `authorization` with a Bearer token, else the bare key."""
    token_paths: str = ""
    """Beginning of the paths that accept tokens made from an access key (`auth: {kind: jwt}`); "" if all do."""
    max_response_bytes: int = 8 << 20
    """Limit of a response, larger where results are inline."""
    result_seconds: float | None = None
    """Time for which a result's address is valid, where the provider does not state it."""
    first_poll_seconds: float = 10.0
    """Seconds from the submission to the first query of a task."""
    poll_seconds: float = 10.0
    """Seconds between two queries of a task."""
    deadline_seconds: float = 3600.0
    """Seconds from the submission after which a task that has not ended fails with the code `task_expired`."""
    provider_name: str = ""
    """Name in telemetry (`gen_ai.provider.name`); "" for `umg.<name>`."""

"""Interface of a video provider's protocol: functions without I/O that convert between tasks and HTTP messages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from umg_grpc.base.errors import UmgError
from umg_grpc.wire.core.provider_key_headers import DEFAULT_KEY_HEADER
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.video.provider_task_types import ProviderStatus, ProviderTask, Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRequest:
    """HTTP request to a video provider, without the channel's address and credentials."""

    method: str
    path: str
    """Path below the channel's base URL, with the query."""
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    report: Report = field(default_factory=Report)
    """Parts of the submission that the provider does not support, as canonical paths."""


class Implied(NamedTuple):
    """Value that the provider will use for a parameter that the caller did not set."""

    value: str
    by: str
    """Name of the set parameter that implies the value."""


StatusOrMore = ProviderStatus | UmgError | ProviderRequest
"""Status of a task, error of its query, or a further provider request whose response completes the status."""

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
    (`data`), or URLs that the provider accepts, because `HttpVideo` fetches any others before.
    """
    decode_created: Callable[[int, Mapping[str, str], bytes, Submission], ProviderTask]
    """(HTTP status, headers by lower-case name, body, submission) -> the task, without `key_id`. Raises UmgError with a
    `failure`: after a clear rejection the service may try another channel, after `Failure.AMBIGUOUS` never.
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
    """Submission -> values that set parameters imply for others (a size implies a resolution); None if none do."""
    rules_model: Callable[[Submission], str] | None = None
    """Submission -> id by which the rules of the vendor are found; None for the id of the model alone."""
    takes_open_length: bool = False
    """Whether a model may select the length itself (additional field `duration`: -1)."""
    takes_drafts: bool = False
    """Whether a video can be made of the draft of a finished task."""
    max_batch: int = 1
    batch_of: Callable[[ProviderTask], str] | None = None
    """Task -> name of its batch; a query may contain tasks of one batch. None: all tasks of a key are one batch."""
    encode_find: Callable[[Submission], ProviderRequest] | None = None
    """Look-up of a task by the gateway's id, after a submission with an unknown outcome; None if unsupported."""
    decode_found: Callable[[int, Mapping[str, str], bytes, Submission], ProviderTask | None] | None = None
    """(HTTP status, headers by lower-case name, body, submission) of a look-up -> the task, None if there is none."""
    encode_cancel: Callable[[ProviderTask], ProviderRequest] | None = None
    """Cancellation of a task; None if the provider has none."""
    decode_cancelled: Callable[[int, Mapping[str, str], bytes], bool] | None = None
    """Whether the provider has cancelled the task; raises UmgError if that is open. None as function: status `2xx`
    means cancelled; `400`, `404`, `405`, `409`, `422` mean not cancelled.
    """
    key_header: str = DEFAULT_KEY_HEADER
    """Header for the key if the config has no `auth`: `authorization` with a Bearer token, else the bare key."""
    token_paths: str = ""
    """Prefix of the paths that accept tokens made from an access key (`auth: {kind: jwt}`); "" if all paths do."""
    max_response_bytes: int = 8 << 20
    """Maximum size of a response in bytes; it is larger if results are inline."""
    result_seconds: float | None = None
    """Seconds for which a result's URL is valid, if the provider does not state them."""
    first_poll_seconds: float = 10.0
    """Seconds from the submission to the first query of a task."""
    poll_seconds: float = 10.0
    deadline_seconds: float = 3600.0
    """Seconds from the submission after which a task that has not ended fails with the code `task_expired`."""
    provider_name: str = ""
    """Name in telemetry (`gen_ai.provider.name`); "" for `umg.<name>`."""

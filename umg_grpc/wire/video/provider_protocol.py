"""Interface of the protocol of a video provider: pure functions between task objects and HTTP messages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from umg_grpc.errors import UmgError
from umg_grpc.wire.report import Report
from umg_grpc.wire.video.provider_task import ProviderStatus, ProviderTask, Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRequest:
    """One HTTP request to a provider."""

    method: str
    path: str
    """Path below the channel's base URL, with the query."""
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    report: Report | None = None
    """Parts of the submission that the provider does not support."""


@dataclass(frozen=True)
class VideoProtocol:
    """Codec of one provider protocol."""

    name: str
    encode_create: Callable[[Submission], ProviderRequest]
    """Raises UmgError for a part that the provider does not support and that cannot be left out. All media are inline
    (`data`) or addresses that the provider accepts: `HttpVideo` fetches the others before.
    """
    decode_created: Callable[[int, Mapping[str, str], bytes, Submission], ProviderTask]
    """(HTTP status, headers, body, submission). Raises UmgError with its `failure`: a clear refusal lets the service
    try another channel, `Failure.AMBIGUOUS` never.
    """
    encode_query: Callable[[Sequence[ProviderTask]], ProviderRequest]
    """Tasks of one key, at most `max_batch`."""
    decode_status: Callable[
        [int, Mapping[str, str], bytes, Sequence[ProviderTask]], Mapping[str, ProviderStatus | UmgError]
    ]
    """Provider's id -> status, or the error of that task; a missing id was not reported."""
    takes_media_urls: bool = True
    """Whether the provider fetches `http` addresses itself."""
    max_batch: int = 1
    encode_find: Callable[[Submission], ProviderRequest] | None = None
    """Look-up by the external id, after a submission with an unknown outcome."""
    decode_found: Callable[[int, Mapping[str, str], bytes, Submission], ProviderTask | None] | None = None
    encode_cancel: Callable[[ProviderTask], ProviderRequest] | None = None
    first_poll_seconds: float = 10.0
    poll_seconds: float = 10.0
    deadline_seconds: float = 3600.0
    """Time after which a task without an end fails as `task_expired` (reference, 14)."""
    provider_name: str = ""
    """Name in telemetry (`gen_ai.provider.name`)."""

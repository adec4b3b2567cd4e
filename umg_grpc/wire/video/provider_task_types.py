"""Types for a video task that service, channel and provider codec exchange: submission, identity, state, results."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from umg_grpc.v1 import pb


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """Video task that is to be submitted to a provider."""

    task_id: str
    """This gateway's task id. Providers that store external ids get it, to find tasks after unknown outcomes."""
    model: str
    """The provider's model id."""
    request: pb.CreateVideoTaskRequest
    """The canonical request, with all defaults."""
    family: str = ""
    """Family of the model by the config or by its id; "" without one."""
    source: "ProviderTask | None" = None
    """Finished task of the provider that the submission changes (a remix); None for a new video."""
    callback_url: str = ""
    """Address of the gateway for the provider's notifications; "" if there is none."""
    strict: bool = False
    """Whether the submission fails, before anything is sent, if the provider does not support a part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderTask:
    """Identity of a task at its provider, which is stored with the gateway's task for later calls."""

    id: str
    """The provider's id of the task, of any length."""
    model: str
    """The provider's model id."""
    key_id: str = ""
    """Fingerprint of the key that submitted the task, needed for later calls; set by the channel, "" without keys."""
    facts: str = ""
    """Further facts for later calls of the protocol (path, region, `req_key`), as one JSON object; "" if there is none.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderResult:
    """File of a finished task. One of `url`, `data` and `needs_key` is set; `url` and `needs_key` are alternatives."""

    variant: "pb.VideoVariant.ValueType" = pb.VIDEO_VARIANT_VIDEO
    url: str = ""
    """Address that needs no credentials."""
    data: bytes = b""
    """The file itself, of providers that send it inline."""
    needs_key: str = ""
    """Address, or path below the channel's base URL, that only the channel's key can read (`VideoUpstream.content`)."""
    mime_type: str = "video/mp4"
    url_expire_time: datetime | None = None
    duration_seconds: float | None = None
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderStatus:
    """State of a task as its provider reports it. A state that the gateway does not recognize is `RUNNING`."""

    state: "pb.VideoTaskState.ValueType"
    progress_percent: int | None = None
    results: Sequence[ProviderResult] = ()
    """Files of a task that succeeded, or in a response with an unknown state."""
    error: pb.VideoTaskError | None = None
    """Reason of a failure or cancellation, without the provider's hosts, keys and account ids; None in other states."""
    usage: pb.VideoUsage | None = None
    """Usage of a succeeded task, else None. If `output_seconds` is 0 (not known), the requested length is charged."""
    unknown_word: str = ""
    """Provider's word for a state that the codec does not recognize, for the log."""

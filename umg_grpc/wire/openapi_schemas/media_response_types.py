"""Types of the answers of image and video operations, for the OpenAPI document."""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from umg_grpc.wire.core.json import ABSENT
from umg_grpc.wire.openapi_schemas.text_response_types import Count

Percent = Annotated[int, Meta(ge=0, le=100)]

# --- images


class Image(Struct, kw_only=True):
    """Image: its address, or its file in base64."""

    url: str | None = None
    b64_json: str | None = None
    revised_prompt: str | None = None


class Images(Struct, kw_only=True):
    """Images in the shape of SDKs, which a request selects by `x-umg-shape: sdk` or the headers of an SDK."""

    created: int
    data: list[Image]
    usage: Raw = ABSENT


class DocumentedImages(Struct, kw_only=True):
    """Images in the documented shape."""

    code: int
    msg: str
    data: Images


class ImageEvent(Struct, kw_only=True):
    """Event of a stream of images: `partial_image`, `completed` or `partial_failed` of the operation."""

    type: str
    image_index: Count


# --- videos


class TaskFailure(Struct, kw_only=True):
    """Reason why a video task failed."""

    code: str | int
    message: str


class UnifiedTask(Struct, kw_only=True):
    """Video task in the unified entry."""

    task_id: str
    status: Literal["queued", "in_progress", "succeeded", "failed"]
    format: str
    url: str | None = None
    urls: list[str] | None = None
    error: TaskFailure | None = None
    fail_reason: str | None = None


class VideoObject(Struct, kw_only=True):
    """Video task as a video object. Members that its state does not have are absent."""

    id: str
    object: Literal["video"]
    model: str
    status: str
    created_at: int
    progress: Percent | None = None
    completed_at: int | None = None
    expires_at: int | None = None
    seconds: str | None = None
    size: str | None = None
    url: str | None = None
    external_task_id: str | None = None
    remixed_from_video_id: str | None = None
    error: TaskFailure | None = None


class VideoPage(Struct, kw_only=True):
    """Page of the caller's video objects."""

    object: Literal["list"]
    data: list[VideoObject]
    first_id: str | None
    last_id: str | None
    has_more: bool


class VideoDeleted(Struct, kw_only=True):
    """Confirmation that a video was deleted."""

    id: str
    object: Literal["video.deleted"]
    deleted: bool


class CreatedD(Struct, kw_only=True):
    """New task of Entry D."""

    id: str


class ContentD(Struct, kw_only=True):
    """Member `content` of a task of Entry D: its result."""

    video_url: str
    last_frame_url: str | None = None


class TaskD(Struct, kw_only=True):
    """Task of Entry D."""

    id: str
    model: str
    status: Literal["queued", "processing", "succeeded", "failed"]
    created_at: int
    updated_at: int
    content: ContentD | None = None
    error: TaskFailure | None = None


class OutputE(Struct, kw_only=True):
    """Element of `outputs` of a task of Entry E: one result."""

    url: str
    duration: Count


class ItemE(Struct, kw_only=True):
    """Task of Entry E."""

    id: str
    status: Literal["submitted", "processing", "succeeded", "failed"]
    create_time: int
    update_time: int
    external_id: str
    outputs: list[OutputE] | None = None
    error: TaskFailure | None = None


class TasksE(Struct, kw_only=True):
    """Envelope of a task of Entry E."""

    code: int
    message: str
    request_id: str
    data: list[ItemE]


class DataF(Struct, kw_only=True):
    """New task of Entry F, or the state of one."""

    task_id: str | None = None
    status: Literal["PENDING", "RUNNING", "SUCCESS", "FAILED"] | None = None
    video_url: str | None = None
    error: TaskFailure | None = None


class TaskF(Struct, kw_only=True):
    """Envelope of Entry F."""

    code: int
    message: str
    request_id: str
    data: DataF


class CreatedG(Struct, kw_only=True):
    """New task of Entry G."""

    task_id: str


class ContentG(Struct, kw_only=True):
    """Result of a task of Entry G."""

    url: str


class StateG(Struct, kw_only=True):
    """Member `task` of Entry G: the state of a task."""

    id: str
    model: str
    status: Literal["queued", "running", "succeeded", "failed", "cancelled"]
    created_at: int
    updated_at: int
    content: ContentG | None = None
    error: TaskFailure | None = None


class TaskG(Struct, kw_only=True):
    """Task of Entry G."""

    task: StateG


class CallbackTaken(Struct, kw_only=True):
    """Confirmation to a provider that its notification was received."""

    code: int
    message: str

"""Types of the responses of image and video operations, for the OpenAPI document."""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from umg_grpc.wire.core.json import ABSENT
from umg_grpc.wire.openapi_schemas.text_response_types import Count

Percent = Annotated[int, Meta(ge=0, le=100)]

# --- images


class Image(Struct, kw_only=True):
    """Image as its URL or as its file in base64; the other member is absent."""

    url: str | None = None
    b64_json: str | None = None
    revised_prompt: str | None = None
    z_index: int | None = None
    """Order of a layer of a picture; these members are those of the provider, which may have others."""
    bounding_box: Raw = ABSENT
    name: str | None = None
    description: str | None = None


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
    """Event of a stream of images: `partial_image` (a draft), `completed` (a finished image) or `partial_failed` (a
    failed image of a group), after the name of the operation.
    """

    type: str
    image_index: Count


# --- videos


class TaskFailure(Struct, kw_only=True):
    """Reason why a video task failed."""

    code: str | int
    message: str


class UnifiedTask(Struct, kw_only=True):
    """Video task in the responses of `/v1/video/generations`."""

    task_id: str
    status: Literal["queued", "in_progress", "succeeded", "failed"]
    format: str
    url: str | None = None
    urls: list[str] | None = None
    error: TaskFailure | None = None
    fail_reason: str | None = None


class VideoObject(Struct, kw_only=True):
    """Video task in the responses of `/v1/videos`. Members that do not apply to the status of the task are absent."""

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
    """Response to the submission of a task by Entry D (the HTTP API of family `vidD`)."""

    id: str


class ContentD(Struct, kw_only=True):
    """Member `content` of a succeeded task of Entry D (the HTTP API of family `vidD`): the URLs of its result."""

    video_url: str
    last_frame_url: str | None = None


class TaskD(Struct, kw_only=True):
    """Task in the responses of Entry D (the HTTP API of family `vidD`)."""

    id: str
    model: str
    status: Literal["queued", "processing", "succeeded", "failed"]
    created_at: int
    updated_at: int
    content: ContentD | None = None
    error: TaskFailure | None = None


class OutputE(Struct, kw_only=True):
    """Element of `outputs` of a task of Entry E (the HTTP API of family `vidE`): the URL and length in seconds of one
    video.
    """

    url: str
    duration: Count


class ItemE(Struct, kw_only=True):
    """Task in the responses of Entry E (the HTTP API of family `vidE`); times are in Unix milliseconds."""

    id: str
    status: Literal["submitted", "processing", "succeeded", "failed"]
    create_time: int
    update_time: int
    external_id: str
    outputs: list[OutputE] | None = None
    error: TaskFailure | None = None


class TasksE(Struct, kw_only=True):
    """Response of Entry E (the HTTP API of family `vidE`), whose `data` has the task as its only item."""

    code: int
    message: str
    request_id: str
    data: list[ItemE]


class DataF(Struct, kw_only=True):
    """Member `data` of a response of Entry F (the HTTP API of family `vidF`): the id of a new task, or the status of
    a queried one.
    """

    task_id: str | None = None
    status: Literal["PENDING", "RUNNING", "SUCCESS", "FAILED"] | None = None
    video_url: str | None = None
    error: TaskFailure | None = None


class TaskF(Struct, kw_only=True):
    """Response of Entry F (the HTTP API of family `vidF`)."""

    code: int
    message: str
    request_id: str
    data: DataF


class CreatedG(Struct, kw_only=True):
    """Response to the submission of a task by Entry G (the HTTP API of family `vidG`)."""

    task_id: str


class ContentG(Struct, kw_only=True):
    """Member `content` of a succeeded task of Entry G (the HTTP API of family `vidG`): the URL of its result."""

    url: str


class StateG(Struct, kw_only=True):
    """Member `task` of a response of Entry G (the HTTP API of family `vidG`): the task with its status."""

    id: str
    model: str
    status: Literal["queued", "running", "succeeded", "failed", "cancelled"]
    created_at: int
    updated_at: int
    content: ContentG | None = None
    error: TaskFailure | None = None


class TaskG(Struct, kw_only=True):
    """Response to the query of a task by Entry G (the HTTP API of family `vidG`)."""

    task: StateG


class CallbackTaken(Struct, kw_only=True):
    """Confirmation to a provider that its notification was received."""

    code: int
    message: str

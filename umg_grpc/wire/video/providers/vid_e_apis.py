"""Old and new API of the protocol `vidE`, each with operations, selected by model id and inputs of a submission."""

import re
from collections.abc import Mapping

from umg_grpc.knowledge.media_models import MediaModel, media_model
from umg_grpc.v1 import pb
from umg_grpc.wire.video.provider_protocol import Implied
from umg_grpc.wire.video.provider_task import Submission
from umg_grpc.wire.video.providers.image_roles import inputs_of
from umg_grpc.wire.video.providers.request_encoding import (
    is_neutral,
    is_sent,
    resolution_of_size,
)

PROTOCOL_NAME = "vidE"
OLD_API = "/v1/videos/"
"""Beginning of the paths of the old API, the only ones at which tokens of access keys are accepted."""
OLD_PREFIX = "v1"
OMNI_OPERATION, MOTION_OPERATION = "omni-video", "motion-control"
DEFAULT_SECONDS = 5
NEW_ID = re.compile(r"(?:^|-)[0-9]+\.[0-9]")
"""Pattern for ids of relays that belong to the new API; ids of the old one are written like `v2-6`."""
ORIENTATION_MEMBER = "character_orientation"
"""Member of motion control alone, and of each submission to it."""
OPERATION_SUFFIX = re.compile(r"-(?:t2v|i2v|motion-control)$")
"""Operations in ids of SDKs (`kling-v2.6-motion-control`), which are part of the path only."""
MODE_RESOLUTIONS = {"std": "720p", "pro": "1080p", "4k": "4k"}
"""Mode of the old API -> resolution of the new one (docs.apimart.ai, kling-v2-6, read 2026-11-29)."""
RESOLUTION_MODES = {resolution: mode for mode, resolution in MODE_RESOLUTIONS.items()}
ASPECT_RATIOS = ("16:9", "9:16", "1:1")
"""Ratios of both APIs, of which the nearest one is sent for a size in pixels."""


def row_of(submission: Submission) -> MediaModel | None:
    """Return the rules of the provider for the model of a submission; None without a row."""
    return media_model(PROTOCOL_NAME, submission.model)


def sends_sound(submission: Submission) -> bool:
    """Return whether the sound switch is sent: the model has one, and the caller stated it or the model is neutral."""
    row = row_of(submission)
    return (row is None or "generate_audio" not in row.without) and is_sent(submission, "generate_audio")


def _api(model: str) -> str:
    row = media_model(PROTOCOL_NAME, model)
    if row is not None:
        return row.api
    return "" if NEW_ID.search(model) else OLD_PREFIX


def is_new(model: str) -> bool:
    """Return whether the provider offers the model in its new API, by the model id."""
    return not _api(model).startswith(OLD_PREFIX)


def is_omni(submission: Submission) -> bool:
    """Return whether the model is one whose operation takes frames, references and videos alike."""
    return _api(submission.model).endswith(OMNI_OPERATION)


def is_motion(submission: Submission) -> bool:
    """Return whether a submission is for motion control: by the model id, or by the member that only it has."""
    return (
        submission.model.lower().endswith(MOTION_OPERATION)
        or ORIENTATION_MEMBER in submission.request.parameters.extra_json
    )


def mode_of(submission: Submission) -> str:
    """Return the mode in the old API: the stated one, or that of the resolution or size in pixels; "" for none."""
    parameters = submission.request.parameters
    return parameters.mode or RESOLUTION_MODES.get(parameters.resolution.lower() or _of_size(submission), "")


def resolution_of(submission: Submission) -> str:
    """Return the resolution of a submission in the new API, likewise."""
    parameters = submission.request.parameters
    return parameters.resolution or MODE_RESOLUTIONS.get(parameters.mode) or _of_size(submission)


def _of_size(submission: Submission) -> str:
    """Return the model's resolution nearest to the size in pixels. "" for none, for neutral models, whose sizes are
    names of ratios, and for motion control, which has its inputs' size.
    """
    size, row = submission.request.parameters.size, row_of(submission)
    if not size or is_neutral(submission) or is_motion(submission):
        return ""
    values = row.values if row is not None else {}
    tiers = values.get("resolution") or [MODE_RESOLUTIONS[str(mode)] for mode in values.get("mode", ())]
    return resolution_of_size(size, [str(tier) for tier in tiers or RESOLUTION_MODES])


def implied(submission: Submission) -> Mapping[str, Implied]:
    """Return the resolution by a mode or size in the new API, the mode by a resolution or size in the old one."""
    parameters = submission.request.parameters
    if not is_new(submission.model):
        by = "resolution" if parameters.resolution else "size"
        return {"mode": Implied(value, by)} if (value := mode_of(submission)) else {}
    by = "mode" if parameters.mode in MODE_RESOLUTIONS else "size"
    return {"resolution": Implied(value, by)} if (value := resolution_of(submission)) else {}


def rules_model(submission: Submission) -> str:
    """Return the id with the operation for motion control, which has rules of its own."""
    model = submission.model
    return (
        f"{model}-{MOTION_OPERATION}"
        if is_motion(submission) and not model.lower().endswith(MOTION_OPERATION)
        else model
    )


def has_media(submission: Submission) -> bool:
    """Return whether a submission has inputs besides its prompt, by its kind or its media."""
    return submission.request.kind == pb.VIDEO_TASK_KIND_IMAGE_TO_VIDEO or bool(submission.request.parameters.media)


def old_path(submission: Submission) -> str:
    """Return the path to which a submission is sent in the old API, and below which its task is queried."""
    if is_motion(submission):
        return OLD_API + MOTION_OPERATION
    if is_omni(submission):
        return OLD_API + OMNI_OPERATION
    if not has_media(submission):
        return OLD_API + "text2video"
    inputs = inputs_of(submission, pairs=True)
    has_frames = inputs.first is not None or inputs.last is not None
    return OLD_API + ("multi-image2video" if inputs.references and not has_frames else "image2video")


def model_name(submission: Submission) -> str:
    """Return the model as a member or a path of the provider: ids of SDKs without their operation and, in the old
    API, without dots (`kling-v2.6-t2v` is `kling-v2-6`).
    """
    name = OPERATION_SUFFIX.sub("", submission.model)
    if is_new(submission.model) or row_of(submission) is None:
        return name
    return name.removesuffix(".0").replace(".", "-")

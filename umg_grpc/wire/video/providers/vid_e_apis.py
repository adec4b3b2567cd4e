"""Old and new API of the protocol `vidE`: the model id selects the API, model id and inputs select the operation."""

import re
from collections.abc import Mapping

from umg_grpc.knowledge.media_model_rules import MediaModel, media_model
from umg_grpc.v1 import pb
from umg_grpc.wire.video.provider_protocol_interface import Implied
from umg_grpc.wire.video.provider_task_types import Submission
from umg_grpc.wire.video.providers.image_roles import inputs_of
from umg_grpc.wire.video.providers.request_encoding import is_neutral, is_sent, resolution_of_size

PROTOCOL_NAME = "vidE"
OLD_API = "/v1/videos/"
"""Prefix of the old API's paths. Providers accept tokens made from access keys only at these paths."""
OLD_PREFIX = "v1"
OMNI_OPERATION, MOTION_OPERATION = "omni-video", "motion-control"
DEFAULT_SECONDS = 5
NEW_ID = re.compile(r"(?:^|-)[0-9]+\.[0-9]")
"""Pattern of relays' model ids that belong to the new API; ids of the old API are written like `v2-6`."""
ORIENTATION_MEMBER = "character_orientation"
"""Field that only motion control has, and that each of its submissions has."""
OPERATION_SUFFIX = re.compile(r"-(?:t2v|i2v|motion-control)$")
"""Operation suffixes in SDKs' model ids (`kling-v2.6-motion-control`); the provider expects them only in the path."""
MODE_RESOLUTIONS = {"std": "720p", "pro": "1080p", "4k": "4k"}
"""Mode of the old API -> resolution of the new one (docs.apimart.ai, kling-v2-6, read 2026-11-29)."""
RESOLUTION_MODES = {resolution: mode for mode, resolution in MODE_RESOLUTIONS.items()}
ASPECT_RATIOS = ("16:9", "9:16", "1:1")
"""Aspect ratios of both APIs. For a size in pixels the nearest ratio is sent."""


def row_of(submission: Submission) -> MediaModel | None:
    """Return the rules of the provider for the model of a submission; None if the table has no row for it."""
    return media_model(PROTOCOL_NAME, submission.model)


def sends_sound(submission: Submission) -> bool:
    """Return whether the sound switch is sent: the model has one, and the caller set it or the model id is neutral."""
    row = row_of(submission)
    return (row is None or "generate_audio" not in row.without) and is_sent(submission, "generate_audio")


def _api(model: str) -> str:
    row = media_model(PROTOCOL_NAME, model)
    if row is not None:
        return row.api
    return "" if NEW_ID.search(model) else OLD_PREFIX


def is_new(model: str) -> bool:
    """Return whether the provider offers the model (by its id) in the new API."""
    return not _api(model).startswith(OLD_PREFIX)


def is_omni(submission: Submission) -> bool:
    """Return whether the model has one operation that accepts frames, references and videos alike."""
    return _api(submission.model).endswith(OMNI_OPERATION)


def is_motion(submission: Submission) -> bool:
    """Return whether a submission is for motion control: by the model id, or by the field `ORIENTATION_MEMBER`."""
    return (
        submission.model.lower().endswith(MOTION_OPERATION)
        or ORIENTATION_MEMBER in submission.request.parameters.extra_json
    )


def mode_of(submission: Submission) -> str:
    """Return the mode for the old API: the requested one, or the one for the resolution or pixel size; "" if there is
    none.
    """
    parameters = submission.request.parameters
    return parameters.mode or RESOLUTION_MODES.get(parameters.resolution.lower() or _of_size(submission), "")


def resolution_of(submission: Submission) -> str:
    """Return the resolution for the new API: the requested one, or the one for the mode or pixel size; "" if there is
    none.
    """
    parameters = submission.request.parameters
    return parameters.resolution or MODE_RESOLUTIONS.get(parameters.mode) or _of_size(submission)


def _of_size(submission: Submission) -> str:
    """Return the model's resolution nearest to the size in pixels; "" without a size. Also "" for neutral models, where
    sizes are names of ratios, and for motion control, where the output has the size of the input.
    """
    size, row = submission.request.parameters.size, row_of(submission)
    if not size or is_neutral(submission) or is_motion(submission):
        return ""
    values = row.values if row is not None else {}
    tiers = values.get("resolution") or [MODE_RESOLUTIONS[str(mode)] for mode in values.get("mode", ())]
    return resolution_of_size(size, [str(tier) for tier in tiers or RESOLUTION_MODES])


def implied(submission: Submission) -> Mapping[str, Implied]:
    """Return the parameter that others imply: in the new API the resolution, in the old API the mode."""
    parameters = submission.request.parameters
    if not is_new(submission.model):
        by = "resolution" if parameters.resolution else "size"
        return {"mode": Implied(value, by)} if (value := mode_of(submission)) else {}
    by = "mode" if parameters.mode in MODE_RESOLUTIONS else "size"
    return {"resolution": Implied(value, by)} if (value := resolution_of(submission)) else {}


def rules_model(submission: Submission) -> str:
    """Return the model id by which rules are looked up: for motion control, which has separate rules, with suffix."""
    model = submission.model
    return (
        f"{model}-{MOTION_OPERATION}"
        if is_motion(submission) and not model.lower().endswith(MOTION_OPERATION)
        else model
    )


def has_media(submission: Submission) -> bool:
    """Return whether a submission has inputs besides its prompt: it has media, or is of the kind image-to-video."""
    return submission.request.kind == pb.VIDEO_TASK_KIND_IMAGE_TO_VIDEO or bool(submission.request.parameters.media)


def old_path(submission: Submission) -> str:
    """Return the old API's path to which a submission is sent, and below which its task is queried."""
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
    """Return the model's name in the provider's fields and paths. SDK ids lose their operation suffix and, in the old
    API, their dots (`kling-v2.6-t2v` becomes `kling-v2-6`).
    """
    name = OPERATION_SUFFIX.sub("", submission.model)
    if is_new(submission.model) or row_of(submission) is None:
        return name
    return name.removesuffix(".0").replace(".", "-")

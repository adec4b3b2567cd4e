"""Rules of the video models: a table of the parameters that each model accepts in each HTTP API for videos. Sources:
the specification of videos, "Models by entry" and the tables of the entries (the HTTP APIs); readings, 1 and 17 to 22.
`video_request_checks` applies the rules. Pure: no I/O and no clock.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from umg_grpc.v1 import pb

Entry: TypeAlias = "pb.VideoEntry.ValueType"
Role: TypeAlias = "pb.VideoMediaRole.ValueType"
Value: TypeAlias = str | int | bool

VIDEO_FAMILIES = ("vidA", "vidB", "vidC", "vidD", "vidE", "vidF", "vidG")

UNIFIED_ENTRY, VIDEO_OBJECT = pb.VIDEO_ENTRY_UNIFIED, pb.VIDEO_ENTRY_VIDEO_OBJECT
ENTRY_D, E_V1, E_3 = pb.VIDEO_ENTRY_D, pb.VIDEO_ENTRY_E_V1, pb.VIDEO_ENTRY_E_3
ENTRY_F, ENTRY_G = pb.VIDEO_ENTRY_F, pb.VIDEO_ENTRY_G
IMAGE_KIND, VIDEO_KIND, AUDIO_KIND = pb.VIDEO_MEDIA_KIND_IMAGE, pb.VIDEO_MEDIA_KIND_VIDEO, pb.VIDEO_MEDIA_KIND_AUDIO
ANY_ROLE, FIRST_FRAME, LAST_FRAME = (
    pb.VIDEO_MEDIA_ROLE_UNSPECIFIED,
    pb.VIDEO_MEDIA_ROLE_FIRST_FRAME,
    pb.VIDEO_MEDIA_ROLE_LAST_FRAME,
)
REFERENCE_IMAGE, STATIC_MASK = pb.VIDEO_MEDIA_ROLE_REFERENCE_IMAGE, pb.VIDEO_MEDIA_ROLE_STATIC_MASK
OTHER_MEDIA = frozenset({pb.VIDEO_MEDIA_ROLE_REFERENCE_VIDEO, pb.VIDEO_MEDIA_ROLE_REFERENCE_AUDIO})
TEXT_TASK, IMAGES_TASK, OMNI_TASK = (
    pb.VIDEO_TASK_KIND_TEXT_TO_VIDEO,
    pb.VIDEO_TASK_KIND_IMAGE_TO_VIDEO,
    pb.VIDEO_TASK_KIND_OMNI,
)

RATIOS_D = ("16:9", "9:16", "1:1", "4:3", "3:4", "21:9", "adaptive")  # the reference lists the "etc." of the document
RATIOS_D_1 = tuple(ratio for ratio in RATIOS_D if ratio != "21:9")
RATIOS_G = ("21:9", "16:9", "4:3", "1:1", "3:4", "9:16")
COMMON_RESOLUTIONS = ("480p", "720p", "1080p")
MIN_SIDE, MAX_SIDE = 64, 4096
"""Limits of each side of a family C size in pixels; the document states only the form of a size."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Parameters, values, defaults and input media that some video models accept in one HTTP API for videos."""

    accepted: frozenset[str]
    """Parameters that the models accept besides prompt, media and additional fields."""
    required: tuple[str, ...] = ()
    values: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    defaults: Mapping[str, Value] = field(default_factory=dict)
    always: Mapping[str, Value] = field(default_factory=dict)
    """Parameter that the models ignore -> value that always applies instead."""
    kinds: frozenset["pb.VideoMediaKind.ValueType"] = frozenset({IMAGE_KIND})
    roles: frozenset[Role] = frozenset({ANY_ROLE, FIRST_FRAME})
    max_images: int | None = 1
    needs_image: bool = False
    needs_input: bool = False
    """Whether a request must have a prompt or media."""


def _fields(names: str) -> frozenset[str]:
    return frozenset(names.split())


_A = Rules(
    accepted=_fields("duration_seconds size negative_prompt"),
    values={"duration_seconds": (4, 8, 12), "size": ("720x1280", "1280x720")},
    defaults={"duration_seconds": 4, "size": "720x1280"},
    roles=frozenset({ANY_ROLE, FIRST_FRAME, REFERENCE_IMAGE}),
)
_A_UNIFIED = replace(_A, needs_input=True)
_B = Rules(
    accepted=_fields(
        "duration_seconds aspect_ratio resolution generate_audio seed sample_count person_generation watermark"
        " frames_per_second prompt_extend negative_prompt"
    ),
    values={"duration_seconds": (4, 6, 8), "aspect_ratio": ("16:9", "9:16"), "resolution": ("720p", "1080p")},
    ranges={"sample_count": (1, 4)},
    defaults={
        "duration_seconds": 4,
        "aspect_ratio": "16:9",
        "resolution": "1080p",
        "generate_audio": False,
        "sample_count": 1,
    },
    needs_input=True,
)
_B_FRAMES = replace(_B, roles=frozenset({ANY_ROLE, FIRST_FRAME, LAST_FRAME}), max_images=2)
_FAST = {"generate_audio": True}  # "fast models ignore it and always include audio"
_C = Rules(
    accepted=_fields("duration_seconds size resolution generate_audio seed prompt_extend watermark negative_prompt"),
    values={"duration_seconds": (5, 10), "resolution": COMMON_RESOLUTIONS},
    defaults={"duration_seconds": 5, "resolution": "720p", "generate_audio": False},
    kinds=frozenset({IMAGE_KIND, AUDIO_KIND}),
    roles=frozenset({ANY_ROLE, FIRST_FRAME, pb.VIDEO_MEDIA_ROLE_REFERENCE_AUDIO}),
    needs_input=True,
)
_D_1 = Rules(
    accepted=_fields(
        "duration_seconds resolution aspect_ratio frames_per_second seed watermark camera_fixed return_last_frame"
        " negative_prompt frames"
    ),
    values={"aspect_ratio": RATIOS_D_1, "resolution": COMMON_RESOLUTIONS},
    defaults={"duration_seconds": 5},
    roles=frozenset({ANY_ROLE, FIRST_FRAME, LAST_FRAME, REFERENCE_IMAGE}),
    max_images=None,
    needs_input=True,
)
_D_1_SOUND = replace(_D_1, accepted=_D_1.accepted | {"generate_audio"})
_D = Rules(
    accepted=_fields(
        "duration_seconds resolution aspect_ratio generate_audio return_last_frame seed watermark camera_fixed frames"
    ),
    required=("prompt",),
    values={"aspect_ratio": RATIOS_D, "resolution": (*COMMON_RESOLUTIONS, "4k")},
    kinds=frozenset({IMAGE_KIND, VIDEO_KIND, AUDIO_KIND}),
    roles=frozenset({ANY_ROLE, FIRST_FRAME, LAST_FRAME, REFERENCE_IMAGE}) | OTHER_MEDIA,
    max_images=None,
)
_D_2 = replace(_D, ranges={"duration_seconds": (4, 15)})
_E_V1 = Rules(
    accepted=_fields(
        "duration_seconds size mode aspect_ratio negative_prompt cfg_scale dynamic_masks_json camera_control_json"
        " generate_audio seed"
    ),
    required=("prompt",),
    values={
        "size": ("1024x1024", "1280x720", "720x1280"),
        "mode": ("std", "pro"),
        "aspect_ratio": ("16:9", "9:16", "1:1"),
    },
    defaults={"duration_seconds": 5},
    roles=frozenset({ANY_ROLE, FIRST_FRAME, LAST_FRAME, REFERENCE_IMAGE, STATIC_MASK}),
    max_images=None,
)
_E_3 = Rules(
    accepted=_fields("duration_seconds resolution aspect_ratio generate_audio negative_prompt"),
    required=("prompt",),
    values={"resolution": ("720p", "1080p", "4k"), "aspect_ratio": ("16:9", "9:16", "1:1")},
    ranges={"duration_seconds": (3, 15)},
    defaults={"duration_seconds": 5, "resolution": "720p"},
    roles=frozenset({ANY_ROLE, FIRST_FRAME, LAST_FRAME, REFERENCE_IMAGE}),
    max_images=None,
)
_E_3_TURBO = replace(_E_3, values={**_E_3.values, "resolution": ("720p", "1080p")})
_E_3_OMNI = replace(_E_3, kinds=frozenset({IMAGE_KIND, VIDEO_KIND}), roles=_E_3.roles | OTHER_MEDIA)
_F = Rules(
    accepted=_fields("seed aspect_ratio frames"),
    values={"aspect_ratio": RATIOS_G},  # the reference lists the same six
    roles=frozenset({ANY_ROLE, FIRST_FRAME, LAST_FRAME, REFERENCE_IMAGE}),
    max_images=None,
)
_G = Rules(
    accepted=_fields("resolution duration_seconds aspect_ratio watermark"),
    required=("prompt", "resolution", "duration_seconds"),
    values={"resolution": ("768P", "2K"), "aspect_ratio": RATIOS_G},
    ranges={"duration_seconds": (4, 15)},
    kinds=frozenset({IMAGE_KIND, VIDEO_KIND, AUDIO_KIND}),
    roles=frozenset({ANY_ROLE, FIRST_FRAME, LAST_FRAME, REFERENCE_IMAGE}) | OTHER_MEDIA,
    max_images=None,
)

ENTRY_RULES: dict[Entry, dict[str, Rules]] = {
    UNIFIED_ENTRY: {
        "vidA": _A_UNIFIED,
        "vidA-2": _A_UNIFIED,
        "vidB": _B_FRAMES,
        "vidB-3.0-fast-generate-001": replace(_B, always=_FAST),
        "vidB-3.0-generate-preview": _B,
        "vidB-3.1-fast-generate-preview": replace(_B_FRAMES, always=_FAST),
        "vidB-3.1-generate-preview": _B_FRAMES,
        "vidC": _C,
        "vidC2.5-t2v-preview": replace(_C, max_images=0),
        "vidC2.5-i2v-preview": replace(_C, accepted=_C.accepted - {"size"}, needs_image=True),
        "vidD": _D_1_SOUND,
        "vidD-1-0-lite-t2v-250428": replace(_D_1, max_images=0),
        "vidD-1-0-lite-i2v-250428": replace(_D_1, needs_image=True),
        "vidD-1-0-pro-250528": _D_1,
        "vidD-1-5-pro-251215": _D_1_SOUND,
        "vidD-1-5-pro-251215-noAudio": replace(_D_1, always={"generate_audio": False}),
    },
    VIDEO_OBJECT: {"vidA": _A, "vidA-2": _A},
    ENTRY_D: {
        "vidD": _D,
        "vidD-1-5-pro-251215": _D,
        "vidD-2-0-260128": _D_2,
        "vidD-2-0-fast-260128": replace(_D_2, values={**_D.values, "resolution": ("480p", "720p")}),
        "vidD-2-5-260628": _D,
    },
    E_V1: dict.fromkeys(
        ("vidE", "vidE-v1", "vidE-v1-6", "vidE-v2-master", "vidE-v2-6", "vidE-v2-5-turbo", "vidE-v3"), _E_V1
    ),
    E_3: {"vidE": _E_3_OMNI, "vidE-3.0": _E_3, "vidE-3.0-turbo": _E_3_TURBO, "vidE-3.0-omni": _E_3_OMNI},
    ENTRY_F: {"vidF": _F, "vidF_vgfm_t2v_l20": _F},
    ENTRY_G: {"vidG": _G, "vidG-H3": _G},
}
"""HTTP API -> documented model, or family for an operator's own ids of it -> rules."""

ENTRY_PATHS: dict[Entry, str] = {
    UNIFIED_ENTRY: "/v1/video/generations",
    VIDEO_OBJECT: "/v1/videos",
    ENTRY_D: "/vidD/api/v3/contents/generations/tasks",
    E_V1: "/vidE/v1/videos/text2video",
    E_3: "/vidE/text-to-video/{model}",
    ENTRY_F: "/vidF?Action=CVSync2AsyncSubmitTask",
    ENTRY_G: "/vidG/v2/video_generation",
}

DOCUMENTED_MODELS = {model for rules in ENTRY_RULES.values() for model in rules if not model.isalnum()}
_FAMILY = re.compile(rf"({'|'.join(VIDEO_FAMILIES)})[-_0-9]")


def video_family(*ids: str) -> str:
    """Return the family of the first of these ids with a documented, neutral prefix (`vidB-`, `vidC2.5-`), or ""."""
    return next((found[1] for model in ids if (found := _FAMILY.match(model))), "")

"""Parameters of a simulated video task, for its states and files; small enough to be stored with the task."""

import re
from collections.abc import Sequence
from io import BytesIO
from typing import Literal

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.core.image_file_headers import check_image
from umg_grpc.wire.core.json_decoding import invalid
from umg_grpc.wire.video.provider_task_types import Submission
from umg_sandbox import simulated_faults
from umg_sandbox.input_images import InputImage, draw_input
from umg_sandbox.text_drawing import clean

DEFAULT_SECONDS = 5
FRAME_RATE, FILM_RATE = 12, 24
"""Frames per second without a rate in the request; the second for a length in frames."""
MAX_FRAME_RATE, MAX_SECONDS, MAX_EDGE = 60, 60, 4096
SHORT_EDGES = {"480p": 480, "540p": 540, "720p": 720, "768p": 768, "1080p": 1080, "1k": 1080, "2k": 1152, "4k": 2160}
"""Resolution in lower case -> shorter edge in pixels."""
DEFAULT_RATIO = "16:9"
MODE_RESOLUTIONS = {"pro": "1080p"}
"""Quality tier -> resolution, for tiers that do not name one; 720p for all others."""
STORED_EDGE, THUMBNAIL_EDGE = 768, 256
"""Longer edge of the stored pictures: frames, and references."""

Role = Literal["first", "last", "reference", "mask"]
Kind = Literal["image", "video", "audio"]
_ROLES: dict[int, Role] = {
    pb.VIDEO_MEDIA_ROLE_FIRST_FRAME: "first",
    pb.VIDEO_MEDIA_ROLE_LAST_FRAME: "last",
    pb.VIDEO_MEDIA_ROLE_STATIC_MASK: "mask",
}
_KINDS: dict[int, Kind] = {
    pb.VIDEO_MEDIA_KIND_IMAGE: "image",
    pb.VIDEO_MEDIA_KIND_VIDEO: "video",
    pb.VIDEO_MEDIA_KIND_AUDIO: "audio",
}
_SIZE = re.compile(r"(\d{1,5})[x*](\d{1,5})", re.IGNORECASE | re.ASCII)
_RATIO = re.compile(r"(\d{1,3}):(\d{1,3})", re.ASCII)
_WITHOUT_SOUND = re.compile(r"-noAudio$|^vidD-1-0-")
_WITH_SOUND = re.compile(r"^vidB-.*-fast-|^vidA-")
_WITH_SOUND_BY_DEFAULT = re.compile(r"^vidD-")
_WITH_PREVIEWS = re.compile(r"^vidA-")


class Medium(msgspec.Struct, frozen=True, omit_defaults=True):
    """Input image, video or audio of a task, reduced so that it can be stored."""

    role: Role
    kind: Kind = "image"
    data: bytes = b""
    """Reduced image, a JPEG file; empty for an address, video or audio."""
    url: str = ""


class VideoPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Parameters of a simulated video task, from which all its states and files follow."""

    model: str
    prompt: str
    width: int
    height: int
    frame_rate: int
    frame_count: int
    submit_time: float
    """Seconds since 1970."""
    scene: str = ""
    """Text from which the scene is drawn; for a remix that of the source task."""
    seed: int | None = None
    count: int = 1
    sound: bool = False
    watermark: bool = False
    camera_fixed: bool = False
    last_frame: bool = False
    previews: bool = False
    """Whether a thumbnail and a spritesheet are results."""
    remix: bool = False
    media: tuple[Medium, ...] = ()
    fault: str = ""
    """Fault mark in the prompt, for example `[[fail]]`; "" if there is none."""

    @property
    def seconds(self) -> float:
        return self.frame_count / self.frame_rate


def plan_of(submission: Submission, time: float) -> VideoPlan:
    """Return the parameters for a submission at a Unix time. Decoding an image may take a tenth of a second. Raise
    UmgError(INVALID_FIELD) for an undecodable image, and for a size, rate or length that cannot be encoded.
    """
    wanted, model = submission.request.parameters, submission.model
    source = decode_plan(submission.source.facts) if submission.source is not None else None
    width, height = _size(wanted)
    rate, count = _frames(wanted)
    seed = wanted.seed if wanted.HasField("seed") and wanted.seed >= 0 else None
    return VideoPlan(
        model=model,
        prompt=clean(wanted.prompt),
        width=width,
        height=height,
        frame_rate=rate,
        frame_count=count,
        submit_time=time,
        scene=source.scene if source is not None else wanted.prompt[:2000],
        seed=source.seed if source is not None and seed is None else seed,
        count=wanted.sample_count or 1,
        sound=_has_sound(wanted, model),
        watermark=wanted.watermark,
        camera_fixed=wanted.camera_fixed,
        last_frame=wanted.return_last_frame,
        previews=bool(_WITH_PREVIEWS.search(model)),
        remix=source is not None,
        media=_media(wanted.media, width, height) or (source.media if source is not None else ()),
        fault=simulated_faults.mark(wanted.prompt),
    )


def encode_plan(plan: VideoPlan) -> str:
    """Return the parameters as JSON text, which is stored with the task."""
    return msgspec.json.encode(plan).decode()


def decode_plan(facts: str) -> VideoPlan:
    """Return the parameters from the JSON text that was stored with the task."""
    return msgspec.json.decode(facts, type=VideoPlan)


def _has_sound(wanted: pb.VideoParameters, model: str) -> bool:
    if _WITHOUT_SOUND.search(model):
        return False
    if _WITH_SOUND.search(model):
        return True
    return wanted.generate_audio if wanted.HasField("generate_audio") else bool(_WITH_SOUND_BY_DEFAULT.search(model))


def _frames(wanted: pb.VideoParameters) -> tuple[int, int]:
    """Return (frames per second, number of frames) for the parameters of a request."""
    rate = wanted.frames_per_second or (FILM_RATE if wanted.frames else FRAME_RATE)
    if rate > MAX_FRAME_RATE:
        raise invalid("parameters.frames_per_second", f"expected at most {MAX_FRAME_RATE}; send less")
    count = wanted.frames or (wanted.duration_seconds or DEFAULT_SECONDS) * rate
    if count > MAX_SECONDS * rate:
        raise invalid("parameters.frames", f"expected at most {MAX_SECONDS * rate}, {MAX_SECONDS} seconds; send less")
    return rate, count


def _size(wanted: pb.VideoParameters) -> tuple[int, int]:
    """Return (width, height) in pixels, both even as H.264 requires."""
    if wanted.size:
        found = _SIZE.fullmatch(wanted.size)
        if found is None or not all(16 <= int(edge) <= MAX_EDGE for edge in found.groups()):
            raise invalid("parameters.size", f"expected a size such as `1280x720`, up to {MAX_EDGE}; send one")
        return _even(int(found[1])), _even(int(found[2]))
    short = SHORT_EDGES.get((wanted.resolution or MODE_RESOLUTIONS.get(wanted.mode, "720p")).lower())
    if short is None:
        raise invalid("parameters.resolution", f"expected one of {', '.join(SHORT_EDGES)}; send one of them")
    if wanted.aspect_ratio and wanted.aspect_ratio != "adaptive":
        wide, high = _ratio(wanted.aspect_ratio)
    else:
        wide, high = _first_image_size(wanted.media) or _ratio(DEFAULT_RATIO)
    share = min(max(wide / high, 1 / 3), 3)
    return (_even(short * share), short) if share >= 1 else (short, _even(short / share))


def _ratio(text: str) -> tuple[int, int]:
    found = _RATIO.fullmatch(text)
    if found is None or not int(found[1]) or not int(found[2]):
        raise invalid("parameters.aspect_ratio", "expected a ratio such as `16:9`; send one")
    return int(found[1]), int(found[2])


def _even(length: float) -> int:
    return max(16, 2 * round(length / 2))


def _first_image_size(media: Sequence[pb.VideoMedia]) -> tuple[int, int] | None:
    """Return (width, height) of the first frame or the only image; None for a URL, and for several or no images."""
    images = [(place, each) for place, each in enumerate(media) if each.kind == pb.VIDEO_MEDIA_KIND_IMAGE]
    for place, each in images:
        is_first = each.role == pb.VIDEO_MEDIA_ROLE_FIRST_FRAME or (len(images) == 1 and not each.role)
        if is_first and each.data:
            header = check_image(each.data, f"parameters.media[{place}].data")
            return header.width, header.height
    return None


def _media(media: Sequence[pb.VideoMedia], width: int, height: int) -> tuple[Medium, ...]:
    """Return the input media, reduced. An only image without a role is the first frame, others are references."""
    images = sum(each.kind == pb.VIDEO_MEDIA_KIND_IMAGE for each in media)
    found = list[Medium]()
    for place, each in enumerate(media):
        kind = _KINDS[each.kind]
        role = _ROLES.get(each.role, "reference")
        if not each.role and kind == "image" and images == 1:
            role = "first"
        data = b""
        if kind == "image" and each.data:
            edge = STORED_EDGE if role in ("first", "last") else THUMBNAIL_EDGE
            share = min(1, edge / max(width, height))
            size = max(1, round(width * share)), max(1, round(height * share))
            data = _reduced(InputImage(f"parameters.media[{place}].data", each.data), *size)
        found.append(Medium(role, kind, data, each.url))
    return tuple(found)


def _reduced(image: InputImage, width: int, height: int) -> bytes:
    file = BytesIO()
    draw_input(image, width, height).save(file, "JPEG", quality=85)
    return file.getvalue()

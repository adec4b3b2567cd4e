"""Submissions within the rules that vendors have for their models."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.support.videos import AUDIO, VIDEO, image, submission
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.video import VIDEO_PROTOCOLS
from umg_grpc.wire.video.provider_task_types import ProviderTask
from umg_grpc.wire.video.providers.vid_a_protocol import VID_A
from umg_grpc.wire.video.providers.vid_b_protocol import VID_B
from umg_grpc.wire.video.providers.vid_d_protocol import VID_D
from umg_grpc.wire.video.submission_encoding import encode_submission

SECOND, FAST, FIRST = "doubao-seedance-2-0-260128", "dreamina-seedance-2-0-fast-260128", "seedance-1-0-pro-250528"
FILM = pb.VideoMedia(kind=VIDEO, url="https://example.com/v.mp4")
SOUND = pb.VideoMedia(kind=AUDIO, url="https://example.com/a.mp3")
PICTURE, START, END, REFERENCE, MASK = (
    image(role, url="https://example.com/a.png")
    for role in ("", "first_frame", "last_frame", "reference_image", "static_mask")
)
LENGTH, RESOLUTION = "parameters.duration_seconds", "parameters.resolution"
M0, M1 = "parameters.media[0]", "parameters.media[1]"
OMNI = "jimeng_realman_avatar_picture_omni_v2"


@dataclass(frozen=True)
class Refused:
    id: str
    protocol: str
    model: str
    field: str
    media: tuple[pb.VideoMedia, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)
    words: str = ""


REFUSED = [
    Refused("a length below the least", "vidD", SECOND, LENGTH, (), {"duration_seconds": 3}, "between 4 and 15 on model my-video"),
    Refused("a resolution of another model", "vidD", FAST, RESOLUTION, (), {"resolution": "1080p"}, "'1080p' is not one of its values on model my-video: 480p, 720p"),
    Refused("too many images", "vidD", SECOND, "parameters.media", (image(),) * 10, words="at most 9 image inputs"),
    Refused("a length that does not fit the resolution", "vidB", "veo-3.1-generate-001", LENGTH, (), {"resolution": "1080p", "duration_seconds": 4}, "it must be 8 with resolution 1080p on model my-video; change it or leave out the resolution"),
    Refused("a long video of 2.7", "vidC", "wan2.7-t2v", LENGTH, (), {"duration_seconds": 16}, "must be between 2 and 15"),
    Refused("480p of images", "vidC", "wan2.7-i2v", RESOLUTION, (PICTURE,), {"resolution": "480p"}, "720p, 1080p"),
    Refused("a long video of 3.0", "vidC", "wan3.0-video", LENGTH, (), {"duration_seconds": 31}, "must be between 2 and 30"),
    Refused("a length of 2.5", "vidC", "wan2.5-t2v-preview", LENGTH, (), {"duration_seconds": 7}, "5, 10"),
    Refused("480p of a horse", "vidC", "happyhorse-1.0-t2v", RESOLUTION, (), {"resolution": "480p"}, "720p, 1080p"),
    Refused("an image for a text model", "vidC", "wan2.7-t2v", M0, (PICTURE,), words="audio"),
    Refused("a last frame without its model", "vidC", "wan2.6-i2v", M1, (START, END), words="a first frame"),
    Refused("references for a first frame", "vidC", "wan2.7-i2v", M0, (REFERENCE,), words="a first frame"),
    Refused("a first frame among references", "vidC", "happyhorse-1.0-r2v", M0, (START,), words="reference images"),
    Refused("a video without its model", "vidC", "happyhorse-1.1-t2v", M0, (FILM,), words="no images and files"),
    Refused("two sounds", "vidC", "wan2.5-t2v-preview", M1, (SOUND, SOUND), words="audio"),
    Refused("a mask", "vidC", "wan3.0-video", M0, (MASK,), words="reference images"),
    Refused("a length of 2.6", "vidE", "kling-2.6", LENGTH, (), {"duration_seconds": 7}),
    Refused("a length of o1", "vidE", "kling-o1", LENGTH, (), {"duration_seconds": 11}),
    Refused("a length of 3.0", "vidE", "kling-3.0", LENGTH, (), {"duration_seconds": 16}),
    Refused("4k of a turbo model", "vidE", "kling-3.0-turbo", RESOLUTION, (), {"resolution": "4k"}),
    Refused("two videos", "vidE", "kling-3.0-omni", "parameters.media", (FILM, FILM)),
    Refused("a video of frames", "vidE", "kling-3.0", M1, (PICTURE, FILM)),
    Refused("bytes of a video", "vidE", "kling-v3-omni", M0, (pb.VideoMedia(kind=VIDEO, data=b"v"),)),
    Refused("an image for text", "vidE", "kling-v2-6", M1, (PICTURE, FILM)),
    Refused("a length", "vidF", "jimeng_t2v_v30", LENGTH, (), {"duration_seconds": 7}),
    Refused("a number of frames", "vidF", "jimeng_t2v_v30", "parameters.frames", (), {"frames": 97}),
    Refused("a video of an avatar", "vidF", OMNI, M1, (PICTURE, FILM)),
    Refused("bytes", "vidF", OMNI, M0, (image(), SOUND)),
    Refused("two images", "vidF", "jimeng_dreamactor_m20_gen_video", "parameters.media", (PICTURE, PICTURE)),
    Refused("a length of 2.3", "vidG", "MiniMax-Hailuo-2.3", LENGTH, (), {"duration_seconds": 5}),
    Refused("512P of 2.3", "vidG", "MiniMax-Hailuo-2.3", RESOLUTION, (), {"resolution": "512P"}),
    Refused("720p of 02", "vidG", "MiniMax-Hailuo-02", RESOLUTION, (), {"resolution": "720p"}),
    Refused("a length of 01", "vidG", "T2V-01", LENGTH, (), {"duration_seconds": 10}),
    Refused("1080P of 01", "vidG", "I2V-01", RESOLUTION, (), {"resolution": "1080P"}),
    Refused("a length of H3", "vidG", "MiniMax-H3", LENGTH, (), {"duration_seconds": 3}),
    Refused("2K of a model that has none", "vidG", "MiniMax-H3-Max", RESOLUTION, (), {"resolution": "2K"}),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case.protocol}: {case.id}")
def test_a_value_that_the_vendor_refuses_is_refused_before_it_is_sent(case: Refused) -> None:
    made = submission(case.model, *case.media, public="my-video", **case.parameters)
    with pytest.raises(UmgError) as caught:
        encode_submission(VIDEO_PROTOCOLS[case.protocol], made)
    name = "UNTRANSLATABLE" if case.field in {M0, M1} else "INVALID_FIELD"
    assert (caught.value.name, caught.value.metadata["field"]) == (name, case.field)
    assert case.words in caught.value.message
    assert caught.value.failure is None  # another channel of the model may take it


def test_texts_are_compared_in_any_case() -> None:
    body = msgspec.json.decode(encode_submission(VID_D, submission(SECOND, resolution="4K")).body)
    assert body["resolution"] == "4K"


def test_a_parameter_that_the_model_lacks_is_left_out_and_reported_unless_it_is_no_loss() -> None:
    request = encode_submission(VID_D, submission(SECOND, camera_fixed=False, frames=29))
    assert {"camera_fixed", "frames"}.isdisjoint(msgspec.json.decode(request.body))
    assert list(request.report.dropped) == ["parameters.frames"]
    silent = encode_submission(VID_D, submission(FIRST, generate_audio=False))
    assert list(silent.report.dropped) == ["parameters.generate_audio"]


def test_a_draft_is_refused_for_a_provider_without_drafts() -> None:
    source = ProviderTask(id="cgt-1", model="m")
    with raises_error(metadata={"field": "parameters.draft_task_id"}):
        encode_submission(VID_A, submission("m", source=source, draft_task_id="task_1"))


@pytest.mark.parametrize("values", [{"resolution": "1080p"}, {"resolution": "4k", "duration_seconds": 8}])
def test_a_length_that_fits_the_resolution_or_is_left_out_is_sent(values: dict[str, Any]) -> None:
    body = msgspec.json.decode(encode_submission(VID_B, submission("veo-3.1-generate-001", **values)).body)
    assert body["parameters"]["resolution"] == values["resolution"]


def test_a_neutral_model_loses_a_default_that_does_not_fit_another() -> None:
    given = submission("veo-3.1-generate-001", public="vidB-3.1", duration_seconds=4, resolution="1080p")
    request = encode_submission(VID_B, given)
    assert msgspec.json.decode(request.body)["parameters"]["durationSeconds"] == 4
    assert "resolution" not in msgspec.json.decode(request.body)["parameters"]
    assert list(request.report.dropped) == ["parameters.resolution"]


def test_the_submission_itself_is_not_changed() -> None:
    given = submission(SECOND, frames=29)
    encode_submission(VID_D, given)
    assert given.request.parameters.frames == 29

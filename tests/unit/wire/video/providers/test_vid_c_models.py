"""Submissions of the protocol `vidC` by model id, against rules written from the vendor's SDK."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from tests.support.providers.server import Json, RefusedError
from tests.support.providers.video_c_rules import IMAGE_PATH, check_submission
from tests.support.videos import AUDIO, VIDEO, image, submission
from umg_grpc.v1 import pb
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest
from umg_grpc.wire.video.providers.vid_c_protocol import VID_C
from umg_grpc.wire.video.submission_encoding import encode_submission

HTTP = "https://example.com/a.png"
CLIP = pb.VideoMedia(kind=VIDEO, url="https://example.com/a.mp4")
SOUND = pb.VideoMedia(kind=AUDIO, url="https://example.com/a.mp3")
FIRST, LAST, REFERENCE = (image(role, url=HTTP) for role in ("first_frame", "last_frame", "reference_image"))
PLAIN = image(url=HTTP)


def encoded(model: str, *media: pb.VideoMedia, public: str = "", **parameters: Any) -> ProviderRequest:
    return encode_submission(VID_C, submission(model, *media, public=public or model, **parameters))


def accepted(request: ProviderRequest) -> Json:
    """Return the body of a request that the vendor accepts."""
    body: Json = msgspec.json.decode(request.body)
    try:
        check_submission(request.path, {name.lower(): value for name, value in request.headers.items()}, body)
    except RefusedError as refused:
        pytest.fail(f"{refused.message} in {body}")
    return body


@dataclass(frozen=True)
class Model:
    """A model, and the input of its mode."""

    id: str
    media: tuple[pb.VideoMedia, ...] = ()
    source: Json = field(default_factory=dict)
    """Members of `input` beside the prompt."""
    seconds: int = 5
    sent: frozenset[str] = frozenset()
    """Members of `parameters` for a request with every parameter."""
    dropped: frozenset[str] = frozenset()
    """Parameters that the model cannot have."""


def items(*pairs: tuple[str, str]) -> Json:
    return {"media": [{"type": kind, "url": url} for kind, url in pairs]}


ALWAYS = frozenset({"duration", "seed", "watermark", "prompt_extend"})
TIER, RATIO = ALWAYS | {"resolution"}, ALWAYS | {"resolution", "ratio"}
NO_PROMPT = frozenset({"parameters.negative_prompt", "parameters.prompt_extend"})
NO_RATIO, SILENT = frozenset({"parameters.aspect_ratio"}), frozenset({"parameters.generate_audio"})
HORSE, HORSE_RATIO = TIER - {"prompt_extend"}, RATIO - {"prompt_extend"}
FRAME = (("first_frame", HTTP),)
REFERENCES = (("reference_image", HTTP), ("reference_image", HTTP))
MODELS = [
    Model("wanx2.1-t2v-turbo", sent=ALWAYS | {"size"}, dropped=SILENT),
    Model("wan2.2-i2v-flash", (PLAIN,), {"img_url": HTTP}, sent=TIER, dropped=NO_RATIO | SILENT),
    Model("wan2.2-kf2v-flash", (PLAIN, PLAIN), {"first_frame_url": HTTP, "last_frame_url": HTTP}, sent=TIER, dropped=NO_RATIO | SILENT),
    Model("wan2.5-t2v-preview", seconds=10, sent=ALWAYS | {"size", "audio"}),
    Model("wan2.5-i2v-preview", (FIRST,), {"img_url": HTTP}, sent=TIER | {"audio"}, dropped=NO_RATIO),
    Model("wan2.6-t2v", seconds=15, sent=ALWAYS | {"size", "audio"}),
    Model("wan2.6-i2v-flash", (PLAIN,), {"img_url": HTTP}, 2, TIER | {"audio"}, NO_RATIO),
    Model("wan2.6-r2v", (PLAIN, CLIP), {"reference_urls": [HTTP, CLIP.url]}, sent=ALWAYS | {"size", "audio"}),
    Model("wan2.7-t2v", (SOUND,), {"audio_url": SOUND.url}, 15, RATIO),
    Model("wan2.7-t2v-2026-06-12", seconds=2, sent=RATIO),
    Model("wan2.7-i2v", (PLAIN,), items(*FRAME), 7, TIER, NO_RATIO),
    Model("wan2.7-i2v-2026-04-25", (FIRST, LAST, SOUND), items(*FRAME, ("last_frame", HTTP), ("driving_audio", SOUND.url)), 7, TIER, NO_RATIO),
    Model("wan2.7-i2v", (CLIP, LAST), items(("first_clip", CLIP.url), ("last_frame", HTTP)), 7, TIER, NO_RATIO),
    Model("wan2.7-r2v", (REFERENCE, CLIP, FIRST), items(("reference_image", HTTP), ("reference_video", CLIP.url), *FRAME), 7, RATIO),
    Model("wan2.7-r2v-2026-06-12", (PLAIN,), items(*REFERENCES[:1]), sent=RATIO),
    Model("wan2.7-videoedit", (CLIP, PLAIN), items(("video", CLIP.url), *REFERENCES[:1]), sent=RATIO),
    Model("wan3.0-video", seconds=30, sent=RATIO | {"audio"}),
    Model("wan3.0-video", (PLAIN,), items(*FRAME), sent=RATIO | {"audio"}),
    Model("wan3.0-video-prime", (FIRST, LAST), items(*FRAME, ("last_frame", HTTP)), sent=RATIO | {"audio"}),
    Model("wan3.0-video-prime", (PLAIN, PLAIN, CLIP, SOUND), items(*REFERENCES, ("reference_video", CLIP.url), ("reference_audio", SOUND.url)), sent=RATIO | {"audio"}),
    Model("happyhorse-1.0-t2v", seconds=15, sent=HORSE_RATIO, dropped=NO_PROMPT),
    Model("happyhorse-1.1-i2v", (PLAIN,), items(*FRAME), 3, HORSE, NO_PROMPT | NO_RATIO),
    Model("happyhorse-1.1-r2v", (PLAIN, PLAIN), items(*REFERENCES), 3, HORSE_RATIO, NO_PROMPT),
    Model(
        "happyhorse-1.0-video-edit",
        (CLIP, PLAIN),
        items(("video", CLIP.url), *REFERENCES[:1]),
        5,
        HORSE - {"duration"},
        NO_PROMPT | NO_RATIO | {"parameters.duration_seconds"},
    ),
]  # fmt: skip
EACH = pytest.mark.parametrize("case", MODELS, ids=lambda case: f"{case.id} with {len(case.media)} media")


@EACH
def test_a_bare_request_has_the_prompt_and_the_media_of_the_model(case: Model) -> None:
    request = encoded(case.id, *case.media)
    assert accepted(request) == {
        "model": case.id,
        "input": {"prompt": "a paper boat", **case.source},
        "parameters": {},
    }
    assert not request.report.dropped
    assert (request.path == IMAGE_PATH) is ("kf2v" in case.id)


@EACH
def test_a_request_with_every_parameter_is_accepted_and_omitted_ones_are_reported(case: Model) -> None:
    request = encoded(
        case.id,
        *case.media,
        negative_prompt="rain",
        duration_seconds=case.seconds,
        resolution="720p",
        aspect_ratio="4:3",
        generate_audio=True,
        seed=7,
        watermark=True,
        prompt_extend=True,
    )
    parameters = accepted(request)["parameters"]
    assert set(parameters) == case.sent
    assert set(request.report.dropped) == case.dropped
    expected = {"resolution": "720P", "ratio": "4:3", "size": "1088*832", "duration": case.seconds, "seed": 7}
    assert parameters == {name: expected.get(name, True) for name in parameters}


@EACH
@pytest.mark.parametrize("public", ["vidC2.5-t2v-preview", "vidC-mine"])
def test_the_defaults_of_a_neutral_id_reach_no_model_that_lacks_their_members(case: Model, public: str) -> None:
    defaults = {"duration_seconds": 5, "resolution": "720p", "generate_audio": False}
    request = encoded(case.id, *case.media, public=public, **defaults)
    parameters = accepted(request)["parameters"]
    assert parameters["watermark"] is False
    assert parameters.get("audio", False) in (False, SOUND in case.media)
    assert set(request.report.dropped) <= {"parameters.duration_seconds"}


@dataclass(frozen=True)
class Size:
    id: str
    model: str
    wanted: Mapping[str, str]
    sent: Json
    dropped: Mapping[str, str | None] = field(default_factory=dict)


SIZES = [
    Size("a size of a tier", "wan2.7-t2v", {"size": "1280x720"}, {"resolution": "720P", "ratio": "16:9"}),
    Size("a square of a tier", "wan3.0-video", {"size": "1440*1440"}, {"resolution": "1080P", "ratio": "1:1"}),
    Size("a size of no tier", "wan3.0-video", {"size": "1024x1024"}, {"resolution": "720P", "ratio": "1:1"}, {"parameters.size": "720P 1:1"}),
    Size("a ratio alone", "wan3.0-video", {"aspect_ratio": "adaptive"}, {"ratio": "adaptive"}),
    Size("a ratio of the image", "happyhorse-1.1-i2v", {"size": "720x1280"}, {"resolution": "720P"}, {"parameters.size": None}),
    Size("pixels", "wan2.6-t2v", {"size": "1280x720"}, {"size": "1280*720"}),
    Size("a ratio without a size in pixels", "wan2.6-t2v", {"aspect_ratio": "21:9"}, {"size": "1280*720"}, {"parameters.aspect_ratio": "1280*720"}),
    Size("a tier without a size in pixels", "wan2.2-t2v-plus", {"resolution": "4k"}, {}, {"parameters.resolution": None}),
]  # fmt: skip


@pytest.mark.parametrize("case", SIZES, ids=lambda case: case.id)
def test_a_size_is_stated_as_the_model_takes_it_and_a_difference_is_reported(case: Size) -> None:
    request = encoded(case.model, *((PLAIN,) if "i2v" in case.model else ()), **case.wanted)
    assert accepted(request)["parameters"] == case.sent
    assert request.report.dropped == case.dropped


@pytest.mark.parametrize(
    ("model", "wish", "sent", "is_reported"),
    [
        ("wan2.7-t2v", False, None, True),
        ("wan2.7-t2v", True, None, False),
        ("wan2.2-t2v-plus", False, None, False),
        ("wan2.2-t2v-plus", True, None, True),
        ("wan3.0-video", False, False, False),
    ],
)
def test_a_wish_about_sound_is_sent_or_reported_where_it_has_no_effect(
    model: str, wish: bool, sent: bool | None, is_reported: bool
) -> None:
    request = encoded(model, generate_audio=wish)
    assert accepted(request)["parameters"].get("audio") is sent
    assert ("parameters.generate_audio" in request.report.dropped) is is_reported


def test_further_members_of_the_vendor_are_sent_at_their_places() -> None:
    extra = '{"shot_type":"multi","media":[{"type":"link","url":"https://x/a"}],"audio_setting":"origin"}'
    body = msgspec.json.decode(encoded("wan3.0-video", extra_json=extra).body)
    assert body["input"]["media"] == [{"type": "link", "url": "https://x/a"}]
    assert body["parameters"] == {"shot_type": "multi", "audio_setting": "origin"}


@dataclass(frozen=True)
class Newer:
    """A newer id, and the media of a request that its row takes."""

    id: str
    media: tuple[pb.VideoMedia, ...]
    source: Json


NEWER = [
    Newer("wan3.5-video-max", (PLAIN,), items(*FRAME)),
    Newer("wan4.0-video", (FIRST, LAST), items(*FRAME, ("last_frame", HTTP))),
    Newer("wan2.8-i2v", (PLAIN,), items(*FRAME)),
    Newer("happyhorse-2.0-r2v", (PLAIN,), items(*REFERENCES[:1])),
    Newer("happyhorse-2-video", (PLAIN,), items(*FRAME)),
    Newer("alibaba/wan2.7-i2v", (PLAIN,), items(*FRAME)),
]


@pytest.mark.parametrize("case", NEWER, ids=lambda case: case.id)
def test_a_newer_model_has_the_places_of_the_newest_known_one(case: Newer) -> None:
    body = msgspec.json.decode(encoded(case.id, *case.media).body)
    assert body["input"] == {"prompt": "a paper boat", **case.source}

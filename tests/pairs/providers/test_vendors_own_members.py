"""Bodies with members of a vendor's own API, from the entries for videos, and the body that the vendor gets."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.pairs.providers.video_bodies import sent
from tests.support.error_checks import raises_error
from umg_grpc.v1 import pb

UNIFIED, D, E_3, G = pb.VIDEO_ENTRY_UNIFIED, pb.VIDEO_ENTRY_D, pb.VIDEO_ENTRY_E_3, pb.VIDEO_ENTRY_G
PICTURE, FILM = "https://example.com/a.png", "https://example.com/a.mp4"
CONTENTS = [{"type": "prompt", "text": "a boat"}, {"type": "first_frame", "url": PICTURE}]
FIRST = {"type": "image_url", "image_url": {"url": PICTURE}, "role": "first_frame"}


@dataclass(frozen=True)
class Case:
    id: str
    protocol: str
    model: str
    entry: "pb.VideoEntry.ValueType"
    body: dict[str, Any]
    path: str
    member: str
    """Path of a member of the vendor's body, with dots; "" for the whole body."""
    value: object
    kind: str = ""
    dropped: dict[str, str | None] = field(default_factory=dict)


CASES = [
    Case(
        id="the contents of Kling's new API without a prompt beside them",
        protocol="vidE",
        model="kling-3.0",
        entry=E_3,
        kind="image-to-video",
        body={"contents": CONTENTS},
        path="/image-to-video/kling-3.0",
        member="contents",
        value=CONTENTS,
    ),
    Case(
        id="a prompt beside the contents of Kling's new API",
        protocol="vidE",
        model="kling-3.0-omni",
        entry=E_3,
        kind="omni-video",
        body={"prompt": "a boat", "contents": CONTENTS[1:]},
        path="/omni-video/kling-3.0-omni",
        member="contents",
        value=CONTENTS,
    ),
    Case(
        id="the video of Kling's motion control",
        protocol="vidE",
        model="kling-3.0-motion-control",
        entry=UNIFIED,
        body={"image": PICTURE, "metadata": {"video_url": FILM, "character_orientation": "image"}},
        path="/motion-control/kling-3.0",
        member="contents",
        value=[{"type": "image", "url": PICTURE}, {"type": "video", "url": FILM}],
    ),
    Case(
        id="the video that xAI changes",
        protocol="vidA",
        model="grok-imagine-video-1.5",
        entry=UNIFIED,
        body={"prompt": "in winter", "video_url": FILM},
        path="/videos/edits",
        member="video",
        value={"url": FILM},
    ),
    Case(
        id="a reference video of Wan",
        protocol="vidC",
        model="wan3.0-video",
        entry=UNIFIED,
        body={"prompt": "a boat", "metadata": {"video_url": FILM}},
        path="/api/v1/services/aigc/video-generation/video-synthesis",
        member="input.media",
        value=[{"type": "reference_video", "url": FILM}],
    ),
    Case(
        id="a first frame alone by Entry D",
        protocol="vidD",
        model="doubao-seedance-2-0-260128",
        entry=D,
        body={"content": [FIRST]},
        path="/contents/generations/tasks",
        member="content",
        value=[FIRST],
    ),
    Case(
        id="a length that Seedance selects",
        protocol="vidD",
        model="doubao-seedance-2-0-260128",
        entry=UNIFIED,
        body={"prompt": "a boat", "duration": -1},
        path="/contents/generations/tasks",
        member="duration",
        value=-1,
    ),
    Case(
        id="a length that Wan selects",
        protocol="vidC",
        model="wan3.0-video",
        entry=UNIFIED,
        body={"prompt": "a boat", "metadata": {"duration": -1}},
        path="/api/v1/services/aigc/video-generation/video-synthesis",
        member="parameters.duration",
        value=-1,
    ),
    Case(
        id="a length that Wan selects, by another vendor's entry",
        protocol="vidC",
        model="wan3.0-video",
        entry=D,
        body={"content": [{"type": "text", "text": "a boat"}], "duration": -1, "tools": []},
        path="/api/v1/services/aigc/video-generation/video-synthesis",
        member="parameters",
        value={"duration": -1},
        dropped={"parameters.extra_json.tools": None},
    ),
    Case(
        id="silence of xAI, which always makes sound",
        protocol="vidA",
        model="grok-imagine-video-1.5",
        entry=UNIFIED,
        body={"prompt": "a boat", "generate_audio": False},
        path="/videos/generations",
        member="prompt",
        value="a boat",
        dropped={"parameters.generate_audio": None},
    ),
    Case(
        id="silence of MiniMax, which always makes sound",
        protocol="vidG",
        model="MiniMax-H3",
        entry=UNIFIED,
        body={"prompt": "a boat", "generate_audio": False},
        path="/v2/video_generation",
        member="content",
        value=[{"type": "text", "text": "a boat"}],
        dropped={"parameters.generate_audio": None},
    ),
    Case(
        id="a ratio that MiniMax adapts to an image, without one",
        protocol="vidG",
        model="MiniMax-H3",
        entry=G,
        body={"content": [{"type": "text", "text": "a boat"}], "ratio": "adaptive"},
        path="/v2/video_generation",
        member="ratio",
        value="16:9",
        dropped={"parameters.aspect_ratio": "16:9"},
    ),
    Case(
        id="sound of MiniMax, which always makes it",
        protocol="vidG",
        model="MiniMax-H3",
        entry=UNIFIED,
        body={"prompt": "a boat", "generate_audio": True},
        path="/v2/video_generation",
        member="content",
        value=[{"type": "text", "text": "a boat"}],
    ),
    Case(
        id="the sound of Kling's settings for another vendor",
        protocol="vidD",
        model="doubao-seedance-2-0-260128",
        entry=E_3,
        body={"prompt": "a boat", "settings": {"audio": "off"}},
        path="/contents/generations/tasks",
        member="generate_audio",
        value=False,
        kind="text-to-video",
    ),
    Case(
        id="the watermark of Kling's options for another vendor",
        protocol="vidC",
        model="wan2.7-t2v",
        entry=E_3,
        body={"prompt": "a boat", "options": {"watermark_info": {"enabled": True}}},
        path="/api/v1/services/aigc/video-generation/video-synthesis",
        member="parameters",
        value={"watermark": True},
        kind="text-to-video",
    ),
    Case(
        id="Kling's settings and options in its old API",
        protocol="vidE",
        model="kling-v2-6",
        entry=E_3,
        body={
            "prompt": "a boat",
            "settings": {"audio": "native", "resolution": "1080p", "multi_shot": True},
            "options": {"watermark_info": {"enabled": False}, "model": "kling-v3"},
        },
        path="/v1/videos/text2video",
        member="",
        value={
            "model_name": "kling-v2-6",
            "prompt": "a boat",
            "external_task_id": "task_1",
            "mode": "pro",
            "sound": "on",
            "watermark_info": {"enabled": False},
            "multi_shot": True,
        },
        kind="text-to-video",
        dropped={"parameters.extra_json.model": None},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_vendor_gets_its_own_members_and_a_loss_is_reported(case: Case) -> None:
    found, request = sent(case.protocol, case.model, case.entry, case.body, case.kind)
    for name in filter(None, case.member.split(".")):
        found = found[name]
    assert (request.path, found) == (case.path, case.value)
    assert request.report.dropped == case.dropped


@dataclass(frozen=True)
class Refused:
    id: str
    protocol: str
    model: str
    entry: "pb.VideoEntry.ValueType"
    body: dict[str, Any]
    field: str
    kind: str = ""


REFUSED = [
    Refused(
        id="a last frame for Kling's turbo models, which take the first one alone",
        protocol="vidE",
        model="kling-3.0-turbo",
        entry=UNIFIED,
        body={"prompt": "a boat", "images": [PICTURE, FILM.replace("mp4", "png")]},
        field="parameters.media",
    ),
    Refused(
        id="the contents of Kling's new API in its old one",
        protocol="vidE",
        model="kling-v2-6",
        entry=E_3,
        kind="image-to-video",
        body={"prompt": "a boat", "contents": CONTENTS},
        field="parameters.extra_json.contents",
    ),
    Refused(
        id="the contents of Kling's new API for another vendor",
        protocol="vidC",
        model="wan2.7-i2v",
        entry=E_3,
        kind="image-to-video",
        body={"prompt": "a boat", "contents": CONTENTS},
        field="parameters.extra_json.contents",
    ),
    Refused(
        id="images beside the contents of Kling's new API",
        protocol="vidE",
        model="kling-3.0",
        entry=E_3,
        kind="image-to-video",
        body={"image": PICTURE, "contents": CONTENTS},
        field="parameters.media[0]",
    ),
    Refused(
        id="a length that a vendor does not select",
        protocol="vidG",
        model="MiniMax-H3",
        entry=UNIFIED,
        body={"prompt": "a boat", "duration": -1},
        field="parameters.duration_seconds",
    ),
    Refused(
        id="nothing to make a video of, by Entry D",
        protocol="vidD",
        model="doubao-seedance-2-0-260128",
        entry=D,
        body={"content": [{"type": "text", "text": " "}]},
        field="parameters.prompt",
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_a_body_that_the_vendor_cannot_get_is_refused_by_its_field(case: Refused) -> None:
    with raises_error(metadata={"field": case.field}):
        sent(case.protocol, case.model, case.entry, case.body, case.kind)

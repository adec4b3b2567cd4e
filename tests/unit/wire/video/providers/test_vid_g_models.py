"""Submissions of MiniMax's models, each at the version of the API that has it, bare and with every parameter; a value
that the vendor does not accept is refused, and the rest is sent or reported.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.providers.server import serve_provider
from tests.support.providers.video_g import TwoVersionProvider
from tests.support.videos import image, opened_videos, submission
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.video.providers.vid_g_protocol import VID_G
from umg_grpc.wire.video.submission_encoding import encode_submission

V1, V2 = "/v1/video_generation", "/v2/video_generation"
PICTURE = image(url="https://example.com/a.png")


@dataclass(frozen=True)
class Accepted:
    model: str
    path: str
    media: tuple[pb.VideoMedia, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)
    sent: dict[str, Any] = field(default_factory=dict)
    """Members of the body besides the model and the inputs."""
    dropped: dict[str, str | None] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.model} {self.parameters}"


ACCEPTED = [
    Accepted(model="MiniMax-H3", path=V2),
    Accepted(model="MiniMax-H3-Max", path=V2, media=(image("first_frame"), image("last_frame"))),
    Accepted(model="MiniMax-Hailuo-2.3", path=V1),
    Accepted(model="MiniMax-Hailuo-2.3-Fast", path=V1, media=(PICTURE,)),
    Accepted(model="T2V-01", path=V1),
    Accepted(model="I2V-01-Director", path=V1, media=(PICTURE,)),
    Accepted(model="S2V-01", path=V1, media=(PICTURE,)),
    Accepted(model="S2V-01", path=V1, media=(image("reference_image"),)),
    Accepted(
        model="MiniMax-H3",
        path=V2,
        parameters={"resolution": "2k", "duration_seconds": 15, "aspect_ratio": "9:16", "watermark": True, "seed": 7},
        sent={"resolution": "2K", "duration": 15, "ratio": "9:16", "aigc_watermark": True},
        dropped={"parameters.seed": None},
    ),
    Accepted(
        model="MiniMax-H3",
        path=V2,
        parameters={"resolution": "1080p", "size": "1280x720"},
        sent={"resolution": "2K", "ratio": "16:9"},
        dropped={"parameters.resolution": "2K", "parameters.size": "2K 16:9"},
    ),
    Accepted(
        model="MiniMax-H3-Max",
        path=V2,
        parameters={"resolution": "480p", "duration_seconds": 4},
        sent={"resolution": "480P", "duration": 4},
    ),
    Accepted(
        model="MiniMax-Hailuo-02",
        path=V1,
        media=(PICTURE,),
        parameters={"resolution": "512P", "duration_seconds": 10, "prompt_extend": False, "aspect_ratio": "1:1"},
        sent={"resolution": "512P", "duration": 10, "prompt_optimizer": False},
        dropped={"parameters.aspect_ratio": None},
    ),
    Accepted(
        model="MiniMax-Hailuo-2.3",
        path=V1,
        parameters={"resolution": "1080p", "duration_seconds": 6, "prompt_extend": True, "negative_prompt": "rain"},
        sent={"resolution": "1080P", "duration": 6, "prompt_optimizer": True},
        dropped={"parameters.negative_prompt": None},
    ),
    Accepted(
        model="T2V-01",
        path=V1,
        parameters={"resolution": "720p", "duration_seconds": 6},
        sent={"resolution": "720P", "duration": 6},
    ),
]
INPUTS = {"model", "prompt", "content", "first_frame_image", "last_frame_image", "subject_reference"}


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
async def test_the_vendor_accepts_a_submission_with_the_stated_members_alone(case: Accepted) -> None:
    made = submission(case.model, *case.media, public=case.model, **case.parameters)
    async with serve_provider(TwoVersionProvider()) as minimax, opened_videos(minimax.url, VID_G) as videos:
        task, report = await videos.submit(made, 10)
        [state] = (await videos.poll([task], 10)).values()
    assert not isinstance(state, UmgError)
    sent = minimax.received[0]
    assert sent.path == case.path
    assert {name: value for name, value in sent.json.items() if name not in INPUTS} == case.sent
    assert report.dropped == case.dropped
    assert ("subject_reference" in sent.json) is (case.model == "S2V-01")


def test_a_newer_model_has_the_newest_version_and_no_limits_of_older_ones() -> None:
    newer = submission("MiniMax-H4", public="MiniMax-H4", resolution="4K", duration_seconds=30)
    assert encode_submission(VID_G, newer).path == V2

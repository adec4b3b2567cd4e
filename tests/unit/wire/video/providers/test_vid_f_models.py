"""Submissions of Jimeng's models by the actions and with the inputs that they have, to a strict simulation."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.providers.server import serve_provider
from tests.support.providers.video_f import SignedProvider
from tests.support.videos import AUDIO, VIDEO, image, opened_videos, submission
from umg_grpc.base.errors import UmgError
from umg_grpc.upstream.http.signing.access_key import AccessKeySigner
from umg_grpc.v1 import pb
from umg_grpc.wire.video.providers.vid_f_protocol import VID_F

PICTURE = image(url="https://example.com/a.png")
SPEECH = pb.VideoMedia(kind=AUDIO, url="https://example.com/a.mp3")
FILM = pb.VideoMedia(kind=VIDEO, url="https://example.com/v.mp4")


@dataclass(frozen=True)
class Accepted:
    model: str
    action: str
    media: tuple[pb.VideoMedia, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)
    sent: dict[str, Any] = field(default_factory=dict)
    """Members of the body besides the model and the prompt."""
    dropped: frozenset[str] = frozenset()

    @property
    def id(self) -> str:
        return f"{self.model} {self.parameters}"


SYNC, OWN = "CVSync2AsyncSubmitTask", "CVSubmitTask"
SPOKEN = {"image_url": PICTURE.url, "audio_url": SPEECH.url}
ACCEPTED = [
    Accepted("jimeng_t2v_v30", SYNC),
    Accepted("jimeng_i2v_first_v30_1080", SYNC, (PICTURE,), sent={"image_urls": [PICTURE.url]}),
    Accepted(
        "jimeng_ti2v_v30_pro", SYNC, parameters={"duration_seconds": 10, "seed": 7}, sent={"frames": 241, "seed": 7}
    ),
    Accepted("jimeng_realman_avatar_picture_omni_v2", OWN, (PICTURE, SPEECH), sent=SPOKEN),
    Accepted(
        *("jimeng_realman_avatar_picture_omni_v15", OWN, (SPEECH, PICTURE)),
        parameters={"duration_seconds": 5, "aspect_ratio": "16:9", "seed": 7},
        sent={**SPOKEN, "seed": 7},
        dropped=frozenset({"parameters.duration_seconds", "parameters.aspect_ratio"}),
    ),
    Accepted(
        *("jimeng_dream_actor_m1_gen_video_cv", SYNC, (PICTURE, FILM)),
        sent={"image_url": PICTURE.url, "video_url": FILM.url},
    ),
]


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
async def test_the_vendor_accepts_a_submission_by_the_action_of_its_model(case: Accepted) -> None:
    made = submission(case.model, *case.media, public=case.model, **case.parameters)
    [(access_key, secret)] = SignedProvider().pairs.items()
    signer = AccessKeySigner(access_key, secret, region="cn-north-1", service="cv")
    async with (
        serve_provider(SignedProvider(plan=["succeeded"])) as visual,
        opened_videos(visual.url, VID_F, signer=signer) as videos,
    ):
        task, report = await videos.submit(made, 10)
        [state] = (await videos.poll([task], 10)).values()
    assert not isinstance(state, UmgError)
    assert state.state == pb.VIDEO_TASK_STATE_SUCCEEDED
    submitted, queried = visual.received
    assert submitted.query["Action"] == case.action
    assert queried.query["Action"] == case.action.replace("SubmitTask", "GetResult")
    body = submitted.json
    assert {name: value for name, value in body.items() if name not in {"req_key", "prompt"}} == case.sent
    assert set(report.dropped) == case.dropped

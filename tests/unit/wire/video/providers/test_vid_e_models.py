"""Submissions of Kling's models, each at the API and the operation that its vendor has for it: bare, and with every
parameter that a caller can state. A simulation with the vendor's members, values and models accepts each.
"""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from tests.support.providers.server import serve_provider
from tests.support.providers.video_e import FamilyEProvider
from tests.support.videos import TASK_ID, VIDEO, image, opened_videos, submission
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.video.providers.vid_e_protocol import VID_E

FILM = pb.VideoMedia(kind=VIDEO, url="https://example.com/v.mp4")
PICTURE = image(url="https://example.com/a.png")
REFERENCES = (image("reference_image"), image("reference_image", url="https://example.com/b.png"))
MOTION = '{"character_orientation":"image"}'


@dataclass(frozen=True)
class Placed:
    model: str
    path: str
    name: str = ""
    """Model in the body, by default the id."""
    media: tuple[pb.VideoMedia, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.model} {self.path}"


OLD = "/v1/videos"
PLACED = [
    Placed(model="kling-v1-6", path=f"{OLD}/text2video"),
    Placed(model="kling-v1-6", path=f"{OLD}/multi-image2video", media=REFERENCES),
    Placed(model="kling-v2-6", path=f"{OLD}/multi-image2video", media=REFERENCES),
    Placed(model="kling-v2-5-turbo", path=f"{OLD}/image2video", media=(PICTURE,)),
    Placed(model="kling-v2.6-t2v", path=f"{OLD}/text2video", name="kling-v2-6"),
    Placed(model="kling-v3.0-i2v", path=f"{OLD}/image2video", name="kling-v3", media=(PICTURE, image())),
    Placed(model="kling-v3-omni", path=f"{OLD}/omni-video"),
    Placed(model="kling-v3-omni", path=f"{OLD}/omni-video", media=(image("first_frame"), *REFERENCES, FILM)),
    Placed(model="kling-video-o1", path=f"{OLD}/omni-video", media=REFERENCES),
    Placed("kling-v2-6-motion-control", f"{OLD}/motion-control", "kling-v2-6", (PICTURE, FILM), {"mode": "pro", "extra_json": MOTION}),
    Placed(model="kling-2.5-turbo", path="/text-to-video/kling-2.5-turbo"),
    Placed(model="kling-2.6", path="/image-to-video/kling-2.6", media=(PICTURE,)),
    Placed(model="kling-3.0-turbo", path="/image-to-video/kling-3.0-turbo", media=(image(),)),
    Placed(model="kling-3.0", path="/text-to-video/kling-3.0"),
    Placed("kling-3.0", "/motion-control/kling-3.0", media=(PICTURE, FILM), parameters={"extra_json": MOTION}),
    Placed("kling-2.6-motion-control", "/motion-control/kling-2.6", media=(PICTURE, FILM), parameters={"extra_json": MOTION}),
    Placed(model="kling-o1", path="/omni-video/kling-o1"),
    Placed(model="kling-o1", path="/omni-video/kling-o1", media=(image("first_frame"), FILM)),
    Placed(model="kling-3.0-omni", path="/omni-video/kling-3.0-omni", media=(*REFERENCES, FILM)),
]  # fmt: skip


@pytest.mark.parametrize("is_full", [False, True], ids=["bare", "with every parameter"])
@pytest.mark.parametrize("case", PLACED, ids=lambda case: case.id)
async def test_a_submission_is_accepted_where_the_vendor_has_its_model(case: Placed, is_full: bool) -> None:
    stated = {"mode": "pro"} | FULL if is_full else {}
    parameters = {**stated, **case.parameters}
    async with serve_provider(FamilyEProvider()) as kling, opened_videos(kling.url, VID_E) as videos:
        made = submission(case.model, *case.media, public=case.model, **parameters)
        task, report = await videos.submit(made, 10)
        found = await videos.find(made, 10)
        [state] = (await videos.poll([task], 10)).values()
    [sent] = [received for received in kling.received if received.method == "POST"]
    assert sent.path == case.path
    assert found is not None
    assert (found.id, found.facts) == (task.id, task.facts)
    assert not isinstance(state, UmgError)
    body = sent.json
    if case.path.startswith(OLD):
        assert body["model_name"] == (case.name or case.model)
    if not is_full:
        assert not report.dropped
        assert {"duration", "aspect_ratio", "sound", "watermark_info"}.isdisjoint(body)
        assert set(body.get("settings", {})) <= {"character_orientation"}
    # each stated parameter is sent or reported
    written = msgspec.json.encode(body).decode()
    for name, value in ((name, value) for name, value in stated.items() if name in WRITTEN):
        assert WRITTEN[name] & words(written) or f"parameters.{name}" in report.dropped, (name, value)


FULL: dict[str, Any] = {
    "duration_seconds": 5,
    "resolution": "1080p",
    "aspect_ratio": "9:16",
    "negative_prompt": "rain",
    "generate_audio": True,
    "watermark": True,
    "seed": 7,
}
WRITTEN = {
    "duration_seconds": {"duration"},
    "resolution": {"resolution"},
    "aspect_ratio": {"aspect_ratio"},
    "negative_prompt": {"negative_prompt"},
    "generate_audio": {"sound", "audio", "keep_original_sound"},
    "watermark": {"watermark_info"},
    "mode": {"mode"},
    "seed": {"seed"},
}
"""Parameter -> the members by which it is sent."""


def words(text: str) -> set[str]:
    return set(text.replace('"', " ").split())


def test_a_newer_model_has_the_newest_api_and_an_unknown_id_that_of_its_form() -> None:
    paths = {
        model: VID_E.encode_create(submission(model)).path
        for model in ("kling-4.0", "kling-4-ultra", "kling-o2", "kling-v9", "relay-3.0", "relay-v3")
    }
    assert paths == {
        "kling-4.0": "/text-to-video/kling-4.0",
        "kling-4-ultra": "/text-to-video/kling-4-ultra",
        "kling-o2": "/omni-video/kling-o2",
        "kling-v9": "/v1/videos/text2video",
        "relay-3.0": "/text-to-video/relay-3.0",
        "relay-v3": "/v1/videos/text2video",
    }
    assert VID_E.encode_query([task_of("kling-o2")]).path == "/tasks?task_ids=1"


def task_of(model: str) -> Any:
    created = b'{"code":0,"data":{"id":"1"}}'
    return VID_E.decode_created(200, {}, created, submission(model, public=TASK_ID))

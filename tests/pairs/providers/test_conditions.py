"""Rules of vendors about two fields, from the entries for videos: refused before sending, with the caller's own field
and the change to make.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import ClientSession

from tests.support.gateways import running
from tests.support.providers.server import KEY, serve_provider
from tests.support.providers.video_e import FamilyEProvider
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.video import ENTRY_FORMATS, VIDEO_PROTOCOLS
from umg_grpc.wire.video.provider_task_types import Submission
from umg_grpc.wire.video.submission_encoding import encode_submission
from umg_grpc.wire.video.video_request_checks import check

UNIFIED, OBJECT, D, G = pb.VIDEO_ENTRY_UNIFIED, pb.VIDEO_ENTRY_VIDEO_OBJECT, pb.VIDEO_ENTRY_D, pb.VIDEO_ENTRY_G
OLD, NEW = pb.VIDEO_ENTRY_E_V1, pb.VIDEO_ENTRY_E_3
A, B = "https://files.example/a.png", "https://files.example/b.png"
FRAMES = {"images": [A, B]}
SOUND = {"metadata": {"sound": True}}


@dataclass(frozen=True)
class Refused:
    id: str
    protocol: str
    model: str
    entry: "pb.VideoEntry.ValueType"
    body: dict[str, Any]
    field: str
    """Path in the caller's body."""
    message: str
    mended: dict[str, Any]
    """Members in place of those of the body, with which it is sent."""
    kind: str = "text-to-video"


REFUSED = [
    Refused(
        id="Kling 2.6: sound without a mode",
        protocol="vidE",
        model="kling-v2-6",
        entry=OLD,
        body={"prompt": "a boat", **SOUND},
        field="mode",
        message="it must be pro with sound on model kling-v2-6; change it or leave out the sound",
        mended={"mode": "pro"},
        kind="text2video",
    ),
    Refused(
        id="Kling 2.6: a last frame in the mode std",
        protocol="vidE",
        model="kling-v2-6",
        entry=OLD,
        body={"prompt": "a boat", **FRAMES, "mode": "std"},
        field="mode",
        message="it must be pro with a last frame on model kling-v2-6; change it or leave out the last frame",
        mended={"mode": "pro"},
        kind="image2video",
    ),
    Refused(
        id="Kling 2.6: a last frame with sound",
        protocol="vidE",
        model="kling-v2-6",
        entry=OLD,
        body={"prompt": "a boat", **FRAMES, **SOUND, "mode": "pro"},
        field="metadata.sound",
        message="it must be false with a last frame on model kling-v2-6; change it or leave out the last frame",
        mended={"metadata": {}},
        kind="image2video",
    ),
    Refused(
        id="Kling 2.6, new API: sound in 720p",
        protocol="vidE",
        model="kling-2.6",
        entry=NEW,
        body={"prompt": "a boat", "settings": {"audio": "native", "resolution": "720p"}},
        field="resolution",
        message="it must be 1080p with sound on model kling-2.6; change it or leave out the sound",
        mended={"settings": {"audio": "native", "resolution": "1080p"}},
    ),
    Refused(
        id="Kling 2.6, new API: a last frame alone",
        protocol="vidE",
        model="kling-2.6",
        entry=NEW,
        body={"prompt": "a boat", **FRAMES},
        field="resolution",
        message="it must be 1080p with a last frame on model kling-2.6",
        mended={"settings": {"resolution": "1080p"}},
        kind="image-to-video",
    ),
    Refused(
        id="Kling 2.6, new API: a last frame with sound",
        protocol="vidE",
        model="kling-2.6",
        entry=NEW,
        body={"prompt": "a boat", **FRAMES, "settings": {"audio": "native", "resolution": "1080p"}},
        field="settings.audio",
        message="it must be false with a last frame on model kling-2.6",
        mended={"settings": {"audio": "off", "resolution": "1080p"}},
        kind="image-to-video",
    ),
    Refused(
        id="Kling 2.6, from the entry of all: sound",
        protocol="vidE",
        model="kling-2.6",
        entry=UNIFIED,
        body={"prompt": "a boat", "generate_audio": True},
        field="resolution",
        message="it must be 1080p with sound on model kling-2.6",
        mended={"mode": "pro"},
    ),
    Refused(
        id="Kling 1.6: a last frame in the mode std",
        protocol="vidE",
        model="kling-v1-6",
        entry=OLD,
        body={"prompt": "a boat", **FRAMES},
        field="mode",
        message="it must be pro with a last frame on model kling-v1-6",
        mended={"mode": "pro"},
        kind="image2video",
    ),
    Refused(
        id="Kling 1: a last frame of 10 s",
        protocol="vidE",
        model="kling-v1",
        entry=OLD,
        body={"prompt": "a boat", **FRAMES, "duration": 10},
        field="duration",
        message="it must be 5 with a last frame on model kling-v1",
        mended={"duration": 5},
        kind="image2video",
    ),
    Refused(
        id="MiniMax: 1080P of 10 s",
        protocol="vidG",
        model="MiniMax-Hailuo-2.3",
        entry=G,
        body={"content": [{"type": "text", "text": "a boat"}], "resolution": "1080P", "duration": 10},
        field="duration",
        message="it must be 6 with resolution 1080P on model MiniMax-Hailuo-2.3",
        mended={"duration": 6},
    ),
    Refused(
        id="MiniMax: 1080P of 10 s, from the entry of all",
        protocol="vidG",
        model="MiniMax-Hailuo-02",
        entry=UNIFIED,
        body={"prompt": "a boat", "resolution": "1080p", "duration": 10},
        field="duration",
        message="it must be 6 with resolution 1080p on model MiniMax-Hailuo-02",
        mended={"resolution": "768p"},
    ),
    Refused(
        id="MiniMax: 512P of a text",
        protocol="vidG",
        model="MiniMax-Hailuo-02",
        entry=UNIFIED,
        body={"prompt": "a boat", "resolution": "512P"},
        field="image",
        message="model MiniMax-Hailuo-02 has resolution 512P only with a first frame; add one or change the resolution",
        mended={"image": A},
    ),
    Refused(
        id="Veo: a large size of 4 s",
        protocol="vidB",
        model="veo-3.1-generate-001",
        entry=OBJECT,
        body={"prompt": "a boat", "size": "1920x1080", "seconds": 4},
        field="seconds",
        message="it must be 8 with resolution 1080p on model veo-3.1-generate-001",
        mended={"seconds": 8},
    ),
    Refused(
        id="Seedance: a size that means a resolution of another model",
        protocol="vidD",
        model="doubao-seedance-2-0-fast-260128",
        entry=UNIFIED,
        body={"prompt": "a boat", "size": "1920x1080"},
        field="size",
        message="it means resolution 1080p, and model doubao-seedance-2-0-fast-260128 has 480p, 720p; change it",
        mended={"size": "1280x720"},
    ),
]


def sent(case: Refused, body: dict[str, Any]) -> None:
    """Encode the submission of a caller's body."""
    path = {"model": case.model, "kind": case.kind}
    given = ENTRY_FORMATS[case.entry].decode_create(msgspec.json.encode({"model": case.model, **body}), path)
    checked = check(given, case.protocol, case.model)
    encode_submission(
        VIDEO_PROTOCOLS[case.protocol],
        Submission(task_id="task_1", model=case.model, request=checked, family=case.protocol),
    )


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_two_fields_that_do_not_fit_are_refused_with_the_field_of_the_caller(case: Refused) -> None:
    with pytest.raises(UmgError) as caught:
        sent(case, case.body)
    error = caught.value
    assert error.reason == pb.ERROR_REASON_INVALID_FIELD
    assert ENTRY_FORMATS[case.entry].wire_path(error.metadata["field"]) == case.field
    assert case.message in error.message
    assert error.failure is None  # another channel of the model may take it
    sent(case, {**case.body, **case.mended})


CHANNEL = """\
channels:
- {name: kling, protocols: [vidE], base_url: "%s", api_key: "%s", models: [kling-v2-6]}
"""


async def test_a_caller_reads_the_field_to_change_before_the_vendor_gets_a_task(tmp_path: Path) -> None:
    async with serve_provider(FamilyEProvider()) as kling:
        config = CHANNEL % (kling.url, KEY)
        async with running(config, tmp_path) as gateway, ClientSession(headers=gateway.headers) as session:
            body = {"model": "kling-v2-6", "prompt": "a boat", **SOUND}
            async with session.post(f"{gateway.url}/vidE/v1/videos/text2video", json=body) as refused:
                answer = await refused.json()
            async with session.post(f"{gateway.url}/vidE/v1/videos/text2video", json={**body, "mode": "pro"}) as taken:
                accepted = taken.status
    assert (refused.status, accepted) == (400, 200)
    assert answer["message"].startswith("`mode`: it must be pro with sound on model kling-v2-6")
    assert kling.submissions == 1

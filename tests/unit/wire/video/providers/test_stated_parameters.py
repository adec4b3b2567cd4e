"""Bodies of bare submissions: a vendor's model is sent the stated parameters alone, a neutral one also defaults."""

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from tests.support.videos import TASK_ID, submission
from umg_grpc.wire.video.provider_protocol_interface import VideoProtocol
from umg_grpc.wire.video.providers.vid_a_protocol import VID_A
from umg_grpc.wire.video.providers.vid_b_protocol import VID_B
from umg_grpc.wire.video.providers.vid_c_protocol import VID_C
from umg_grpc.wire.video.providers.vid_d_protocol import VID_D
from umg_grpc.wire.video.providers.vid_e_protocol import VID_E
from umg_grpc.wire.video.providers.vid_f_protocol import VID_F
from umg_grpc.wire.video.providers.vid_g_protocol import VID_G


@dataclass(frozen=True)
class Bare:
    id: str
    protocol: VideoProtocol
    model: str
    body: dict[str, Any]


TEXT = [{"type": "text", "text": "a paper boat"}]
OWN_ID = {"external_task_id": TASK_ID}
BARE = [
    Bare(
        id="vidB",
        protocol=VID_B,
        model="veo-3.1-generate-001",
        body={"instances": [{"prompt": "a paper boat"}], "parameters": {}},
    ),
    Bare(
        id="vidC",
        protocol=VID_C,
        model="wan2.6-t2v",
        body={"model": "wan2.6-t2v", "input": {"prompt": "a paper boat"}, "parameters": {}},
    ),
    Bare(
        id="vidD",
        protocol=VID_D,
        model="doubao-seedance-2-0-260128",
        body={"model": "doubao-seedance-2-0-260128", "content": TEXT},
    ),
    Bare(
        id="vidE, old API",
        protocol=VID_E,
        model="kling-v2-6",
        body={"model_name": "kling-v2-6", "prompt": "a paper boat", **OWN_ID},
    ),
    Bare(
        id="vidE, new API",
        protocol=VID_E,
        model="kling-3.0",
        body={"prompt": "a paper boat", "settings": {}, "options": OWN_ID},
    ),
    Bare(
        id="vidF",
        protocol=VID_F,
        model="jimeng_t2v_v30",
        body={"req_key": "jimeng_t2v_v30", "prompt": "a paper boat"},
    ),
    Bare(id="vidG v2", protocol=VID_G, model="MiniMax-H3", body={"model": "MiniMax-H3", "content": TEXT}),
    Bare(
        id="vidG v1",
        protocol=VID_G,
        model="MiniMax-Hailuo-02",
        body={"model": "MiniMax-Hailuo-02", "prompt": "a paper boat"},
    ),
]


@pytest.mark.parametrize("case", BARE, ids=lambda case: case.id)
def test_a_prompt_alone_is_all_that_the_model_of_a_vendor_is_sent(case: Bare) -> None:
    encoded = case.protocol.encode_create(submission(case.model, public=case.model))
    assert msgspec.json.decode(encoded.body) == case.body
    assert not encoded.report.dropped


def test_a_form_has_the_prompt_alone_for_the_model_of_a_vendor() -> None:
    body = VID_A.encode_create(submission("sora-2", public="sora-2")).body
    assert [part.partition(b'"')[0] for part in body.split(b'name="')[1:]] == [b"model", b"prompt"]

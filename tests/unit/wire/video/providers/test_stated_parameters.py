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
    Bare("vidB", VID_B, "veo-3.1-generate-001", {"instances": [{"prompt": "a paper boat"}], "parameters": {}}),
    Bare("vidC", VID_C, "wan2.6-t2v", {"model": "wan2.6-t2v", "input": {"prompt": "a paper boat"}, "parameters": {}}),
    Bare("vidD", VID_D, "doubao-seedance-2-0-260128", {"model": "doubao-seedance-2-0-260128", "content": TEXT}),
    Bare("vidE, old API", VID_E, "kling-v2-6", {"model_name": "kling-v2-6", "prompt": "a paper boat", **OWN_ID}),
    Bare("vidE, new API", VID_E, "kling-3.0", {"prompt": "a paper boat", "settings": {}, "options": OWN_ID}),
    Bare("vidF", VID_F, "jimeng_t2v_v30", {"req_key": "jimeng_t2v_v30", "prompt": "a paper boat"}),
    Bare(id="vidG v2", protocol=VID_G, model="MiniMax-H3", body={"model": "MiniMax-H3", "content": TEXT}),
    Bare("vidG v1", VID_G, "MiniMax-Hailuo-02", {"model": "MiniMax-Hailuo-02", "prompt": "a paper boat"}),
]  # fmt: skip


@pytest.mark.parametrize("case", BARE, ids=lambda case: case.id)
def test_a_prompt_alone_is_all_that_the_model_of_a_vendor_is_sent(case: Bare) -> None:
    encoded = case.protocol.encode_create(submission(case.model, public=case.model))
    assert msgspec.json.decode(encoded.body) == case.body
    assert not encoded.report.dropped


def test_a_form_has_the_prompt_alone_for_the_model_of_a_vendor() -> None:
    body = VID_A.encode_create(submission("sora-2", public="sora-2")).body
    assert [part.partition(b'"')[0] for part in body.split(b'name="')[1:]] == [b"model", b"prompt"]

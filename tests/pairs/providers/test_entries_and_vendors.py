"""Bare and full submissions of Kling, MiniMax and Jimeng from the entries for videos, against the simulations of the
vendors, which refuse unknown members, values and models.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest

from tests.support.providers.server import ReceivedRequest
from tests.support.providers.video_e import FamilyEProvider
from tests.support.providers.video_f import SignedProvider
from tests.support.providers.video_g import TwoVersionProvider
from tests.support.providers.video_server import VideoProvider
from umg_grpc.service.pipeline import schema_validation
from umg_grpc.v1 import pb
from umg_grpc.wire.video import ENTRY_FORMATS, VIDEO_PROTOCOLS
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest
from umg_grpc.wire.video.provider_task_types import Submission
from umg_grpc.wire.video.submission_encoding import encode_submission
from umg_grpc.wire.video.video_request_checks import check

TEXT = {"type": "text", "text": "a boat"}
BARE: list[tuple[str, "pb.VideoEntry.ValueType", dict[str, Any]]] = [
    ("unified", pb.VIDEO_ENTRY_UNIFIED, {"prompt": "a boat"}),
    ("video object", pb.VIDEO_ENTRY_VIDEO_OBJECT, {"prompt": "a boat"}),
    ("D", pb.VIDEO_ENTRY_D, {"content": [TEXT]}),
    ("E v1", pb.VIDEO_ENTRY_E_V1, {"prompt": "a boat"}),
    ("E 3.0", pb.VIDEO_ENTRY_E_3, {"prompt": "a boat"}),
    ("F", pb.VIDEO_ENTRY_F, {"prompt": "a boat"}),
    ("G", pb.VIDEO_ENTRY_G, {"content": [TEXT]}),
]
FULL: list[tuple[str, "pb.VideoEntry.ValueType", dict[str, Any]]] = [
    (
        *("unified", pb.VIDEO_ENTRY_UNIFIED),
        {
            "prompt": "a boat",
            "size": "1280x720",
            "negative_prompt": "rain",
            "generate_audio": True,
            "seed": 7,
            "watermark": True,
            "fps": 24,
            "mode": "pro",
            "prompt_extend": False,
        },
    ),
    ("video object", pb.VIDEO_ENTRY_VIDEO_OBJECT, {"prompt": "a boat", "size": "1280x720"}),
    ("D", pb.VIDEO_ENTRY_D, {"content": [TEXT], "ratio": "9:16", "seed": 7, "watermark": False}),
    (
        *("E v1", pb.VIDEO_ENTRY_E_V1),
        {"prompt": "a boat", "mode": "pro", "negative_prompt": "rain", "metadata": {"sound": True, "cfg_scale": 0.5}},
    ),
    ("F", pb.VIDEO_ENTRY_F, {"prompt": "a boat", "seed": 7, "frames": 121, "aspect_ratio": "1:1"}),
    ("G", pb.VIDEO_ENTRY_G, {"content": [TEXT], "ratio": "1:1", "aigc_watermark": False}),
]


@dataclass(frozen=True)
class Vendor:
    protocol: str
    simulation: type[VideoProvider]
    seconds: dict[str, int]
    """Model of a text alone -> a length that the vendor has for it."""


KLING = {
    "kling-v1-6": 5,
    "kling-v2-5-turbo": 10,
    "kling-v2-6": 5,
    "kling-v3": 7,
    "kling-v3-omni": 15,
    "kling-video-o1": 3,
    "kling-2.5-turbo": 10,
    "kling-2.6": 5,
    "kling-3.0": 15,
    "kling-3.0-turbo": 3,
    "kling-o1": 8,
    "kling-3.0-omni": 4,
}
JIMENG = {"jimeng_t2v_v30": 5, "jimeng_t2v_v30_1080p": 10, "jimeng_ti2v_v30_pro": 5}
MINIMAX = {"MiniMax-H3": 15, "MiniMax-H3-Max": 4, "MiniMax-Hailuo-2.3": 10, "MiniMax-Hailuo-02": 6, "T2V-01": 6}
VENDORS = [
    Vendor("vidE", FamilyEProvider, KLING),
    Vendor("vidF", SignedProvider, JIMENG),
    Vendor("vidG", TwoVersionProvider, MINIMAX),
]
KINDS = {pb.VIDEO_ENTRY_E_V1: "text2video"}
ACTION = {"Action": "CVSync2AsyncSubmitTask", "Version": "2022-08-31"}
LENGTH = {pb.VIDEO_ENTRY_VIDEO_OBJECT: "seconds"}
"""Entry -> its name of the length, unless it is `duration`."""
MODELS = [pytest.param(vendor, model, id=model) for vendor in VENDORS for model in vendor.seconds]


def accepted(
    vendor: Vendor, model: str, entry: "pb.VideoEntry.ValueType", body: dict[str, Any]
) -> tuple[dict[str, Any], ProviderRequest]:
    """Return the body that a vendor gets of a caller's body, and the whole request, which its simulation accepts."""
    named = {"req_key" if entry == pb.VIDEO_ENTRY_F else "model": model}
    path = {"model": model, "kind": KINDS.get(entry, "text-to-video"), **ACTION}
    given = ENTRY_FORMATS[entry].decode_create(msgspec.json.encode({**named, **body}), path)
    schema_validation.check(given)
    checked = check(given, vendor.protocol, model)
    protocol = VIDEO_PROTOCOLS[vendor.protocol]
    sent = encode_submission(protocol, Submission(task_id="task_1", model=model, request=checked))
    url = urlsplit(sent.path)
    received = ReceivedRequest(
        method=sent.method, path=url.path, query=dict(parse_qsl(url.query)), headers={}, body=sent.body
    )
    simulation = vendor.simulation()
    assert simulation.is_submission(received)
    simulation.read(received)
    return received.json, sent


@pytest.mark.parametrize(("entry", "body"), [pytest.param(*case[1:], id=case[0]) for case in BARE])
@pytest.mark.parametrize(("vendor", "model"), MODELS)
def test_a_bare_submission_is_the_prompt_alone(
    vendor: Vendor, model: str, entry: "pb.VideoEntry.ValueType", body: dict[str, Any]
) -> None:
    sent, request = accepted(vendor, model, entry, body)
    assert not request.report.dropped
    own = {"model", "model_name", "req_key", "prompt", "content", "contents", "external_task_id", "settings", "options"}
    assert set(sent) <= own
    assert not sent.get("settings")
    assert set(sent.get("options", {})) <= {"external_task_id"}


@pytest.mark.parametrize(("entry", "body"), [pytest.param(*case[1:], id=case[0]) for case in FULL])
@pytest.mark.parametrize(("vendor", "model"), MODELS)
def test_each_stated_member_is_sent_or_reported(
    vendor: Vendor, model: str, entry: "pb.VideoEntry.ValueType", body: dict[str, Any]
) -> None:
    length = {} if entry == pb.VIDEO_ENTRY_F else {LENGTH.get(entry, "duration"): vendor.seconds[model]}
    sent, request = accepted(vendor, model, entry, {**body, **length})
    dropped = set(request.report.dropped)
    values = {str(value) for value in leaves(sent)}
    if entry == pb.VIDEO_ENTRY_F:
        assert "121" in values or "parameters.frames" in dropped
    else:
        assert {str(vendor.seconds[model]), str(vendor.seconds[model] * 24 + 1)} & values
    if "seed" in body:
        assert "7" in values or "parameters.seed" in dropped
    if "negative_prompt" in body:
        assert "rain" in values or "parameters.negative_prompt" in dropped


def leaves(value: Any) -> list[Any]:
    """Return all values in a JSON value that are neither objects nor lists."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return [value] if items is None else [leaf for item in items for leaf in leaves(item)]

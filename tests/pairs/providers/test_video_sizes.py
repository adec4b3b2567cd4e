"""Sizes in pixels of the entries for videos, and the resolution and ratio that each vendor gets for them."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.pairs.providers.video_bodies import sent
from umg_grpc.v1 import pb

SIZE = "parameters.size"
PICTURE = "https://example.com/a.png"


@dataclass(frozen=True)
class Case:
    id: str
    protocol: str
    model: str
    size: str
    members: dict[str, Any]
    """Members of the vendor's body, or of its object of parameters, that state the size."""
    dropped: dict[str, str | None] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)


CASES = [
    Case(
        id="Kling's new API gets the resolution and the ratio",
        protocol="vidE",
        model="kling-3.0",
        size="1920x1080",
        members={"resolution": "1080p", "aspect_ratio": "16:9"},
    ),
    Case(
        id="Kling's new API gets the nearest one of its three ratios",
        protocol="vidE",
        model="kling-3.0",
        size="1680x720",
        members={"resolution": "720p", "aspect_ratio": "16:9"},
        dropped={SIZE: "720p 16:9"},
    ),
    Case(
        id="Kling's new API gets the resolution alone with a first frame",
        protocol="vidE",
        model="kling-3.0",
        size="1280x720",
        members={"resolution": "720p"},
        dropped={SIZE: "720p"},
        body={"image": PICTURE},
    ),
    Case(
        id="Kling's old API gets the mode and the ratio",
        protocol="vidE",
        model="kling-v2-6",
        size="1080x1920",
        members={"mode": "pro", "aspect_ratio": "9:16"},
    ),
    Case(
        id="Kling's old API gets the nearest one of its three ratios",
        protocol="vidE",
        model="kling-v2-6",
        size="1024x768",
        members={"mode": "std", "aspect_ratio": "1:1"},
        dropped={SIZE: "720p 1:1"},
    ),
    Case(
        id="Kling's old API gets a mode of the model",
        protocol="vidE",
        model="kling-v2-6",
        size="3840x2160",
        members={"mode": "pro", "aspect_ratio": "16:9"},
        dropped={SIZE: "1080p 16:9"},
    ),
    Case(
        id="Kling's old API gets 4k of a model that has it",
        protocol="vidE",
        model="kling-v3",
        size="3840x2160",
        members={"mode": "4k", "aspect_ratio": "16:9"},
    ),
    Case(
        id="Kling's new API gets a resolution of the model",
        protocol="vidE",
        model="kling-2.6",
        size="3840x2160",
        members={"resolution": "1080p", "aspect_ratio": "16:9"},
        dropped={SIZE: "1080p 16:9"},
    ),
    Case(
        id="MiniMax gets its nearest resolution",
        protocol="vidG",
        model="MiniMax-H3",
        size="1280x720",
        members={"resolution": "768P", "ratio": "16:9"},
        dropped={SIZE: "768P 16:9"},
    ),
    Case(
        id="MiniMax gets its own size exactly",
        protocol="vidG",
        model="MiniMax-H3",
        size="2560x1440",
        members={"resolution": "2K", "ratio": "16:9"},
    ),
    Case(
        id="MiniMax gets a resolution of the model",
        protocol="vidG",
        model="MiniMax-H3-Max",
        size="1920x1080",
        members={"resolution": "768P", "ratio": "16:9"},
        dropped={SIZE: "768P 16:9"},
    ),
    Case(
        id="Jimeng gets the ratio alone",
        protocol="vidF",
        model="jimeng_t2v_v30",
        size="1920x1080",
        members={"aspect_ratio": "16:9"},
        dropped={SIZE: "16:9"},
    ),
    Case(
        id="Veo gets a size of its own",
        protocol="vidB",
        model="veo-3.1-generate-001",
        size="1280x720",
        members={"resolution": "720p", "aspectRatio": "16:9"},
    ),
    Case(
        id="Veo gets the nearest one of its two ratios",
        protocol="vidB",
        model="veo-3.1-generate-001",
        size="720x720",
        members={"resolution": "720p", "aspectRatio": "16:9"},
        dropped={SIZE: "720p 16:9"},
    ),
    Case(
        id="Wan 2.7 gets a tier that it has",
        protocol="vidC",
        model="wan2.7-t2v",
        size="1000x500",
        members={"resolution": "720P", "ratio": "16:9"},
        dropped={SIZE: "720P 16:9"},
    ),
    Case(
        id="xAI gets a ratio that it has alone",
        protocol="vidA",
        model="grok-imagine-video",
        size="1080x720",
        members={"resolution": "720p", "aspect_ratio": "3:2"},
    ),
    Case(
        id="xAI gets a resolution of the model",
        protocol="vidA",
        model="grok-imagine-video",
        size="1920x1080",
        members={"resolution": "720p", "aspect_ratio": "16:9"},
        dropped={SIZE: "720p 16:9"},
    ),
    Case(
        id="xAI gets 720p with a reference image",
        protocol="vidA",
        model="grok-imagine-video-1.5",
        size="1920x1080",
        members={"resolution": "720p", "aspect_ratio": "16:9"},
        dropped={SIZE: "720p 16:9"},
        body={"images": [PICTURE, PICTURE, PICTURE]},
    ),
]
NAMES = ("resolution", "mode", "aspect_ratio", "aspectRatio", "ratio", "size")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_nearest_size_is_sent_and_a_difference_reported(case: Case) -> None:
    body, request = sent(
        case.protocol,
        case.model,
        pb.VIDEO_ENTRY_UNIFIED,
        {"prompt": "a boat", "size": case.size, **case.body},
    )
    options = body.get("settings") or body.get("parameters") or body
    assert {name: options[name] for name in NAMES if name in options} == case.members
    assert request.report.dropped == case.dropped

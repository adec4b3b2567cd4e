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
    Case("Kling's new API gets the resolution and the ratio", "vidE", "kling-3.0", "1920x1080", {"resolution": "1080p", "aspect_ratio": "16:9"}),
    Case(
        id="Kling's new API gets the nearest one of its three ratios",
        protocol="vidE",
        model="kling-3.0",
        size="1680x720",
        members={"resolution": "720p", "aspect_ratio": "16:9"},
        dropped={SIZE: "720p 16:9"},
    ),
    Case("Kling's new API gets the resolution alone with a first frame", "vidE", "kling-3.0", "1280x720", {"resolution": "720p"}, {SIZE: "720p"}, {"image": PICTURE}),
    Case("Kling's old API gets the mode and the ratio", "vidE", "kling-v2-6", "1080x1920", {"mode": "pro", "aspect_ratio": "9:16"}),
    Case("Kling's old API gets the nearest one of its three ratios", "vidE", "kling-v2-6", "1024x768", {"mode": "std", "aspect_ratio": "1:1"}, {SIZE: "720p 1:1"}),
    Case("Kling's old API gets a mode of the model", "vidE", "kling-v2-6", "3840x2160", {"mode": "pro", "aspect_ratio": "16:9"}, {SIZE: "1080p 16:9"}),
    Case("Kling's old API gets 4k of a model that has it", "vidE", "kling-v3", "3840x2160", {"mode": "4k", "aspect_ratio": "16:9"}),
    Case("Kling's new API gets a resolution of the model", "vidE", "kling-2.6", "3840x2160", {"resolution": "1080p", "aspect_ratio": "16:9"}, {SIZE: "1080p 16:9"}),
    Case("MiniMax gets its nearest resolution", "vidG", "MiniMax-H3", "1280x720", {"resolution": "768P", "ratio": "16:9"}, {SIZE: "768P 16:9"}),
    Case("MiniMax gets its own size exactly", "vidG", "MiniMax-H3", "2560x1440", {"resolution": "2K", "ratio": "16:9"}),
    Case("MiniMax gets a resolution of the model", "vidG", "MiniMax-H3-Max", "1920x1080", {"resolution": "768P", "ratio": "16:9"}, {SIZE: "768P 16:9"}),
    Case("Jimeng gets the ratio alone", "vidF", "jimeng_t2v_v30", "1920x1080", {"aspect_ratio": "16:9"}, {SIZE: "16:9"}),
    Case("Veo gets a size of its own", "vidB", "veo-3.1-generate-001", "1280x720", {"resolution": "720p", "aspectRatio": "16:9"}),
    Case("Veo gets the nearest one of its two ratios", "vidB", "veo-3.1-generate-001", "720x720", {"resolution": "720p", "aspectRatio": "16:9"}, {SIZE: "720p 16:9"}),
    Case("Wan 2.7 gets a tier that it has", "vidC", "wan2.7-t2v", "1000x500", {"resolution": "720P", "ratio": "16:9"}, {SIZE: "720P 16:9"}),
    Case("xAI gets a ratio that it has alone", "vidA", "grok-imagine-video", "1080x720", {"resolution": "720p", "aspect_ratio": "3:2"}),
    Case("xAI gets a resolution of the model", "vidA", "grok-imagine-video", "1920x1080", {"resolution": "720p", "aspect_ratio": "16:9"}, {SIZE: "720p 16:9"}),
    Case(
        id="xAI gets 720p with a reference image",
        protocol="vidA",
        model="grok-imagine-video-1.5",
        size="1920x1080",
        members={"resolution": "720p", "aspect_ratio": "16:9"},
        dropped={SIZE: "720p 16:9"},
        body={"images": [PICTURE, PICTURE, PICTURE]},
    ),
]  # fmt: skip
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

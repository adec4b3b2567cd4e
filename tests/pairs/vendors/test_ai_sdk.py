"""Rules of the fake providers of Ark, DashScope and xAI, and the product's resolutions of sizes, against the AI SDK's
packages for these vendors.
"""

import re

import msgspec
import pytest

from tests.pairs.vendors.npm_sources import ALIBABA, BYTEDANCE, XAI, literals, sizes
from tests.support.providers import ark_sdk
from tests.support.providers.video_c_rules import RATIOS, SERIES
from tests.support.providers.video_xai import EDITS, GENERATIONS, MEMBERS
from tests.support.videos import submission
from umg_grpc.knowledge.task_state_words import ALL_PROTOCOLS, TASK_WORDS
from umg_grpc.wire.video.providers.vid_c_protocol import VID_C
from umg_grpc.wire.video.providers.vid_d_protocol import VID_D
from umg_grpc.wire.video.submission_encoding import encode_submission

MEMBER = re.compile(r"body\.(\w+) = ")
WORD = re.compile(r"""[sS]tatus === ["'](\w+)["']""")
OF_CALLERS = {"user", "reference_audios"}
"""Members of xAI that the gateway does not send of itself."""


def bytedance() -> tuple[str, str]:
    """Return the code of the models of images, and that of videos."""
    images, _, videos = BYTEDANCE.text("dist/index.mjs").partition("// src/bytedance-video-model.ts")
    return images, videos


def test_members_and_values_of_ark_are_in_the_rules() -> None:
    images, videos = bytedance()
    assert {"ratio", "draft"} <= set(MEMBER.findall(videos)) <= set(ark_sdk.TASK_MEMBERS)
    assert {"image", "size"} <= set(MEMBER.findall(images)) <= {*ark_sdk.IMAGE_MEMBERS, "image"}
    assert set(literals(videos, "serviceTier: z3.enum([")) == ark_sdk.TIERS
    roles = {(kind, role) for kind, roles in ark_sdk.MEDIA_ROLES.items() for role in roles}
    sent = set(re.findall(r'type: "(\w+_url)",[^}]*\{ url[^}]*\},\s*role: "(\w+)"', videos))
    assert {role for _, role in sent} >= {"last_frame", "reference_video", "reference_audio"}
    assert sent <= roles
    for path in (ark_sdk.TASKS, ark_sdk.IMAGES):
        assert f"{path}`" in images + videos


def test_the_words_of_a_task_have_their_meaning() -> None:
    _, videos = bytedance()
    assert {word: TASK_WORDS["vidD"][word] for word in WORD.findall(videos)} == {
        "succeeded": "done",
        "failed": "failed",
    }
    words = TASK_WORDS["vidA"] | TASK_WORDS[ALL_PROTOCOLS]
    found = {word: words[word] for word in WORD.findall(XAI.text("src/xai-video-model.ts"))}
    assert found == {"done": "done", "expired": "expired", "failed": "failed"}


SIZES = ("480p", "720p", "1080p")


def test_a_size_has_the_resolution_that_the_package_maps_it_to() -> None:
    _, videos = bytedance()
    of_ark = sizes(videos, "RESOLUTION_MAP = {")
    assert set(of_ark.values()) == set(SIZES)
    for size, resolution in of_ark.items():
        body = msgspec.json.decode(encode_submission(VID_D, submission("seedance-1-5-pro-251215", size=size)).body)
        assert body["resolution"] == resolution, size
    of_wan = sizes(ALIBABA.text("src/alibaba-video-model.ts"), "resolutionTierMap: Record<string, string> = {")
    assert set(of_wan.values()) == set(SIZES)
    for size, resolution in of_wan.items():
        body = msgspec.json.decode(encode_submission(VID_C, submission("wan3.0-video", size=size)).body)
        assert body["parameters"]["resolution"].lower() == resolution, size


def test_kinds_of_media_and_ratios_of_wan_are_in_the_rules() -> None:
    text = ALIBABA.text("src/alibaba-video-model.ts")
    assert set(literals(text, "supportedRatios = new Set([")) == set(RATIOS)
    known = {kind for row in SERIES for kind in row.media}
    assert set(literals(text, "type: z.enum([")) <= known


@pytest.mark.parametrize("path", [GENERATIONS, EDITS])
def test_members_of_xai_are_those_of_the_package(path: str) -> None:
    text = XAI.text("src/xai-video-model.ts")
    members = {*MEMBER.findall(text), "model", "prompt"}
    assert set(MEMBERS[path]) <= members
    assert members - OF_CALLERS == {*MEMBERS[GENERATIONS], *MEMBERS[EDITS]}
    assert f"{path.removeprefix('/v1')}`" in text

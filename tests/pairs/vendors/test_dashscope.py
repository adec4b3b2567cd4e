"""Rules of the fake providers of DashScope, and the product's words and paths, against the vendor's SDK."""

from tests.pairs.vendors.wheel_modules import DASHSCOPE as SDK
from tests.support.providers.images import dashscope as images
from tests.support.providers.video_c_rules import INPUTS, PARAMETERS, SERIES, VIDEO_PATH, VOICE
from umg_grpc.knowledge.task_state_words import TASK_WORDS
from umg_grpc.knowledge.video_member_places import MEDIA_ITEM, VIDEO_PLACES
from umg_grpc.wire.images.providers import dashscope_images
from umg_grpc.wire.video.providers.vid_c_requests import INPUT_FIELDS

VIDEOS, CONSTANTS, IMAGES = "aigc/video_synthesis.py", "common/constants.py", "v2/resources/images.py"
ONLY_IN_EXAMPLES = {"audio"}
"""Members of `parameters` without an argument, which the SDK passes through."""
OF_RELAYS = {"ref_images_url"}
"""Member of `input` from before the SDK's lists."""


def test_members_and_types_of_the_rules_are_in_the_sdk() -> None:
    known = set(SDK.arguments(VIDEOS, "call")) | set(SDK.arguments(VIDEOS, "_get_input"))
    assert set(INPUTS) <= known
    assert set(PARAMETERS) - ONLY_IN_EXAMPLES <= known
    kinds = SDK.constants(VIDEOS, "MediaType")
    assert {kind for row in SERIES for kind in row.media} | {VOICE} == kinds
    assert {
        place.removeprefix(MEDIA_ITEM) for row in VIDEO_PLACES for place in row.media.values() if MEDIA_ITEM in place
    } <= kinds
    assert known >= INPUT_FIELDS - OF_RELAYS
    assert f"/api/v1/services/{SDK.text_of('v2/resources/videos.py', 'SERVICE')}" == VIDEO_PATH


def test_every_state_of_the_sdk_has_a_meaning_and_no_other_is_of_the_vendor() -> None:
    states = {state.lower() for state in SDK.constants(CONSTANTS, "TaskStatus")}
    assert set(TASK_WORDS["vidC"]) == set(TASK_WORDS["dashscope_images"]) == states
    assert TASK_WORDS["vidC"]["unknown"] == "expired"


def test_the_paths_of_images_are_those_of_the_sdk() -> None:
    services = {
        "SERVICE": dashscope_images.SYNTHESIS_PATH,
        "MULTIMODAL_SERVICE": dashscope_images.GENERATION_PATH,
        "TASK_SERVICE": dashscope_images.TASK_GENERATION,
    }
    for name, path in services.items():
        assert path == f"/api/v1/services/{SDK.text_of(IMAGES, name)}"
    assert {images.SYNC, images.ASYNC, images.ASYNC_MESSAGES} == set(services.values())
    assert set(images.PARAMETERS) <= set(SDK.arguments(IMAGES, "_build_multimodal_parameters"))

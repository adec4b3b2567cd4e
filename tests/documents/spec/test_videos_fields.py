"""Video document: the fields of every submission, their values, defaults, ranges and errors."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest

from tests.documents.spec.video_callers import (
    ADDRESS,
    B_3,
    B_3_FAST,
    B_31,
    C_IMAGE,
    C_TEXT,
    D_1,
    D_1_5,
    D_2,
    D_2_FAST,
    D_PATH,
    D_SILENT,
    E_MODEL,
    F_MODEL,
    F_SUBMIT,
    G_SUBMIT,
    IMAGE_2,
    IMAGE_3,
    OBJECT,
    OMNI,
    PNG,
    STALLED,
    TEXT_2,
    TEXT_3,
    UNIFIED,
    A,
    Videos,
    d_1,
    d_2,
    data_url,
    g,
    shown,
    task_id_of,
    words,
)
from umg_grpc.knowledge.families.video_model_rules import DOCUMENTED_MODELS

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROMPT = {"prompt": STALLED}
FIRST, LAST, REFERENCE = 1, 2, 3
CLIP = "https://example.com/boat.mp4"
A_BODY, B_BODY = {"model": A, **PROMPT}, {"model": B_3, **PROMPT}
C_BODY, E_BODY = {"model": C_TEXT, **PROMPT}, {"model": E_MODEL, **PROMPT}
E_3, E_3_IMAGE = f"{TEXT_3}/vidE-3.0", f"{IMAGE_3}/vidE-3.0"
F_BODY = {"req_key": F_MODEL, **PROMPT}


async def accepted(videos: Videos, path: str, *cases: tuple[Mapping[str, Any], Mapping[str, Any]]) -> None:
    """Submit bodies, and compare the parameters of their tasks."""
    for body, expected in cases:
        parameters = await videos.parameters(path, body)
        assert {name: getattr(parameters, name) for name in expected} == expected, body


async def refused(videos: Videos, path: str, *bodies: Mapping[str, Any], names: str = "") -> None:
    """Submit bodies, which must be refused by an error that names the field."""
    for body in bodies:
        error = await videos.refuse(path, body)
        assert names in error["message"], (body, error)


async def roles(videos: Videos, path: str, body: Mapping[str, Any]) -> list[int]:
    return [medium.role for medium in (await videos.parameters(path, body)).media]


# --- models


async def test_videos_every_model_is_accepted_in_its_entry(videos: Videos) -> None:
    for model in sorted(DOCUMENTED_MODELS):
        image = {"image": ADDRESS} if "i2v" in model else {}
        if model.startswith("vidD-1-"):
            items = [shown("first_frame")] if "i2v" in model else []
            await videos.submit(UNIFIED, d_1(STALLED, model, *items))
        elif model.startswith("vidD"):
            await videos.submit(D_PATH, d_2() | {"model": model})
        elif model.startswith("vidE-3.0"):
            kind = "omni-video" if model.endswith("omni") else "text-to-video"
            await videos.submit(f"/vidE/{kind}/{model}", PROMPT)
        elif model.startswith("vidE"):
            await videos.submit(TEXT_2, {"model": model, **PROMPT})
        elif model.startswith(("vidF", "vidG")):
            await videos.submit(F_SUBMIT if model == F_MODEL else G_SUBMIT, F_BODY if model == F_MODEL else g())
        else:
            await videos.submit(UNIFIED, {"model": model, **PROMPT, **image})


async def test_videos_a_model_of_another_entry_is_refused(videos: Videos) -> None:
    await refused(videos, UNIFIED, {**A_BODY, "model": E_MODEL}, {**A_BODY, "model": "vidG-H3"}, names="model")
    await refused(videos, OBJECT, {**A_BODY, "model": B_3}, names="model")
    await refused(videos, TEXT_2, {**E_BODY, "model": "vidE-3.0"}, names="model")
    await refused(videos, F_SUBMIT, {"req_key": A, **PROMPT}, names="req_key")
    await refused(videos, G_SUBMIT, g() | {"model": A}, names="model")
    await refused(videos, f"{TEXT_3}/vidE-3.0-omni", PROMPT, names="vidE-3.0-omni")
    await refused(videos, "/vidE/omni-video/vidE-3.0", PROMPT, names="vidE-3.0")


async def test_videos_an_unknown_model_is_404_with_its_id(videos: Videos) -> None:
    for path, body in (
        (UNIFIED, {**A_BODY, "model": "no-such-model"}),
        (OBJECT, {**A_BODY, "model": "no-such-model"}),
        (TEXT_2, {**E_BODY, "model": "no-such-model"}),
        (f"{TEXT_3}/no-such-model", PROMPT),
        (F_SUBMIT, {**F_BODY, "req_key": "no-such-model"}),
        (G_SUBMIT, g() | {"model": "no-such-model"}),
    ):
        assert "no-such-model" in (await videos.refuse(path, body, status=404))["message"]


# --- unified, all families


async def test_videos_unified_model_and_prompt(videos: Videos) -> None:
    await accepted(videos, UNIFIED, (A_BODY, {"prompt": STALLED}))
    await refused(videos, UNIFIED, PROMPT, {**A_BODY, "model": ""}, {**A_BODY, "model": 1}, names="model")
    await refused(videos, UNIFIED, {"model": A}, {**A_BODY, "prompt": 1}, names="prompt")


async def test_videos_unified_image_and_images(videos: Videos) -> None:
    for image in (ADDRESS, data_url(), data_url().partition(",")[2]):
        assert await roles(videos, UNIFIED, {**A_BODY, "image": image}) == [FIRST]
    assert await roles(videos, UNIFIED, {"model": B_31, **PROMPT, "images": [ADDRESS, data_url()]}) == [FIRST, LAST]
    wrong = ("no image", "file:///etc/passwd", 1, {"url": ADDRESS}, "data:image/png;base64,")
    await refused(videos, UNIFIED, *({**A_BODY, "image": image} for image in wrong), names="image")


async def test_videos_unified_metadata_is_passed_through(videos: Videos) -> None:
    metadata = {"negative_prompt": "rain", "external_task_id": "spec-unified", "list": [1]}
    task = await videos.task(task_id_of((await videos.submit(UNIFIED, {**A_BODY, "metadata": metadata})).body))
    assert (task.parameters.negative_prompt, task.external_task_id) == ("rain", "spec-unified")
    assert json.loads(task.parameters.extra_json) == {"list": [1]}
    await refused(videos, UNIFIED, {**A_BODY, "metadata": []}, names="metadata")


# --- family A


async def test_videos_family_a_seconds(videos: Videos) -> None:
    await accepted(
        videos,
        UNIFIED,
        (A_BODY, {"duration_seconds": 4}),
        *(({**A_BODY, "seconds": seconds}, {"duration_seconds": int(seconds)}) for seconds in (4, "8", 12)),
        ({**A_BODY, "duration": 8}, {"duration_seconds": 8}),
    )
    for seconds in (5, "5", 0, 60, "x", "4s", 4.5, True, []):
        await refused(videos, UNIFIED, {**A_BODY, "seconds": seconds}, names="seconds")


async def test_videos_family_a_size(videos: Videos) -> None:
    await accepted(
        videos,
        UNIFIED,
        (A_BODY, {"size": "720x1280"}),
        *(({**A_BODY, "size": size}, {"size": size}) for size in ("720x1280", "1280x720")),
    )
    await refused(videos, UNIFIED, *({**A_BODY, "size": size} for size in ("1280*720", "1x1", "", 720)), names="size")


async def test_videos_family_a_input_reference(videos: Videos) -> None:
    assert await roles(videos, UNIFIED, {**A_BODY, "input_reference": data_url()}) == [FIRST]
    form = aiohttp.FormData({"model": A, "prompt": STALLED})
    form.add_field("input_reference", PNG, filename="a.png", content_type="image/png")
    status, body = await send_form(videos, UNIFIED, form)
    task = await videos.task(task_id_of(body))
    assert (status, task.parameters.media[0].mime_type) == (200, "image/png")


async def test_videos_fields_of_other_families_are_refused(videos: Videos) -> None:
    for name, value in (("aspectRatio", "16:9"), ("resolution", "720p"), ("generateAudio", True), ("sampleCount", 2)):
        await refused(videos, UNIFIED, {**A_BODY, name: value}, names=name)
    await refused(videos, UNIFIED, {**B_BODY, "size": "1280x720"}, names="size")
    await refused(videos, UNIFIED, {**C_BODY, "sampleCount": 1}, names="sampleCount")


# --- family B


async def test_videos_family_b_duration(videos: Videos) -> None:
    await accepted(
        videos,
        UNIFIED,
        (B_BODY, {"duration_seconds": 4}),
        ({**B_BODY, "duration": 6}, {"duration_seconds": 6}),
        ({**B_BODY, "durationSeconds": 8}, {"duration_seconds": 8}),
    )
    await refused(videos, UNIFIED, *({**B_BODY, "durationSeconds": value} for value in (5, 10)), names="duration")
    await refused(videos, UNIFIED, {**B_BODY, "duration": 4, "durationSeconds": 6}, names="durationSeconds")


async def test_videos_family_b_aspect_ratio(videos: Videos) -> None:
    await accepted(
        videos,
        UNIFIED,
        (B_BODY, {"aspect_ratio": "16:9"}),
        ({**B_BODY, "aspectRatio": "9:16"}, {"aspect_ratio": "9:16"}),
    )
    await refused(videos, UNIFIED, {**B_BODY, "aspectRatio": "1:1"}, names="aspectRatio")


async def test_videos_family_b_resolution(videos: Videos) -> None:
    await accepted(
        videos,
        UNIFIED,
        (B_BODY, {"resolution": "1080p"}),
        ({**B_BODY, "resolution": "720p"}, {"resolution": "720p"}),
    )
    await refused(videos, UNIFIED, {**B_BODY, "resolution": "480p"}, names="resolution")


async def test_videos_family_b_frames(videos: Videos) -> None:
    assert await roles(videos, UNIFIED, {**B_BODY, "image": ADDRESS}) == [FIRST]
    both = {"image": ADDRESS, "lastFrame": data_url()}
    assert await roles(videos, UNIFIED, {**B_BODY, "model": B_31, **both}) == [FIRST, LAST]
    await refused(videos, UNIFIED, {**B_BODY, **both}, {**B_BODY, "model": B_3_FAST, **both}, names="lastFrame")


async def test_videos_family_b_generate_audio(videos: Videos) -> None:
    await accepted(
        videos,
        UNIFIED,
        (B_BODY, {"generate_audio": False}),
        ({**B_BODY, "generateAudio": True}, {"generate_audio": True}),
        ({**B_BODY, "model": B_3_FAST, "generateAudio": False}, {"generate_audio": True}),
    )
    await refused(videos, UNIFIED, {**B_BODY, "generateAudio": "yes"}, names="generateAudio")


async def test_videos_family_b_seed(videos: Videos) -> None:
    await accepted(videos, UNIFIED, ({**B_BODY, "seed": 42}, {"seed": 42}))
    await refused(videos, UNIFIED, {**B_BODY, "seed": 1.5}, {**B_BODY, "seed": 2**32}, names="seed")


async def test_videos_family_b_sample_count(videos: Videos) -> None:
    await accepted(videos, UNIFIED, (B_BODY, {"sample_count": 1}), ({**B_BODY, "sampleCount": 4}, {"sample_count": 4}))
    await refused(videos, UNIFIED, *({**B_BODY, "sampleCount": count} for count in (0, 5)), names="sampleCount")


async def test_videos_family_b_other_fields(videos: Videos) -> None:
    fields = {"personGeneration": "allow_adult", "addWatermark": True, "fps": 24}
    expected = {"person_generation": "allow_adult", "watermark": True, "frames_per_second": 24}
    await accepted(videos, UNIFIED, ({**B_BODY, **fields}, expected))


# --- family C


async def test_videos_family_c_duration(videos: Videos) -> None:
    await accepted(
        videos, UNIFIED, (C_BODY, {"duration_seconds": 5}), ({**C_BODY, "duration": 10}, {"duration_seconds": 10})
    )
    await refused(videos, UNIFIED, {**C_BODY, "duration": 6}, names="duration")


async def test_videos_family_c_size(videos: Videos) -> None:
    await accepted(videos, UNIFIED, ({**C_BODY, "size": "1920*1080"}, {"size": "1920*1080", "resolution": ""}))
    wrong = [{**C_BODY, "size": size} for size in ("1920x1080", "1920", "*", "0*0")]
    image = {"model": C_IMAGE, **PROMPT, "image": ADDRESS, "size": "1920*1080"}
    await refused(videos, UNIFIED, *wrong, image, names="size")


async def test_videos_family_c_resolution(videos: Videos) -> None:
    image = {"model": C_IMAGE, **PROMPT, "image": ADDRESS}
    await accepted(
        videos,
        UNIFIED,
        (image, {"resolution": "720p"}),
        *(({**image, "resolution": value}, {"resolution": value}) for value in ("480p", "1080p")),
    )
    await refused(videos, UNIFIED, {**image, "resolution": "4k"}, names="resolution")


async def test_videos_family_c_generate_audio_and_seed(videos: Videos) -> None:
    await accepted(
        videos,
        UNIFIED,
        (C_BODY, {"generate_audio": False}),
        ({**C_BODY, "generate_audio": True, "seed": 7}, {"generate_audio": True, "seed": 7}),
    )


async def test_videos_family_c_images(videos: Videos) -> None:
    await refused(videos, UNIFIED, {"model": C_IMAGE, **PROMPT}, {**C_BODY, "image": ADDRESS}, names="image")


# --- family D 1.x


async def test_videos_family_d_1_content(videos: Videos) -> None:
    frames = d_1(STALLED, D_1, shown("first_frame"), shown("last_frame", data_url()))
    assert await roles(videos, UNIFIED, frames) == [FIRST, LAST]
    assert await roles(videos, UNIFIED, d_1(STALLED, D_1, shown("reference_image"))) == [REFERENCE]
    await refused(videos, UNIFIED, {"model": D_1, **PROMPT}, names="metadata.content")
    await refused(videos, UNIFIED, d_1(STALLED, D_1, shown("hero")), names="role")
    await refused(videos, UNIFIED, d_1(STALLED, D_1, {"type": "image_url"}), names="image_url.url is required")
    await refused(videos, UNIFIED, d_1(STALLED, D_1, {"type": "video_url"}), names="video_url")


@dataclass(frozen=True)
class Marker:
    names: tuple[str, ...]
    parameter: str
    values: Mapping[str, object]
    wrong: tuple[str, ...] = field(default=("x",))


MARKERS = [
    Marker(("ratio",), "aspect_ratio", {name: name for name in ("16:9", "9:16", "1:1", "4:3", "3:4", "adaptive")}),
    Marker(("dur", "duration"), "duration_seconds", {"5": 5, "10": 10}, ("five", "5s", "")),
    Marker(("rs", "resolution"), "resolution", {name: name for name in ("480p", "720p", "1080p")}),
    Marker(("fps",), "frames_per_second", {"24": 24}, ("fast",)),
    Marker(("seed",), "seed", {"7": 7}, ("x", "1.5")),
    Marker(("wm", "watermark"), "watermark", {"true": True, "false": False}, ("1", "yes")),
    Marker(("cf", "camerafixed"), "camera_fixed", {"true": True, "false": False}, ("on",)),
]


@pytest.mark.parametrize("marker", MARKERS, ids=lambda marker: marker.names[0])
async def test_videos_family_d_1_markers(videos: Videos, marker: Marker) -> None:
    for name in marker.names:
        for text, value in marker.values.items():
            parameters = await videos.parameters(UNIFIED, d_1(f"{STALLED} --{name} {text}"))
            assert (getattr(parameters, marker.parameter), parameters.prompt) == (value, STALLED)
        await refused(videos, UNIFIED, *(d_1(f"{STALLED} --{name} {text}") for text in marker.wrong), names=f"--{name}")


async def test_videos_family_d_1_unknown_markers_and_the_default_length(videos: Videos) -> None:
    await refused(videos, UNIFIED, d_1(f"{STALLED} --zoom 2"), names="--zoom")
    await accepted(videos, UNIFIED, (d_1(STALLED), {"duration_seconds": 5}))


async def test_videos_family_d_1_metadata(videos: Videos) -> None:
    body = d_1(STALLED, D_1, return_last_frame=True, callback_url="https://example.com/hook")
    task = await videos.task(task_id_of((await videos.submit(UNIFIED, body)).body))
    assert (task.parameters.return_last_frame, task.callback_url) == (True, "https://example.com/hook")


async def test_videos_family_d_1_without_audio(videos: Videos) -> None:
    parameters = await videos.parameters(UNIFIED, d_1(STALLED, D_SILENT))
    assert (parameters.HasField("generate_audio"), parameters.generate_audio) == (True, False)


# --- the video-object entry


async def test_videos_video_object_fields(videos: Videos) -> None:
    await accepted(
        videos,
        OBJECT,
        ({"model": A}, {"duration_seconds": 4, "size": "720x1280"}),
        ({**A_BODY, "seconds": "12", "size": "1280x720"}, {"duration_seconds": 12, "size": "1280x720"}),
        ({**A_BODY, "seconds": 8}, {"duration_seconds": 8}),
    )
    await refused(videos, OBJECT, PROMPT, names="model")
    await refused(videos, OBJECT, {**A_BODY, "seconds": "5"}, names="seconds")
    await refused(videos, OBJECT, {**A_BODY, "size": "1024x1792"}, names="size")
    assert await roles(videos, OBJECT, {**A_BODY, "input_reference": ADDRESS}) == [FIRST]


async def send_form(videos: Videos, path: str, form: aiohttp.FormData) -> tuple[int, Any]:
    server = videos.gateway.server
    async with videos.gateway.session.post(server.url + path, data=form, headers=server.headers) as answer:
        return answer.status, await answer.json()


@pytest.mark.parametrize("name", ["input_reference", "image"])
async def test_videos_video_object_form(videos: Videos, name: str) -> None:
    form = aiohttp.FormData({"model": A, "prompt": STALLED, "seconds": "8", "metadata[a]": "1"})
    form.add_field(name, PNG, filename="a.png", content_type="image/png")
    status, body = await send_form(videos, OBJECT, form)
    task = await videos.task(task_id_of(body))
    assert (status, body["seconds"], task.parameters.media[0].mime_type) == (200, "8", "image/png")


# --- Entry D


async def test_videos_entry_d_fields(videos: Videos) -> None:
    fields = {
        "resolution": "1080p",
        "ratio": "9:16",
        "duration": 15,
        "generate_audio": False,
        "return_last_frame": True,
        "seed": 7,
        "watermark": True,
        "camera_fixed": False,
        "frames": 97,
    }
    parameters = await videos.parameters(D_PATH, d_2(**fields))
    names = {"ratio": "aspect_ratio", "duration": "duration_seconds"}
    assert {name: getattr(parameters, names.get(name, name)) for name in fields} == fields
    assert parameters.HasField("generate_audio")
    assert not (await videos.parameters(D_PATH, d_2())).HasField("generate_audio")


async def test_videos_entry_d_wrong_values(videos: Videos) -> None:
    for name, values in {
        "resolution": ("8k", 720),
        "ratio": ("2:1", 1),
        "duration": ("5", 5.5),
        "generate_audio": ("false", 0),
        "seed": ("1", 2**32),
        "watermark": (1,),
        "frames": (0, "9"),
    }.items():
        for value in values:
            await refused(videos, D_PATH, d_2(**{name: value}), names=name)


async def test_videos_entry_d_content_items(videos: Videos) -> None:
    media = [
        {"type": "video_url", "video_url": {"url": CLIP}},
        {"type": "audio_url", "audio_url": {"url": "https://example.com/a.mp3"}},
        shown("reference_image", "asset://asset-1"),
    ]
    parameters = await videos.parameters(D_PATH, d_2(*media))
    assert [medium.kind for medium in parameters.media] == [2, 3, 1]
    assert parameters.media[2].url == "asset://asset-1"


async def test_videos_entry_d_roles(videos: Videos) -> None:
    for first, last in (("first_image", "last_image"), ("first_frame", "last_frame")):
        assert await roles(videos, D_PATH, d_2(shown(first), shown(last))) == [FIRST, LAST]
    assert await roles(videos, D_PATH, d_2(shown("reference_image"), shown("reference_image"))) == [REFERENCE] * 2
    await refused(videos, D_PATH, d_2(shown("last_image")), names="first")
    await refused(videos, D_PATH, d_2(shown("hero")), names="role")


async def exactly(videos: Videos, body: Mapping[str, Any], message: str) -> None:
    error = await videos.refuse(D_PATH, body)
    assert error.keys() == {"code", "message"}
    assert error["message"] == message


async def test_videos_entry_d_error_model(videos: Videos) -> None:
    for model in (None, ""):
        await exactly(videos, {"model": model, "content": [words()]}, "model is required")
    await exactly(videos, {"content": [words()]}, "model is required")
    for model in ("gpt-4o", A, D_1):
        await exactly(videos, d_2() | {"model": model}, f"unsupported seedance-family model: {model}")


async def test_videos_entry_d_error_model_not_open(videos: Videos) -> None:
    error = await videos.refuse(D_PATH, d_2() | {"model": "vidD-9-0"}, status=404)
    assert (error["code"], "vidD-9-0" in error["message"]) == ("ModelNotOpen", True)


async def test_videos_entry_d_error_text(videos: Videos) -> None:
    for content in ([], [shown()], [words("")], [words(" ")]):
        await exactly(videos, {"model": D_2, "content": content}, "text content is required")
    await exactly(videos, {"model": D_2}, "text content is required")


async def test_videos_entry_d_error_urls(videos: Videos) -> None:
    for kind in ("image_url", "video_url", "audio_url"):
        for item in ({"type": kind}, {"type": kind, kind: {}}, {"type": kind, kind: {"url": ""}}):
            await exactly(videos, d_2(item), f"{kind}.url is required")


async def test_videos_entry_d_error_last_frame_with_a_reference(videos: Videos) -> None:
    message = "last frame image content cannot be mixed with reference image"
    await exactly(videos, d_2(shown("first_image"), shown("last_image"), shown("reference_image")), message)


async def test_videos_entry_d_error_duration(videos: Videos) -> None:
    for seconds in (3, 16):
        await exactly(videos, d_2(duration=seconds), "duration must be between 4 and 15")
    await accepted(videos, D_PATH, *((d_2(duration=value), {"duration_seconds": value}) for value in (4, 15)))
    await accepted(videos, D_PATH, (d_2(duration=3) | {"model": D_1_5}, {"duration_seconds": 3}))


async def test_videos_entry_d_error_fast_model(videos: Videos) -> None:
    error = await videos.refuse(D_PATH, d_2(resolution="1080p") | {"model": D_2_FAST})
    assert "does not support 1080p" in error["message"]
    await videos.submit(D_PATH, d_2(resolution="720p") | {"model": D_2_FAST})


# --- Entry E v1


async def test_videos_entry_e_v1_fields(videos: Videos) -> None:
    await accepted(
        videos,
        TEXT_2,
        (E_BODY, {"duration_seconds": 5}),
        ({**E_BODY, "duration": 10, "mode": "pro"}, {"duration_seconds": 10, "mode": "pro"}),
        *(({**E_BODY, "size": size}, {"size": size}) for size in ("1024x1024", "1280x720", "720x1280")),
    )
    await refused(videos, TEXT_2, {"model": E_MODEL}, {**E_BODY, "prompt": ""}, names="prompt")
    await refused(videos, TEXT_2, {**E_BODY, "size": "1x1"}, names="size")
    await refused(videos, TEXT_2, {**E_BODY, "mode": "max"}, names="mode")
    await refused(videos, TEXT_2, {**E_BODY, "duration": "5"}, names="duration")


async def test_videos_entry_e_v1_metadata(videos: Videos) -> None:
    metadata = {
        "aspect_ratio": "1:1",
        "negative_prompt": "rain",
        "cfg_scale": 0.5,
        "static_mask": data_url(),
        "dynamic_masks": [{"mask": ADDRESS}],
        "camera_control": {"type": "simple"},
        "callback_url": "https://example.com/hook",
        "external_task_id": "spec-e-v1",
        "sound": True,
        "seed": 7,
    }
    body = {**E_BODY, "image": data_url(), "metadata": metadata}
    task = await videos.task(task_id_of((await videos.submit(IMAGE_2, body)).body))
    found = task.parameters
    assert (found.aspect_ratio, found.negative_prompt, found.cfg_scale) == ("1:1", "rain", 0.5)
    assert (found.generate_audio, found.seed, len(found.media)) == (True, 7, 2)
    assert (json.loads(found.camera_control_json), json.loads(found.dynamic_masks_json)) == (
        {"type": "simple"},
        [{"mask": ADDRESS}],
    )
    assert (task.external_task_id, task.callback_url) == ("spec-e-v1", "https://example.com/hook")
    await refused(videos, TEXT_2, {**E_BODY, "metadata": {"sound": "on"}}, names="sound")
    await refused(videos, TEXT_2, {**E_BODY, "metadata": {"cfg_scale": 2}}, names="cfg_scale")


async def test_videos_entry_e_v1_images(videos: Videos) -> None:
    assert await roles(videos, IMAGE_2, {**E_BODY, "image": ADDRESS}) == [FIRST]
    assert await roles(videos, IMAGE_2, {**E_BODY, "images": [ADDRESS, data_url()]}) == [FIRST, LAST]
    await refused(videos, IMAGE_2, E_BODY, names="image")
    await refused(videos, TEXT_2, {**E_BODY, "image": ADDRESS}, names="image")
    form = aiohttp.FormData({"model": E_MODEL, "prompt": STALLED, "duration": "10", "metadata[sound]": "true"})
    form.add_field("input_reference", PNG, filename="a.png", content_type="image/png")
    status, body = await send_form(videos, IMAGE_2, form)
    parameters = (await videos.task(task_id_of(body))).parameters
    assert (status, parameters.duration_seconds, parameters.generate_audio) == (200, 10, True)
    assert parameters.media[0].mime_type == "image/png"


# --- Entry E 3.0


async def test_videos_entry_e_3_fields(videos: Videos) -> None:
    await accepted(
        videos,
        E_3,
        (PROMPT, {"duration_seconds": 5, "resolution": "720p"}),
        *(({**PROMPT, "duration": value}, {"duration_seconds": value}) for value in (3, 15)),
        ({**PROMPT, "resolution": "1080p"}, {"resolution": "1080p"}),
    )
    await refused(videos, E_3, {}, {"prompt": ""}, names="prompt")
    await refused(videos, E_3, *({**PROMPT, "duration": value} for value in (2, 16, "5")), names="duration")
    assert await roles(videos, E_3_IMAGE, {**PROMPT, "image": data_url()}) == [FIRST]


async def test_videos_entry_e_3_unknown_fields_are_passed_through(videos: Videos) -> None:
    parameters = await videos.parameters(E_3, {**PROMPT, "multi_shot": False, "settings": {"audio": "off"}})
    assert json.loads(parameters.extra_json) == {"multi_shot": False, "settings": {"audio": "off"}}


async def test_videos_entry_e_3_external_task_id(videos: Videos) -> None:
    for given in ("a", "Z9-_.", "x" * 191):
        task_id = task_id_of((await videos.submit(E_3, {**PROMPT, "options": {"external_task_id": given}})).body)
        assert (await videos.task(task_id)).external_task_id == given
    wrong = ("", "x" * 192, "a b", "ä", "a/b", 1)
    bodies = [{**PROMPT, "options": {"external_task_id": given}} for given in wrong]
    await refused(videos, E_3, *bodies, names="external_task_id")


async def test_videos_entry_e_3_callback_url(videos: Videos) -> None:
    await videos.submit(E_3, {**PROMPT, "options": {"callback_url": "https://example.com/hook"}})
    wrong = ("http://example.com/hook", "https://", "/hook", "", "example.com", 1)
    await refused(videos, E_3, *({**PROMPT, "options": {"callback_url": url}} for url in wrong), names="callback_url")


async def test_videos_entry_e_3_omni_limits(videos: Videos) -> None:
    await videos.submit(OMNI, {**PROMPT, "images": [ADDRESS] * 7})
    for name in ("videos", "video_list", "reference_videos"):
        await videos.submit(OMNI, {**PROMPT, "images": [ADDRESS] * 4, name: [CLIP]})
    assert len((await videos.parameters(OMNI, {**PROMPT, "images": [CLIP, ADDRESS]})).media) == 2
    await refused(videos, OMNI, {**PROMPT, "images": [ADDRESS] * 8}, names="at most 7")
    await refused(videos, OMNI, {**PROMPT, "images": [ADDRESS] * 5, "videos": [CLIP]}, names="at most 4")
    await refused(videos, OMNI, {**PROMPT, "videos": [CLIP, CLIP]}, names="at most 1")


# --- Entry F


async def test_videos_entry_f_action_and_version(videos: Videos) -> None:
    await videos.submit("/vidF?Action=CVSync2AsyncSubmitTask", F_BODY)
    for query in ("", "?Action=", "?Version=2022-08-31", "?Action=CVProcess"):
        await refused(videos, f"/vidF{query}", F_BODY, names="Action")
    await refused(videos, "/vidF?Action=CVSync2AsyncSubmitTask&Version=2024-01-01", F_BODY, names="Version")


async def test_videos_entry_f_fields(videos: Videos) -> None:
    await accepted(
        videos,
        F_SUBMIT,
        ({"req_key": F_MODEL}, {"prompt": ""}),
        ({**F_BODY, "seed": -1, "aspect_ratio": "16:9", "frames": 121}, {"aspect_ratio": "16:9", "frames": 121}),
    )
    for fields in ({"image": data_url()}, {"image_urls": [ADDRESS]}, {"binary_data_base64": [data_url()[22:]]}):
        assert await roles(videos, F_SUBMIT, {**F_BODY, **fields}) == [FIRST]
    await refused(videos, F_SUBMIT, PROMPT, names="req_key")
    await refused(videos, F_SUBMIT, {**F_BODY, "seed": "x"}, names="seed")
    await refused(videos, F_SUBMIT, {**F_BODY, "image_urls": ADDRESS + " x"}, names="image_urls")


# --- Entry G


async def test_videos_entry_g_fields(videos: Videos) -> None:
    ratios = ("21:9", "16:9", "4:3", "1:1", "3:4", "9:16")
    await accepted(
        videos,
        G_SUBMIT,
        *((g(resolution=value), {"resolution": value}) for value in ("768P", "2K")),
        *((g(duration=value), {"duration_seconds": value}) for value in (4, 15)),
        *((g(ratio=ratio), {"aspect_ratio": ratio}) for ratio in ratios),
        (g(aigc_watermark=True), {"watermark": True}),
    )
    await refused(videos, G_SUBMIT, g(resolution=None), g(resolution="1080p"), names="resolution")
    await refused(videos, G_SUBMIT, g(duration=None), g(duration=3), g(duration=16), g(duration="5"), names="duration")
    await refused(videos, G_SUBMIT, g(ratio="2:1"), names="ratio")
    await refused(videos, G_SUBMIT, g(aigc_watermark="no"), names="aigc_watermark")
    await refused(videos, G_SUBMIT, g() | {"model": None}, names="model")


async def test_videos_entry_g_content(videos: Videos) -> None:
    items = [
        shown("first_frame"),
        shown("last_frame"),
        shown("reference_image"),
        {"type": "video_url", "video_url": {"url": CLIP}, "role": "reference_video"},
        {"type": "audio_url", "audio_url": {"url": "https://example.com/a.mp3"}, "role": "reference_audio"},
    ]
    assert await roles(videos, G_SUBMIT, g(items[0], items[1])) == [FIRST, LAST]
    assert await roles(videos, G_SUBMIT, g(*items[2:])) == [REFERENCE, 4, 5]
    await refused(videos, G_SUBMIT, g() | {"content": []}, g() | {"content": None}, names="content")
    await refused(videos, G_SUBMIT, g({"type": "image_url"}), names="image_url.url is required")
    await refused(videos, G_SUBMIT, g(shown("hero")), g(shown("first_image")), names="role")


async def test_videos_entry_g_callback_url_is_refused_in_any_form(videos: Videos) -> None:
    for value in ("https://example.com/hook", "", None, 1, {}):
        await refused(videos, G_SUBMIT, g(callback_url=value), names="callback_url")


# --- errors of every entry


async def test_videos_error_bodies_of_every_entry(videos: Videos) -> None:
    chat, enveloped = {"error"}, {"code", "message", "request_id", "error"}
    for path, members in (
        (UNIFIED, chat),
        (OBJECT, chat),
        (D_PATH, {"error"}),
        (TEXT_2, enveloped),
        (E_3, enveloped),
        (F_SUBMIT, enveloped | {"data"}),
        (G_SUBMIT, {"type", "error", "request_id"}),
    ):
        reply = await videos.gateway(path, {"prompt": 1})
        assert (reply.status, reply.body.keys(), bool(reply.body["error"]["message"])) == (400, members, True)
        broken = await videos.gateway.send("POST", path, data=b"{")
        assert (broken.status, broken.body.keys()) == (400, members)


async def test_videos_unknown_tasks_are_404(videos: Videos) -> None:
    for path in (
        f"{UNIFIED}/task_unknown",
        f"{OBJECT}/task_unknown",
        f"{D_PATH}/task_unknown",
        f"{TEXT_2}/task_unknown",
        f"{IMAGE_2}/task_unknown",
        "/vidE/tasks?task_ids=task_unknown",
        "/vidE/tasks?external_task_ids=unknown",
        "/vidG/v2/query/video_generation/task_unknown",
    ):
        assert (await videos.gateway.get(path)).status == 404, path


async def test_videos_paths_with_a_slash_at_the_end(videos: Videos) -> None:
    for path, body in ((UNIFIED, A_BODY), (OBJECT, A_BODY), (D_PATH, d_2()), (TEXT_2, E_BODY), (G_SUBMIT, g())):
        task_id = task_id_of((await videos.submit(f"{path}/", body)).body)
        query = "/vidG/v2/query/video_generation" if path == G_SUBMIT else path
        assert (await videos.gateway.get(f"{query}/{task_id}/")).status == 200

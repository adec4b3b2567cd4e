"""Edits, variations and streams of images as SDKs call them; issue of both faces, and readings, 4 and 25."""

import base64

import pytest

from tests.documents.spec.image_callers import (
    A3,
    A40,
    D_EDIT,
    EDITS,
    PROMPT,
    TALL,
    VARIATIONS,
    WIDE,
    B,
    C,
    D,
    G,
    Images,
    data_url,
    kind_of,
    pixels_of,
    structured,
)
from tests.support.images import mask_of

pytestmark = pytest.mark.asyncio(loop_scope="module")

FIELDS = (("model", C), ("prompt", PROMPT))


async def test_edits_take_a_form(images: Images) -> None:
    for name in ("image", "image[]", "image[0]"):
        reply = await images.form(EDITS, *FIELDS, (name, WIDE, "a.png"))
        assert (reply.status, reply.body.keys() >= {"created", "data", "usage"}) == (200, True), reply.text[:300]
        assert pixels_of(base64.b64decode(reply.body["data"][0]["b64_json"])) == (1024, 1024)


async def test_edits_take_several_images_and_options_as_texts(images: Images) -> None:
    several = [("image[]", data, "a.png") for data in (WIDE, TALL)]
    options = (("n", "2"), ("size", "1536x1024"), ("quality", "low"), ("output_format", "jpeg"))
    reply = await images.form(EDITS, *FIELDS, *several, *options)
    files = [base64.b64decode(item["b64_json"]) for item in reply.body["data"]]
    assert [(kind_of(file), pixels_of(file)) for file in files] == [("JPEG", (1536, 1024))] * 2
    one = await images.form(EDITS, *FIELDS, several[0])
    two = await images.form(EDITS, *FIELDS, *several)
    assert one.body["data"] != two.body["data"]


async def test_edits_take_a_mask(images: Images) -> None:
    plain = await images.form(EDITS, *FIELDS, ("image", WIDE, "a.png"))
    masked = await images.form(EDITS, *FIELDS, ("image", WIDE, "a.png"), ("mask", mask_of(WIDE), "m.png"))
    assert masked.status == 200, masked.text[:300]
    assert masked.body["data"] != plain.body["data"]
    images.names(await images.form(EDITS, *FIELDS, ("image", WIDE, "a.png"), ("mask", b"hello", "m.png")), "mask")


async def test_edits_take_json(images: Images) -> None:
    for fields in ({"image": data_url()}, {"images": [{"image_url": data_url()}]}):
        reply = await images.post(C, path=EDITS, **fields)
        assert (reply.status, reply.body.keys() >= {"created", "data"}) == (200, True)


async def test_edits_serve_every_family_with_input_images(images: Images) -> None:
    for model in (G, A40, B, C, D_EDIT):
        reply = await images.form(EDITS, ("model", model), ("prompt", PROMPT), ("image", WIDE, "a.png"))
        assert reply.status == 200, reply.text[:300]
        assert reply.body.keys() >= {"created", "data"}
        assert kind_of(base64.b64decode(reply.body["data"][0]["b64_json"])) == "PNG"
    for model in (A3, D):
        reply = await images.form(EDITS, ("model", model), ("prompt", PROMPT), ("image", WIDE, "a.png"))
        images.names(reply, "image")


async def test_edits_refuse_wrong_forms(images: Images) -> None:
    image = ("image", WIDE, "a.png")
    images.names(await images.form(EDITS, ("prompt", PROMPT), image), "model")
    images.names(await images.form(EDITS, *FIELDS), "image")
    images.names(await images.post(C, path=EDITS), "image")
    images.names(await images.form(EDITS, ("model", C), image), "prompt")
    images.names(await images.form(EDITS, *FIELDS, ("image", b"hello", "a.png")), "image")
    images.names(await images.form(EDITS, *FIELDS, image, ("n", "two")), "n")
    images.names(await images.form(EDITS, *FIELDS, image, ("n", "11")), "n")
    images.names(await images.form(EDITS, *FIELDS, image, ("size", "1x1")), "size")
    error = images.error(await images.form(EDITS, ("model", "imgZ"), ("prompt", PROMPT), image), 404)
    assert "imgZ" in error["message"]


async def test_generations_take_no_form(images: Images) -> None:
    images.error(await images.form("/v1/images/generations", *FIELDS), 415)


async def test_variations_are_made_of_one_image_without_a_prompt(images: Images) -> None:
    reply = await images.form(VARIATIONS, ("model", C), ("image", WIDE, "a.png"), ("n", "2"))
    assert (reply.status, len(reply.body["data"])) == (200, 2), reply.text[:300]
    two = [("image[]", WIDE, "a.png"), ("image[]", TALL, "b.png")]
    images.names(await images.form(VARIATIONS, ("model", C), *two), "image")
    images.names(await images.form(VARIATIONS, ("model", C)), "image")
    images.names(await images.form(VARIATIONS, *FIELDS, two[0]), "prompt")
    images.names(await images.form(VARIATIONS, ("model", G), two[0]), "model")


# --- streams


async def test_streams_have_the_events_of_sdks(images: Images) -> None:
    frames = await images.events(C, partial_images=2)
    names = ["image_generation.partial_image"] * 2 + ["image_generation.completed"]
    assert [frame.event for frame in frames] == names
    for frame in frames:
        assert frame.data["type"] == frame.event
        assert pixels_of(base64.b64decode(frame.data["b64_json"])) == (1024, 1024)
        members = {"created_at", "size", "quality", "background", "output_format"}
        assert frame.data.keys() >= members
    assert [frame.data["partial_image_index"] for frame in frames[:2]] == [0, 1]
    assert frames[-1].data["usage"]["output_tokens"] > 0


async def test_streams_of_edits_have_names_of_their_own(images: Images) -> None:
    frames = await images.events(C, path=EDITS, image=data_url(), partial_images=1)
    assert [frame.event for frame in frames] == ["image_edit.partial_image", "image_edit.completed"]


async def test_streams_carry_bytes_for_every_family(images: Images) -> None:
    for model, fields in ((G, {}), (A40, {}), (D, structured())):
        frames = await images.events(model, **fields)
        assert [frame.event for frame in frames] == ["image_generation.completed"]
        assert "b64_json" in frames[0].data


async def test_streams_of_a_group_have_one_event_an_image(images: Images) -> None:
    options = {"sequential_image_generation_options": {"max_images": 2}}
    frames = await images.events(A40, prompt="two cats", sequential_image_generation="auto", **options)
    assert [frame.data["image_index"] for frame in frames] == [0, 1]


async def test_a_refused_stream_is_an_error_with_its_status(images: Images) -> None:
    images.names(await images.post(C, stream=True, n=11), "n")
    images.error(await images.post("imgZ", stream=True), 404)
    images.names(await images.post(C, stream="yes"), "stream")
    images.names(await images.post(C, stream=True, partial_images=4), "partial_images")
    images.names(await images.post(G, stream=True, partial_images=1), "partial_images")


async def test_a_broken_stream_ends_with_an_error_event(images: Images) -> None:
    frames = await images.events(C, prompt="cats [[fail:mid]]", n=2)
    assert [frame.event for frame in frames] == ["image_generation.completed", "error"]
    assert frames[-1].data["error"]["message"]

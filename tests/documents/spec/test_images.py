"""Image document, "POST /v1/images/generations" and "Limits"; readings, 1, 3, 4 and 23 to 26."""

import base64
import time

import pytest

from tests.documents.spec.callers import NO_BOOLEANS, NO_INTEGERS, NO_NUMBERS, NO_STRINGS
from tests.documents.spec.image_callers import (
    A3,
    A40,
    A45,
    ADDRESS,
    D_EDIT,
    D_EDIT_PLUS,
    G3,
    MINI,
    PROMPT,
    TALL,
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
from tests.support.images import GIF, JPEG, WEBP, picture
from umg_grpc.knowledge.families.image_model_rules import IMAGE_MODELS, RATIO_PIXELS

pytestmark = pytest.mark.asyncio(loop_scope="module")

FLAT = [model for model in IMAGE_MODELS if not model.startswith("imgD")]
OVER = 10 * 2**20


def least(model: str) -> dict[str, object]:
    """Return the fields that a model requires besides the prompt."""
    if model.startswith("imgD"):
        return structured(*([{"image": data_url()}] if "edit" in model else []))
    return {"image": data_url()} if model == B else {}


def sized(size: int) -> bytes:
    """Return an image file of this many bytes."""
    return picture("PNG") + bytes(size - len(picture("PNG")))


# --- the response


@pytest.mark.parametrize("model", IMAGE_MODELS)
async def test_images_every_model_answers_in_the_envelope(images: Images, model: str) -> None:
    began = int(time.time())
    reply = await images.post(model, **least(model))
    assert began <= reply.body["data"]["created"] <= time.time() + 1
    [file] = await images.files(model, **least(model))
    assert kind_of(file) == "PNG"


async def test_images_every_model_is_in_the_model_list(images: Images) -> None:
    reply = await images.gateway.get("/v1/models")
    assert {model["id"] for model in reply.body["data"]} >= IMAGE_MODELS.keys()


async def test_images_an_sdk_receives_its_own_shape(images: Images) -> None:
    for headers in ({"user-agent": "OpenAI/Python 2.24.0"}, {"x-stainless-lang": "js"}, {"x-umg-shape": "sdk"}):
        reply = await images.post(C, headers=headers)
        assert reply.body.keys() >= {"created", "data", "usage"}
        assert reply.body["data"][0].keys() == {"b64_json"}
        assert "user-agent" in reply.headers["vary"].lower()
    documented = await images.post(C, headers={"user-agent": "OpenAI/Python", "x-umg-shape": "documented"})
    assert documented.body.keys() == {"code", "msg", "data"}


async def test_images_result_links_work_without_credentials(images: Images) -> None:
    [item] = await images.items(A3)
    assert pixels_of(await images.file(item)) == (1024, 1024)
    assert item["url"].startswith("http")


# --- the common fields


async def test_images_field_model(images: Images) -> None:
    for body in ({"prompt": PROMPT}, {"prompt": PROMPT, "model": ""}, {"prompt": PROMPT, "model": 5}):
        images.names(await images.gateway.post("/v1/images/generations", body), "model")
    error = images.error(await images.post("imgZ-9"), 404)
    assert "imgZ-9" in error["message"]
    images.error(await images.post("famO-5"), 400)


async def test_images_field_prompt(images: Images) -> None:
    for wrong in (5, True, ["x"], {"value": "x"}):
        await images.refuses("prompt", C, prompt=wrong)
    for model in FLAT:
        await images.refuses("prompt", model, **{**least(model), "prompt": ..., "image": ...})


async def test_images_field_response_format(images: Images) -> None:
    await images.refuses("response_format", C, response_format="png")
    await images.refuses("response_format", A3, response_format=5)
    for model in (G, C):  # rules 1 and 3
        others = [{"response_format": "png"}, {"response_format": ""}] if model == G else []
        for chosen in ({}, {"response_format": "url"}, {"response_format": "b64_json"}, *others):
            [item] = await images.items(model, **chosen)
            assert "b64_json" in item
    for model in (A3, A40, B, D):  # rules 2 and 4, and reading 23
        for chosen, member in (
            ({}, "url"),
            ({"response_format": "url"}, "url"),
            ({"response_format": "b64_json"}, "b64_json"),
        ):
            [item] = await images.items(model, **least(model), **chosen)
            assert member in item


async def test_images_field_contents(images: Images) -> None:
    def turn(*parts: object) -> dict[str, object]:
        return {"role": "user", "parts": list(parts)}

    for model in (G, G3, A40, C):
        conversation = [turn({"text": PROMPT}, {"image": data_url()}), turn({"text": "make it blue"})]
        assert await images.one(model, prompt=..., contents=conversation)
    assert await images.one(G, prompt=..., contents=[turn({"image": ADDRESS}, {"text": PROMPT})])
    await images.refuses("contents", G, contents="x")
    await images.refuses("contents", G, contents=[])
    await images.refuses("contents[0].role", G, contents=[{"role": "robot", "parts": [{"text": "x"}]}])
    await images.refuses("contents[0].parts", G, contents=[{"role": "user"}])
    await images.refuses("contents[0].parts[0]", G, contents=[turn({})])
    await images.refuses("contents[0].parts[0].image", G, contents=[turn({"image": "cat.png"})])
    await images.refuses("contents[0].parts[0].image", A3, contents=[turn({"image": data_url()}, {"text": "x"})])


async def test_images_unknown_fields_are_reported(images: Images) -> None:
    reply = await images.post(C, style="vivid")
    assert (reply.status, reply.headers["x-umg-dropped"]) == (200, "style")
    strict = await images.post(C, style="vivid", headers={"x-umg-strict": "true"})
    images.names(strict, "style")


# --- family G


@pytest.mark.parametrize("ratio", RATIO_PIXELS)
async def test_images_g_size_is_one_of_ten_ratios(images: Images, ratio: str) -> None:
    assert pixels_of(await images.one(G, size=ratio)) == RATIO_PIXELS[ratio]


async def test_images_g_size_in_pixels_is_the_nearest_ratio(images: Images) -> None:
    for size, ratio in (("1024x1024", "1:1"), ("1920x1080", "16:9"), ("1000x1636", "9:16"), ("1152x864", "4:3")):
        assert pixels_of(await images.one(G, size=size)) == RATIO_PIXELS[ratio]
    for wrong in ("large", "2:1", "1024*1024", "0x0", "x", "1K", ""):
        await images.refuses("size", G, size=wrong)


async def test_images_g_quality_selects_the_tier(images: Images) -> None:
    for quality in ("hd", "high", "2K"):
        assert pixels_of(await images.one(G3, quality=quality)) == (2048, 2048)
    for quality in ("standard", "medium", "low", "auto", "1K"):
        assert pixels_of(await images.one(G3, quality=quality)) == (1024, 1024)
    await images.refuses("quality", G, quality="best")


async def test_images_g_image_size_is_the_tier(images: Images) -> None:
    edges = [pixels_of(await images.one(G3, image_size=tier))[0] for tier in ("1K", "2K", "3K", "4K")]
    assert edges == [1024, 2048, 3072, 4096]
    for wrong in ("8K", "1k", "large"):
        await images.refuses("image_size", G, image_size=wrong)


async def test_images_g_n(images: Images) -> None:
    assert len(await images.items(G, n=2)) == 2
    for wrong in (0, -1, 11, *NO_INTEGERS):
        await images.refuses("n", G, n=wrong)


async def test_images_g_mime_type(images: Images) -> None:
    assert kind_of(await images.one(G, mime_type="image/jpeg")) == "JPEG"
    assert kind_of(await images.one(G, mime_type="image/png")) == "PNG"
    await images.refuses("mime_type", G, mime_type="image/gif")


async def test_images_g_response_modalities(images: Images) -> None:
    [item] = await images.items(G, response_modalities="image-text")
    assert item["revised_prompt"]
    [item] = await images.items(G, response_modalities="image")
    assert "revised_prompt" not in item
    await images.refuses("response_modalities", G, response_modalities="text")


async def test_images_g_sampling(images: Images) -> None:
    assert await images.one(G, top_p=0.95, temperature=1)
    for wrong in (-0.1, 1.1, *NO_NUMBERS):
        await images.refuses("top_p", G, top_p=wrong)
    for wrong in (-0.1, 2.1, *NO_NUMBERS):
        await images.refuses("temperature", G, temperature=wrong)


async def test_images_g_unnamed_parameters(images: Images) -> None:
    assert await images.one(G, person_generation="allow_adult", max_output_tokens=32768)
    assert await images.one(G, personGeneration="allow_all")
    assert pixels_of(await images.one(G, aspect_ratio="16:9", size="1:1")) == RATIO_PIXELS["16:9"]
    await images.refuses("person_generation", G, person_generation="everyone")
    await images.refuses("max_output_tokens", G, max_output_tokens=0)
    await images.refuses("aspect_ratio", G, aspect_ratio="2:1")


async def test_images_fusion_takes_two_to_five_images(images: Images) -> None:
    for model in (G, G3, A40, A45):
        for count in (1, 2, 5):
            assert await images.one(model, image=[data_url()] * count)
        await images.refuses("image[5]", model, image=[data_url()] * 6)


# --- families A and B


A_3_SIZES = ("1024x1024", "1152x864", "864x1152", "1280x720", "720x1280", "1248x832", "832x1248", "1512x648")
A_2K = ("2048x2048", "2304x1728", "1728x2304", "2560x1440", "1440x2560", "2496x1664", "1664x2496", "3024x1296")
A_4K = ("4096x4096", "4704x3520", "3520x4704", "5504x3040", "3040x5504", "4992x3328", "3328x4992", "6240x2656")


@pytest.mark.parametrize(
    ("model", "size"),
    [*((A3, size) for size in A_3_SIZES), *((A45, size) for size in A_2K), *((A40, size) for size in A_4K)],
)
async def test_images_a_size(images: Images, model: str, size: str) -> None:
    width, height = size.split("x")
    assert pixels_of(await images.one(model, size=size)) == (int(width), int(height))


async def test_images_a_size_outside_the_list(images: Images) -> None:
    for model, wrong in (
        (A3, A_2K[0]),
        (A40, A_3_SIZES[0]),
        (A45, "2K"),
        (A45, "2048*2048"),
        (B, "99x99"),
        (A3, "1:1"),
    ):
        await images.refuses("size", model, **least(model), size=wrong)


async def test_images_a_image(images: Images) -> None:
    for form in (data_url(), base64.b64encode(WIDE).decode(), ADDRESS, [data_url(), ADDRESS]):
        assert await images.one(A40, image=form)
    plain, edited = await images.one(A40), await images.one(A40, image=data_url())
    assert plain != edited
    await images.refuses("image", A3, image=data_url())
    for wrong in (5, True):
        await images.refuses("image", A40, image=wrong)


async def test_images_b_edits_exactly_one_image(images: Images) -> None:
    assert await images.one(B, image=data_url())
    assert await images.one(B, image=[data_url()])
    await images.refuses("image", B)
    await images.refuses("image[1]", B, image=[data_url(), data_url()])
    assert await images.one(B, image=data_url(), guidance_scale=5.5, seed=1, watermark=True, size="1280x720")


async def test_images_a_watermark(images: Images) -> None:
    default, off, on = [
        await images.one(A3, seed=1, **fields) for fields in ({}, {"watermark": False}, {"watermark": True})
    ]
    assert default == off != on
    for wrong in NO_BOOLEANS:
        await images.refuses("watermark", A3, watermark=wrong)


async def test_images_a_seed(images: Images) -> None:
    for seed in (0, 2147483647):
        assert await images.one(A3, seed=seed) == await images.one(A3, seed=seed)
    assert await images.one(A3, seed=1) != await images.one(A3, seed=2)
    for model in (A3, A40, A45, B):
        for wrong in (-1, 2147483648):
            await images.refuses("seed", model, **least(model), seed=wrong)
    for wrong in NO_INTEGERS:
        await images.refuses("seed", A3, seed=wrong)


async def test_images_a_guidance_scale(images: Images) -> None:
    for value in (1, 2.5, 10, 12):
        assert await images.one(A3, guidance_scale=value)
    for model in (A40, A45):
        await images.refuses("guidance_scale", model, guidance_scale=2.5)
    for wrong in NO_NUMBERS:
        await images.refuses("guidance_scale", A3, guidance_scale=wrong)


async def test_images_a_group(images: Images) -> None:
    for model in (A40, A45):
        made = await images.items(
            model, sequential_image_generation="auto", sequential_image_generation_options={"max_images": 3}
        )
        assert 1 <= len(made) <= 3
        assert len(await images.items(model, sequential_image_generation="disabled")) == 1
    assert 1 <= len(await images.items(A40, sequential_image_generation="auto")) <= 4
    await images.refuses("sequential_image_generation", A40, sequential_image_generation="on")
    await images.refuses("sequential_image_generation", A3, sequential_image_generation="auto")
    await images.refuses("n", A40, n=2)


async def test_images_a_group_options(images: Images) -> None:
    name = "sequential_image_generation_options"
    for wrong in (0, 5):
        options = {"sequential_image_generation": "auto", name: {"max_images": wrong}}
        await images.refuses(f"{name}.max_images", A40, **options)
    assert len(await images.items(A40, **{name: {"max_images": 9}})) == 1  # ignored without `auto`
    await images.refuses(name, A40, **{name: "x"})


async def test_images_a_prompt_optimization(images: Images) -> None:
    for model, mode in ((A40, "standard"), (A40, "fast"), (A45, "standard")):
        assert await images.one(model, optimize_prompt_options={"mode": mode})
    for model, mode in ((A45, "fast"), (A40, "slow"), (A3, "standard")):
        await images.refuses("optimize_prompt_options.mode", model, optimize_prompt_options={"mode": mode})


# --- family C


async def test_images_c_size(images: Images) -> None:
    assert pixels_of(await images.one(C)) == (1024, 1024)
    for size in ("1024x1024", "1024x1536", "1536x1024"):
        assert "x".join(map(str, pixels_of(await images.one(C, size=size)))) == size
    for wrong in ("512x512", "auto", "1:1", "1024*1024"):
        await images.refuses("size", C, size=wrong)


async def test_images_c_quality(images: Images) -> None:
    for model, default in ((C, "high"), (MINI, "medium")):
        reply = await images.post(model, headers={"x-umg-shape": "sdk"})
        assert reply.body["quality"] == default
        for quality in ("low", "medium", "high"):
            assert await images.one(model, quality=quality)
        for wrong in ("hd", "auto", "best"):
            await images.refuses("quality", model, quality=wrong)


async def test_images_c_n(images: Images) -> None:
    reply = await images.post(C, n=10, headers={"x-umg-shape": "sdk"})
    assert len(reply.body["data"]) == 10
    for wrong in (0, 11, *NO_INTEGERS):
        await images.refuses("n", C, n=wrong)


async def test_images_c_input_fidelity(images: Images) -> None:
    for fidelity in ("low", "medium", "high", "auto"):
        assert await images.one(C, image=data_url(), input_fidelity=fidelity)
    await images.refuses("input_fidelity", C, image=data_url(), input_fidelity="best")
    await images.refuses("input_fidelity", C, input_fidelity="high")


async def test_images_c_image_and_images(images: Images) -> None:
    for fields in ({"image": ADDRESS}, {"image": data_url()}, {"images": [data_url()] * 10}, {"images": [ADDRESS]}):
        assert await images.one(C, **fields)
    await images.refuses("images[10]", C, images=[data_url()] * 11)
    await images.refuses("images[9]", C, image=data_url(), images=[data_url()] * 10)


async def test_images_c_input_formats(images: Images) -> None:
    for data in (JPEG, WIDE, GIF, WEBP):
        assert await images.one(C, image=data_url(data, "image/png"))  # the declared type is ignored
    for wrong in (b"BM" + bytes(60), b"%PDF-1.4", b"hello"):
        await images.refuses("image", C, image=data_url(wrong))


async def test_images_c_input_bytes(images: Images) -> None:
    assert await images.one(C, image=data_url(sized(OVER)))
    await images.refuses("image", C, image=data_url(sized(OVER + 1)))


# --- family D


async def test_images_d_input(images: Images) -> None:
    assert await images.one(D, **structured())
    await images.refuses("input", D)
    await images.refuses("input", D, parameters={"n": 1})
    await images.refuses("input.messages", D, input={"messages": []})
    for wrong in ("system", "model"):
        message = {"role": wrong, "content": [{"text": "x"}]}
        await images.refuses("input.messages[0].role", D, input={"messages": [message]})
    await images.refuses("input.messages[0].role", D, input={"messages": [{"content": [{"text": "x"}]}]})
    await images.refuses("input.messages[0].content[0]", D, input={"messages": [{"role": "user", "content": [{}]}]})
    await images.refuses("prompt", D, prompt="x", **structured())
    await images.refuses("size", D, size="1328*1328", **structured())
    for model in FLAT:
        await images.refuses("input", model, **structured())


async def test_images_d_image_is_only_for_the_edit_models(images: Images) -> None:
    image = {"image": data_url()}
    await images.refuses("input.messages[0].content[0].image", D, **structured(image))
    for model in (D_EDIT, D_EDIT_PLUS):
        for form in (data_url(), ADDRESS, base64.b64encode(WIDE).decode()):
            assert await images.one(model, **structured({"image": form}))
        await images.refuses("input.messages[0].content", model, **structured())


async def test_images_d_number_of_images(images: Images) -> None:
    image = {"image": data_url()}
    assert await images.one(D_EDIT_PLUS, **structured(image, image, image))
    await images.refuses("input.messages[0].content[3].image", D_EDIT_PLUS, **structured(image, image, image, image))
    await images.refuses("input.messages[0].content[1].image", D_EDIT, **structured(image, image))


async def test_images_d_the_last_image_fixes_the_ratio(images: Images) -> None:
    for last, ratio in ((TALL, 0.5), (WIDE, 2)):
        width, height = pixels_of(
            await images.one(D_EDIT_PLUS, **structured({"image": data_url()}, {"image": data_url(last)}))
        )
        assert abs(width / height / ratio - 1) < 0.02


async def test_images_d_n(images: Images) -> None:
    image = {"image": data_url()}
    assert len(await images.items(D_EDIT_PLUS, **structured(image, n=6))) == 6
    for model, wrong in ((D_EDIT_PLUS, 7), (D_EDIT_PLUS, 0), (D_EDIT, 2)):
        await images.refuses("parameters.n", model, **structured(image, n=wrong))
    await images.refuses("parameters.n", D, **structured(n=2))
    for wrong in NO_INTEGERS:
        await images.refuses("parameters.n", D, **structured(n=wrong))


async def test_images_d_parameters(images: Images) -> None:
    image = {"image": data_url()}
    assert await images.one(D, **structured(negative_prompt="grey", watermark=False, seed=2147483647))
    assert await images.one(D_EDIT_PLUS, **structured(image, prompt_extend=False))
    for wrong in NO_STRINGS:
        await images.refuses("parameters.negative_prompt", D, **structured(negative_prompt=wrong))
    for wrong in NO_BOOLEANS:
        await images.refuses("parameters.prompt_extend", D_EDIT_PLUS, **structured(image, prompt_extend=wrong))
    await images.refuses("parameters.prompt_extend", D, **structured(prompt_extend=True))
    await images.refuses("parameters.prompt_extend", D_EDIT, **structured(image, prompt_extend=True))
    for seed in (-1, 2147483648):
        await images.refuses("parameters.seed", D, **structured(seed=seed))
    reply = await images.post(D, **structured(steps=5))
    assert reply.headers["x-umg-dropped"] == "parameters.steps"


async def test_images_d_watermark_is_on_by_default(images: Images) -> None:
    default, on, off = [
        await images.one(D, **structured(seed=1, **fields))
        for fields in ({}, {"watermark": True}, {"watermark": False})
    ]
    assert default == on != off


async def test_images_d_size(images: Images) -> None:
    assert pixels_of(await images.one(D, **structured(size="928*1664"))) == (928, 1664)
    for wrong in ("1328x1328", "large", "1:1", "0*0"):
        await images.refuses("parameters.size", D, **structured(size=wrong))


# --- rules for all


FOREIGN = [
    (G, "watermark", True),
    (G, "seed", 1),
    (G, "input_fidelity", "high"),
    (A40, "quality", "high"),
    (A3, "image_size", "2K"),
    (A3, "mime_type", "image/png"),
    (B, "sequential_image_generation", "auto"),
    (C, "seed", 1),
    (C, "watermark", True),
    (C, "aspect_ratio", "1:1"),
    (C, "top_p", 0.5),
    (C, "mime_type", "image/png"),
]


@pytest.mark.parametrize(("model", "field", "value"), FOREIGN)
async def test_images_a_field_of_another_family_is_refused(
    images: Images, model: str, field: str, value: object
) -> None:
    await images.refuses(field, model, **least(model), **{field: value})


async def test_images_errors_carry_both_shapes(images: Images) -> None:
    error = images.error(await images.post(C, headers={"authorization": "Bearer none"}), 401)
    assert error["code"] == "invalid_api_key"
    images.error(await images.post(C, prompt="a kite [[fail:429]]"), 429)
    assert (await images.post(C, prompt="a kite [[fail]]")).status == 502
    malformed = await images.gateway.send("POST", "/v1/images/generations", data=b"{")
    images.error(malformed, 400)
    images.error(await images.gateway.get("/v1/images/nothing"), 404)


async def test_images_the_native_key_header_is_no_credential(images: Images) -> None:
    key = images.gateway.server.headers["authorization"].removeprefix("Bearer ")
    reply = await images.gateway.post("/v1/images/generations", {"model": C, "prompt": "x"}, {"x-vendorg-api-key": key})
    images.error(reply, 401)


async def test_images_a_callers_address_is_drawn_as_a_placeholder(images: Images) -> None:
    one, other = [
        await images.one(A40, image=f"https://{host}/a.png", seed=1) for host in ("example.com", "example.org")
    ]
    assert one != other
    await images.refuses("image", A40, image="https://")
    await images.refuses("image", A40, image="ftp://example.com/a.png")


async def test_images_on_the_native_path(images: Images) -> None:
    for model in (G, G3):
        parts = [{"text": PROMPT}, {"inlineData": {"mimeType": "image/png", "data": base64.b64encode(WIDE).decode()}}]
        for content in ([parts[0]], parts):
            body = {"contents": [{"parts": content}], "generationConfig": {"responseModalities": ["IMAGE"]}}
            reply = await images.gateway.post(f"/v1beta/models/{model}:generateContent", body)
            assert reply.status == 200, reply.text[:300]
            [part] = reply.body["candidates"][0]["content"]["parts"]
            assert kind_of(base64.b64decode(part["inlineData"]["data"])) == "PNG"

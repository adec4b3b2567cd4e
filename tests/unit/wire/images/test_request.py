"""Bodies of the image paths, decoded into canonical requests."""

import base64
import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.error_checks import raises_error
from tests.support.images import GIF, JPEG, PNG, WEBP
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.facts_beside_request import DecodedRequest
from umg_grpc.wire.image_format_interface import FormPart
from umg_grpc.wire.images import IMAGE_EDITS, IMAGE_FORMATS, IMAGE_VARIATIONS, IMAGES_FACE, check_inputs
from umg_grpc.wire.images.long_json_strings import LONG_BYTES

URL = "https://example.com/a.png"
B64 = base64.b64encode(PNG).decode()


def decode(body: dict[str, Any], face: str = "images") -> DecodedRequest[pb.GenerateImageRequest]:
    return IMAGE_FORMATS[face].decode_request(json.dumps({"model": "m", **body}).encode(), {})


def canonical(body: dict[str, Any], face: str = "images") -> pb.GenerateImageRequest:
    request = decode(body, face).canonical
    request.ClearField("source")
    request.ClearField("model")
    request.ClearField("operation")
    return request


FLAT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the options of family G": (
        {
            "size": "16:9",
            "quality": "hd",
            "n": 2,
            "image_size": "2K",
            "mime_type": "image/jpeg",
            "top_p": 0.5,
            "response_modalities": "image-text",
            "temperature": 1,
            "personGeneration": "allow_all",
            "max_output_tokens": 100,
            "aspect_ratio": "1:1",
            "response_format": "url",
        },
        {
            "output_mime_type": "image/jpeg",
            "person_generation": "allow_all",
            "response_format": pb.IMAGE_RESPONSE_FORMAT_URL,
        },
    ),
    "the options of family A": (
        {
            "watermark": False,
            "seed": 2147483647,
            "guidance_scale": 2.5,
            "response_format": "b64_json",
            "sequential_image_generation": "auto",
            "sequential_image_generation_options": {"max_images": 3},
            "optimize_prompt_options": {"mode": "fast"},
        },
        {
            "max_sequential_images": 3,
            "optimize_prompt_mode": "fast",
            "sequential_image_generation": pb.SEQUENTIAL_IMAGE_GENERATION_AUTO,
            "response_format": pb.IMAGE_RESPONSE_FORMAT_B64_JSON,
        },
    ),
    "the options of family C": (
        {
            "input_fidelity": "high",
            "background": "opaque",
            "moderation": "low",
            "output_format": "webp",
            "output_compression": 50,
            "partial_images": 2,
            "safety_identifier": "u",
            "n": 2.0,
        },
        {"output_mime_type": "image/webp", "output_compression_percent": 50, "user": "u", "n": 2},
    ),
    "the options of models of family D's vendor": ({"negative_prompt": "rain", "prompt_extend": False}, {}),
}
"""Body, and the canonical fields that have another name or value than the members of the body."""


@pytest.mark.parametrize("name", FLAT)
def test_the_fields_of_a_flat_body_have_canonical_forms(name: str) -> None:
    body, others = FLAT[name]
    same = {name: body[name] for name in body.keys() & pb.GenerateImageRequest.DESCRIPTOR.fields_by_name.keys()}
    assert canonical({"prompt": "a kite", **body}) == pb.GenerateImageRequest(prompt="a kite", **same | others)


def test_null_means_absent() -> None:
    body = dict.fromkeys(("n", "size", "image", "images", "contents", "seed", "input", "parameters", "mime_type"))
    decoded = decode({"prompt": "a kite", **body})
    assert canonical({"prompt": "a kite", **body}) == pb.GenerateImageRequest(prompt="a kite")
    assert (decoded.notes.family, decoded.notes.uncarried) == ([], [])


@pytest.mark.parametrize("name", IMAGE_FORMATS)
def test_a_face_keeps_its_body_and_names_its_operation(name: str) -> None:
    body = json.dumps({"model": "m", "prompt": "a kite", "image": URL}).encode()
    request = IMAGE_FORMATS[name].decode_request(body, {}).canonical
    assert (request.source.format, request.source.body) == (name, body)
    operations = {"images": "GENERATE", "image_edits": "EDIT", "image_variations": "VARIATION"}
    assert pb.ImageOperation.Name(request.operation) == f"IMAGE_OPERATION_{operations[name]}"


IMAGE_TEXTS = {
    "an address": (URL, pb.ImageInput(url=URL)),
    "a data URL": (f"data:image/png;base64,{B64}", pb.ImageInput(data=PNG, mime_type="image/png")),
    "a wrong declared type": (f"data:image/bmp;base64,{B64}", pb.ImageInput(data=PNG, mime_type="image/png")),
    "base64": (B64, pb.ImageInput(data=PNG, mime_type="image/png")),
    "base64 without padding": (B64.rstrip("="), pb.ImageInput(data=PNG, mime_type="image/png")),
    "base64 in lines": ("\n".join((B64[:40], B64[40:])), pb.ImageInput(data=PNG, mime_type="image/png")),
}


@pytest.mark.parametrize("name", IMAGE_TEXTS)
def test_an_image_is_an_address_or_a_file(name: str) -> None:
    text, image = IMAGE_TEXTS[name]
    assert list(canonical({"prompt": "p", "image": text}).inputs) == [image]
    assert list(canonical({"prompt": "p", "image": [text, URL]}).inputs) == [image, pb.ImageInput(url=URL)]
    assert list(canonical({"prompt": "p", "images": [text]}).inputs) == [image]
    assert list(canonical({"prompt": "p", "images": [{"image_url": text}]}, "image_edits").inputs) == [image]
    turns = canonical({"contents": [{"role": "user", "parts": [{"text": "p"}, {"image": text}]}]}).turns
    assert turns[0].parts[1].image == image


@pytest.mark.parametrize("size", [LONG_BYTES // 2, LONG_BYTES * 9 + 1], ids=["short", "long"])
def test_a_large_file_is_decoded(size: int) -> None:
    data = PNG + bytes(range(256)) * (size // 256)
    text = base64.b64encode(data).decode()
    assert canonical({"prompt": "p", "image": text}).inputs[0].data == data
    wrapped = "\n".join((text[:100], text[100:]))
    assert canonical({"prompt": "p", "image": f"data:image/png;base64,{wrapped}"}).inputs[0].data == data


LONG = PNG + bytes(range(256)) * (LONG_BYTES // 128)
LONG_TEXT = base64.b64encode(LONG).decode()
LONG_BODIES: dict[str, tuple[dict[str, Any], int]] = {
    "a string": ({"prompt": "p", "image": LONG_TEXT}, 1),
    "a data URL": ({"prompt": "p", "image": f"data:image/png;base64,{LONG_TEXT}"}, 1),
    "a list": ({"prompt": "p", "image": [LONG_TEXT, LONG_TEXT]}, 2),
    "objects": ({"prompt": "p", "images": [{"image_url": LONG_TEXT}]}, 1),
    "input": ({"input": {"messages": [{"role": "user", "content": [{"image": LONG_TEXT}, {"text": "p"}]}]}}, 1),
    "other strings": ({"prompt": 'a "kite" \\', "image": LONG_TEXT, "user": "\\" * 200 + '"', "size": "1x1"}, 1),
    "a long prompt": ({"prompt": "p" * LONG_BYTES * 2, "image": LONG_TEXT}, 1),
    "a string like a placeholder": ({"prompt": "umg-long-string-0", "image": LONG_TEXT}, 1),
    "another alphabet": ({"prompt": "p", "image": LONG_TEXT.replace("+", "-").replace("/", "_").rstrip("=")}, 1),
    "lines": ({"prompt": "p", "image": f"{LONG_TEXT[:1000]}\n{LONG_TEXT[1000:]}"}, 1),
}


@pytest.mark.parametrize("name", LONG_BODIES)
def test_long_files_are_decoded_in_place(name: str) -> None:
    body, count = LONG_BODIES[name]
    request = canonical(body)
    assert [image.data for image in request.inputs] == [LONG] * count
    if "input" not in body:
        assert request.prompt == body["prompt"]
        assert request.user == body.get("user", "")


def test_long_files_of_turns_and_masks_are_decoded_in_place() -> None:
    turns = canonical({"contents": [{"parts": [{"image": LONG_TEXT}, {"text": "p"}]}]}).turns
    assert turns[0].parts[0].image.data == LONG
    edit = {"prompt": "p", "image": LONG_TEXT, "mask": LONG_TEXT}
    assert canonical(edit, "image_edits").mask.data == LONG


@pytest.mark.parametrize("text", ["p" * LONG_BYTES * 2, f"data:image/png;base64,{'!' * LONG_BYTES * 2}"])
def test_a_long_string_that_is_no_file_is_rejected_by_its_path(text: str) -> None:
    for body in ({"prompt": "p", "image": text}, {"prompt": "p", "size": 5, "image": text}):
        with raises_error(metadata={"field": "size" if "size" in body else "image"}):
            canonical(body)


def test_a_long_address_stays_an_address() -> None:
    url = f"https://example.com/{'a' * LONG_BYTES * 2}"
    assert canonical({"prompt": "p", "image": url}).inputs[0].url == url


def test_a_stream_is_found_behind_a_long_file() -> None:
    body = json.dumps({"model": "m", "image": LONG_TEXT, "stream": True}).encode()
    assert IMAGES_FACE.wants_stream(body)
    assert not IMAGES_FACE.wants_stream(body.replace(b"true", b"null"))


@pytest.mark.parametrize(("data", "mime"), [(JPEG, "jpeg"), (GIF, "gif"), (WEBP, "webp")], ids=["JPEG", "GIF", "WebP"])
def test_the_type_of_a_file_is_that_of_its_signature(data: bytes, mime: str) -> None:
    request = pb.GenerateImageRequest(inputs=[pb.ImageInput(data=data, mime_type="image/png")])
    check_inputs(request)
    assert request.inputs[0].mime_type == f"image/{mime}"


def test_a_structured_body_of_one_message_is_a_prompt_with_inputs() -> None:
    content = [{"image": URL}, {"text": "make it dusk"}]
    options = {"n": 2, "size": "10*10", "negative_prompt": "", "prompt_extend": False, "watermark": False, "seed": 7}
    body = {"input": {"messages": [{"role": "user", "content": content}]}, "parameters": {**options, "extra": 1}}
    request, notes = decode({**body, "response_format": "url", "foo": 1})
    assert (request.prompt, list(request.inputs)) == ("make it dusk", [pb.ImageInput(url=URL)])
    assert {name: getattr(request, name) for name in options} == options
    assert notes.uncarried == ["foo", "parameters.extra"]
    assert notes.family == ["input", "parameters"]
    assert notes.opaque_paths["inputs[0]"] == "input.messages[0].content[0].image"
    assert notes.opaque_paths["n"] == "parameters.n"


def test_a_structured_body_of_several_messages_has_turns() -> None:
    messages = [{"role": "user", "content": [{"text": text}]} for text in ("a kite", "make it red")]
    request = canonical({"input": {"messages": messages}})
    assert [turn.parts[0].text for turn in request.turns] == ["a kite", "make it red"]


def test_unknown_fields_are_recorded() -> None:
    body = {"prompt": "p", "style": "vivid", "sequential_image_generation_options": {"max_images": 1, "x": 1}}
    assert decode(body).notes.uncarried == ["style", "sequential_image_generation_options.x"]


@dataclass(frozen=True)
class Rejection:
    id: str
    body: dict[str, Any]
    field: str
    face: str = "images"
    model: str | None = "m"


def message(*content: object, role: str = "user") -> dict[str, Any]:
    return {"input": {"messages": [{"role": role, "content": list(content)}]}}


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


BOMB = PNG[:16] + (65535).to_bytes(4, "big") * 2 + PNG[24:]

REJECTIONS = [
    Rejection("a large seed", {"prompt": "p", "seed": 2147483648}, "seed"),
    Rejection("a watermark that is a text", {"prompt": "p", "watermark": "yes"}, "watermark"),
    Rejection("four drafts", {"prompt": "p", "partial_images": 4}, "partial_images"),
    Rejection("an unknown output", {"prompt": "p", "output_format": "bmp"}, "output_format"),
    Rejection("no parts", {"contents": [{"role": "user", "parts": []}]}, "contents[0].parts"),
    Rejection("two kinds", {"contents": [{"parts": [{"text": "p", "image": URL}]}]}, "contents[0].parts[0]"),
    Rejection("a file name", {"prompt": "p", "image": "cat.png"}, "image"),
    Rejection("a text", {"prompt": "p", "images": [URL, base64_of(b"hello")]}, "images[1]"),
    Rejection("a broken file", {"prompt": "p", "image": base64_of(PNG[:12])}, "image"),
    Rejection("a bomb", {"prompt": "p", "image": base64_of(BOMB)}, "image"),
    Rejection("an empty data URL", {"prompt": "p", "image": "data:image/png;base64,"}, "image"),
    Rejection("a file of the files API", {"prompt": "p", "images": [{"file_id": "f"}]}, "images[0]", "image_edits"),
    Rejection("an object without an address", {"prompt": "p", "image": {"url": URL}}, "image", "image_edits"),
    Rejection("an edit of no turn's image", {"contents": [{"parts": [{"text": "p"}]}]}, "image", "image_edits"),
    Rejection("an edit of a text", message({"text": "p"}), "input.messages[0].content", "image_edits"),
    Rejection("a mask without an edit", {"prompt": "p", "mask": URL}, "mask"),
    Rejection("a mask of a variation", {"image": URL, "mask": URL}, "mask", "image_variations"),
    Rejection("no content", message(), "input.messages[0].content"),
    Rejection("a bad image", message({"image": "foo"}), "input.messages[0].content[0].image"),
]


def test_an_unknown_response_format_is_left_to_the_rules_of_the_family() -> None:
    request, notes = decode({"prompt": "p", "response_format": "png"})
    assert (request.response_format, notes.family) == (pb.IMAGE_RESPONSE_FORMAT_UNSPECIFIED, ["response_format"])


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_a_wrong_body_is_rejected_by_the_path_of_its_field(case: Rejection) -> None:
    body = case.body if case.model is None else {"model": case.model, **case.body}
    with pytest.raises(UmgError) as caught:
        IMAGE_FORMATS[case.face].decode_request(json.dumps(body).encode(), {})
    assert caught.value.metadata == {"field": case.field}
    assert caught.value.message.startswith(f"`{case.field}`")


PATHS = {
    "inputs[0].url": "image[0]",
    "inputs": "image",
    "mask.data": "mask",
    "turns[0].parts[1].image.url": "contents[0].parts[1].image",
    "output_mime_type": "mime_type",
    "max_sequential_images": "sequential_image_generation_options.max_images",
    "optimize_prompt_mode": "optimize_prompt_options.mode",
    "operation": "model",
    "n": "n",
}


@pytest.mark.parametrize(("path", "written"), PATHS.items())
def test_canonical_paths_have_paths_in_a_body(path: str, written: str) -> None:
    assert IMAGES_FACE.wire_path(path) == written


# --- forms


def form(*parts: tuple[str, str] | tuple[str, str, bytes]) -> list[FormPart]:
    return [
        FormPart(part[0], part[1], part[2]) if len(part) == 3 else FormPart(part[0], None, part[1].encode())
        for part in parts
    ]


@pytest.mark.parametrize("name", ["image", "image[]", "image[0]"])
def test_a_form_has_images_and_options_as_texts(name: str) -> None:
    assert IMAGE_EDITS.decode_form is not None
    parts = form(
        *(("model", "imgC-1"), ("prompt", "a kite"), (name, "a.png", PNG), (name, "b.png", PNG), ("mask", "m", PNG)),
        *(("n", "2"), ("stream", "true"), ("partial_images", "1"), ("output_format", "jpeg"), ("style", "vivid")),
        *(("negative_prompt", "rain"), ("prompt_extend", "false")),
    )
    (request, notes), stream = IMAGE_EDITS.decode_form(parts)
    assert stream
    assert request == pb.GenerateImageRequest(
        model="imgC-1",
        operation=pb.IMAGE_OPERATION_EDIT,
        prompt="a kite",
        inputs=[pb.ImageInput(data=PNG, mime_type="image/png", file_name=name) for name in ("a.png", "b.png")],
        mask=pb.ImageInput(data=PNG, mime_type="image/png", file_name="m"),
        response_format=pb.IMAGE_RESPONSE_FORMAT_B64_JSON,
        n=2,
        partial_images=1,
        output_mime_type="image/jpeg",
        negative_prompt="rain",
        prompt_extend=False,
    )
    assert notes.uncarried == ["style"]


def test_a_variation_is_a_form_of_one_image() -> None:
    assert IMAGE_VARIATIONS.decode_form is not None
    (request, _), stream = IMAGE_VARIATIONS.decode_form(form(("model", "m"), ("image", "a.png", PNG), ("n", "")))
    assert (request.operation, len(request.inputs), stream) == (pb.IMAGE_OPERATION_VARIATION, 1, False)
    assert not request.HasField("n")


def test_edits_and_variations_are_returned_as_bytes_unless_an_address_is_requested() -> None:
    body = {"prompt": "p", "image": URL}
    default = {name: canonical(body, name).response_format for name in IMAGE_FORMATS}
    unset, bytes_of = pb.IMAGE_RESPONSE_FORMAT_UNSPECIFIED, pb.IMAGE_RESPONSE_FORMAT_B64_JSON
    assert default == {"images": unset, "image_edits": bytes_of, "image_variations": bytes_of}
    assert canonical({**body, "response_format": "url"}, "image_edits").response_format == pb.IMAGE_RESPONSE_FORMAT_URL


FORM_REJECTIONS = {
    "model": form(("prompt", "p")),
    "n": form(("model", "m"), ("n", "two")),
    "stream": form(("model", "m"), ("stream", "maybe")),
    "prompt": form(("model", "m"), ("prompt", "p"), ("prompt", "q")),
    "size": form(("model", "m"), ("size", "size.txt", b"1024x1024")),
    "image": form(("model", "m"), ("image", "a.txt", b"hello")),
    "image[1]": form(("model", "m"), ("image[]", "a.png", PNG), ("image[]", "b.bmp", b"BM" + bytes(60))),
    "mask": form(("model", "m"), ("mask", "a.png", PNG), ("mask", "b.png", PNG)),
    "contents": form(("model", "m"), ("contents", "{")),
}


@pytest.mark.parametrize("field", FORM_REJECTIONS)
def test_a_wrong_form_is_rejected_by_its_field(field: str) -> None:
    assert IMAGE_EDITS.decode_form is not None
    with raises_error(metadata={"field": field}):
        IMAGE_EDITS.decode_form(FORM_REJECTIONS[field])

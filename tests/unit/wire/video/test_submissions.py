"""Bodies of submissions in each entry: the request that they become, and the refused ones."""

import base64
from dataclasses import dataclass, field

import msgspec
import pytest

from tests.support.error_checks import raises_error
from umg_grpc.base.errors import UmgError
from umg_grpc.service.pipeline import schema_validation
from umg_grpc.v1 import pb
from umg_grpc.wire.core.multipart_forms import FormPart
from umg_grpc.wire.video import ENTRY_FORMATS

UNIFIED, OBJECT, D, E_V1, E_3, _, G = sorted(ENTRY_FORMATS)
IMAGE, VIDEO = pb.VIDEO_MEDIA_KIND_IMAGE, pb.VIDEO_MEDIA_KIND_VIDEO
PNG = b"\x89PNG\r\n\x1a\n"
BASE64 = base64.b64encode(PNG).decode()
DATA = f"data:image/png;base64,{BASE64}"
URL = "https://files.example/a.png"
CLIP = "https://files.example/a.mp4"
A, B_3, B_31 = "vidA-2", "vidB-3.0-generate-preview", "vidB-3.1-generate-preview"
D_1, D_2 = "vidD-1-0-pro-250528", "vidD-2-0-260128"
E_MODEL, G_MODEL = "vidE-v2-6", "vidG-H3"
TEXT_3, IMAGE_3 = {"kind": "text-to-video", "model": "vidE-3.0"}, {"kind": "image-to-video", "model": "vidE-3.0"}
OMNI = {"kind": "omni-video", "model": "vidE-3.0-omni"}


def text(words: str) -> dict[str, object]:
    return {"type": "text", "text": words}


def image(url: object = URL, role: str | None = None) -> dict[str, object]:
    return {"type": "image_url", "image_url": {"url": url}, "role": role}


def decode(
    entry: "pb.VideoEntry.ValueType", body: object, parameters: dict[str, str] | None = None
) -> pb.CreateVideoTaskRequest:
    return ENTRY_FORMATS[entry].decode_create(msgspec.json.encode(body), parameters or {})


@dataclass(frozen=True)
class Case:
    id: str
    entry: "pb.VideoEntry.ValueType"
    body: dict[str, object]
    parameters: dict[str, object]
    path: dict[str, str] = field(default_factory=dict)
    media: tuple[tuple[int, int, str | bytes], ...] = ()
    callback_url: str = ""
    external_task_id: str = ""


def d_1(words: str) -> dict[str, object]:
    return {"model": D_1, "metadata": {"content": [text(words)]}}


G_BODY = {"model": G_MODEL, "content": [text("a boat")], "resolution": "2K", "duration": 5}
CASES = [
    Case("a duration of 8.0", UNIFIED, {"model": B_3, "prompt": "p", "duration": 8.0}, {"duration_seconds": 8}),
    Case(
        "two spellings of one value",
        UNIFIED,
        {"model": B_3, "prompt": "p", "duration": 6, "durationSeconds": 6},
        {"duration_seconds": 6},
    ),
    Case(
        "markers of family D 1.x",
        UNIFIED,
        d_1("a boat\n--ratio 16:9 --dur 10 --rs 1080p --fps 24 --seed -1 --wm true --cf false"),
        {
            "prompt": "a boat",
            "aspect_ratio": "16:9",
            "duration_seconds": 10,
            "resolution": "1080p",
            "frames_per_second": 24,
            "seed": -1,
            "watermark": True,
            "camera_fixed": False,
        },
    ),
    Case("a text with dashes", UNIFIED, d_1("a boat -- and - a sea--side"), {"prompt": "a boat -- and - a sea--side"}),
    Case(
        "Entry E 3.0 keeps other fields",
        E_3,
        {
            "prompt": "p",
            "duration": 15,
            "multi_shot": [True, None],
            "settings": {"resolution": "1080p", "audio": "off"},
            "options": {"external_task_id": "a" * 191, "callback_url": "https://a.example/x", "z": 1.50},
        },
        {
            "duration_seconds": 15,
            "resolution": "1080p",
            "extra_json": '{"multi_shot":[true,null],"settings":{"audio":"off"},"options":{"z":1.5}}',
        },
        path=TEXT_3,
        callback_url="https://a.example/x",
        external_task_id="a" * 191,
    ),
    Case(
        "videos and images of omni",
        E_3,
        {"prompt": "p", "images": [CLIP, URL, {"image_url": DATA}]},
        {"resolution": "720p"},
        path=OMNI,
        media=((VIDEO, 0, CLIP), (IMAGE, 0, URL), (IMAGE, 0, PNG)),
    ),
    Case(
        "explicit null",
        OBJECT,
        {"model": A, "prompt": None, "seconds": None, "input_reference": None},
        {"size": "720x1280"},
    ),
    Case("a model without a family", OBJECT, {"model": "my-model", "seconds": "60"}, {"duration_seconds": 60}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_body_becomes_the_canonical_request(case: Case) -> None:
    request = decode(case.entry, case.body, case.path)
    given = {name: getattr(request.parameters, name) for name in case.parameters}
    assert (request.entry, given) == (case.entry, case.parameters)
    media = [(item.kind, item.role, item.data or item.url) for item in request.parameters.media]
    assert (media, request.callback_url, request.external_task_id) == (
        list(case.media),
        case.callback_url,
        case.external_task_id,
    )
    schema_validation.check(request)


@dataclass(frozen=True)
class Rejection:
    id: str
    entry: "pb.VideoEntry.ValueType"
    body: object
    field: str | None
    message: str = ""
    path: dict[str, str] = field(default_factory=dict)


REJECTIONS = [
    Rejection("no object", UNIFIED, [], None),
    Rejection("a fraction", UNIFIED, {"model": B_3, "duration": 4.5}, "duration"),
    Rejection("text for an integer", UNIFIED, {"model": B_3, "duration": "4"}, "duration"),
    Rejection("an object for an image", OBJECT, {"model": A, "input_reference": {"file_id": "f"}}, "input_reference"),
    Rejection("a file address", OBJECT, {"model": A, "input_reference": "file:///etc/passwd"}, "input_reference"),
    Rejection(
        "a video for an image", OBJECT, {"model": A, "input_reference": "data:video/mp4;base64,AAAA"}, "input_reference"
    ),
    Rejection("the second of the images", UNIFIED, {"model": B_31, "images": [URL, "no"]}, "images[1]"),
    Rejection("a model of Entry D", UNIFIED, {"model": D_2, "prompt": "p"}, "model", "/vidD/"),
    Rejection("content of family A", UNIFIED, {"model": A, "metadata": {"content": [text("p")]}}, "metadata.content"),
    *(
        Rejection(f"the marker {marker}", UNIFIED, d_1(f"p {marker}"), "metadata.content[0].text", "`--")
        for marker in ("--dur five", "--dur 5s", "--fps", "--wm 1", "--cf yes", "--seed x", "--foo 1", "--dur --fps 4")
    ),
    Rejection("a marker twice", UNIFIED, d_1("p --dur 5 --duration 10"), "metadata.content[0].text (--duration)"),
    Rejection("D: no text", D, {"model": D_2, "content": [image()]}, "content", "text content is required"),
    *(
        Rejection(
            f"D: no address of {kind}",
            D,
            {"model": D_2, "content": [text("p"), item]},
            f"content[1].{kind}.url",
            f"{kind}.url is required",
        )
        for kind in ("image_url", "video_url", "audio_url")
        for item in (
            {"type": kind},
            {"type": kind, kind: {}},
            {"type": kind, kind: {"url": ""}},
            {"type": kind, kind: "u"},
        )
    ),
    Rejection("D: an unknown item", D, {"model": D_2, "content": [text("p"), {"type": "draft"}]}, "content[1].type"),
    Rejection("E 3.0: another model in the body", E_3, {"prompt": "p", "model": "x"}, "model", path=TEXT_3),
    *(
        Rejection(
            f"E 3.0: {url}", E_3, {"prompt": "p", "options": {"callback_url": url}}, "options.callback_url", path=TEXT_3
        )
        for url in ("http://a.example", "https://", "/callback", "")
    ),
    *(
        Rejection(
            f"E 3.0: an id of {len(given)}",
            E_3,
            {"prompt": "p", "options": {"external_task_id": given}},
            "options.external_task_id",
            path=TEXT_3,
        )
        for given in ("", "a" * 192, "a b", "\u00e4")
    ),
    Rejection(
        "a video of another model", E_3, {"prompt": "p", "image": URL, "videos": [CLIP]}, "videos[0]", path=IMAGE_3
    ),
    Rejection("G: 768p", G, {**G_BODY, "resolution": "768p"}, "resolution"),
    Rejection(
        "G: a role of a video", G, {**G_BODY, "content": [text("p"), image(role="reference_video")]}, "content[1].role"
    ),
]


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_a_body_outside_the_document_is_refused_by_the_path_of_its_field(case: Rejection) -> None:
    with pytest.raises(UmgError) as caught:
        decode(case.entry, case.body, case.path)
    assert caught.value.metadata.get("field") == case.field
    assert case.message in caught.value.message
    assert not case.message.endswith("required") or caught.value.message == case.message


# --- forms


def field_part(name: str, value: str) -> FormPart:
    return FormPart(name, None, value.encode())


def file_part(name: str) -> FormPart:
    return FormPart(name, "a.png", PNG)


def decode_form(entry: "pb.VideoEntry.ValueType", *parts: FormPart, **path: str) -> pb.CreateVideoTaskRequest:
    decoder = ENTRY_FORMATS[entry].decode_form
    assert decoder is not None
    return decoder(list(parts), path)


def test_a_reference_may_be_a_text_part() -> None:
    request = decode_form(OBJECT, field_part("model", A), field_part("input_reference", URL))
    assert request.parameters.media[0].url == URL


def test_bracketed_names_are_rebuilt_and_typed() -> None:
    request = decode_form(
        E_V1,
        field_part("model", E_MODEL),
        field_part("prompt", "p"),
        field_part("duration", "10"),
        field_part("metadata[sound]", "true"),
        field_part("metadata[cfg_scale]", "0.5"),
        field_part("metadata[camera_control]", '{"type":"simple"}'),
        field_part("metadata[list][]", "x"),
        file_part("input_reference"),
        kind="image2video",
    )
    parameters = request.parameters
    assert (parameters.duration_seconds, parameters.generate_audio, parameters.cfg_scale) == (10, True, 0.5)
    assert (parameters.camera_control_json, parameters.extra_json) == ('{"type":"simple"}', '{"list":["x"]}')


def test_metadata_may_be_json_in_one_field() -> None:
    request = decode_form(
        UNIFIED, field_part("model", A), field_part("prompt", "p"), field_part("metadata", '{"x":{"y":1}}')
    )
    assert request.parameters.extra_json == '{"x":{"y":1}}'


@pytest.mark.parametrize(
    ("name", "value", "path"), [("duration", "ten", "duration"), ("metadata[sound]", "on", "metadata.sound")]
)
def test_a_wrong_value_of_a_form_is_refused(name: str, value: str, path: str) -> None:
    parts = (field_part("model", E_MODEL), field_part("prompt", "p"), file_part("image"), field_part(name, value))
    with raises_error(metadata={"field": path}):
        decode_form(E_V1, *parts, kind="image2video")


@pytest.mark.parametrize("names", [("a[",), ("[a]",), ("a[][b]",), ("a", "a[b]"), ("a[b]", "a"), ("a" + "[b]" * 20,)])
def test_malformed_names_are_refused(names: tuple[str, ...]) -> None:
    with raises_error(reason=pb.ERROR_REASON_INVALID_FIELD):
        decode_form(OBJECT, field_part("model", A), *(field_part(name, "x") for name in names))

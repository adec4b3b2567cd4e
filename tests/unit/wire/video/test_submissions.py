"""Bodies of submissions in each entry: the request that they become, and the refused ones."""

import base64
from dataclasses import dataclass, field

import msgspec
import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.service.pipeline import schema_validation
from umg_grpc.v1 import pb
from umg_grpc.wire.core.multipart_forms import FormPart
from umg_grpc.wire.video import ENTRY_FORMATS

UNIFIED, OBJECT, D, E_V1, E_3, F, G = sorted(ENTRY_FORMATS)
IMAGE, VIDEO = pb.VIDEO_MEDIA_KIND_IMAGE, pb.VIDEO_MEDIA_KIND_VIDEO
FIRST, LAST, REFERENCE = (
    pb.VIDEO_MEDIA_ROLE_FIRST_FRAME,
    pb.VIDEO_MEDIA_ROLE_LAST_FRAME,
    pb.VIDEO_MEDIA_ROLE_REFERENCE_IMAGE,
)
PNG = b"\x89PNG\r\n\x1a\n"
BASE64 = base64.b64encode(PNG).decode()
DATA = f"data:image/png;base64,{BASE64}"
URL = "https://files.example/a.png"
CLIP = "https://files.example/a.mp4"
A, B_3, B_31, D_1, D_2 = (
    "vidA-2",
    "vidB-3.0-generate-preview",
    "vidB-3.1-generate-preview",
    "vidD-1-0-pro-250528",
    "vidD-2-0-260128",
)
C_TEXT, C_IMAGE = "vidC2.5-t2v-preview", "vidC2.5-i2v-preview"
E_MODEL, F_MODEL, G_MODEL = "vidE-v2-6", "vidF_vgfm_t2v_l20", "vidG-H3"
SUBMIT = {"Action": "CVSync2AsyncSubmitTask"}
TEXT_2, IMAGE_2 = {"kind": "text2video"}, {"kind": "image2video"}
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
    Case("seconds as text", UNIFIED, {"model": A, "prompt": "p", "seconds": "8"}, {"duration_seconds": 8}),
    Case("seconds as a number", OBJECT, {"model": A, "seconds": 12}, {"duration_seconds": 12, "size": "720x1280"}),
    Case("a duration of 8.0", UNIFIED, {"model": B_3, "prompt": "p", "duration": 8.0}, {"duration_seconds": 8}),
    Case(
        "two spellings of one value",
        UNIFIED,
        {"model": B_3, "prompt": "p", "duration": 6, "durationSeconds": 6},
        {"duration_seconds": 6},
    ),
    Case(
        "all fields of family B",
        UNIFIED,
        {
            "model": B_31,
            "prompt": "p",
            "aspectRatio": "9:16",
            "resolution": "720p",
            "image": URL,
            "lastFrame": DATA,
            "generateAudio": True,
            "seed": 4294967295,
            "sampleCount": 2,
            "personGeneration": "allow_adult",
            "addWatermark": False,
            "fps": 24,
        },
        {
            "duration_seconds": 4,
            "aspect_ratio": "9:16",
            "resolution": "720p",
            "generate_audio": True,
            "seed": 4294967295,
            "sample_count": 2,
            "person_generation": "allow_adult",
            "watermark": False,
            "frames_per_second": 24,
        },
        media=((IMAGE, FIRST, URL), (IMAGE, LAST, PNG)),
    ),
    Case(
        "several images as frames",
        UNIFIED,
        {"model": B_31, "prompt": "p", "images": [URL, BASE64]},
        {},
        media=((IMAGE, FIRST, URL), (IMAGE, LAST, PNG)),
    ),
    Case(
        "an image of the openai SDK's name",
        UNIFIED,
        {"model": A, "input_reference": BASE64},
        {},
        media=((IMAGE, FIRST, PNG),),
    ),
    Case(
        "family C",
        UNIFIED,
        {"model": C_TEXT, "prompt": "p", "size": "832*480", "generate_audio": True, "duration": 10},
        {"size": "832*480", "generate_audio": True, "duration_seconds": 10},
    ),
    Case(
        "metadata that is passed through",
        UNIFIED,
        {
            "model": C_IMAGE,
            "image": URL,
            "metadata": {
                "negative_prompt": "rain",
                "callback_url": "https://a.example",
                "external_task_id": "t-1",
                "x": 1,
            },
        },
        {"negative_prompt": "rain", "extra_json": '{"x":1}'},
        media=((IMAGE, FIRST, URL),),
        callback_url="https://a.example",
        external_task_id="t-1",
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
    Case(
        "long markers",
        UNIFIED,
        d_1("a boat --duration 5 --resolution 480p --watermark false --camerafixed true"),
        {"resolution": "480p", "duration_seconds": 5, "watermark": False, "camera_fixed": True},
    ),
    Case("a text with dashes", UNIFIED, d_1("a boat -- and - a sea--side"), {"prompt": "a boat -- and - a sea--side"}),
    Case(
        "images of family D 1.x",
        UNIFIED,
        {
            "model": D_1,
            "metadata": {
                "content": [text("p"), image(role="first_frame"), image(DATA, "last_frame")],
                "return_last_frame": True,
            },
        },
        {"return_last_frame": True},
        media=((IMAGE, FIRST, URL), (IMAGE, LAST, PNG)),
    ),
    Case(
        "all fields of Entry D",
        D,
        {
            "model": D_2,
            "content": [
                text("a boat"),
                image(role="reference_image"),
                image("asset://a-1"),
                {"type": "video_url", "video_url": {"url": CLIP}},
                {"type": "audio_url", "audio_url": {"url": "https://files.example/a.mp3"}},
                text("at sea"),
            ],
            "resolution": "1080p",
            "ratio": "adaptive",
            "duration": 15,
            "generate_audio": False,
            "callback_url": "https://a.example",
            "return_last_frame": True,
            "seed": 7,
            "watermark": False,
            "camera_fixed": False,
            "frames": 121,
            "priority": 1,
        },
        {
            "prompt": "a boat\nat sea",
            "resolution": "1080p",
            "aspect_ratio": "adaptive",
            "duration_seconds": 15,
            "generate_audio": False,
            "return_last_frame": True,
            "seed": 7,
            "watermark": False,
            "camera_fixed": False,
            "frames": 121,
            "extra_json": '{"priority":1}',
        },
        media=(
            (IMAGE, REFERENCE, URL),
            (IMAGE, 0, "asset://a-1"),
            (VIDEO, 0, CLIP),
            (pb.VIDEO_MEDIA_KIND_AUDIO, 0, "https://files.example/a.mp3"),
        ),
        callback_url="https://a.example",
    ),
    Case(
        "aliases of the roles of Entry D",
        D,
        {"model": D_2, "content": [text("p"), image(role="first_image"), image(role="last_image")]},
        {},
        media=((IMAGE, FIRST, URL), (IMAGE, LAST, URL)),
    ),
    Case(
        "all fields of Entry E v1",
        E_V1,
        {
            "model": E_MODEL,
            "prompt": "p",
            "image": DATA,
            "images": [URL],
            "size": "1024x1024",
            "mode": "pro",
            "metadata": {
                "aspect_ratio": "1:1",
                "negative_prompt": "rain",
                "cfg_scale": 0.5,
                "static_mask": BASE64,
                "dynamic_masks": [{"mask": URL}],
                "camera_control": {"type": "simple"},
                "callback_url": "https://a.example",
                "external_task_id": "t.1",
                "sound": True,
                "seed": 1,
            },
        },
        {
            "duration_seconds": 5,
            "size": "1024x1024",
            "mode": "pro",
            "aspect_ratio": "1:1",
            "negative_prompt": "rain",
            "cfg_scale": 0.5,
            "dynamic_masks_json": f'[{{"mask":"{URL}"}}]',
            "camera_control_json": '{"type":"simple"}',
            "generate_audio": True,
            "seed": 1,
        },
        path=IMAGE_2,
        media=((IMAGE, FIRST, PNG), (IMAGE, LAST, URL), (IMAGE, pb.VIDEO_MEDIA_ROLE_STATIC_MASK, PNG)),
        callback_url="https://a.example",
        external_task_id="t.1",
    ),
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
    Case("an image of Entry E 3.0", E_3, {"prompt": "p", "image": URL}, {}, path=IMAGE_3, media=((IMAGE, FIRST, URL),)),
    Case(
        "videos and images of omni",
        E_3,
        {"prompt": "p", "images": [CLIP, URL, {"image_url": DATA}]},
        {"resolution": "720p"},
        path=OMNI,
        media=((VIDEO, 0, CLIP), (IMAGE, 0, URL), (IMAGE, 0, PNG)),
    ),
    *(
        Case(
            f"the video of omni in {name}",
            E_3,
            {"prompt": "p", name: [{"video_url": "https://a.example/v"}]},
            {},
            path=OMNI,
            media=((VIDEO, 0, "https://a.example/v"),),
        )
        for name in ("videos", "video_list", "reference_videos")
    ),
    Case(
        "all fields of Entry F",
        F,
        {
            "req_key": F_MODEL,
            "prompt": "p",
            "image": DATA,
            "image_urls": [URL],
            "binary_data_base64": [BASE64],
            "seed": -1,
            "aspect_ratio": "16:9",
            "frames": 121,
        },
        {"seed": -1, "aspect_ratio": "16:9", "frames": 121},
        path={**SUBMIT, "Version": "2022-08-31"},
        media=((IMAGE, 0, PNG), (IMAGE, 0, URL), (IMAGE, 0, PNG)),
    ),
    Case("Entry F without a version", F, {"req_key": F_MODEL}, {}, path=SUBMIT),
    Case(
        "all fields of Entry G",
        G,
        {
            **G_BODY,
            "content": [
                text("a boat"),
                image(role="first_frame"),
                {"type": "video_url", "video_url": {"url": CLIP}, "role": "reference_video"},
            ],
            "ratio": "21:9",
            "aigc_watermark": True,
        },
        {"resolution": "2K", "duration_seconds": 5, "aspect_ratio": "21:9", "watermark": True},
        media=((IMAGE, FIRST, URL), (VIDEO, pb.VIDEO_MEDIA_ROLE_REFERENCE_VIDEO, CLIP)),
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


D_BODY: dict[str, object] = {"model": D_2, "content": [text("p")]}
REJECTIONS = [
    Rejection("no object", UNIFIED, [], None),
    Rejection("no model", UNIFIED, {"prompt": "p"}, "model"),
    Rejection("an empty model", UNIFIED, {"model": ""}, "model"),
    Rejection("seconds of family A", UNIFIED, {"model": A, "prompt": "p", "seconds": "5"}, "seconds", "`seconds`"),
    Rejection("seconds that are no number", OBJECT, {"model": A, "seconds": "4s"}, "seconds"),
    Rejection("a fraction", UNIFIED, {"model": B_3, "duration": 4.5}, "duration"),
    Rejection("text for an integer", UNIFIED, {"model": B_3, "duration": "4"}, "duration"),
    Rejection("text for a boolean", UNIFIED, {"model": B_3, "generateAudio": "true"}, "generateAudio"),
    Rejection("a contradiction", UNIFIED, {"model": B_3, "duration": 4, "durationSeconds": 6}, "durationSeconds"),
    Rejection("a size with x", UNIFIED, {"model": C_TEXT, "prompt": "p", "size": "1280x720"}, "size"),
    Rejection("an object for an image", OBJECT, {"model": A, "input_reference": {"file_id": "f"}}, "input_reference"),
    Rejection("a word for an image", OBJECT, {"model": A, "input_reference": "boat"}, "input_reference"),
    Rejection("a file address", OBJECT, {"model": A, "input_reference": "file:///etc/passwd"}, "input_reference"),
    Rejection(
        "a video for an image", OBJECT, {"model": A, "input_reference": "data:video/mp4;base64,AAAA"}, "input_reference"
    ),
    Rejection("an empty image", UNIFIED, {"model": A, "image": "data:image/png;base64,"}, "image"),
    Rejection("the second of the images", UNIFIED, {"model": B_31, "images": [URL, "no"]}, "images[1]"),
    Rejection(
        "a last frame of 3.0", UNIFIED, {"model": B_3, "prompt": "p", "image": URL, "lastFrame": URL}, "lastFrame"
    ),
    Rejection("no content of family D 1.x", UNIFIED, {"model": D_1, "prompt": "p"}, "metadata.content"),
    Rejection("a model of Entry D", UNIFIED, {"model": D_2, "prompt": "p"}, "model", "/vidD/"),
    Rejection("content of family A", UNIFIED, {"model": A, "metadata": {"content": [text("p")]}}, "metadata.content"),
    Rejection("metadata as a list", UNIFIED, {"model": A, "metadata": []}, "metadata"),
    Rejection("a ratio marker", UNIFIED, d_1("p --ratio 2:1"), "metadata.content[0].text (--ratio)"),
    *(
        Rejection(f"the marker {marker}", UNIFIED, d_1(f"p {marker}"), "metadata.content[0].text", "`--")
        for marker in ("--dur five", "--dur 5s", "--fps", "--wm 1", "--cf yes", "--seed x", "--foo 1", "--dur --fps 4")
    ),
    Rejection("a marker twice", UNIFIED, d_1("p --dur 5 --duration 10"), "metadata.content[0].text (--duration)"),
    Rejection(
        "a video of family D 1.x",
        UNIFIED,
        {"model": D_1, "metadata": {"content": [{"type": "video_url"}]}},
        "metadata.content[0].type",
    ),
    Rejection("D: no model", D, {"content": [text("p")]}, "model", "model is required"),
    Rejection("D: an empty model", D, {**D_BODY, "model": ""}, "model", "model is required"),
    Rejection("D: another family", D, {**D_BODY, "model": A}, "model", f"unsupported seedance-family model: {A}"),
    Rejection("D: a model of 1.x", D, {**D_BODY, "model": D_1}, "model", f"unsupported seedance-family model: {D_1}"),
    Rejection("D: no content", D, {"model": D_2}, "content", "text content is required"),
    Rejection("D: no text", D, {"model": D_2, "content": [image()]}, "content", "text content is required"),
    Rejection("D: blank text", D, {"model": D_2, "content": [text(" ")]}, "content", "text content is required"),
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
    Rejection("D: an unknown role", D, {"model": D_2, "content": [text("p"), image(role="hero")]}, "content[1].role"),
    Rejection(
        "D: a last frame with a reference",
        D,
        {
            "model": D_2,
            "content": [text("p"), image(role="first_image"), image(role="last_image"), image(role="reference_image")],
        },
        "content[2].image_url.url",
        "last frame image content cannot be mixed with reference image",
    ),
    Rejection(
        "D: a last frame alone",
        D,
        {"model": D_2, "content": [text("p"), image(role="last_image")]},
        "content[1].image_url.url",
    ),
    Rejection("D: 16 seconds", D, {**D_BODY, "duration": 16}, "duration", "duration must be between 4 and 15"),
    Rejection(
        "D: 1080p of the fast model",
        D,
        {**D_BODY, "model": "vidD-2-0-fast-260128", "resolution": "1080p"},
        "resolution",
        "the fast model vidD-2-0-fast-260128 does not support 1080p",
    ),
    Rejection("D: text for a boolean", D, {**D_BODY, "generate_audio": "false"}, "generate_audio"),
    Rejection("E v1: no prompt", E_V1, {"model": E_MODEL}, "prompt", path=TEXT_2),
    Rejection(
        "E v1: sound as a word",
        E_V1,
        {"model": E_MODEL, "prompt": "p", "metadata": {"sound": "on"}},
        "metadata.sound",
        path=TEXT_2,
    ),
    Rejection("E v1: an image for a text", E_V1, {"model": E_MODEL, "prompt": "p", "image": URL}, "image", path=TEXT_2),
    Rejection("E v1: no image", E_V1, {"model": E_MODEL, "prompt": "p"}, "image", path=IMAGE_2),
    Rejection("E v1: a mode", E_V1, {"model": E_MODEL, "prompt": "p", "mode": "4k"}, "mode", path=TEXT_2),
    Rejection("E 3.0: no prompt", E_3, {}, "prompt", path=TEXT_3),
    Rejection("E 3.0: 2 seconds", E_3, {"prompt": "p", "duration": 2}, "duration", path=TEXT_3),
    Rejection("E 3.0: another model in the body", E_3, {"prompt": "p", "model": "x"}, "model", path=TEXT_3),
    Rejection(
        "E 3.0: a model of another kind", E_3, {"prompt": "p"}, "model", path={**TEXT_3, "model": "vidE-3.0-omni"}
    ),
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
    Rejection("omni: eight images", E_3, {"prompt": "p", "images": [URL] * 8}, "images", "at most 7", OMNI),
    Rejection(
        "omni: five beside a video",
        E_3,
        {"prompt": "p", "images": [URL] * 5, "videos": [CLIP]},
        "images",
        "at most 4",
        OMNI,
    ),
    Rejection("omni: two videos", E_3, {"prompt": "p", "videos": [CLIP, CLIP]}, "videos", "at most 1", OMNI),
    Rejection(
        "a video of another model", E_3, {"prompt": "p", "image": URL, "videos": [CLIP]}, "videos[0]", path=IMAGE_3
    ),
    Rejection("F: no action", F, {"req_key": F_MODEL}, "Action"),
    Rejection("F: an empty action", F, {"req_key": F_MODEL}, "Action", path={"Action": ""}),
    Rejection("F: an unknown action", F, {"req_key": F_MODEL}, "Action", path={"Action": "CVProcess"}),
    Rejection("F: another version", F, {"req_key": F_MODEL}, "Version", path={**SUBMIT, "Version": "2024-06-06"}),
    Rejection("F: no req_key", F, {"prompt": "p"}, "req_key", path=SUBMIT),
    Rejection("F: a req_key of another family", F, {"req_key": A}, "req_key", path=SUBMIT),
    *(
        Rejection(f"G: a callback of {given!r}", G, {**G_BODY, "callback_url": given}, "callback_url")
        for given in ("https://a.example", "", None, 1)
    ),
    Rejection("G: empty content", G, {**G_BODY, "content": []}, "content"),
    Rejection(
        "G: no resolution", G, {key: value for key, value in G_BODY.items() if key != "resolution"}, "resolution"
    ),
    Rejection("G: no duration", G, {key: value for key, value in G_BODY.items() if key != "duration"}, "duration"),
    Rejection("G: 768p", G, {**G_BODY, "resolution": "768p"}, "resolution"),
    Rejection("G: 3 seconds", G, {**G_BODY, "duration": 3}, "duration", "duration must be between 4 and 15"),
    Rejection(
        "G: a role of Entry D", G, {**G_BODY, "content": [text("p"), image(role="first_image")]}, "content[1].role"
    ),
    Rejection(
        "G: a role of a video", G, {**G_BODY, "content": [text("p"), image(role="reference_video")]}, "content[1].role"
    ),
    Rejection(
        "G: no address", G, {**G_BODY, "content": [text("p"), {"type": "image_url"}]}, "content[1].image_url.url"
    ),
    Rejection("G: another model", G, {**G_BODY, "model": A}, "model"),
]


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_a_body_outside_the_document_is_refused_by_the_path_of_its_field(case: Rejection) -> None:
    with pytest.raises(UmgError) as caught:
        decode(case.entry, case.body, case.path)
    assert caught.value.metadata.get("field") == case.field
    assert case.message in caught.value.message
    exact = case.message.endswith(("required", "15", "image", "1080p")) or case.message.startswith("unsupported")
    assert not exact or caught.value.message == case.message


# --- forms


def field_part(name: str, value: str) -> FormPart:
    return FormPart(name, None, value.encode())


def file_part(name: str) -> FormPart:
    return FormPart(name, "a.png", PNG)


def decode_form(entry: "pb.VideoEntry.ValueType", *parts: FormPart, **path: str) -> pb.CreateVideoTaskRequest:
    decoder = ENTRY_FORMATS[entry].decode_form
    assert decoder is not None
    return decoder(list(parts), path)


@pytest.mark.parametrize("name", ["input_reference", "image"])
def test_a_form_has_numbers_as_text_and_its_file_under_either_name(name: str) -> None:
    request = decode_form(OBJECT, field_part("model", A), field_part("seconds", "8"), file_part(name))
    (medium,) = request.parameters.media
    assert (request.parameters.duration_seconds, medium.data, medium.mime_type) == (8, PNG, "image/png")


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
    with pytest.raises(UmgError) as caught:
        decode_form(E_V1, *parts, kind="image2video")
    assert caught.value.metadata == {"field": path}


@pytest.mark.parametrize("names", [("a[",), ("[a]",), ("a[][b]",), ("a", "a[b]"), ("a[b]", "a"), ("a" + "[b]" * 20,)])
def test_malformed_names_are_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(UmgError) as caught:
        decode_form(OBJECT, field_part("model", A), *(field_part(name, "x") for name in names))
    assert caught.value.reason == pb.ERROR_REASON_INVALID_FIELD

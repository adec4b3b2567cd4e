"""Rules of the video models in their entries (`umg_grpc/knowledge/families/video_model_rules.py`)."""

from dataclasses import dataclass

import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.families.video_model_rules import (
    DOCUMENTED_MODELS,
    ENTRY_PATHS,
    ENTRY_RULES,
    VIDEO_FAMILIES,
    video_family,
)
from umg_grpc.service.pipeline import schema_validation
from umg_grpc.v1 import pb
from umg_grpc.wire.video.video_request_checks import check

UNIFIED, OBJECT, D, E_V1, E_3, F, G = sorted(ENTRY_RULES)
FIRST, LAST, REFERENCE = (
    pb.VIDEO_MEDIA_ROLE_FIRST_FRAME,
    pb.VIDEO_MEDIA_ROLE_LAST_FRAME,
    pb.VIDEO_MEDIA_ROLE_REFERENCE_IMAGE,
)
OMNI, TEXT, IMAGES = (
    pb.VIDEO_TASK_KIND_OMNI,
    pb.VIDEO_TASK_KIND_TEXT_TO_VIDEO,
    pb.VIDEO_TASK_KIND_IMAGE_TO_VIDEO,
)
D_2, D_2_FAST, B_3, B_3_FAST, B_31 = (
    "vidD-2-0-260128",
    "vidD-2-0-fast-260128",
    "vidB-3.0-generate-preview",
    "vidB-3.0-fast-generate-001",
    "vidB-3.1-generate-preview",
)
C_TEXT, C_IMAGE, D_1_5 = "vidC2.5-t2v-preview", "vidC2.5-i2v-preview", "vidD-1-5-pro-251215"


def image(role: "pb.VideoMediaRole.ValueType" = pb.VIDEO_MEDIA_ROLE_UNSPECIFIED) -> pb.VideoMedia:
    return pb.VideoMedia(kind=pb.VIDEO_MEDIA_KIND_IMAGE, role=role, url="https://files.example/a.png")


def video() -> pb.VideoMedia:
    return pb.VideoMedia(kind=pb.VIDEO_MEDIA_KIND_VIDEO, url="https://files.example/a.mp4")


def request(
    entry: "pb.VideoEntry.ValueType",
    model: str,
    *,
    media: tuple[pb.VideoMedia, ...] = (),
    kind: "pb.VideoTaskKind.ValueType" = pb.VIDEO_TASK_KIND_UNSPECIFIED,
    callback_url: str | None = None,
    external_task_id: str | None = None,
    **parameters: object,
) -> pb.CreateVideoTaskRequest:
    given = {"prompt": "a boat", **parameters}
    return pb.CreateVideoTaskRequest(
        model=model,
        entry=entry,
        kind=kind,
        callback_url=callback_url,
        external_task_id=external_task_id,
        parameters=pb.VideoParameters(media=media, **given),
    )


def checked(*args: object, **fields: object) -> pb.VideoParameters:
    return check(request(*args, **fields)).parameters


# --- defaults


@dataclass(frozen=True)
class Default:
    entry: "pb.VideoEntry.ValueType"
    model: str
    parameters: dict[str, object]
    images: int = 0


DEFAULTS = [
    Default(UNIFIED, "vidA-2", {"duration_seconds": 4, "size": "720x1280"}),
    Default(OBJECT, "vidA-2", {"duration_seconds": 4, "size": "720x1280"}),
    Default(
        UNIFIED,
        B_3,
        {
            "duration_seconds": 4,
            "aspect_ratio": "16:9",
            "resolution": "1080p",
            "generate_audio": False,
            "sample_count": 1,
        },
    ),
    Default(UNIFIED, B_3_FAST, {"generate_audio": True}),
    Default(UNIFIED, C_TEXT, {"duration_seconds": 5, "resolution": "720p", "generate_audio": False}),
    Default(UNIFIED, C_IMAGE, {"duration_seconds": 5, "resolution": "720p"}, images=1),
    Default(UNIFIED, "vidD-1-0-pro-250528", {"duration_seconds": 5}),
    Default(UNIFIED, "vidD-1-5-pro-251215-noAudio", {"duration_seconds": 5, "generate_audio": False}),
    Default(E_V1, "vidE-v3", {"duration_seconds": 5}),
    Default(E_3, "vidE-3.0", {"duration_seconds": 5, "resolution": "720p"}),
]


@pytest.mark.parametrize("case", DEFAULTS, ids=lambda case: f"{case.model} in {case.entry}")
def test_documented_defaults_are_set(case: Default) -> None:
    parameters = checked(case.entry, case.model, media=(image(),) * case.images)
    assert {name: getattr(parameters, name) for name in case.parameters} == case.parameters


@pytest.mark.parametrize(("entry", "model"), [(D, D_2), (F, "vidF_vgfm_t2v_l20")])
def test_a_parameter_without_a_documented_default_stays_unset(entry: "pb.VideoEntry.ValueType", model: str) -> None:
    assert [name.name for name, _ in checked(entry, model).ListFields()] == ["prompt"]


def test_a_value_of_the_caller_is_kept() -> None:
    parameters = checked(UNIFIED, C_TEXT, duration_seconds=10, size="832*480", generate_audio=True)
    assert (parameters.duration_seconds, parameters.generate_audio) == (10, True)
    assert not parameters.HasField("resolution")


def test_the_request_itself_is_not_changed() -> None:
    given = request(UNIFIED, "vidA-2")
    check(given)
    assert given == request(UNIFIED, "vidA-2")


def test_an_explicit_false_of_entry_d_is_kept() -> None:
    assert checked(D, D_2, generate_audio=False).HasField("generate_audio")


def test_fast_models_ignore_the_parameter_for_audio() -> None:
    assert checked(UNIFIED, B_3_FAST, generate_audio=False).generate_audio


@pytest.mark.parametrize("model", sorted(DOCUMENTED_MODELS))
def test_every_checked_request_satisfies_the_rules_of_the_schema(model: str) -> None:
    entry = next(entry for entry, rules in ENTRY_RULES.items() if model in rules)
    needed = {"resolution": "2K", "duration_seconds": 6} if entry == G else {}
    schema_validation.check(check(request(entry, model, media=(image(),) if "i2v" in model else (), **needed)))


# --- kinds and roles


def test_the_kind_follows_from_the_media() -> None:
    assert check(request(UNIFIED, "vidA-2")).kind == TEXT
    assert check(request(UNIFIED, "vidA-2", media=(image(),))).kind == IMAGES
    assert check(request(D, D_2, media=(video(), image()))).kind == OMNI
    assert check(request(E_3, "vidE-3.0-omni")).kind == OMNI


def test_an_image_alone_is_the_first_frame() -> None:
    assert [item.role for item in checked(UNIFIED, C_IMAGE, media=(image(),)).media] == [FIRST]


def test_of_two_images_the_second_is_the_last_frame_on_the_models_that_have_both() -> None:
    assert [item.role for item in checked(UNIFIED, B_31, media=(image(), image())).media] == [FIRST, LAST]
    assert [item.role for item in checked(D, D_2, media=(image(), image())).media] == [0, 0]


# --- models and entries


@pytest.mark.parametrize(
    ("entry", "model"),
    [
        (UNIFIED, D_2),
        (UNIFIED, "vidE-v1"),
        (OBJECT, B_3),
        (E_V1, "vidE-3.0"),
        (E_3, "vidE-v1"),
        (F, "vidG-H3"),
        (G, "vidA-2"),
    ],
)
def test_a_model_of_another_entry_is_refused_with_the_path_of_its_own(
    entry: "pb.VideoEntry.ValueType", model: str
) -> None:
    with pytest.raises(UmgError) as caught:
        check(request(entry, model))
    own = next(own for own, rules in ENTRY_RULES.items() if model in rules)
    assert (caught.value.reason, caught.value.metadata) == (pb.ERROR_REASON_INVALID_FIELD, {"field": "model"})
    assert ENTRY_PATHS[own] in caught.value.message


@pytest.mark.parametrize("model", ["vidD-1-0-pro-250528", "vidD-1-5-pro-251215-noAudio", "vidA-2", "unknown"])
def test_entry_d_refuses_other_models_by_its_own_text(model: str) -> None:
    with pytest.raises(UmgError, match=f"^unsupported seedance-family model: {model}$"):
        check(request(D, model))


def test_a_model_without_a_family_is_not_checked() -> None:
    parameters = checked(UNIFIED, "my-model", duration_seconds=7, size="1x1", mode="fast")
    assert (parameters.duration_seconds, parameters.size) == (7, "1x1")


def test_an_id_of_the_operator_has_the_rules_of_its_neutral_upstream_model() -> None:
    with pytest.raises(UmgError):
        check(request(UNIFIED, "my-video", media=(image(FIRST), image(LAST))), "", B_3)
    assert check(request(D, "my-video", duration_seconds=3), "", "vidD-9").parameters.duration_seconds == 3


def test_a_neutral_id_has_its_rules_at_the_model_of_a_vendor() -> None:
    assert check(request(UNIFIED, B_3), "vidB", "veo-3.0-generate-001").parameters.resolution == "1080p"
    with pytest.raises(UmgError):
        check(request(UNIFIED, B_3, duration_seconds=5), "vidB", "veo-3.0-generate-001")


@pytest.mark.parametrize("entry", sorted(ENTRY_RULES))
def test_the_model_of_a_vendor_has_no_defaults_and_no_limits(entry: "pb.VideoEntry.ValueType") -> None:
    fields = {"duration_seconds": 7, "resolution": "1440p", "size": "7x7", "media": (image(), image(), image())}
    given = request(entry, "veo-9", **fields)
    made = check(given, "vidB", "veo-9")
    assert made.parameters == given.parameters
    assert check(request(entry, "veo-9"), "vidB", "veo-9").parameters == request(entry, "veo-9").parameters


def test_families_by_the_beginning_of_an_id() -> None:
    assert {video_family(model) for model in DOCUMENTED_MODELS} == set(VIDEO_FAMILIES)
    assert video_family("vidX-1", "vid", "video-1") == ""


# --- rejections


@dataclass(frozen=True)
class Rejection:
    id: str
    request: pb.CreateVideoTaskRequest
    field: str
    message: str = ""
    reason: "pb.ErrorReason.ValueType" = pb.ERROR_REASON_INVALID_FIELD


UNSUPPORTED, MISSING = pb.ERROR_REASON_UNSUPPORTED_FIELD, pb.ERROR_REASON_MISSING_FIELD
MEDIA = "parameters.media"
REJECTIONS = [
    Rejection("A: 5 seconds", request(UNIFIED, "vidA-2", duration_seconds=5), "parameters.duration_seconds"),
    Rejection("A: another size", request(OBJECT, "vidA-2", size="1024x1792"), "parameters.size"),
    Rejection(
        "A: a ratio", request(UNIFIED, "vidA-2", aspect_ratio="16:9"), "parameters.aspect_ratio", reason=UNSUPPORTED
    ),
    Rejection("A: two images", request(UNIFIED, "vidA-2", media=(image(), image())), MEDIA),
    Rejection("A: nothing to show", request(UNIFIED, "vidA-2", prompt=""), "parameters.prompt", reason=MISSING),
    Rejection("B: 5 seconds", request(UNIFIED, B_3, duration_seconds=5), "parameters.duration_seconds"),
    Rejection("B: another ratio", request(UNIFIED, B_3, aspect_ratio="1:1"), "parameters.aspect_ratio"),
    Rejection("B: 480p", request(UNIFIED, B_3, resolution="480p"), "parameters.resolution"),
    Rejection(
        "B: five videos", request(UNIFIED, B_3, sample_count=5), "parameters.sample_count", "sampleCount must be"
    ),
    Rejection(
        "B 3.0: a last frame",
        request(UNIFIED, B_3, media=(image(FIRST), image(LAST))),
        f"{MEDIA}[1]",
        reason=UNSUPPORTED,
    ),
    Rejection("B 3.1: a last frame alone", request(UNIFIED, B_31, media=(image(LAST),)), f"{MEDIA}[0]"),
    Rejection("C: 6 seconds", request(UNIFIED, C_TEXT, duration_seconds=6), "parameters.duration_seconds"),
    Rejection("C: a size with x", request(UNIFIED, C_TEXT, size="1280x720"), "parameters.size"),
    Rejection(
        "C: a resolution that the size contradicts",
        request(UNIFIED, C_TEXT, size="1280*720", resolution="480p"),
        "parameters.resolution",
        "`parameters.resolution`: it contradicts the size 1280*720; send one of them",
    ),
    Rejection("C: a size of nothing", request(UNIFIED, C_TEXT, size="0*0"), "parameters.size"),
    Rejection(
        "C: a size for an image",
        request(UNIFIED, C_IMAGE, size="1280*720", media=(image(),)),
        "parameters.size",
        reason=UNSUPPORTED,
    ),
    Rejection("C: no image", request(UNIFIED, C_IMAGE), MEDIA, reason=MISSING),
    Rejection(
        "C: an image for a text model", request(UNIFIED, C_TEXT, media=(image(),)), f"{MEDIA}[0]", reason=UNSUPPORTED
    ),
    Rejection("D 1.x: another ratio", request(UNIFIED, D_1_5, aspect_ratio="2:1"), "parameters.aspect_ratio"),
    Rejection(
        "D 1.x: neither a text nor an image",
        request(UNIFIED, D_1_5, prompt=" "),
        "parameters.prompt",
        "`parameters.prompt`: a text is required where there is no image; add one",
        MISSING,
    ),
    Rejection(
        "D: two first frames",
        request(D, D_2, media=(image(FIRST), image(FIRST))),
        f"{MEDIA}[1]",
        "`parameters.media[1]`: it is the second first frame; send one",
    ),
    Rejection(
        "D: a callback without a scheme",
        request(D, D_2, callback_url="a.example/x"),
        "callback_url",
        "callback_url must be an absolute http or https URL",
    ),
    Rejection("D: blank text", request(D, D_2, prompt=" \n"), "parameters.prompt", "text content is required", MISSING),
    Rejection(
        "D: a last frame with a reference",
        request(D, D_2, media=(image(FIRST), image(LAST), image(REFERENCE))),
        f"{MEDIA}[1]",
        "last frame image content cannot be mixed with reference image",
    ),
    Rejection("D: a last frame alone", request(D, D_2, media=(image(LAST),)), f"{MEDIA}[0]"),
    Rejection(
        "D: 3 seconds",
        request(D, D_2, duration_seconds=3),
        "parameters.duration_seconds",
        "duration must be between 4 and 15",
    ),
    Rejection(
        "D: 1080p on the fast model",
        request(D, D_2_FAST, resolution="1080p"),
        "parameters.resolution",
        "the fast model vidD-2-0-fast-260128 does not support 1080p",
    ),
    Rejection("E v1: another mode", request(E_V1, "vidE-v1", mode="4k"), "parameters.mode"),
    Rejection("E v1: another size", request(E_V1, "vidE-v1", size="1920x1080"), "parameters.size"),
    Rejection(
        "E v1: a ratio that the size contradicts",
        request(E_V1, "vidE-v1", size="1280x720", aspect_ratio="1:1"),
        "parameters.aspect_ratio",
        "`parameters.aspect_ratio`: it contradicts the size 1280x720; send one of them",
    ),
    Rejection("E v1: no prompt", request(E_V1, "vidE-v1", prompt=""), "parameters.prompt", reason=MISSING),
    Rejection(
        "E v1: an image for a text",
        request(E_V1, "vidE-v1", kind=TEXT, media=(image(),)),
        f"{MEDIA}[0]",
        reason=UNSUPPORTED,
    ),
    Rejection("E v1: no image", request(E_V1, "vidE-v1", kind=IMAGES), MEDIA, reason=MISSING),
    Rejection(
        "E 3.0: 16 seconds",
        request(E_3, "vidE-3.0", duration_seconds=16),
        "parameters.duration_seconds",
        "duration must be between 3 and 15",
    ),
    Rejection("E 3.0: a model of another kind", request(E_3, "vidE-3.0-omni", kind=TEXT), "model"),
    Rejection("E 3.0: not an omni model", request(E_3, "vidE-3.0", kind=OMNI), "model"),
    Rejection(
        "E 3.0: a callback without TLS", request(E_3, "vidE-3.0", callback_url="http://a.example"), "callback_url"
    ),
    Rejection("E 3.0: a callback without a host", request(E_3, "vidE-3.0", callback_url="https://"), "callback_url"),
    Rejection("E 3.0: an id with a space", request(E_3, "vidE-3.0", external_task_id="a b"), "external_task_id"),
    Rejection("E 3.0: a long id", request(E_3, "vidE-3.0", external_task_id="a" * 192), "external_task_id"),
    Rejection("omni: 8 references", request(E_3, "vidE-3.0-omni", media=(image(),) * 8), MEDIA, "at most 7"),
    Rejection(
        "omni: 5 beside a video", request(E_3, "vidE-3.0-omni", media=(video(), *(image(),) * 5)), MEDIA, "at most 4"
    ),
    Rejection("omni: 2 videos", request(E_3, "vidE-3.0-omni", media=(video(), video())), MEDIA, "at most 1"),
    Rejection("G: no resolution", request(G, "vidG-H3", duration_seconds=6), "parameters.resolution", reason=MISSING),
    Rejection("G: no duration", request(G, "vidG-H3", resolution="2K"), "parameters.duration_seconds", reason=MISSING),
    Rejection("G: 1080p", request(G, "vidG-H3", resolution="1080p", duration_seconds=6), "parameters.resolution"),
    Rejection(
        "G: 16 seconds", request(G, "vidG-H3", resolution="2K", duration_seconds=16), "parameters.duration_seconds"
    ),
    Rejection(
        "G: a callback",
        request(G, "vidG-H3", resolution="2K", duration_seconds=6, callback_url="https://a.example"),
        "callback_url",
        reason=UNSUPPORTED,
    ),
    Rejection("fields that are no object", request(UNIFIED, "vidA-2", extra_json="[]"), "parameters.extra_json"),
]


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_a_request_outside_the_document_is_refused_by_the_path_of_its_field(case: Rejection) -> None:
    with pytest.raises(UmgError) as caught:
        check(case.request)
    assert (caught.value.reason, caught.value.metadata) == (case.reason, {"field": case.field})
    assert case.message in caught.value.message


@pytest.mark.parametrize("seconds", [3, 15])
def test_the_ends_of_a_range_are_accepted(seconds: int) -> None:
    assert checked(E_3, "vidE-3.0", duration_seconds=seconds).duration_seconds == seconds


def test_a_size_that_agrees_with_the_resolution_or_the_ratio_is_accepted() -> None:
    assert checked(UNIFIED, C_TEXT, size="1280*720", resolution="720p").size == "1280*720"
    assert checked(E_V1, "vidE-v1", size="720x1280", aspect_ratio="9:16").size == "720x1280"


def test_the_largest_numbers_of_omni_references_are_accepted() -> None:
    check(request(E_3, "vidE-3.0-omni", media=(image(),) * 7))
    check(request(E_3, "vidE-3.0-omni", media=(video(), *(image(),) * 4)))

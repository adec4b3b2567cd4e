"""Rules of the image families: one row for each rule of the image document."""

from dataclasses import KW_ONLY, dataclass

import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.families.image_model_rules import (
    GENERAL_RULES,
    IMAGE_MODELS,
    RATIO_PIXELS,
    family_row,
    max_images,
    nearest_ratio,
    requested_pixels,
    tier_of,
)
from umg_grpc.v1 import pb
from umg_grpc.wire.images.image_request_checks import check

G, G3 = "famG-2.5-flash-image", "famG-3-pro-image-preview"
A3, A40, A45 = "imgA-3-0-t2i-250415", "imgA-4-0-250828", "imgA-4-5-251128"
B, C, MINI = "imgB-3-0-i2i-250628", "imgC-1", "imgC-1-mini"
D, D_EDIT_PLUS, D_EDIT = "imgD-plus", "imgD-edit-plus", "imgD-edit"
IMAGE = pb.ImageInput(url="https://example.com/a.png")
AUTO = pb.SEQUENTIAL_IMAGE_GENERATION_AUTO


def images(count: int) -> list[pb.ImageInput]:
    return [IMAGE] * count


def turn(*parts: pb.ImageTurnPart) -> pb.ImageTurn:
    return pb.ImageTurn(parts=parts)


@dataclass(frozen=True)
class Case:
    model: str
    request: pb.GenerateImageRequest
    rejected: str = ""  # field named by the error; "" for an accepted request
    body_fields: tuple[str, ...] = ()
    _: KW_ONLY
    note: str = ""

    @property
    def id(self) -> str:
        named = ",".join(descriptor.name for descriptor, _ in self.request.ListFields())
        return f"{self.model} {self.note or named}"


def kite(**fields: object) -> pb.GenerateImageRequest:
    return pb.GenerateImageRequest(**{"prompt": "a red kite", **fields})  # type: ignore[arg-type]


ACCEPTED = [
    *(Case(model, kite(inputs=images(count))) for model in (G, G3) for count in (0, 1, 2, 5)),
    Case(G, pb.GenerateImageRequest(inputs=images(1)), note="an image alone"),
    Case(G, pb.GenerateImageRequest(turns=[turn(pb.ImageTurnPart(text="a kite"), pb.ImageTurnPart(image=IMAGE))])),
    *(Case(G, kite(size=size)) for size in (*RATIO_PIXELS, "1024x1024", "1000x1636")),
    *(Case(G, kite(quality=quality)) for quality in ("hd", "high", "2K", "standard", "medium", "low", "auto", "1K")),
    *(Case(G, kite(image_size=size)) for size in ("1K", "2K", "3K", "4K")),
    Case(G, kite(n=10, output_mime_type="image/jpeg", response_modalities="image-text", top_p=1, temperature=2)),
    Case(G, kite(person_generation="allow_adult", max_output_tokens=32768, aspect_ratio="21:9")),
    *(Case(A3, kite(size=size)) for size in ("1024x1024", "1512x648")),
    Case(A3, kite(seed=2147483647, guidance_scale=2.5, watermark=True, n=1)),
    *(Case(model, kite(size=size)) for model in (A40, A45) for size in ("2048x2048", "3024x1296", "6240x2656")),
    *(Case(A40, kite(inputs=images(count))) for count in (1, 2, 5)),
    Case(A45, kite(sequential_image_generation=AUTO, max_sequential_images=4, optimize_prompt_mode="standard")),
    Case(A40, kite(max_sequential_images=99, optimize_prompt_mode="fast"), note="group options without a group"),
    Case(B, kite(inputs=images(1), guidance_scale=12, seed=0, watermark=False)),
    *(Case(C, kite(size=size)) for size in ("1024x1024", "1024x1536", "1536x1024")),
    Case(C, kite(n=10, quality="low", inputs=images(10), input_fidelity="auto")),
    Case(C, pb.GenerateImageRequest(operation=pb.IMAGE_OPERATION_VARIATION, inputs=images(1)), note="variation"),
    Case(C, kite(inputs=[pb.ImageInput(data=bytes(10 * 2**20))]), note="10 MB"),
    Case(MINI, kite(quality="medium")),
    Case(D, kite(n=1, size="1328*1328", negative_prompt="grey", watermark=True, seed=7)),
    Case(D_EDIT_PLUS, kite(n=6, inputs=images(3), prompt_extend=False)),
    Case(D_EDIT, kite(inputs=images(1)), body_fields=("input", "parameters")),
    Case(D, kite(source=pb.SourceDocument(format="images")), body_fields=("input",)),
    Case("an-unknown-model", kite(n=99, size="huge", seed=-1)),
]

REJECTED = [
    Case(G, kite(inputs=images(6)), "inputs[5]"),
    Case(G, kite(size="huge"), "size"),
    *(Case(G, kite(size=size), "size") for size in ("0x1024", "1024*1024", "2:1", "1024x", "1K", "auto")),
    Case(G, kite(quality="best"), "quality"),
    Case(G, kite(image_size="8K"), "image_size"),
    Case(G, kite(aspect_ratio="2:1"), "aspect_ratio"),
    Case(G, kite(output_mime_type="image/gif"), "output_mime_type"),
    Case(G, kite(response_modalities="text"), "response_modalities"),
    Case(G, kite(person_generation="everyone"), "person_generation"),
    Case(G, kite(n=11), "n"),
    Case(G, kite(top_p=1.1), "top_p"),
    Case(G, kite(temperature=2.1), "temperature"),
    Case(G, pb.GenerateImageRequest(prompt=" "), "prompt"),
    *(Case(G, kite(**{name: value}), name) for name, value in (("seed", 1), ("watermark", True))),
    Case(G, kite(operation=pb.IMAGE_OPERATION_VARIATION, inputs=images(1)), "operation"),
    Case(C, kite(operation=pb.IMAGE_OPERATION_VARIATION, inputs=images(1)), "prompt", note="a variation with a prompt"),
    Case(
        C,
        pb.GenerateImageRequest(
            operation=pb.IMAGE_OPERATION_VARIATION, inputs=images(1), turns=[turn(pb.ImageTurnPart(text="p"))]
        ),
        "turns",
        note="a variation with turns",
    ),
    Case(A3, kite(inputs=images(1)), "inputs[0]"),
    Case(A3, kite(size="2048x2048"), "size"),
    Case(A3, kite(sequential_image_generation=AUTO), "sequential_image_generation"),
    Case(A3, kite(optimize_prompt_mode="standard"), "optimize_prompt_mode"),
    Case(A3, kite(seed=-1), "seed"),
    Case(A3, kite(quality="high"), "quality"),
    Case(A3, kite(n=2), "n"),
    *(Case(model, kite(guidance_scale=2.5), "guidance_scale") for model in (A40, A45)),
    *(Case(model, kite(size="1024x1024"), "size") for model in (A40, A45)),
    Case(A40, kite(size="2K"), "size"),
    Case(A40, kite(inputs=images(6)), "inputs[5]"),
    Case(A40, kite(inputs=images(3), turns=[turn(*[pb.ImageTurnPart(image=IMAGE)] * 3)]), "inputs[2]"),
    Case(A45, kite(optimize_prompt_mode="fast"), "optimize_prompt_mode"),
    *(
        Case(A45, kite(sequential_image_generation=AUTO, max_sequential_images=count), "max_sequential_images")
        for count in (0, 5)
    ),
    Case(B, kite(), "inputs"),
    Case(B, kite(inputs=images(2)), "inputs[1]"),
    Case(B, pb.GenerateImageRequest(inputs=images(1)), "prompt"),
    Case(C, kite(n=11), "n"),
    Case(C, kite(size="512x512"), "size"),
    Case(C, kite(quality="hd"), "quality"),
    Case(C, kite(input_fidelity="high"), "input_fidelity", note="input_fidelity without an image"),
    Case(C, kite(input_fidelity="best", inputs=images(1)), "input_fidelity"),
    Case(C, kite(inputs=images(11)), "inputs[10]"),
    Case(C, kite(inputs=[IMAGE, pb.ImageInput(data=bytes(10 * 2**20 + 1))]), "inputs[1]", note="over 10 MB"),
    Case(C, kite(), "mime_type", ("mime_type",)),
    Case(C, kite(), "input", ("input",)),
    Case(D, kite(inputs=images(1)), "inputs[0]"),
    Case(D, kite(n=2), "n"),
    Case(D, kite(prompt_extend=True), "prompt_extend"),
    *(Case(D, kite(size=size), "size") for size in ("1328x1328", "0*10", "99999*10", "large")),
    Case(D, kite(source=pb.SourceDocument(format="images")), "input", note="a flat body"),
    Case(D_EDIT, kite(inputs=images(2)), "inputs[1]"),
    Case(D_EDIT, kite(n=2, inputs=images(1)), "n"),
    Case(D_EDIT, kite(prompt_extend=True, inputs=images(1)), "prompt_extend"),
    Case(D_EDIT_PLUS, kite(), "inputs"),
    Case(D_EDIT_PLUS, kite(inputs=images(4)), "inputs[3]"),
    Case(D_EDIT_PLUS, kite(n=7, inputs=images(1)), "n"),
]


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_a_documented_request_is_accepted(case: Case) -> None:
    check(case.request, family_row(case.model), case.body_fields)


@pytest.mark.parametrize("case", REJECTED, ids=lambda case: case.id)
def test_any_other_request_is_rejected_naming_the_field(case: Case) -> None:
    with pytest.raises(UmgError) as caught:
        check(case.request, family_row(case.model), case.body_fields)
    assert caught.value.metadata == {"field": case.rejected}
    assert caught.value.message.startswith(f"`{case.rejected}`")


NEAREST = {
    "1024x1024": "1:1",
    "1024x1536": "2:3",
    "1536x1024": "3:2",
    "1792x1024": "16:9",
    "1920x1080": "16:9",
    "1280x800": "3:2",
    "1152x864": "4:3",
    "3440x1440": "21:9",
    "512x2048": "9:16",
    "1636x1000": "16:9",
    "1000x1636": "9:16",
}


@pytest.mark.parametrize(("size", "ratio"), NEAREST.items())
def test_a_pixel_size_selects_the_nearest_of_the_ten_ratios(size: str, ratio: str) -> None:
    assert nearest_ratio(size) == ratio


def test_the_tiers_of_family_g_have_their_distances() -> None:
    row = family_row(G)
    edges = [requested_pixels(kite(image_size=tier), row) for tier in ("1K", "2K", "3K", "4K")]
    assert edges == [(1024, 1024), (2048, 2048), (3072, 3072), (4096, 4096)]
    assert requested_pixels(kite(size="1920x1080", quality="hd"), row) == (2688, 1536)
    assert requested_pixels(kite(inputs=images(1)), row) is None


def test_the_size_of_family_g_takes_precedence_over_its_quality() -> None:
    assert tier_of(kite(image_size="4K", quality="low")) == "4K"
    assert [tier_of(kite(quality=quality)) for quality in ("hd", "auto", "")] == ["2K", "1K", "1K"]


def test_the_other_families_give_the_requested_pixels_or_their_default() -> None:
    found = [requested_pixels(kite(size=size), family_row(model)) for model, size in ((C, ""), (D, "928*1664"))]
    assert found == [(1024, 1024), (928, 1664)]
    assert requested_pixels(kite(), family_row(D_EDIT)) is None


def test_the_largest_number_of_images_is_that_of_the_group_or_n() -> None:
    assert [max_images(kite(n=3)), max_images(kite()), max_images(kite(max_sequential_images=3))] == [3, 1, 1]
    assert max_images(kite(sequential_image_generation=AUTO)) == 4
    assert max_images(kite(sequential_image_generation=AUTO, max_sequential_images=2)) == 2


def test_a_model_with_another_neutral_id_has_the_rules_of_its_family() -> None:
    assert family_row("imgC-2") is GENERAL_RULES["imgC"]
    assert family_row(C, "imgA") is GENERAL_RULES["imgA"]
    assert family_row("my-model") is None
    assert family_row("my-model", "famO") is None


@pytest.mark.parametrize("family", GENERAL_RULES)
def test_the_model_of_a_vendor_has_no_defaults_and_no_limits(family: str) -> None:
    row = family_row("vendor-image-7", family)
    assert row is not None
    assert (row.default_size, row.default_quality, row.default_watermark) == ("", "", False)
    check(kite(size="7K", n=12, seed=2**31 - 1, quality="xhigh", watermark=True), row, ["input", "mime_type"])
    with pytest.raises(UmgError) as caught:
        check(pb.GenerateImageRequest(prompt=" "), row)
    assert caught.value.metadata == {"field": "prompt"}


@pytest.mark.parametrize("model", IMAGE_MODELS)
def test_the_rules_of_a_model_are_within_those_of_its_family(model: str) -> None:
    row = IMAGE_MODELS[model]
    assert row.fields <= GENERAL_RULES[row.family].fields

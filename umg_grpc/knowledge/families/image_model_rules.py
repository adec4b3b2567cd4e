"""Rules of the image model families: accepted fields, sizes, ranges and number of images of each model. They are a
table from the specification of images; `family_row` looks up a row. `image_request_checks` checks requests by the
rules, and encoders of provider requests take defaults from them. No wire format depends on a family. Pure: no I/O and
no clock.
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

IMAGE_FAMILIES = ("famG", "imgA", "imgB", "imgC", "imgD")

# --- sizes of family G

RATIO_PIXELS = {
    "1:1": (1024, 1024),
    "2:3": (832, 1248),
    "3:2": (1248, 832),
    "3:4": (864, 1184),
    "4:3": (1184, 864),
    "4:5": (896, 1152),
    "5:4": (1152, 896),
    "9:16": (768, 1344),
    "16:9": (1344, 768),
    "21:9": (1536, 672),
}
"""Aspect ratio of family G -> width and height in pixels of the 1K tier."""
SIZE_TIERS = {"1K": 1, "2K": 2, "3K": 3, "4K": 4}
"""Resolution tier of family G -> factor by which it enlarges the sides of the 1K tier (readings, 24)."""
QUALITY_TIERS = {
    **dict.fromkeys(("hd", "high", "2K"), "2K"),
    **dict.fromkeys(("standard", "medium", "low", "auto", "1K"), "1K"),
}

MIN_SIDE, MAX_SIDE = 16, 4096
"""Limits of a side in pixels for family D, whose sizes are no list. Our choice: the document shows none."""

_PIXELS = re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})", re.ASCII)
SIZE_WITH_ASTERISK = re.compile(r"([1-9][0-9]{0,4})\*([1-9][0-9]{0,4})", re.ASCII)


def nearest_ratio(size: str, ratios: Collection[str] = RATIO_PIXELS) -> str:
    """Return the aspect ratio among `ratios` that `size` names, or the nearest to its pixels (`1024x1024`). Distances
    are logarithmic, so that a size and its transpose are treated alike. Raise UmgError(INVALID_FIELD) for other text.
    """
    if size in ratios:
        return size
    if (found := _PIXELS.fullmatch(size)) is None:
        problem = f"expected {one_of(ratios)}, or pixels such as `1024x1024`; correct it"
        raise invalid_value("size", problem)
    return nearest_ratio_of(int(found[1]), int(found[2]), ratios)


def nearest_ratio_of(width: int, height: int, ratios: Collection[str] = RATIO_PIXELS) -> str:
    """Return the aspect ratio among `ratios` that is nearest to a width and a height."""
    return min(ratios, key=lambda ratio: abs(math.log(width / height / _quotient(ratio))))


def ratio_of(request: pb.GenerateImageRequest) -> str | None:
    """Return the aspect ratio (`16:9`) that a request selects: `aspect_ratio`, or else the one nearest to `size`; None
    without either. Raise UmgError(INVALID_FIELD) for an invalid size.
    """
    if request.HasField("aspect_ratio"):
        return request.aspect_ratio
    return nearest_ratio(request.size) if request.HasField("size") else None


def tier_of(request: pb.GenerateImageRequest) -> str:
    """Return the resolution tier (1K to 4K) of the images by `image_size`, else by `quality`; 1K by default."""
    return request.image_size or QUALITY_TIERS.get(request.quality, "1K")


def requested_pixels(request: pb.GenerateImageRequest, row: "ImageRules | None") -> tuple[int, int] | None:
    """Return the width and height that a checked request selects. None if the provider decides them: the model has no
    rules (`row` is None), or the request has no size and the size follows the input images.
    """
    if row is not None and row.sizes is RATIO_PIXELS:
        ratio = ratio_of(request) or (None if has_images(request) else "1:1")
        factor = SIZE_TIERS[tier_of(request)]
        return None if ratio is None else (RATIO_PIXELS[ratio][0] * factor, RATIO_PIXELS[ratio][1] * factor)
    size = request.size or (row.default_size if row is not None else "")
    found = _PIXELS.fullmatch(size) or SIZE_WITH_ASTERISK.fullmatch(size)
    return None if found is None else (int(found[1]), int(found[2]))


def _quotient(ratio: str) -> float:
    width, _, height = ratio.partition(":")
    return float(width) / float(height)


# --- the table


@dataclass(frozen=True)
class ImageRules:
    """Row of the table: rules for requests to one image model, or to all models of a family that have no row."""

    family: str
    fields: frozenset[str]
    """Canonical fields of `FAMILY_FIELDS` that the model accepts."""
    sizes: Collection[str] | None
    """Accepted values of `size`; None for any `<width>*<height>`. With `RATIO_PIXELS`, pixel sizes are valid too."""
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Canonical field -> its accepted values."""
    default_size: str = ""
    """Size if the request has none; "" if the input images decide it."""
    default_quality: str = ""
    default_watermark: bool = False
    max_n: int = 1
    min_inputs: int = 0
    max_inputs: int = 0
    max_input_bytes: int | None = None
    """Maximum size of each input image in bytes; None if only the body limit applies."""
    needs_text: bool = True
    """Whether a text is required; if false, an input image is enough."""
    is_structured: bool = False
    """Whether a body of `/v1/images/generations` has the fields in `input` and `parameters` (family D)."""
    always_bytes: bool = False
    """Whether images are returned as bytes for any `response_format` (response-format rules 1 and 3)."""
    has_variations: bool = False
    is_open: bool = False
    """Whether the row is for a vendor's models, which the documented rules do not bind. Their requests are sent as the
    caller wrote them; the family only selects how images are returned and priced.
    """


_FAM_G = ImageRules(
    "famG",
    frozenset(
        {"n", "size", "aspect_ratio", "image_size", "quality", "output_mime_type", "response_modalities"}
        | {"person_generation", "temperature", "top_p", "max_output_tokens"}
    ),
    RATIO_PIXELS,
    {
        "aspect_ratio": tuple(RATIO_PIXELS),
        "image_size": tuple(SIZE_TIERS),
        "quality": tuple(QUALITY_TIERS),
        "output_mime_type": ("image/png", "image/jpeg"),
        "response_modalities": ("image", "image-text"),
        "person_generation": ("allow_adult", "allow_all", "dont_allow"),
    },
    max_n=10,
    max_inputs=5,
    needs_text=False,
    always_bytes=True,
)

_A_3_SIZES = ("1024x1024", "1152x864", "864x1152", "1280x720", "720x1280", "1248x832", "832x1248", "1512x648")
_A_2K_SIZES = ("2048x2048", "2304x1728", "1728x2304", "2560x1440", "1440x2560", "2496x1664", "1664x2496", "3024x1296")
_A_4K_SIZES = ("4096x4096", "4704x3520", "3520x4704", "5504x3040", "3040x5504", "4992x3328", "3328x4992", "6240x2656")
_GROUP_FIELDS = frozenset({"sequential_image_generation", "max_sequential_images", "optimize_prompt_mode"})
_A_FIELDS = frozenset({"n", "size", "watermark", "seed"})

_IMG_A_3 = ImageRules("imgA", _A_FIELDS | {"guidance_scale"}, _A_3_SIZES, default_size="1024x1024")
_IMG_A_4_5 = ImageRules(
    "imgA",
    _A_FIELDS | _GROUP_FIELDS,
    (*_A_2K_SIZES, *_A_4K_SIZES),
    {"optimize_prompt_mode": ("standard",)},
    default_size="2048x2048",
    max_inputs=5,
)
_IMG_A_4_0 = replace(_IMG_A_4_5, values={"optimize_prompt_mode": ("standard", "fast")})
# a model whose id has no version: the values of all versions
_IMG_A = replace(
    _IMG_A_4_0, fields=_IMG_A_4_0.fields | {"guidance_scale"}, sizes=(*_A_3_SIZES, *_A_2K_SIZES, *_A_4K_SIZES)
)
_IMG_B = replace(_IMG_A_3, family="imgB", default_size="", min_inputs=1, max_inputs=1)

_IMG_C = ImageRules(
    "imgC",
    frozenset(
        {"n", "size", "quality", "input_fidelity", "output_mime_type", "output_compression_percent", "background"}
        | {"moderation", "partial_images", "mask"}
    ),
    ("1024x1024", "1024x1536", "1536x1024"),
    {
        "quality": ("low", "medium", "high"),
        "input_fidelity": ("low", "medium", "high", "auto"),
        "output_mime_type": ("image/png", "image/jpeg", "image/webp"),
        "background": ("transparent", "opaque", "auto"),
        "moderation": ("low", "auto"),
    },
    default_size="1024x1024",
    default_quality="high",
    max_n=10,
    max_inputs=10,
    max_input_bytes=10 * 2**20,
    always_bytes=True,
    has_variations=True,
)

_IMG_D_PLUS = ImageRules(
    "imgD",
    frozenset({"n", "size", "negative_prompt", "watermark", "seed"}),
    None,
    default_size="1328*1328",
    default_watermark=True,
    is_structured=True,
)
_IMG_D_EDIT = replace(_IMG_D_PLUS, default_size="", min_inputs=1, max_inputs=1)
_IMG_D_EDIT_PLUS = replace(_IMG_D_EDIT, fields=_IMG_D_EDIT.fields | {"prompt_extend"}, max_n=6, max_inputs=3)

IMAGE_MODELS: Mapping[str, ImageRules] = {
    "famG-2.5-flash-image": _FAM_G,
    "famG-3-pro-image-preview": _FAM_G,
    "imgA-3-0-t2i-250415": _IMG_A_3,
    "imgA-4-0-250828": _IMG_A_4_0,
    "imgA-4-5-251128": _IMG_A_4_5,
    "imgB-3-0-i2i-250628": _IMG_B,
    "imgC-1": _IMG_C,
    "imgC-1-mini": replace(_IMG_C, default_quality="medium"),
    "imgD-plus": _IMG_D_PLUS,
    "imgD-edit-plus": _IMG_D_EDIT_PLUS,
    "imgD-edit": _IMG_D_EDIT,
}

GENERAL_RULES: Mapping[str, ImageRules] = {
    "famG": _FAM_G,
    "imgA": _IMG_A,
    "imgB": _IMG_B,
    "imgC": _IMG_C,
    "imgD": replace(_IMG_D_EDIT_PLUS, min_inputs=0),
}
"""Rules of a family, for neutral ids (`imgA-...`) that the image document does not name."""

VENDOR_RULES: Mapping[str, ImageRules] = {
    family: replace(
        row, default_size="", default_quality="", default_watermark=False, min_inputs=0, needs_text=False, is_open=True
    )
    for family, row in GENERAL_RULES.items()
}
"""Family in the config or preset -> rules of a vendor's models, whose ids are not neutral."""

FAMILY_FIELDS = frozenset[str]().union(*(row.fields for row in GENERAL_RULES.values()))
"""Canonical fields that the models of some family accept."""


def family_row(model: str, family: str = "") -> ImageRules | None:
    """Return the rules of an image model: by its id, else by `family`, else by the family in its id (`imgC-`). A model
    without a neutral id has the open rules of `VENDOR_RULES`. None for any other model: it is not checked.
    """
    if model in IMAGE_MODELS and family in ("", IMAGE_MODELS[model].family):
        return IMAGE_MODELS[model]
    named = next((name for name in IMAGE_FAMILIES if model.startswith(f"{name}-")), "")
    return GENERAL_RULES.get(family or named) if named else VENDOR_RULES.get(family)


# --- input images


class PlacedImage(NamedTuple):
    """Input image of a request, and the canonical path of its field for error messages."""

    path: str
    image: pb.ImageInput


def placed_images(request: pb.GenerateImageRequest, *, with_mask: bool = False) -> Iterator[PlacedImage]:
    """Yield all input images with their paths: in the conversation, in `inputs`, and the mask if `with_mask`."""
    for index, turn in enumerate(request.turns):
        for number, part in enumerate(turn.parts):
            if part.HasField("image"):
                yield PlacedImage(f"turns[{index}].parts[{number}].image", part.image)
    for index, image in enumerate(request.inputs):
        yield PlacedImage(f"inputs[{index}]", image)
    if with_mask and request.HasField("mask"):
        yield PlacedImage("mask", request.mask)


def has_images(request: pb.GenerateImageRequest, *, with_mask: bool = False) -> bool:
    """Return whether a request has input images, counting the mask if `with_mask`."""
    return next(placed_images(request, with_mask=with_mask), None) is not None


# --- numbers of images


def is_grouped(request: pb.GenerateImageRequest) -> bool:
    """Return whether a request is for a group of related images, which 4.x models of family imgA can make."""
    return request.sequential_image_generation == pb.SEQUENTIAL_IMAGE_GENERATION_AUTO


MAX_GROUP = 4
"""Maximum number of images in a group, and the default of `max_sequential_images`."""


def max_images(request: pb.GenerateImageRequest) -> int:
    """Return the maximum number of images in the response to a checked request; each image of it is billed."""
    if is_grouped(request):
        return request.max_sequential_images or MAX_GROUP
    return request.n or 1


# --- errors


def one_of(values: Collection[str]) -> str:
    """Return a phrase with all accepted values for an error message: `a, b or c`."""
    *others, last = (f"`{value}`" for value in values)
    return f"{', '.join(others)} or {last}" if others else last


def invalid_value(at: str, problem: str) -> UmgError:
    """Return the error INVALID_FIELD for the value at the canonical path `at`; `problem` completes the message."""
    return UmgError(pb.ERROR_REASON_INVALID_FIELD, f"`{at}`: {problem}", field=at)

"""Simulated images: exact size and type, the same bytes for the same request, visible inputs, masks and watermarks."""

import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from io import BytesIO
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageChops, ImageStat

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_sandbox.image_drawing import PILLOW_FORMATS, Drawing, InputImage, draw

PROMPT = "A watercolor fox reading a newspaper in a small café"
SQUARE = Drawing("imgC-1", PROMPT, 512, 512)
Color = tuple[int, int, int]
RED, GREEN, BLUE = (200, 30, 30), (30, 160, 60), (40, 60, 210)


def opened(data: bytes) -> Image.Image:
    image = Image.open(BytesIO(data))
    image.load()
    return image


def picture(drawing: Drawing, draft: int | None = None) -> Image.Image:
    return opened(draw(drawing, draft)).convert("RGB")


def encoded(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def plain(color: Color, size: tuple[int, int] = (80, 60), field: str = "image") -> InputImage:
    return InputImage(field, encoded(Image.new("RGB", size, color)))


def share_of(image: Image.Image, color: Color, tolerance: int = 12) -> float:
    """Return the share of the pixels that have about a colour."""
    near = image.point([255 * (abs(level - value) <= tolerance) for value in color for level in range(256)])
    return reduce(ImageChops.darker, near.split()).histogram()[255] / (image.width * image.height)


def difference(one: Image.Image, other: Image.Image) -> float:
    """Return the mean difference of two images of a size, in [0, 1]."""
    return sum(ImageStat.Stat(ImageChops.difference(one, other)).mean) / 3 / 255


def contrast(image: Image.Image) -> float:
    """Return the contrast ratio of the brightest and the darkest hundredth of the pixels (WCAG 2)."""
    levels = sorted(image.convert("L").tobytes())
    dark, light = (((level / 255) ** 2.2) for level in (levels[len(levels) // 100], levels[-len(levels) // 100]))
    return (light + 0.05) / (dark + 0.05)


def refused(drawing: Drawing, field: str) -> UmgError:
    with pytest.raises(UmgError) as caught:
        draw(drawing)
    assert (caught.value.reason, caught.value.metadata["field"]) == (pb.ERROR_REASON_INVALID_FIELD, field)
    return caught.value


SIZES = [(1024, 1024), (1512, 648), (6240, 2656), (64, 64), (1024, 40), (40, 1024), (9, 9), (1, 1), (1, 300)]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("inputs", [(), (plain(RED), plain(BLUE))], ids=["a scene", "an edit"])
def test_an_image_has_exactly_the_size_and_the_type(size: tuple[int, int], inputs: tuple[InputImage, ...]) -> None:
    for mime_type, name in PILLOW_FORMATS.items():
        drawing = Drawing("m", PROMPT, *size, mime_type, inputs=inputs, watermark=True)
        image = opened(draw(drawing))
        assert (image.size, image.format, image.mode) == (size, name, "RGB")


@given(st.text(st.characters(exclude_categories=()), max_size=200), st.integers(1, 200), st.integers(1, 200))
@settings(max_examples=60)
def test_any_prompt_is_drawn_at_any_size(prompt: str, width: int, height: int) -> None:
    drawing = Drawing(prompt[:20], prompt, width, height, inputs=(InputImage("image", url=prompt or "?"),))
    assert opened(draw(drawing)).size == (width, height)


@pytest.mark.parametrize("inputs", [(), (plain(RED), plain(BLUE))], ids=["a scene", "an edit"])
def test_the_same_request_gives_the_same_bytes_in_any_thread(inputs: tuple[InputImage, ...]) -> None:
    drawing = replace(SQUARE, seed=7, inputs=inputs, watermark=True)
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(draw, [drawing] * 12))) == 1


@dataclass(frozen=True)
class Change:
    id: str
    drawings: list[Drawing]


CHANGES = [
    Change(id="seeds", drawings=[replace(SQUARE, seed=seed) for seed in (None, 0, 1, 2, 2147483647)]),
    Change(id="images of a call", drawings=[replace(SQUARE, seed=5, index=index, count=4) for index in range(4)]),
    Change(id="prompts", drawings=[replace(SQUARE, prompt=prompt) for prompt in ("A red car", "A blue car", "")]),
]


@pytest.mark.parametrize("case", CHANGES, ids=lambda case: case.id)
def test_other_parameters_give_visibly_other_pictures(case: Change) -> None:
    pictures = [picture(drawing).crop((0, 0, 512, 250)) for drawing in case.drawings]
    assert all(difference(one, other) > 0.05 for one, other in combinations(pictures, 2))


@pytest.mark.parametrize("case", CHANGES[:2], ids=lambda case: case.id)
def test_other_parameters_change_edits_too(case: Change) -> None:
    pictures = [picture(replace(drawing, inputs=(plain(RED),))) for drawing in case.drawings]
    assert all(difference(one, other) > 0.005 for one, other in combinations(pictures, 2))


@pytest.mark.parametrize("inputs", [(), (plain((255, 255, 255)),)], ids=["scene", "white"])
@pytest.mark.parametrize("size", [(256, 256), (1024, 1024), (3024, 1296)], ids=str)
def test_the_label_and_the_prompt_are_legible(size: tuple[int, int], inputs: tuple[InputImage, ...]) -> None:
    drawing = Drawing("imgC-1", PROMPT, *size, inputs=inputs)
    for changed, top, bottom in ((replace(drawing, model="m"), 0.66, 0.75), (replace(drawing, prompt=""), 0.74, 1)):
        box = (0, round(size[1] * top), size[0] // 2, round(size[1] * bottom))
        with_text, other = picture(drawing).crop(box), picture(changed).crop(box)
        assert contrast(with_text) > 4.5
        assert difference(with_text, other) > 0.001


@pytest.mark.parametrize("mime_type", ["image/png", "image/webp"])
@pytest.mark.parametrize("inputs", [(), (plain(RED),)], ids=["a scene", "an edit"])
def test_a_transparent_background_surrounds_an_opaque_picture(mime_type: str, inputs: tuple[InputImage, ...]) -> None:
    image = opened(draw(replace(SQUARE, mime_type=mime_type, transparent=True, inputs=inputs))).convert("RGBA")
    alpha = image.getchannel("A")
    assert alpha.getextrema() == (0, 255)
    assert alpha.getpixel((0, 0)) == 0
    assert alpha.crop((30, 30, 480, 340)).getextrema() == alpha.crop((0, 342, 512, 512)).getextrema() == (255, 255)


def test_jpeg_has_no_transparency() -> None:
    drawing = replace(SQUARE, mime_type="image/jpeg")
    assert draw(replace(drawing, transparent=True)) == draw(drawing)


@pytest.mark.parametrize("mime_type", ["image/jpeg", "image/webp"])
def test_a_lower_quality_makes_a_smaller_file(mime_type: str) -> None:
    sizes = [len(draw(replace(SQUARE, mime_type=mime_type, quality=quality))) for quality in (0, 50, 100)]
    assert sizes == sorted(set(sizes))


@pytest.mark.parametrize("size", [(512, 512), (2560, 1440)], ids=str)
@pytest.mark.parametrize("inputs", [(), (plain(RED),)], ids=["a scene", "an edit"])
def test_a_watermark_changes_only_the_bottom_right_corner(
    size: tuple[int, int], inputs: tuple[InputImage, ...]
) -> None:
    drawing = Drawing("imgA-4-0-250828", PROMPT, *size, inputs=inputs)
    without, marked = picture(drawing), picture(replace(drawing, watermark=True))
    left, top, right, bottom = ImageChops.difference(without, marked).getbbox() or (0, 0, 0, 0)
    assert bottom > size[1] * 0.9
    assert top >= size[1] * 0.75
    assert left >= size[0] * 0.75
    assert contrast(marked.crop((left, top, right, bottom))) > 4.5


# --- input images


def test_the_edited_image_fills_the_picture() -> None:
    assert share_of(picture(replace(SQUARE, inputs=(plain(RED),))), RED) > 0.4
    assert share_of(picture(SQUARE), RED) < 0.05


@pytest.mark.parametrize(("base", "filling"), [(0, RED), (-1, BLUE), (1, GREEN)])
def test_further_images_are_thumbnails(base: int, filling: Color) -> None:
    image = picture(replace(SQUARE, inputs=(plain(RED), plain(GREEN), plain(BLUE)), base=base))
    assert share_of(image, filling) > 0.25
    assert all(share_of(image, color) > 0.05 for color in (RED, GREEN, BLUE))


def test_ten_images_are_all_visible() -> None:
    colors = [(20 + 23 * number, 250 - 25 * number, 40 * number % 255) for number in range(10)]
    image = picture(replace(SQUARE, inputs=tuple(plain(color) for color in colors)))
    assert all(share_of(image, color, 4) > 0.01 for color in colors)


MODES = {
    "1": 1,
    "L": 200,
    "LA": (200, 255),
    "P": 5,
    "RGB": (200, 200, 200),
    "RGBA": (200, 200, 200, 255),
    "CMYK": (0, 0, 0, 55),
    "I;16": 200 * 257,
}


@pytest.mark.parametrize("mode", MODES)
def test_images_of_every_mode_are_drawn_in_their_colour(mode: str) -> None:
    source = Image.new(mode, (80, 60), MODES[mode])
    if mode == "P":
        source.putpalette([200] * 768)
    data = encoded(source, "JPEG" if mode == "CMYK" else "PNG")
    expected = (255, 255, 255) if mode == "1" else (200, 200, 200)
    assert share_of(picture(replace(SQUARE, inputs=(InputImage("image", data),))), expected) > 0.4


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
@pytest.mark.parametrize("size", [(1, 1), (30, 2000), (3000, 2000)], ids=str)
def test_images_of_every_type_and_size_are_drawn(kind: str, size: tuple[int, int]) -> None:
    source = InputImage("image", encoded(Image.new("RGB", size, RED), kind))
    assert share_of(picture(replace(SQUARE, inputs=(source,))), RED) > 0.4


def test_transparent_parts_of_an_image_are_white() -> None:
    source = InputImage("image", encoded(Image.new("RGBA", (90, 90), (255, 0, 0, 0))))
    assert share_of(picture(replace(SQUARE, inputs=(source,))), (255, 255, 255)) > 0.4
    indexed = Image.new("P", (3000, 3000))
    indexed.info["transparency"] = 0
    source = InputImage("image", encoded(indexed, transparency=0))
    assert share_of(picture(replace(SQUARE, inputs=(source,))), (255, 255, 255)) > 0.4


def test_the_first_frame_of_an_animation_is_drawn() -> None:
    frames = [Image.new("RGB", (60, 60), color) for color in (RED, BLUE)]
    for kind in ("GIF", "WEBP", "PNG"):
        data = encoded(frames[0], kind, save_all=True, append_images=frames[1:])
        image = picture(replace(SQUARE, inputs=(InputImage("image", data),)))
        assert share_of(image, RED, 20) > 0.4
        assert share_of(image, BLUE, 20) < 0.05


def test_a_photograph_is_drawn_upright() -> None:
    halves = Image.new("RGB", (80, 80), RED)
    halves.paste(BLUE, (40, 0, 80, 80))
    exif = Image.Exif()
    exif[0x112] = 6  # turn clockwise: the left half becomes the upper one
    source = InputImage("image", encoded(halves, "JPEG", exif=exif, quality=95))
    image = picture(replace(SQUARE, prompt="", inputs=(source,)))
    assert share_of(image.crop((20, 60, 490, 230)), RED, 40) > 0.6
    assert share_of(image.crop((20, 280, 490, 340)), BLUE, 40) > 0.6


# --- masks


def mask(size: tuple[int, int] = (80, 80)) -> InputImage:
    """Return a mask whose right half is transparent."""
    image = Image.new("RGBA", size, "black")
    image.paste((0, 0, 0, 0), (size[0] // 2, 0, *size))
    return InputImage("mask", encoded(image))


def test_only_the_transparent_region_of_a_mask_is_redrawn() -> None:
    edited = replace(SQUARE, inputs=(plain(RED, (80, 80)),), mask=mask())
    kept, redrawn = (picture(edited).crop(box) for box in ((10, 60, 240, 300), (270, 60, 500, 300)))
    assert share_of(kept, RED) == 1
    assert share_of(redrawn, RED) < 0.1
    assert difference(redrawn, picture(replace(edited, seed=9)).crop((270, 60, 500, 300))) > 0.05
    assert share_of(kept, RED) == share_of(picture(replace(edited, seed=9)).crop((10, 60, 240, 300)), RED)


def test_a_mask_applies_to_the_image_that_fills_the_picture() -> None:
    inputs = (plain(BLUE, (33, 44)), plain(RED, (80, 80)))
    image = picture(replace(SQUARE, inputs=inputs, base=-1, mask=mask()))
    assert share_of(image.crop((10, 150, 240, 330)), RED) == 1


def test_a_mask_that_is_an_address_redraws_a_part() -> None:
    edited = replace(SQUARE, inputs=(plain(RED),), mask=InputImage("mask", url="https://pictures.invalid/mask.png"))
    assert 0.3 < share_of(picture(edited), RED) < 0.7


@dataclass(frozen=True)
class Rejection:
    id: str
    drawing: Drawing
    field: str
    message: str


def png_header(width: int, height: int) -> bytes:
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))


def rejected_input(id_: str, data: bytes, message: str) -> Rejection:
    inputs = (plain(RED), InputImage("images[1]", data))
    return Rejection(id=id_, drawing=replace(SQUARE, inputs=inputs), field="images[1]", message=message)


NOISE = Image.effect_noise((90, 90), 90)
REJECTIONS = [
    rejected_input("no image", b"hello", "not an image"),
    rejected_input("a BMP file", encoded(NOISE, "BMP"), "image/bmp"),
    rejected_input("a TIFF file", encoded(NOISE, "TIFF"), "image/tiff"),
    rejected_input("a decompression bomb", png_header(60_000, 60_000), "60000 x 60000 pixels"),
    *(rejected_input(f"half a {kind} file", encoded(NOISE, kind)[:900], "broken") for kind in ("PNG", "JPEG", "GIF", "WEBP")),
    rejected_input("a header alone", png_header(9, 9), "broken"),
    rejected_input("a JPEG file of many scans", encoded(NOISE, "JPEG") + b"\xff\xda" * 100, "scans"),
    Rejection(id="a mask of another size", drawing=replace(SQUARE, inputs=(plain(RED, (80, 60)),), mask=mask((60, 80))), field="mask", message="60 x 80 pixels, the image 80 x 60"),
    Rejection(id="a mask without transparency", drawing=replace(SQUARE, inputs=(plain(RED),), mask=plain(BLUE, field="mask")), field="mask", message="no transparent pixels"),
    Rejection(id="a mask that is no image", drawing=replace(SQUARE, inputs=(plain(RED),), mask=InputImage("mask", b"?")), field="mask", message="not an image"),
    Rejection(id="a broken thumbnail of a tiny picture", drawing=Drawing("m", "", 5, 5, inputs=(plain(RED), InputImage("images[1]", b"?"))), field="images[1]", message="not an image"),
]  # fmt: skip


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_an_input_that_cannot_be_drawn_is_refused_by_its_field(case: Rejection) -> None:
    assert case.message in refused(case.drawing, case.field).message


@given(
    data=st.sampled_from([encoded(NOISE, kind) for kind in ("PNG", "JPEG", "GIF", "WEBP")]),
    edits=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), min_size=1, max_size=20),
)
@settings(max_examples=80)
def test_a_damaged_image_is_drawn_or_refused_by_its_field(data: bytes, edits: list[tuple[int, int]]) -> None:
    damaged = bytearray(data)
    for place, value in edits:
        damaged[place % len(damaged)] = value
    try:
        draw(Drawing("m", "", 64, 64, inputs=(InputImage("image", bytes(damaged)),)))
    except UmgError as error:
        assert error.metadata["field"] == "image"  # noqa: PT017 - either outcome is valid


# --- addresses and drafts


def test_an_address_is_drawn_as_a_placeholder_that_shows_it() -> None:
    """The reserved domain cannot be fetched; other addresses give other pictures."""
    urls = ("https://pictures.invalid/a.png", "https://pictures.invalid/b.png", "http://[broken")
    pictures = [picture(replace(SQUARE, inputs=(InputImage("image", url=url),))) for url in urls]
    assert len({each.tobytes() for each in pictures}) == 3
    assert contrast(pictures[0].crop((30, 85, 480, 200))) > 4.5


def test_drafts_are_the_same_picture_in_rising_detail() -> None:
    for drawing in (SQUARE, replace(SQUARE, inputs=(InputImage("image", encoded(NOISE)),))):
        final = picture(drawing).crop((0, 0, 512, 300))
        drafts = [picture(drawing, number).crop((0, 0, 512, 300)) for number in range(3)]
        distances = [difference(draft, final) for draft in drafts]
        assert distances == sorted(distances, reverse=True)
        assert 0 < distances[2] < distances[0] < 0.3

"""Drawing of simulated images, equal for equal parameters: discs or input images, and a card with prompt and label."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from random import Random

from PIL import Image, ImageDraw

from umg_grpc.wire.core.image_file_headers import JPEG_TYPE, PNG_TYPE, WEBP_TYPE
from umg_sandbox.input_images import InputImage, draw_input, draw_mask
from umg_sandbox.text_drawing import draw_text
from umg_sandbox.words_from_prompt import digest

PILLOW_FORMATS = {PNG_TYPE: "PNG", JPEG_TYPE: "JPEG", WEBP_TYPE: "WEBP"}
WATERMARK_TEXT = "AI generated"
DRAFT_CELLS = (16, 48, 144)
"""Number of squares along the longer edge of the first, second and third draft of an image."""
DEFAULT_QUALITY = 90
"""Quality of JPEG and WebP in percent, if the request states none."""
DISC_COUNT = 9
DARK_COLOR, PALE_COLOR, WHITE_COLOR = "#161820", "#b4b4b8", "white"


@dataclass(frozen=True)
class Drawing:
    """Parameters that determine one simulated image completely."""

    model: str
    prompt: str
    width: int
    height: int
    mime_type: str = "image/png"
    quality: int | None = None
    """Quality of JPEG and WebP in percent, [0, 100]; None means `DEFAULT_QUALITY`."""
    transparent: bool = False
    """Whether the background is transparent; without effect on JPEG."""
    seed: int | None = None
    """Seed of colours and shapes; None means that the prompt alone determines them."""
    index: int = 0
    """Position of the image among those of the call, from 0; each of them is different."""
    count: int = 1
    inputs: tuple[InputImage, ...] = ()
    base: int = 0
    """Index of the input image that fills the picture, -1 for the last; the others are drawn as thumbnails."""
    mask: InputImage | None = None
    """Mask of the input image that fills the picture, whose transparent region is redrawn; None if there is none."""
    watermark: bool = False
    """Whether there is a visible watermark in the bottom right corner."""


def draw(drawing: Drawing, draft: int | None = None) -> bytes:
    """Draw an image, and return its file. `draft`: number from 0 of a draft with less detail, None for the finished
    image. Takes up to a second of CPU. Raise UmgError(INVALID_FIELD) for an input image that cannot be decoded.
    """
    image = _picture(drawing)
    if draft is not None:
        scale = min(1, DRAFT_CELLS[min(draft, len(DRAFT_CELLS) - 1)] / max(image.size))
        small = max(1, round(image.width * scale)), max(1, round(image.height * scale))
        image = image.resize(small, Image.Resampling.BOX).resize(image.size, Image.Resampling.NEAREST)
    labels = (
        "Simulated image" if draft is None else f"Simulated image, draft {draft + 1}",
        drawing.model,
        f"{drawing.width} x {drawing.height}",
        f"image {drawing.index + 1} of {drawing.count}" if drawing.count > 1 else "",
        f"seed {drawing.seed}" if drawing.seed is not None else "",
    )
    card = draw_card(image.size, labels, drawing.prompt, watermark=drawing.watermark)
    top = image.height - card.height
    image.paste(card, (0, top))
    if drawing.transparent and drawing.mime_type != JPEG_TYPE:
        opaque = Image.new("L", image.size, 0)
        opaque.paste(255, (image.width // 24, image.height // 24, image.width - image.width // 24, top))
        opaque.paste(255, (0, top, *image.size))
        image.putalpha(opaque)
    return _encode(image, drawing)


def draw_scene(width: int, height: int, seed: bytes) -> Image.Image:
    """Return a picture of discs whose places and colours the seed determines, in mode RGB."""
    image = Image.new("RGB", (width, height), _color(Random(seed)))  # noqa: S311  a picture
    draw_discs(image, seed)
    return image


def draw_discs(image: Image.Image, seed: bytes) -> None:
    """Draw discs into an image of mode RGB, which leave most of it visible."""
    chosen, pen = Random(seed[::-1]), ImageDraw.Draw(image)  # noqa: S311  a picture
    for _ in range(DISC_COUNT):
        place = chosen.random() * image.width, chosen.random() * image.height * 0.7
        pen.circle(place, chosen.uniform(0.03, 0.11) * min(image.size), _color(chosen))


def draw_card(size: tuple[int, int], labels: Sequence[str], prompt: str, *, watermark: bool) -> Image.Image:
    """Return the lower part of a picture, with a size in pixels: labels, the prompt, and a row for the watermark."""
    (width, height), row = size, max(1, size[1] // 20)
    card = Image.new("RGB", (width, height // 3), DARK_COLOR)
    pen, pad = ImageDraw.Draw(card), width // 50
    draw_text(pen, (pad, row // 4, width - pad, row * 3 // 2), " · ".join(filter(None, labels)), row // 2, PALE_COLOR)
    draw_text(pen, (pad, row * 3 // 2, width - pad, card.height - row), prompt, row, WHITE_COLOR)
    if watermark:
        draw_text(
            pen, (width * 3 // 4, card.height - row, width, card.height), WATERMARK_TEXT, row * 2 // 3, WHITE_COLOR
        )
    return card


def draw_thumbnails(image: Image.Image, pictures: Sequence[InputImage]) -> None:
    """Draw input images in a row at the upper edge of an image."""
    if pictures:
        edge = max(1, min(image.width // len(pictures), image.height // 4))
        for place, source in enumerate(pictures):
            image.paste(draw_input(source, edge, edge), (place * edge, 0))


def _picture(drawing: Drawing) -> Image.Image:
    size, seed = (drawing.width, drawing.height), digest(drawing.prompt, str(drawing.seed), str(drawing.index))
    if not drawing.inputs:
        return draw_scene(*size, seed)
    others = list(drawing.inputs)
    base = others.pop(drawing.base)
    image = draw_input(base, *size)
    if drawing.mask is None:
        draw_discs(image, seed)
    else:
        image.paste(draw_scene(*size, seed), mask=draw_mask(drawing.mask, base, *size))
    draw_thumbnails(image, others)
    return image


def _color(chosen: Random) -> tuple[int, int, int]:
    return chosen.randrange(40, 230), chosen.randrange(40, 230), chosen.randrange(40, 230)


def _encode(image: Image.Image, drawing: Drawing) -> bytes:
    file, quality = BytesIO(), DEFAULT_QUALITY if drawing.quality is None else drawing.quality
    options = {"compress_level": 6, "compress_type": zlib.Z_RLE, "quality": quality, "method": 2}
    image.save(file, PILLOW_FORMATS[drawing.mime_type], **options)
    return file.getvalue()

"""Input images of simulated image models: decoded, scaled and cropped; placeholders for images at URLs."""

from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from urllib.parse import urlsplit

from PIL import Image, ImageDraw, ImageOps

from umg_grpc.base.errors import UmgError
from umg_grpc.wire.core.image_files import GIF, JPEG, PNG, WEBP, check_image
from umg_grpc.wire.core.json import invalid
from umg_sandbox.prompt_words import digest
from umg_sandbox.scene_drawing import Choices, Color, color
from umg_sandbox.text_drawing import clean, fit_text

READERS = {PNG: "PNG", JPEG: "JPEG", GIF: "GIF", WEBP: "WEBP"}
NOT_FETCHED = "an address, which is not fetched"
MAX_SCANS = 100
"""Maximum scans of a JPEG file, each of which takes time for all pixels. Encoders make about ten."""

_TRANSPARENT = ("LA", "PA", "La", "RGBA", "RGBa")


@dataclass(frozen=True)
class InputImage:
    """Input image of a caller: its bytes, or a URL, which is never downloaded."""

    field: str
    """Path of the field for errors, as the caller wrote it."""
    data: bytes = b""
    url: str = ""


def draw_input(source: InputImage, width: int, height: int) -> Image.Image:
    """Return an input image scaled and cropped to a size in pixels, in mode RGB; for a URL a placeholder that shows
    the URL. Raise UmgError(INVALID_FIELD) for bytes that are no image.
    """
    if source.url:
        return _draw_placeholder(source.url, width, height)
    image = _decode(source, width, height)
    if image.mode == "RGBA":
        flat = Image.new("RGB", image.size, "white")
        flat.paste(image, mask=image.getchannel("A"))
        image = flat
    return ImageOps.fit(image, (width, height), Image.Resampling.BICUBIC)


def draw_mask(mask: InputImage, edited: InputImage, width: int, height: int) -> Image.Image:
    """Return the region to redraw, scaled and cropped like the edited image: mode L, 255 where the mask is
    transparent. Raise UmgError(INVALID_FIELD) for bytes that are no image, for a mask without transparency, and
    for another size than that of the edited image.
    """
    if mask.url:
        return _unknown_region(width, height)
    header = check_image(mask.data, mask.field)
    if edited.data:
        expected = check_image(edited.data, edited.field)
        if (header.width, header.height) != (expected.width, expected.height):
            sizes = (
                f"the mask is {header.width} x {header.height} pixels, the image {expected.width} x {expected.height}"
            )
            raise invalid(mask.field, f"{sizes}; send a mask of the size of the image")
    image = _decode(mask, width, height)
    if image.mode != "RGBA":
        raise invalid(mask.field, "the mask has no transparent pixels; send a PNG whose transparent pixels are redrawn")
    opaque = ImageOps.fit(image.getchannel("A"), (width, height), Image.Resampling.BICUBIC)
    return opaque.point([255 if alpha < 128 else 0 for alpha in range(256)])


def _unknown_region(width: int, height: int) -> Image.Image:
    """Return an ellipse in the middle of the image as the region to redraw, for a mask given as a URL."""
    region = Image.new("L", (width, height))
    ImageDraw.Draw(region).ellipse((width // 4, height // 6, width - width // 4, height // 2), fill=255)
    return region


def _decode(source: InputImage, width: int, height: int) -> Image.Image:
    """Return the first frame of an image, upright, in mode RGB or RGBA; an image much larger than `width` x `height`
    is reduced to at least twice this size. Raise UmgError(INVALID_FIELD) for bytes that are no image.
    """
    header = check_image(source.data, source.field)
    if header.mime_type == JPEG and source.data.count(b"\xff\xda") > MAX_SCANS:
        raise invalid(source.field, f"the JPEG file has more than {MAX_SCANS} scans; encode it with fewer")
    try:
        with Image.open(BytesIO(source.data), formats=(READERS[header.mime_type],)) as image:
            image.draft(None, (max(width, height),) * 2)
            image.load()
            return _upright(_reduced(image, width, height))
    except UmgError:
        raise
    except Exception:  # the exceptions of decoders on broken files are not documented
        problem = f"the {header.mime_type} file is broken and cannot be decoded; send the whole file"
        raise invalid(source.field, problem) from None


def _reduced(image: Image.Image, width: int, height: int) -> Image.Image:
    """Return an image in mode RGB or RGBA, reduced to about the size that is needed before further copies are made."""
    factor = min(image.size) / (2 * max(width, height))
    if factor >= 2:
        image = image.resize((int(image.width / factor), int(image.height / factor)), Image.Resampling.NEAREST)
    if image.mode.startswith("I"):  # 16 bits; the conversion of some of these modes cuts values instead of scaling them
        image = image.convert("I").point(lambda value: value * (1 / 257)).convert("L")
    transparent = image.mode in _TRANSPARENT or "transparency" in image.info
    return image.convert("RGBA" if transparent else "RGB")


def _upright(image: Image.Image) -> Image.Image:
    """Return an image rotated as its metadata states, or unchanged if the metadata cannot be read."""
    with suppress(Exception):
        return ImageOps.exif_transpose(image)
    return image


def _draw_placeholder(url: str, width: int, height: int) -> Image.Image:
    """Return a picture of an empty frame with the host and path of a URL."""
    hue = Choices(digest(url)).share("hue")
    back, stripe, ink = color(hue, 0.86, 0.3), color(hue, 0.82, 0.3), color(hue, 0.25, 0.4)
    image = Image.new("RGB", (width, height), back)
    pen, edge = ImageDraw.Draw(image), min(width, height)
    step = max(8, edge // 12)
    for left in range(-height, width, 2 * step):
        pen.line((left, height, left + height, 0), fill=stripe, width=max(1, step // 2))
    _draw_frame(pen, width / 2, height * 0.15, edge * 0.17, ink)
    host, path = _address(url)
    margin, top = edge // 16, round(height * 0.15 + edge * 0.085)
    left, wide = margin, max(1, width - 2 * margin)
    coverage = Image.new("L", (width, height))
    for words, share in ((host, 0.07), (path, 0.05), (NOT_FETCHED, 0.04)):
        room = max(0, round(height * 0.5) - top)
        block = fit_text(clean(words), wide, min(room, round(edge * share * 2.7)), round(edge * share))
        block.draw(coverage, left, top, centered_in=wide)
        top += block.height
    image.paste(ink, mask=coverage)
    return image


def _draw_frame(pen: ImageDraw.ImageDraw, x: float, y: float, size: float, ink: Color) -> None:
    """Draw the symbol of a missing picture around the point (`x`, `y`)."""
    wide, high = size * 0.6, size * 0.42
    left, top, right, bottom = x - wide, y - high, x + wide, y + high
    pen.rectangle((left, top, right, bottom), outline=ink, width=max(1, round(size / 14)))
    sun = size * 0.09
    pen.ellipse((right - 4 * sun, top + 2 * sun, right - 2 * sun, top + 4 * sun), fill=ink)
    foot = bottom - size * 0.12
    pen.polygon([(left + size * 0.12, foot), (x - size * 0.2, y - size * 0.1), (x + size * 0.14, foot)], fill=ink)
    pen.polygon([(x, foot), (x + size * 0.22, y + size * 0.04), (right - size * 0.12, foot)], fill=ink)


def _address(url: str) -> tuple[str, str]:
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.path
    except ValueError:
        return "", url

"""Input images of simulated image models: decoded, scaled and cropped; placeholders for images at URLs."""

from dataclasses import dataclass
from io import BytesIO

from PIL import Image, ImageDraw, ImageOps

from umg_grpc.base.errors import UmgError
from umg_grpc.wire.core.image_file_headers import GIF_TYPE, JPEG_TYPE, PNG_TYPE, WEBP_TYPE, check_image
from umg_grpc.wire.core.json_decoding import invalid
from umg_sandbox.text_drawing import draw_text

PILLOW_READERS = {PNG_TYPE: "PNG", JPEG_TYPE: "JPEG", GIF_TYPE: "GIF", WEBP_TYPE: "WEBP"}
NOT_FETCHED = "is an address, which is not fetched"
MAX_SCANS = 100
"""Maximum scans of a JPEG file, each of which takes time for all pixels. Encoders make about ten."""


@dataclass(frozen=True)
class InputImage:
    """Input image of a caller: its bytes, or a URL, which is never downloaded."""

    field: str
    """Path of the field for errors, as the caller wrote it."""
    data: bytes = b""
    url: str = ""


def draw_input(source: InputImage, width: int, height: int) -> Image.Image:
    """Return an input image scaled and cropped to a size in pixels, in mode RGB, on white. For a URL it is a
    placeholder that shows the URL. Raise UmgError(INVALID_FIELD) for bytes that are no image.
    """
    if source.url:
        image = Image.new("RGB", (width, height), "#404858")
        edge = min(width, height)
        box = (edge // 16, edge // 6, width - edge // 16, height // 2)
        draw_text(ImageDraw.Draw(image), box, f"{source.url.partition('?')[0]} {NOT_FETCHED}", edge // 14, "white")
        return image
    image = _decode(source, width, height).convert("RGBA")
    flat = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return ImageOps.fit(flat, (width, height), Image.Resampling.BICUBIC)


def draw_mask(mask: InputImage, edited: InputImage, width: int, height: int) -> Image.Image:
    """Return the region to redraw, scaled and cropped like the edited image; for a mask at a URL the left half. It has
    mode L, and 255 where the mask is transparent. Raise UmgError(INVALID_FIELD) for bytes that are no image, for a mask
    without transparency, and for another size than that of the edited image.
    """
    if mask.url:
        region = Image.new("L", (width, height))
        region.paste(255, (0, 0, width // 2, height))
        return region
    header = check_image(mask.data, mask.field)
    if edited.data:
        expected = check_image(edited.data, edited.field)
        if (header.width, header.height) != (expected.width, expected.height):
            sizes = (
                f"the mask is {header.width} x {header.height} pixels, the image {expected.width} x {expected.height}"
            )
            raise invalid(mask.field, f"{sizes}; send a mask of the size of the image")
    image = _decode(mask, width, height)
    if not image.has_transparency_data:
        raise invalid(mask.field, "the mask has no transparent pixels; send a PNG whose transparent pixels are redrawn")
    opaque = ImageOps.fit(image.convert("RGBA").getchannel("A"), (width, height), Image.Resampling.BICUBIC)
    return opaque.point([255 if alpha < 128 else 0 for alpha in range(256)])


def _decode(source: InputImage, width: int, height: int) -> Image.Image:
    """Return the first frame of an image, upright; an image much larger than `width` x `height` is reduced."""
    header = check_image(source.data, source.field)
    if header.mime_type == JPEG_TYPE and source.data.count(b"\xff\xda") > MAX_SCANS:
        raise invalid(source.field, f"the JPEG file has more than {MAX_SCANS} scans; encode it with fewer")
    try:
        with Image.open(BytesIO(source.data), formats=(PILLOW_READERS[header.mime_type],)) as image:
            image.thumbnail((2 * max(width, height),) * 2, Image.Resampling.NEAREST)  # before copies are made
            upright = ImageOps.exif_transpose(image)
            if upright.mode.startswith("I"):  # 16 bits, of which conversions cut the upper ones
                upright = upright.convert("I").point(lambda value: value * (1 / 257)).convert("L")
            return upright
    except UmgError:
        raise
    except Exception:  # the exceptions of decoders on broken files are not documented
        problem = f"the {header.mime_type} file is broken and cannot be decoded; send the whole file"
        raise invalid(source.field, problem) from None

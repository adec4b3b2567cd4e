"""Drawing of simulated images, which are labelled as simulated."""

import math
import re
import textwrap
from dataclasses import dataclass
from io import BytesIO

from PIL import Image, ImageDraw, ImageFont

from umg_grpc.upstream.sandbox.vocabulary import digest
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json import invalid

TOKENS = 1290
"""Tokens of an image in an answer."""
EDGE = 1024
"""Edge of a square 1K image, in pixels."""
LARGEST = 4
FORMATS = {"image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WEBP"}

_RATIO = re.compile(r"(\d{1,3}):(\d{1,3})")
_SIZE = re.compile(r"(\d(?:\.\d)?)K", re.IGNORECASE)


@dataclass(frozen=True)
class Drawing:
    """Parameters of an image."""

    width: int
    height: int
    mime_type: str
    words: str


def plan(options: pb.ImageOutputOptions, words: str) -> Drawing:
    """Return the parameters of an image of exactly the requested ratio and about the requested size: 1K has the area of
    1024 x 1024 pixels. Raise UmgError(INVALID_FIELD) for an invalid ratio or size or an unsupported type.
    """
    ratio = _RATIO.fullmatch(options.aspect_ratio or "1:1")
    if ratio is None or not (wide := int(ratio[1])) or not (high := int(ratio[2])) or not 0.1 <= wide / high <= 10:
        raise invalid("image_output.aspect_ratio", "expected a ratio such as `16:9`; send one")
    size = _SIZE.fullmatch(options.image_size or "1K")
    if size is None or not 0.5 <= float(size[1]) <= LARGEST:
        raise invalid("image_output.image_size", "expected `1K`, `2K` or `4K`; send one of them")
    mime = options.mime_type.lower() or "image/png"
    if mime not in FORMATS:
        raise invalid("image_output.mime_type", f"expected one of {', '.join(FORMATS)}; send one of them")
    wide, high = wide // math.gcd(wide, high), high // math.gcd(wide, high)
    unit = max(1, round(EDGE * float(size[1]) / math.sqrt(wide * high)))
    return Drawing(wide * unit, high * unit, mime, words)


def draw(drawing: Drawing) -> bytes:
    """Return the bytes of the image file. Takes up to a second of CPU."""
    hue = digest(drawing.words)
    back, front = (hue[0] // 2, hue[1] // 2, hue[2] // 2), (255, 255, 255)
    image = Image.new("P" if drawing.mime_type == "image/png" else "RGB", (drawing.width, drawing.height))
    if image.mode == "P":  # two colours: drawing and compressing a large image then takes a tenth of the time
        image.putpalette([*back, *front])
        fill, ink = 0, 1
        image.paste(fill, (0, 0, *image.size))
    else:
        image.paste(back, (0, 0, *image.size))
    pen, size = ImageDraw.Draw(image), max(10, min(image.size) // 16)
    font = ImageFont.load_default(size)
    lines = ["Simulated image", f"{drawing.width} x {drawing.height}"]
    lines += textwrap.wrap(drawing.words, max(8, int(drawing.width / size * 1.6)))[:6]
    pen.multiline_text((size, size), "\n".join(lines), fill=ink if image.mode == "P" else front, font=font)
    file = BytesIO()
    image.save(file, FORMATS[drawing.mime_type])
    return file.getvalue()

"""Text in simulated images, wrapped and sized to fit into a box."""

import textwrap
from functools import lru_cache
from importlib.resources import files

from PIL import ImageDraw, ImageFont

FONT_PACKAGE, FONT_FILE = "noto_cjk_sans_jp_regular", "NotoSansCJKjp-Regular.otf"
SMALLEST_SIZE = 9
"""Smallest legible font size in pixels."""
MAX_CHARACTERS = 600
LINE_HEIGHT = 1.3  # of the font size

Box = tuple[int, int, int, int]
"""Left, top, right and bottom edge in pixels; the last two are outside."""


def clean(text: str) -> str:
    """Return at most `MAX_CHARACTERS` of a text on one line, without halves of surrogate pairs."""
    return " ".join(text[:MAX_CHARACTERS].encode("utf-8", "replace").decode().split())


def draw_text(pen: ImageDraw.ImageDraw, box: Box, text: str, largest: int, ink: str) -> None:
    """Draw a text at the largest font size, up to `largest` pixels, at which it fits into the box. A text that fits at
    no size is cut, and a box that is too small for one character stays empty.
    """
    width, height, text, size = box[2] - box[0], box[3] - box[1], clean(text), max(largest, SMALLEST_SIZE)
    while text:
        font, spacing = load_font(size), size * (LINE_HEIGHT - 1)
        columns, rows = int(width * len(text) / font.getlength(text)), int(height / (size * LINE_HEIGHT))
        if size == SMALLEST_SIZE and not (columns and rows):
            return
        most = rows if size == SMALLEST_SIZE else None
        lines = "\n".join(textwrap.wrap(text, max(columns, 1), max_lines=most, placeholder="…"))
        _, _, right, bottom = pen.multiline_textbbox((0, 0), lines, font, spacing=spacing)
        if size == SMALLEST_SIZE or (right <= width and bottom <= height):
            pen.multiline_text(box[:2], lines, ink, font, spacing=spacing)
            return
        size = max(SMALLEST_SIZE, size * 9 // 10)


@lru_cache(maxsize=64)
def load_font(size: int) -> ImageFont.FreeTypeFont:
    """Return the font of a size in pixels. Its layout is Pillow's own, which is the same on every machine."""
    path = str(files(FONT_PACKAGE).joinpath(FONT_FILE))
    return ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)

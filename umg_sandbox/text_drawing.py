"""Drawing of text in any script into simulated images: selection of fonts, wrapping, fitting into a box.

A character that no font has is drawn as a box with its code point in hexadecimal digits.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from PIL import Image, ImageDraw, ImageFont

FONT_PACKAGE, FONT_FILE = "noto_cjk_sans_jp_regular", "NotoSansCJKjp-Regular.otf"
SYSTEM_FONTS = (
    "DejaVuSans.ttf",
    "NotoSansArabic-Regular.ttf",
    "NotoSansHebrew-Regular.ttf",
    "NotoSansDevanagari-Regular.ttf",
    "NotoSansBengali-Regular.ttf",
    "NotoSansTamil-Regular.ttf",
    "NotoSansThai-Regular.ttf",
    "NotoSansSymbols2-Regular.ttf",
    "NotoSansCJK-Regular.ttc",
    "DroidSansFallbackFull.ttf",
    "wqy-microhei.ttc",
    "unifont.otf",
    "Arial Unicode.ttf",
    "msyh.ttc",
    "seguisym.ttf",
)
"""File names of common fonts, searched in the system's folders for the scripts that the font of the package lacks."""
SMALLEST = 9
"""Smallest legible font size in pixels."""
MAX_CHARACTERS = 600
LINE_HEIGHT = 1.3  # of the font size
ELLIPSIS = "…"

_ASCENT = 1.0  # from the top of a line to its baseline, of the font size
_METRIC_SIZE = 32  # font size at which widths are measured; the width is proportional to the size
_BOX, _BOX_ADVANCE, _BOX_GAP = -1, 0.95, 0.06
_DIGITS_FROM = 20  # font size from which the box of a character without a glyph contains its digits
_TOKEN = re.compile(r"\s+|\S+")
_STEPS = 0.9  # ratio of the font sizes that are tried, the largest first
_WITHOUT_SHAPE = frozenset(("Cf", "Mn", "Mc", "Me", "Sk"))  # categories whose characters only modify others
_WITHOUT_ADVANCE = frozenset(("Cf", "Mn", "Me"))
_NOT_FIRST = frozenset(",.;:!?)]}%…、。，．；：！？）】」』》〉”’ー々")


def clean(text: str) -> str:
    """Return a text of at most `MAX_CHARACTERS` in composed form (NFC), with LF line ends and without control
    characters.
    """
    if len(text) > MAX_CHARACTERS:
        text = text[:MAX_CHARACTERS] + ELLIPSIS
    lines = unicodedata.normalize("NFC", text).splitlines()
    kept = ("".join(" " if unicodedata.category(each) == "Cc" else each for each in line) for line in lines)
    return "\n".join(line for line in (" ".join(line.split()) for line in kept) if line)


@dataclass(frozen=True)
class TextBlock:
    """Lines of a text with the font size in pixels at which they fit into their box."""

    lines: tuple[str, ...]
    size: int

    @property
    def height(self) -> int:
        """Height of all lines in pixels."""
        return round(len(self.lines) * self.size * LINE_HEIGHT)

    @property
    def width(self) -> int:
        """Width of the longest line in pixels."""
        return max((text_width(line, self.size) for line in self.lines), default=0)

    def draw(self, image: Image.Image, left: int, top: int, ink: int = 255, centered_in: int = 0) -> None:
        """Draw the lines into an image of mode L at (`left`, `top`). `ink`: brightness of the text; `centered_in`:
        width in which each line is centered, 0 for alignment to the left.
        """
        pen = ImageDraw.Draw(image)
        for index, line in enumerate(self.lines):
            indent = max(0, centered_in - text_width(line, self.size)) // 2
            baseline = top + round((index * LINE_HEIGHT + _ASCENT) * self.size)
            _draw_line(pen, line, left + indent, baseline, self.size, ink)


def fit_text(text: str, width: int, height: int, largest: int) -> TextBlock:
    """Return the text at the largest font size, up to `largest` pixels, at which it fits into a box of `width` and
    `height`.

    A text that does not fit at any size is cut and ends in an ellipsis; a box that is too small for one character
    gets no lines.
    """
    size = max(largest, SMALLEST)
    while True:
        lines = wrap_text(text, size, width)
        if len(lines) * size * LINE_HEIGHT <= height and not _breaks_words(lines, text, size):
            return TextBlock(tuple(lines), size)
        if size <= SMALLEST:
            return TextBlock(_cut(lines, size, width, int(height / (size * LINE_HEIGHT))), size)
        size = max(SMALLEST, int(size * _STEPS))


def _breaks_words(lines: list[str], text: str, size: int) -> bool:
    """Return whether `lines` break a word of `text` that a smaller font size than `size` would not break."""
    if size <= 2 * SMALLEST:
        return False
    whole = {word for word in text.split() if not any(_is_wide(each) for each in word)}
    return any(
        word not in whole and not any(_is_wide(each) for each in word) for line in lines for word in line.split()
    )


def _cut(lines: list[str], size: int, width: int, count: int) -> tuple[str, ...]:
    if len(lines) <= count:
        return tuple(lines)
    if count < 1:
        return ()
    last = lines[count - 1]
    while last and text_width(last + ELLIPSIS, size) > width:
        last = last[:-1]
    return (*lines[: count - 1], last.rstrip() + ELLIPSIS)


def fit_line(candidates: Sequence[str], width: int, size: int) -> TextBlock:
    """Return the first of the candidates that fits on one line of `width` pixels at a font size; a block without
    lines if none fits.
    """
    found = next((text for text in candidates if text_width(text, size) <= width), None)
    return TextBlock((found,) if found else (), size)


def wrap_text(text: str, size: int, width: int) -> list[str]:
    """Return a text in lines of at most `width` pixels, divided at spaces and between ideographs; longer words are
    broken. `size`: font size in pixels.
    """
    lines = list[str]()
    for paragraph in text.split("\n"):
        line, length = "", 0.0
        for piece in _pieces(paragraph):
            piece_length = sum(map(_advance, piece)) * size
            if length + piece_length <= width or (not line and not piece.strip()):
                line, length = line + piece, length + piece_length
                continue
            if line.strip():
                lines.append(line.strip())
            line, length = "", 0.0
            for each in piece.lstrip():
                step = _advance(each) * size
                if line and length + step > width:
                    lines.append(line)
                    line, length = "", 0.0
                line, length = line + each, length + step
        if line.strip():
            lines.append(line.strip())
    return lines


def _pieces(paragraph: str) -> list[str]:
    """Return a paragraph in words, spaces and single ideographs. Closing punctuation belongs to the piece in front of
    it.
    """
    pieces = list[str]()
    for token in _TOKEN.findall(paragraph):
        begin = len(pieces)
        for each in token:
            joined = len(pieces) > begin and (
                each in _NOT_FIRST or not (_is_wide(each) or _is_wide(pieces[-1][-1])) or unicodedata.combining(each)
            )
            if joined:
                pieces[-1] += each
            else:
                pieces.append(each)
    return pieces


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


def text_width(text: str, size: int) -> int:
    """Return the width of a line in pixels at a font size."""
    return int(sum(map(_advance, text)) * size) + 1


def _draw_line(pen: ImageDraw.ImageDraw, line: str, left: int, baseline: int, size: int, ink: int) -> None:
    place = float(left)
    for font_index, run in _runs(line):
        if font_index == _BOX:
            for each in run:
                _draw_box(pen, ord(each), place, baseline, size, ink)
                place += _BOX_ADVANCE * size
        else:
            font = _font(font_index, size)
            pen.text((place, baseline), run, fill=ink, font=font, anchor="ls")
            place += font.getlength(run)


def _runs(line: str) -> list[tuple[int, str]]:
    """Return a line in parts with one font each: (index of the font, text). A character that modifies the previous
    one stays with it, and is left out if the font lacks it.
    """
    runs = list[tuple[int, str]]()
    for each in line:
        last = runs[-1][0] if runs else _BOX
        index = _font_of(each)
        if _modifies(each):
            index = last if last != _BOX and _has(last, each) else None
        if index is None:
            continue
        if runs and index == last:
            runs[-1] = index, runs[-1][1] + each
        else:
            runs.append((index, each))
    return runs


def _modifies(character: str) -> bool:
    return unicodedata.category(character) in _WITHOUT_ADVANCE


def _draw_box(pen: ImageDraw.ImageDraw, code: int, left: float, baseline: int, size: int, ink: int) -> None:
    """Draw a box with the hexadecimal digits of the code point `code` in two rows, for a character that no font has."""
    gap, top = _BOX_GAP * size, baseline - 0.82 * size
    box = (left + gap, top, left + _BOX_ADVANCE * size - gap, baseline + 0.12 * size)
    pen.rectangle(box, outline=ink, width=max(1, size // 24))
    if size < _DIGITS_FROM:
        return
    digits = f"{code:04X}" if code <= 0xFFFF else f"{code:06X}"
    half = len(digits) // 2
    font = _font(0, max(6, int(size * (0.4 if half == 2 else 0.32))))
    middle = (box[0] + box[2]) / 2
    for row, share in ((digits[:half], 0.28), (digits[half:], 0.72)):
        pen.text((middle, box[1] + (box[3] - box[1]) * share), row, fill=ink, font=font, anchor="mm")


@lru_cache(maxsize=4096)
def _advance(character: str) -> float:
    """Return the width of a character as a fraction of the font size."""
    index = _font_of(character)
    if index is None or _modifies(character):
        return 0
    return _BOX_ADVANCE if index == _BOX else _font(index, _METRIC_SIZE).getlength(character) / _METRIC_SIZE


@lru_cache(maxsize=4096)
def _font_of(character: str) -> int | None:
    """Return the index of the first font that has a character; `_BOX` if none has it, None for an invisible
    character.
    """
    for index in range(len(_font_names())):
        if _has(index, character):
            return index
    return None if unicodedata.category(character) in _WITHOUT_SHAPE else _BOX


def _has(font_index: int, character: str) -> bool:
    """Return whether a font has a character, that is, draws it differently from characters that it lacks."""
    if character.isspace():
        return True
    try:
        glyph = _plain_font(font_index).getmask(character)
        return (glyph.size, bytes(glyph)) != _missing_glyph(font_index)
    except (RuntimeError, OSError, ValueError):  # half of a surrogate pair; a layout that fails
        return False


@lru_cache
def _missing_glyph(font_index: int) -> tuple[tuple[int, int], bytes]:
    glyph = _plain_font(font_index).getmask("\uffff")
    return glyph.size, bytes(glyph)


@lru_cache
def _plain_font(font_index: int) -> ImageFont.FreeTypeFont:
    """Return a font whose rules that replace or add characters are switched off."""
    return _font(font_index, _METRIC_SIZE).font_variant(layout_engine=ImageFont.Layout.BASIC)


@lru_cache
def _font_names() -> tuple[str, ...]:
    """Return the file names of the available fonts in order of preference: that of the optional package or else
    Pillow's (ASCII only), then those of the system.
    """
    return (_package_font(), *(name for name in SYSTEM_FONTS if _is_font(name)))


def _package_font() -> str:
    try:
        path = str(files(FONT_PACKAGE).joinpath(FONT_FILE))
    except ModuleNotFoundError:
        return ""
    return path if _is_font(path) else ""


def _is_font(name: str) -> bool:
    try:
        ImageFont.truetype(name, _METRIC_SIZE)
    except OSError:
        return False
    return True


@lru_cache(maxsize=64)
def _font(index: int, size: int) -> ImageFont.FreeTypeFont:
    name = _font_names()[index]
    if name:
        return ImageFont.truetype(name, size)
    default = ImageFont.load_default(size)
    if not isinstance(default, ImageFont.FreeTypeFont):
        raise TypeError("Pillow was built without FreeType, which draws text")
    return default

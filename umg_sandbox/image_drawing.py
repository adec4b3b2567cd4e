"""Drawing of simulated images: a generated scene or the input images, with the prompt and a label on a card.

The same parameters give the same image. The label states that it is simulated.
"""

import math
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO

from PIL import Image, ImageChops, ImageDraw, ImageFilter

from umg_grpc.wire.core.image_files import JPEG, PNG, WEBP
from umg_sandbox.image_canvas import Box, Canvas, ColorCanvas, PaletteCanvas
from umg_sandbox.input_images import InputImage, draw_input, draw_mask
from umg_sandbox.prompt_words import digest
from umg_sandbox.scene_drawing import Choices, Color, Scene, draw_scene
from umg_sandbox.text_drawing import LINE_HEIGHT, SMALLEST, TextBlock, clean, fit_line, fit_text

FORMATS = {PNG: "PNG", JPEG: "JPEG", WEBP: "WEBP"}
LABEL = "Simulated image"
WATERMARKS = ("AI generated (simulated)", "AI generated", "AI")
"""Texts of the visible watermark; the first that fits is drawn."""
DRAFT_CELLS = (16, 48, 144)
"""Number of squares along the longer edge of the first, second and third draft of an image."""
QUALITY = 90
"""Quality of JPEG and WebP in percent, if the request states none."""

DARK: Color = (22, 24, 32)
WHITE: Color = (255, 255, 255)
PAPER: Color = (250, 246, 235)

_QUOTED = re.compile(
    r"\"([^\"\n]{1,200})\"|[“„«]([^”“»\n]{1,200})[”“»]|[「『《]([^」』》\n]{1,200})[」』》]"
    r"|(?<!\w)['‘]([^'’\n]{1,200})['’](?!\w)"
)
_OPACITY = 0.72  # of plates on input images
_MASK_PIXELS = 512  # longer edge at which the outline of a mask is computed
_THUMBNAILS_PER_ROW = 5


@dataclass(frozen=True)
class Drawing:
    """Parameters that determine one simulated image completely."""

    model: str
    prompt: str
    width: int
    height: int
    mime_type: str = "image/png"
    quality: int | None = None
    """Quality of JPEG and WebP in percent, [0, 100]; None means `QUALITY`."""
    transparent: bool = False
    """Whether the background is transparent; without effect on JPEG."""
    seed: int | None = None
    """Seed of colours and shapes; None means that the prompt alone determines them."""
    index: int = 0
    """Position of the image among those of the call, from 0; each of them is different."""
    count: int = 1
    """Number of images of the call."""
    inputs: tuple[InputImage, ...] = ()
    base: int = 0
    """Index of the input image that fills the picture, -1 for the last; the others are drawn as thumbnails."""
    mask: InputImage | None = None
    """Mask of the input image that fills the picture, whose transparent region is redrawn; None without one."""
    watermark: bool = False
    """Whether there is a visible watermark in the bottom right corner."""
    renders_text: bool = False
    """Whether quoted texts of the prompt are drawn large, as by models that render text."""


def draw(drawing: Drawing, draft: int | None = None) -> bytes:
    """Draw an image, and return its file. `draft`: number from 0 of a draft with less detail, None for the finished
    image. Takes up to a second of CPU. Raise UmgError(INVALID_FIELD) with the field of an input image that cannot
    be decoded.
    """
    layout = _lay_out(drawing, draft)
    canvas = _compose(drawing, layout) if drawing.inputs else _paint(drawing)
    _draw_sign(canvas, drawing, layout)
    if draft is not None:
        canvas.pixelate(DRAFT_CELLS[min(draft, len(DRAFT_CELLS) - 1)])
    _draw_card(canvas, layout)
    if drawing.watermark:
        _draw_tag(canvas, layout, WATERMARKS, bottom_right=True)
    return _encode(canvas.finish(), drawing)


# --- layout


@dataclass(frozen=True)
class _Layout:
    """Positions and font sizes of the texts in an image. The card is above the row of the watermark, also without a
    watermark.
    """

    width: int
    height: int
    margin: int
    padding: int
    small: int
    """Font size of labels."""
    header: TextBlock
    prompt: TextBlock

    @property
    def tag_height(self) -> int:
        """Height in pixels of a short text in a corner, with its background."""
        return round(self.small * LINE_HEIGHT) + self.padding

    @property
    def card(self) -> Box:
        """Rectangle of the card with the label and the prompt."""
        bottom = self.height - self.tag_height - 2 * self.margin
        text = self.header.height + self.prompt.height
        top = bottom - text - 2 * self.padding if text else bottom
        return self.margin, max(top, 0), self.width - self.margin, max(bottom, 0)


def _lay_out(drawing: Drawing, draft: int | None) -> _Layout:
    width, height, edge = drawing.width, drawing.height, min(drawing.width, drawing.height)
    margin, padding = round(edge * 0.03), max(2, round(edge * 0.02))
    small = max(SMALLEST, round(math.sqrt(width * height) * 0.022))
    inner = width - 2 * margin - 2 * padding
    header = fit_line(_labels(drawing, draft), inner, small)
    above = height - round(small * LINE_HEIGHT) - 2 * margin - 4 * padding - header.height
    room = min(above, round(height * (0.34 if height > 30 * SMALLEST else 0.6)) - header.height)
    prompt = fit_text(clean(drawing.prompt), max(inner, 0), max(room, 0), round(edge * 0.055))
    return _Layout(width, height, margin, padding, small, header, prompt)


def _labels(drawing: Drawing, draft: int | None) -> list[str]:
    """Return texts for the label of an image with the same meaning, the longest first. `draft`: number of the draft,
    None for the finished image.
    """
    size = f"{drawing.width} x {drawing.height}"
    number = f"image {drawing.index + 1} of {drawing.count}" if drawing.count > 1 else ""
    seed = f"seed {drawing.seed}" if drawing.seed is not None else ""
    unfinished = f"draft {draft + 1}" if draft is not None else ""
    parts = [LABEL, unfinished, clean(drawing.model).replace("\n", " "), size, number, seed]
    kept = [part for part in parts if part]
    return [" · ".join(kept[:length]) for length in range(len(kept), 0, -1)] + ["Simulated"]


def _draw_card(canvas: Canvas, layout: _Layout) -> None:
    left, top, right, bottom = layout.card
    if right <= left or bottom <= top:
        return
    coverage = Image.new("L", (right - left, bottom - top))
    layout.header.draw(coverage, layout.padding, layout.padding, ink=190)
    layout.prompt.draw(coverage, layout.padding, layout.padding + layout.header.height)
    canvas.plate(layout.card, coverage, DARK, WHITE, _OPACITY)


def _draw_tag(canvas: Canvas, layout: _Layout, texts: Sequence[str], *, bottom_right: bool = False) -> None:
    """Draw the first of the texts that fits into the top left or the bottom right corner."""
    block = fit_line(texts, layout.width - 2 * layout.margin - layout.padding, layout.small)
    width, height = block.width + layout.padding, layout.tag_height
    if not block.lines or (not bottom_right and layout.margin + height > layout.card[1]):
        return
    left, top = layout.margin, layout.margin
    if bottom_right:
        left, top = layout.width - layout.margin - width, layout.height - layout.margin - height
    coverage = Image.new("L", (width, height))
    block.draw(coverage, layout.padding // 2, layout.padding // 2)
    canvas.plate((left, top, left + width, top + height), coverage, DARK, WHITE, _OPACITY)


def _draw_sign(canvas: Canvas, drawing: Drawing, layout: _Layout) -> None:
    """Draw the texts that are in quotation marks in the prompt on a sign above the card."""
    if not drawing.renders_text:
        return
    quoted = ("".join(groups) for groups in _QUOTED.findall(drawing.prompt))
    padding, edge = 2 * layout.padding, min(layout.width, layout.height)
    width = layout.width - 2 * layout.margin - 2 * padding
    height = layout.card[1] - 2 * layout.margin - 2 * padding
    block = fit_text(clean("\n".join(quoted)), max(width, 0), max(height, 0), round(edge * 0.2))
    if not block.lines:
        return
    wide, high = block.width + 2 * padding, block.height + 2 * padding
    left, top = (layout.width - wide) // 2, (layout.card[1] - high) // 2
    coverage = Image.new("L", (wide, high))
    block.draw(coverage, padding, padding, centered_in=block.width)
    canvas.plate((left, top, left + wide, top + high), coverage, PAPER, DARK)


# --- pictures


def _seed(drawing: Drawing) -> bytes:
    return digest(drawing.prompt, str(drawing.seed), str(drawing.index))


def _is_transparent(drawing: Drawing) -> bool:
    return drawing.transparent and drawing.mime_type != JPEG


def _paint(drawing: Drawing) -> Canvas:
    """Return a canvas with a generated scene as the picture."""
    scene = draw_scene(drawing.width, drawing.height, _seed(drawing))
    return PaletteCanvas(scene, transparent=_is_transparent(drawing))


def _compose(drawing: Drawing, layout: _Layout) -> Canvas:
    """Return a canvas with an input image as the picture, visibly changed, and thumbnails of the other input images."""
    size, edge = (drawing.width, drawing.height), min(drawing.width, drawing.height)
    base = drawing.base % len(drawing.inputs)
    image = draw_input(drawing.inputs[base], *size)
    if drawing.mask is not None:
        region = draw_mask(drawing.mask, drawing.inputs[base], *size)
        scene = draw_scene(*size, _seed(drawing))
        image.paste(_colored(scene), mask=region)
        image.paste(scene.accent, mask=_outline(region))
    else:
        scene = draw_scene(1, 1, _seed(drawing))  # for its colours
        image.paste(scene.accent, mask=_lights(drawing))
    ImageDraw.Draw(image).rectangle((0, 0, size[0] - 1, size[1] - 1), outline=scene.accent, width=max(1, edge // 80))
    canvas = ColorCanvas(image, _cutout(size) if _is_transparent(drawing) else None)
    name = f"image {base + 1}"
    _draw_tag(
        canvas, layout, (f"{name}, region of the mask redrawn", name) if drawing.mask else (f"{name}, edited", name)
    )
    others = [(number, source) for number, source in enumerate(drawing.inputs) if number != base]
    _draw_thumbnails(canvas, layout, others)
    return canvas


def _draw_thumbnails(canvas: ColorCanvas, layout: _Layout, sources: Sequence[tuple[int, InputImage]]) -> None:
    """Draw framed and numbered thumbnails of input images in rows above the card. `sources`: (number, input image)."""
    if not sources:
        return
    columns = min(len(sources), _THUMBNAILS_PER_ROW)
    rows = -(-len(sources) // columns)
    top = 2 * layout.margin + layout.tag_height
    across = (layout.width - layout.margin) // columns - layout.margin
    down = (layout.card[1] - top) // rows - layout.margin
    width = min(across, round(min(layout.width, layout.height) * 0.24))
    text = min(layout.small, width // 5)
    frame = max(1, width // 24)
    caption = round(text * LINE_HEIGHT) if text >= SMALLEST else 0
    width = min(width, down - caption)
    inner = width - 2 * frame
    pictures = [draw_input(source, max(inner, 1), max(inner, 1)) for _, source in sources]
    if inner < 1:
        return
    for place, ((number, _), picture) in enumerate(zip(sources, pictures, strict=True)):
        left = layout.margin + place % columns * (width + layout.margin)
        upper = layout.card[1] - (rows - place // columns) * (width + caption + layout.margin)
        coverage = Image.new("L", (width, width + caption))
        fit_line((f"image {number + 1}", str(number + 1)), inner, text).draw(coverage, frame, width - frame // 2)
        canvas.plate((left, upper, left + width, upper + width + caption), coverage, PAPER, DARK)
        canvas.image.paste(picture, (left + frame, upper + frame))


def _lights(drawing: Drawing) -> Image.Image:
    """Return an image of mode L with translucent circles, whose positions depend on the seed."""
    choices = Choices(_seed(drawing))
    scale = max(1, max(drawing.width, drawing.height) // _MASK_PIXELS)
    image = Image.new("L", (max(1, drawing.width // scale), max(1, drawing.height // scale)))
    pen, edge = ImageDraw.Draw(image), min(image.size)
    for number in range(9):
        x, y = choices.share(f"light {number} x") * image.width, choices.share(f"light {number} y") * image.height
        radius = choices.between(f"light {number}", 0.03, 0.11) * edge
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=120, outline=220, width=max(1, edge // 90))
    return image.resize((drawing.width, drawing.height), Image.Resampling.BILINEAR)


def _outline(region: Image.Image) -> Image.Image:
    """Return the outline of a region; both are images of mode L."""
    scale = max(1, max(region.size) // _MASK_PIXELS)
    small = region.resize((max(1, region.width // scale), max(1, region.height // scale)))
    return ImageChops.difference(small.filter(ImageFilter.MaxFilter(5)), small).resize(region.size)


def _colored(scene: Scene) -> Image.Image:
    """Return the scene as an image in mode RGB."""
    return PaletteCanvas(scene, transparent=False).finish().convert("RGB")


def _cutout(size: tuple[int, int]) -> Image.Image:
    """Return the mask (mode L) of the opaque part of an image with a transparent background."""
    shape, inset = Image.new("L", size), min(size) // 24
    box = (inset, inset, size[0] - 1 - inset, size[1] - 1 - inset)
    ImageDraw.Draw(shape).rounded_rectangle(box, min(size) // 4, fill=255)
    return shape


def _encode(image: Image.Image, drawing: Drawing) -> bytes:
    """Return the file of an image in the requested type, with settings that give small files in little time."""
    file = BytesIO()
    quality = QUALITY if drawing.quality is None else drawing.quality
    match FORMATS[drawing.mime_type]:
        case "PNG":
            strategy = zlib.Z_DEFAULT_STRATEGY if image.mode == "P" else zlib.Z_RLE
            image.save(file, "PNG", compress_level=6, compress_type=strategy)
        case "JPEG":
            image.convert("RGB").save(file, "JPEG", quality=quality)
        case other:  # WebP, the last of FORMATS
            colors = image if image.mode != "P" else image.convert("RGBA" if drawing.transparent else "RGB")
            colors.save(file, other, quality=quality, method=2)
    return file.getvalue()

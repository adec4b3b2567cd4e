"""Canvases for simulated images: with a palette of few colours, which is fast, or in true colour for input images."""

from typing import Protocol

from PIL import Image, ImageDraw

from umg_sandbox.scene_drawing import SKY_COLORS, Color, Scene

Box = tuple[int, int, int, int]
"""Left, top, right and bottom edge in pixels; the last two are outside."""

_SHADES = 16  # between two colours of a plate, for smooth edges of letters


class Canvas(Protocol):
    """Interface of an image that is being drawn."""

    def plate(self, box: Box, coverage: Image.Image, back: Color, ink: Color, opacity: float = 1) -> None:
        """Draw a rectangle with round corners in the colour `back`, and on it text in the colour `ink`. `coverage`:
        image of mode L and of the size of the box with the text; `opacity`: of the rectangle, from 0 to 1.
        """
        ...

    def pixelate(self, cells: int) -> None:
        """Reduce the detail of the image to `cells` squares along its longer edge."""
        ...

    def finish(self) -> Image.Image:
        """Return the finished image. The canvas cannot be used afterwards."""
        ...


class PaletteCanvas:
    """Canvas with a palette of few colours, which is fast. It ignores the opacity of rectangles."""

    def __init__(self, scene: Scene, *, transparent: bool) -> None:
        """Create a canvas with the picture of a scene. `transparent`: whether its background, the sky, is
        transparent.
        """
        self._image, self._colors, self._transparent = scene.image, list(scene.colors), transparent
        if transparent:
            self._image = self._image.point([0 if number < SKY_COLORS else number for number in range(256)])

    def plate(self, box: Box, coverage: Image.Image, back: Color, ink: Color, opacity: float = 1) -> None:
        """Draw an opaque rectangle with round corners in the colour `back`, and on it the text in `coverage` (mode L)
        in the colour `ink`.
        """
        first = len(self._colors)
        self._colors += [_mix(back, ink, shade / (_SHADES - 1)) for shade in range(_SHADES)]
        shades = coverage.point([first + value * _SHADES // 256 for value in range(256)])
        self._image.paste(shades, box[:2], _rounded(box, self._image).convert("1"))

    def pixelate(self, cells: int) -> None:
        self._image = _pixelated(self._image, cells)

    def finish(self) -> Image.Image:
        """Return the finished image, in mode P."""
        self._image.putpalette([channel for color in self._colors for channel in color])
        if self._transparent:
            self._image.info["transparency"] = 0
        return self._image


class ColorCanvas:
    """Canvas in true colour (RGB), for pictures with input images."""

    def __init__(self, image: Image.Image, opaque: Image.Image | None = None) -> None:
        """Create a canvas with an image of mode RGB. `opaque`: mask of mode L, 0 where the image is transparent; None
        if it is nowhere.
        """
        self.image, self._opaque = image, opaque

    def plate(self, box: Box, coverage: Image.Image, back: Color, ink: Color, opacity: float = 1) -> None:
        corners = _rounded(box, self.image)
        self.image.paste(back, box, corners.point([round(value * opacity) for value in range(256)]))
        self.image.paste(ink, box, coverage)
        if self._opaque is not None:
            self._opaque.paste(255, box, corners)

    def pixelate(self, cells: int) -> None:
        self.image = _pixelated(self.image, cells)

    def finish(self) -> Image.Image:
        """Return the finished image, in mode RGB, or RGBA if parts are transparent."""
        if self._opaque is not None:
            self.image.putalpha(self._opaque)
        return self.image


def _mix(first: Color, second: Color, share: float) -> Color:
    red, green, blue = (round(one + (other - one) * share) for one, other in zip(first, second, strict=True))
    return red, green, blue


def _rounded(box: Box, image: Image.Image) -> Image.Image:
    """Return a mask of mode L and of the size of a box, in which the box with round corners is 255. `image`: image
    whose size determines the radius.
    """
    width, height = box[2] - box[0], box[3] - box[1]
    shape, radius = Image.new("L", (width, height)), min(min(image.size) // 60, min(width, height) // 4)
    ImageDraw.Draw(shape).rounded_rectangle((0, 0, width - 1, height - 1), radius, fill=255)
    return shape


def _pixelated(image: Image.Image, cells: int) -> Image.Image:
    scale = min(1, cells / max(image.size))
    small = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    method = Image.Resampling.NEAREST if image.mode == "L" else Image.Resampling.BOX
    return image.resize(small, method).resize(image.size, Image.Resampling.NEAREST)

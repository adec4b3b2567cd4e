"""Generated scenes for simulated images: hills, a city, a boat or balloons, in shapes and colours that a seed
determines.

A scene has few colours, so that drawing and compressing a large image takes a tenth of the time of a photograph.
"""

import math
from collections.abc import Callable
from colorsys import hls_to_rgb
from dataclasses import dataclass
from hashlib import blake2b

from PIL import Image, ImageDraw

Color = tuple[int, int, int]

SKY_COLORS = 24
"""Number of colours, the first of a scene, that its background uses."""


@dataclass(frozen=True)
class Scene:
    """Picture of a scene. `image`: image of mode L whose pixels are indexes into `colors`."""

    image: Image.Image
    colors: tuple[Color, ...]

    @property
    def accent(self) -> Color:
        """Most saturated colour of the scene."""
        return self.colors[-1]


class Choices:
    """Source of pseudo-random numbers, each of which depends only on the seed and on the name of the choice."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed

    def share(self, name: str) -> float:
        """Return the number in [0, 1) for the choice `name`."""
        digest = blake2b(name.encode(), key=self._seed, digest_size=6).digest()
        return int.from_bytes(digest, "big") / 2**48

    def between(self, name: str, low: float, high: float) -> float:
        """Return the number in [low, high) for the choice `name`."""
        return low + (high - low) * self.share(name)


def draw_scene(width: int, height: int, seed: bytes) -> Scene:
    """Return the scene of a size in pixels. `seed`: 1 to 64 bytes that determine it."""
    choices = Choices(seed)
    hue = choices.share("hue")
    sky = [color(hue, 0.45 + 0.43 * step / (SKY_COLORS - 1), 0.55) for step in range(SKY_COLORS)]
    ground = [color(hue + choices.between("turn", 0.05, 0.18), 0.52 - 0.09 * step, 0.5) for step in range(5)]
    image = Image.new("L", (width, height))
    pen = ImageDraw.Draw(image)
    for step in range(SKY_COLORS):
        pen.rectangle((0, height * step // SKY_COLORS, width, height * (step + 1) // SKY_COLORS), fill=step)
    painter = _Painter(pen, width, height, choices)
    painter.sun()
    PLACES[int(choices.share("place") * len(PLACES))](painter)
    light, accent = color(hue + 0.5, 0.86, 0.9), color(hue + 0.5, 0.56, 0.8)
    return Scene(image, (*sky, *ground, light, accent))


def color(hue: float, lightness: float, saturation: float) -> Color:
    """Return a colour. `hue`: position on the colour wheel in turns; `lightness`, `saturation`: from 0 to 1."""
    red, green, blue = hls_to_rgb(hue % 1, lightness, saturation)
    return round(red * 255), round(green * 255), round(blue * 255)


GROUND = SKY_COLORS  # number of the lightest of five colours of the ground
LIGHT, ACCENT = GROUND + 5, GROUND + 6


@dataclass(frozen=True)
class _Painter:
    """Painter of the objects of a scene, whose positions and sizes are fractions of the image."""

    pen: ImageDraw.ImageDraw
    width: int
    height: int
    choices: Choices

    def circle(self, x: float, y: float, radius: float, fill: int) -> None:
        """Draw a filled circle around (`x`, `y`). `radius`: fraction of the shorter edge; `fill`: index of the
        colour.
        """
        length = radius * min(self.width, self.height)
        x, y = x * self.width, y * self.height
        self.pen.ellipse((x - length, y - length, x + length, y + length), fill=fill)

    def polygon(self, points: list[tuple[float, float]], fill: int) -> None:
        """Draw a filled polygon with these corners. `fill`: index of the colour."""
        self.pen.polygon([(x * self.width, y * self.height) for x, y in points], fill=fill)

    def trapezoid(self, x: float, top: tuple[float, float], bottom: tuple[float, float], fill: int) -> None:
        """Draw a symmetric trapezoid around `x`. `top`, `bottom`: (height of the edge, half its width); `fill`: index
        of the colour.
        """
        (upper, wide), (lower, narrow) = top, bottom
        self.polygon([(x - wide, upper), (x + wide, upper), (x + narrow, lower), (x - narrow, lower)], fill)

    def sun(self) -> None:
        """Draw the sun or the moon."""
        place = self.choices.between("sun", 0.12, 0.88), self.choices.between("noon", 0.12, 0.3)
        self.circle(*place, 0.115, LIGHT)
        self.circle(*place, 0.09, ACCENT)

    def hills(self) -> None:
        """Draw ranges of hills; the nearest have the darkest colour."""
        for layer in range(5):
            self._ridge(f"hill {layer}", 0.38 + 0.11 * layer, 0.1, GROUND + layer)

    def _ridge(self, name: str, level: float, rise: float, fill: int) -> None:
        waves = [
            (
                self.choices.between(f"{name} {n}", 0.6, 1.7) * (n + 1),
                self.choices.share(f"{name} at {n}"),
                2 ** -(n + 1),
            )
            for n in range(3)
        ]
        places = [step / 60 for step in range(61)]
        swings = (sum(high * math.sin(math.tau * (x * turns + start)) for turns, start, high in waves) for x in places)
        top = [(x, level + rise * swing) for x, swing in zip(places, swings, strict=True)]
        self.polygon([(0, 1), *top, (1, 1)], fill)

    def city(self) -> None:
        """Draw rows of houses with lit windows."""
        for layer in range(4):
            x, number = -0.02, 0
            while x < 1:
                name = f"house {layer} {number}"
                wide = self.choices.between(f"{name} width", 0.05, 0.12)
                top = 0.3 + 0.13 * layer + self.choices.between(f"{name} top", 0, 0.2)
                self.polygon([(x, 1), (x, top), (x + wide, top), (x + wide, 1)], GROUND + layer + 1)
                self._windows(name, x, top, wide)
                x, number = x + wide + self.choices.between(f"{name} gap", -0.005, 0.02), number + 1

    def _windows(self, name: str, x: float, top: float, wide: float) -> None:
        step_x, step_y = wide / 4, 0.035
        for row in range(12):
            for column in range(3):
                if self.choices.share(f"{name} window {row} {column}") < 0.35:
                    left, upper = x + step_x * (column + 0.65), top + step_y * (row + 0.6)
                    right, lower = left + step_x * 0.6, upper + step_y * 0.5
                    self.polygon([(left, upper), (right, upper), (right, lower), (left, lower)], LIGHT)

    def sea(self) -> None:
        """Draw a boat on waves."""
        self._ridge("shore", 0.5, 0.06, GROUND)
        for layer in range(1, 3):
            self._ridge(f"wave {layer}", 0.5 + 0.09 * layer, 0.02, GROUND + layer)
        x, y, size = self.choices.between("boat", 0.25, 0.75), 0.66, self.choices.between("boat size", 0.75, 1.15)
        tall = 0.42 * size
        self.polygon([(x, y - tall), (x, y - 0.03), (x + 0.19 * size, y - 0.03)], LIGHT)
        self.polygon([(x - 0.015, y - tall * 0.85), (x - 0.015, y - 0.03), (x - 0.13 * size, y - 0.03)], ACCENT)
        self.trapezoid(x, (y - 0.02, 0.2 * size), (y + 0.07, 0.14 * size), GROUND + 4)
        for layer in range(3, 5):
            self._ridge(f"wave {layer}", 0.5 + 0.09 * layer, 0.02, GROUND + layer)

    def balloons(self) -> None:
        """Draw balloons above hills."""
        self._ridge("far", 0.6, 0.08, GROUND + 1)
        self._ridge("near", 0.72, 0.08, GROUND + 3)
        for number in range(7):
            name = f"balloon {number}"
            x, y = self.choices.between(f"{name} x", 0.08, 0.92), self.choices.between(f"{name} y", 0.15, 0.55)
            radius = self.choices.between(f"{name} radius", 0.04, 0.1)
            fill = (ACCENT, LIGHT, GROUND, GROUND + 2)[number % 4]
            wide, high = radius * min(1, self.height / self.width), radius * min(1, self.width / self.height)
            self.trapezoid(x, (y + high * 0.45, wide * 0.9), (y + high * 1.5, wide * 0.2), fill)
            self.circle(x, y, radius, fill)
            self.trapezoid(x, (y + high * 1.6, wide * 0.2), (y + high * 1.95, wide * 0.15), GROUND + 4)


PLACES: tuple[Callable[[_Painter], None], ...] = (_Painter.hills, _Painter.city, _Painter.sea, _Painter.balloons)

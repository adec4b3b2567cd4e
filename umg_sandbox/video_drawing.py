"""Drawing of the frames of simulated videos: a scene or the input images, a moving disc, and a card with prompt and
time.

Equal parameters give equal frames, which are labelled as simulated. Frames are drawn as YUV 4:2:0 planes, the input of
the H.264 encoder, so that a frame takes only a copy of the background and of some small parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from umg_sandbox.image_canvas import PaletteCanvas
from umg_sandbox.image_drawing import WATERMARKS
from umg_sandbox.input_images import InputImage, draw_input
from umg_sandbox.prompt_words import digest
from umg_sandbox.scene_drawing import Choices, draw_scene
from umg_sandbox.text_drawing import LINE_HEIGHT, SMALLEST, clean, fit_line, fit_text
from umg_sandbox.video_task_parameters import Medium, VideoPlan

LABEL = "Simulated video"
PAN = 0.1
"""Distance by which the camera moves in the video, as a fraction of the width."""
FADE = (0.3, 0.7)
"""Fractions of the video's length between which the first picture fades into the last one."""
DARK, PALE, WHITE = 40, 180, 235
"""Brightness in the range of videos."""
NEUTRAL = 128

Plane: TypeAlias = NDArray[np.uint8]

_BRIGHTNESS = [16 + round(value * 219 / 255) for value in range(256)]
_COLORS = [128 + round((value - 128) * 224 / 255) for value in range(256)]
_FULL_BRIGHTNESS = [min(max(round((value - 16) * 255 / 219), 0), 255) for value in range(256)]
_FULL_COLORS = [min(max(128 + round((value - 128) * 255 / 224), 0), 255) for value in range(256)]


@dataclass(frozen=True)
class Planes:
    """Picture in YUV 4:2:0: a plane of brightness, and two colour planes of half its width and height. Width and
    height of the picture are even.
    """

    parts: tuple[Plane, Plane, Plane]

    @classmethod
    def of(cls, image: Image.Image) -> "Planes":
        """Return the picture of an image of mode RGB."""
        small = image.width // 2, image.height // 2
        first, *colors = image.convert("YCbCr").split()
        reduced = (each.point(_COLORS).resize(small, Image.Resampling.BOX) for each in colors)
        blue, red = (np.asarray(each) for each in reduced)
        return cls((np.asarray(first.point(_BRIGHTNESS)), blue, red))

    @classmethod
    def on(cls, frame: Plane, width: int, height: int) -> "Planes":
        """Return a picture in the memory of `frame`, a frame of the encoder, so that drawing changes the frame."""
        size = width * height
        blue, red = (frame[size + place * size // 4 :][: size // 4] for place in range(2))
        half = height // 2, width // 2
        return cls((frame[:size].reshape(height, width), blue.reshape(half), red.reshape(half)))

    def window(self, left: int, width: int) -> "Planes":
        """Return a part of the picture that shares its memory. `left`: first column, an even number; `width`: number
        of columns.
        """
        brightness, blue, red = self.parts
        half, end = left // 2, (left + width) // 2
        return Planes((brightness[:, left : left + width], blue[:, half:end], red[:, half:end]))

    def paste(self, other: "Planes", left: int = 0, top: int = 0, mask: Plane | None = None) -> None:
        """Copy another picture into this one at (`left`, `top`), both even. `mask`: only pixels where it is not 0 are
        copied; None copies all.
        """
        for number, (own, new) in enumerate(zip(self.parts, other.parts, strict=True)):
            step = 2 if number else 1
            height, width = new.shape
            place = own[top // step : top // step + height, left // step : left // step + width]
            if mask is None:
                place[:] = new
            else:
                np.copyto(place, new, where=mask[::step, ::step] > 0)

    def blend(self, first: "Planes", second: "Planes", share: float) -> None:
        """Fill this picture with a mixture of two pictures of its size. `share`: fraction of the second, from 0
        to 1.
        """
        weight = round(share * 256)
        for own, one, other in zip(self.parts, first.parts, second.parts, strict=True):
            own[:] = (one * np.uint16(256 - weight) + other * np.uint16(weight)) >> 8

    def image(self) -> Image.Image:
        """Return the picture as an image in mode RGB."""
        brightness, *colors = (Image.fromarray(np.ascontiguousarray(each)) for each in self.parts)
        large = [each.point(_FULL_COLORS).resize(brightness.size) for each in colors]
        return Image.merge("YCbCr", [brightness.point(_FULL_BRIGHTNESS), *large]).convert("RGB")


@dataclass(frozen=True)
class _Patch:
    """Small picture that is the same in all frames, and its position."""

    planes: Planes
    left: int
    top: int
    mask: Plane | None = None


class FramePainter:
    """Painter of all frames of one simulated video."""

    def __init__(self, plan: VideoPlan, index: int) -> None:
        """Draw the parts that all frames share, which takes some tenths of a second. `index`: position of the video
        in its task.
        """
        self.plan, self.index = plan, index
        self._seed = digest(plan.scene, str(plan.seed), str(index))
        self._pan = 0 if plan.camera_fixed else 2 * round(plan.width * PAN / 2)
        first, last = (next((each for each in plan.media if each.role == role), None) for role in ("first", "last"))
        self._first = self._background(first, "first")
        self._last = self._background(last, "last") if last is not None else None
        self._layout = _Layout(plan, index)
        self._patches = [*self._layout.card(), *self._layout.watermark(), *self._thumbnails()]

    def frame(self, number: int) -> Plane:
        """Return the frame at the position `number` for the encoder: its brightness and two colour planes below each
        other.
        """
        width, height = self.plan.width, self.plan.height
        frame = np.empty(width * height * 3 // 2, np.uint8)
        planes = Planes.on(frame, width, height)
        share = number / max(1, self.plan.frame_count - 1)
        left = 2 * int(self._pan * share / 2)
        first = self._first.window(left, width)
        mixed = min(max((share - FADE[0]) / (FADE[1] - FADE[0]), 0), 1)
        if self._last is None or mixed == 0:
            planes.paste(first)
        elif mixed == 1:
            planes.paste(self._last.window(left, width))
        else:
            planes.blend(first, self._last.window(left, width), mixed)
        self._draw_disc(planes, share)
        for patch in self._patches:
            planes.paste(patch.planes, patch.left, patch.top, patch.mask)
        self._layout.draw_progress(planes, number)
        return frame

    def picture(self, number: int) -> Image.Image:
        """Return the frame at the position `number` as an image of mode RGB."""
        return Planes.on(self.frame(number), self.plan.width, self.plan.height).image()

    def _background(self, medium: Medium | None, role: str) -> Planes:
        """Return the picture behind a frame, wider than the video by the movement of the camera: an input image, or a
        generated scene if `medium` is None or has no image.
        """
        size = self.plan.width + self._pan, self.plan.height
        if medium is not None:
            return Planes.of(draw_input(InputImage(role, data=medium.data, url=medium.url), *size))
        return Planes.of(PaletteCanvas(draw_scene(*size, self._seed), transparent=False).finish().convert("RGB"))

    def _draw_disc(self, planes: Planes, share: float) -> None:
        """Draw the moving disc. `share`: elapsed fraction of the video, from 0 to 1."""
        disc = self._disc
        room_x, room_y = self.plan.width - disc.left, self._layout.top - disc.top
        if room_x > 0 and room_y > 0:
            height = 1 - 0.8 * (1 - (2 * share - 1) ** 2)
            planes.paste(disc.planes, 2 * int(room_x * share / 2), 2 * int(room_y * height / 2), disc.mask)

    @cached_property
    def _disc(self) -> _Patch:
        """Return the disc in a colour that depends on the seed. Its `left` and `top` hold its diameter instead of a
        position.
        """
        edge = max(4, 2 * round(min(self.plan.width, self.plan.height) * 0.05))
        mask = Image.new("L", (edge, edge))
        ImageDraw.Draw(mask).ellipse((0, 0, edge - 1, edge - 1), fill=255)
        image = Image.new("RGB", (edge, edge), draw_scene(1, 1, self._seed).accent)
        return _Patch(Planes.of(image), edge, edge, np.asarray(mask))

    def _thumbnails(self) -> list[_Patch]:
        """Return thumbnails of the other inputs in one row."""
        others = [each for each in self.plan.media if each.role not in ("first", "last")]
        if not others:
            return []
        room = self.plan.width // len(others), self._layout.top
        edge = 2 * int(min(*room, min(self.plan.width, self.plan.height) * 0.35) * 0.45)
        if edge < 8:
            return []
        step = 2 * ((edge + edge // 8) // 2)
        top = 2 * max(0, int((self._layout.top - edge) / 4))
        return [
            _Patch(Planes.of(self._thumbnail(medium, number, edge)), 2 * (edge // 16) + place * step, top)
            for place, (number, medium) in enumerate(enumerate(others, start=1))
        ]

    def _thumbnail(self, medium: Medium, number: int, edge: int) -> Image.Image:
        """Return a framed thumbnail of an input; for a URL, a video and audio a picture with its name. `number`:
        number of the input that is shown; `edge`: size in pixels.
        """
        if medium.data or (medium.url and medium.kind == "image"):
            image = draw_input(InputImage("reference", data=medium.data, url=medium.url), edge, edge)
        else:
            image = Image.new("RGB", (edge, edge), (60, 70, 90))
            coverage = Image.new("L", (edge, edge))
            name = f"{medium.role} {medium.kind} {number}" + (f"\n{medium.url}" if medium.url else "")
            fit_text(clean(name), edge - 8, edge - 8, edge // 6).draw(coverage, 4, 4)
            image.paste((255, 255, 255), mask=coverage)
        ImageDraw.Draw(image).rectangle((0, 0, edge - 1, edge - 1), outline=(250, 246, 235), width=max(1, edge // 40))
        return image


class _Layout:
    """Positions and pictures of the card (label, prompt, progress) and of the watermark, in shades of grey."""

    def __init__(self, plan: VideoPlan, index: int) -> None:
        self._plan = plan
        edge = min(plan.width, plan.height)
        self._padding = 2 * max(1, round(edge * 0.01))
        self._small = max(SMALLEST, round((plan.width * plan.height) ** 0.5 * 0.024))
        inner = plan.width - 4 * self._padding
        self._header = fit_line(_labels(plan, index), inner, self._small)
        room = max(0, round(plan.height * 0.22))
        self._prompt = fit_text(plan.prompt, max(inner, 0), room, round(edge * 0.055))
        self._row = 2 * round(self._small * LINE_HEIGHT / 2)
        self._clock_width = 2 * (fit_line([_clock(plan, plan.frame_count)], inner, self._small).width // 2 + 1)
        height = self._header.height + self._prompt.height + self._row + 2 * self._padding
        self.top = 2 * max(0, (plan.height - self._padding - height) // 2)
        """First row of the card."""
        self._clock_shown = ""
        self._clock_plane: Planes | None = None

    def card(self) -> list[_Patch]:
        """Return the pictures that make up the card."""
        left, right = self._padding, self._plan.width - self._padding
        image = Image.new("L", (right - left, 2 * ((self._plan.height - self._padding - self.top) // 2)), DARK)
        if min(image.size) < 2:
            return []
        self._header.draw(image, self._padding, self._padding // 2, ink=PALE)
        self._prompt.draw(image, self._padding, self._padding // 2 + self._header.height, ink=WHITE)
        return [_Patch(_grey(image), left, self.top)]

    def watermark(self) -> list[_Patch]:
        """Return the watermark for the upper right corner; empty unless it was requested."""
        block = fit_line(WATERMARKS, self._plan.width - 4 * self._padding, self._small)
        if not self._plan.watermark or not block.lines:
            return []
        image = Image.new("L", (2 * ((block.width + self._padding) // 2), self._row + self._padding), DARK)
        block.draw(image, self._padding // 2, self._padding // 2, ink=WHITE)
        if image.height + self._padding > self.top:
            return []
        return [_Patch(_grey(image), self._plan.width - self._padding - image.width, self._padding)]

    def draw_progress(self, planes: Planes, number: int) -> None:
        """Draw the progress bar and the time of the frame at the position `number`."""
        plan = self._plan
        top = plan.height - 2 * self._padding - self._row + self._padding // 2
        left, right = 2 * self._padding, plan.width - 3 * self._padding - self._clock_width
        if right - left < self._small or top < self.top:
            return
        middle, thick = top + self._row // 2, max(2, self._small // 3)
        bar = planes.parts[0][middle - thick // 2 : middle + thick - thick // 2]
        bar[:, left:right] = 90
        bar[:, left : left + round((right - left) * (number + 1) / plan.frame_count)] = WHITE
        planes.paste(self._clock(_clock(plan, number + 1)), 2 * ((right + self._padding) // 2), 2 * (top // 2))

    def _clock(self, text: str) -> Planes:
        if self._clock_plane is None or text != self._clock_shown:
            image = Image.new("L", (self._clock_width, self._row), DARK)
            fit_line([text], self._clock_width, self._small).draw(image, 0, 0, ink=PALE)
            self._clock_shown, self._clock_plane = text, _grey(image)
        return self._clock_plane


def _grey(image: Image.Image) -> Planes:
    """Return the picture of an image of mode L, with its brightness reduced to the range of videos (16 to 235)."""
    neutral: Plane = np.full((image.height // 2, image.width // 2), NEUTRAL, np.uint8)
    return Planes((np.asarray(image), neutral, neutral))


def _clock(plan: VideoPlan, frames: int) -> str:
    return f"{frames / plan.frame_rate:.1f} / {plan.seconds:.1f} s"


def _labels(plan: VideoPlan, index: int) -> Sequence[str]:
    """Return texts for the label of a video with the same meaning, the longest first. `index`: position of the video
    in its task.
    """
    parts = [
        f"{LABEL}, a remix" if plan.remix else LABEL,
        clean(plan.model).replace("\n", " "),
        f"{plan.width} x {plan.height}",
        f"{plan.seconds:g} s",
        f"{plan.frame_rate} fps",
        "with sound" if plan.sound else "",
        f"video {index + 1} of {plan.count}" if plan.count > 1 else "",
        f"seed {plan.seed}" if plan.seed is not None else "",
    ]
    kept = [part for part in parts if part]
    return [" · ".join(kept[:length]) for length in range(len(kept), 0, -1)] + ["Simulated"]


def tone(plan: VideoPlan, rate: int) -> NDArray[np.float32]:
    """Return the samples of the video's sound: a quiet chord that begins again every second. `rate`: samples per
    second.
    """
    times = np.arange(int(plan.seconds * rate), dtype=np.float32) / rate
    base = Choices(digest(plan.scene, str(plan.seed))).between("tone", 180, 360)
    chord = sum(np.sin(times * np.float32(2 * np.pi * base * step)) for step in (1, 1.25, 1.5))
    return np.asarray(chord * np.exp(-3 * (times % 1)) * 0.15, np.float32)

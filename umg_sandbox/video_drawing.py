"""Drawing of the frames of simulated videos: discs or the input images, one of them moving, and a card with the prompt
and the time. Equal parameters give equal frames, labelled as simulated.
"""

from random import Random

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageDraw

from umg_sandbox.image_drawing import DARK_COLOR, PALE_COLOR, WHITE_COLOR, draw_card, draw_scene, draw_thumbnails
from umg_sandbox.input_images import InputImage, draw_input
from umg_sandbox.text_drawing import load_font
from umg_sandbox.video_task_parameters import Medium, VideoPlan
from umg_sandbox.words_from_prompt import digest

PAN_DISTANCE = 0.1
"""Distance by which the camera moves in the video, as a fraction of the width."""


class FramePainter:
    """Painter of all frames of one simulated video."""

    def __init__(self, plan: VideoPlan, index: int) -> None:
        """Draw the parts that all frames share. `index`: position of the video in its task."""
        self._plan = plan
        self._seed = digest(plan.scene, str(plan.seed), str(index))
        self._first = self._picture("first")
        has_last = any(medium.role == "last" for medium in plan.media)
        self._last = self._picture("last") if has_last else None
        labels = (
            "Simulated video, a remix" if plan.remix else "Simulated video",
            plan.model,
            f"{plan.width} x {plan.height}",
            f"{plan.seconds:g} s",
            f"{plan.frame_rate} fps",
            "with sound" if plan.sound else "",
            f"video {index + 1} of {plan.count}" if plan.count > 1 else "",
            f"seed {plan.seed}" if plan.seed is not None else "",
        )
        self._card = draw_card((plan.width, plan.height), labels, plan.prompt, watermark=plan.watermark)

    def frame(self, number: int) -> Image.Image:
        """Return the frame with this number, in mode RGB."""
        plan, share = self._plan, number / max(1, self._plan.frame_count - 1)
        picture = self._first if self._last is None else Image.blend(self._first, self._last, share)
        pan = 0 if plan.camera_fixed else round(plan.width * PAN_DISTANCE * share)
        frame = ImageChops.offset(picture, -pan, 0)
        pen, radius = ImageDraw.Draw(frame), min(frame.size) / 20
        pen.circle((radius + share * (frame.width - 2 * radius), frame.height / 2), radius, WHITE_COLOR, DARK_COLOR)
        frame.paste(self._card, (0, frame.height - self._card.height))
        row = max(1, frame.height // 20)
        pen.rectangle((0, frame.height - row // 8, share * frame.width, frame.height), PALE_COLOR)
        time = f"{(number + 1) / plan.frame_rate:.1f} / {plan.seconds:.1f} s"
        pen.text((frame.width // 50, frame.height - row), time, PALE_COLOR, load_font(max(1, row * 2 // 3)))
        return frame

    def _picture(self, role: str) -> Image.Image:
        size, media = (self._plan.width, self._plan.height), self._plan.media
        shown = next((_input(medium) for medium in media if medium.role == role), None)
        picture = draw_scene(*size, self._seed) if shown is None else draw_input(shown, *size)
        draw_thumbnails(picture, [_input(medium) for medium in media if medium.role not in ("first", "last")])
        return picture


def _input(medium: Medium) -> InputImage:
    name = "" if medium.data else medium.url or f"{medium.role} {medium.kind}"
    return InputImage(medium.role, data=medium.data, url=name)


def tone(plan: VideoPlan, rate: int) -> NDArray[np.float32]:
    """Return the samples of the video's sound: a quiet chord, anew in every second. `rate`: samples per second."""
    times = np.arange(int(plan.seconds * rate), dtype=np.float32) / rate
    base = Random(digest(plan.scene, str(plan.seed))).uniform(180, 360)  # noqa: S311  a sound
    chord = sum(np.sin(times * np.float32(2 * np.pi * base * step)) for step in (1, 1.25, 1.5))
    return np.asarray(chord * np.exp(-3 * (times % 1)) * 0.15, np.float32)

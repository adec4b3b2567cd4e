"""Encoding of simulated videos as MP4 files (H.264, AAC), and of pictures from their frames. Takes seconds of CPU."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import av
import numpy as np
from PIL import Image

from umg_grpc.v1 import pb
from umg_sandbox.video_drawing import FramePainter, tone
from umg_sandbox.video_task_parameters import VideoPlan

SAMPLE_RATE = 44_100
FRAME_SAMPLES = 1024
"""Sound samples in one frame of AAC."""
ENCODER_OPTIONS = {"preset": "ultrafast", "crf": "28"}
THUMBNAIL_EDGE = 320
SHEET_COLUMNS, SHEET_ROWS = 4, 3

MIME_TYPES = {
    pb.VIDEO_VARIANT_VIDEO: "video/mp4",
    pb.VIDEO_VARIANT_THUMBNAIL: "image/webp",
    pb.VIDEO_VARIANT_SPRITESHEET: "image/jpeg",
    pb.VIDEO_VARIANT_LAST_FRAME: "image/png",
}


def encode_video(plan: VideoPlan, index: int = 0) -> bytes:
    """Return the MP4 file of a video. `index`: its position in the task. Equal parameters give equal bytes."""
    painter = FramePainter(plan, index)
    with TemporaryDirectory() as folder:  # the index of the file is moved to its beginning, which needs its name
        path = Path(folder) / "video.mp4"
        with av.open(str(path), "w", format="mp4", options={"movflags": "+faststart", "fflags": "+bitexact"}) as file:
            video = file.add_stream("libx264", rate=plan.frame_rate, options=ENCODER_OPTIONS)
            video.width, video.height, video.pix_fmt = plan.width, plan.height, "yuv420p"
            video.codec_context.time_base = Fraction(1, plan.frame_rate)
            video.codec_context.gop_size = 2 * plan.frame_rate
            video.codec_context.thread_count = 1  # bounded, and the same bytes each time
            audio = file.add_stream("aac", rate=SAMPLE_RATE, layout="mono") if plan.sound else None
            for number in range(plan.frame_count):
                frame = av.VideoFrame.from_ndarray(np.asarray(painter.frame(number)), format="rgb24")
                frame.pts, frame.time_base = number, Fraction(1, plan.frame_rate)
                file.mux(video.encode(frame))
            file.mux(video.encode(None))
            if audio is not None:
                _encode_sound(file, audio, plan)
        return path.read_bytes()


def _encode_sound(file: av.container.OutputContainer, audio: av.AudioStream, plan: VideoPlan) -> None:
    samples = tone(plan, SAMPLE_RATE)
    for begin in range(0, len(samples) - FRAME_SAMPLES, FRAME_SAMPLES):  # not longer than the video
        frame = av.AudioFrame.from_ndarray(
            samples[np.newaxis, begin : begin + FRAME_SAMPLES], format="fltp", layout="mono"
        )
        frame.sample_rate, frame.pts = SAMPLE_RATE, begin
        file.mux(audio.encode(frame))
    file.mux(audio.encode(None))


def encode_variant(plan: VideoPlan, variant: "pb.VideoVariant.ValueType", index: int = 0) -> bytes:
    """Return a result's file: MP4, or WebP, JPEG or PNG of a picture. `index`: of the video in the task."""
    return VARIANT_ENCODERS[variant](plan, index)


def _thumbnail(plan: VideoPlan, index: int) -> bytes:
    picture = FramePainter(plan, index).frame(plan.frame_count // 2)
    picture.thumbnail((THUMBNAIL_EDGE, THUMBNAIL_EDGE))
    return _saved(picture, "WEBP")


def _last_frame(plan: VideoPlan, index: int) -> bytes:
    return _saved(FramePainter(plan, index).frame(plan.frame_count - 1), "PNG")


def _spritesheet(plan: VideoPlan, index: int) -> bytes:
    painter, count = FramePainter(plan, index), SHEET_COLUMNS * SHEET_ROWS
    scale = min(1, THUMBNAIL_EDGE / max(plan.width, plan.height))
    width, height = max(1, round(plan.width * scale)), max(1, round(plan.height * scale))
    sheet = Image.new("RGB", (width * SHEET_COLUMNS, height * SHEET_ROWS))
    for place in range(count):
        picture = painter.frame(place * (plan.frame_count - 1) // (count - 1)).resize((width, height))
        sheet.paste(picture, (place % SHEET_COLUMNS * width, place // SHEET_COLUMNS * height))
    return _saved(sheet, "JPEG")


def _saved(picture: Image.Image, kind: str) -> bytes:
    file = BytesIO()
    picture.save(file, kind)
    return file.getvalue()


VARIANT_ENCODERS: "Mapping[pb.VideoVariant.ValueType, Callable[[VideoPlan, int], bytes]]" = {
    pb.VIDEO_VARIANT_VIDEO: encode_video,
    pb.VIDEO_VARIANT_THUMBNAIL: _thumbnail,
    pb.VIDEO_VARIANT_SPRITESHEET: _spritesheet,
    pb.VIDEO_VARIANT_LAST_FRAME: _last_frame,
}
"""Variant of a result -> function (parameters of the task, position of the video) that returns its file."""

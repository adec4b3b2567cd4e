"""Audio files in memory: media types, conversion of raw samples, duration. PyAV loads slowly, so it is loaded at first
use.
"""

import io
import struct
from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

WAV_FORMAT, PCM_FORMAT, MP3_FORMAT = "wav", "pcm", "mp3"
MEDIA_TYPES: Mapping[str, str] = MappingProxyType(
    {
        MP3_FORMAT: "audio/mpeg",
        "opus": "audio/opus",
        "aac": "audio/aac",
        "flac": "audio/flac",
        WAV_FORMAT: "audio/wav",
        PCM_FORMAT: "audio/pcm",
    }
)
_ENCODERS: Mapping[str, tuple[str, str, int]] = MappingProxyType(
    {
        MP3_FORMAT: ("mp3", "libmp3lame", 0),
        "opus": ("ogg", "libopus", 48_000),
        "aac": ("adts", "aac", 0),
        "flac": ("flac", "flac", 0),
    }
)
"""File format -> container, codec, and the rate of its samples (0 for any)."""
SAMPLE_BYTES = 2


def media_type(audio_format: str) -> str:
    """Return the media type of a file format; `application/octet-stream` for an unknown one."""
    return MEDIA_TYPES.get(audio_format, "application/octet-stream")


def wav_file(samples: bytes, rate: int, comment: str = "") -> bytes:
    """Return a WAV file of mono 16-bit samples. `comment`: text for its metadata, "" if there is none."""
    text, info = comment.encode(), b""
    if text:
        text += bytes(len(text) % 2 + 2)  # ends with a zero, at an even length
        info = b"LIST" + struct.pack("<I", 12 + len(text)) + b"INFOICMT" + struct.pack("<I", len(text)) + text
    head = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, rate * SAMPLE_BYTES, SAMPLE_BYTES, 8 * SAMPLE_BYTES)
    data = b"data" + struct.pack("<I", len(samples)) + samples
    content = b"WAVE" + head + info + data
    return b"RIFF" + struct.pack("<I", len(content)) + content


def audio_file(samples: bytes, rate: int, audio_format: str, comment: str = "") -> bytes:
    """Return a file of mono 16-bit little-endian samples, with `comment` in its metadata. KeyError: unknown format."""
    if audio_format == PCM_FORMAT:
        return samples
    if audio_format == WAV_FORMAT:
        return wav_file(samples, rate, comment)
    container, codec, own_rate = _ENCODERS[audio_format]
    import av
    from av import open as open_container

    target = io.BytesIO()
    with open_container(target, "w", format=container) as output:
        if comment:
            output.metadata["comment"] = comment
        stream = output.add_stream(codec, rate=own_rate or rate, layout="mono")
        if not isinstance(stream, av.AudioStream):
            raise TypeError(f"{codec} is no codec of audio")
        resampler = av.AudioResampler(format=stream.format.name, layout="mono", rate=own_rate or rate)
        frame = av.AudioFrame(format="s16", layout="mono", samples=len(samples) // SAMPLE_BYTES)
        frame.planes[0].update(samples[: frame.samples * SAMPLE_BYTES].ljust(frame.planes[0].buffer_size, b"\0"))
        frame.sample_rate, frame.time_base, frame.pts = rate, Fraction(1, rate), 0
        for each in (*resampler.resample(frame), *resampler.resample(None)):
            output.mux(stream.encode(each))
        output.mux(stream.encode(None))
    return target.getvalue()


def duration_seconds(data: bytes) -> float | None:
    """Return the seconds of audio in a file; None if unreadable. Takes milliseconds, more if no head states them."""
    import av
    from av import open as open_container

    try:
        with open_container(io.BytesIO(data), "r") as container:
            stream = next(iter(container.streams.audio), None)
            if stream is None:
                return None
            if container.duration is not None:
                return float(container.duration / av.time_base)
            ends = [
                float((packet.pts + (packet.duration or 0)) * packet.time_base)
                for packet in container.demux(stream)
                if packet.pts is not None
            ]
            return max(ends, default=None)
    except (av.FFmpegError, ValueError):
        return None


def comment_of(data: bytes) -> str:
    """Return the comment in the metadata of an audio file; "" for a file without one, or one that cannot be read."""
    import av
    from av import open as open_container

    try:
        with open_container(io.BytesIO(data), "r") as container:
            streams = (stream.metadata for stream in container.streams)
            found = (each.get("comment") or each.get("COMMENT") for each in (container.metadata, *streams))
            return next((text for text in found if text), "")
    except (av.FFmpegError, ValueError):
        return ""

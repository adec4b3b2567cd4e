"""Simulated speech: a tone for each word, in a file whose comment is the text; equal for equal requests."""

import hashlib

import numpy as np

from umg_grpc.v1 import pb
from umg_grpc.wire.core.audio_file_properties import MEDIA_TYPES, MP3_FORMAT, audio_file
from umg_grpc.wire.core.json_decoding import invalid

SAMPLE_RATE = 24_000
CHARACTER_SECONDS, PAUSE_SECONDS = 0.06, 0.08
MAX_CHARACTERS = 4096
SLOWEST_SPEED, FASTEST_SPEED = 0.25, 4.0
LOWEST_HERTZ = 110
TONE_SCALE = tuple(2 ** (step / 12) for step in (0, 2, 4, 7, 9, 12, 14, 16))
"""Tones of a voice, from its lowest one."""
TONE_LOUDNESS = 8000


def speak(request: pb.SpeakRequest) -> pb.SpeakResponse:
    """Return simulated speech. Raise UmgError(INVALID_FIELD) for an unknown format, a long text or a wrong speed."""
    audio_format = request.audio_format or MP3_FORMAT
    if audio_format not in MEDIA_TYPES:
        raise invalid("audio_format", f"expected {', '.join(MEDIA_TYPES)}")
    if len(request.input) > MAX_CHARACTERS:
        raise invalid("input", f"it has more than {MAX_CHARACTERS} characters; send less")
    if request.HasField("speed") and not SLOWEST_SPEED <= request.speed <= FASTEST_SPEED:
        raise invalid("speed", f"expected a number from {SLOWEST_SPEED} to {FASTEST_SPEED:g}")
    audio = audio_file(_samples(request), SAMPLE_RATE, audio_format, request.input)
    response = pb.SpeakResponse(model=request.model, audio=audio, content_type=MEDIA_TYPES[audio_format])
    if request.with_usage:
        words = len(request.input.split())
        response.usage.input_tokens, response.usage.output_tokens = words, 2 * len(request.input)
    return response


def _samples(request: pb.SpeakRequest) -> bytes:
    lowest = LOWEST_HERTZ * (1 + hashlib.sha256(request.voice.encode()).digest()[0] / 255)
    speed = request.speed if request.HasField("speed") else 1.0
    pieces = list[np.ndarray]()
    for word in request.input.split() or [request.input]:
        tone = lowest * TONE_SCALE[hashlib.sha256(word.encode()).digest()[0] % len(TONE_SCALE)]
        times = np.arange(round(SAMPLE_RATE * CHARACTER_SECONDS * len(word) / speed)) / SAMPLE_RATE
        envelope = np.minimum(1, np.minimum(times, times[::-1]) * 50)  # without clicks
        pause = np.zeros(round(SAMPLE_RATE * PAUSE_SECONDS / speed))
        pieces += [TONE_LOUDNESS * envelope * np.sin(2 * np.pi * tone * times), pause]
    return np.concatenate(pieces).astype("<i2").tobytes()

"""Simulated transcription: the comment of a file of simulated speech; for other audio, a sentence with its duration."""

import re

from umg_grpc.v1 import pb
from umg_grpc.wire.core.audio_file_properties import comment_of, duration_seconds
from umg_grpc.wire.core.json_decoding import invalid

SENTENCE_FORM = re.compile(r"\S.*?(?:[.!?](?=\s)|$)", re.DOTALL)


def transcribe(request: pb.TranscribeRequest) -> pb.TranscribeResponse:
    """Return the simulated response. Raise UmgError(INVALID_FIELD) for a file that is no audio."""
    data = request.audio.data
    if (seconds := duration_seconds(data)) is None:
        raise invalid("audio", "the file is no audio that can be read; send one of flac, mp3, mp4, ogg, wav, webm")
    text = comment_of(data) or f"This is a simulated transcription of {seconds:.1f} seconds of audio."
    response = pb.TranscribeResponse(model=request.model, text=text, language="english", duration=round(seconds, 3))
    response.usage.seconds = response.duration
    is_diarized = request.response_format == "diarized_json"
    for number, sentence in enumerate(SENTENCE_FORM.finditer(text)):
        start, end = (round(seconds * place / len(text), 3) for place in sentence.span())
        speaker = "A" if is_diarized else ""
        response.segments.add(segment_id=str(number), start=start, end=end, text=sentence[0], speaker=speaker)
    if "word" in request.timestamp_granularities:
        for word in re.finditer(r"\S+", text):
            start, end = (round(seconds * place / len(text), 3) for place in word.span())
            response.words.add(word=word[0], start=start, end=end)
    return response

"""Segments and words of a transcription after a guard has changed its text. A guard that masks "4111 1111 1111 1111" in
the text does not find the number in its four words.
"""

from collections.abc import Iterable

from umg_grpc.v1 import pb


def fit_parts(response: pb.TranscribeResponse) -> None:
    """Remove words that no longer match the text of a transcription, and join segments that do not into one."""
    text = _letters([response.text])
    if _letters(word.word for word in response.words) != text:
        del response.words[:]
    if response.segments and _letters(segment.text for segment in response.segments) != text:
        first, last = response.segments[0], response.segments[-1]
        whole = pb.TranscriptionSegment(
            segment_id=first.segment_id, start=first.start, end=last.end, text=response.text
        )
        del response.segments[:]
        response.segments.append(whole)


def _letters(texts: Iterable[str]) -> str:
    return "".join(filter(str.isalnum, "".join(texts)))

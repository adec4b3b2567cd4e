"""Segments and words of a transcription whose text a guard changes."""

import asyncio
from dataclasses import dataclass

import pytest

from tests.unit.service.test_guarded_windows import SECRETS, patterns, run
from umg_grpc.v1 import pb

CARD, KEY = SECRETS["card_number"], SECRETS["aws_access_key"]


@dataclass(frozen=True)
class Parts:
    """Texts of segments, or words, and the remaining ones."""

    id: str
    given: tuple[str, ...]
    segments: tuple[str, ...]
    words: tuple[str, ...]


CASES = [
    Parts("a secret in one part", ("It is ", KEY, " here."), ("It is ", "[AWS_ACCESS_KEY]", " here."), ("It is ", "[AWS_ACCESS_KEY]", " here.")),
    Parts("a secret divided over parts", ("It is 4111 1111", " 1111 1111", " here."), ("It is [CARD_NUMBER] here.",), ()),
    Parts("no secret", ("It is ", "fine."), ("It is ", "fine."), ("It is ", "fine.")),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_parts_of_a_changed_text_do_not_contain_the_original(case: Parts) -> None:
    response = pb.TranscribeResponse(
        text="".join(case.given),
        segments=[pb.TranscriptionSegment(text=text, start=at, end=at + 1) for at, text in enumerate(case.given)],
        words=[pb.TranscriptionWord(word=text) for text in case.given],
        logprobs=[pb.TranscriptionLogprob(token=text) for text in case.given],
    )
    checked = asyncio.run(run(patterns()).check(response)).message
    assert tuple(segment.text for segment in checked.segments) == case.segments
    assert tuple(word.word for word in checked.words) == case.words
    assert (checked.segments[0].start, checked.segments[-1].end) == (0, len(case.given))
    assert bool(checked.logprobs) == (case.given == case.segments)

"""Seals of summaries: keys and secrets that open them, and texts that are no summary."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from umg_grpc.access.conversation_summary_seals import SummarySeals

SECRET, NEXT = "the secret of all replicas", "the secret after the rotation"
SEALED = SummarySeals(SECRET).seal("key_1", "Zürich: 18 degrees")


@given(st.text())
def test_every_replica_with_the_secret_opens_a_summary_for_the_key(summary: str) -> None:
    sealed = SummarySeals(SECRET).seal("key_1", summary)
    expected = summary.encode(errors="replace").decode()
    assert SummarySeals(SECRET).open("key_1", sealed) == expected
    assert SummarySeals(NEXT, [SECRET]).open("key_1", sealed) == expected


@dataclass(frozen=True)
class Unreadable:
    """Text that cannot be opened."""

    id: str
    sealed: str = SEALED
    owner: str = "key_1"
    secret: str = SECRET


UNREADABLE = [
    Unreadable("for another key", owner="key_2"),
    Unreadable("by another secret", secret=NEXT),
    Unreadable("with another character", sealed=("A" if SEALED[0] != "A" else "B") + SEALED[1:]),
    Unreadable("cut", sealed=SEALED[:20]),
    Unreadable("with more text", sealed=f"{SEALED}AAAA"),
    Unreadable("empty", sealed=""),
    Unreadable("no base64", sealed="no base64: ü"),
]


@pytest.mark.parametrize("case", UNREADABLE, ids=lambda case: case.id)
def test_other_texts_are_not_opened(case: Unreadable) -> None:
    assert SummarySeals(case.secret).open(case.owner, case.sealed) is None


def test_a_sealed_summary_shows_nothing_of_its_text_and_differs_each_time() -> None:
    seals, text = SummarySeals(SECRET), "pangolin " * 100
    first, second = seals.seal("key_1", text), seals.seal("key_1", text)
    assert first != second
    assert "pangolin" not in first
    assert len(first) < len(text)  # it is compressed

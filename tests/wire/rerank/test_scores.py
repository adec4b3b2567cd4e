"""Scores of any scale come into [0, 1] and keep their order."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from umg_grpc.wire.rerank.scores import MOST, in_unit, logistic

scores = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=8)
logits = st.lists(st.floats(-30, 30), max_size=8)


@given(scores | logits)
@example([1.7976931348623157e308, -1.7976931348623157e308])
@example([5e-324, 1.0000001])
@example([-5e-324, 1.0])
def test_no_order_is_turned_round(given: list[float]) -> None:
    mapped = in_unit(given)
    assert all(0 <= score <= 1 for score in mapped)
    ranked = sorted(range(len(given)), key=lambda place: given[place])
    assert [mapped[place] for place in ranked] == sorted(mapped)


@given(logits)
def test_what_is_apart_stays_apart(given: list[float]) -> None:
    mapped = in_unit(given)
    for (one, first), (other, second) in pairwise(sorted(zip(given, mapped, strict=True))):
        assert first < second or other - one < 1e-6


@given(st.lists(st.floats(0, 1), max_size=8))
def test_scores_within_the_range_stay(given: list[float]) -> None:
    assert in_unit(given) == given


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], []),
        ([-0.0], [0.0]),
        ([0.0, 1.5], [0.5, logistic(1.5)]),
        ([-1.0, 0.5], [logistic(-1.0), logistic(0.5)]),
        ([40.0, -40.0, 20.0], [logistic(MOST), logistic(-MOST), logistic(MOST / 2)]),
        ([1.0000002, 0.5], [1.0, 0.5 / 1.0000002]),  # rounding, and no logits
        ([-1e-7, 0.5], [0.0, pytest.approx(0.5)]),
    ],
    ids=str,
)
def test_scores_on_another_scale_are_logits(given: list[float], expected: list[float]) -> None:
    assert in_unit(given) == expected
    assert str(in_unit(given)) == str(in_unit(given)).replace("-0.0", "0.0")


def test_the_logistic_function_takes_any_number() -> None:
    assert [logistic(logit) for logit in (-1e308, -710.0, 0.0, 710.0, 1e308)] == [
        0.0,
        pytest.approx(0, abs=1e-300),
        0.5,
        1.0,
        1.0,
    ]

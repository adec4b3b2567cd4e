"""Scores of any scale are mapped into [0, 1] and keep their order."""

import math
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from umg_grpc.wire.rerank.score_normalization import MAX_LOGIT, in_unit, logistic

finite = st.floats(allow_nan=False, allow_infinity=False)
scores = st.lists(finite, max_size=8)
logits = st.lists(st.floats(-30, 30), max_size=8)
LARGEST = 1.7976931348623157e308


@given(scores | logits)
@example([LARGEST, -LARGEST])
@example([5e-324, 1.0000001])
@example([-5e-324, 1.0])
def test_no_order_is_turned_round(given: list[float]) -> None:
    mapped = in_unit(given)
    assert all(0 <= score <= 1 for score in mapped)
    ranked = sorted(range(len(given)), key=lambda place: given[place])
    assert [mapped[place] for place in ranked] == sorted(mapped)


@given(logits)
def test_different_scores_stay_different(given: list[float]) -> None:
    mapped = in_unit([*given, 31.0])  # marks them as logits
    for (one, first), (other, second) in pairwise(sorted(zip(given, mapped[:-1], strict=True))):
        assert first < second or other - one < 1e-6


@given(st.floats(MAX_LOGIT, LARGEST / 1.01), st.sampled_from([1, -1]))
@example(1e308, 1)
@example(1e308, -1)
def test_large_logits_that_differ_by_a_hundredth_have_different_scores(size: float, sign: int) -> None:
    assert logistic(size) < logistic(size * 1.01) < 1
    assert 0 < logistic(-size * 1.01) < logistic(-size)


@given(finite)
@example(0.0)
@example(MAX_LOGIT)
@example(LARGEST)
def test_the_logistic_function_is_as_far_from_0_as_that_of_the_opposite_from_1(logit: float) -> None:
    assert logistic(abs(logit)) == 1 - logistic(-abs(logit))
    assert 0 < logistic(logit) < 1


@given(st.floats(-MAX_LOGIT, MAX_LOGIT))
def test_the_logistic_function_is_exact_for_the_logits_that_providers_give(logit: float) -> None:
    assert logistic(logit) == pytest.approx(1 / (1 + math.exp(-logit)), rel=1e-15)


def test_the_logistic_function_has_no_step_where_it_becomes_slower() -> None:
    step = 1e-6
    below, at, above = (logistic(-MAX_LOGIT + offset) for offset in (step, 0, -step))
    assert at - above == pytest.approx(below - at, rel=1e-4)


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
        ([5.0, -995.0, -1995.0], [logistic(5), logistic(-995), logistic(-1995)]),  # independent of the other scores
        ([1.0000002, 0.5, -1e-9], [1.0, 0.5, 0.0]),  # rounding, no logits
        ([1.001, -0.001, 0.9], [1.0, 0.0, 0.9]),
        ([1.002, 0.9], [logistic(1.002), logistic(0.9)]),
    ],
    ids=str,
)
def test_scores_on_another_scale_are_logits(given: list[float], expected: list[float]) -> None:
    assert str(in_unit(given)) == str(expected)  # as text: 0.0 and not -0.0

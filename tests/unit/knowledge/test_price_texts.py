"""Prices as texts: each is read again as it was written, and a text that is no price is named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from umg_grpc.knowledge.price_calculation import MEDIA_UNITS, PRICED_UNITS, TOKEN_UNITS
from umg_grpc.knowledge.price_texts import (
    PRICE_NAMES,
    PriceTextError,
    price_credits,
    price_name,
    price_text,
    read_price,
)
from umg_grpc.v1 import pb

WORDS = st.sampled_from(["", "1024x1024", "hd", "2k"])


@st.composite
def prices(draw: st.DrawFn) -> pb.Price:
    unit = draw(st.sampled_from(sorted(PRICE_NAMES.values())))
    amount = draw(st.integers(0, 10**12)) * (1 if unit in TOKEN_UNITS else PRICED_UNITS)
    size, quality = (draw(WORDS), draw(WORDS)) if unit in MEDIA_UNITS else ("", "")
    return pb.Price(unit=unit, size=size, quality=quality, micro_credits_per_million=amount)


@given(prices())
def test_a_price_is_read_as_it_was_written(price: pb.Price) -> None:
    assert read_price(price_name(price), price_credits(price)) == price


def test_prices_are_short_texts() -> None:
    image = read_price("image.1024x1024.hd", "0.04")
    assert (price_text(image), price_text(read_price("cache_read", "0.125"))) == (
        "image 1024x1024 hd 0.04",
        "cache read 0.125",
    )


@pytest.mark.parametrize(
    ("name", "credits_", "problem"),
    [
        ("litre", "1", "`litre` is no unit; choose from input,"),
        ("input.2k", "1", "only image, video_second, video have a size"),
        ("image.a.b.c", "1", "only image,"),
        ("input", "much", "`input`: expected a number such as 1.25, the credits that a million of them cost"),
        ("image", "2000000", "one costs, at most 1000000"),
        ("input", "-1", "not `-1`"),
        ("input", "1,5", "not `1,5`"),
    ],
)
def test_a_text_that_is_no_price_is_named(name: str, credits_: str, problem: str) -> None:
    with pytest.raises(PriceTextError, match=problem):
        read_price(name, credits_)

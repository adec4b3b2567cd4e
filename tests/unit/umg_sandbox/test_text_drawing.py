"""Text in images: any characters, wrapped and sized to fit into a box."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw

from umg_sandbox.text_drawing import clean, draw_text

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=120)


def drawn(text: str, width: int = 200, height: int = 60, largest: int = 40) -> Image.Image:
    image = Image.new("L", (width + 100, height + 100))
    draw_text(ImageDraw.Draw(image), (50, 50, 50 + width, 50 + height), text, largest, "white")
    return image


@settings(deadline=None)
@given(ANY_TEXT, st.integers(0, 400), st.integers(0, 300), st.integers(1, 90))
def test_any_text_is_drawn(text: str, width: int, height: int, largest: int) -> None:
    drawn(text, width, height, largest)


@pytest.mark.parametrize(
    "text", ["short", "many words " * 30, "x" * 400, "春眠不觉晓，处处闻啼鸟。" * 20, "iiiii WWWWW " * 9]
)
def test_a_text_is_wrapped_and_stays_in_its_box(text: str) -> None:
    left, top, right, bottom = drawn(text, 200, 90).getbbox() or (0, 0, 0, 0)
    assert left >= 49
    assert top >= 50
    assert right <= 260
    assert bottom <= 150


@pytest.mark.parametrize(
    "text", ["Zürich", "Καλημέρα", "Доброе", "你好，世界", "こんにちは", "안녕하세요", "∑ ≠ ∞", "\ue000"]
)
def test_a_text_is_visible(text: str) -> None:
    assert drawn(text).getextrema() == (0, 255)


def test_a_text_is_as_large_as_its_box_permits() -> None:
    small, large = (drawn("A red car", *size, 60).getbbox() or (0, 0, 0, 0) for size in ((100, 40), (800, 300)))
    assert large[3] - large[1] > small[3] - small[1]


def test_a_cleaned_text_is_one_short_line() -> None:
    assert clean("one\r\n\r\ntwo\tthree\ud83d") == "one two three?"
    assert len(clean("word " * 100_000)) < 601

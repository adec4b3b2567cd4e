"""Text in images: any characters, wrapped and sized to fit into a box."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from umg_sandbox.text_drawing import (
    ELLIPSIS,
    MAX_CHARACTERS,
    SMALLEST,
    TextBlock,
    clean,
    fit_line,
    fit_text,
    text_width,
    wrap_text,
)

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=120)
SCRIPTS = {
    "Latin": "Zürich, Århus, Łódź",
    "Greek": "Καλημέρα κόσμε",
    "Cyrillic": "Доброе утро",
    "Chinese": "你好，世界",
    "Japanese": "こんにちは世界",
    "Korean": "안녕하세요",
    "Arabic": "مرحبا بالعالم",
    "Hebrew": "שלום עולם",
    "Hindi": "नमस्ते दुनिया",
    "Thai": "สวัสดีชาวโลก",
    "emoji": "😀👩‍🚀🏳️‍🌈",
    "mathematics": "∑ 𝛼₁ ≠ ∞",
    "private use": "\ue000\U000f0000",
}


def drawn(text: str, size: int = 40) -> Image.Image:
    block = TextBlock((clean(text),), size)
    image = Image.new("L", (max(1, block.width), 60))
    block.draw(image, 0, 0)
    return image


@given(ANY_TEXT, st.integers(0, 400), st.integers(0, 300), st.integers(1, 90))
def test_any_text_is_drawn_within_its_box(text: str, width: int, height: int, largest: int) -> None:
    block = fit_text(clean(text), width, height, largest)
    assert block.height <= height + 1
    assert all(text_width(line, block.size) <= width + 1 or len(line) <= 2 for line in block.lines)
    block.draw(Image.new("L", (width + 1, height + 1)), 0, 0)


@given(ANY_TEXT)
def test_a_cleaned_text_has_no_control_characters_and_no_empty_lines(text: str) -> None:
    cleaned = clean(text)
    assert all(character == "\n" or character.isprintable() or ord(character) > 0x9F for character in cleaned)
    assert "" not in cleaned.split("\n") or not cleaned


def test_a_very_long_text_is_cut() -> None:
    assert clean("word " * 100_000) == ("word " * (MAX_CHARACTERS // 5)).rstrip() + " " + ELLIPSIS


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_is_visible(script: str) -> None:
    assert drawn(SCRIPTS[script]).getextrema() == (0, 255)


@pytest.mark.parametrize(
    ("one", "other"),
    [("\ue000", "\ue001"), ("\U000f0000", "\U000f0001"), ("中", "国"), ("é", "è"), ("\ud83d", "\udc00")],
)
def test_different_characters_are_drawn_differently(one: str, other: str) -> None:
    """Characters without a glyph have boxes with the digits of their code points."""
    assert drawn(one).tobytes() != drawn(other).tobytes()


def test_characters_without_a_shape_take_no_space() -> None:
    assert text_width("a\u200b\ufe0fb", 40) == text_width("ab", 40)


def test_text_is_as_large_as_its_box_permits() -> None:
    small, large = fit_text("A red car", 100, 40, 90), fit_text("A red car", 800, 300, 90)
    assert small.size < large.size == 90
    assert small.lines == large.lines == ("A red car",) or small.size >= SMALLEST


def test_a_text_that_fits_at_no_size_ends_in_an_ellipsis() -> None:
    block = fit_text("many words " * 50, 200, 50, 40)
    assert block.size == SMALLEST
    assert block.lines[-1].endswith(ELLIPSIS)
    assert block.height <= 50


def test_words_are_kept_whole_where_a_smaller_size_permits() -> None:
    block = fit_text("An extraordinarily long word", 200, 400, 90)
    assert " ".join(block.lines) == "An extraordinarily long word"
    assert "extraordinarily" in " ".join(block.lines).split()
    assert all(word in ["An", "extraordinarily", "long", "word"] for line in block.lines for word in line.split())


def test_a_word_without_spaces_is_broken_at_the_width() -> None:
    lines = wrap_text("x" * 400, 20, 200)
    assert "".join(lines) == "x" * 400
    assert len(lines) > 5


def test_ideographs_are_broken_anywhere_but_before_punctuation() -> None:
    lines = wrap_text("春眠不觉晓，处处闻啼鸟。夜来风雨声，花落知多少。", 20, text_width("春眠不觉晓", 20))
    assert len(lines) > 4
    assert not any(line[0] in "，。" for line in lines)


def test_line_ends_of_the_text_are_kept() -> None:
    assert wrap_text(clean("one\r\n\r\ntwo\tthree"), 20, 500) == ["one", "two three"]


def test_a_line_is_the_first_of_the_candidates_that_fits() -> None:
    assert fit_line(("A long label", "short"), text_width("short", 20), 20).lines == ("short",)
    assert fit_line(("A long label", "short"), 5, 20).lines == ()


def test_lines_are_centred() -> None:
    block = TextBlock(("wide line of text", "thin"), 20)
    image = Image.new("L", (block.width, block.height))
    block.draw(image, 0, 0, centered_in=block.width)
    left, _, right, _ = image.crop((0, 26, block.width, block.height)).getbbox() or (0, 0, 0, 0)
    assert abs((left + right) / 2 - block.width / 2) < 4

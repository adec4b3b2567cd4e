"""Contrast of the colours of the pages, light and dark (WCAG 2.2: 1.4.3 for texts, 1.4.11 for parts of controls)."""

import re
from importlib.resources import files

import pytest

TOKENS = files("http_facade").joinpath("assets", "tokens.css").read_text()
COLOURS = {
    name: (light, dark) for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);", TOKENS)
}
"""Name of a colour -> its value in light and in dark colours."""
LEAST_OF_TEXTS, LEAST_OF_PARTS = 4.5, 3.0
STATES = ("good", "info", "warn", "bad", "off")
TEXTS = [
    *((text, back) for text in ("text", "faint", "accent") for back in ("back", "panel")),
    ("on-accent", "accent"),
    ("back", "bad"),
    ("warn", "back"),
    *((state, f"{state}-back") for state in STATES),
]
"""Colour of a text, and that behind it."""
SERIES = ["calls", *(f"group{number}" for number in range(1, 6))]
"""Colours of charts."""
PARTS = [
    *((part, back) for part in ("edge", "accent") for back in ("back", "panel")),
    *((series, "back") for series in SERIES),
]
"""Colour of the edge of a control, of the focus or of a part of a chart, and that beside it."""
DECORATION = {"line"}


def luminance(colour: str) -> float:
    channels = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels)
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_texts_and_controls_differ_from_their_backs(theme: int) -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    for pairs, least in ((TEXTS, LEAST_OF_TEXTS), (PARTS, LEAST_OF_PARTS)):
        found = {pair: contrast(COLOURS[pair[0]][theme], COLOURS[pair[1]][theme]) for pair in pairs}
        assert {pair: value for pair, value in found.items() if value < least} == {}


def test_each_colour_has_a_rule() -> None:
    assert COLOURS.keys() == {name for pair in TEXTS + PARTS for name in pair} | DECORATION

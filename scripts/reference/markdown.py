"""Markdown for the reference pages: tables, and names as code."""

import re
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, with a line break at its end."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def code(text: object) -> str:
    """Return a text as code; "" stays empty."""
    return f"`{text}`" if text != "" else ""


def paragraph(text: str) -> str:
    """Return a docstring or a comment on one line."""
    return re.sub(r"\s+", " ", text).strip()


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", paragraph(text))

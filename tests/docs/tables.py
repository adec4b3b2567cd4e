"""Sections and tables of the pages of the documents."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def section(page: str, title: str) -> str:
    [found] = re.findall(rf"\n## {re.escape(title)}\n(.*?)(?=\n## |\Z)", page, re.DOTALL)
    return str(found)


def rows(page: str, title: str) -> list[list[str]]:
    """Return the cells of a section's table, without its head."""
    lines = [line for line in section(page, title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines[2:]]


def quoted(text: str) -> list[str]:
    """Return the texts between backticks."""
    return re.findall(r"`([^`]+)`", text)

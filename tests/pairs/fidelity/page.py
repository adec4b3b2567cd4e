"""Text of docs/fidelity.md, from the measured rows."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.pairs.fidelity.measure import Cell, Row, everything
from tests.pairs.fidelity.sample import TARGETS, Sample

PAGE = Path(__file__).parents[3] / "docs" / "fidelity.md"

INTRODUCTION = """\
# Fields of requests to providers of another format

`make fidelity` generates this page from measurements, and `tests/docs/test_fidelity.py` fails when the page differs from them. For each field a minimal body that sets it is decoded by its face and encoded for a provider of each format; the provider's body is decoded again, and its value of the field is compared with the caller's.

| Cell | Meaning |
|---|---|
| `=` | exact: the provider receives the same value |
| `~ x` | sent as `x` instead; where the meaning differs, `x-umg-dropped` names the field |
| `dropped` | not sent, and named in `x-umg-dropped`; refused with `x-umg-strict: true` |
| `400` | refused, because the response would be different without the field |
| `-` | nothing has to be sent, for the reason below the table |

A provider of the caller's own format always receives the same value (`=`, measured too), so its cells are left out unless it is the only format that has the field. "Faces" are the formats whose bodies can have the field; where their results differ, a cell names the face. The fields are those of [fields.md](fields.md).
"""

# Paths in the canonical request -> plain words.
WORDS = {
    "messages.parts.text.text": "a system message",
    "instructions.text.text x": "instructions",
    "text.text": "text",
    "text.text no": "text",
    "search set": "`web_search_options`",
    "search.context_size": "`web_search_options`",
    **{f"search.user_location.{name}": "`web_search_options`" for name in ("country", "region", "city", "timezone")},
    **{
        f"tools.web_search.{name}": "a search tool"
        for name in (
            "declared_type web_search",
            "declared_type web_search_20250305",
            "declared_type googleSearch",
            "context_size",
            "user_location.city",
        )
    },
    "media.detail": "`detail` of each image",
    "media.title": "`title`",
    "media.filename": "`filename`",
    "reasoning.texts": "`texts`",
    'tool_call.arguments_json {"input": "go"}': "an argument `input`",
    "tool_result.parts.text.text": "text",
    "reasoning.include_thoughts True": "`include_thoughts`",
    "tools.function.name f g": "other tools left out",
    "tools.function.name f": "other tools left out",
    "tools.function.name a_b_c": "a name that is allowed, and back in the response",
    "tools.function.name": "a function",
    "tools.function.description": "a function",
    "media.data": "an image in the next user turn",
}


def render() -> str:
    """Return the page."""
    tables = (_table(title, rows) for title, rows in everything().items())
    return "\n".join([INTRODUCTION, *tables]).rstrip() + "\n"


def _table(title: str, rows: list[Row]) -> str:
    head = [
        "| Field | Faces | to chat | to responses | to messages | to native | to converse |",
        "|---|---|---|---|---|---|---|",
    ]
    lines = [f"## {title}", "", *head, *map(_line, rows), ""]
    why = dict.fromkeys(f"{row.sample.row}: {row.sample.ignored}" for row in rows if _is_silent(row))
    if why:
        lines += ["Reasons for `-`:", "", *(f"- {reason}" for reason in why), ""]
    return "\n".join(lines)


def _is_silent(row: Row) -> bool:
    return any(cell.kind == "ignored" for cell in row.cells.values())


def _line(row: Row) -> str:
    faces = list(row.sample.bodies) if isinstance(row.sample, Sample) else [row.sample.face]
    cells = [_cell(row.cells, faces, target) for target in TARGETS]
    return f"| {' | '.join([row.sample.row, ', '.join(faces), *cells])} |"


def _cell(cells: Mapping[tuple[str, str], Cell], faces: list[str], target: str) -> str:
    others = {face: cells[face, target] for face in faces if face != target} or {target: cells[target, target]}
    texts = {face: _words(cell) for face, cell in others.items()}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return "; ".join(f"{face}: {text}" for face, text in texts.items())


def _words(cell: Cell) -> str:
    if cell.kind == "mapped":
        return f"~ {WORDS.get(cell.instead, cell.instead.removeprefix('reasoning.'))}"
    return cell.text if cell.kind == "dropped" else f"`{cell.text}`"


def silent() -> Iterator[str]:
    """Yield the fields that are lost without a report; a test requires that there are none."""
    for rows in everything().values():
        for row in rows:
            for (face, target), cell in row.cells.items():
                if cell.kind == "silent" or (face == target and cell.kind not in ("exact", "ignored")):
                    yield f"{row.sample.row}, {face} -> {target}: {cell.kind} ({cell.note})"

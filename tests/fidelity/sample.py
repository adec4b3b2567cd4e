"""What a sample is: one least body per face for a field of a request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
Body: TypeAlias = "dict[str, Json]"

FORMATS = ("chat", "responses", "messages", "native")
ASKED = "hi"

# What every body has, so that it is one.
LEAST: Mapping[str, Body] = {
    "chat": {"model": "m", "messages": [{"role": "user", "content": ASKED}]},
    "responses": {"model": "m", "input": [{"role": "user", "content": ASKED}]},
    "messages": {"model": "m", "max_tokens": 9000, "messages": [{"role": "user", "content": ASKED}]},
    "native": {"contents": [{"role": "user", "parts": [{"text": ASKED}]}]},
}


@dataclass(frozen=True)
class Sample:
    """A field, and how each face says it."""

    row: str
    """Its name in the table."""
    path: str
    """Where its value stands in the canonical request; `part.x` is the first part that has an `x`."""
    covers: tuple[str, ...]
    """Canonical homes of docs/fields.md that it measures."""
    bodies: Mapping[str, Body]
    """By face: the fields of its body beside the least."""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """By target: the path where the same value then stands instead."""
    instead: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By target: (path, value) of what says the same in other words there, with no loss."""
    ignored: str = ""
    """Why a target may be told nothing of it, and its caller nothing of that."""
    named: tuple[str, ...] = ()
    """Names under which the report may have it, beside those on its path."""


@dataclass(frozen=True)
class Alone:
    """A field that only one format has and that has no canonical home."""

    face: str
    row: str
    body: Body
    ignored: str = ""
    """As of `Sample`."""


@dataclass(frozen=True)
class Area:
    """A table of the page."""

    title: str
    samples: tuple[Sample, ...]


def sample(row: str, path: str, covers: str = "", *, also: str = "", **options: object) -> Sample:
    """With the bodies of the faces that `options` name. `covers` is by default the path below GenerateRequest."""
    bodies = {name: options.pop(name) for name in FORMATS if name in options}
    names = (covers or f"GenerateRequest.{path}", *also.split())
    return Sample(row, path, names, bodies, **options)  # type: ignore[arg-type]


def config(**options: Json) -> Body:
    return {"generationConfig": options}


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nGNgOMFwgouL8QQXFwMDAwAW+QKC3vYCCAAAAABJRU5ErkJggg=="
PDF = "JVBERi0xLjQKJSVFT0YK"
TEXT_FILE = "SGVsbG8sIHdvcmxkLg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEA"

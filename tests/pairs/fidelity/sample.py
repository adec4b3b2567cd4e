"""Samples: one minimal body per face for a field of a request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.pairs.table import STRICT_PROVIDERS, TEXT_FACES

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
Body: TypeAlias = "dict[str, Json]"

FORMATS = tuple(TEXT_FACES)
TARGETS = STRICT_PROVIDERS
"""Formats of providers."""
ALIKE = ("converse", "messages")
"""Format of providers, and a format that expresses nearly everything in the same way."""


@dataclass(frozen=True)
class Sample:
    """A field, and a body of each face that sets it."""

    row: str
    """Name of the row in the table."""
    path: str
    """Path of the value in the canonical request; `part.x` is the first part that has an `x`."""
    covers: tuple[str, ...]
    """Canonical fields of docs/fields.md that the sample measures."""
    bodies: Mapping[str, Body]
    """Face -> the fields of its body beside those of LEAST."""
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    """Target -> the path that has the same value after conversion, if it is another one."""
    instead: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Target -> (path, value) of a field that expresses the same in another way there, without loss."""
    ignored: str = ""
    """Reason why a target may not get the field although its caller gets no report of that."""
    named: tuple[str, ...] = ()
    """Names that the report may use for the field, beside those on its path."""


@dataclass(frozen=True)
class Alone:
    """A field that only one format has and that has no canonical home."""

    face: str
    row: str
    body: Body
    ignored: str = ""
    """As `Sample.ignored`."""


@dataclass(frozen=True)
class Area:
    """A table of the page."""

    title: str
    samples: tuple[Sample, ...]


def sample(row: str, path: str, covers: str = "", *, also: str = "", **options: object) -> Sample:
    """Return a sample with the bodies of the faces in `options`. `covers` is by default the path below GenerateRequest."""
    bodies = {name: options.pop(name) for name in FORMATS if name in options}
    names = (covers or f"GenerateRequest.{path}", *also.split())
    for stated in (options.get("elsewhere"), options.get("instead")):
        if isinstance(stated, dict) and ALIKE[1] in stated:
            stated.setdefault(ALIKE[0], stated[ALIKE[1]])
    return Sample(row, path, names, bodies, **options)  # type: ignore[arg-type]


def config(**options: Json) -> Body:
    return {"generationConfig": options}


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nGNgOMFwgouL8QQXFwMDAwAW+QKC3vYCCAAAAABJRU5ErkJggg=="
PDF = "JVBERi0xLjQKJSVFT0YK"
TEXT_FILE = "SGVsbG8sIHdvcmxkLg=="
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEA"

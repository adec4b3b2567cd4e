"""Restrictions of a model at a channel that requests are adapted to, with the sources of these facts."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from umg_grpc.knowledge.quirk_sources import QuirkSource, quirk_sources, set_names
from umg_grpc.knowledge.vendor_member_dialects import dialect_of, dialects_at
from umg_grpc.routing.channel_target import Target

MAX_LISTED = 8
OWN_SETTINGS = frozenset({"cache_marks"})
"""Quirks that follow from another setting of the channel."""
Cells = tuple[str, bool, str, str]
"""Origin, whether the quirk is certain, source and date."""
WRITTEN_CELLS: Cells = ("config", True, "`quirks` of the channel", "")
DESCRIBED_CELLS: Cells = ("config", False, "other settings of the channel or model, or the catalogue of models", "")
ORIGIN_TEXTS = {"hand": "model", "generated": "model, generated", "inherited": "model, inherited"}


class KnownRestriction(NamedTuple):
    """Restriction that holds in some wire formats of a channel, as texts for operators."""

    name: str
    """Name of the quirk in the config, or of the difference of a member."""
    value: str
    protocols: tuple[str, ...]
    origin: str
    is_certain: bool
    source: str
    as_of: str


def known_restrictions(target: Target) -> Iterator[KnownRestriction]:
    """Yield the restrictions of a target's model: one for each quirk with the same value and source in all formats."""
    yield from _quirks(target)
    yield from _members_of_vectors(target)


def _quirks(target: Target) -> Iterator[KnownRestriction]:
    formats: dict[tuple[str, str, Cells], list[str]] = {}
    for protocol, quirks in target.quirks.by_protocol.items():
        written, certain = set_names(target.channel.quirks), set_names(target.quirks.certain[protocol])
        sources = list(quirk_sources(target.model, target.family, target.channel.address(protocol), protocol))
        for name in sorted(set_names(quirks) - OWN_SETTINGS):
            value = getattr(quirks, name)
            source = _source(sources, name, value)
            if source is not None and source.general and name not in written:
                continue
            cells = WRITTEN_CELLS if name in written else _cells(source, is_certain=name in certain)
            formats.setdefault((name, value_text(value), cells), []).append(protocol)
    for (name, text, cells), protocols in formats.items():
        yield KnownRestriction(name, text, tuple(protocols), *cells)


def _members_of_vectors(target: Target) -> Iterator[KnownRestriction]:
    """Yield the restrictions of members of embeddings and rerank requests: other names, and refused ones."""
    for protocol in target.channel.protocols:
        dialects = dialects_at(target.channel.address(protocol))
        if (dialect := dialect_of(dialects, target.model, protocol)) is None:
            continue
        refused = {name: ", ".join(values) or "any" for name, values in dialect.leaves_out.items()}
        tasks = dialect.task.values if dialect.task else {}
        values: dict[str, object] = {
            "path": dialect.path,
            "renames": dialect.renames,
            "leaves_out": refused,
            "task_types": tasks,
        }
        if dialect.only_dimensions:
            values["dimensions"] = {"only": str(dialect.only_dimensions)}
        for name, value in values.items():
            if value:
                text, origin = value_text(value), "provider"
                yield KnownRestriction(name, text, (protocol,), origin, True, dialect.source, dialect.as_of)


def _cells(source: QuirkSource | None, *, is_certain: bool) -> Cells:
    if source is None:
        return DESCRIBED_CELLS
    return (ORIGIN_TEXTS.get(source.origin, source.origin), is_certain, source.source, source.as_of)


def _source(sources: list[QuirkSource], name: str, value: object) -> QuirkSource | None:
    first = next((source for source in sources if getattr(source.quirks, name) is not None), None)
    return first if name == "rejects" or (first is not None and getattr(first.quirks, name) == value) else None


def value_text(value: object) -> str:
    """Return a value of a quirk or another fact as text."""
    match value:
        case bool():
            return str(value).lower()
        case frozenset() | tuple() | list():
            members = [str(each) for each in (sorted(value) if isinstance(value, frozenset) else value)]
            more = f", ... ({len(members)})" if len(members) > MAX_LISTED else ""
            return f"[{', '.join(members[:MAX_LISTED])}{more}]"
        case Mapping():
            return f"{{{', '.join(f'{key}: {each}' for key, each in value.items())}}}"
        case _:  # numbers and texts
            return str(value)

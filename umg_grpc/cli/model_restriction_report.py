"""Report of `umg models --explain` about the restrictions of a model at its channels, with their sources."""

from collections.abc import Iterator, Mapping

from umg_grpc.cli.price_texts import row_text
from umg_grpc.cli.text_tables import Column, Fit, Form, print_line, print_table
from umg_grpc.knowledge.model_facts_by_id import FoundModel, find
from umg_grpc.knowledge.quirk_sources import QuirkSource, quirk_sources, set_names
from umg_grpc.knowledge.shipped_prices import PriceFile, price_row, price_source
from umg_grpc.knowledge.vendor_addresses import vendor_of
from umg_grpc.knowledge.vendor_member_dialects import dialect_of, dialects_at
from umg_grpc.routing import Target

MAX_LISTED = 8
OWN_SETTINGS = frozenset({"cache_marks"})
"""Quirks that follow from another setting of the channel."""
OTHER_FACTS = ("default_effort", "input_tokens", "cache_min_tokens", "endpoints", "retired", "successor")
"""Facts that no quirk has."""
Cells = tuple[str, str, str, str]
"""Origin, whether the quirk is certain, source and date."""
WRITTEN_CELLS: Cells = ("config", "yes", "`quirks` of the channel", "")
DESCRIBED_CELLS: Cells = ("config", "no", "other settings of the channel or model, or the catalogue of models", "")
ORIGIN_TEXTS = {"hand": "model", "generated": "model, generated", "inherited": "model, inherited"}
RESTRICTION_COLUMNS = (
    Column("quirk"),
    Column("value", fit=Fit.FOLDED),
    Column("formats", 3, Fit.FOLDED),
    Column("origin", 4),
    Column("certain", 5),
    Column("source", 2, Fit.FOLDED),
    Column("as of", 5),
)


def print_restrictions(target: Target, prices: PriceFile, form: Form) -> None:
    """Print the restrictions of a target's model, and the further facts about it. `prices`: file of the operator."""
    members = list(_members_of_vectors(target))
    if not target.quirks.by_protocol and not members:
        return
    vendor = vendor_of(target.channel.base_url)
    found = find(target.model, vendor)
    rows = [*_rows(target), *members]
    others = _other_facts(found)
    name = f"{target.model} at {target.channel.name}"
    if not rows and not others:
        print_line(f"restrictions of {name}: none is known")
        return
    print_line(f"restrictions of {name} ({_identity(found, vendor)}); `quirks` of the channel override them:")
    print_table(RESTRICTION_COLUMNS, rows, form)
    if others:
        print_line(f"further facts: {', '.join(others)}")
    if (price := price_row(target.model, vendor, prices)) is not None and (stated := row_text(price)):
        source, as_of = price_source(price)
        print_line(f"public price: {stated} ({source}; {as_of})")


def _identity(found: FoundModel, vendor: str) -> str:
    parts = [vendor or "unknown vendor", f"as {', '.join(found.ids)}"]
    if found.like:
        parts.append(f"a model without a row, treated as {', '.join(found.like)}")
    return "; ".join(parts)


def _rows(target: Target) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table: one for each quirk with the same value and source in all its formats."""
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
            formats.setdefault((name, _text(value), cells), []).append(protocol)
    for (name, text, cells), protocols in formats.items():
        yield (name, text, ", ".join(protocols), *cells)


def _members_of_vectors(target: Target) -> Iterator[tuple[str, ...]]:
    """Yield the rows about members of embeddings and rerank requests that the vendor names differently or refuses."""
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
                yield name, _text(value), protocol, "provider", "yes", dialect.source, dialect.as_of


def _cells(source: QuirkSource | None, *, is_certain: bool) -> Cells:
    if source is None:
        return DESCRIBED_CELLS
    return (ORIGIN_TEXTS.get(source.origin, source.origin), "yes" if is_certain else "no", source.source, source.as_of)


def _source(sources: list[QuirkSource], name: str, value: object) -> QuirkSource | None:
    first = next((source for source in sources if getattr(source.quirks, name) is not None), None)
    return first if name == "rejects" or (first is not None and getattr(first.quirks, name) == value) else None


def _other_facts(found: FoundModel) -> list[str]:
    values = ((name, getattr(found.facts, name)) for name in OTHER_FACTS)
    return [f"{name} {_text(value)}" for name, value in values if value is not None]


def _text(value: object) -> str:
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

"""Report of `umg models --explain` about the restrictions of a model at its channels, with their sources."""

from umg_grpc.cli.text_tables import Column, Fit, Form, print_line, print_table
from umg_grpc.knowledge.model_facts_by_id import FoundModel, find
from umg_grpc.knowledge.price_texts import prices_text
from umg_grpc.knowledge.public_price_rows import messages_of
from umg_grpc.knowledge.shipped_prices import PriceFile, price_row, price_source
from umg_grpc.knowledge.vendor_addresses import vendor_of
from umg_grpc.routing import Target
from umg_grpc.routing.known_restrictions import known_restrictions, value_text

OTHER_FACTS = ("default_effort", "input_tokens", "cache_min_tokens", "endpoints", "retired", "successor")
"""Facts that no quirk has."""
CERTAIN_TEXTS = {True: "yes", False: "no"}
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
    known = list(known_restrictions(target))
    if not target.quirks.by_protocol and not known:
        return
    vendor = vendor_of(target.channel.base_url)
    found = find(target.model, vendor)
    rows = [
        (each.name, each.value, ", ".join(each.protocols), each.origin, CERTAIN_TEXTS[each.is_certain], *each[-2:])
        for each in known
    ]
    others = _other_facts(found)
    name = f"{target.model} at {target.channel.name}"
    if not rows and not others:
        print_line(f"restrictions of {name}: none is known")
        return
    print_line(f"restrictions of {name} ({_identity(found, vendor)}); `quirks` of the channel override them:")
    print_table(RESTRICTION_COLUMNS, rows, form)
    if others:
        print_line(f"further facts: {', '.join(others)}")
    if (price := price_row(target.model, vendor, prices)) is not None and (stated := prices_text(messages_of(price))):
        source, as_of = price_source(price)
        print_line(f"public price: {stated} ({source}; {as_of})")


def _identity(found: FoundModel, vendor: str) -> str:
    parts = [vendor or "unknown vendor", f"as {', '.join(found.ids)}"]
    if found.like:
        parts.append(f"a model without a row, treated as {', '.join(found.like)}")
    return "; ".join(parts)


def _other_facts(found: FoundModel) -> list[str]:
    values = ((name, getattr(found.facts, name)) for name in OTHER_FACTS)
    return [f"{name} {value_text(value)}" for name, value in values if value is not None]

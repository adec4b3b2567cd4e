"""Implementation of `umg prices`: public prices, their sources, and their update by a file or URL."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.error import URLError
from urllib.request import build_opener

import msgspec
import typer

from umg_grpc.access.key_permissions import PERMITTED_OPERATIONS
from umg_grpc.base.errors import UmgError
from umg_grpc.base.printable_text import printable
from umg_grpc.base.wildcard_patterns import matcher
from umg_grpc.cli.environment_proxy import proxy_handler
from umg_grpc.cli.stored_changes import stored_changes
from umg_grpc.cli.text_tables import Column, Fit, Form, print_line, print_table
from umg_grpc.config import Config
from umg_grpc.knowledge.operator_price_files import changes, named, read_price_file, updated_rows
from umg_grpc.knowledge.price_texts import prices_text, rate_text
from umg_grpc.knowledge.public_price_rows import FilePrice, UnitPrices, messages_of, rates_of
from umg_grpc.knowledge.shipped_prices import (
    NO_FILE,
    SHIPPED_PRICES,
    PriceFile,
    price_ids,
    price_row,
    price_source,
    shipped_rows,
)
from umg_grpc.knowledge.vendor_addresses import vendor_of
from umg_grpc.routing import Router, Target
from umg_grpc.routing.channel_model_prices import has_own_prices, is_priced, price_region_of, sourced_prices
from umg_grpc.routing.set_model_prices import with_set_prices
from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import to_json

FETCH_SECONDS = 60.0
MAX_BYTES = 64 * 1024 * 1024
LISTED_CHANGES = 40
PRICE_COLUMNS = (
    Column("model"),
    Column("vendor", 2),
    Column("prices", fit=Fit.LISTED),
    Column("rates", 5, is_number=True),
    Column("retired", 3),
    Column("as of", 4),
)
SOURCE_TEXTS = {
    pb.PRICE_SOURCE_FILE: "the config",
    pb.PRICE_SOURCE_DATABASE: "the database, by `umg prices set`",
    pb.PRICE_SOURCE_PROVIDER: "the provider's model list",
    pb.PRICE_SOURCE_GATEWAY: "a model of the gateway itself",
    pb.PRICE_SOURCE_PUBLIC: "public prices",
    pb.PRICE_SOURCE_DEFAULT: "`unpriced` of the config",
}


def list_prices(file: PriceFile, pattern: str, vendor: str, form: Form) -> None:
    """Print the rows of models whose ids match a pattern, of one vendor or ("") all."""
    fits = matcher([pattern.lower()]).match
    rows = [row for row in _all_rows(file) if fits(row.model.lower()) and vendor in ("", row.vendor)]
    if not rows:
        print(f"umg: no model with a public price fits {pattern}", file=sys.stderr)
        raise typer.Exit(1)
    print_prices(rows, form)


def print_prices(rows: Sequence[UnitPrices], form: Form) -> None:
    """Print rows of public prices in a form."""
    print_table(PRICE_COLUMNS, map(_cells, rows), form, map(_record, rows))


def _cells(row: UnitPrices) -> tuple[str, ...]:
    origin = row.vendor or "maker"
    return (
        row.model,
        origin,
        prices_text(messages_of(row)),
        str(len(row.rates) or ""),
        row.retired,
        price_source(row)[1],
    )


def _record(row: UnitPrices) -> Mapping[str, object]:
    prices = [to_json(price) for price in messages_of(row)]
    named_values = {"model": row.model, "vendor": row.vendor or "maker", "prices": prices, "rates": len(row.rates)}
    return {**named_values, "retired": row.retired, "as_of": price_source(row)[1]}


def _all_rows(file: PriceFile) -> Iterator[UnitPrices]:
    rows: Mapping[tuple[str, str], UnitPrices] = {**shipped_rows(), **file.rows}
    for key in sorted(rows):
        yield rows[key]


async def explain_model(config: Config, data: Path, model: str, vendor: str) -> None:
    """Print the prices of a public model at its channels, or else of a provider's id at a vendor ("" for none)."""
    targets: list[Target] = []
    if not vendor:
        router = Router(config)
        with suppress(UmgError):
            served = router.resolve(model).model.id
            model, targets = served, router.targets(served)
    if targets:
        _, prices = await stored_changes(config, data)
        config = with_set_prices(config, prices)
        targets = Router(config).targets(model)
    for target in targets:
        _explain_target(config, model, target)
        _print_unpriced(target)
    if not targets:
        row = price_row(model, vendor, config.public_prices)
        if row is None:
            at = f" at {vendor}" if vendor else ""
            looked_up = ", ".join(price_ids(model))
            print(printable(f"umg: {model} has no public price{at}; looked up: {looked_up}"), file=sys.stderr)
            raise typer.Exit(1)
        _print_row(model, row, "")


def _print_unpriced(target: Target) -> None:
    """Print the operations for which a model with prices has none of the units by which they are charged."""
    if not target.prices.micro_credits:
        return
    missing = [
        name
        for name, operations in PERMITTED_OPERATIONS.items()
        if any(not is_priced(target.prices, each) for each in operations & target.operations)
    ]
    if missing:
        print(f"  no price for {', '.join(missing)}: these calls of keys with a budget are refused")


def _explain_target(config: Config, model: str, target: Target) -> None:
    channel = target.channel
    vendor, region = vendor_of(channel.base_url), price_region_of(channel, target.model)
    print_line(
        f"{target.model} at {channel.name} ({vendor or 'unknown vendor'}{f', region {region}' if region else ''}):"
    )
    row = price_row(target.model, vendor, config.public_prices) if config.shipped_prices else None
    if row is not None and not has_own_prices(config, channel, model):
        _print_row(target.model, row, region)
        return
    found = sourced_prices(config, channel, model, target.model)
    if not found.prices:
        print("  no price; calls of keys with a budget are refused, unless `unpriced` or `price` is set")
        return
    print(f"  prices: {prices_text(found.prices)}")
    print_line(f"  source: {SOURCE_TEXTS[found.source]}{f', {found.place}' if found.place else ''}")


def _print_row(model: str, row: UnitPrices, region: str) -> None:
    source, as_of = price_source(row)
    origin = (
        "file of newer prices" if isinstance(row, FilePrice) else "hand-kept" if row in SHIPPED_PRICES else "generated"
    )
    print_line(
        f"  row: {row.vendor or 'of its maker'}/{row.model} ({origin}; looked up: {', '.join(price_ids(model))})"
    )
    print(f"  prices: {prices_text(messages_of(row))}")
    for rate in rates_of(row, region):
        print(f"  {rate_text(rate, region)}")
    if row.retired:
        print(f"  retired: {row.retired}")
    print(f"  source: {source or 'unknown'}; as of {as_of or 'an unknown day'}")
    if note := getattr(row, "note", ""):
        print(f"  reason: {note}")


def update_prices(source: str, path: Path, *, dry_run: bool) -> None:
    """Write the rows of a file or URL to the file of prices, atomically, and print the changes. If they cannot be read,
    or have no known shape, print the reason, exit with 1, and leave the file.
    """
    try:
        content = _content(source)
        rows = updated_rows(content, source, f"{datetime.now(UTC):%Y-%m-%d}")
        before = _current(path)
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        print(f"umg: {source}: {reason}; the prices stay as they are", file=sys.stderr)
        raise typer.Exit(1) from None
    lines = changes(before, rows)
    gone = [row for key, row in before.rows.items() if key not in {(each.vendor, each.model.lower()) for each in rows}]
    lines += [f"{named(row)}: {_price_without_file(row)}" for row in gone]
    for line in lines[:LISTED_CHANGES]:
        print(line)
    if len(lines) > LISTED_CHANGES:
        print(f"... and {len(lines) - LISTED_CHANGES} more")
    if not dry_run:
        _write(path, rows)
    verb = "would change" if dry_run else "changed"
    print(f"{_count(len(lines), 'price')} {verb}; {_count(len(rows), 'row')} in {path}")
    if not dry_run:
        print("a running gateway takes them with `umg reload`, or by SIGHUP")


def _price_without_file(row: UnitPrices) -> str:
    return "no price any more" if price_row(row.model, row.vendor) is None else "back to the shipped price"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _current(path: Path) -> PriceFile:
    """Return the current price file; an empty one if it does not exist or cannot be used."""
    try:
        return read_price_file(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return NO_FILE


def _content(source: str) -> bytes:
    """Return the content of a file or URL. Raise OSError, or ValueError for one that is too large."""
    if source.startswith(("http://", "https://")):
        with build_opener(proxy_handler(source)).open(source, timeout=FETCH_SECONDS) as response:
            content: bytes = response.read(MAX_BYTES + 1)
    else:
        with Path(source).open("rb") as opened:
            content = opened.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(f"it has more than {MAX_BYTES} bytes")
    return content


def _write(path: Path, rows: list[FilePrice]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    lines = (msgspec.json.encode(row) for row in rows)
    temporary.write_bytes(b"[\n" + b",\n".join(lines) + b"\n]\n")
    temporary.replace(path)

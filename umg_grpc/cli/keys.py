"""Commands of `umg keys`, which work on the store of a config."""

import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import typer

from umg_grpc.access.key_fields import KeyFields
from umg_grpc.access.keys import Key, Keys
from umg_grpc.cli.tables import print_table
from umg_grpc.config import Config
from umg_grpc.errors import UmgError
from umg_grpc.prices import credits_text
from umg_grpc.store import StoreError, open_store

ONCE = "the key is shown only now; keep it:"


async def create(config: Config, data: Path, name: str, fields: KeyFields) -> None:
    """Create a key. Print it, and its secret alone on the last line."""
    async with _keys(config, data) as keys:
        key, secret = await keys.create(name, **fields)
    _print([key])
    print(ONCE)
    print(secret)


async def list_all(config: Config, data: Path) -> None:
    """Print all keys, oldest first."""
    async with _keys(config, data) as keys:
        _print(await keys.list())


async def find(config: Config, data: Path, reference: str) -> Key:
    """Return the key with an id, name or prefix."""
    async with _keys(config, data) as keys:
        return await keys.get(reference)


async def show(config: Config, data: Path, reference: str) -> None:
    """Print all fields of one key."""
    key = await find(config, data, reference)
    for name, value in _lines(key):
        print(f"{name:<13}{value}")


async def rotate(config: Config, data: Path, reference: str, overlap: timedelta) -> None:
    """Give one key a new secret. Print the key, and the new secret alone on the last line."""
    async with _keys(config, data) as keys:
        key, secret = await keys.rotate(reference, overlap)
    _print([key])
    print(f"the former secret {key.previous_prefix}… is valid until {_written(key.previous_expire_time)}")
    print(ONCE)
    print(secret)


async def revoke(config: Config, data: Path, reference: str) -> None:
    """Revoke one key and print it."""
    async with _keys(config, data) as keys:
        _print([await keys.revoke(reference)])


@asynccontextmanager
async def _keys(config: Config, data: Path) -> AsyncGenerator[Keys, None]:
    """Yield the keys of the store, which must exist: keys in a new one would be unknown to the gateway. Errors are
    printed to standard error and exit with 1.
    """
    try:
        store = await open_store(config.database, data, create=False)
        try:
            yield Keys(store)
        finally:
            await store.aclose()
    except (UmgError, StoreError) as error:
        print(f"umg: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


def _print(keys: Sequence[Key]) -> None:
    titles = ("id", "name", "key", "models", "channels", "rpm", "expires", "route", "operations", "owner", "state")
    rows = []
    for key in keys:
        shown = dict(_lines(key))
        rows.append(tuple(shown[title] for title in titles))
    print_table(titles, rows)


def _lines(key: Key) -> Iterator[tuple[str, str]]:
    """Yield the fields of a key, each with its title."""
    operations = [*key.operations, *(["admin"] if key.administrator else [])]
    yield "id", key.key_id
    yield "name", key.name
    yield "key", f"{key.prefix}…"
    yield "state", _state(key)
    yield "models", ", ".join(key.model_patterns) or "all"
    yield "operations", ", ".join(operations if key.operations else ["all", *operations])
    yield "channels", ", ".join(key.channels) or "all"
    yield "rpm", str(key.requests_per_minute or "no limit")
    yield "tpm", str(key.tokens_per_minute or "no limit")
    yield "concurrency", str(key.concurrent_requests or "no limit")
    yield "budget", _budget(key)
    yield "route", "shown" if key.show_route else "hidden"
    yield "owner", key.owner or "none"
    yield "tags", ", ".join(f"{name}={value}" for name, value in sorted(key.tags.items())) or "none"
    yield "created", _written(key.create_time)
    yield "expires", _written(key.expire_time)
    if key.revoke_time is not None:
        yield "revoked", _written(key.revoke_time)
    if key.previous_prefix:
        yield "former key", f"{key.previous_prefix}…, valid until {_written(key.previous_expire_time)}"


def _budget(key: Key) -> str:
    if key.budget_micro_credits is None:
        return "no limit"
    amount = f"{credits_text(key.budget_micro_credits)} credits"
    return f"{amount} a {key.budget_period}" if key.budget_period else amount


def _state(key: Key) -> str:
    if key.revoke_time is not None:
        return "revoked"
    return "expired" if key.expire_time is not None and key.expire_time <= datetime.now(UTC) else "live"


def _written(time: datetime | None) -> str:
    return time.isoformat(timespec="seconds") if time is not None else "never"

"""Commands of `umg keys`, which work on the store of a config."""

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import typer

from umg_grpc.access.keys import Key, Keys
from umg_grpc.cli.tables import print_table
from umg_grpc.config import Config
from umg_grpc.errors import UmgError
from umg_grpc.store import StoreError, open_store


@dataclass(frozen=True)
class Settings:
    """Permissions and limits of a new key."""

    patterns: Sequence[str] = ()
    """Patterns of allowed models; empty allows all."""
    rpm: int | None = None
    expires: datetime | None = None
    channels: Sequence[str] = ()
    """Names or patterns of allowed channels; empty allows all."""
    show_route: bool = False


async def create(config: Config, data: Path, name: str, settings: Settings) -> None:
    """Create a key. Print its settings, and its secret alone on the last line."""
    async with _keys(config, data) as keys:
        key, secret = await keys.create(
            name,
            model_patterns=settings.patterns,
            requests_per_minute=settings.rpm,
            expire_time=settings.expires,
            channels=settings.channels,
            show_route=settings.show_route,
        )
    _print([key])
    print("the key is shown only now; keep it:")
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
    """Print one key."""
    _print([await find(config, data, reference)])


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
    now = datetime.now(UTC)
    rows = []
    for key in keys:
        expired = key.expire_time is not None and key.expire_time <= now
        rows.append(
            (
                key.key_id,
                key.name,
                f"{key.prefix}…",
                ", ".join(key.model_patterns) or "all",
                ", ".join(key.channels) or "all",
                str(key.requests_per_minute or "no limit"),
                key.expire_time.isoformat(timespec="seconds") if key.expire_time else "never",
                "shown" if key.show_route else "hidden",
                "revoked" if key.revoke_time else "expired" if expired else "live",
            )
        )
    print_table(("id", "name", "key", "models", "channels", "rpm", "expires", "route", "state"), rows)

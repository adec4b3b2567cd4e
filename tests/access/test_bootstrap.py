"""Bootstrap key: created at the first start, or taken from the environment variable."""

import asyncio
from pathlib import Path

import pytest

from tests.support.databases import Database
from umg_grpc.access.bootstrap import ensure_bootstrap
from umg_grpc.access.keys import Key, Keys, hash_secret
from umg_grpc.errors import UmgError
from umg_grpc.store import Store, open_store
from umg_grpc.v1 import pb


async def live(keys: Keys) -> list[Key]:
    return [key for key in await keys.list() if key.revoke_time is None]


async def is_good(keys: Keys, secret: str) -> bool:
    found = (await keys.by_hash([hash_secret(secret)])).get(hash_secret(secret))
    return found is not None and found.revoke_time is None


async def test_the_first_start_makes_a_key_and_every_later_one_has_it(keys: Keys, store: Store, tmp_path: Path) -> None:
    first = await ensure_bootstrap(store, tmp_path, None)
    (key,) = await live(keys)
    assert (key.name, key.model_patterns, key.requests_per_minute, key.expire_time) == ("bootstrap", (), None, None)
    assert (key.channels, key.show_route) == ((), True)
    assert await is_good(keys, first.secret)
    assert first.file == tmp_path / "bootstrap.key"
    assert first.file.read_text() == first.secret + "\n"
    assert first.file.stat().st_mode & 0o777 == 0o600
    assert await ensure_bootstrap(store, tmp_path, "") == first
    assert await live(keys) == [key]


async def test_making_the_file_leaves_no_other(store: Store, tmp_path: Path) -> None:
    await ensure_bootstrap(store, tmp_path, None)
    assert not list(tmp_path.glob(".bootstrap*"))  # noqa: ASYNC240 - a directory of this test


async def test_the_secret_is_not_shown_by_accident(store: Store, tmp_path: Path) -> None:
    bootstrap = await ensure_bootstrap(store, tmp_path, None)
    assert bootstrap.secret not in repr(bootstrap)


async def test_without_the_file_there_is_a_new_key_and_the_old_one_is_good_no_longer(
    keys: Keys, store: Store, tmp_path: Path
) -> None:
    old = await ensure_bootstrap(store, tmp_path, None)
    (before,) = await live(keys)
    (tmp_path / "bootstrap.key").unlink()
    new = await ensure_bootstrap(store, tmp_path, None)
    assert (await is_good(keys, old.secret), await is_good(keys, new.secret)) == (False, True)
    assert [key.key_id for key in await live(keys)] == [before.key_id]


async def test_the_variable_is_the_key_for_as_long_as_it_has_this_value(
    keys: Keys, store: Store, tmp_path: Path
) -> None:
    kept = await ensure_bootstrap(store, tmp_path, None)
    for value in ("one", "two", "one"):
        bootstrap = await ensure_bootstrap(store, tmp_path, value)
        assert (bootstrap.secret, bootstrap.file, bootstrap.revoked) == (value, None, False)
        good = [secret for secret in ("one", "two", kept.secret) if await is_good(keys, secret)]
        assert good == [value]
    assert await ensure_bootstrap(store, tmp_path, None) == kept
    assert await is_good(keys, kept.secret)


async def test_of_a_short_value_little_is_shown(keys: Keys, store: Store, tmp_path: Path) -> None:
    await ensure_bootstrap(store, tmp_path, "sk-tests")
    assert [key.prefix for key in await live(keys)] == ["sk"]


async def test_a_revoked_value_stays_revoked(keys: Keys, store: Store, tmp_path: Path) -> None:
    await ensure_bootstrap(store, tmp_path, "one")
    await keys.revoke("bootstrap")
    assert (await ensure_bootstrap(store, tmp_path, "one")).revoked
    assert await live(keys) == []
    assert not (await ensure_bootstrap(store, tmp_path, "two")).revoked
    assert (await ensure_bootstrap(store, tmp_path, "one")).revoked
    assert not await is_good(keys, "one")


async def test_a_key_that_was_made_by_hand_may_take_the_part(keys: Keys, store: Store, tmp_path: Path) -> None:
    await ensure_bootstrap(store, tmp_path, "one")
    made, secret = await keys.create("app")
    assert not (await ensure_bootstrap(store, tmp_path, secret)).revoked
    assert await live(keys) == [made]


async def test_starts_at_the_same_moment_agree(database: Database, keys: Keys, store: Store, tmp_path: Path) -> None:
    stores = [store, *[await open_store(database.url, database.data_dir) for _ in range(3)]]
    found = await asyncio.gather(*(ensure_bootstrap(each, tmp_path, None) for each in stores))
    assert {bootstrap.secret for bootstrap in found} == {found[0].secret}
    assert len(await live(keys)) == 1
    await asyncio.gather(*(each.aclose() for each in stores[1:]))


@pytest.mark.parametrize("value", ["two words", "line\n", "schlüssel"])
async def test_a_value_that_no_header_can_carry_is_refused(store: Store, tmp_path: Path, value: str) -> None:
    with pytest.raises(UmgError, match="UMG_API_KEY must be printable ASCII") as caught:
        await ensure_bootstrap(store, tmp_path, value)
    assert caught.value.reason == pb.ERROR_REASON_INVALID_FIELD


async def test_an_empty_file_is_named(store: Store, tmp_path: Path) -> None:
    (tmp_path / "bootstrap.key").write_text("\n")
    with pytest.raises(UmgError, match=r"bootstrap\.key must be printable ASCII"):
        await ensure_bootstrap(store, tmp_path, None)

"""Bootstrap key: created at the first start, or taken from the environment variable."""

import asyncio
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.databases import Database
from umg_grpc.access.api_keys import ApiKeys, Key, hash_secret
from umg_grpc.access.bootstrap_key import ensure_bootstrap
from umg_grpc.base.errors import UmgError
from umg_grpc.store import Store, open_store
from umg_grpc.v1 import pb


async def live(keys: ApiKeys) -> list[Key]:
    return [key for key in await keys.list() if key.revoke_time is None]


async def is_good(keys: ApiKeys, secret: str) -> bool:
    found = (await keys.by_hash([hash_secret(secret)])).get(hash_secret(secret))
    return found is not None and found.revoke_time is None


async def test_the_first_start_makes_a_key_and_every_later_one_has_it(
    keys: ApiKeys, store: Store, tmp_path: Path
) -> None:
    first = await ensure_bootstrap(store, tmp_path, None)
    (key,) = await live(keys)
    assert (key.name, key.model_patterns, key.requests_per_minute, key.expire_time) == ("bootstrap", (), None, None)
    assert (key.channels, key.show_route) == ((), True)
    assert first.secret is not None
    assert await is_good(keys, first.secret)
    assert first.created
    assert first.file == tmp_path / "bootstrap.key"
    assert first.file.read_text() == first.secret + "\n"
    assert first.file.stat().st_mode & 0o777 == 0o600
    assert await ensure_bootstrap(store, tmp_path, "") == replace(first, created=False)
    assert await live(keys) == [key]


async def test_making_the_file_leaves_no_other(store: Store, tmp_path: Path) -> None:
    await ensure_bootstrap(store, tmp_path, None)
    assert not list(tmp_path.glob(".bootstrap*"))  # noqa: ASYNC240 - a directory of this test


async def test_the_secret_is_not_shown_by_accident(store: Store, tmp_path: Path) -> None:
    bootstrap = await ensure_bootstrap(store, tmp_path, None)
    assert str(bootstrap.secret) not in repr(bootstrap)


async def test_without_its_file_the_key_of_the_database_stays_unless_it_is_replaced(
    keys: ApiKeys, store: Store, tmp_path: Path
) -> None:
    old = await ensure_bootstrap(store, tmp_path, None)
    (before,) = await live(keys)
    (tmp_path / "bootstrap.key").unlink()
    unknown = await ensure_bootstrap(store, tmp_path, None)
    assert (unknown.secret, unknown.prefix, unknown.file) == (None, old.prefix, None)
    assert f"on {socket.gethostname()} at {before.create_time:%Y-%m-%dT%H:%M}" in unknown.origin
    assert not (tmp_path / "bootstrap.key").exists()
    assert await is_good(keys, str(old.secret))
    new = await ensure_bootstrap(store, tmp_path, None, replace=True)
    assert (new.replaced_prefix, new.created) == (old.prefix, True)
    assert (await is_good(keys, str(old.secret)), await is_good(keys, str(new.secret))) == (False, True)
    assert [key.key_id for key in await live(keys)] == [before.key_id]


async def test_the_file_of_another_database_does_not_replace_the_key(
    keys: ApiKeys, store: Store, tmp_path: Path
) -> None:
    old = await ensure_bootstrap(store, tmp_path, None)
    other = tmp_path / "other"
    other.mkdir()
    (other / "bootstrap.key").write_text("sk-umg-of-another-database\n")
    assert (await ensure_bootstrap(store, other, None)).secret is None
    assert await is_good(keys, str(old.secret))


async def test_another_value_is_refused_with_both_prefixes_unless_it_replaces_the_key(
    keys: ApiKeys, store: Store, tmp_path: Path
) -> None:
    one, two = "sk-umg-one1-and-the-secret-rest-of-it-11111", "sk-umg-two2-and-the-secret-rest-of-it-22222"
    await ensure_bootstrap(store, tmp_path, one)
    with pytest.raises(UmgError, match=r"sk-umg-two…\).*sk-umg-one….*--replace-bootstrap-key") as caught:
        await ensure_bootstrap(store, tmp_path, two)
    assert "secret-rest" not in caught.value.message
    assert await is_good(keys, one)
    replaced = await ensure_bootstrap(store, tmp_path, two, replace=True)
    assert (replaced.secret, replaced.file, replaced.replaced_prefix) == (two, None, "sk-umg-one")
    assert (await is_good(keys, one), await is_good(keys, two)) == (False, True)
    assert (await ensure_bootstrap(store, tmp_path, two, replace=True)).replaced_prefix is None


async def test_of_a_short_value_little_is_shown(keys: ApiKeys, store: Store, tmp_path: Path) -> None:
    await ensure_bootstrap(store, tmp_path, "sk-tests")
    assert [key.prefix for key in await live(keys)] == ["sk"]


async def test_a_revoked_value_stays_revoked(keys: ApiKeys, store: Store, tmp_path: Path) -> None:
    await ensure_bootstrap(store, tmp_path, "one")
    await keys.revoke("bootstrap")
    assert (await ensure_bootstrap(store, tmp_path, "one")).revoked
    assert await live(keys) == []
    assert not (await ensure_bootstrap(store, tmp_path, "two")).revoked
    assert (await ensure_bootstrap(store, tmp_path, "one")).revoked
    assert not await is_good(keys, "one")


async def test_a_key_that_was_made_by_hand_may_take_the_part(keys: ApiKeys, store: Store, tmp_path: Path) -> None:
    await ensure_bootstrap(store, tmp_path, "one")
    made, secret = await keys.create("app")
    assert not (await ensure_bootstrap(store, tmp_path, secret, replace=True)).revoked
    assert await live(keys) == [made]


async def test_starts_at_the_same_moment_agree(database: Database, keys: ApiKeys, store: Store, tmp_path: Path) -> None:
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


async def test_starts_of_several_hosts_at_the_same_moment_agree_on_one_key(
    database: Database, keys: ApiKeys, store: Store, tmp_path: Path
) -> None:
    stores = [store, *[await open_store(database.url, database.data_dir) for _ in range(3)]]
    dirs = [tmp_path / str(number) for number in range(4)]
    found = await asyncio.gather(*(ensure_bootstrap(each, own, None) for each, own in zip(stores, dirs, strict=True)))
    secrets = [each.secret for each in found if each.secret is not None]
    assert len(secrets) == 1, found
    assert await is_good(keys, secrets[0])
    assert [(own / "bootstrap.key").exists() for own in dirs] == [each.secret is not None for each in found]
    await asyncio.gather(*(each.aclose() for each in stores[1:]))

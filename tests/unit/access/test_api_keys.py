"""API keys, as the operator's commands handle them."""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.unit.access.conftest import Clock
from umg_grpc.access.api_keys import ApiKeys, Key
from umg_grpc.access.bootstrap_key import ensure_bootstrap
from umg_grpc.base.errors import UmgError
from umg_grpc.store import Store
from umg_grpc.v1 import pb


async def test_a_new_key_has_every_requested_property(keys: ApiKeys, clock: Clock) -> None:
    east = datetime(2030, 1, 1, 5, tzinfo=timezone(timedelta(hours=5)))
    key, secret = await keys.create(
        "app",
        model_patterns=["famG-*", "m"],
        requests_per_minute=7,
        expire_time=east,
        channels=["eu-*", "main"],
        show_route=True,
        operations=["embed", "models"],
        administrator=True,
        owner="search team",
        tags={"cost-centre": "4711"},
    )
    assert re.fullmatch(r"sk-umg-[A-Za-z0-9_-]{43}", secret)
    assert re.fullmatch(r"key_[0-9a-f]{16}", key.key_id)
    assert key == Key(
        key_id=key.key_id,
        prefix=secret[:11],
        name="app",
        model_patterns=("famG-*", "m"),
        requests_per_minute=7,
        create_time=clock.utc(),
        expire_time=datetime(2030, 1, 1, tzinfo=UTC),
        revoke_time=None,
        channels=("eu-*", "main"),
        show_route=True,
        operations=("embed", "models"),
        administrator=True,
        owner="search team",
        tags={"cost-centre": "4711"},
    )
    assert await keys.get("app") == key
    assert key.expire_time is not None
    assert key.expire_time.tzinfo is UTC


async def test_the_store_has_the_hash_of_a_secret_and_nothing_else_of_it(keys: ApiKeys, store: Store) -> None:
    _, secret = await keys.create("app")
    async with store.read() as session:
        (row,) = (await session.execute(text("SELECT * FROM api_keys"))).mappings()
    assert row["secret_hash"] == hashlib.sha256(secret.encode()).hexdigest()
    assert secret[len(row["prefix"]) :] not in str(row)


async def test_keys_are_listed_the_oldest_first(keys: ApiKeys, clock: Clock) -> None:
    for name in ("c", "a", "b"):
        await keys.create(name)
        clock.seconds += 1
    await keys.revoke("a")
    assert [(key.name, key.revoke_time is None) for key in await keys.list()] == [
        ("c", True),
        ("a", False),
        ("b", True),
    ]


async def test_a_key_is_found_by_its_id_its_name_and_its_prefix(keys: ApiKeys) -> None:
    key, _ = await keys.create("app")
    await keys.create("other")
    assert [await keys.get(reference) for reference in (key.key_id, "app", key.prefix, key.prefix + "…")] == [key] * 4


async def test_revoking_twice_changes_nothing_the_second_time(keys: ApiKeys, clock: Clock) -> None:
    await keys.create("app")
    first = await keys.revoke("app")
    assert first.revoke_time == clock.utc()
    clock.seconds += 60
    assert await keys.revoke("app") == first == await keys.get(first.prefix)


async def test_a_name_means_its_live_key_and_then_the_last_that_had_it(keys: ApiKeys, clock: Clock) -> None:
    old, _ = await keys.create("app")
    await keys.revoke("app")
    clock.seconds += 60
    new, _ = await keys.create("app")
    assert await keys.get("app") == new
    assert (await keys.revoke("app")).key_id == (await keys.get("app")).key_id == new.key_id
    assert (await keys.get(old.key_id)).key_id == old.key_id


async def test_a_live_key_has_its_name_for_itself(keys: ApiKeys) -> None:
    ends = await asyncio.gather(*(keys.create("app") for _ in range(3)), return_exceptions=True)
    errors = [end for end in ends if isinstance(end, UmgError)]
    assert [error.reason for error in errors] == [pb.ERROR_REASON_ALREADY_EXISTS] * 2


async def test_a_prefix_of_several_keys_names_their_ids(keys: ApiKeys, store: Store) -> None:
    ids = [(await keys.create(name))[0].key_id for name in "ab"]
    async with store.write() as session:
        await session.execute(text("UPDATE api_keys SET prefix = 'sk-umg-same'"))
    with pytest.raises(UmgError, match="several keys are meant") as caught:
        await keys.get("sk-umg-same…")
    assert caught.value.reason == pb.ERROR_REASON_INVALID_FIELD
    assert all(key_id in caught.value.message for key_id in ids)


@pytest.mark.parametrize("reference", ["", "…", "app2", "key_0000000000000000", "sk-umg-" + 43 * "x"])
async def test_a_reference_to_no_key_is_not_found(keys: ApiKeys, reference: str) -> None:
    await keys.create("app")
    for use in (keys.get, keys.revoke):
        with pytest.raises(UmgError) as caught:
            await use(reference)
        assert (caught.value.reason, caught.value.metadata) == (
            pb.ERROR_REASON_OBJECT_NOT_FOUND,
            {"id": reference[:11]},
        )


async def test_an_update_changes_the_fields_that_it_names(keys: ApiKeys, clock: Clock) -> None:
    made, _ = await keys.create("app", model_patterns=["m"], requests_per_minute=7, owner="a")
    changed = await keys.update(made.key_id, {"name": "web", "requests_per_minute": None, "tags": {"a": "b"}})
    assert changed == replace(made, name="web", requests_per_minute=None, tags={"a": "b"})
    assert await keys.get("web") == changed


async def test_a_key_is_not_updated_to_the_name_of_another(keys: ApiKeys) -> None:
    await keys.create("a")
    await keys.create("b")
    with pytest.raises(UmgError, match="a key named `a` exists") as caught:
        await keys.update("b", {"name": "a"})
    assert caught.value.reason == pb.ERROR_REASON_ALREADY_EXISTS
    assert (await keys.get("b")).name == "b"


async def test_a_revoked_key_is_neither_rotated_nor_updated(keys: ApiKeys) -> None:
    await keys.create("app")
    revoked = await keys.revoke("app")
    for use in (keys.rotate("app"), keys.update("app", {"owner": "x"})):
        with pytest.raises(UmgError, match="was revoked, which is permanent") as caught:
            await use
        assert caught.value.reason == pb.ERROR_REASON_WRONG_STATE
    assert await keys.get("app") == revoked


async def test_the_first_key_keeps_its_name_and_takes_its_secret_from_its_file(
    keys: ApiKeys, tmp_path: Path, store: Store
) -> None:
    await ensure_bootstrap(store, tmp_path, None)
    with pytest.raises(UmgError, match="from its file or UMG_API_KEY") as caught:
        await keys.rotate("bootstrap")
    assert caught.value.reason == pb.ERROR_REASON_WRONG_STATE
    with pytest.raises(UmgError, match="keeps its name"):
        await keys.update("bootstrap", {"name": "other"})
    assert (await keys.get("bootstrap")).administrator


@pytest.mark.parametrize("overlap", [timedelta(seconds=-1), timedelta(days=31)], ids=str)
async def test_an_overlap_out_of_its_range_is_refused(keys: ApiKeys, overlap: timedelta) -> None:
    await keys.create("app")
    with pytest.raises(UmgError, match="the overlap is 0 to 30 days") as caught:
        await keys.rotate("app", overlap)
    assert caught.value.metadata == {"field": "overlap"}


@dataclass(frozen=True)
class Refused:
    id: str
    create: Callable[[ApiKeys], Awaitable[object]] = field(repr=False)
    field: str


REFUSED = [
    Refused("no name", lambda keys: keys.create(""), "name"),
    Refused("a long name", lambda keys: keys.create(101 * "a"), "name"),
    Refused("a space at an end", lambda keys: keys.create("app "), "name"),
    Refused("a line end", lambda keys: keys.create("a\nb"), "name"),
    Refused("the gateway's own name", lambda keys: keys.create("bootstrap"), "name"),
    Refused("an empty pattern", lambda keys: keys.create("a", model_patterns=["m", ""]), "model_patterns[1]"),
    Refused("a pattern with a space", lambda keys: keys.create("a", model_patterns=["m, n"]), "model_patterns[0]"),
    Refused("too many patterns", lambda keys: keys.create("a", model_patterns=1001 * ["m"]), "model_patterns"),
    Refused("an empty channel", lambda keys: keys.create("a", channels=[""]), "channels[0]"),
    Refused("a channel with a space", lambda keys: keys.create("a", channels=["main, spare"]), "channels[0]"),
    Refused("too many channels", lambda keys: keys.create("a", channels=1001 * ["c"]), "channels"),
    Refused("no requests", lambda keys: keys.create("a", requests_per_minute=0), "requests_per_minute"),
    Refused("no tokens", lambda keys: keys.create("a", tokens_per_minute=0), "tokens_per_minute"),
    Refused("no concurrent requests", lambda keys: keys.create("a", concurrent_requests=0), "concurrent_requests"),
    Refused("an unknown operation", lambda keys: keys.create("a", operations=["embed", "sing"]), "operations[1]"),
    Refused("a long owner", lambda keys: keys.create("a", owner=201 * "a"), "owner"),
    Refused("a line end in an owner", lambda keys: keys.create("a", owner="a\nb"), "owner"),
    Refused("a tag without a name", lambda keys: keys.create("a", tags={"": "x"}), "tags"),
    Refused("a tag with a long value", lambda keys: keys.create("a", tags={"a": 257 * "x"}), "tags"),
    Refused("too many tags", lambda keys: keys.create("a", tags={str(n): "" for n in range(51)}), "tags"),
    Refused(
        "a time that is over",
        lambda keys: keys.create("a", expire_time=datetime(2020, 1, 1, tzinfo=UTC)),
        "expire_time",
    ),
    Refused("a time without a zone", lambda keys: keys.create("a", expire_time=datetime(2030, 1, 1)), "expire_time"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
async def test_a_key_that_makes_no_sense_is_refused_by_its_field(keys: ApiKeys, case: Refused) -> None:
    with pytest.raises(UmgError) as caught:
        await case.create(keys)
    assert (caught.value.reason, caught.value.metadata) == (pb.ERROR_REASON_INVALID_FIELD, {"field": case.field})
    assert await keys.list() == []


async def test_a_name_is_no_prefix_and_no_id_of_another_key(keys: ApiKeys, store: Store) -> None:
    key, _ = await keys.create("app")
    async with store.write() as session:
        await session.execute(text("UPDATE api_keys SET prefix = 'acme-dev'"))  # of an operator's own first key
    await keys.create("other")
    for name in ("acme-dev", "acme-dev…", key.key_id, "sk-umg-AbCd", "sk-umg-", "key_0123456789abcdef"):
        for use in (keys.create(name), keys.update("other", {"name": name})):
            with pytest.raises(UmgError) as caught:
                await use
            assert (caught.value.reason, caught.value.metadata) == (pb.ERROR_REASON_INVALID_FIELD, {"field": "name"})
    assert (await keys.create("key_of_the_app"))[0].name == "key_of_the_app"


async def test_a_reference_to_the_name_of_one_key_and_the_prefix_of_another_is_refused(
    keys: ApiKeys, store: Store
) -> None:
    named, other = [(await keys.create(name))[0].key_id for name in ("acme-dev", "app")]
    async with store.write() as session:
        await session.execute(text(f"UPDATE api_keys SET prefix = 'acme-dev' WHERE key_id = '{other}'"))
    with pytest.raises(UmgError, match="several keys are meant") as caught:
        await keys.revoke("acme-dev")
    assert named in caught.value.message
    assert other in caught.value.message

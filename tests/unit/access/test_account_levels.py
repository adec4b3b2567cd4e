"""Projects and organisations of keys: restrictions, and changes that reach the keys below."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from tests.support.accounts import change_account, new_organization, new_project
from tests.unit.access.conftest import Clock
from umg_grpc.access.account_levels import AccountLevel
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.authentication import Authenticator
from umg_grpc.access.budget_settings import Budget
from umg_grpc.access.cached_api_keys import caller_of
from umg_grpc.access.caller_identity import Caller
from umg_grpc.base.errors import UmgError
from umg_grpc.store import Store
from umg_grpc.v1 import pb


def caller(*levels: AccountLevel, **settings: object) -> Caller:
    return Caller("key_1", "app", settings.pop("model_patterns", ()), None, None, levels=levels, **settings)  # type: ignore[arg-type]


def project(**settings: object) -> AccountLevel:
    return AccountLevel("proj_1", "project", "search", **settings)  # type: ignore[arg-type]


def organization(**settings: object) -> AccountLevel:
    return AccountLevel("org_1", "organization", "acme", **settings)  # type: ignore[arg-type]


def test_a_model_is_allowed_that_the_key_and_both_accounts_allow() -> None:
    found = caller(
        project(model_patterns=("gpt-*", "famG-*")),
        organization(model_patterns=("*-mini", "alias")),
        model_patterns=("gpt-*", "o*"),
    )
    names = ["gpt-5-mini", "gpt-5", "o4-mini", "famG-mini", "x"]
    assert [name for name in names if found.may_use(name)] == ["gpt-5-mini"]
    assert caller(organization(model_patterns=("alias",))).may_use("gpt-5", alias="alias")
    assert caller(project()).may_use("anything")
    with pytest.raises(UmgError) as caught:
        found.check_model("gpt-5")
    allowed = "gpt-*, o*; of these those that the project `search` allows (gpt-*, famG-*)"
    assert f"its models are {allowed}; of these those that the organisation `acme` allows (" in caught.value.message


@pytest.mark.parametrize(
    ("operations", "levels", "expected"),
    [
        ((), (), None),
        (("embed", "models"), (), {"embed", "models"}),
        (("embed", "generate"), (frozenset({"generate", "rerank"}),), {"generate"}),
        ((), (frozenset({"embed"}), frozenset({"embed", "rerank"})), {"embed"}),
        (("embed",), (frozenset({"rerank"}),), set()),
    ],
)
def test_an_operation_is_allowed_that_the_key_and_both_accounts_allow(
    operations: tuple[str, ...], levels: tuple[frozenset[str], ...], expected: set[str] | None
) -> None:
    made = [project, organization]
    found = caller(
        *(make(operations=allowed) for make, allowed in zip(made, levels, strict=False)),
        operations=frozenset(operations),
    )
    if expected is None:
        assert found.model_operations is None
    else:
        assert found.permitted_operations == expected
        assert found.model_operations is not None
        assert bool(found.model_operations) == bool(expected - {"models"})


def test_a_key_without_a_common_operation_may_call_none() -> None:
    found = caller(project(operations=frozenset({"rerank"})), operations=frozenset({"embed"}))
    with pytest.raises(UmgError) as caught:
        found.check_scopes(frozenset({"embed"}))
    assert caught.value.reason == pb.ERROR_REASON_PERMISSION_DENIED


def test_limits_hold_for_the_key_and_each_account_that_has_one() -> None:
    found = caller(project(tokens_per_minute=5), organization())
    assert [limited.limit_id for limited in found.limited] == ["proj_1"]
    assert caller(project(), organization()).limited == ()


async def test_a_key_has_the_levels_of_its_project(store: Store, keys: ApiKeys) -> None:
    acme = await new_organization(store, "acme", requests_per_minute=9)
    search = await new_project(store, "search", acme, model_patterns=["gpt-*"])
    alone = await new_project(store, "alone")
    by_id, _ = await keys.create("by id", project_id=search)
    by_name, _ = await keys.create("by name", project_id="alone")
    without, _ = await keys.create("without")
    of_search = AccountLevel(search, "project", "search", ("gpt-*",))
    expected = {
        "by id": (of_search, AccountLevel(acme, "organization", "acme", requests_per_minute=9)),
        "by name": (AccountLevel(alone, "project", "alone"),),
        "without": (),
    }
    made = [by_id, by_name, without]
    found = [made, await keys.list(), (await keys.page("", 9))[0], [*(await keys.live_page("", 9))[0].values()]]
    for listed in found:
        assert {key.name: key.levels for key in listed} == expected
    assert (await keys.get("by id")).levels == expected["by id"]


async def test_a_key_stays_in_its_project(store: Store, keys: ApiKeys) -> None:
    search, other = await new_project(store, "search"), await new_project(store, "other")
    key, _ = await keys.create("app")
    assert (await keys.update(key.key_id, {"project_id": "search"})).project_id == search
    assert (await keys.update(key.key_id, {"project_id": search, "owner": "me"})).project_id == search
    for wanted in (other, "other", ""):
        with pytest.raises(UmgError) as caught:
            await keys.update(key.key_id, {"project_id": wanted})
        assert (caught.value.name, caught.value.metadata["field"]) == ("INVALID_FIELD", "project_id")
    assert (await keys.get(key.key_id)).project_id == search


async def test_a_key_needs_a_project_that_exists_and_is_open(store: Store, keys: ApiKeys) -> None:
    closed = await new_project(store, "closed", close_time=datetime(2026, 1, 1, tzinfo=UTC))
    shut = await new_organization(store, "shut", close_time=datetime(2026, 1, 1, tzinfo=UTC))
    below = await new_project(store, "below", shut)
    for wanted, reason in (("proj_0", "OBJECT_NOT_FOUND"), ("closed", "OBJECT_NOT_FOUND"), (shut, "OBJECT_NOT_FOUND")):
        with pytest.raises(UmgError) as caught:
            await keys.create("app", project_id=wanted)
        assert caught.value.name == reason, wanted
    for wanted in (closed, below):
        with pytest.raises(UmgError) as caught:
            await keys.create("app", project_id=wanted)
        assert caught.value.name == "WRONG_STATE"
    long_name = "n" * 100
    with pytest.raises(UmgError) as caught:
        await keys.create("app", project_id=long_name)
    assert caught.value.name == "OBJECT_NOT_FOUND"


Change = Callable[[Store, str, str], object]


@pytest.mark.parametrize("of_organization", [False, True])
async def test_a_change_of_an_account_is_one_of_each_key_below(
    store: Store, keys: ApiKeys, *, of_organization: bool
) -> None:
    acme = await new_organization(store, "acme")
    search, other = await new_project(store, "search", acme), await new_project(store, "other")
    below = {(await keys.create(f"key {number}", project_id=search))[0].key_id for number in range(3)}
    await keys.create("elsewhere", project_id=other)
    before = await keys.last_change()
    await change_account(store, acme if of_organization else search, requests_per_minute=3)
    changes = await keys.changes(before, 100)
    assert {change.key_id for change in changes} == below
    assert sorted(change.number for change in changes) == [before + 1, before + 2, before + 3]
    for change in changes:
        for key in change.keys.values():
            assert [level.requests_per_minute for level in key.levels] == ([None, 3] if of_organization else [3, None])
            assert key.has_limits


async def test_keys_below_a_closed_account_are_refused_until_it_is_opened(
    store: Store, keys: ApiKeys, clock: Clock
) -> None:
    acme = await new_organization(store, "acme")
    search = await new_project(store, "search", acme)
    _, secret = await keys.create("app", project_id=search)
    authenticator = Authenticator(keys, monotonic=clock, now=clock)
    await authenticator.start()
    assert (await authenticator.authenticate(secret)).levels[1].name == "acme"
    for account in (acme, search):
        await change_account(store, account, close_time=clock.utc())
        clock.seconds += 10
        with pytest.raises(UmgError) as caught:
            await authenticator.authenticate(secret)
        assert (caught.value.name, "is closed" in caught.value.message) == ("INVALID_KEY", True)
        assert authenticator.cached(secret) is None
        await change_account(store, account, close_time=None)
        clock.seconds += 10
        assert (await authenticator.authenticate(secret)).name == "app"
    await authenticator.aclose()


async def test_the_caller_of_a_key_is_charged_to_budgets_of_three_levels(store: Store, keys: ApiKeys) -> None:
    acme = await new_organization(store, "acme", budgets=[["", 9, False], ["month", 8, True]])
    search = await new_project(store, "search", acme, budgets=[["day", 7, True], ["day", 6, False]])
    key, _ = await keys.create(
        "app",
        project_id=search,
        budget_micro_credits=5,
        budget_period="month",
        budgets=[Budget("day", 4)],
    )
    charged = caller_of(await keys.get(key.key_id)).budgets
    assert [(each.account, each.budget.micro_credits, each.budget.soft) for each in charged] == [
        (key.key_id, 5, False),
        (f"{key.key_id}/day", 4, False),
        (f"{search}/day", 6, False),
        (f"{acme}/total", 9, False),
        (f"{acme}/month", 8, True),
    ]
    assert [each.owner for each in charged[1:4]] == ["this API key", "the project `search`", "the organisation `acme`"]

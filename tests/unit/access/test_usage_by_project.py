"""Usage by project, owner and tag, which are joined with the keys; from totals and from records."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.usage_records import lines, record
from umg_grpc.access.account_levels import PROJECT_KIND
from umg_grpc.access.accounts import Accounts
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.base.time_units import micros_of
from umg_grpc.store import Store
from umg_grpc.store.key_selection import KeyScope, KeySelection
from umg_grpc.store.usage_parts import CallFilter
from umg_grpc.store.usage_record_table import UsageRecords

END = datetime(2026, 5, 4, 12, tzinfo=UTC)
SPANS = {
    "records": CallFilter(END - timedelta(seconds=5), END + timedelta(seconds=5)),
    "totals": CallFilter(END - timedelta(days=9), END + timedelta(days=9)),
}


@pytest.mark.parametrize("span", SPANS)
async def test_usage_is_grouped_and_selected_by_the_properties_of_keys(store: Store, span: str) -> None:
    keys, records = ApiKeys(store), UsageRecords(store)
    project = (await Accounts(store).create(PROJECT_KIND, {"name": "search"})).account_id
    made = [
        await keys.create("a", project_id=project, user_id="user_1", tags={"team": "é"}),
        await keys.create("b", project_id=project, user_id="user_2", tags={"team": "x", "stage": "test"}),
        await keys.create("c"),
    ]
    ids = [key.key_id for key, _ in made]
    rows = [
        record(number, key_id=key_id, start_micros=micros_of(END) + number)
        for number, key_id in enumerate((*ids, ids[0], "key_deleted"))
    ]
    await records.insert(lines(*rows))
    calls = SPANS[span]

    async def sums(by: list[str], keys: KeySelection = KeySelection(), tag: str = "") -> dict[tuple[object, ...], int]:  # noqa: B008  immutable
        selected = CallFilter(calls.since, calls.until, keys=keys, tag=tag)
        return {each.group: each.requests for each in await records.sums(by, selected)}

    assert await sums(["project"]) == {("",): 2, (project,): 3}
    assert await sums(["owner"]) == {("",): 2, ("user_1",): 2, ("user_2",): 1}
    by_tag = await sums(["model", "tag"], tag="team")
    assert by_tag == {("m", ""): 2, ("m", "x"): 1, ("m", "é"): 2}
    assert list(by_tag) == sorted(by_tag)  # type: ignore[type-var]
    assert await sums([], KeySelection(projects=[project])) == {(): 3}
    assert await sums([], KeySelection(users=["user_2"])) == {(): 1}
    assert await sums([], KeySelection(tags={"team": "x", "stage": "test"})) == {(): 1}
    assert await sums([], KeySelection(tags={"team": "x", "stage": "live"})) == {}
    own = KeyScope(user_id="user_1", user_projects=frozenset({project}))
    assert await sums(["key"], KeySelection(scope=own)) == {(ids[0],): 2}
    assert await sums(["key"], KeySelection(scope=KeyScope(key_id="key_deleted"))) == {("key_deleted",): 1}
    assert [each.key_id for each in await records.find("req-1", KeySelection(projects=[project]))] == [ids[1]]
    assert await records.find("req-2", KeySelection(projects=[project])) == []

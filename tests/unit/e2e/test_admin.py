"""Administration of keys over HTTP: every operation of the service, and its errors in one body."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.support.gateways import KEY, running

CONFIG = "channels: [{name: sandbox, protocols: [sandbox], pace: 0, models: [famO-5]}]\noverload: {lag: 10}"
KEYS = "/admin/v1/keys"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class Admin:
    session: aiohttp.ClientSession

    async def send(self, method: str, path: str, body: object = None, key: str = KEY) -> tuple[int, dict[str, Any]]:
        headers = {"authorization": f"Bearer {key}"}
        none = () if body is not None else ("content-type",)  # as curl does
        async with self.session.request(method, path, json=body, headers=headers, skip_auto_headers=none) as answer:
            assert answer.content_type == "application/json"
            return answer.status, await answer.json()

    async def create(self, **settings: object) -> dict[str, Any]:
        status, made = await self.send("POST", KEYS, {"settings": settings})
        assert status == 200, made
        return made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Admin, None]:
    async with (
        running(CONFIG, tmp_path_factory.mktemp("admin")) as gateway,
        aiohttp.ClientSession(gateway.url) as session,
    ):
        yield Admin(session)


async def test_a_key_is_made_changed_rotated_and_revoked(admin: Admin) -> None:
    settings = {
        "name": "app",
        "model_patterns": ["famO-*"],
        "operations": ["generate", "models"],
        "channels": ["sandbox"],
        "administrator": True,
        "requests_per_minute": 60,
        "tokens_per_minute": 9000,
        "concurrent_requests": 4,
        "budget_micro_credits": 5_000_000,
        "budget_period": "month",
        "expire_time": "2033-05-18T03:33:20Z",
        "show_route": True,
        "owner": "search",
        "tags": {"a": "b"},
        "budgets": [
            {"period": "day", "micro_credits": 1_000_000, "soft": False},
            {"period": "month", "micro_credits": 4_000_000, "soft": True},
        ],
        "project_id": "",
        "user_id": "",
    }
    made = await admin.create(**settings)
    key = made["key"]
    path = f"{KEYS}/{key['key_id']}"
    assert key["settings"] == settings
    assert key["revoke_time"] is None
    assert await admin.send("GET", f"{KEYS}/app") == await admin.send("GET", path) == (200, {"key": key})
    assert await admin.send("GET", f"{KEYS}/self", key=made["secret"]) == (200, {"key": key})

    changes = {"requests_per_minute": None, "concurrent_requests": 5, "operations": [], "owner": "web"}
    status, changed = await admin.send("PATCH", path, {"settings": changes})
    assert (status, changed["key"]["settings"]) == (200, settings | changes)

    status, rotated = await admin.send("POST", f"{path}/rotate", {"overlap_seconds": 60})
    assert (status, rotated["key"]["previous_prefix"]) == (200, key["prefix"])
    for secret in (made["secret"], rotated["secret"]):
        assert (await admin.send("GET", f"{KEYS}/self", key=secret))[0] == 200
    status, again = await admin.send("POST", f"{path}/rotate")  # the body may be absent
    assert (status, again["key"]["previous_prefix"]) == (200, rotated["key"]["prefix"])

    status, own = await admin.send("POST", f"{KEYS}/self/rotate", key=again["secret"])
    assert (status, own["key"]["key_id"], own["key"]["previous_prefix"]) == (200, key["key_id"], again["key"]["prefix"])

    status, revoked = await admin.send("POST", f"{path}/revoke")
    assert (status, revoked["key"]["revoke_time"] is None) == (200, False)
    listed = (await admin.send("GET", KEYS))[1]["keys"]
    ended = (await admin.send("GET", f"{KEYS}?include_ended=true"))[1]["keys"]
    assert [one["key_id"] for one in ended if one not in listed] == [key["key_id"]]


async def test_the_last_use_of_a_key_is_shown(admin: Admin) -> None:
    made = await admin.create(name="used")
    path = f"{KEYS}/{made['key']['key_id']}"
    assert made["key"]["last_use_time"] is None
    began = datetime.now(UTC)
    assert (await admin.send("GET", "/v1/models", key=made["secret"]))[0] == 200
    async with asyncio.timeout(60):  # it is written in the background, which no event reports
        while (shown := (await admin.send("GET", path))[1]["key"])["last_use_time"] is None:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    assert began <= datetime.fromisoformat(shown["last_use_time"]) <= datetime.now(UTC)


async def test_the_list_has_pages(admin: Admin) -> None:
    made = [(await admin.create(name=f"page {number}"))["key"] for number in range(3)]
    _, first = await admin.send("GET", f"{KEYS}?page_size=2")
    _, second = await admin.send("GET", f"{KEYS}?page_size=2&page_token={first['next_page_token']}")
    assert [*first["keys"], *second["keys"]][:3] == made[::-1]


async def test_keys_are_found_by_their_ids_and_by_parts_of_their_names(admin: Admin) -> None:
    made = [(await admin.create(name=name))["key"] for name in ("Nightly 100% build", "nightly test", "100 builds")]
    nightly, test, builds = made
    for query, expected in (
        (f"key_ids={nightly['key_id']},{builds['key_id']},key_absent", [builds, nightly]),
        ("text=NIGHTLY", [test, nightly]),
        ("text=100%25", [nightly]),
        (f"text={test['prefix']}", [test]),
        (f"text={test['key_id'][:12]}", [test]),
        (f"text=nightly&key_ids={test['key_id']}", [test]),
        ("text=no key has this", []),
    ):
        assert (await admin.send("GET", f"{KEYS}?{query}"))[1]["keys"] == expected, query


@dataclass(frozen=True)
class Refused:
    id: str
    method: str
    path: str
    body: object
    status: int
    param: str | None


REFUSED = [
    Refused("no settings", "POST", KEYS, {}, 400, "settings"),
    Refused("a misspelt setting", "POST", KEYS, {"settings": {"nam": "a"}}, 400, "settings.nam"),
    Refused("no name", "POST", KEYS, {"settings": {}}, 400, "settings.name"),
    Refused("a name of digits", "POST", KEYS, {"settings": {"name": 1}}, 400, "settings.name"),
    Refused(
        "an operation that there is not",
        "POST",
        KEYS,
        {"settings": {"name": "a", "operations": ["embed", "sing"]}},
        400,
        "settings.operations[1]",
    ),
    Refused(
        "an unknown period of a budget",
        "POST",
        KEYS,
        {"settings": {"name": "a", "budget_micro_credits": 5, "budget_period": "week"}},
        400,
        "settings.budget_period",
    ),
    Refused("a taken name", "POST", KEYS, {"settings": {"name": "taken"}}, 409, None),
    Refused("a page of nothing", "GET", f"{KEYS}?page_size=0", None, 400, "page_size"),
    Refused("a page of letters", "GET", f"{KEYS}?page_size=x", None, 400, "page_size"),
    Refused("a flag", "GET", f"{KEYS}?include_ended=1", None, 400, "include_ended"),
    Refused("an unknown key", "GET", f"{KEYS}/absent", None, 404, None),
    Refused("no change", "PATCH", f"{KEYS}/taken", {"settings": {}}, 400, "settings"),
    Refused("a null name", "PATCH", f"{KEYS}/taken", {"settings": {"name": None}}, 400, "settings.name"),
    Refused("a long overlap", "POST", f"{KEYS}/taken/rotate", {"overlap_seconds": 9**9}, 400, "overlap_seconds"),
]  # fmt: skip


async def test_a_malformed_call_is_refused_by_its_field_in_one_body(admin: Admin) -> None:
    await admin.create(name="taken")
    for case in REFUSED:
        status, body = await admin.send(case.method, case.path, case.body)
        error = body["error"]
        assert (status, error["param"]) == (case.status, case.param), (case.id, error)
        assert error.keys() == {"message", "type", "param", "code"}, case.id


async def test_a_key_that_is_no_administrators_is_denied(admin: Admin) -> None:
    secret = (await admin.create(name="plain"))["secret"]
    status, body = await admin.send("GET", KEYS, key=secret)
    assert (status, [each["settings"]["name"] for each in body["keys"]]) == (200, ["plain"])
    for method, path in (("POST", KEYS), ("POST", f"{KEYS}/plain/revoke"), ("GET", f"{KEYS}/app")):
        status, body = await admin.send(method, path, {"settings": {"name": "x"}}, secret)
        assert (status, body["error"]["code"]) == (403, "permission_denied"), path
        assert "may not administer" in body["error"]["message"]

"""Errors of `/admin/v1`: each wrong member of a body or parameter of a query is named as the caller wrote it."""

import re
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from urllib.parse import quote

import aiohttp
import pytest
import pytest_asyncio
from google.protobuf.descriptor import FieldDescriptor

from http_facade.handlers.admin_rpc_table import ADMIN_METHODS
from http_facade.routes import ROUTE_TABLE, Route
from tests.support.gateways import KEY, running
from umg_grpc.wire.protobuf_json import fields_of

CONFIG = "channels: [{name: sandbox, protocols: [sandbox], pace: 0, models: [famO-5]}]\noverload: {lag: 10}"
QUERY_ROUTES = [
    route for route in ROUTE_TABLE if route.shape in ADMIN_METHODS and ADMIN_METHODS[route.shape].decode is None
]
EARLY, LATE = "0001-01-01T00:00:00+10:00", "9999-12-31T23:59:59-10:00"
"""Times that UTC has in another year than 1 to 9999."""

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class Wrong:
    """Wrong value of a setting, and the path that the error names; "" for that of the setting."""

    setting: str
    value: object
    path: str = ""


WRONG_SETTINGS = [
    *(Wrong("name", value) for value in ("", " a", "x" * 101, 5, [], {}, None)),
    *(Wrong("model_patterns", value) for value in ("m", {"a": 1}, ["m"] * 1001)),
    *(Wrong("model_patterns", value, "model_patterns[1]") for value in (["m", ""], ["m", 5], ["m", None])),
    *(Wrong("operations", value) for value in ("embed", {})),
    *(Wrong("operations", value, "operations[1]") for value in (["embed", "sing"], ["embed", 5], ["embed", None])),
    *(Wrong("channels", value) for value in ("c", 5)),
    *(Wrong("channels", value, "channels[1]") for value in (["c", ""], ["c", []])),
    *(Wrong("administrator", value) for value in ("yes", 1, [])),
    *(Wrong("requests_per_minute", value) for value in (0, -1, "5", 1.5, 2**31, 2**64, True)),
    *(Wrong("tokens_per_minute", value) for value in (0, "5", 10**9 + 1)),
    *(Wrong("concurrent_requests", value) for value in (0, 10_001, {})),
    *(Wrong("budget_micro_credits", value) for value in (-1, "5", 1.5, 10**18 + 1, 2**63)),
    *(Wrong("budget_period", value) for value in ("week", "", 5)),
    *(Wrong("expire_time", value) for value in ("soon", "2030-01-01T00:00:00", 5, EARLY, LATE, "2020-01-01T00:00:00Z")),
    *(Wrong("show_route", value) for value in ("x", 0)),
    *(Wrong("owner", value) for value in ("x" * 201, "a ", 5)),
    *(Wrong("tags", value) for value in (["a"], {"a b": "x"}, {"": "x"}, {"a": "x" * 257}, {"a": 5}, {"a": None})),
    Wrong("tags", {f"t{number}": "x" for number in range(51)}),
    Wrong("colour", "red"),
    Wrong("co`lour\n", "red", "co`lour?"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[aiohttp.ClientSession, None]:
    async with (
        running(CONFIG, tmp_path_factory.mktemp("admin")) as gateway,
        aiohttp.ClientSession(gateway.url, headers={"authorization": f"Bearer {KEY}"}) as session,
    ):
        await named(session, "POST", "/admin/v1/keys", {"settings": {"name": "app"}})
        yield session


async def named(session: aiohttp.ClientSession, method: str, path: str, body: object = None) -> tuple[int, object]:
    """Return the status of a call, and the member that its error names."""
    none = () if body is not None else ("content-type",)
    async with session.request(method, path, json=body, skip_auto_headers=none) as answer:
        return answer.status, (await answer.json()).get("error", {}).get("param")


@pytest.mark.parametrize(("method", "path"), [("POST", "/admin/v1/keys"), ("PATCH", "/admin/v1/keys/app")])
async def test_a_wrong_setting_is_named_by_its_path(admin: aiohttp.ClientSession, method: str, path: str) -> None:
    for case in WRONG_SETTINGS:
        if (method, case.setting, case.value) == ("POST", "name", None):
            continue  # an absent name, in the next test
        body = {"settings": {"name": "new", case.setting: case.value}}
        found = await named(admin, method, path, body)
        assert found == (400, f"settings.{case.path or case.setting}"), case


async def test_a_list_of_operations_with_one_twice_is_refused(admin: aiohttp.ClientSession) -> None:
    body = {"settings": {"name": "new", "operations": ["embed", "embed"]}}
    assert await named(admin, "POST", "/admin/v1/keys", body) == (400, "settings.operations")
    assert await named(admin, "PATCH", "/admin/v1/keys/app", body) == (400, "settings.operations[1]")


BODIES = [
    ("POST", "/admin/v1/keys", {}, "settings"),
    ("POST", "/admin/v1/keys", {"settings": None}, "settings"),
    ("POST", "/admin/v1/keys", {"settings": []}, "settings"),
    ("POST", "/admin/v1/keys", {"settings": {}}, "settings.name"),
    ("POST", "/admin/v1/keys", {"settings": {"name": None}}, "settings.name"),
    ("POST", "/admin/v1/keys", {"settings": {"name": "new"}, "colour": 1}, "colour"),
    ("PATCH", "/admin/v1/keys/app", {}, "settings"),
    ("PATCH", "/admin/v1/keys/app", {"settings": {}}, "settings"),
    ("PATCH", "/admin/v1/keys/app", {"settings": {"owner": "x"}, "colour": 1}, "colour"),
    *(
        ("POST", "/admin/v1/keys/app/rotate", {"overlap_seconds": value}, "overlap_seconds")
        for value in (-1, "x", 1.5, 31 * 86400, [], 2**70)
    ),
    ("POST", "/admin/v1/keys/app/rotate", {"colour": 1}, "colour"),
]


@pytest.mark.parametrize(("method", "path", "body", "member"), BODIES)
async def test_a_wrong_member_of_a_body_is_named(
    admin: aiohttp.ClientSession, method: str, path: str, body: object, member: str
) -> None:
    assert await named(admin, method, path, body) == (400, member)


def wrong_texts(field: FieldDescriptor) -> tuple[str, ...]:
    """Return texts that are no values of a query parameter; none for texts, of which any is one."""
    if field.message_type is not None:
        return ("x", "2030-01-31", "2030-01-31T12:00:00", EARLY, LATE)
    if field.enum_type is not None:
        return ("colour", "")[: 1 if field.is_repeated else 2]
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return ("yes", "1", "")
    if field.cpp_type in {FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64}:
        return ("x", "-1", "0", "1e3", "10001", "9" * 30, "")
    if field.is_repeated:
        return (",".join(["m"] * 1001),)
    return ("garbage", "%", "\0") if field.name == "page_token" else ()


def wrong_queries(route: Route) -> Iterator[tuple[str, str]]:
    """Yield (parameter, text) of queries that the route refuses, of all fields of its request."""
    yield "colour", "1"
    yield "x" * 70 + "\n", "1"
    for name, field in fields_of(ADMIN_METHODS[route.shape].request).items():
        if f"{{{name}" in route.path:
            yield name, "self"
        else:
            for text in wrong_texts(field):
                yield name, text


@pytest.mark.parametrize("route", QUERY_ROUTES, ids=lambda route: f"{route.method} {route.path}")
async def test_a_wrong_parameter_is_named(admin: aiohttp.ClientSession, route: Route) -> None:
    path = re.sub(r"\{\w+(:\.\+)?\}", "none", route.path.replace("{key_id}", "self"))
    for name, text in wrong_queries(route):
        found = await named(admin, route.method, f"{path}?{quote(name)}={quote(text)}")
        assert found == (400, name.replace("\n", "?")), (name, text)


@pytest.mark.parametrize("path", ["keys/self/usage", "usage", "requests"])
async def test_a_span_that_ends_before_it_starts_is_named_by_its_end(admin: aiohttp.ClientSession, path: str) -> None:
    query = "start_time=2026-01-02T00:00:00Z&end_time=2026-01-01T00:00:00Z"
    assert await named(admin, "GET", f"/admin/v1/{path}?{query}") == (400, "end_time")

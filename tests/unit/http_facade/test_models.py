"""Model list and single models, in the format that the request or its path selects."""

from collections.abc import AsyncGenerator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from google.protobuf.timestamp_pb2 import Timestamp
from yarl import URL

from tests.support.gateways import Running, running
from tests.unit.http_facade.conftest import KEY, Face
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.errors import INCORRECT_KEY

MODELS = tuple(
    pb.Model(id=name, owned_by="someone", create_time=Timestamp(seconds=1700000000))
    for name in ("small", "vendor/large", "odd name")
)
ROOTS = ("/v1", "/v1beta")
VERSION = {"anthropic-version": "2026-10-21"}
VARY = "Authorization, api-key, x-api-key, x-vendorg-api-key, x-goog-api-key, anthropic-version, x-fern-sdk-name"


def model_body(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 1700000000, "owned_by": "someone"}


# --- selection of the format


@dataclass(frozen=True)
class Choice:
    id: str
    shape: str
    headers: Mapping[str, str]
    query: str = ""


CHOICES = [
    Choice("a bearer", "chat", KEY),
    Choice("nothing at all", "chat", {}),
    Choice("a key of the messages format", "chat", {"x-api-key": "umg-key"}),
    Choice("an SDK of Cohere", "cohere", KEY | {"x-fern-sdk-name": "cohere"}),
    Choice("a version and a bearer", "messages", VERSION | KEY),
    Choice("a version and its own key", "messages", VERSION | {"x-api-key": "umg-key"}),
    Choice("a version and a native key", "messages", VERSION | {"x-goog-api-key": "umg-key"}, "?key=umg-key"),
    Choice("the document's native key", "native", {"x-vendorg-api-key": "umg-key"}),
    Choice("the SDKs' native key", "native", {"x-goog-api-key": "umg-key"}),
    Choice("a native key beside a bearer", "native", KEY | {"x-goog-api-key": "other"}),
    Choice("a key in the query", "native", {}, "?key=umg-key"),
    Choice("a key in the query beside a bearer", "native", KEY, "?key=other"),
]
every_choice = pytest.mark.parametrize("case", CHOICES, ids=lambda case: case.id)


def shape_of_list(body: dict[str, object]) -> str:
    if (models := body.get("models")) is not None:
        return "native" if "baseModelId" in models[0] else "cohere"  # type: ignore[index]
    return "chat" if "object" in body else "messages"


def shape_of_model(body: dict[str, object]) -> str:
    marks = {"object": "chat", "type": "messages", "baseModelId": "native", "endpoints": "cohere"}
    return next(shape for mark, shape in marks.items() if mark in body)


@every_choice
async def test_the_headers_determine_the_shape_of_the_list(face: Face, case: Choice) -> None:
    face.service.models = MODELS
    for root in ROOTS:
        expected = case.shape if root == "/v1" else "native"
        async with face.client.get(face.url(f"{root}/models{case.query}"), headers=case.headers) as answer:
            assert answer.content_type == "application/json"
            assert shape_of_list(await answer.json()) == expected
        async with face.client.get(face.url(f"{root}/models/small{case.query}"), headers=case.headers) as answer:
            assert shape_of_model(await answer.json()) == expected
        if case.id != "nothing at all":
            assert [call["authorization"] for call in face.service.metadata[-2:]] == [KEY["authorization"]] * 2
        else:
            assert "authorization" not in face.service.metadata[-1]


async def test_the_list_has_the_models_that_the_service_returns_for_the_key(face: Face) -> None:
    face.service.models = MODELS
    async with face.client.get(face.url("/v1/models"), headers=KEY) as answer:
        assert await answer.json() == {"object": "list", "data": [model_body(model.id) for model in MODELS]}
    async with face.client.get(face.url("/v1/models"), headers=KEY | VERSION) as answer:
        body = await answer.json()
        assert [model["id"] for model in body["data"]] == [model.id for model in MODELS]
        assert (body["first_id"], body["last_id"], body["has_more"]) == ("small", "odd name", False)
        assert body["data"][0]["created_at"] == "2023-11-14T22:13:20Z"
    async with face.client.get(face.url("/v1beta/models"), headers=KEY) as answer:
        body = await answer.json()
        assert [model["name"] for model in body["models"]] == [f"models/{model.id}" for model in MODELS]
        assert "nextPageToken" not in body


async def test_a_key_that_may_use_no_model_gets_an_empty_list(face: Face) -> None:
    empty = [
        ("/v1", KEY, {"object": "list", "data": []}),
        ("/v1", KEY | VERSION, {"data": [], "has_more": False, "first_id": None, "last_id": None}),
        ("/v1beta", KEY, {"models": []}),
    ]
    for root, headers, body in empty:
        async with face.client.get(face.url(f"{root}/models"), headers=headers) as answer:
            assert (answer.status, await answer.json()) == (200, body)


# --- one model


@dataclass(frozen=True)
class Named:
    id: str
    path: str
    model: str


NAMED = [
    Named(id="a plain name", path="small", model="small"),
    Named(id="a name with a slash", path="vendor/large", model="vendor/large"),
    Named(id="a slash in percent encoding", path="vendor%2Flarge", model="vendor/large"),
    Named(id="a blank in percent encoding", path="odd%20name", model="odd name"),
    Named(id="the name as the native list has it", path="models/small", model="small"),
    Named(id="the same with slashes encoded", path="models%2Fvendor%2Flarge", model="vendor/large"),
    Named(id="a query besides", path="small?beta=true", model="small"),
]


@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("case", NAMED, ids=lambda case: case.id)
async def test_a_model_is_found_by_the_name_in_the_path(face: Face, case: Named, root: str) -> None:
    face.service.models = MODELS
    url = URL(face.url(f"{root}/models/{case.path}"), encoded=True)
    async with face.client.get(url, headers=KEY) as answer:
        assert answer.status == 200
        body = await answer.json()
        assert (body == model_body(case.model)) if root == "/v1" else (body["name"] == f"models/{case.model}")
    assert face.service.requested_models == [case.model]


async def test_only_one_models_prefix_is_removed(face: Face) -> None:
    async with face.client.get(face.url("/v1beta/models/models/models/x"), headers=KEY) as answer:
        assert answer.status == 404
    assert face.service.requested_models == ["models/x"]


# --- caches


async def test_a_model_list_is_privately_cacheable_for_an_hour(face: Face) -> None:
    face.service.models = MODELS
    for path in ("/v1/models", "/v1/models/small", "/v1beta/models", "/v1beta/models/small"):
        for request in (face.client.get, face.client.head):
            async with request(face.url(path), headers=KEY) as answer:
                assert answer.headers["cache-control"] == "private, max-age=3600"
                assert answer.headers.getall("vary") == [VARY]
                assert answer.headers["etag"].startswith('"')
                assert len(await answer.read()) == (
                    int(answer.headers["content-length"]) if answer.method == "GET" else 0
                )


async def etag(face: Face, path: str = "/v1/models", **headers: str) -> str:
    async with face.client.get(face.url(path), headers=KEY | headers) as answer:
        return answer.headers["etag"]


async def test_the_etag_depends_only_on_the_body(face: Face) -> None:
    face.service.models = MODELS
    shapes = [await etag(face), await etag(face, **VERSION), await etag(face, "/v1beta/models")]
    assert len(set(shapes)) == 3
    assert await etag(face) == shapes[0]
    assert await etag(face, "/v1/models", **{"x-goog-api-key": "k"}) == shapes[2]  # whose body is the same
    face.service.models = MODELS[:2]
    assert await etag(face) != shapes[0]


@dataclass(frozen=True)
class Condition:
    id: str
    sent: str  # `TAG` stands for the tag, `BARE` for the text between its quotes
    status: int = 304


async def test_a_list_of_ollamas_paths_is_read_anew(face: Face) -> None:
    face.service.models = MODELS
    async with face.client.get(face.url("/api/tags"), headers=KEY) as answer:
        assert answer.headers["cache-control"] == "private, max-age=0"
        tag = answer.headers["etag"]
    async with face.client.get(face.url("/api/tags"), headers=KEY | {"if-none-match": tag}) as answer:
        assert answer.status == 304


CONDITIONS = [
    Condition("the tag", "TAG"),
    Condition("the tag, weak", "W/TAG"),
    Condition("anything", "*"),
    Condition("a list with the tag", '"a", W/"b",TAG'),
    Condition("a list whose first is the tag", 'TAG , "a"'),
    Condition("another tag", '"other"', 200),
    Condition("a list without the tag", '"a", W/"b"', 200),
    Condition("nothing", "", 200),
    Condition("the tag without its quotes", "BARE", 200),
]


@pytest.mark.parametrize("path", ["/v1/models", "/v1beta/models/small"])
@pytest.mark.parametrize("case", CONDITIONS, ids=lambda case: case.id)
async def test_a_matching_etag_is_answered_with_304(face: Face, case: Condition, path: str) -> None:
    face.service.models = MODELS
    tag = await etag(face, path)
    sent = case.sent.replace("TAG", tag).replace("BARE", tag.strip('"'))
    for request in (face.client.get, face.client.head):
        async with request(face.url(path), headers=KEY | {"if-none-match": sent}) as answer:
            assert answer.status == case.status
            assert answer.headers["etag"] == tag
            assert answer.headers["cache-control"] == "private, max-age=3600"
            assert answer.headers["vary"] == VARY
            assert "x-request-id" in answer.headers
            assert (await answer.read() == b"") == (case.status == 304 or answer.method == "HEAD")
            if case.status == 304:
                assert "content-type" not in answer.headers


async def test_the_etag_of_one_shape_does_not_match_another(face: Face) -> None:
    face.service.models = MODELS
    headers = KEY | VERSION | {"if-none-match": await etag(face)}
    async with face.client.get(face.url("/v1/models"), headers=headers) as answer:
        assert answer.status == 200


async def test_a_failure_is_not_cacheable_and_takes_precedence_over_the_etag(face: Face) -> None:
    face.service.failure = UmgError(pb.ERROR_REASON_INVALID_KEY, "no good key")
    async with face.client.get(face.url("/v1/models"), headers={"if-none-match": "*"}) as answer:
        assert answer.status == 401
        assert not {"cache-control", "etag"} & {name.lower() for name in answer.headers}


# --- errors


@dataclass(frozen=True)
class Caller:
    """One way to list models, and the format of its errors."""

    id: str
    root: str
    headers: Mapping[str, str]
    size: str  # query parameter that can be invalid
    body: tuple[str, ...]  # members of `error`
    top: tuple[str, ...] = ("error",)
    invalid: str = "invalid_field"  # code of a parameter's error


CALLERS = [
    Caller("chat", "/v1", {}, "", ("message", "type", "code")),
    Caller(
        "messages",
        "/v1",
        VERSION,
        "limit",
        ("type", "message", "code", "details"),
        ("type", "error", "request_id"),
    ),
    Caller(
        "cohere",
        "/v1",
        {"x-fern-sdk-name": "cohere-ai"},
        "page_size",
        ("message", "type", "param", "code"),
        ("message", "error"),
        "invalid_value",
    ),
    Caller("native by key", "/v1", {"x-goog-api-key": "umg-key"}, "pageSize", ("message", "type", "code", "status")),
    Caller("native by path", "/v1beta", {}, "pageSize", ("code", "message", "status")),
]
every_caller = pytest.mark.parametrize("caller", CALLERS, ids=lambda caller: caller.id)
STATUS_WORDS = {401: "UNAUTHENTICATED", 404: "NOT_FOUND", 400: "INVALID_ARGUMENT"}


def error_of(caller: Caller, body: dict[str, dict[str, object]], status: int, code: str) -> dict[str, object]:
    """Return the error, whose members must be those of the caller's format."""
    error = body["error"]
    assert tuple(body) == caller.top
    assert tuple(name for name in error if name in caller.body) == caller.body
    assert set(error) <= {*caller.body, "details"}
    assert error["code"] == (status if caller.id == "native by path" else code)
    assert error.get("status", STATUS_WORDS[status]) == STATUS_WORDS[status]
    return error


@every_caller
async def test_an_unknown_model_is_404_in_the_shape_of_the_caller(face: Face, caller: Caller) -> None:
    async with face.client.get(face.url(f"{caller.root}/models/nobody"), headers=KEY | caller.headers) as answer:
        assert answer.status == 404
        assert error_of(caller, await answer.json(), 404, "model_not_found")["message"] == "no model nobody"


@every_caller
@pytest.mark.parametrize(
    "reason", [pb.ERROR_REASON_MISSING_KEY, pb.ERROR_REASON_INVALID_KEY, pb.ERROR_REASON_KEY_EXPIRED]
)
async def test_a_bad_key_has_the_documented_code(
    face: Face, reason: "pb.ErrorReason.ValueType", caller: Caller
) -> None:
    face.service.failure = UmgError(reason, "no good key")
    # callers without a valid key receive that error first, for every page
    for query in ("", f"?{caller.size}=0"):
        async with face.client.get(face.url(f"{caller.root}/models{query}"), headers=caller.headers) as answer:
            assert answer.status == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            message = error_of(caller, await answer.json(), 401, "invalid_api_key")["message"]
            assert str(message).removeprefix(f"{INCORRECT_KEY}: ") == "no good key"


@pytest.mark.parametrize("caller", [caller for caller in CALLERS if caller.size], ids=lambda caller: caller.id)
@pytest.mark.parametrize("size", ["0", "1001", "abc", "-1", "1.5", ""])
async def test_an_invalid_page_size_is_400_in_the_shape_of_the_caller(face: Face, size: str, caller: Caller) -> None:
    url = face.url(f"{caller.root}/models?{caller.size}={size}")
    async with face.client.get(url, headers=KEY | caller.headers) as answer:
        assert answer.status == 400
        message = str(error_of(caller, await answer.json(), 400, caller.invalid)["message"])
        assert message.startswith(f"`{caller.size}`: ")


@every_caller
async def test_a_wrong_method_is_an_error_too(face: Face, caller: Caller) -> None:
    async with face.client.post(face.url(f"{caller.root}/models"), headers=KEY | caller.headers, json={}) as answer:
        assert answer.status == 405
        assert answer.headers["allow"] == "GET, HEAD"
        assert "supports GET, HEAD" in (await answer.json())["error"]["message"]


# --- pages, of a real gateway

IDS = sorted(f"m{number:02}" for number in range(63))
CONFIG = f"""
channels: [{{name: c, protocols: [chat], base_url: "http://127.0.0.1:1", api_key: x, models: [{", ".join(IDS)}]}}]
"""


@dataclass
class Pages:
    gateway: Running
    session: aiohttp.ClientSession
    seen: list[list[str]] = field(default_factory=list)

    async def get(self, path: str, query: Mapping[str, str], **headers: str) -> tuple[int, dict[str, object]]:
        url = f"{self.gateway.url}{path}"
        async with self.session.get(url, params=query, headers=self.gateway.headers | headers) as answer:
            return answer.status, await answer.json()

    async def messages(self, **query: str) -> dict[str, object]:
        status, body = await self.get("/v1/models", query, **VERSION)
        assert status == 200
        self.seen.append([str(model["id"]) for model in body["data"]])
        return body

    def all(self) -> Iterator[str]:
        return (model for page in self.seen for model in page)


@pytest_asyncio.fixture
async def pages(tmp_path: Path) -> AsyncGenerator[Pages, None]:
    async with running(CONFIG, tmp_path) as gateway, aiohttp.ClientSession() as session:
        yield Pages(gateway, session)


@pytest.mark.parametrize("limit", [1, 7, 20, 21, 62, 63, 64, 1000])
async def test_the_messages_shape_has_pages_in_both_directions(pages: Pages, limit: int) -> None:
    body = await pages.messages(limit=str(limit))
    while body["has_more"]:
        body = await pages.messages(limit=str(limit), after_id=str(body["last_id"]))
    assert list(pages.all()) == IDS
    assert {len(page) for page in pages.seen[:-1]} <= {limit}
    pages.seen.clear()
    body = await pages.messages(limit=str(limit), before_id="n")
    while body["has_more"]:
        body = await pages.messages(limit=str(limit), before_id=str(body["first_id"]))
    assert [model for page in reversed(pages.seen) for model in page] == IDS


async def test_pages_have_the_length_that_their_shape_has_by_default(pages: Pages) -> None:
    body = await pages.messages()
    assert (len(pages.seen[0]), body["has_more"]) == (20, True)
    _, native = await pages.get("/v1beta/models", {})
    assert len(native["models"]) == 50
    assert native["nextPageToken"]
    _, chat = await pages.get("/v1/models", {})
    assert len(chat["data"]) == len(IDS)


async def test_a_page_with_both_directions_is_refused(pages: Pages) -> None:
    status, body = await pages.get("/v1/models", {"after_id": "m01", "before_id": "m05"}, **VERSION)
    assert (status, body["error"]["type"]) == (400, "invalid_request_error")
    assert body["error"]["message"].startswith("`before_id`: ")

"""Page docs/embeddings.md: the gateway behaves as it states on model lists and errors."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.docs.tables import DOCS, quoted, rows
from tests.support.callers.api import ApiClient
from tests.support.processes import Served
from umg_grpc.config import built_in

PAGE = (DOCS / "embeddings.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_list_has_the_documented_shape_and_page_size(call: ApiClient, served: Served) -> None:
    key = served.key
    for cells, (headers, query) in zip(
        rows(PAGE, "Model lists"),
        [
            ({"anthropic_version": "x"}, ""),
            ({"x_goog_api_key": key}, ""),
            ({"x_fern_sdk_name": "cohere"}, ""),
            ({}, ""),
        ],
        strict=True,
    ):
        answer = await call(f"/v1/models{query}", **headers)
        most = {"messages": ("limit", 20), "native": ("pageSize", 50), "Cohere": ("page_size", 20)}.get(cells[1])
        listed = answer.body.get("data") or answer.body["models"]
        assert {"messages": "has_more", "chat": "object", "native": "models", "Cohere": "models"}[
            cells[1]
        ] in answer.body
        if most is None:
            assert cells[2] == "all models"
            assert len(listed) == len(built_in().models)
            continue
        name, size = most
        assert cells[2].startswith(f"`{name}` ({size}, at most 1000)")
        assert len(listed) == min(size, len(built_in().models))
        for number, status in ((1, 200), (1000, 200), (0, 400), (1001, 400)):
            assert (await call(f"/v1/models?{name}={number}", **headers)).status == status
        page = (await call(f"/v1/models?{name}=2", **headers)).body
        assert {word for word in quoted(cells[2].partition(";")[2]) if word not in page} == set()
    assert "models" in (await call(f"/v1/models?key={key}")).body
    assert "models" in (await call("/v1/models", x_vendorg_api_key=key)).body
    assert "models" in (await call("/v1beta/models", anthropic_version="x")).body
    assert (await call("/v1beta/models?pageToken=none")).status == 400


async def test_a_list_is_sorted_and_cached_and_its_models_are_found(call: ApiClient) -> None:
    answer = await call("/v1/models")
    ids = [model["id"] for model in answer.body["data"]]
    assert ids == sorted(ids)
    assert f"`Cache-Control: {answer.headers['cache-control']}`" in PAGE
    again = await call("/v1/models", if_none_match=answer.headers["etag"])
    assert (again.status, again.body) == (304, None)
    assert (await call("/v1/models/famG-2.5-flash-nothinking")).body["id"] == "famG-2.5-flash-nothinking"
    assert "famG-2.5-flash-nothinking" not in ids
    assert (await call("/v1/models/none")).status == 404


@dataclass(frozen=True)
class Refused:
    id: str
    path: str
    error: str  # members of `error`
    beside: str = ""
    body: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)


CHAT, LISTED, NATIVE = "message type param code", "message type code", "code message status"
REFUSED = [
    Refused("embeddings", "/v1/embeddings", CHAT, body={}),
    Refused("rerank", "/v1/rerank", CHAT, body={}),
    Refused("rerank, the second version", "/v2/rerank", CHAT, "message", body={}),
    Refused("a native path", "/v1/models/wordllama-256:embedContent", NATIVE, body={}),
    Refused("a list in the chat shape", "/v1/models/none", LISTED),
    Refused("in the native shape", "/v1/models/none", f"{LISTED} status", headers={"x_goog_api_key": ""}),
    Refused("in the messages shape", "/v1/models/none", LISTED, "type", headers={"anthropic_version": "x"}),
    Refused("in the shape of Cohere", "/v1/models/none", CHAT, "message", headers={"x_fern_sdk_name": "cohere"}),
    Refused("below /v1beta", "/v1beta/models/none", NATIVE),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
async def test_an_error_has_the_documented_body(case: Refused, call: ApiClient) -> None:
    answer = await call(case.path, case.body, **case.headers)
    assert answer.status == (404 if case.body is None else 400)
    assert set(case.error.split()) == answer.body["error"].keys() - {"details"}
    assert set(case.beside.split()) == answer.body.keys() - {"error", "request_id"}

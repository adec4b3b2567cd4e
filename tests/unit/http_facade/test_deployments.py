"""Paths of Azure OpenAI: the deployment in the path is the model, also where the body names another one."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from yarl import URL

from http_facade.routes import DEPLOYMENT_ROUTES, model_call_route
from tests.unit.http_facade.conftest import KEY, Face
from umg_grpc.wire.core.model_in_path import form_of_model, with_model
from umg_grpc.wire.core.multipart_forms import FormPart

MESSAGES: list[dict[str, object]] = [{"role": "user", "content": "hi"}]


def path_of(deployment: str, operation: str = "chat/completions") -> str:
    return f"/openai/deployments/{deployment}/{operation}"


@dataclass(frozen=True)
class Call:
    id: str
    deployment: str
    model: str
    """Id of the model that is called."""
    body: Mapping[str, object] = field(default_factory=dict)
    query: str = "?api-version=2026-06-01"


CALLS = [
    Call("no model in the body", "m", "m"),
    Call("another model in the body", "m", "m", {"model": "other"}),
    Call("a model of another type in the body", "m", "m", {"model": 5}),
    Call("an id with a slash", "vendor/m", "vendor/m"),
    Call("an id with an encoded slash", "vendor%2Fm", "vendor/m"),
    Call("an id with a colon and a space", "m:free%20one", "m:free one"),
    Call("an id that is a path of the API", "chat/completions", "chat/completions"),
    Call("a version of the preview", "m", "m", query="?api-version=preview"),
    Call("no version", "m", "m", query=""),
    Call("a large body", "m", "m", {"model": "other", "messages": [{"role": "user", "content": "a, b: c" * 2**17}]}),
]  # fmt: skip


@pytest.mark.parametrize("case", CALLS, ids=lambda case: case.id)
async def test_the_deployment_is_the_model(case: Call, face: Face) -> None:
    url = URL(face.url(path_of(case.deployment) + case.query), encoded=True)
    body = {"messages": MESSAGES, **case.body}
    async with face.client.post(url, json=body, headers={"api-key": "umg-key"}) as answer:
        assert (answer.status, (await answer.json()).get("model")) == (200, case.model)
    [request] = face.service.requests
    assert request.model == case.model
    assert face.service.metadata[-1]["authorization"] == "Bearer umg-key"


@pytest.mark.parametrize("path", ["/openai/v1/chat/completions", "/openai/chat/completions", "/v1/chat/completions"])
async def test_other_paths_take_the_model_of_the_body_and_the_same_key(path: str, face: Face) -> None:
    body = {"model": "m", "messages": MESSAGES}
    async with face.client.post(face.url(path), json=body, headers={"api-key": "umg-key"}) as answer:
        assert (answer.status, (await answer.json())["model"]) == (200, "m")
    assert face.service.metadata[-1]["authorization"] == "Bearer umg-key"


@dataclass(frozen=True)
class Bad:
    id: str
    path: str
    status: int
    message: str
    body: object = field(default_factory=lambda: {"messages": MESSAGES})


BAD = [
    Bad("no messages", path_of("m"), 400, "messages", {}),
    Bad("no object", path_of("m"), 400, "the body is not a JSON object", []),
    Bad("no deployment", "/openai/deployments/chat/completions", 404, "call /openai/deployments/{deployment}/chat/completions"),
    Bad("text completions", path_of("m", "completions"), 404, "the further deployments API, which this gateway does not serve"),
    Bad("a slash too many", path_of("m") + "/", 404, "call /openai/deployments/m/chat/completions, without the slash"),
    Bad("a list of deployments", "/openai/deployments", 404, "further deployments API"),
]  # fmt: skip


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.id)
async def test_a_bad_call_of_a_deployment_is_an_error_with_the_remedy(case: Bad, face: Face) -> None:
    async with face.client.post(face.url(case.path), json=case.body, headers=KEY) as answer:
        assert answer.status == case.status
        assert case.message in (await answer.json())["error"]["message"]


def test_each_deployment_path_has_a_rejection_under_overload() -> None:
    for row in DEPLOYMENT_ROUTES:
        assert model_call_route("POST", row.path.replace("{deployment:.+}", "some%2Fm") + "?api-version=1") is row
    assert model_call_route("POST", path_of("m", "completions")) is None


def test_the_model_of_a_body_and_of_a_form_is_replaced() -> None:
    assert with_model(b'{"a":1.0,"model":"x","b":[ 2 ]}', "m/1") == b'{"a":1.0,"model":"m/1","b":[ 2 ]}'
    for body in (b"[]", b"{", b"\xff", b"[" * 100_000):
        assert with_model(body, "m") == body
    parts = [FormPart("model", None, b"x"), FormPart("prompt", None, b"a")]
    assert list(form_of_model(parts, "m")) == [FormPart("model", None, b"m"), parts[1]]
    assert list(form_of_model(parts, "")) == parts

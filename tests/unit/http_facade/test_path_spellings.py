"""Paths that clients build from the base URL of another server: served where they can mean one path only; otherwise the
error names the path.
"""

from dataclasses import dataclass

import pytest
from yarl import URL

from http_facade.exchange.unknown_paths import similar_path
from http_facade.path_spellings import API_VERSIONS, BASE_SEGMENTS, canonical_path
from http_facade.routes import ROUTE_TABLE
from tests.unit.http_facade.conftest import KEY, Face

TEXT: dict[str, object] = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 9}
NATIVE: dict[str, object] = {"contents": [{"parts": [{"text": "hi"}]}]}


@dataclass(frozen=True)
class Alias:
    """A path of a client, the path that it means, and a body for that."""

    id: str
    path: str
    means: str
    body: dict[str, object]
    member: str = "choices"  # a member of the response


ALIASES = [
    Alias("a base URL without a version", "/chat/completions", "/v1/chat/completions", TEXT),
    Alias("a base URL that ends with a slash", "//v1/chat/completions", "/v1/chat/completions", TEXT),
    Alias("a base URL with a version and a slash", "/v1//chat/completions", "/v1/chat/completions", TEXT),
    Alias("a base URL of openai for an SDK of anthropic", "/v1/v1/messages", "/v1/messages", TEXT, "content"),
    Alias("a base URL of anthropic for an SDK that appends no version", "/messages", "/v1/messages", TEXT, "content"),
    Alias("a path of Google for openai", "/v1beta/openai/chat/completions", "/v1/chat/completions", TEXT),
    Alias("a path of Groq", "/openai/v1/chat/completions", "/v1/chat/completions", TEXT),
    Alias("a path of OpenRouter", "/api/v1/chat/completions", "/v1/chat/completions", TEXT),
    Alias("a path of DeepSeek for anthropic", "/anthropic/v1/messages", "/v1/messages", TEXT, "content"),
    Alias("a path of Z.ai for anthropic", "/api/anthropic/v1/messages", "/v1/messages", TEXT, "content"),
    Alias("a version of google-genai behind another", "/v1/v1beta/models/m:generateContent", "/v1beta/models/m:generateContent", NATIVE, "candidates"),
    Alias("a version of google-genai twice", "/v1beta/v1beta/models/m:generateContent", "/v1beta/models/m:generateContent", NATIVE, "candidates"),
    Alias("the preview version of google-genai", "/v1alpha/models/m:generateContent", "/v1/models/m:generateContent", NATIVE, "candidates"),
    Alias("a native path without a version", "/models/n/np:generateContent", "/v1/models/n/np:generateContent", NATIVE, "candidates"),
    Alias("a base URL without a version for responses", "/responses", "/v1/responses", {"model": "m", "input": "hi"}, "output"),
]  # fmt: skip


@pytest.mark.parametrize("case", ALIASES, ids=lambda case: case.id)
async def test_a_path_with_another_base_is_served_as_the_path_that_it_means(face: Face, case: Alias) -> None:
    url = URL(face.url(case.path), encoded=True)
    assert canonical_path(case.path) == case.means
    async with face.client.post(url, json=case.body, headers=KEY) as answer:
        assert answer.status == 200, await answer.text()
        assert case.member in await answer.json()


async def test_a_native_stream_is_served_without_a_version(face: Face) -> None:
    path = "/models/n/np:streamGenerateContent?alt=sse"
    async with face.client.post(face.url(path), json=NATIVE, headers=KEY) as answer:
        assert (answer.status, answer.content_type) == (200, "text/event-stream")
        assert "candidates" in await answer.text()


async def test_the_list_of_models_without_a_version_has_the_shape_of_its_caller(face: Face) -> None:
    for headers, member in (({}, "data"), ({"x-goog-api-key": "umg-key"}, "models")):
        async with face.client.get(face.url("/models"), headers=KEY | headers) as answer:
            assert (answer.status, member in await answer.json()) == (200, True)


async def test_a_wrong_method_of_another_spelling_has_the_error_of_the_path_that_it_means(face: Face) -> None:
    async with face.client.get(face.url("/v1/v1/messages"), headers=KEY) as answer:
        assert (answer.status, answer.headers["allow"]) == (405, "POST")
        assert (await answer.json())["type"] == "error"


@dataclass(frozen=True)
class Similar:
    id: str
    path: str
    message: str


SIMILAR = [
    Similar("the whole path as the base URL", "/v1/chat/completions/chat/completions", "; call /v1/chat/completions"),
    Similar("the whole path of messages as the base URL", "/v1/messages/v1/messages", "; call /v1/messages"),
    Similar("a deployment of Azure without its base", "/deployments/m/chat/completions", "; call /v1/chat/completions"),
    Similar("a version of another format", "/v1beta/chat/completions", "; call /v1/chat/completions"),
    Similar("a base of nobody", "/llm/v1/embeddings", "; call /v1/embeddings"),
    Similar("a path of Vertex", "/v1beta1/publishers/google/models/m:generateContent", "; call /v1/models/m:generateContent"),
    Similar("an API that is not served, without a version", "/audio/voices", "the further audio API"),
    Similar("an API that is not served, with two versions", "/v1/v1/completions", "the text completions API"),
    Similar("an API whose paths end alike", "/v1/threads/t/messages", "the assistants API"),
    Similar("a path of Ollama about models", "/api/pull", "the Ollama models API"),
    Similar("an action that no model has, without a version", "/models/m:nope", "a model has no action `nope` here"),
    Similar("a slash at the end, without a version", "/chat/completions/", "; call /v1/chat/completions"),
]  # fmt: skip


@pytest.mark.parametrize("case", SIMILAR, ids=lambda case: case.id)
async def test_the_error_for_an_unknown_path_names_a_similar_one(face: Face, case: Similar) -> None:
    async with face.client.post(face.url(case.path), json=TEXT, headers=KEY) as answer:
        assert answer.status == 404
        error = (await answer.json())["error"]
        message = error if isinstance(error, str) else error["message"]
        assert message.endswith(case.message) or case.message.startswith(("the", "a "))
        assert case.message in str(await answer.json())


@pytest.mark.parametrize("base", ["/", *(f"/{row.name}" for row in BASE_SEGMENTS)])
def test_a_path_in_another_spelling_means_one_with_a_version(base: str) -> None:
    for route in ROUTE_TABLE:
        meant = canonical_path(base + route.path)
        assert meant == "" or meant.split("/")[1] in API_VERSIONS, (
            "a path of administration would have a second spelling"
        )


def test_a_long_unknown_path_has_a_bounded_cost() -> None:
    assert similar_path("/x" * 4000 + "/v1/embeddings") == "/v1/embeddings"
    assert similar_path("/x" * 4000) == ""

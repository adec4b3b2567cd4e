"""The JavaScript SDKs, unmodified, embed and rerank through the gateway."""

import base64
import json
import struct
from collections.abc import AsyncGenerator, Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pytest
import pytest_asyncio
from splintr import Tokenizer

from tests.support.gateways import Running, running
from tests.world.sdk.node_runner import Node
from tests.world.sdk.vectors import (
    CONFIG,
    DOCUMENTS,
    EMBEDDERS,
    EMPTY_TEXT,
    NO_TEXTS,
    OBJECTS,
    REFUSED,
    RERANKERS,
    TEXTS,
    UNKNOWN_MODEL,
    UNRANKED,
    WORDLLAMA,
    WRONG_KEY,
    Embed,
    Rerank,
    check_close,
    check_message,
    check_ranking,
    check_same,
    check_vectors,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    async with running(CONFIG, tmp_path_factory.mktemp("node")) as made:
        yield made


@dataclass(frozen=True)
class Job:
    id: str
    request: Embed | Rerank
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def json(self) -> dict[str, Any]:
        return {"id": self.id, "tokens": None, "encoding": None, **asdict(self.request), **self.more}


@dataclass(frozen=True)
class Sdk:
    """A client, its format, and the class of its errors if all have the same."""

    id: str
    format: str
    options: dict[str, str]
    error: str = ""
    counts: bool = True  # whether it reads the usage

    @property
    def is_ai(self) -> bool:
        return self.id.startswith("ai")


SDKS = [
    Sdk("openai", "embeddings", {"sdk": "openai"}),
    Sdk("google", "native_embeddings", {"sdk": "google"}, "ApiError"),
    Sdk("google v1beta", "native_embeddings", {"sdk": "google", "version": "v1beta"}, "ApiError"),
    Sdk("ai openai", "embeddings", {"sdk": "ai-openai"}, "APICallError"),
    Sdk("ai openai-compatible", "embeddings", {"sdk": "ai-openai-compatible"}, "APICallError"),
    Sdk("ai google", "native_embeddings", {"sdk": "ai-google", "version": "v1beta"}, "APICallError", counts=False),
    Sdk("ai google v1", "native_embeddings", {"sdk": "ai-google", "version": "v1"}, "APICallError", counts=False),
]
ERRORS = {400: "BadRequestError", 401: "AuthenticationError", 404: "NotFoundError"}
every_sdk = pytest.mark.parametrize("sdk", SDKS, ids=lambda sdk: sdk.id)


async def embedded(node: Node, gateway: Running, sdk: Sdk, jobs: Iterable[Job]) -> dict[str, Any]:
    return await node.run("embeddings.mjs", jobs, root=gateway.url, key=gateway.key, **sdk.options)


@every_sdk
async def test_every_model_embeds_in_order_and_near_texts_are_near(sdk: Sdk, node: Node, gateway: Running) -> None:
    jobs = []
    for model in EMBEDDERS:
        jobs.append(Job(f"{model.id} many", Embed(model.id)))
        jobs += [Job(f"{model.id} {text}", Embed(model.id, [text], alone=True)) for text in TEXTS]
    found = await embedded(node, gateway, sdk, jobs)
    for model in EMBEDDERS:
        many = found[f"{model.id} many"]
        assert "error" not in many, many
        check_vectors(many["vectors"], model.dimensions)
        check_close(many["vectors"], [found[f"{model.id} {text}"]["vectors"][0] for text in TEXTS])
        if sdk.counts:
            assert many["used"] > 0


@every_sdk
async def test_vectors_have_the_requested_length(sdk: Sdk, node: Node, gateway: Running) -> None:
    models = [model for model in EMBEDDERS if model.shorter]
    task = None if sdk.format == "embeddings" else "SEMANTIC_SIMILARITY"
    jobs = [Job(model.id, Embed(model.id, dimensions=model.shorter, task=task)) for model in models]
    found = await embedded(node, gateway, sdk, jobs)
    for model in models:
        assert "error" not in found[model.id], found[model.id]
        check_vectors(found[model.id]["vectors"], model.shorter or 0)


async def test_all_clients_are_given_the_same_vectors(node: Node, gateway: Running) -> None:
    jobs = [Job(model.id, Embed(model.id)) for model in EMBEDDERS]
    first, *others = [await embedded(node, gateway, sdk, jobs) for sdk in SDKS]
    for model in EMBEDDERS:
        for other in others:
            check_same(first[model.id]["vectors"], other[model.id]["vectors"])


async def test_base64_numbers_and_tokens_give_the_same_vectors(node: Node, gateway: Running) -> None:
    tokens = [Tokenizer.from_pretrained("cl100k_base").encode(text) for text in TEXTS]
    jobs = [
        Job("by default", Embed(WORDLLAMA.id)),  # base64, which the SDK decodes
        Job("base64", Embed(WORDLLAMA.id), {"encoding": "base64"}),  # the SDK returns the selected base64
        Job("float", Embed(WORDLLAMA.id), {"encoding": "float"}),
        Job("tokens", Embed(WORDLLAMA.id), {"tokens": tokens}),
    ]
    found = await embedded(node, gateway, SDKS[0], jobs)
    vectors = {name: answer["vectors"] for name, answer in found.items()}
    for other in (vectors["float"], vectors["tokens"], [_decoded(text) for text in vectors["base64"]]):
        check_same(vectors["by default"], other)


def _decoded(text: str) -> list[float]:
    return list(struct.unpack(f"<{WORDLLAMA.dimensions}f", base64.b64decode(text, validate=True)))


@every_sdk
async def test_a_failure_is_the_sdks_own_error(sdk: Sdk, node: Node, gateway: Running) -> None:
    # @google/genai takes an empty list for a missing text, `ai` sends no request for one
    cases = [case for case in REFUSED if not (case is NO_TEXTS and sdk.is_ai)]
    alone = [
        replace(case, request=replace(case.request, texts=[case.request.texts[-1]], alone=True), field="")
        for case in (UNKNOWN_MODEL, WRONG_KEY, EMPTY_TEXT)
    ]
    jobs = [Job(case.id, case.request) for case in cases] + [Job(f"{case.id}, alone", case.request) for case in alone]
    found = await embedded(node, gateway, sdk, jobs)
    for name, case in [(case.id, case) for case in cases] + [(f"{case.id}, alone", case) for case in alone]:
        error = found[name].get("error")
        assert error is not None, (name, found[name])
        assert (error["status"], error["class"]) == (case.status, sdk.error or ERRORS[case.status]), (name, error)
        check_message(case, sdk.format, error["message"])


# --- reranking

RERANKING = ["cohere-v1", "cohere-v2", "ai-cohere"]
every_reranking = pytest.mark.parametrize("sdk", RERANKING)


async def ranked(node: Node, gateway: Running, sdk: str, jobs: Iterable[Job]) -> dict[str, Any]:
    found = await node.run("rerank.mjs", jobs, root=gateway.url, key=gateway.key, sdk=sdk)
    return {name: _Ranked(**answer) if "error" not in answer else answer["error"] for name, answer in found.items()}


@dataclass(frozen=True)
class _Ranked:
    places: list[int]
    scores: list[float]
    documents: list[Any]
    id: str | None

    def check(self, count: int = len(DOCUMENTS)) -> None:
        check_ranking(self.places, self.scores, count)
        assert self.id


@pytest.mark.parametrize("model", RERANKERS)
@every_reranking
async def test_documents_are_ranked(sdk: str, model: str, node: Node, gateway: Running) -> None:
    jobs = [Job("all", Rerank(model)), Job("two", Rerank(model, top_n=2)), Job("more", Rerank(model, top_n=99))]
    found = await ranked(node, gateway, sdk, jobs)
    for name, count in (("all", 4), ("two", 2), ("more", 4)):
        found[name].check(count)
        assert found[name].places == found["all"].places[:count]
        # `ai` returns the caller's own documents
        none = [DOCUMENTS[place] for place in found[name].places] if sdk == "ai-cohere" else [None] * count
        assert found[name].documents == none


@every_reranking
async def test_documents_are_returned_in_the_shape_of_the_sdk(sdk: str, node: Node, gateway: Running) -> None:
    jobs = [Job("objects", Rerank(documents=OBJECTS, return_documents=True))]
    if sdk == "cohere-v1":
        jobs.append(Job("texts", Rerank(return_documents=True)))
        hidden = [{"text": "Nothing of interest.", "body": text} for text in DOCUMENTS]
        jobs.append(Job("fields", Rerank(documents=hidden, rank_fields=["body"])))
    if sdk == "cohere-v2":
        jobs = [Job("texts", Rerank())]
    found = await ranked(node, gateway, sdk, jobs)
    for answer in found.values():
        answer.check()
    if "objects" in found:
        assert found["objects"].documents == [OBJECTS[place] for place in found["objects"].places]
    if sdk == "cohere-v1":
        assert [each["text"] for each in found["texts"].documents] == [
            DOCUMENTS[each] for each in found["texts"].places
        ]


@every_reranking
async def test_a_refused_ranking_is_the_sdks_own_error(sdk: str, node: Node, gateway: Running) -> None:
    is_ai = sdk == "ai-cohere"
    cases = [
        case for case in UNRANKED if case.request.documents or not is_ai
    ]  # `ai` sends no request without documents
    found = await ranked(node, gateway, sdk, [Job(case.id, case.request) for case in cases])
    for case in cases:
        error = found[case.id]
        assert isinstance(error, dict), (case.id, error)
        assert (error["status"], error["class"]) == (case.status, "APICallError" if is_ai else case.error), error
        assert case.expected_message in error["message"], json.dumps(error)

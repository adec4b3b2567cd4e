"""Bodies of Cohere's embeddings: the SDK's own type accepts the responses, and numpy judges the vectors."""

import base64
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from cohere import EmbedByTypeResponse

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.cohere_embeddings import COHERE_EMBED
from umg_grpc.wire.unary_format_interface import ClientShape

VECTORS = np.asarray([[0.5, -0.25, 0.0, 1.5, -1.0, 2.0, 3.0, -4.0, 1.0], [-1.0] * 9], "<f4")


def decoded(**members: Any) -> tuple[pb.EmbedRequest, Any]:
    return COHERE_EMBED.decode_request(json.dumps({"model": "m", "texts": ["a", "b"], **members}).encode(), {})


def response(**members: Any) -> dict[str, Any]:
    """Return the body of the response with `VECTORS` to a request with these members."""
    made = pb.EmbedResponse(model="m", usage=pb.EmbeddingUsage(input_tokens=7, total_tokens=7))
    made.embeddings.extend(pb.Embedding(values=vector.tobytes()) for vector in VECTORS)
    body: dict[str, Any] = json.loads(COHERE_EMBED.encode_response(made, decoded(**members)[0], ClientShape.SDK))
    EmbedByTypeResponse.model_validate(body)
    return body


BITS = np.packbits(VECTORS > 0, axis=1)
EXPECTED: dict[str, Any] = {
    "float": VECTORS.tolist(),
    "base64": [base64.b64encode(vector.tobytes()).decode() for vector in VECTORS],
    "ubinary": BITS.tolist(),
    "binary": (BITS.astype(int) - 128).tolist(),
}


@pytest.mark.parametrize("kind", EXPECTED)
def test_vectors_have_the_selected_type(kind: str) -> None:
    assert response(embedding_types=[kind])["embeddings"] == {kind: EXPECTED[kind]}


def test_several_types_are_in_one_response_and_floats_are_the_default() -> None:
    types = [*EXPECTED, "float"]
    assert response(embedding_types=types)["embeddings"] == EXPECTED
    body = response()
    assert body["embeddings"] == {"float": EXPECTED["float"]}
    assert (body["texts"], body["response_type"]) == (["a", "b"], "embeddings_by_type")
    assert body["meta"]["billed_units"] == {"input_tokens": 7}
    assert body["id"] == response()["id"] != response(truncate="END")["id"]


def test_a_large_response_is_encoded_in_pieces() -> None:
    request = decoded(embedding_types=["float", "binary"])[0]
    vector = np.linspace(-1, 1, 1024, dtype="<f4")
    made = pb.EmbedResponse(embeddings=[pb.Embedding(values=vector.tobytes())] * 100)
    assert COHERE_EMBED.encode_pieces is not None
    pieces = list(COHERE_EMBED.encode_pieces(made, request, ClientShape.SDK))
    assert max(map(len, pieces)) < 2**20
    body = json.loads(b"".join(pieces))
    assert np.asarray(body["embeddings"]["float"], "<f4").tolist() == [vector.tolist()] * 100
    assert len(body["embeddings"]["binary"]) == 100


def test_a_caller_over_grpc_gets_floats() -> None:
    made = pb.EmbedResponse(embeddings=[pb.Embedding(values=VECTORS[0].tobytes())])
    body = json.loads(COHERE_EMBED.encode_response(made, pb.EmbedRequest(), ClientShape.SDK))
    assert list(body["embeddings"]) == ["float"]


@dataclass(frozen=True)
class Options:
    id: str
    members: dict[str, Any]
    expected: pb.EmbedRequest
    reported: list[str] = field(default_factory=list)
    texts: tuple[str, ...] = ("a", "b")


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": part} for part in value.split("|")]}


OPTIONS = [
    Options("nothing more", {}, pb.EmbedRequest()),
    Options("a document", {"input_type": "search_document"}, pb.EmbedRequest(task_type="RETRIEVAL_DOCUMENT")),
    Options("a query", {"input_type": "search_query"}, pb.EmbedRequest(task_type="RETRIEVAL_QUERY")),
    Options("clusters", {"input_type": "clustering"}, pb.EmbedRequest(task_type="CLUSTERING")),
    Options("a length", {"output_dimension": 256.0}, pb.EmbedRequest(dimensions=256)),
    Options(
        "what no provider's format has",
        {"truncate": "END", "max_tokens": 5, "priority": 1, "brand_new": 2},
        pb.EmbedRequest(),
        ["truncate", "max_tokens", "priority", "brand_new"],
    ),
    Options("inputs", {"texts": None, "inputs": [text("a"), text("b|c")]}, pb.EmbedRequest(), texts=("a", "b\nc")),
    Options("nulls", dict.fromkeys(["images", "inputs", "embedding_types", "truncate"]), pb.EmbedRequest()),
]


@pytest.mark.parametrize("case", OPTIONS, ids=lambda case: case.id)
def test_options_have_a_canonical_form(case: Options) -> None:
    request, notes = decoded(**case.members)
    request.ClearField("source")
    expected = pb.EmbedRequest(model="m", inputs=[pb.EmbeddingInput(text=each) for each in case.texts])
    expected.MergeFrom(case.expected)
    assert (request, notes.uncarried) == (expected, case.reported)


@dataclass(frozen=True)
class Rejection:
    id: str
    members: dict[str, Any]
    field: str


IMAGE = {"type": "image_url", "image_url": {"url": "https://a/b.png"}}
REJECTIONS = [
    Rejection("no model", {"model": None}, "model"),
    Rejection("no texts", {"texts": None}, "texts"),
    Rejection("an empty list", {"texts": []}, "texts"),
    Rejection("an empty text", {"texts": ["a", ""]}, "texts[1]"),
    Rejection("texts and inputs", {"inputs": [text("a")]}, "inputs"),
    Rejection("images", {"texts": None, "images": ["data:image/png;base64,AA=="]}, "images"),
    Rejection("an image among the inputs", {"texts": None, "inputs": [{"content": [IMAGE]}]}, "inputs[0].content[0]"),
    Rejection("an input without content", {"texts": None, "inputs": [{"content": []}]}, "inputs[0].content"),
    Rejection("a part without text", {"texts": None, "inputs": [text("a|")]}, "inputs[0].content[1].text"),
    Rejection("an unknown part", {"texts": None, "inputs": [{"content": [{"type": "x"}]}]}, "inputs[0].content[0].type"),
    Rejection("the type of images", {"input_type": "image"}, "input_type"),
    Rejection("an unknown type of inputs", {"input_type": "x"}, "input_type"),
    Rejection("int8", {"embedding_types": ["float", "int8"]}, "embedding_types[1]"),
    Rejection("uint8", {"embedding_types": ["uint8"]}, "embedding_types[0]"),
    Rejection("an unknown type of vectors", {"embedding_types": ["half"]}, "embedding_types[0]"),
    Rejection("no length", {"output_dimension": 0}, "output_dimension"),
    Rejection("half a length", {"output_dimension": 1.5}, "output_dimension"),
    Rejection("an unknown truncation", {"truncate": "MIDDLE"}, "truncate"),
]  # fmt: skip


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_a_malformed_body_is_rejected_by_the_path_of_its_field(case: Rejection) -> None:
    with pytest.raises(UmgError) as caught:
        decoded(**case.members)
    assert caught.value.metadata["field"] == case.field
    assert json.loads(COHERE_EMBED.encode_error(caught.value, 400))["message"] == caught.value.message


@pytest.mark.parametrize(
    ("canonical", "written"),
    [
        ("inputs[1].text", "texts[1]"),
        ("inputs[1].task_type", "input_type"),
        ("dimensions", "output_dimension"),
        ("task_type", "input_type"),
        ("model", "model"),
    ],
)
def test_errors_name_the_callers_fields(canonical: str, written: str) -> None:
    assert COHERE_EMBED.wire_path(canonical) == written

"""Bodies that the faces refuse, and the path in each error."""

from dataclasses import dataclass

import msgspec
import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.native_embeddings import NATIVE_EMBEDDING, NATIVE_EMBEDDINGS
from umg_grpc.wire.unary_format_interface import UnaryFormat

Codec = UnaryFormat[pb.EmbedRequest, pb.EmbedResponse]
INVALID, MISSING = pb.ERROR_REASON_INVALID_FIELD, pb.ERROR_REASON_MISSING_FIELD
UNSUPPORTED = pb.ERROR_REASON_UNSUPPORTED_FIELD

TEXT = {"parts": [{"text": "a"}]}


@dataclass(frozen=True)
class Rejection:
    """A malformed body of `:embedContent`, which is also tested as an item of a batch."""

    id: str
    field: str
    body: object
    reason: "pb.ErrorReason.ValueType" = INVALID
    message: str = ""


def content(*parts: object) -> dict[str, object]:
    return {"content": {"parts": list(parts)}}


def option(**fields: object) -> dict[str, object]:
    return {"content": TEXT, **fields}


# fmt: off
REJECTIONS = [
    Rejection("no content", "content", {}, MISSING, "`content` is required"),
    Rejection("null as content", "content", {"content": None}, MISSING),
    Rejection("a text as content", "content", {"content": "a"}, message="expected an object"),
    Rejection("no parts", "content.parts", {"content": {}}, MISSING),
    Rejection("empty parts", "content.parts", content(), MISSING),
    Rejection("parts of another type", "content.parts", {"content": {"parts": "a"}}, message="expected an array"),
    Rejection("a text of another type", "content.parts[0].text", content({"text": 3}), message="expected a string"),
    Rejection("an empty text", "content.parts", content({"text": ""}), message="empty"),
    Rejection("a file", "content.parts[0]", content({"file_data": {"file_uri": "https://a.test/b"}}), UNSUPPORTED),
    Rejection("a role of another type", "content.role", {"content": {**TEXT, "role": 3}}),
    Rejection("an empty task", "taskType", option(taskType="")),
    Rejection("a task of another type in snake_case", "task_type", option(task_type=3)),
    Rejection("no dimensions at all", "outputDimensionality", option(outputDimensionality=0), message="at least 1"),
    Rejection("no dimensions at all in snake_case", "output_dimensionality", option(output_dimensionality=0), message="`output_dimensionality`"),
    Rejection("a part of a dimension", "outputDimensionality", option(outputDimensionality=2.5), message="whole number"),
    Rejection("a part of a dimension in snake_case", "output_dimensionality", option(output_dimensionality=2.5)),
    Rejection("a config of another type", "embedContentConfig", option(embedContentConfig=3)),
    Rejection("no dimensions in the config", "embedContentConfig.outputDimensionality", option(embedContentConfig={"outputDimensionality": 0})),
    Rejection("a part of a dimension in the config", "embed_content_config.output_dimensionality", option(embed_content_config={"output_dimensionality": 2.5})),
    Rejection("a model of another type", "model", option(model=3)),
]
BATCHES = [
    Rejection("empty requests", "requests", {"requests": []}, message="at least 1"),
    Rejection("an item of another type", "requests[1]", {"requests": [{"content": TEXT}, "a"]}),
    Rejection("a single body", "requests", {"content": TEXT}, MISSING),
    Rejection("two models", "requests[2].model", {"requests": [{"content": TEXT, "model": "models/a"}, {"content": TEXT}, {"content": TEXT, "model": "models/b"}]}, message="'b'"),
    Rejection("another model above", "requests[0].model", {"model": "a", "requests": [{"content": TEXT, "model": "b"}]}),
]
# fmt: on


def refusal(codec: Codec, body: object) -> UmgError:
    with pytest.raises(UmgError) as caught:
        codec.decode_request(body if isinstance(body, bytes) else msgspec.json.encode(body), {})
    return caught.value


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_a_malformed_body_is_rejected_by_the_path_of_its_field(case: Rejection) -> None:
    error = refusal(NATIVE_EMBEDDING, case.body)
    assert (error.reason, error.metadata) == (case.reason, {"field": case.field})
    assert error.message.startswith(f"`{case.field}`")
    assert case.message in error.message


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_a_malformed_item_is_rejected_by_its_index_in_the_batch(case: Rejection) -> None:
    error = refusal(NATIVE_EMBEDDINGS, {"requests": [{"content": TEXT}, case.body]})
    assert (error.reason, error.metadata) == (case.reason, {"field": f"requests[1].{case.field}"})


@pytest.mark.parametrize("case", BATCHES, ids=lambda case: case.id)
def test_a_malformed_batch_is_rejected(case: Rejection) -> None:
    error = refusal(NATIVE_EMBEDDINGS, case.body)
    assert (error.reason, error.metadata) == (case.reason, {"field": case.field})
    assert case.message in error.message


# --- the model, which is in the path


@dataclass(frozen=True)
class Named:
    id: str
    body: dict[str, object]
    field: str | None
    """Path of a model other than `m`; None without one."""


def items(*models: str | None) -> dict[str, object]:
    return {"requests": [{"content": TEXT} | ({"model": model} if model is not None else {}) for model in models]}


NAMED = [
    Named("none", {"content": TEXT}, None),
    Named("null", {"content": TEXT, "model": None}, None),
    Named("an empty one", {"content": TEXT, "model": ""}, None),
    Named("none in a batch", items(None, None), None),
    Named("the same above a batch", {"model": "models/m", **items("models/m")}, None),
    Named("another above a batch", {"model": "models/other", **items("models/other")}, "model"),
]


@pytest.mark.parametrize("case", NAMED, ids=lambda case: case.id)
def test_a_body_may_repeat_the_model_of_its_path_and_name_no_other(case: Named) -> None:
    codec = NATIVE_EMBEDDINGS if "requests" in case.body else NATIVE_EMBEDDING
    body = msgspec.json.encode(case.body)
    if case.field is None:
        assert codec.decode_request(body, {}, "m").canonical.model == "m"
        return
    with pytest.raises(UmgError) as caught:
        codec.decode_request(body, {}, "m")
    assert (caught.value.reason, caught.value.metadata) == (INVALID, {"field": case.field})
    assert "leave it out of the body" in caught.value.message


def test_a_request_without_a_path_keeps_the_model_of_its_body() -> None:
    request = NATIVE_EMBEDDING.decode_request(b'{"content":{"parts":[{"text":"a"}]},"model":"models/m"}', {}).canonical
    assert request.model == "m"


# --- canonical paths

# canonical, in a single body, in a batch
PATHS = [
    ("model", "model", "model"),
    ("inputs", "content", "requests"),
    ("inputs[0]", "content", "requests[0].content"),
    ("inputs[0].content", "content", "requests[0].content"),
    ("inputs[0].text", "content.parts", "requests[0].content.parts"),
    ("inputs[0].tokens", "content.parts", "requests[0].content.parts"),
    ("inputs[0].tokens.ids[3]", "content.parts", "requests[0].content.parts"),
    ("inputs[0].title", "title", "requests[0].title"),
    ("inputs[0].task_type", "taskType", "requests[0].taskType"),
    ("inputs[0].dimensions", "outputDimensionality", "requests[0].outputDimensionality"),
    ("inputs[17].dimensions", "outputDimensionality", "requests[17].outputDimensionality"),
    ("dimensions", "outputDimensionality", "requests[0].outputDimensionality"),
    ("task_type", "taskType", "requests[0].taskType"),
    ("autoTruncate", "autoTruncate", "autoTruncate"),
]


@pytest.mark.parametrize(("canonical", "single", "batch"), PATHS)
def test_a_canonical_path_is_converted_to_the_callers_path(canonical: str, single: str, batch: str) -> None:
    assert NATIVE_EMBEDDING.wire_path(canonical) == single
    assert NATIVE_EMBEDDINGS.wire_path(canonical) == batch

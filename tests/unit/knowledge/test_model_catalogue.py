"""Catalogue: the documented properties of models, by their ids."""

import re
from pathlib import Path

import pytest

from umg_grpc.config import built_in
from umg_grpc.knowledge.families.text_model_rules import TEXT_FAMILIES, family_of
from umg_grpc.knowledge.families.video_model_rules import DOCUMENTED_MODELS, ENTRY_RULES, IMAGE_KIND, video_family
from umg_grpc.knowledge.model_catalogue import MODEL_CATALOGUE, TASK_TYPES, describe
from umg_grpc.v1 import pb
from umg_grpc.wire.native_embeddings import NATIVE_EMBEDDING

TEXT = [model for model in MODEL_CATALOGUE.values() if pb.MODEL_OPERATION_GENERATE in model.operations]
EMBEDDING = [model for model in MODEL_CATALOGUE.values() if pb.MODEL_OPERATION_EMBED in model.operations]
IMAGES = {pb.MODEL_OPERATION_GENERATE_IMAGE, pb.MODEL_OPERATION_EDIT_IMAGE}
ONLY_IMAGES = [model for model in MODEL_CATALOGUE.values() if IMAGES.issuperset(model.operations)]
RERANK = [model for model in MODEL_CATALOGUE.values() if pb.MODEL_OPERATION_RERANK in model.operations]
VIDEO = [model for model in MODEL_CATALOGUE.values() if pb.MODEL_OPERATION_CREATE_VIDEO in model.operations]


def test_every_model_does_one_thing_or_makes_images_too() -> None:
    assert len(TEXT) + len(EMBEDDING) + len(RERANK) + len(ONLY_IMAGES) + len(VIDEO) == len(MODEL_CATALOGUE)
    text = (pb.MODEL_OPERATION_GENERATE, pb.MODEL_OPERATION_COUNT_TOKENS)
    make, edit = (pb.MODEL_OPERATION_GENERATE_IMAGE,), (pb.MODEL_OPERATION_EDIT_IMAGE,)
    assert {tuple(model.operations) for model in MODEL_CATALOGUE.values()} == {
        text,
        (*text, *make, *edit),
        (pb.MODEL_OPERATION_EMBED,),
        (pb.MODEL_OPERATION_RERANK,),
        make,
        edit,
        (*make, *edit),
        (pb.MODEL_OPERATION_CREATE_VIDEO,),
        (pb.MODEL_OPERATION_CREATE_VIDEO, pb.MODEL_OPERATION_REMIX_VIDEO),
    }


def test_models_with_image_operations_output_images() -> None:
    able = [model.id for model in MODEL_CATALOGUE.values() if not IMAGES.isdisjoint(model.operations)]
    assert able == [model.id for model in MODEL_CATALOGUE.values() if "image" in model.capabilities.output_modalities]
    editing = [model.id for model in ONLY_IMAGES if pb.MODEL_OPERATION_EDIT_IMAGE in model.operations]
    assert editing == [model.id for model in ONLY_IMAGES if "image" in model.capabilities.input_modalities]


def test_every_model_has_its_own_id_as_key_and_a_limit() -> None:
    assert [model.id for model in MODEL_CATALOGUE.values()] == list(MODEL_CATALOGUE)
    without = [model for model in MODEL_CATALOGUE.values() if not model.input_token_limit]
    assert without == [model for model in MODEL_CATALOGUE.values() if model in ONLY_IMAGES or model in VIDEO]
    assert [model.id for model in TEXT if not model.output_token_limit] == []


def test_every_family_of_the_document_has_a_text_model() -> None:
    assert {family_of(model.id) for model in TEXT} == {*TEXT_FAMILIES, ""}


@pytest.mark.parametrize(
    ("model", "dimensions"),
    [
        ("text-embedding-3-small", 1536),
        ("text-embedding-3-large", 3072),
        ("text-embedding-ada-002", 1536),
        ("famG-embedding-001", 3072),
        ("text-embedding-004", 768),
        ("wordllama-256", 256),
    ],
)
def test_embedding_models_have_the_lengths_of_the_document(model: str, dimensions: int) -> None:
    assert MODEL_CATALOGUE[model].embedding.default_dimensions == dimensions


def test_only_embedding_models_have_lengths_of_vectors() -> None:
    assert [model for model in MODEL_CATALOGUE.values() if model.HasField("embedding")] == EMBEDDING
    made = [model for model in MODEL_CATALOGUE.values() if "embedding" in model.capabilities.output_modalities]
    assert made == EMBEDDING
    assert [list(model.capabilities.output_modalities) for model in RERANK] == [["ranking"]] * len(RERANK)


def test_the_length_can_be_chosen_where_the_document_or_the_vendor_allows_it() -> None:
    fixed = [model.id for model in EMBEDDING if not (model.embedding.any_dimensions or model.embedding.dimensions)]
    assert fixed == ["text-embedding-ada-002"]
    assert list(MODEL_CATALOGUE["wordllama-256"].embedding.dimensions) == [64, 128, 256]


def test_task_types_are_of_the_models_of_the_native_format() -> None:
    typed = [model.id for model in EMBEDDING if model.embedding.task_types]
    assert typed == ["famG-embedding-001", "text-embedding-004"]
    body = b'{"content":{"parts":[{"text":"Hi"}]},"taskType":"%s"}'
    for task_type in TASK_TYPES:
        request = NATIVE_EMBEDDING.decode_request(body % task_type.encode(), {}).canonical
        assert task_type in (request.task_type, request.inputs[0].task_type)


def test_a_prefix_is_cached_from_as_many_tokens_as_the_tier_has() -> None:
    larger = {
        model.id: 2048 if re.search("mini|flash", model.id) else 1024 for model in TEXT if model.capabilities.tools
    }
    assert {model.id: model.capabilities.min_cached_tokens for model in TEXT if model.capabilities.tools} == larger


def test_the_local_text_model_reads_and_writes_text_alone() -> None:
    plain = pb.ModelCapabilities(output_modalities=["text"])
    assert [model.id for model in TEXT if model.capabilities == plain] == ["smollm2-135m-instruct"]


def test_the_first_known_id_determines_the_entry() -> None:
    assert describe("mine", "famO-5", "famX-4") == MODEL_CATALOGUE["famO-5"]
    assert describe("mine") is None
    assert describe() is None
    assert describe("famO-5 ") is None


def test_a_suffix_is_no_id() -> None:
    assert describe("famG-2.5-flash-thinking") is None


def test_the_operators_page_names_every_model_that_is_built_in() -> None:
    page = (Path(__file__).parents[3] / "docs" / "operating.md").read_text(encoding="utf-8")
    assert [model for model in built_in().models if model not in page] == []


def test_every_video_model_of_the_document_has_the_inputs_of_its_rules_and_a_price() -> None:
    assert {model.id for model in VIDEO} == DOCUMENTED_MODELS
    kinds = {pb.VIDEO_MEDIA_KIND_IMAGE: "image", pb.VIDEO_MEDIA_KIND_VIDEO: "video", pb.VIDEO_MEDIA_KIND_AUDIO: "audio"}
    for model in VIDEO:
        rules = [rows[model.id] for rows in ENTRY_RULES.values() if model.id in rows]
        accepted = {kinds[kind] for each in rules for kind in each.kinds if kind != IMAGE_KIND or each.max_images != 0}
        assert set(model.capabilities.input_modalities) == accepted, model.id
        info = built_in().models[model.id]
        assert info.family == video_family(model.id)
        assert {price.unit for price in info.described.prices} == {pb.BILLABLE_UNIT_VIDEO_SECOND}

"""Model lists for Ollama's clients; the vendor's own client in Python reads each."""

import msgspec
from ollama import ListResponse, ShowResponse

from tests.support.error_checks import raises_error
from umg_grpc.v1 import pb
from umg_grpc.wire.model_lists import MODEL_LISTS

TAGS, RUNNING = MODEL_LISTS["ollama_models"], MODEL_LISTS["ollama_running"]
SEEING = pb.ModelCapabilities(input_modalities=["text", "image"], tools=True, reasoning=pb.REASONING_CONTROL_LEVEL)
TEXT = pb.Model(
    id="gpt-x",
    display_name="GPT X",
    family="famO",
    operations=[pb.MODEL_OPERATION_GENERATE, pb.MODEL_OPERATION_COUNT_TOKENS],
    input_token_limit=128000,
    capabilities=SEEING,
    sampling=pb.ModelSampling(temperature=0.7, max_temperature=2),
)
VECTORS = pb.Model(
    id="org/embed:8b", operations=[pb.MODEL_OPERATION_EMBED], embedding=pb.ModelEmbedding(default_dimensions=768)
)
PICTURES = pb.Model(id="pictures", operations=[pb.MODEL_OPERATION_GENERATE_IMAGE])
UNKNOWN = pb.Model(id="host:80/model", operations=[pb.MODEL_OPERATION_GENERATE])


def listed(*models: pb.Model) -> ListResponse:
    body = TAGS.encode_list(pb.ListModelsResponse(models=models), pb.ListModelsRequest())
    return ListResponse(**msgspec.json.decode(body))


def shown(model: pb.Model) -> ShowResponse:
    return ShowResponse(**msgspec.json.decode(TAGS.encode_model(model)))


def test_each_model_has_a_name_with_a_tag() -> None:
    assert [model.model for model in listed(TEXT, VECTORS, UNKNOWN).models] == [
        "gpt-x:latest",
        "org/embed:8b",
        "host:80/model:latest",
    ]


def test_models_without_a_path_of_this_api_are_left_out() -> None:
    assert [model.model for model in listed(PICTURES).models] == []


def test_a_listed_model_states_no_size_and_a_digest_of_its_id() -> None:
    first, second = listed(TEXT, VECTORS).models
    assert (first.size, second.size) == (0, 0)
    assert len({first.digest, second.digest, listed(TEXT).models[0].digest}) == 2
    assert len(first.digest or "") == 64  # clients show the first twelve
    assert first.details is not None
    assert (first.details.family, first.details.parameter_size) == ("famO", "")


def test_a_shown_model_has_the_properties_of_the_catalogue() -> None:
    found = shown(TEXT)
    assert found.capabilities == ["completion", "tools", "vision", "thinking"]
    info = found.modelinfo or {}
    assert info[f"{info['general.architecture']}.context_length"] == 128000
    assert info[f"{info['general.architecture']}.embedding_length"] == 0
    assert [line.split() for line in (found.parameters or "").splitlines()] == [
        ["temperature", "0.7"],
        ["num_ctx", "128000"],
    ]
    assert (found.template, found.modelfile) == ("", "")


def test_unknown_properties_are_left_out() -> None:
    found = shown(UNKNOWN)
    assert (found.capabilities, found.parameters) == (["completion", "tools"], "")
    assert found.modelinfo == {"general.basename": "host:80/model"}  # koog reads both lengths of an architecture


def test_a_model_that_is_known_to_call_no_tools_has_none() -> None:
    plain = pb.Model(operations=UNKNOWN.operations, capabilities=pb.ModelCapabilities(output_modalities=["text"]))
    assert shown(plain).capabilities == ["completion"]


def test_the_name_that_editors_show_has_no_tag() -> None:
    tagged = pb.Model(id="gpt-x:latest", display_name="gpt-x:latest", operations=UNKNOWN.operations)
    assert (shown(tagged).modelinfo or {})["general.basename"] == "gpt-x"


def test_a_model_of_vectors_is_one() -> None:
    found = shown(VECTORS)
    assert (found.capabilities, (found.modelinfo or {})["unknown.embedding_length"]) == (["embedding"], 768)


def test_no_model_occupies_memory() -> None:
    body = RUNNING.encode_list(pb.ListModelsResponse(models=[TEXT]), pb.ListModelsRequest())
    assert msgspec.json.decode(body) == {"models": []}


def test_a_body_names_the_model_by_either_member() -> None:
    assert TAGS.decode_model is not None
    assert [TAGS.decode_model(body) for body in (b'{"model":"a","verbose":true}', b'{"name":"a"}')] == ["a", "a"]
    with raises_error(field="model"):
        TAGS.decode_model(b"{}")

"""Model lists checked by the types of the official SDKs, which validate nothing by themselves."""

import anthropic.types
import anthropic.types.beta
import cohere
import msgspec
import openai.types
import pytest
from google.genai import types
from pydantic import BaseModel

from tests.unit.wire.model_lists.test_lists import HERE, Case
from umg_grpc.v1 import pb
from umg_grpc.wire.model_lists import MODEL_LISTS

MODELS = Case(HERE / "described").listed().models


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.id)
@pytest.mark.parametrize(
    ("face", "kind"),
    [
        ("models", openai.types.Model),
        ("messages_models", anthropic.types.ModelInfo),
        ("messages_models", anthropic.types.beta.BetaModelInfo),
        ("cohere_models", cohere.GetModelResponse),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_model_has_all_that_the_type_requires(face: str, kind: type[BaseModel], model: pb.Model) -> None:
    made = MODEL_LISTS[face].encode_model(model)
    read = kind.model_validate_json(made)
    assert not read.model_extra
    assert set(msgspec.json.decode(made)) <= set(kind.model_fields)


def test_every_key_of_the_capabilities_is_there() -> None:
    made = msgspec.json.decode(MODEL_LISTS["messages_models"].encode_model(MODELS[0]))

    def compare(body: dict[str, object], kind: type[BaseModel]) -> None:
        assert set(body) == set(kind.model_fields)
        for name, info in kind.model_fields.items():
            inner = body[name]
            of = next(
                (
                    each
                    for each in (info.annotation, *getattr(info.annotation, "__args__", ()))
                    if isinstance(each, type) and issubclass(each, BaseModel)
                ),
                None,
            )
            if isinstance(inner, dict) and of is not None:
                compare(inner, of)

    compare(made, anthropic.types.ModelInfo)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.id)
def test_a_native_model_is_read_by_the_sdk(model: pb.Model) -> None:
    made = msgspec.json.decode(MODEL_LISTS["native_models"].encode_model(model))
    fields = {info.alias for info in types.Model.model_fields.values()}
    # the SDK has another name for the methods, and ignores the other fields of the vendor's model
    assert set(made) - fields <= {"baseModelId", "supportedGenerationMethods"}
    made.pop("baseModelId")
    made["supportedActions"] = made.pop("supportedGenerationMethods")
    assert types.Model.model_validate(made).name == f"models/{model.id}"

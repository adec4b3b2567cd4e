"""Model lists in the shapes of Ollama's API: `GET /api/tags`, `POST /api/show` and `GET /api/ps`."""

import hashlib

import msgspec

from umg_grpc.knowledge.model_id_spellings import DEFAULT_TAG
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, missing, parse
from umg_grpc.wire.model_lists.query_parameters import Query
from umg_grpc.wire.ollama.schema import ShowBody

SAMPLING_SETTINGS = ("temperature", "top_p", "top_k")
OPERATION_CAPABILITIES = {pb.MODEL_OPERATION_GENERATE: "completion", pb.MODEL_OPERATION_EMBED: "embedding"}
"""Operation -> capability in this API. Other operations have no path in it."""
DEFAULT_CAPABILITIES = pb.ModelCapabilities(tools=True)


def decode_query(_: Query) -> pb.ListModelsRequest:
    """Return a request for all models, since the shape has one page and no query parameters."""
    return pb.ListModelsRequest()


def decode_model(body: bytes) -> str:
    """Return the id of the model in a body of `POST /api/show`. Raise UmgError(MALFORMED_BODY, MISSING_FIELD)."""
    show = parse(ShowBody, body)
    if not (model := show.model or show.name):
        raise missing("model")
    return model


def encode_list(response: pb.ListModelsResponse, _: pb.ListModelsRequest) -> bytes:
    """Return the JSON body of `GET /api/tags`: the models that have a path in this API."""
    return msgspec.json.encode({"models": [_listed(model) for model in response.models if _capabilities(model)]})


def encode_running(response: pb.ListModelsResponse, _: pb.ListModelsRequest) -> bytes:
    """Return the JSON body of `GET /api/ps`. The list is empty: the gateway loads no models into memory."""
    return msgspec.json.encode({"models": []})


def encode_model(model: pb.Model) -> bytes:
    """Return the JSON body of `POST /api/show`. Members about files of the model are empty, since it has no files."""
    return msgspec.json.encode(
        {
            "modelfile": "",
            "parameters": _parameters(model),
            "template": "",
            "details": _details(model),
            "model_info": _model_info(model),
            "capabilities": _capabilities(model),
            "modified_at": model.create_time.ToJsonString(),
        }
    )


def _listed(model: pb.Model) -> JsonObject:
    """Return an element of the list. Its name has a tag: clients compare names after appending a missing tag."""
    name = model.id if ":" in model.id.rpartition("/")[2] else model.id + DEFAULT_TAG
    return {
        "name": name,
        "model": name,
        "modified_at": model.create_time.ToJsonString(),
        "size": 0,  # bytes on this machine
        "digest": hashlib.sha256(model.id.encode()).hexdigest(),
        "details": _details(model),
        "capabilities": _capabilities(model),
    }


def _details(model: pb.Model) -> JsonObject:
    details: JsonObject = {
        "parent_model": "",
        "format": "",
        "family": model.family,
        "families": [model.family] if model.family else [],
        "parameter_size": "",
        "quantization_level": "",
    }
    if model.HasField("input_token_limit"):
        details["context_length"] = model.input_token_limit
    if model.embedding.default_dimensions:
        details["embedding_length"] = model.embedding.default_dimensions
    return details


def _model_info(model: pb.Model) -> JsonObject:
    """Return the known properties by the vendor's names, whose first part is the architecture. The architecture is left
    out if the context length is unknown, since clients read both lengths where it is present (JetBrains/koog, the
    module of its Ollama client, `OllamaManagementConverters.kt`); an unknown length of vectors is 0.
    """
    architecture = model.family or "unknown"
    info: JsonObject = {"general.basename": (model.display_name or model.id).removesuffix(DEFAULT_TAG)}
    vectors = model.embedding.default_dimensions
    if model.HasField("input_token_limit"):
        info |= {"general.architecture": architecture, f"{architecture}.context_length": model.input_token_limit}
    if vectors or model.HasField("input_token_limit"):
        info[f"{architecture}.embedding_length"] = vectors
    return info


def _parameters(model: pb.Model) -> str:
    values = {field.name: value for field, value in model.sampling.ListFields() if field.name in SAMPLING_SETTINGS}
    if model.HasField("input_token_limit"):
        values["num_ctx"] = model.input_token_limit
    return "\n".join(f"{name:<30} {value}" for name, value in values.items())  # as in the vendor's files


def _capabilities(model: pb.Model) -> list[str]:
    known = model.capabilities if model.HasField("capabilities") else DEFAULT_CAPABILITIES
    given = [name for operation, name in OPERATION_CAPABILITIES.items() if operation in model.operations]
    if pb.MODEL_OPERATION_GENERATE in model.operations:
        given += ["tools"] if known.tools else []
        given += ["vision"] if "image" in known.input_modalities else []
        given += ["audio"] if "audio" in known.input_modalities else []
        given += ["thinking"] if known.reasoning != pb.REASONING_CONTROL_UNSPECIFIED else []
    return given

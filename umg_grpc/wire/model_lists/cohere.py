"""Model list in the shape of Cohere's API (cohere 7.3.1, `models/client.py` and `types/get_model_response.py`)."""

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, invalid
from umg_grpc.wire.model_lists.query_parameters import Query, page_size

DEFAULT_PAGE = 20
ENDPOINT_OPERATIONS = {
    "chat": pb.MODEL_OPERATION_GENERATE,
    "embed": pb.MODEL_OPERATION_EMBED,
    "rerank": pb.MODEL_OPERATION_RERANK,
}
"""Endpoint of the vendor's API -> operation, for the endpoints that the gateway serves."""
SAMPLING_MEMBERS = {"temperature": "temperature", "top_p": "p", "top_k": "k"}
LIFECYCLES_OF_DEPRECATED = (pb.MODEL_LIFECYCLE_DEPRECATED, pb.MODEL_LIFECYCLE_RETIRED)


def decode_query(query: Query) -> pb.ListModelsRequest:
    """Return the page that the query parameters select: `page_size` (default 20), `page_token`, and `endpoint`, which
    each model of the page must support. Raise UmgError(INVALID_FIELD) naming the parameter.
    """
    given = query.get("page_size")
    sizes = {} if given is None else {"page_size": given.removesuffix(".0")}  # a number of any kind in the SDKs
    request = pb.ListModelsRequest(page_size=page_size(sizes, ("page_size",), DEFAULT_PAGE))
    if token := query.get("page_token"):
        request.page_token = token
    if (endpoint := query.get("endpoint")) is not None:
        if endpoint not in ENDPOINT_OPERATIONS:
            raise invalid(
                "endpoint", f"expected {', '.join(ENDPOINT_OPERATIONS)}, which are served here; correct its value"
            )
        request.operation = ENDPOINT_OPERATIONS[endpoint]
    if query.get("default_only", "false").lower() not in ("false", "0"):
        raise invalid("default_only", "no model is the default of an endpoint here; leave it out and name a model")
    return request


def encode_list(response: pb.ListModelsResponse, _: pb.ListModelsRequest) -> bytes:
    """Return the JSON body of a page of models."""
    listed: JsonObject = {"models": [_model(model) for model in response.models]}
    if response.next_page_token:
        listed["next_page_token"] = response.next_page_token
    return msgspec.json.encode(listed)


def encode_model(model: pb.Model) -> bytes:
    """Return the JSON body for one model."""
    return msgspec.json.encode(_model(model))


def _model(model: pb.Model) -> JsonObject:
    found: JsonObject = {
        "name": model.id,
        "is_deprecated": model.lifecycle in LIFECYCLES_OF_DEPRECATED,
        "endpoints": [name for name, operation in ENDPOINT_OPERATIONS.items() if operation in model.operations],
        "finetuned": False,
        "tokenizer_url": None,  # of files of the vendor
        "default_endpoints": [],
        "features": _features(model) if model.HasField("capabilities") else None,
    }
    if model.HasField("input_token_limit"):
        found["context_length"] = model.input_token_limit
    if values := {
        SAMPLING_MEMBERS[field.name]: value
        for field, value in model.sampling.ListFields()
        if field.name in SAMPLING_MEMBERS
    }:
        found["sampling_defaults"] = values
    return found


def _features(model: pb.Model) -> list[str]:
    known = model.capabilities
    words = {
        "tools": known.tools,
        "json_schema": known.structured_output,
        "vision": "image" in known.input_modalities,
        "reasoning": known.reasoning != pb.REASONING_CONTROL_UNSPECIFIED,
    }
    return [word for word, is_known in words.items() if is_known]

"""Model list in the shape of the messages format, with all fields that the types of SDKs require."""

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, invalid
from umg_grpc.wire.core.model_list_page_token import decode_token, encode_token, page_after, page_before
from umg_grpc.wire.model_lists.query_parameters import Query, page_size

DEFAULT_PAGE = 20
LIFECYCLE_NAMES = {
    pb.MODEL_LIFECYCLE_UNSPECIFIED: "active",
    pb.MODEL_LIFECYCLE_ACTIVE: "active",
    pb.MODEL_LIFECYCLE_DEPRECATED: "deprecated",
    pb.MODEL_LIFECYCLE_RETIRED: "retired",
}


NOT_SUPPORTED: JsonObject = {"supported": False}
IS_SUPPORTED: JsonObject = {"supported": True}
# Edits that shorten a conversation: the gateway makes two types for every provider.
CONTEXT_MANAGEMENT: JsonObject = {
    "supported": True,
    "clear_thinking_20251015": IS_SUPPORTED,
    "clear_tool_uses_20250919": IS_SUPPORTED,
    "compact_20260112": NOT_SUPPORTED,
}


def decode_query(query: Query) -> pb.ListModelsRequest:
    """Return the page that `limit` (default 20), `after_id` or `before_id` select. Raise UmgError(INVALID_FIELD)."""
    after, before = query.get("after_id", ""), query.get("before_id", "")
    if after and before:
        raise invalid("before_id", "a page begins after `after_id` or ends before `before_id`; send one of them")
    request = pb.ListModelsRequest(page_size=page_size(query, ("limit",), DEFAULT_PAGE))
    if after or before:
        request.page_token = encode_token(page_after(after) if after else page_before(before))
    return request


def encode_list(response: pb.ListModelsResponse, request: pb.ListModelsRequest) -> bytes:
    """Return the body of a page of models. `has_more`: whether there are more models in the request's direction."""
    back = decode_token(request.page_token).back
    more = response.previous_page_token if back else response.next_page_token
    models = response.models
    listed: JsonObject = {
        "data": [_model(model) for model in models],
        "has_more": bool(more),
        "first_id": models[0].id if models else None,
        "last_id": models[-1].id if models else None,
    }
    return msgspec.json.encode(listed)


def encode_model(model: pb.Model) -> bytes:
    """Return the JSON body for one model."""
    return msgspec.json.encode(_model(model))


def _model(model: pb.Model) -> JsonObject:
    return {
        "type": "model",
        "id": model.id,
        "display_name": model.display_name or model.id,
        "created_at": model.create_time.ToJsonString(),
        "lifecycle": LIFECYCLE_NAMES.get(model.lifecycle, "active"),
        "deprecated_at": None,  # not known
        "retires_at": model.retire_time.ToJsonString() if model.HasField("retire_time") else None,
        "line": None,  # only the vendor's own models have one
        "max_input_tokens": model.input_token_limit if model.HasField("input_token_limit") else None,
        "max_tokens": model.output_token_limit if model.HasField("output_token_limit") else None,
        "capabilities": _capabilities(model) if model.HasField("capabilities") else None,
    }


def _support(supported: bool) -> JsonObject:
    return {"supported": supported}


def _capabilities(model: pb.Model) -> JsonObject:
    """Return the JSON object for a model's capabilities. It has all keys that the SDKs' types require."""
    known = model.capabilities
    search = _support(known.search)
    # An effort also sets a level or a budget; a model that can only be switched on and off has no efforts.
    effort = _support(known.reasoning in (pb.REASONING_CONTROL_BUDGET, pb.REASONING_CONTROL_LEVEL))
    return {
        "batch": NOT_SUPPORTED,
        "citations": search,
        "code_execution": NOT_SUPPORTED,
        "context_management": CONTEXT_MANAGEMENT,
        "effort": effort
        | dict.fromkeys(("low", "medium", "high"), effort)
        | dict.fromkeys(("xhigh", "max"), NOT_SUPPORTED),
        "image_input": _support("image" in known.input_modalities),
        "pdf_input": _support("file" in known.input_modalities),
        "server_tools": {**search, "web_search": search, "code_execution": NOT_SUPPORTED},
        "structured_outputs": _support(known.structured_output),
        "thinking": _thinking(model),
    }


def _thinking(model: pb.Model) -> JsonObject:
    reasons = _support(model.capabilities.reasoning != pb.REASONING_CONTROL_UNSPECIFIED)
    taken = _support(pb.MODEL_OPERATION_GENERATE in model.operations)
    return {**reasons, "types": {"adaptive": reasons, "between_tools": taken, "disabled": taken, "enabled": reasons}}

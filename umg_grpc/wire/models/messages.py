"""The model list in the messages shape (text formats, 3.7), with all that current SDK types require (readings, 14)."""

from typing import Literal, TypeAlias

import msgspec
from google.protobuf.timestamp_pb2 import Timestamp

from umg_grpc.v1 import pb
from umg_grpc.wire.json import invalid
from umg_grpc.wire.models.query import Query, page_size

Lifecycle: TypeAlias = Literal["active", "deprecated", "retired"]

DEFAULT_PAGE = 20
LIFECYCLES: "dict[pb.ModelLifecycle.ValueType, Lifecycle]" = {
    pb.MODEL_LIFECYCLE_UNSPECIFIED: "active",
    pb.MODEL_LIFECYCLE_ACTIVE: "active",
    pb.MODEL_LIFECYCLE_DEPRECATED: "deprecated",
    pb.MODEL_LIFECYCLE_RETIRED: "retired",
}


class Support(msgspec.Struct, frozen=True):
    """Whether a model can do something."""

    supported: bool


NO = Support(supported=False)


class ContextManagement(msgspec.Struct, kw_only=True, frozen=True):
    """Strategies by which a provider shortens a conversation: none, `context_management` is dropped (readings, 6)."""

    supported: bool = False
    clear_thinking_20251015: Support = NO
    clear_tool_uses_20250919: Support = NO
    compact_20260112: Support = NO


class Effort(msgspec.Struct, kw_only=True):
    """Which values of `output_config.effort` make a difference."""

    supported: bool
    low: Support
    medium: Support
    high: Support
    xhigh: Support = NO
    max: Support = NO


class ServerTools(msgspec.Struct, kw_only=True):
    """Tools that the provider executes."""

    supported: bool
    web_search: Support
    code_execution: Support = NO


class ThinkingTypes(msgspec.Struct, kw_only=True):
    """Which values of `thinking.type` a model takes."""

    adaptive: Support
    between_tools: Support
    disabled: Support
    enabled: Support


class Thinking(msgspec.Struct, kw_only=True):
    """Whether a model reasons, and how that is asked for."""

    supported: bool
    types: ThinkingTypes


class Capabilities(msgspec.Struct, kw_only=True):
    """What a model can do. Every key that the SDKs know is there."""

    batch: Support = NO
    citations: Support
    code_execution: Support = NO
    context_management: ContextManagement = ContextManagement()
    effort: Effort
    image_input: Support
    pdf_input: Support
    server_tools: ServerTools
    structured_outputs: Support
    thinking: Thinking


class MessagesModel(msgspec.Struct, kw_only=True):
    """A model. Times are RFC 3339 in UTC."""

    type: Literal["model"] = "model"
    id: str
    display_name: str
    created_at: str
    """The epoch where nobody said: it is required, and the SDKs' types name that value for it."""
    lifecycle: Lifecycle
    deprecated_at: str | None = None  # not known
    retires_at: str | None
    line: str | None = None  # of the vendor's own models
    max_input_tokens: int | None
    max_tokens: int | None
    capabilities: Capabilities | None
    """null where nothing is known of it."""


class MessagesModelList(msgspec.Struct, kw_only=True):
    """Body of `GET /v1/models`. The ids are those by which `before_id` and `after_id` go on."""

    data: list[MessagesModel]
    has_more: bool
    first_id: str | None
    last_id: str | None


def decode_query(query: Query) -> pb.ListModelsRequest:
    """`limit` (20 unless given) and `after_id` or `before_id`. Raises UmgError(INVALID_FIELD) naming the parameter."""
    after, before = query.get("after_id", ""), query.get("before_id", "")
    if after and before:
        raise invalid("before_id", "a page stands behind `after_id` or before `before_id`; send one of them")
    asked = pb.ListModelsRequest(page_size=page_size(query, ("limit",), DEFAULT_PAGE))
    if after:
        asked.after_id = after
    if before:
        asked.before_id = before
    return asked


def encode_list(response: pb.ListModelsResponse, asked: pb.ListModelsRequest) -> bytes:
    """The body that lists the models. `has_more` is of the direction in which the caller goes."""
    more = response.previous_page_token if asked.HasField("before_id") else response.next_page_token
    models = response.models
    listed = MessagesModelList(
        data=[_model(model) for model in models],
        has_more=bool(more),
        first_id=models[0].id if models else None,
        last_id=models[-1].id if models else None,
    )
    return msgspec.json.encode(listed)


def encode_model(model: pb.Model) -> bytes:
    """The body that describes one model."""
    return msgspec.json.encode(_model(model))


def _model(model: pb.Model) -> MessagesModel:
    return MessagesModel(
        id=model.id,
        display_name=model.display_name or model.id,
        created_at=_time(model.create_time),
        lifecycle=LIFECYCLES.get(model.lifecycle, "active"),
        retires_at=_time(model.retire_time) if model.HasField("retire_time") else None,
        max_input_tokens=model.input_token_limit if model.HasField("input_token_limit") else None,
        max_tokens=model.output_token_limit if model.HasField("output_token_limit") else None,
        capabilities=_capabilities(model) if model.HasField("capabilities") else None,
    )


def _time(time: Timestamp) -> str:
    return time.ToJsonString()


def _capabilities(model: pb.Model) -> Capabilities:
    known = model.capabilities
    control, search = known.reasoning, Support(known.search)
    # a level and a budget are asked for by an effort too; what is switched on and off knows none
    effort = Support(control in (pb.REASONING_CONTROL_BUDGET, pb.REASONING_CONTROL_LEVEL))
    return Capabilities(
        citations=search,
        effort=Effort(supported=effort.supported, low=effort, medium=effort, high=effort),
        image_input=Support("image" in known.input_modalities),
        pdf_input=Support("file" in known.input_modalities),
        server_tools=ServerTools(supported=search.supported, web_search=search),
        structured_outputs=Support(known.structured_output),
        thinking=_thinking(model),
    )


def _thinking(model: pb.Model) -> Thinking:
    """Two of the types are false only where a request that sends them is refused, say the SDKs' types: of models that
    make texts none is.
    """
    reasons = Support(model.capabilities.reasoning != pb.REASONING_CONTROL_UNSPECIFIED)
    taken = Support(pb.MODEL_OPERATION_GENERATE in model.operations)
    return Thinking(
        supported=reasons.supported,
        types=ThinkingTypes(adaptive=reasons, between_tools=taken, disabled=taken, enabled=reasons),
    )

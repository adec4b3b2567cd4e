"""Encoding of a canonical request as the body of a messages provider: its prompt, tools and options."""

from collections.abc import Collection
from typing import assert_never

from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.prompt_cache_breakpoints import is_explicit
from umg_grpc.wire.dropped_fields_report import Report, untranslatable
from umg_grpc.wire.messages.automatic_cache_marks import is_marked, mark_end, mark_prompt
from umg_grpc.wire.messages.cache_control import encode_cache
from umg_grpc.wire.messages.encode_messages import MessageEncoder
from umg_grpc.wire.messages.provider_tool_names import tool_names
from umg_grpc.wire.messages.reasoning_options import MIN_TOP_P, Plan, disable_if_rejected, limit_budget, plan_reasoning
from umg_grpc.wire.messages.structured_output import encode_json_format
from umg_grpc.wire.messages.tools import encode_tools
from umg_grpc.wire.model_quirks import SAMPLING_FIELDS, end_user, output_limit, rejected_sampling, supports_reasoning

SERVICE_TIERS = ("auto", "standard_only")

DEFAULT_MAX_TOKENS = 4096  # used for a model without a known limit, since `max_tokens` is required


def encode_fields(request: pb.GenerateRequest, report: Report, quirks: Quirks) -> JsonObject:
    """Return the body except `model` and `stream`. Raise UmgError(UNTRANSLATABLE, UNSUPPORTED_FIELD) for content that
    this format cannot express.
    """
    names = tool_names(request)
    tools = encode_tools(request, names, report, quirks)
    turns = MessageEncoder(request, names, report, quirks)
    output = _encode_format(request, turns, report, quirks)
    listed = tools.get("tools")
    prompt = turns.encode(listed if isinstance(listed, list) else [])
    thinking = plan_reasoning(request, report, quirks) if supports_reasoning(request, quirks, report) else Plan()
    planned = disable_if_rejected(thinking, _forced(tools), turns.lacks_reasoning, report)
    limit, planned = fit_output_limit(output_limit(request, quirks, report), planned, request, report, quirks)
    if planned.effort:
        output["effort"] = planned.effort
    fields: JsonObject = {"max_tokens": limit, **prompt, **tools}
    if planned.switch is not None:
        fields["thinking"] = planned.switch
    if output:
        fields["output_config"] = output
    fields |= _encode_sampling(request, planned, report, quirks)
    if quirks.cache_marks and not is_explicit(request):
        if not is_marked(fields):
            mark_prompt(fields)
        # breakpoints beside the one that providers of the caller's format set themselves
        elif request.source.format not in {"", "messages"}:
            mark_end(fields)
    return fields


def _forced(tools: JsonObject) -> bool:
    choice = tools.get("tool_choice")
    return isinstance(choice, dict) and choice["type"] in {"any", "tool"}


def _encode_format(request: pb.GenerateRequest, turns: MessageEncoder, report: Report, quirks: Quirks) -> JsonObject:
    """Return `output_config` with the required JSON schema; {} without one. A line at the end of the system prompt
    requires JSON if the provider cannot enforce the schema, or if any JSON is required.
    """
    form = request.response_format
    match form.WhichOneof("kind"):
        case "json" | "json_schema":
            config, instruction = encode_json_format(request, report, quirks)
            if instruction:
                turns.append_instruction(instruction)
            return config
        case "enum_text":
            raise untranslatable("response_format", "this model's provider has no bare enum; request JSON")
        case "text" | None:
            pass
        case unhandled:
            assert_never(unhandled)
    return {}


def fit_output_limit(
    requested: int | None, planned: Plan, request: pb.GenerateRequest, report: Report, quirks: Quirks
) -> tuple[int, Plan]:
    """Return (`max_tokens`, plan, with fewer reasoning tokens if the model's limit requires it). Reasoning tokens count
    as output, so a caller's limit (`requested`) below the reasoning budget is raised, and reported.
    """
    maximum = quirks.max_output_tokens
    default = min(filter(None, (maximum, quirks.default_output_tokens)), default=DEFAULT_MAX_TOKENS)
    limit = requested if requested is not None else default
    if limit > planned.budget:
        return limit, planned
    raised = planned.budget + limit
    if maximum is not None and raised > maximum:
        planned = limit_budget(planned, maximum - min(limit, maximum // 2), request.reasoning, report)
        raised = maximum if planned.budget else limit
    if requested is not None and raised != requested:
        report.drop("max_output_tokens", str(raised))
    return raised, planned


def _encode_sampling(request: pb.GenerateRequest, planned: Plan, report: Report, quirks: Quirks) -> JsonObject:
    fields = encode_sampling_numbers(request, planned, report, rejected_sampling(request, quirks, report))
    if stops := request.stop_sequences[: quirks.max_stop_sequences]:
        fields["stop_sequences"] = list(stops)
    if request.user:
        fields["metadata"] = {"user_id": end_user(request, quirks, report)}
    if request.service_tier in SERVICE_TIERS:
        fields["service_tier"] = request.service_tier
    elif request.service_tier:
        report.drop("service_tier")  # a tier that only another format has
    if request.HasField("cache_control"):
        fields["cache_control"] = encode_cache(request.cache_control)
    return fields


def encode_sampling_numbers(
    request: pb.GenerateRequest, planned: Plan, report: Report, rejected: Collection[str]
) -> JsonObject:
    """Return temperature, top_p and top_k. Providers reject most values with reasoning (`planned`): these are left out
    and reported. `rejected`: names that are always left out, and were reported before.
    """
    fields: JsonObject = {}
    stated = [name for name in SAMPLING_FIELDS if request.HasField(name) and name not in rejected]
    if "temperature" in stated and (not planned.on or request.temperature == 1):
        fields["temperature"] = min(request.temperature, 1)
    if "temperature" in stated and fields.get("temperature") != request.temperature:
        report.drop("temperature", "1")
    if "top_p" in stated and not (planned.on and request.top_p < MIN_TOP_P):
        fields["top_p"] = request.top_p
    elif "top_p" in stated:
        report.drop("top_p")
    if "top_k" in stated and not planned.on:
        fields["top_k"] = int(request.top_k) if request.top_k.is_integer() else request.top_k
    elif "top_k" in stated:
        report.drop("top_k")
    return fields

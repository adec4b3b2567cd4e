"""The fields of a provider's body that say what a canonical request does."""

from umg_grpc.quirks import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.json import JsonObject
from umg_grpc.wire.messages.cache_marks import is_marked, mark_prompt
from umg_grpc.wire.messages.names import tool_names
from umg_grpc.wire.messages.thinking import LEAST_TOP_P, Plan, allowed, plan, within
from umg_grpc.wire.messages.tools import encode_cache, encode_tools
from umg_grpc.wire.messages.turns import TurnEncoder
from umg_grpc.wire.quirks import end_user, output_limit, takes_reasoning, takes_sampling
from umg_grpc.wire.report import Report, untranslatable
from umg_grpc.wire.schemas import json_schema

SERVICE_TIERS = ("auto", "standard_only")

DEFAULT_MAX_TOKENS = 4096  # `max_tokens` is required; of a model of which no limit is known

ANY_JSON = "Answer with one JSON value and nothing else: no words around it, no code fence."


def encode_fields(request: pb.GenerateRequest, report: Report, quirks: Quirks = NO_QUIRKS) -> JsonObject:
    """All fields save `model` and `stream`. Raises UmgError(UNTRANSLATABLE, UNSUPPORTED_FIELD)."""
    names = tool_names(request)
    tools = encode_tools(request, names, report, quirks)
    turns = TurnEncoder(request, names, report)
    output = _encode_format(request, turns, report)
    listed = tools.get("tools")
    prompt = turns.encode(listed if isinstance(listed, list) else [])
    thinking = plan(request, report, quirks) if takes_reasoning(request, quirks, report) else Plan()
    made = allowed(thinking, _forced(tools), turns.unthought, report)
    limit, made = _max_tokens(request, made, report, quirks)
    if made.effort:
        output["effort"] = made.effort
    fields: JsonObject = {"max_tokens": limit, **prompt, **tools}
    if made.switch is not None:
        fields["thinking"] = made.switch
    if output:
        fields["output_config"] = output
    fields |= _encode_sampling(request, made, report, quirks)
    if quirks.cache_marks and not is_marked(fields):
        mark_prompt(fields)
    return fields


def _forced(tools: JsonObject) -> bool:
    choice = tools.get("tool_choice")
    return isinstance(choice, dict) and choice["type"] in {"any", "tool"}


def _encode_format(request: pb.GenerateRequest, turns: TurnEncoder, report: Report) -> JsonObject:
    """`output_config` with the form of the answer. "Any JSON" is a line of the system prompt."""
    form = request.response_format
    match form.WhichOneof("kind"):
        case "json_schema" if form.json_schema.schema_json:
            described = form.json_schema
            for name in ("name", "description"):
                if getattr(described, name):
                    report.drop(f"response_format.json_schema.{name}")
            if described.HasField("strict") and not described.strict:
                report.drop("response_format.json_schema.strict")  # it always is
            at = "response_format.json_schema.schema_json"
            schema = json_schema(described.schema_json, described.native_schema, at)
            return {"format": {"type": "json_schema", "schema": schema}}
        case "json" | "json_schema":
            turns.instruct(ANY_JSON)
            report.drop("response_format", "a line of the system prompt")
        case "enum_text":
            raise untranslatable("response_format", "this model's provider has no bare enum; ask for JSON")
    return {}


def _max_tokens(request: pb.GenerateRequest, made: Plan, report: Report, quirks: Quirks) -> tuple[int, Plan]:
    """Return the limit of the answer, and the plan with as many tokens to think as fit below the model's own limit.

    The tokens to think count as a part of the answer: a limit that does not hold them is raised.
    """
    most, said = quirks.max_output_tokens, output_limit(request, quirks, report)
    limit = said if said is not None else most or quirks.default_output_tokens or DEFAULT_MAX_TOKENS
    if limit > made.budget:
        return limit, made
    raised = made.budget + limit
    if most is not None and raised > most:
        made = within(made, most - min(limit, most // 2), request.reasoning, report)
        raised = most if made.budget else limit
    if said is not None and raised != said:
        report.drop("max_output_tokens", str(raised))
    return raised, made


def _encode_sampling(request: pb.GenerateRequest, made: Plan, report: Report, quirks: Quirks) -> JsonObject:
    fields = _sampled(request, made, report) if takes_sampling(request, quirks, report) else JsonObject()
    if request.stop_sequences:
        fields["stop_sequences"] = list(request.stop_sequences)
    if request.user:
        fields["metadata"] = {"user_id": end_user(request, quirks, report)}
    if request.service_tier in SERVICE_TIERS:
        fields["service_tier"] = request.service_tier
    elif request.service_tier:
        report.drop("service_tier")  # another format's word
    if request.HasField("cache_control"):
        fields["cache_control"] = encode_cache(request.cache_control)
    return fields


def _sampled(request: pb.GenerateRequest, made: Plan, report: Report) -> JsonObject:
    """Return temperature, top_p and top_k, as far as they are taken beside thinking."""
    fields: JsonObject = {}
    if request.HasField("temperature") and (not made.on or request.temperature == 1):
        fields["temperature"] = min(request.temperature, 1)
    if request.HasField("temperature") and fields.get("temperature") != request.temperature:
        report.drop("temperature", "1")
    if request.HasField("top_p") and not (made.on and request.top_p < LEAST_TOP_P):
        fields["top_p"] = request.top_p
    elif request.HasField("top_p"):
        report.drop("top_p")
    if request.HasField("top_k") and not made.on:
        fields["top_k"] = int(request.top_k) if request.top_k.is_integer() else request.top_k
    elif request.HasField("top_k"):
        report.drop("top_k")
    return fields

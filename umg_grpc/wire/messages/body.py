"""The fields of a provider's body that say what a canonical request does."""

from umg_grpc.v1 import pb
from umg_grpc.wire.json import JsonObject
from umg_grpc.wire.messages.names import tool_names
from umg_grpc.wire.messages.thinking import LEAST_TOP_P, Plan, allowed, plan
from umg_grpc.wire.messages.tools import encode_cache, encode_tools
from umg_grpc.wire.messages.turns import TurnEncoder
from umg_grpc.wire.report import Report, untranslatable
from umg_grpc.wire.schemas import json_schema

SERVICE_TIERS = ("auto", "standard_only")

# Limits of models that are known by a part of their id: `max_tokens` is required, so without one the model's own stands
# there. The first that fits wins.
MAX_TOKENS = (
    ("claude-3-5", 8192),
    ("claude-3-7", 64000),
    ("claude-3-", 4096),
    ("claude-opus-4-0", 32000),
    ("claude-opus-4-1", 32000),
    ("claude-opus-4-2", 32000),  # by its date
    ("claude-", 64000),
)
DEFAULT_MAX_TOKENS = 4096

ANY_JSON = "Answer with one JSON value and nothing else: no words around it, no code fence."


def encode_fields(request: pb.GenerateRequest, model: str, report: Report) -> JsonObject:
    """All fields save `model` and `stream`. Raises UmgError(UNTRANSLATABLE, UNSUPPORTED_FIELD)."""
    names = tool_names(request)
    tools = encode_tools(request, names, report)
    turns = TurnEncoder(request, names, report)
    output = _encode_format(request, turns, report)
    listed = tools.get("tools")
    prompt = turns.encode(listed if isinstance(listed, list) else [])
    made = allowed(plan(request, report), _forced(tools), turns.unthought, report)
    if made.effort:
        output["effort"] = made.effort
    fields: JsonObject = {"max_tokens": _max_tokens(request, model, made, report), **prompt, **tools}
    if made.switch is not None:
        fields["thinking"] = made.switch
    if output:
        fields["output_config"] = output
    return fields | _encode_sampling(request, made, report)


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


def _max_tokens(request: pb.GenerateRequest, model: str, made: Plan, report: Report) -> int:
    """More than the tokens to think: those count as a part of the answer."""
    if not request.HasField("max_output_tokens"):
        limit = next((tokens for part, tokens in MAX_TOKENS if part in model), DEFAULT_MAX_TOKENS)
        return limit if limit > made.budget else made.budget + limit
    if request.max_output_tokens > made.budget:
        return request.max_output_tokens
    raised = made.budget + request.max_output_tokens
    report.drop("max_output_tokens", str(raised))
    return raised


def _encode_sampling(request: pb.GenerateRequest, made: Plan, report: Report) -> JsonObject:
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
    if request.stop_sequences:
        fields["stop_sequences"] = list(request.stop_sequences)
    if request.user:
        fields["metadata"] = {"user_id": request.user}
    if request.service_tier in SERVICE_TIERS:
        fields["service_tier"] = request.service_tier
    elif request.service_tier:
        report.drop("service_tier")  # another format's word
    if request.HasField("cache_control"):
        fields["cache_control"] = encode_cache(request.cache_control)
    return fields

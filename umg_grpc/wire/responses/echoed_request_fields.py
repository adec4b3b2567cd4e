"""Members of a response object that repeat its request's options, and members that the gateway always sets to null."""

from typing import Literal, get_args

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, json_text, parse
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.responses import schema
from umg_grpc.wire.responses.content_parts import BETWEEN_TEXTS
from umg_grpc.wire.responses.encode_options import TRUNCATION_NAMES, encode_prompt, encode_text
from umg_grpc.wire.responses.tool_choice import choice_of
from umg_grpc.wire.responses.tools import repeated_tools

DEFAULT_TEMPERATURE, TOP_P = 1.0, 0.98  # text document, "POST /v1/responses": the values of our own providers
SERVICE_TIER, DEFAULT_VERBOSITY = "default", "medium"  # as its vendor repeats them for a request without them
CACHE_OPTIONS: JsonObject = {"mode": "implicit", "ttl": "30m"}  # the SDK's defaults

# Members of current SDK types that only one provider fills.
ALWAYS_NULL: JsonObject = {
    "access_programs": None,
    "image": None,
    "input_transformations": None,
    "moderation": None,
    "prompt_cache_diagnostics": None,
    "tool_usage": None,
}
SERVICE_TIERS = get_args(schema.ServiceTier)
OptionalNumber = Literal["max_output_tokens", "max_tool_calls"]


def encode_echo(request: pb.GenerateRequest, head: pb.GenerateResponse | pb.GenerationStarted) -> bytes:
    """Return the members that repeat the request, as JSON without the outer braces: every field of the current SDK
    types. A dropped option is null. `head`: the response, which states whether it is stored.
    """
    stored = head.stored if head.HasField("stored") else not request.HasField("store") or request.store
    return msgspec.json.encode(_members(request, stored=stored))[1:-1]


def service_tier(tier: str) -> str:
    """Return a provider's service tier if this format has it, else the default: the format's schema allows no null."""
    return tier if tier in SERVICE_TIERS else SERVICE_TIER


def _members(request: pb.GenerateRequest, *, stored: bool) -> JsonObject:
    conversation = request.conversation_id
    instructions = BETWEEN_TEXTS.join(part.text.text for part in request.instructions)
    choice = choice_of(request) if request.HasField("tool_choice") else None
    return {
        "background": False,
        "conversation": {"id": conversation} if conversation else None,
        "frequency_penalty": 0.0,  # no request of this format has penalties; its schema requires them in responses
        "instructions": instructions or None,
        "max_output_tokens": _optional(request, "max_output_tokens"),
        "max_tool_calls": _optional(request, "max_tool_calls"),
        "metadata": dict(request.metadata),
        "parallel_tool_calls": not request.HasField("parallel_tool_calls") or request.parallel_tool_calls,
        "presence_penalty": 0.0,
        "previous_response_id": request.previous_response_id or None,
        "prompt": _prompt(request),
        "prompt_cache_key": request.prompt_cache_key or None,
        "prompt_cache_options": _cache_options(request),
        "prompt_cache_retention": request.prompt_cache_retention or None,
        "reasoning": _reasoning(request),
        "safety_identifier": request.safety_identifier or None,
        "store": stored,
        "temperature": request.temperature if request.HasField("temperature") else DEFAULT_TEMPERATURE,
        "text": _text(request),
        "tool_choice": "auto" if choice is None else choice,
        "tools": repeated_tools(request),
        "top_logprobs": request.top_logprobs,
        "top_p": request.top_p if request.HasField("top_p") else TOP_P,
        "truncation": TRUNCATION_NAMES.get(request.truncation, "disabled"),
        "user": request.user or None,
        **ALWAYS_NULL,
    }


def _optional(request: pb.GenerateRequest, name: OptionalNumber) -> object:
    return getattr(request, name) if request.HasField(name) else None


def _prompt(request: pb.GenerateRequest) -> JsonObject | None:
    if not request.HasField("prompt_template"):
        return None
    return {"version": None, "variables": None, **encode_prompt(request.prompt_template)}


def _cache_options(request: pb.GenerateRequest) -> JsonObject | None:
    given = request.prompt_cache_options_json
    if not given:
        return None
    members = parse(dict[str, Raw], msgspec.json.encode(json_text(given, "prompt_cache_options_json")))
    return CACHE_OPTIONS | {name: value for name, value in members.items() if name in CACHE_NAMES}


CACHE_NAMES = (*CACHE_OPTIONS, "comparison_response_id")


def _reasoning(request: pb.GenerateRequest) -> JsonObject:
    options = request.reasoning
    summary = options.summary if options.summary != "none" else ""
    return {
        "effort": options.effort or None,
        "summary": summary or None,
        "generate_summary": None,
        "context": None,
        "mode": None,
    }


def _text(request: pb.GenerateRequest) -> JsonObject:
    encoded: JsonObject = {"format": {"type": "text"}, "verbosity": DEFAULT_VERBOSITY}
    if request.response_format.WhichOneof("kind") == "enum_text":
        return encoded
    return encoded | encode_text(request, Report())

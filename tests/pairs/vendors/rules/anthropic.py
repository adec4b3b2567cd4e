"""Rules of Anthropic's messages, also on Bedrock."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from anthropic.lib._parse._transform import transform_schema

from tests.pairs.vendors.refusal import LEVELS, Json, Rules, VendorCall
from tests.support.providers.messages import Messages
from tests.support.providers.server import ReceivedRequest, RefusedError

SAMPLING = ("temperature", "top_p", "top_k")
OLD, NEW = "2023-06-01", "2026-10-21"
VERSIONS = {"anthropic": (OLD, NEW), "bedrock-anthropic": (OLD, NEW, "bedrock-2023-05-31")}
OPEN = {"properties", "$defs"}
"""Keywords whose members have names of the caller."""


def messages(call: VendorCall) -> Rules:
    """Yield the refusals of a body of messages."""
    body = call.body
    yield from _judge_version(call)
    yield from _judge_sampling(call)
    yield from _judge_thinking(call)
    choice = (body.get("tool_choice") or {}).get("type")
    if choice in ("any", "tool") and call.flags.get("supports_forced_tool_use") is False:
        yield call.refuse("anthropic.forced-tool")
    if call.limit is not None and body.get("max_tokens", 0) > call.limit:
        yield call.refuse("anthropic.limit", value=body["max_tokens"])
    yield from _judge_turns(call)
    yield from _judge_schemas(call)
    names = Counter(tool.get("name") for tool in body.get("tools") or ())
    if names and names.most_common(1)[0][1] > 1:
        yield call.refuse("anthropic.tool-names")
    try:
        headers = {"anthropic-version": OLD, **call.headers}
        Messages().read(ReceivedRequest("POST", "", {}, headers, call.raw))
    except RefusedError as refused:
        yield call.refuse("anthropic.shape", at=refused.at or "", value=refused.message)


def _judge_version(call: VendorCall) -> Rules:
    version = call.headers.get("anthropic-version", OLD)
    if version not in VERSIONS[call.vendor]:
        yield call.refuse("anthropic.version", value=version)
    if version == NEW:
        for name in SAMPLING:
            if name in call.body:
                yield call.refuse("anthropic.version-sampling", at=name)


def _judge_sampling(call: VendorCall) -> Rules:
    sent = [name for name in SAMPLING if call.body.get(name) is not None]
    if sent and call.flags.get("supports_sampling_params") is False:
        yield call.refuse("anthropic.sampling", at=sent[0])
    if "temperature" in sent and "top_p" in sent:
        yield call.refuse("anthropic.one-of-two")


def _judge_thinking(call: VendorCall) -> Rules:
    flags = call.flags
    thinking = (call.body.get("thinking") or {}).get("type")
    effort = (call.body.get("output_config") or {}).get("effort")
    if thinking == "disabled" and flags.get("thinking_always_on"):
        yield call.refuse("anthropic.disabled")
    too_high = LEVELS[LEVELS.index(call.fact.off_below) :] if call.fact.off_below else ()
    if thinking == "disabled" and effort in too_high:
        yield call.refuse("anthropic.disabled-effort", value=effort)
    if thinking == "enabled" and flags.get("supports_adaptive_thinking") and not flags.get("supports_legacy_thinking"):
        yield call.refuse("anthropic.budget")
    if thinking == "adaptive" and not flags.get("supports_adaptive_thinking"):
        yield call.refuse("anthropic.adaptive")
    if effort is None:
        return
    if not flags.get("supports_output_config"):
        yield call.refuse("anthropic.effort")
    elif effort not in call.efforts:
        yield call.refuse("anthropic.effort-level", value=effort, values=", ".join(call.efforts))


def _judge_turns(call: VendorCall) -> Rules:
    turns = call.messages
    if turns and turns[-1].get("role") == "assistant" and call.flags.get("supports_assistant_prefill") is False:
        yield call.refuse("anthropic.prefill")
    if not call.flags.get("supports_mid_conversation_system"):
        for index, turn in enumerate(turns):
            if turn.get("role") == "system":
                yield call.refuse("anthropic.system-turn", at=index)
    blocks = (block for turn in turns for block in turn["content"] if isinstance(turn.get("content"), list))
    ids = Counter(block["id"] for block in blocks if block.get("type") == "tool_use")
    if any(count > 1 for count in ids.values()):
        yield call.refuse("anthropic.call-ids")


def _judge_schemas(call: VendorCall) -> Rules:
    wanted = ((call.body.get("output_config") or {}).get("format") or {}).get("schema")
    strict = [tool.get("input_schema") for tool in call.body.get("tools") or () if tool.get("strict")]
    for schema in (wanted, *strict):
        if isinstance(schema, dict):
            for at, of, member in lost(schema, "schema"):
                if member == "additionalProperties":
                    yield call.refuse("anthropic.schema-closed", at=at)
                else:
                    yield call.refuse("anthropic.schema", at=at, value=of, member=member)


def lost(schema: Json, at: str) -> Iterator[tuple[str, Any, str]]:
    """Yield (place, type, keyword) of all that the SDK's own transformation of schemas would change."""
    if "$ref" in schema:
        members = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    elif "anyOf" in schema or "allOf" in schema or "enum" in schema or "const" in schema or "type" in schema:
        shallow = {name: {} if name in OPEN else value for name, value in schema.items() if name != "items"}
        for name in ("anyOf", "allOf"):
            if name in shallow:
                shallow[name] = []
        made = transform_schema(shallow)
        for name, value in shallow.items():
            if name in ("description", "default") or (name == "type" and ("enum" in schema or "const" in schema)):
                continue
            if name not in made or made[name] != value:
                yield at, schema.get("type"), name
        if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
            yield at, "object", "additionalProperties"
        members = schema
    else:
        yield at, schema.get("type"), next(iter(schema), "type")
        return
    for name in OPEN:
        for key, inner in (members.get(name) or {}).items():
            yield from lost(inner, f"{at}.{name}.{key}")
    for name in ("anyOf", "allOf"):
        for index, inner in enumerate(members.get(name) or ()):
            yield from lost(inner, f"{at}.{name}.{index}")
    if isinstance(members.get("items"), dict):
        yield from lost(members["items"], f"{at}.items")

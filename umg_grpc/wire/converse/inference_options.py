"""Encoding of request options as members of a Converse body: sampling, reasoning, format, service tier, labels."""

import re
from collections.abc import Mapping
from typing import NamedTuple, assert_never

import msgspec

from umg_grpc.knowledge.bedrock_models import BedrockModel
from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.converse.encode_messages import MessageEncoder
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.reasoning_effort_order import fit_reasoning, is_off
from umg_grpc.wire.core.structured_output_ways import JSON_SCHEMA_FIELD, fit_format
from umg_grpc.wire.dropped_fields_report import Report, untranslatable
from umg_grpc.wire.messages.encode_body import encode_sampling_numbers, fit_output_limit
from umg_grpc.wire.messages.reasoning_options import Plan, disable_if_rejected, plan_reasoning
from umg_grpc.wire.model_quirks import REASONING_AMOUNTS, output_limit, rejected_sampling, supports_reasoning

SERVICE_TIERS = ("priority", "default", "flex", "reserved")
USUAL_TIERS = frozenset({"auto", "standard", "standard_only"})  # of other formats, for which `serviceTier` is left out
MAX_LABELS, MAX_LABEL_CHARACTERS = 16, 256
_LABEL = re.compile(r"[a-zA-Z0-9\s:_@$#=/+,.-]{0,256}")
STOP_PATH = "/stop_sequence"
"""Path of the stop sequence in a model's response, requested by `additionalModelResponseFieldPaths`."""
SAMPLING_NAMES: Mapping[str, str] = {"temperature": "temperature", "top_p": "topP"}


class Reasoning(NamedTuple):
    """Reasoning of a request: model request fields, effort for `outputConfig`, and the plan that limits options."""

    fields: JsonObject
    plan: Plan
    effort: str = ""
    is_alone: bool = False  # whether the model accepts no sampling options and no output limit beside it


def encode_options(
    request: pb.GenerateRequest,
    model: BedrockModel,
    turns: MessageEncoder,
    report: Report,
    quirks: Quirks,
    *,
    is_forced: bool,
) -> JsonObject:
    """Return the members of the body except prompt and tools. `turns`: the encoded conversation, to which instructions
    for the format are added. `is_forced`: the model must call a tool.
    """
    output = _encode_format(request, turns, report, quirks)
    reasoning = _plan(request, model, report, quirks)
    if reasoning.plan.on:
        planned = disable_if_rejected(reasoning.plan, is_forced, turns.lacks_reasoning, report)
        reasoning = reasoning._replace(plan=planned)
    inference, additional, reasoning = _encode_inference(request, model, reasoning, report, quirks)
    if reasoning.plan.switch is not None:
        additional["thinking"] = reasoning.plan.switch
    if reasoning.effort:
        output["effort"] = reasoning.effort
    fields: JsonObject = {"inferenceConfig": inference} if inference else {}
    if additional:
        fields["additionalModelRequestFields"] = additional
    if "stopSequences" in inference:
        fields["additionalModelResponseFieldPaths"] = [STOP_PATH]
    if output:
        fields["outputConfig"] = output
    return fields | _encode_labels(request, report)


def _plan(request: pb.GenerateRequest, model: BedrockModel, report: Report, quirks: Quirks) -> Reasoning:
    if not supports_reasoning(request, quirks, report):
        return Reasoning({}, Plan())
    match model.reasoning:
        case "thinking":
            plan = plan_reasoning(request, report, quirks)
            return Reasoning({}, plan, plan.effort)
        case "reasoning_config":
            return _nova_reasoning(request, model, report, quirks)
        case "reasoning_effort":
            effort = fit_reasoning(request.reasoning, quirks, report, has_switch=False).effort
            return Reasoning({"reasoning_effort": effort} if effort else {}, Plan())
        case "":
            if not is_off(request.reasoning):
                for name in (field.name for field, _ in request.reasoning.ListFields()):
                    if name in REASONING_AMOUNTS:
                        report.drop(f"reasoning.{name}")
            return Reasoning({}, Plan())
        case unhandled:
            assert_never(unhandled)


def _nova_reasoning(request: pb.GenerateRequest, model: BedrockModel, report: Report, quirks: Quirks) -> Reasoning:
    fitted = fit_reasoning(request.reasoning, quirks, report, has_switch=True)
    if fitted.on is None:
        return Reasoning({}, Plan())
    if not fitted.on:
        return Reasoning({"reasoningConfig": {"type": "disabled"}}, Plan())
    effort = fitted.effort or "medium"
    config: JsonObject = {"type": "enabled", "maxReasoningEffort": effort}
    return Reasoning({"reasoningConfig": config}, Plan(), is_alone=effort == model.lone_effort)


def _encode_inference(
    request: pb.GenerateRequest, model: BedrockModel, reasoning: Reasoning, report: Report, quirks: Quirks
) -> tuple[JsonObject, JsonObject, Reasoning]:
    """Return (`inferenceConfig`, `additionalModelRequestFields`, reasoning, which an output limit may have lowered)."""
    inference, additional = JsonObject(), dict(reasoning.fields)
    limit = output_limit(request, quirks, report)
    if limit is not None and reasoning.plan.budget:
        limit, plan = fit_output_limit(limit, reasoning.plan, request, report, quirks)
        reasoning = reasoning._replace(plan=plan)
    numbers = encode_sampling_numbers(request, reasoning.plan, report, rejected_sampling(request, quirks, report))
    if reasoning.is_alone:
        for name in numbers:
            report.drop(name)
        if limit is not None:
            report.drop("max_output_tokens")
        numbers, limit = {}, None
    if limit is not None:
        inference["maxTokens"] = limit
    inference |= {own: numbers[name] for name, own in SAMPLING_NAMES.items() if name in numbers}
    if "top_k" in numbers and model.top_k:
        _set_at(additional, model.top_k, numbers["top_k"])
    elif "top_k" in numbers:
        report.drop("top_k")
    if stops := request.stop_sequences[: quirks.max_stop_sequences]:
        inference["stopSequences"] = list(stops)
    return inference, additional, reasoning


def _set_at(fields: JsonObject, path: str, value: object) -> None:
    outer, _, inner = path.partition(".")
    fields[outer] = {inner: value} if inner else value


def _encode_format(request: pb.GenerateRequest, turns: MessageEncoder, report: Report, quirks: Quirks) -> JsonObject:
    """Return `outputConfig` with the required JSON schema; {} without one. A line of the system prompt requires JSON if
    the service cannot enforce the schema, or if any JSON is required.
    """
    form = request.response_format
    match form.WhichOneof("kind"):
        case "json" | "json_schema":
            fitted = fit_format(form, quirks.schema_dialect if form.HasField("json_schema") else "none", report)
        case "enum_text":
            raise untranslatable("response_format", "this model's provider has no bare enum; request JSON")
        case "text" | None:
            return {}
        case unhandled:
            assert_never(unhandled)
    described = form.json_schema
    if fitted.form != "json_schema" or fitted.schema is None:
        if not fitted.instruction:
            fitted = fit_format(pb.ResponseFormat(json=pb.JsonFormat()), "none", report)
        turns.append_instruction(fitted.instruction)
        return {}
    schema: JsonObject = {"schema": msgspec.json.encode(fitted.schema).decode()}  # as text
    schema |= {name: text for name in ("name", "description") if (text := getattr(described, name))}
    if described.HasField("strict") and not described.strict:
        report.drop(f"{JSON_SCHEMA_FIELD}.strict")  # it is always strict
    return {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}}


def _encode_labels(request: pb.GenerateRequest, report: Report) -> JsonObject:
    fields: JsonObject = {}
    if request.service_tier in SERVICE_TIERS:
        fields["serviceTier"] = {"type": request.service_tier}
    elif request.service_tier in USUAL_TIERS:
        report.omit("service_tier")
    elif request.service_tier:
        report.drop("service_tier")
    labels = {name: value for name, value in sorted(request.metadata.items()) if _is_label(name) and _is_label(value)}
    sent = dict(list(labels.items())[:MAX_LABELS])
    if len(sent) < len(request.metadata):
        report.drop("metadata", f"{len(sent)} of {len(request.metadata)}" if sent else None)
    if sent:
        fields["requestMetadata"] = sent
    return fields


def _is_label(text: str) -> bool:
    return _LABEL.fullmatch(text) is not None

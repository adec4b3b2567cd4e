"""Canonical form of Converse bodies, for measurements: the gateway itself has no callers of the format."""

import base64
import json
from typing import Any

from tests.pairs.table import STRICT_MODELS
from tests.support.providers.converse import judge
from tests.support.providers.converse_shapes import parameters
from umg_grpc.v1 import pb
from umg_grpc.wire.converse.media_blocks import AUDIO_FORMATS, DOCUMENT_FORMATS, IMAGE_FORMATS, VIDEO_FORMATS

Json = dict[str, Any]
KINDS = {
    "image": (pb.MEDIA_KIND_IMAGE, IMAGE_FORMATS),
    "document": (pb.MEDIA_KIND_DOCUMENT, DOCUMENT_FORMATS | {"text/plain": "txt"}),
    "video": (pb.MEDIA_KIND_VIDEO, VIDEO_FORMATS),
    "audio": (pb.MEDIA_KIND_AUDIO, AUDIO_FORMATS),
}
ROLES = {"user": pb.ROLE_USER, "assistant": pb.ROLE_ASSISTANT}
MODES = {"auto": pb.TOOL_CHOICE_MODE_AUTO, "any": pb.TOOL_CHOICE_MODE_REQUIRED, "tool": pb.TOOL_CHOICE_MODE_REQUIRED}
THINKING = {
    "enabled": pb.REASONING_MODE_ENABLED,
    "disabled": pb.REASONING_MODE_DISABLED,
    "adaptive": pb.REASONING_MODE_ADAPTIVE,
    "between_tools": pb.REASONING_MODE_BETWEEN_TOOLS,
}


def decode(data: bytes, *, judged: bool = True) -> pb.GenerateRequest:
    """Return the canonical form of a body that the service accepts. Raise RefusedError for any other."""
    body = json.loads(data)
    if judged:
        judge(parameters(body, STRICT_MODELS["converse"]))
    request = pb.GenerateRequest()
    _append(request.instructions, body.get("system", []))
    for message in body["messages"]:
        _append(request.messages.add(role=ROLES[message["role"]]).parts, message["content"])
    _decode_options(body, request)
    _decode_tools(body.get("toolConfig", {}), request)
    return request


def _append(parts: Any, blocks: list[Json]) -> None:
    for block in blocks:
        if "cachePoint" in block:
            _mark(parts[-1], block["cachePoint"])
        else:
            parts.append(_part(block))


def _mark(marked: Any, point: Json) -> None:
    marked.cache_control.SetInParent()
    if "ttl" in point:
        marked.cache_control.ttl = pb.CACHE_TTL_ONE_HOUR if point["ttl"] == "1h" else pb.CACHE_TTL_FIVE_MINUTES


def _part(block: Json) -> pb.Part:
    match block:
        case {"text": text}:
            return pb.Part(text=pb.TextPart(text=text))
        case {"toolUse": call}:
            arguments = json.dumps(call["input"])
            return pb.Part(
                tool_call=pb.ToolCall(call_id=call["toolUseId"], name=call["name"], arguments_json=arguments)
            )
        case {"toolResult": result}:
            return _result(result)
        case {"reasoningContent": {"reasoningText": reasoning}}:
            state = pb.ReasoningState(data=reasoning["signature"], format="messages")
            return pb.Part(reasoning=pb.ReasoningPart(texts=[reasoning["text"]]), state=state)
        case {"reasoningContent": {"redactedContent": data}}:
            return pb.Part(
                reasoning=pb.ReasoningPart(redacted=True), state=pb.ReasoningState(data=data, format="messages")
            )
        case {"searchResult": result}:
            media = pb.MediaPart(kind=pb.MEDIA_KIND_DOCUMENT, title=result["title"], origin=result["source"])
            _append(media.blocks.parts, result["content"])
            return _citable(media, result)
    [(kind, content)] = block.items()
    return _media(kind, content)


def _citable(media: pb.MediaPart, content: Json) -> pb.Part:
    if "citations" in content:
        media.citable = content["citations"]["enabled"]
    return pb.Part(media=media)


def _result(result: Json) -> pb.Part:
    found = pb.ToolResult(call_id=result["toolUseId"])
    if "status" in result:
        found.is_error = result["status"] == "error"
    if [list(each) for each in result["content"]] == [["json"]]:
        found.result_json = json.dumps(result["content"][0]["json"])
    else:
        _append(found.parts, result["content"])
    return pb.Part(tool_result=found)


def _media(kind: str, content: Json) -> pb.Part:
    number, formats = KINDS[kind]
    media = pb.MediaPart(kind=number, title=content.get("name", ""), context=content.get("context", ""))
    if "content" in content["source"]:
        _append(media.blocks.parts, content["source"]["content"])
    else:
        media.data = base64.b64decode(content["source"]["bytes"])
        media.mime_type = next(mime for mime, form in formats.items() if form == content["format"])
    return _citable(media, content)


def _decode_options(body: Json, request: pb.GenerateRequest) -> None:
    inference, additional = body.get("inferenceConfig", {}), body.get("additionalModelRequestFields", {})
    for name, field in (("maxTokens", "max_output_tokens"), ("temperature", "temperature"), ("topP", "top_p")):
        if name in inference:
            setattr(request, field, inference[name])
    request.stop_sequences.extend(inference.get("stopSequences", ()))
    if "top_k" in additional:
        request.top_k = additional["top_k"]
    if thinking := additional.get("thinking"):
        request.reasoning.mode = THINKING[thinking["type"]]
        request.reasoning.display = thinking.get("display", "")
        if "budget_tokens" in thinking:
            request.reasoning.budget_tokens = thinking["budget_tokens"]
    output = body.get("outputConfig", {})
    if "effort" in output:
        request.reasoning.effort = output["effort"]
    if "textFormat" in output:
        schema = output["textFormat"]["structure"]["jsonSchema"]
        described = request.response_format.json_schema
        described.schema_json, described.name = schema["schema"], schema.get("name", "")
        described.description = schema.get("description", "")
    request.service_tier = body.get("serviceTier", {}).get("type", "")
    request.metadata.update(body.get("requestMetadata", {}))


def _decode_tools(config: Json, request: pb.GenerateRequest) -> None:
    for tool in config.get("tools", ()):
        if "cachePoint" in tool:
            _mark(request.tools[-1], tool["cachePoint"])
            continue
        spec = tool["toolSpec"]
        function = request.tools.add().function
        function.name, function.parameters_json = spec["name"], json.dumps(spec["inputSchema"]["json"])
        if "description" in spec:
            function.description = spec["description"]
        if "strict" in spec:
            function.strict = spec["strict"]
    # no choice is `auto`, which is not sent since some models refuse it
    for kind, choice in config.get("toolChoice", {"auto": {}} if "tools" in config else {}).items():
        request.tool_choice.mode = MODES[kind]
        request.tool_choice.names.extend([choice["name"]] if kind == "tool" else [])

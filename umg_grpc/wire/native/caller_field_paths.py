"""Conversion of canonical field paths to the paths of a native body, for the messages of errors."""

from umg_grpc.wire.core.caller_field_paths import wire_paths

_PART = r"^messages\[(\d+)\]\.parts\[(\d+)\]"
_AT = r"contents[\1].parts[\2]"
_CONFIG = "generationConfig"

wire_path = wire_paths(
    [
        (_PART + r"\.tool_call\.arguments_json", _AT + ".functionCall.args"),
        (_PART + r"\.tool_call\.call_id", _AT + ".functionCall.id"),
        (_PART + r"\.tool_call", _AT + ".functionCall"),
        (_PART + r"\.tool_result\.result_json", _AT + ".functionResponse.response"),
        (_PART + r"\.tool_result\.call_id", _AT + ".functionResponse.id"),
        (_PART + r"\.tool_result\.parts\[\d+\].*", _AT + ".functionResponse"),
        (_PART + r"\.tool_result", _AT + ".functionResponse"),
        (_PART + r"\.media\.(?:uri|file_id).*", _AT + ".fileData.fileUri"),
        (_PART + r"\.media\b.*", _AT + ".inlineData"),
        (_PART + r"\.(?:text\.text|reasoning\b.*|refusal\.text)", _AT + ".text"),
        (_PART + r"\.state\b.*", _AT + ".thoughtSignature"),
        (_PART + r"\.(?:opaque|server_tool_call|server_tool_result)\b.*", _AT),
        (r"^messages\[(\d+)\]\.parts", r"contents[\1].parts"),
        (r"^messages\b", "contents"),
        (r"^instructions\[(\d+)\](?:\.text)?", r"systemInstruction.parts[\1]"),
        (r"^instructions", "systemInstruction"),
        (r"^tools\[(\d+)\]\.function\.name", r"tools[\1].functionDeclarations.name"),
        (r"^tools\[(\d+)\]\.function\b.*", r"tools[\1].functionDeclarations"),
        (r"^tools\[(\d+)\]\.\w+\b.*", r"tools[\1]"),
        (r"^tool_choice\.names", "toolConfig.functionCallingConfig.allowedFunctionNames"),
        (r"^tool_choice\.mode", "toolConfig.functionCallingConfig.mode"),
        (r"^tool_choice\b.*", "toolConfig.functionCallingConfig"),
        (r"^temperature", f"{_CONFIG}.temperature"),
        (r"^top_logprobs", f"{_CONFIG}.logprobs"),
        (r"^logprobs", f"{_CONFIG}.responseLogprobs"),
        (r"^top_p", f"{_CONFIG}.topP"),
        (r"^top_k", f"{_CONFIG}.topK"),
        (r"^max_output_tokens", f"{_CONFIG}.maxOutputTokens"),
        (r"^stop_sequences", f"{_CONFIG}.stopSequences"),
        (r"^candidate_count", f"{_CONFIG}.candidateCount"),
        (r"^seed", f"{_CONFIG}.seed"),
        (r"^presence_penalty", f"{_CONFIG}.presencePenalty"),
        (r"^frequency_penalty", f"{_CONFIG}.frequencyPenalty"),
        (r"^reasoning\.budget_tokens", f"{_CONFIG}.thinkingConfig.thinkingBudget"),
        (r"^reasoning\.level", f"{_CONFIG}.thinkingConfig.thinkingLevel"),
        (r"^reasoning\.include_thoughts", f"{_CONFIG}.thinkingConfig.includeThoughts"),
        (r"^reasoning\b.*", f"{_CONFIG}.thinkingConfig"),
        (r"^response_format\.json_schema\.schema_json\.(\w+)", _CONFIG + r".responseSchema.\1"),
        (r"^response_format\.(?:json_schema|enum_text)\b.*", f"{_CONFIG}.responseSchema"),
        (r"^response_format\b.*", f"{_CONFIG}.responseMimeType"),
        (r"^output_modalities", f"{_CONFIG}.responseModalities"),
        (r"^media_detail", f"{_CONFIG}.mediaResolution"),
        (r"^image_output\.aspect_ratio", f"{_CONFIG}.imageConfig.aspectRatio"),
        (r"^image_output\.image_size", f"{_CONFIG}.imageConfig.imageSize"),
        (r"^image_output\.mime_type", f"{_CONFIG}.imageConfig.imageOutputOptions.mimeType"),
        (r"^image_output", f"{_CONFIG}.imageConfig"),
        (r"^audio_output\b.*", f"{_CONFIG}.speechConfig"),
        (r"^cached_content", "cachedContent"),
        (r"^safety_settings", "safetySettings"),
        (r"^metadata", "labels"),
        (r"^service_tier", "serviceTier"),
    ]
)

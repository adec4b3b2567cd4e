"""Conversion of canonical field paths to the paths of bodies of Ollama's API, for errors and reports."""

from umg_grpc.wire.core.caller_field_paths import wire_paths

_PART = r"^messages\[(\d+)\]\.parts\[\d+\]"
_OPTIONS = [
    (r"^max_output_tokens", "options.num_predict"),
    (r"^stop_sequences", "options.stop"),
    (r"^(temperature|top_p|top_k|seed|presence_penalty|frequency_penalty)\b", r"options.\1"),
    (r"^reasoning\b.*", "think"),
    (r"^response_format\b.*", "format"),
    (r"^truncation", "truncate"),
    (r"^tools\[(\d+)\]\.function\.parameters_json", r"tools[\1].function.parameters"),
]

chat_path = wire_paths(
    [
        (_PART + r"\.media\b.*", r"messages[\1].images"),
        (_PART + r"\.tool_call\b.*", r"messages[\1].tool_calls"),
        (_PART + r"\.tool_result\.call_id", r"messages[\1].tool_call_id"),
        (_PART + r"\.reasoning\b.*", r"messages[\1].thinking"),
        (_PART + r".*", r"messages[\1].content"),
        (r"^messages\[(\d+)\]\.parts", r"messages[\1].content"),
        *_OPTIONS,
    ]
)
generate_path = wire_paths(
    [(_PART + r"\.media\b.*", "images"), (r"^messages\b.*", "prompt"), (r"^instructions\b.*", "system"), *_OPTIONS]
)

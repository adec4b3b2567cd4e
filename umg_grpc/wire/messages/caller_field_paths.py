"""Conversion of canonical field paths to the paths of a messages body, for the messages of errors."""

from umg_grpc.wire.core.caller_field_paths import wire_paths

_BLOCK = r"^messages\[(\d+)\]\.parts\[(\d+)\]"
_RESULT = _BLOCK + r"\.tool_result\.parts\[(\d+)\]"

wire_path = wire_paths(
    [
        (_RESULT + r"\.text\.text", r"messages[\1].content[\2].content[\3].text"),
        (_RESULT + r"(?:\.(?:media|opaque)\b.*)?", r"messages[\1].content[\2].content[\3]"),
        (_BLOCK + r"\.tool_result\.call_id", r"messages[\1].content[\2].tool_use_id"),
        (_BLOCK + r"\.tool_result\b", r"messages[\1].content[\2]"),
        (_BLOCK + r"\.tool_call\.call_id", r"messages[\1].content[\2].id"),
        (_BLOCK + r"\.tool_call\.name", r"messages[\1].content[\2].name"),
        (_BLOCK + r"\.tool_call\b.*", r"messages[\1].content[\2].input"),
        (_BLOCK + r"\.reasoning\b.*", r"messages[\1].content[\2].thinking"),
        (_BLOCK + r"\.state\b.*", r"messages[\1].content[\2].signature"),
        (_BLOCK + r"\.text\.text", r"messages[\1].content[\2].text"),
        (_BLOCK + r"\.text\.citations", r"messages[\1].content[\2].citations"),
        (_BLOCK + r"\.media\.(?:title|context)", r"messages[\1].content[\2]"),
        (_BLOCK + r"\.media\b.*", r"messages[\1].content[\2].source"),
        (_BLOCK + r"\.server_tool_(?:call|result)\b.*", r"messages[\1].content[\2]"),
        (_BLOCK + r"\.opaque\b.*", r"messages[\1].content[\2]"),
        (r"^messages\[(\d+)\]\.parts", r"messages[\1].content"),
        (r"^instructions\[(\d+)\]\.text\.text", r"system[\1].text"),
        (r"^instructions\[(\d+)\]", r"system[\1]"),
        (r"^instructions\b.*", "system"),
        (r"^max_output_tokens", "max_tokens"),
        (r"^tools\[(\d+)\]\.function\.parameters_json", r"tools[\1].input_schema"),
        (r"^tools\[(\d+)\]\.function\b", r"tools[\1]"),
        (r"^tools\[(\d+)\]\.web_search\b", r"tools[\1]"),
        (r"^tools\[(\d+)\]\.(?:custom|file_search|opaque)\b.*", r"tools[\1]"),
        (r"^tool_choice\.mode", "tool_choice.type"),
        (r"^tool_choice\.names\b.*", "tool_choice.name"),
        (r"^tool_choice\.opaque\b.*", "tool_choice"),
        (r"^parallel_tool_calls", "tool_choice.disable_parallel_tool_use"),
        (r"^reasoning\.mode", "thinking.type"),
        (r"^reasoning\.(budget_tokens|display)", r"thinking.\1"),
        (r"^reasoning\.effort", "output_config.effort"),
        (r"^reasoning\b.*", "thinking"),
        (r"^response_format\.json_schema\.schema_json", "output_config.format.schema"),
        (r"^response_format\b.*", "output_config.format"),
        (r"^user$", "metadata.user_id"),
    ]
)

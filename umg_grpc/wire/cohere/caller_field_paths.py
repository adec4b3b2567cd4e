"""Conversion of canonical field paths to the paths of a Cohere chat body, for the messages of errors and reports."""

from umg_grpc.wire.core.caller_field_paths import wire_paths

wire_path = wire_paths(
    [
        (r"^messages\[(\d+)\]\.parts\[\d+\]\.tool_result\.call_id", r"messages[\1].tool_call_id"),
        (r"^messages\[(\d+)\]\.parts\[\d+\]\.tool_result\.parts\[(\d+)\](?:\.text)?", r"messages[\1].content[\2]"),
        (r"^messages\[(\d+)\]\.parts\[\d+\]\.tool_result", r"messages[\1].content"),
        (r"^messages\[(\d+)\]\.parts\[\d+\]\.tool_call\b.*", r"messages[\1].tool_calls"),
        (r"^messages\[(\d+)\]\.parts\b.*", r"messages[\1].content"),
        (r"^instructions\b.*", "messages"),
        (r"^max_output_tokens", "max_tokens"),
        (r"^top_p", "p"),
        (r"^top_k", "k"),
        (r"^citable", "documents"),
        (r"^title", "documents"),
        (r"^tools\[(\d+)\]\.function\.parameters_json", r"tools[\1].function.parameters"),
        (r"^tools(?:\[\d+\]\.function|\.function)?\.strict", "strict_tools"),
        (r"^tool_choice\b.*", "tool_choice"),
        (r"^reasoning\.mode", "thinking.type"),
        (r"^reasoning\.budget_tokens", "thinking.token_budget"),
        (r"^reasoning\b.*", "thinking"),
        (r"^response_format\.json_schema\b.*", "response_format.json_schema"),
        (r"^response_format\.(?:text|json)$", "response_format"),
    ]
)

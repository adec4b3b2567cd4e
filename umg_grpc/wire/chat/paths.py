"""Paths of canonical fields as chat's callers know them. For errors only."""

import re

# The first rule that fits wins; what follows the matched part is kept. More particular rules stand first.
_RULES = [
    (r"^messages\[(\d+)\]\.parts\[\d+\]\.tool_result\.call_id", r"messages[\1].tool_call_id"),
    (r"^messages\[(\d+)\]\.parts\[\d+\]\.tool_result\.parts\[(\d+)\](?:\.text)?", r"messages[\1].content[\2]"),
    (r"^messages\[(\d+)\]\.parts\[\d+\]\.tool_result", r"messages[\1].content"),
    (r"^messages\[(\d+)\]\.parts\[\d+\]\.tool_call\b.*", r"messages[\1].tool_calls"),
    (r"^messages\[(\d+)\]\.parts\[\d+\]\.reasoning\b.*", r"messages[\1].reasoning_content"),
    (r"^messages\[(\d+)\]\.parts\[(\d+)\]\.text\.text", r"messages[\1].content[\2].text"),
    (r"^messages\[(\d+)\]\.parts\[(\d+)\]\.media\b.*", r"messages[\1].content[\2].image_url"),
    (r"^messages\[(\d+)\]\.parts\[(\d+)\]\.refusal\.text", r"messages[\1].content[\2].refusal"),
    (r"^messages\[(\d+)\]\.parts\[(\d+)\]\.opaque\b.*", r"messages[\1].content[\2]"),
    (r"^messages\[(\d+)\]\.parts", r"messages[\1].content"),
    (r"^instructions\b.*", "messages"),
    (r"^max_output_tokens", "max_tokens"),
    (r"^stop_sequences", "stop"),
    (r"^candidate_count", "n"),
    (r"^tools\[(\d+)\]\.function\.parameters_json", r"tools[\1].function.parameters"),
    (r"^tools\[(\d+)\]\.custom\.format_json", r"tools[\1].custom.format"),
    (r"^tools\[(\d+)\]\.(?:web_search|file_search|opaque)\b.*", r"tools[\1]"),
    (r"^tool_choice\.(?:mode|names|opaque)\b.*", "tool_choice"),
    (r"^legacy_functions", "functions"),
    (r"^search\.context_size", "web_search_options.search_context_size"),
    (r"^search\.user_location", "web_search_options.user_location.approximate"),
    (r"^search\.(mode|return_citations)", r"search_parameters.\1"),
    (r"^search\.(region|recency_days)", r"parameters.search_options.\1"),
    (r"^search\b", "web_search_options"),
    (r"^reasoning\.effort", "reasoning_effort"),
    (r"^reasoning\.mode", "thinking.type"),
    (r"^reasoning\.declared_as_enable_thinking", "enable_thinking"),
    (r"^reasoning\.budget_tokens", "extra_body.vendorg.thinking_config.thinking_budget"),
    (r"^reasoning\.include_thoughts", "extra_body.vendorg.thinking_config.include_thoughts"),
    (r"^reasoning\.level", "generationConfig.thinkingConfig.thinkingLevel"),
    (r"^response_format\.json_schema\.schema_json", "response_format.json_schema.schema"),
    (r"^response_format\.(?:text|json)$", "response_format"),
    (r"^output_modalities", "modalities"),
    (r"^audio_output\.voice_json", "audio.voice"),
    (r"^audio_output", "audio"),
    (r"^prediction\b.*", "prediction.content"),
    (r"^include_(usage|obfuscation)", r"stream_options.include_\1"),
    (r"^thinking_to_content", "vendorn_thinking_to_content"),
    (r"^speech_language", "parameters.asr_options.language"),
]
_COMPILED = [(re.compile(pattern), replacement) for pattern, replacement in _RULES]


def wire_path(path: str) -> str:
    """`messages[0].parts[1].text.text` as `messages[0].content[1].text`; a path that is the same in both stays, also a
    wire path.
    """
    plain = path.removeprefix("request.")
    for pattern, replacement in _COMPILED:
        wired, found = pattern.subn(replacement, plain)
        if found:
            return wired
    return plain

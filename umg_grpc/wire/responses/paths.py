"""Paths of canonical fields as this format's callers know them. For errors only."""

import re

# The first rule that fits wins; what follows the matched part is kept. More particular rules stand first.
_RULES = [
    (r"^messages\[(\d+)\]\.parts\[\d+\]\.tool_result\.call_id", r"input[\1].call_id"),
    (r"^messages\[(\d+)\]\.parts\[\d+\]\.tool_result\.parts\[(\d+)\](?:\.text)?", r"input[\1].output[\2]"),
    (r"^messages\[(\d+)\]\.parts\[\d+\]\.tool_result\b.*", r"input[\1].output"),
    (r"^messages\[(\d+)\]\.parts\[\d+\]\.tool_call\.arguments_json", r"input[\1].arguments"),
    (r"^messages\[(\d+)\]\.parts\[\d+\]\.tool_call\.text", r"input[\1].input"),
    (r"^messages\[(\d+)\]\.parts\[\d+\]\.tool_call", r"input[\1]"),
    (r"^messages\[(\d+)\]\.parts\[\d+\]\.(?:reasoning|server_tool_call|server_tool_result)\b.*", r"input[\1]"),
    (r"^messages\[(\d+)\]\.parts\[\d+\]\.state\b.*", r"input[\1].encrypted_content"),
    (r"^messages\[(\d+)\]\.parts\[(\d+)\]\.text\.text", r"input[\1].content[\2].text"),
    (r"^messages\[(\d+)\]\.parts\[(\d+)\]\.text\.citations", r"input[\1].content[\2].annotations"),
    (r"^messages\[(\d+)\]\.parts\[(\d+)\]\.refusal\.text", r"input[\1].content[\2].refusal"),
    (r"^messages\[(\d+)\]\.parts\[(\d+)\]\.(?:media|opaque)\b.*", r"input[\1].content[\2]"),
    (r"^messages\[(\d+)\]\.parts", r"input[\1].content"),
    (r"^messages\[(\d+)\]\.message_id", r"input[\1].id"),
    (r"^messages", "input"),
    (r"^instructions\b.*", "instructions"),
    (r"^tools\[(\d+)\]\.(?:function|custom)\.parameters_json", r"tools[\1].parameters"),
    (r"^tools\[(\d+)\]\.custom\.format_json", r"tools[\1].format"),
    (r"^tools\[(\d+)\]\.(?:function|custom)\.", r"tools[\1]."),
    (r"^tools\[(\d+)\]\.web_search\.context_size", r"tools[\1].search_context_size"),
    (r"^tools\[(\d+)\]\.web_search\.user_location", r"tools[\1].user_location"),
    (r"^tools\[(\d+)\]\.web_search\.allowed_domains", r"tools[\1].filters.allowed_domains"),
    (r"^tools\[(\d+)\]\.file_search\.max_results", r"tools[\1].max_num_results"),
    (r"^tools\[(\d+)\]\.file_search\.vector_store_ids", r"tools[\1].vector_store_ids"),
    (r"^tools\[(\d+)\]\.(?:function|custom|web_search|file_search|opaque)\b.*", r"tools[\1]"),
    (r"^tool_choice\.(?:mode|names|opaque)\b.*", "tool_choice"),
    (r"^reasoning\.(?:budget_tokens|level|mode)", "reasoning.effort"),
    (r"^response_format\.json_schema\.schema_json", "text.format.schema"),
    (r"^response_format\.json_schema", "text.format"),
    (r"^response_format\b.*", "text.format"),
    (r"^verbosity", "text.verbosity"),
    (r"^conversation_id", "conversation"),
    (r"^prompt_template\.prompt_id", "prompt.id"),
    (r"^prompt_template\.variables_json", "prompt.variables"),
    (r"^prompt_template", "prompt"),
    (r"^include_obfuscation", "stream_options.include_obfuscation"),
    (r"^logprobs", "include"),
    (r"^prompt_cache_options_json", "prompt_cache_options"),
    (r"^moderation_json", "moderation"),
    (r"^page_size", "limit"),
    (r"^ascending", "order"),
]
_COMPILED = [(re.compile(pattern), replacement) for pattern, replacement in _RULES]


def wire_path(path: str) -> str:
    """`messages[0].parts[1].text.text` as `input[0].content[1].text`; a path that is the same in both stays, also a
    wire path.

    An input as one string, and bare parts, which are gathered into turns, are counted as if they were items.
    """
    plain = path.removeprefix("request.")
    for pattern, replacement in _COMPILED:
        wired, found = pattern.subn(replacement, plain)
        if found:
            return wired
    return plain

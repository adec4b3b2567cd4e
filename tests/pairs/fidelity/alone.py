"""Fields without a canonical field, and canonical fields without a sample."""

from tests.pairs.fidelity.conversation import (
    CALL_ITEM,
    CALL_PART,
    NATIVE_USER_TURN,
    RESULT_ITEM,
    TOOL_RESULT,
    TOOL_USE,
    USER_TURN,
    answered,
    items,
    parts,
)
from tests.pairs.fidelity.options import PROPERTIES, SUBSET
from tests.pairs.fidelity.sample import PNG, Alone, config

# fmt: off

# Canonical fields that no body sets, so that there is nothing to measure.
UNMEASURED = {
    "Part.text.logprobs": "probabilities of an earlier response, which no provider reads",
    "GenerateRequest.previous_response_id": "the gateway continues the conversation itself, and sends all of it",
    "GenerateRequest.thread.previous_response_id": "the gateway continues the conversation itself, and sends all of it",
    "GenerateRequest.compaction": "the model writes the summary, or the provider, which takes the body itself",
    "CompactionRequest.standalone": "the path of the call",
    "Part.compaction": "every provider is sent the text of the summary",
    "CompactionPart.encrypted_content": "every provider is sent the text of the summary",
    "CompactionPart.item_id": "every provider is sent the text of the summary",
    "GenerateRequest.model": "the config has its id at the provider; the rules of the family read its suffix",
    "GenerateRequest.messages": "all that follows",
    "GenerateRequest.source": "the body itself",
    "GenerationService.Generate": "whether to stream",
    "GenerationService.StreamGenerate": "whether to stream",
    "StreamGenerateRequest.request": "whether to stream",
    "SourceDocument.format": "the body itself",
    "SourceDocument.body": "the body itself",
    "SourceDocument.headers": "go with the body to its own format alone",
    "OPAQUE_HANDLING_CARRIED": "its content is measured as the tools that it declares",
    "ReasoningState.format": "follows from the face",
    "ReasoningState.channel": "set by the gateway",
    "ServerToolCall.format": "follows from the face",
    "ServerToolResult.format": "follows from the face",
}

NOISE = "has no effect on the response"
ALONE = (
    Alone("chat", "`search_parameters.sources`", {"search_parameters": {"mode": "on", "sources": [{"type": "web"}]}}),
    Alone("chat", "`search_parameters.from_date`", {"search_parameters": {"mode": "on", "from_date": "2026-01-01"}}),
    Alone("chat", "`search_parameters.to_date`", {"search_parameters": {"mode": "on", "to_date": "2026-01-01"}}),
    Alone("chat", "`search_parameters.max_search_results`", {"search_parameters": {"mode": "on", "max_search_results": 3}}),
    Alone("chat", "an unknown field", {"x_new": 1}),
    Alone("responses", "`background`: false", {"background": False}, NOISE),
    Alone("responses", "`reasoning.context`", {"reasoning": {"effort": "high", "context": "auto"}}),
    Alone("responses", "`reasoning.mode`", {"reasoning": {"effort": "high", "mode": "auto"}}),
    Alone("responses", "`context_management` without a threshold", {"context_management": [{"type": "compaction"}]}),
    Alone("responses", "`status` of an item", items({**CALL_ITEM, "status": "completed"}, {**RESULT_ITEM, "status": "completed"}), NOISE),
    Alone("responses", "`tools[].defer_loading`", {"tools": [{"type": "function", "name": "f", "parameters": PROPERTIES, "defer_loading": True}]}),
    Alone("responses", "`tools[].output_schema`", {"tools": [{"type": "function", "name": "f", "parameters": PROPERTIES, "output_schema": PROPERTIES}]}),
    Alone("responses", "`tools[].allowed_callers`", {"tools": [{"type": "function", "name": "f", "parameters": PROPERTIES, "allowed_callers": ["direct"]}]}),
    Alone("responses", "`web_search.external_web_access`", {"tools": [{"type": "web_search", "external_web_access": False}]}),
    Alone("responses", "an unknown field", {"x_new": 1}),
    Alone("messages", "`mcp_servers`", {"mcp_servers": [{"type": "url", "url": "https://a.example", "name": "a"}]}),
    Alone("messages", "`container`", {"container": "container_1"}),
    Alone("messages", "other members of `context_management`", {"context_management": {"new": 1}}),
    Alone("messages", "other keys of `metadata`", {"metadata": {"x": "y"}}),
    Alone("messages", "`betas`", {"betas": ["b"]}, NOISE),
    Alone("messages", "`tools[].input_examples`", {"tools": [{"name": "f", "input_schema": PROPERTIES, "input_examples": [{"city": "Uri"}]}]}),
    Alone("messages", "`tools[].eager_input_streaming`", {"tools": [{"name": "f", "input_schema": PROPERTIES, "eager_input_streaming": True}]}),
    Alone("messages", "`tool_use.caller`", answered(TOOL_RESULT)["messages"] | {"messages": [USER_TURN, {"role": "assistant", "content": [{**TOOL_USE, "caller": {"type": "direct"}}]}, {"role": "user", "content": [TOOL_RESULT]}]}, NOISE),
    Alone("messages", "an unknown field", {"x_new": 1}),
    Alone("native", "`systemInstruction.role`", {"systemInstruction": {"role": "user", "parts": [{"text": "x"}]}}, NOISE),
    Alone("native", "`functionDeclarations[].response`", {"tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": PROPERTIES, "response": SUBSET}]}]}),
    Alone("native", "`functionDeclarations[].responseJsonSchema`", {"tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": PROPERTIES, "responseJsonSchema": PROPERTIES}]}]}),
    Alone("native", "`googleSearchRetrieval.dynamicRetrievalConfig`", {"tools": [{"googleSearchRetrieval": {"dynamicRetrievalConfig": {"mode": "MODE_DYNAMIC", "dynamicThreshold": 0.5}}}]}),
    Alone("native", "`speechConfig`, except the name of the voice", config(speechConfig={"languageCode": "de-DE"})),
    Alone("native", "any other `responseMimeType`", config(responseMimeType="application/yaml")),
    Alone("native", "`videoMetadata`", parts({"inlineData": {"mimeType": "image/png", "data": PNG}, "videoMetadata": {"fps": 1}})),
    Alone("native", "`functionResponse.willContinue`", {"contents": [NATIVE_USER_TURN, {"role": "model", "parts": [CALL_PART]}, {"role": "user", "parts": [{"functionResponse": {"id": "call_1", "name": "f", "response": {"output": "sunny"}, "willContinue": False}}]}]}),
    Alone("native", "`functionResponse.scheduling`", {"contents": [NATIVE_USER_TURN, {"role": "model", "parts": [CALL_PART]}, {"role": "user", "parts": [{"functionResponse": {"id": "call_1", "name": "f", "response": {"output": "sunny"}, "scheduling": "SILENT"}}]}]}),
)

"""Samples of the conversation: turns and their parts. One line per field."""

from tests.pairs.fidelity.sample import PDF, PNG, TEXT_FILE, WAV, Area, Body, Json, sample
from tests.pairs.table import QUESTION

# fmt: off

USER_TURN: Body = {"role": "user", "content": QUESTION}
NATIVE_USER_TURN: Body = {"role": "user", "parts": [{"text": QUESTION}]}
ARGUMENTS = '{"city":"Uri"}'


def chat(*content: Json, role: str = "user", **more: Json) -> Body:
    first: list[Json] = [] if role == "user" else [USER_TURN]
    return {"messages": [*first, {"role": role, "content": list(content), **more}]}


def message(*content: Json, role: str = "user", **more: Json) -> Body:
    first: list[Json] = [] if role == "user" else [USER_TURN]
    return {"input": [*first, {"type": "message", "role": role, "content": list(content), **more}]}


def items(*items: Json) -> Body:
    return {"input": [USER_TURN, *items]}


def blocks(*content: Json, role: str = "user") -> Body:
    first: list[Json] = [] if role == "user" else [USER_TURN]
    return {"messages": [*first, {"role": role, "content": list(content)}]}


def parts(*parts: Json, role: str = "user") -> Body:
    first: list[Json] = [] if role == "user" else [NATIVE_USER_TURN]
    return {"contents": [*first, {"role": role, "parts": list(parts)}]}


def spoken(role: str) -> dict[str, Body]:
    """Return a turn of a role other than the tool's, for the faces that have the role."""
    bodies: dict[str, Body] = {
        "chat": {"messages": [{"role": role, "content": "x"}, USER_TURN]},
        "responses": {"input": [{"role": role, "content": "x"}, USER_TURN]},
    }
    if role in ("user", "assistant"):
        bodies["messages"] = {"messages": [{"role": role, "content": "x"}, USER_TURN]}
        native = "model" if role == "assistant" else "user"
        bodies["native"] = {"contents": [{"role": native, "parts": [{"text": "x"}]}, NATIVE_USER_TURN]}
    return bodies


def image(**source: Json) -> Body:
    return blocks({"type": "image", "source": source})


def document(**options: Json) -> Body:
    source: Body = {"type": "text", "media_type": "text/plain", "data": "Hello"}
    return blocks({"type": "document", "source": source, **options})


FOUND: Body = {
    "type": "search_result",
    "source": "https://a.example",
    "title": "A",
    "content": [{"type": "text", "text": "Found"}],
}


CALL: Body = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": ARGUMENTS}}
RESULT: Body = {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}
CALL_ITEM: Body = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": ARGUMENTS}
RESULT_ITEM: Body = {"type": "function_call_output", "call_id": "call_1", "output": "sunny"}
TOOL_USE: Body = {"type": "tool_use", "id": "call_1", "name": "f", "input": {"city": "Uri"}}
TOOL_RESULT: Body = {"type": "tool_result", "tool_use_id": "call_1", "content": "sunny"}
CALL_PART: Body = {"functionCall": {"id": "call_1", "name": "f", "args": {"city": "Uri"}}}
RESULT_PART: Body = {"functionResponse": {"id": "call_1", "name": "f", "response": {"output": "sunny"}}}


def exchange() -> dict[str, Body]:
    """Return a call and its result for every face."""
    return {
        "chat": {"messages": [USER_TURN, {"role": "assistant", "content": None, "tool_calls": [CALL]}, RESULT]},
        "responses": items(CALL_ITEM, RESULT_ITEM),
        "messages": {
            "messages": [
                USER_TURN,
                {"role": "assistant", "content": [TOOL_USE]},
                {"role": "user", "content": [TOOL_RESULT]},
            ]
        },
        "native": {
            "contents": [
                NATIVE_USER_TURN,
                {"role": "model", "parts": [CALL_PART]},
                {"role": "user", "parts": [RESULT_PART]},
            ]
        },
    }


def answered(result: Json) -> dict[str, Body]:
    """Return a call whose result is a content block of messages."""
    return {
        "messages": {
            "messages": [USER_TURN, {"role": "assistant", "content": [TOOL_USE]}, {"role": "user", "content": [result]}]
        }
    }


CUSTOM_ITEMS = (
    {"type": "custom_tool_call", "call_id": "call_1", "name": "c", "input": "go", "id": "ctc_1"},
    {"type": "custom_tool_call_output", "call_id": "call_1", "output": "gone", "id": "ctco_1"},
)

TURNS = (
    sample("`role`: system", "messages[0].role", "ROLE_SYSTEM", also="Message.role", **spoken("system"), elsewhere={}, instead={"messages": ("instructions[0].text.text", "x"), "native": ("instructions[0].text.text", "x")}),
    sample("`role`: developer", "messages[0].role", "ROLE_DEVELOPER", **spoken("developer"), instead={"messages": ("instructions[0].text.text", "x"), "native": ("instructions[0].text.text", "x")}),
    sample("`role`: user", "messages[0].role", "ROLE_USER", **spoken("user")),
    sample("`role`: assistant", "message_of(assistant).role", "ROLE_ASSISTANT", **spoken("assistant")),
    sample("`role`: tool", "part.tool_result.call_id", "ROLE_TOOL", **exchange()),
    sample("`name`", "messages[0].name", "Message.name", chat={"messages": [{"role": "user", "name": "ada", "content": "x"}]}),
    sample("`message_id`", "messages[1].message_id", "Message.message_id", also="Part.message_id", responses=message({"type": "output_text", "text": "x", "annotations": []}, role="assistant", id="msg_1"), ignored="an id of the format, without a meaning for the model"),
    sample("`phase`", "messages[1].phase", "Message.phase", also="Part.phase", responses=message({"type": "output_text", "text": "x", "annotations": []}, role="assistant", phase="commentary")),
    sample("`cache_control` of a part", "part.cache_control.ttl", "Part.cache_control", chat=chat({"type": "text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}}), responses=message({"type": "input_text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}}), messages=blocks({"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}})),
    sample("any other block (`opaque`)", "part.opaque.type", "Part.opaque.type", also="Part.opaque.format Part.opaque.json", responses=items({"type": "item_reference", "id": "msg_1"}), messages=blocks({"type": "container_upload", "file_id": "file_1"})),
)
PARTS = (
    sample("text", "part.text.text", "Part.text.text", also="Message.parts", chat=chat({"type": "text", "text": "x"}), responses=message({"type": "input_text", "text": "x"}), messages=blocks({"type": "text", "text": "x"}), native=parts({"text": "x"})),
    sample("`citations` of a page", "part.citations.web.url", "Part.text.citations", also="Citation.web.url", responses=message({"type": "output_text", "text": "x", "annotations": [{"type": "url_citation", "url": "https://a.example", "title": "A", "start_index": 0, "end_index": 1}]}, role="assistant"), messages=blocks({"type": "text", "text": "x", "citations": [{"type": "web_search_result_location", "url": "https://a.example", "title": "A", "cited_text": "x", "encrypted_index": "e"}]}, role="assistant")),
    sample("`citations` of a document", "part.citations.document.document_index", "Citation.document.document_index", also="DOCUMENT_UNIT_CHARACTER Citation.document.unit Citation.document.start Citation.document.end", messages=blocks({"type": "text", "text": "x", "citations": [{"type": "char_location", "document_index": 1, "document_title": "A", "cited_text": "x", "start_char_index": 0, "end_char_index": 1}]}, role="assistant")),
    sample("refusal", "part.refusal.text", "Part.refusal.text", chat=chat({"type": "refusal", "refusal": "no"}, role="assistant"), responses=message({"type": "refusal", "refusal": "no"}, role="assistant"), instead={"messages": ("part.text.text", "no"), "native": ("part.text.text", "no")}),
)
MEDIA = (
    sample("image, inline", "part.media.data", "MediaPart.data", also="Part.media MediaPart.kind MEDIA_KIND_IMAGE", chat=chat({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}), responses=message({"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}), messages=image(type="base64", media_type="image/png", data=PNG), native=parts({"inlineData": {"mimeType": "image/png", "data": PNG}})),
    sample("image, `mime_type`", "part.media.mime_type", "MediaPart.mime_type", chat=chat({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}), responses=message({"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}), messages=image(type="base64", media_type="image/png", data=PNG), native=parts({"inlineData": {"mimeType": "image/png", "data": PNG}})),
    sample("image, by URL", "part.media.uri", "MediaPart.uri", chat=chat({"type": "image_url", "image_url": {"url": "https://a.example/a.png"}}), responses=message({"type": "input_image", "image_url": "https://a.example/a.png"}), messages=image(type="url", url="https://a.example/a.png"), native=parts({"fileData": {"mimeType": "image/png", "fileUri": "https://a.example/a.png"}})),
    sample("image, `file_id`", "part.media.file_id", "MediaPart.file_id", responses=message({"type": "input_image", "file_id": "file_1"}), messages=image(type="file", file_id="file_1")),
    sample("image, `detail`: auto", "part.media.detail", "MediaPart.detail", chat=chat({"type": "image_url", "image_url": {"url": "https://a.example/a.png", "detail": "auto"}}), responses=message({"type": "input_image", "image_url": "https://a.example/a.png", "detail": "auto"}), ignored="the default of the other formats"),
    sample("image, `detail`: high", "part.media.detail", "MediaPart.detail", chat=chat({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "high"}}), responses=message({"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "high"}), native=parts({"inlineData": {"mimeType": "image/png", "data": PNG}, "mediaResolution": {"level": "MEDIA_RESOLUTION_HIGH"}})),
    sample("audio", "part.media.data", "MEDIA_KIND_AUDIO", chat=chat({"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}}), responses=message({"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}}), native=parts({"inlineData": {"mimeType": "audio/wav", "data": WAV}})),
    sample("audio of another type", "part.media.data", "MEDIA_KIND_AUDIO", native=parts({"inlineData": {"mimeType": "audio/flac", "data": WAV}})),
    sample("video", "part.media.data", "MEDIA_KIND_VIDEO", native=parts({"inlineData": {"mimeType": "video/mp4", "data": WAV}})),
    sample("document: PDF, inline", "part.media.data", "MEDIA_KIND_DOCUMENT", responses=message({"type": "input_file", "file_data": f"data:application/pdf;base64,{PDF}", "filename": "a.pdf"}), messages=blocks({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}}), native=parts({"inlineData": {"mimeType": "application/pdf", "data": PDF}})),
    sample("document: text, inline", "part.media.data", "MEDIA_KIND_DOCUMENT", responses=message({"type": "input_file", "file_data": f"data:text/plain;base64,{TEXT_FILE}"}), messages=document(), native=parts({"inlineData": {"mimeType": "text/plain", "data": TEXT_FILE}}), elsewhere={"chat": "part.text.text", "responses": "part.text.text"}),
    sample("document: any other type, inline", "part.media.data", "MEDIA_KIND_DOCUMENT", responses=message({"type": "input_file", "file_data": f"data:application/zip;base64,{TEXT_FILE}", "filename": "a.zip"}), native=parts({"inlineData": {"mimeType": "application/zip", "data": TEXT_FILE}})),
    sample("document, by URL", "part.media.uri", "MediaPart.uri", responses=message({"type": "input_file", "file_url": "https://a.example/a.pdf"}), messages=blocks({"type": "document", "source": {"type": "url", "url": "https://a.example/a.pdf"}}), native=parts({"fileData": {"mimeType": "application/pdf", "fileUri": "https://a.example/a.pdf"}})),
    sample("document, `file_id`", "part.media.file_id", "MediaPart.file_id", responses=message({"type": "input_file", "file_id": "file_1"}), messages=blocks({"type": "document", "source": {"type": "file", "file_id": "file_1"}})),
    sample("document, `filename`", "part.media.filename", "MediaPart.filename", responses=message({"type": "input_file", "file_data": f"data:application/pdf;base64,{PDF}", "filename": "a.pdf"}), elsewhere={"messages": "part.media.title"}, instead={"converse": ("part.media.title", "a")}),
    sample("document, `title`", "part.media.title", "MediaPart.title", messages=blocks({"type": "document", "title": "A", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}}), elsewhere={"chat": "part.media.filename", "responses": "part.media.filename"}),
    sample("document, `context`", "part.media.context", "MediaPart.context", messages=document(context="Of 1900")),
    sample("document, `citable`", "part.media.citable", "MediaPart.citable", messages=document(citations={"enabled": True})),
    sample("document in `blocks`", "part.media.blocks.parts[0].text.text", "MediaPart.blocks", also="DocumentBlocks.parts", messages=blocks({"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "Hello"}]}}), elsewhere=dict.fromkeys(("chat", "responses", "native"), "part.text.text")),
    sample("search result, `origin`", "part.media.origin", "MediaPart.origin", messages=blocks(FOUND)),
    sample("generated audio, `media_id`", "part.media.media_id", "MediaPart.media_id", chat={"messages": [USER_TURN, {"role": "assistant", "audio": {"id": "audio_1"}}, USER_TURN]}),
    sample("generated image, `media_id`", "part.media.media_id", "MediaPart.media_id", responses=items({"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": PNG}, USER_TURN), ignored="the image itself is sent"),
    sample("`thought` of a part that is no text", "part.thought", "Part.thought", native={"contents": [NATIVE_USER_TURN, {"role": "model", "parts": [{"thought": True, "inlineData": {"mimeType": "image/png", "data": PNG}}]}, NATIVE_USER_TURN]}),
)
ANSWER_ITEM: Body = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "x", "annotations": []}],
}
SIGNATURE = "c2lnbmF0dXJl"
THOUGHTS = (
    sample("`texts`", "part.reasoning.texts", "Part.reasoning.texts", chat={"messages": [USER_TURN, {"role": "assistant", "content": "x", "reasoning_content": "hm"}, USER_TURN]}, responses=items({"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}, ANSWER_ITEM, USER_TURN), messages={"messages": [USER_TURN, {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": SIGNATURE}, {"type": "text", "text": "x"}]}, USER_TURN]}, native={"contents": [NATIVE_USER_TURN, {"role": "model", "parts": [{"thought": True, "text": "hm"}, {"text": "x"}]}, NATIVE_USER_TURN]}),
    sample("`summaries`", "part.reasoning.summaries", "Part.reasoning.summaries", responses=items({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}, ANSWER_ITEM, USER_TURN), elsewhere={"chat": "part.reasoning.texts", "native": "part.reasoning.texts"}),
    sample("`redacted`", "part.reasoning.redacted", "Part.reasoning.redacted", messages={"messages": [USER_TURN, {"role": "assistant", "content": [{"type": "redacted_thinking", "data": SIGNATURE}, {"type": "text", "text": "x"}]}, USER_TURN]}, named=("state",)),
    sample("`item_id`", "part.reasoning.item_id", "Part.reasoning.item_id", responses=items({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}, ANSWER_ITEM, USER_TURN), ignored="an id of the format, without a meaning for the model"),
    sample("`state`", "part.state.data", "Part.state", also="ReasoningState.data", chat={"messages": [USER_TURN, {"role": "assistant", "content": "x", "extra_content": {"google": {"thought_signature": SIGNATURE}}}, USER_TURN]}, responses=items({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": SIGNATURE}, ANSWER_ITEM, USER_TURN), messages={"messages": [USER_TURN, {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": SIGNATURE}, {"type": "text", "text": "x"}]}, USER_TURN]}, native={"contents": [NATIVE_USER_TURN, {"role": "model", "parts": [{"text": "x", "thoughtSignature": SIGNATURE}]}, NATIVE_USER_TURN]}),
)
CALLS = (
    sample("call `call_id`", "part.tool_call.call_id", "Part.tool_call.call_id", **exchange()),
    sample("call `name`", "part.tool_call.name", "Part.tool_call.name", **exchange()),
    sample("call `arguments_json`", "part.tool_call.arguments_json", "Part.tool_call.arguments_json", **exchange()),
    sample("call `text` of a custom tool", "part.tool_call.text", "Part.tool_call.text", chat={"messages": [USER_TURN, {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "type": "custom", "custom": {"name": "c", "input": "go"}}]}, RESULT]}, responses=items(*CUSTOM_ITEMS), instead={"messages": ("part.tool_call.arguments_json", '{"input": "go"}'), "native": ("part.tool_call.arguments_json", '{"input": "go"}')}),
    sample("call `item_id`", "part.tool_call.item_id", "Part.tool_call.item_id", responses=items({**CALL_ITEM, "id": "fc_1"}, RESULT_ITEM), ignored="an id of the format, without a meaning for the model"),
    sample("call `namespace`", "part.tool_call.namespace", "Part.tool_call.namespace", responses=items({**CALL_ITEM, "namespace": "n"}, RESULT_ITEM), instead=dict.fromkeys(("chat", "messages", "native"), ("part.tool_call.name", "n__f"))),
    sample("call of a tool with a type (`tool_type`)", "part.tool_call.tool_type", "Part.tool_call.tool_type", responses=items({"type": "apply_patch_call", "call_id": "call_1", "operation": {"type": "delete_file", "path": "a"}, "status": "completed"}, {"type": "apply_patch_call_output", "call_id": "call_1", "output": "gone", "status": "completed"}), instead=dict.fromkeys(("chat", "messages", "native"), ("part.tool_call.name", "apply_patch"))),
    sample("result `call_id`", "part.tool_result.call_id", "Part.tool_result.call_id", **exchange()),
    sample("result `name`", "part.tool_result.name", "Part.tool_result.name", chat={"messages": [USER_TURN, {"role": "assistant", "content": None, "tool_calls": [CALL]}, {**RESULT, "name": "f"}]}, native=exchange()["native"], ignored="the id of the call identifies the tool"),
    sample("result: text", "part.tool_result.parts[0].text.text", "Part.tool_result.parts", chat=exchange()["chat"], responses=exchange()["responses"], messages=exchange()["messages"]),
    sample("result: image", "part.tool_result.parts[].media.data", "Part.tool_result.parts", responses=items(CALL_ITEM, {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}]}), **answered({**TOOL_RESULT, "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}]}), native={"contents": [NATIVE_USER_TURN, {"role": "model", "parts": [CALL_PART]}, {"role": "user", "parts": [{"functionResponse": {"id": "call_1", "name": "f", "response": {}, "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}]}}]}]}, elsewhere={"chat": "part.media.data", "native": "part.media.data"}),
    sample("result: a tool that was loaded", "part.tool_result.parts[0].opaque.text", "Part.opaque.text", **answered({**TOOL_RESULT, "content": [{"type": "tool_reference", "tool_name": "g"}]}), elsewhere=dict.fromkeys(("chat", "responses", "native"), "part.tool_result.parts[0].text.text")),
    sample("result `result_json`", "part.tool_result.result_json", "Part.tool_result.result_json", native={"contents": [NATIVE_USER_TURN, {"role": "model", "parts": [CALL_PART]}, {"role": "user", "parts": [{"functionResponse": {"id": "call_1", "name": "f", "response": {"degrees": 21}}}]}]}, elsewhere=dict.fromkeys(("chat", "responses", "messages"), "part.tool_result.parts[0].text.text")),
    sample("result `is_error`", "part.tool_result.is_error", "Part.tool_result.is_error", **answered({**TOOL_RESULT, "is_error": True}), native={"contents": [NATIVE_USER_TURN, {"role": "model", "parts": [CALL_PART]}, {"role": "user", "parts": [{"functionResponse": {"id": "call_1", "name": "f", "response": {"error": "sunny"}}}]}]}),
    sample("result `custom`", "part.tool_result.custom", "Part.tool_result.custom", responses=items(*CUSTOM_ITEMS), ignored="the call has the kind of its tool"),
    sample("result `item_id`", "part.tool_result.item_id", "Part.tool_result.item_id", responses=items(CALL_ITEM, {**RESULT_ITEM, "id": "fco_1"}), ignored="an id of the format, without a meaning for the model"),
)
SEARCH_ITEM: Body = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {
        "type": "search",
        "query": "q",
        "queries": ["q"],
        "sources": [{"type": "url", "url": "https://a.example"}],
    },
}
SEARCHED: Body = {
    "messages": [
        USER_TURN,
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "srvtoolu_1",
                    "content": [
                        {
                            "type": "web_search_result",
                            "url": "https://a.example",
                            "title": "A",
                            "page_age": "2 days",
                            "encrypted_content": "e",
                        }
                    ],
                },
                {"type": "text", "text": "x"},
            ],
        },
        USER_TURN,
    ]
}
RAN: Body = {
    "contents": [
        NATIVE_USER_TURN,
        {
            "role": "model",
            "parts": [
                {"executableCode": {"language": "PYTHON", "code": "1"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
                {"text": "x"},
            ],
        },
        NATIVE_USER_TURN,
    ]
}
SERVER = (
    sample("search call", "part.server_tool_call.queries", "Part.server_tool_call.queries", also="Part.server_tool_call.call_id Part.server_tool_call.name Part.server_tool_call.input_json Part.server_tool_call.status", responses=items(SEARCH_ITEM, USER_TURN), messages=SEARCHED),
    sample("search result", "part.server_tool_result.results", "Part.server_tool_result.results", also="Part.server_tool_result.call_id Part.server_tool_result.name SearchResult.url SearchResult.title SearchResult.page_age SearchResult.encrypted_content", responses=items(SEARCH_ITEM, USER_TURN), messages=SEARCHED, named=("server_tool_call",)),
    sample("failed search", "part.server_tool_result.error_code", "Part.server_tool_result.error_code", messages={"messages": [USER_TURN, {"role": "assistant", "content": [{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}, {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"}}]}, USER_TURN]}, named=("server_tool_call",)),
    sample("other call of the provider's own tools", "part.server_tool_call.input_json", "Part.server_tool_call.input_json", also="Part.server_tool_call.container_id", responses=items({"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "container_id": "cntr_1", "code": "1", "outputs": []}, USER_TURN), native=RAN),
    sample("other result of the provider's own tools", "part.server_tool_result.output_json", "Part.server_tool_result.output_json", native=RAN),
)
CITED = (
    sample("`title`", "part.citations.title", "Citation.title", also="Citation.start_index Citation.end_index Citation.cited_text Citation.web.encrypted_index", messages=blocks({"type": "text", "text": "x", "citations": [{"type": "web_search_result_location", "url": "https://a.example", "title": "A", "cited_text": "x", "encrypted_index": "e"}]}, role="assistant")),
    sample("page of a document", "part.citations.document.start", "DOCUMENT_UNIT_PAGE", messages=blocks({"type": "text", "text": "x", "citations": [{"type": "page_location", "document_index": 0, "document_title": "A", "cited_text": "x", "start_page_number": 1, "end_page_number": 2}]}, role="assistant")),
    sample("block of a document", "part.citations.document.end", "DOCUMENT_UNIT_BLOCK", also="Citation.document.file_id", messages=blocks({"type": "text", "text": "x", "citations": [{"type": "content_block_location", "document_index": 0, "document_title": "A", "cited_text": "x", "start_block_index": 0, "end_block_index": 1}]}, role="assistant")),
    sample("search result", "part.citations.document.origin", "Citation.document.origin", messages=blocks({"type": "text", "text": "x", "citations": [{"type": "search_result_location", "search_result_index": 0, "source": "https://a.example", "title": "A", "cited_text": "x", "start_block_index": 0, "end_block_index": 1}]}, role="assistant")),
    sample("any other", "part.citations.opaque.type", "Citation.opaque", responses=message({"type": "output_text", "text": "x", "annotations": [{"type": "file_path", "file_id": "file_1", "index": 0}]}, role="assistant")),
)

CONVERSATION = (
    Area("Turns", TURNS),
    Area("Text", PARTS),
    Area("Media", MEDIA),
    Area("Earlier reasoning", THOUGHTS),
    Area("Tool calls and results", CALLS),
    Area("The provider's own tools", SERVER),
    Area("Citations of earlier responses", CITED),
)

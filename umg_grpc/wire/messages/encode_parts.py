"""Encoding of the parts of canonical messages as content blocks of a messages request to a provider."""

from typing import assert_never

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json import JsonObject, json_text
from umg_grpc.wire.core.tool_arguments import RAW_ARGUMENTS, call_arguments
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.dropped_fields_report import Report, foreign, unknown_part, untranslatable
from umg_grpc.wire.messages.cache_control import encode_cache
from umg_grpc.wire.messages.citations import encode_citation
from umg_grpc.wire.messages.content_blocks import encode_document, encode_image
from umg_grpc.wire.messages.provider_tool_names import CallIds
from umg_grpc.wire.messages.server_tools import encode_server_result
from umg_grpc.wire.messages.tool_calls import encode_call


class PartEncoder:
    """Encoder of the parts of a request's messages, in their order: tool calls without an id get one, by which their
    results are found.
    """

    def __init__(self, request: pb.GenerateRequest, names: ToolNames, report: Report) -> None:
        self._request = request
        self._names = names
        self._report = report
        self._ids = CallIds()
        self._server_call_ids: set[str] = set()  # ids of the provider's own calls that were encoded

    def begin_message(self) -> None:
        """Begin a message of the assistant."""
        self._ids.begin_message()

    def encode_assistant_part(self, part: pb.Part, at: str, own_id: str) -> object:
        """Return a part of an assistant's message as a block; None for a part that is left out and reported.
        Raise UmgError(UNTRANSLATABLE) for media. `at`: canonical path of the part. `own_id`: id for a tool call without
        one.
        """
        if part.HasField("state") and not (part.HasField("reasoning") and part.state.format == "messages"):
            self._report.drop("state")
        match part.WhichOneof("kind"):
            case _ if part.thought:
                self._report.drop("thought")
                return None
            case "reasoning":
                return self._encode_reasoning(part)
            case "tool_call":
                return self._call(part.tool_call, own_id)
            case "refusal":
                self._report.drop("refusal", "text")
                return encode_text(part.refusal.text)
            case "server_tool_call":
                return self._server_call(part.server_tool_call, at)
            case "server_tool_result":
                return self._server_result(part.server_tool_result)
            case "media":
                raise untranslatable(at, "an assistant's turn cannot hold it in this format")
            case "text" | "opaque" | "tool_result" | "compaction" | None:
                return self._text_or_opaque(part, at)
            case unhandled:
                assert_never(unhandled)

    def encode_user_part(self, part: pb.Part, at: str, message: pb.Message) -> object:
        """Return a part of a user's message, or of a message with tool results, as a block; None for a part that is
        left out and reported.
        Raise UmgError(UNTRANSLATABLE) for a part that only other roles can have. `at`: canonical path of the part.
        """
        match part.WhichOneof("kind"):
            case "tool_result":
                return self._result(part.tool_result, at)
            case "media":
                return self._media(part.media, at)
            case "reasoning" | "server_tool_call" | "server_tool_result" as kind:
                self._report.drop(kind)
                return None
            case "tool_call" | "refusal":
                raise untranslatable(at, "only an assistant's turn can hold it")
            case "text" if message.role == pb.ROLE_TOOL:
                raise untranslatable(at, "only a user's turn can hold it")
            case "text" | "opaque" | "compaction" | None:
                return self._text_or_opaque(part, at)
            case unhandled:
                assert_never(unhandled)

    def _text_or_opaque(self, part: pb.Part, at: str) -> object:
        match part.WhichOneof("kind"):
            case "text":
                return self._text_with_citations(part.text)
            case "opaque" if part.opaque.format == "messages":
                return json_text(part.opaque.json, f"{at}.opaque.json")
            case "opaque":
                raise foreign(part.opaque, at)
            case _:  # any other kind is not allowed here
                raise unknown_part(at)

    def _text_with_citations(self, text: pb.TextPart) -> JsonObject | None:
        """Return a text as a block with the citations that a provider of this format made, since it rejects others
        (they are reported); None for a blank text.
        """
        block = encode_text(text.text)
        if not text.citations or block is None:
            return block
        kept = [
            encoded
            for citation in text.citations
            if citation.web.encrypted_index or not citation.HasField("web")
            if (encoded := encode_citation(citation)) is not None
        ]
        if len(kept) < len(text.citations):
            self._report.drop("citations")
        if kept:
            block["citations"] = kept
        return block

    def _encode_reasoning(self, part: pb.Part) -> JsonObject | None:
        """Return reasoning that a provider of this format signed as a block; None for other reasoning, which is
        reported: providers reject it.
        """
        if part.state.format != "messages":
            self._report.drop("reasoning")
            return None
        if part.reasoning.redacted:
            return {"type": "redacted_thinking", "data": part.state.data}
        thoughts = "\n\n".join(part.reasoning.texts or part.reasoning.summaries)
        return {"type": "thinking", "thinking": thoughts, "signature": part.state.data}

    def _call(self, call: pb.ToolCall, own_id: str) -> JsonObject:
        arguments = call_arguments(call)
        if isinstance(arguments, dict) and RAW_ARGUMENTS in arguments:
            self._report.drop("arguments", RAW_ARGUMENTS)
        return encode_call(self._ids.of_call(call, own_id), self._names.of_call(call), arguments)

    def _result(self, result: pb.ToolResult, at: str) -> JsonObject:
        block: JsonObject = {"type": "tool_result", "tool_use_id": self._ids.of_result(result)}
        content = list[object]()
        for index, part in enumerate(result.parts):
            path = f"{at}.tool_result.parts[{index}]"
            encoded = self._media(part.media, path) if part.HasField("media") else self._text_or_opaque(part, path)
            if encoded is not None:
                content.append(encoded)
            if part.HasField("cache_control"):
                block["cache_control"] = encode_cache(part.cache_control)  # providers reject marks inside a result
        if not result.parts and result.result_json:
            content.append({"type": "text", "text": result.result_json})
        if content:
            block["content"] = compact_content(content)
        if result.HasField("is_error"):
            block["is_error"] = result.is_error
        return block

    def _server_call(self, call: pb.ServerToolCall, at: str) -> JsonObject | None:
        if call.format != "messages" or not call.input_json:
            self._report.drop("server_tool_call")
            return None
        self._server_call_ids.add(call.call_id)
        arguments = json_text(call.input_json, f"{at}.server_tool_call.input_json")
        return {"type": "server_tool_use", "id": call.call_id, "name": call.name, "input": arguments}

    def _server_result(self, result: pb.ServerToolResult) -> JsonObject | None:
        encoded = encode_server_result(result, result.call_id) if result.call_id in self._server_call_ids else None
        if encoded is None:
            self._report.drop("server_tool_result")
        return encoded

    def _media(self, media: pb.MediaPart, at: str) -> JsonObject:
        if media.detail not in ("", "auto"):
            self._report.drop("detail")
        if media.file_id and self._request.source.format not in {"", "messages"}:
            raise untranslatable(at, "a file of another provider's account cannot be read; send its bytes")
        if media.uri and not media.uri.startswith(("http://", "https://")):
            raise untranslatable(at, "this model's provider reads http(s) addresses only; send the bytes")
        encoded = encode_image(media) if media.kind == pb.MEDIA_KIND_IMAGE else encode_document(media, self._report, at)
        if encoded is None:
            kind = pb.MediaKind.Name(media.kind).removeprefix("MEDIA_KIND_").lower()
            form = media.mime_type or media.WhichOneof("source")
            raise untranslatable(at, f"this model's provider does not accept this {kind} ({form}); send another form")
        return encoded


def encode_text(text: str) -> JsonObject | None:
    """Encode a text as a `text` block; return None for a blank text, which providers reject."""
    return {"type": "text", "text": text} if text.strip() else None


def compact_content(blocks: list[object]) -> object:
    """Return the content of a message: a string if `blocks` is a single text block without further members, since every
    provider accepts that; else the blocks unchanged.
    """
    match blocks:
        case [{"type": "text", "text": text, **more}] if not more:
            return text
        case _:  # several blocks, or one with further members
            return blocks

"""Encoding of the parts of canonical messages as content blocks of a messages request to a provider."""

from umg_grpc.v1 import pb
from umg_grpc.wire.core.content_block_encoder import PartEncoder
from umg_grpc.wire.core.json_decoding import JsonObject, json_text
from umg_grpc.wire.core.provider_tool_call_ids import ProviderCallIds
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.dropped_fields_report import Report, foreign, untranslatable
from umg_grpc.wire.messages.cache_control import encode_cache
from umg_grpc.wire.messages.citations import encode_citation
from umg_grpc.wire.messages.content_blocks import encode_document, encode_image
from umg_grpc.wire.messages.provider_tool_names import ILLEGAL_CHARACTERS
from umg_grpc.wire.messages.server_tools import encode_server_result
from umg_grpc.wire.messages.tool_calls import encode_call


class MessagesPartEncoder(PartEncoder[object]):
    """Encoder of the parts of a request's messages as content blocks of this format."""

    state_formats = frozenset({"messages"})

    def __init__(self, request: pb.GenerateRequest, names: ToolNames, report: Report) -> None:
        super().__init__(names, ProviderCallIds(ILLEGAL_CHARACTERS), report)
        self._request = request
        self._server_call_ids: set[str] = set()  # ids of the provider's own calls that were encoded

    def text_block(self, text: str) -> JsonObject:
        return {"type": "text", "text": text}

    def _opaque(self, opaque: pb.OpaquePart, at: str) -> object:
        if opaque.format != "messages":
            raise foreign(opaque, at)
        return json_text(opaque.json, f"{at}.opaque.json")

    def _cited_text(self, text: pb.TextPart) -> object:
        block = self.encode_text(text.text)
        if not text.citations or not isinstance(block, dict):
            return block
        # providers reject the citations of others
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

    def _reasoning(self, part: pb.Part) -> JsonObject | None:
        if part.state.format != "messages":
            self._report.drop("reasoning")  # providers reject it
            return None
        if part.reasoning.redacted:
            return {"type": "redacted_thinking", "data": part.state.data}
        thoughts = "\n\n".join(part.reasoning.texts or part.reasoning.summaries)
        return {"type": "thinking", "thinking": thoughts, "signature": part.state.data}

    def _encode_call(self, call_id: str, name: str, arguments: object) -> JsonObject:
        return encode_call(call_id, name, arguments)

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

    def _server_part(self, part: pb.Part, at: str) -> JsonObject | None:
        if part.HasField("server_tool_call"):
            return self._server_call(part.server_tool_call, at)
        return self._server_result(part.server_tool_result)

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


def compact_content(blocks: list[object]) -> object:
    """Return one plain text block as a string, which every provider accepts; other blocks unchanged."""
    match blocks:
        case [{"type": "text", "text": text, **more}] if not more:
            return text
        case _:  # several blocks, or one with further members
            return blocks

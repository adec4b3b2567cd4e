"""Encoding of the parts of canonical messages as content blocks of Converse requests."""

import msgspec
import pybase64
from msgspec import Raw

from umg_grpc.knowledge.bedrock_models import BedrockModel
from umg_grpc.v1 import pb
from umg_grpc.wire.converse.cache_points import Block
from umg_grpc.wire.converse.media_blocks import MediaEncoder
from umg_grpc.wire.converse.provider_tool_names import ILLEGAL_IN_IDS, MAX_ID_CHARACTERS
from umg_grpc.wire.core.content_block_encoder import PartEncoder
from umg_grpc.wire.core.inserted_turn_texts import NO_RESULT
from umg_grpc.wire.core.json_decoding import JsonObject, json_text
from umg_grpc.wire.core.provider_tool_call_ids import ProviderCallIds
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.dropped_fields_report import Report, foreign, omits, untranslatable

SHOWN_RESULT = "(shown below)"
SIGNED_FORMAT, REDACTED_FORMAT = "messages", "converse"
"""Formats of reasoning states: a signature, which the messages format shares, or redacted reasoning of any model."""
RESULT_MEDIA = frozenset({"image", "document", "video", "searchResult"})
"""Blocks that the content of a tool result may have."""


class ConversePartEncoder(PartEncoder[Block]):
    """Encoder of the parts of a request's messages as content blocks of this format."""

    state_formats = frozenset({SIGNED_FORMAT, REDACTED_FORMAT})

    def __init__(self, names: ToolNames, model: BedrockModel, report: Report, *, media_in_results: bool) -> None:
        super().__init__(names, ProviderCallIds(ILLEGAL_IN_IDS, MAX_ID_CHARACTERS), report)
        self._model = model
        self._media_in_results = media_in_results
        self._files = MediaEncoder(report)

    def text_block(self, text: str) -> Block:
        return Block({"text": text})

    def _cited_text(self, text: pb.TextPart) -> Block | None:
        if text.citations:
            self._report.drop("citations")
        return self.encode_text(text.text)

    def _opaque(self, opaque: pb.OpaquePart, at: str) -> Block | None:
        if opaque.format == "converse":
            return Block(msgspec.json.decode(json_text(opaque.json, f"{at}.opaque.json"), type=dict[str, object]))
        if omits(opaque, self._report):
            return None
        raise foreign(opaque, at)

    def _media(self, media: pb.MediaPart, at: str) -> Block:
        return Block(self._files.encode(media, at))

    def _reasoning(self, part: pb.Part) -> Block | None:
        state, taken = part.state, self._model.returned_reasoning
        redacted = state.format == REDACTED_FORMAT or (state.format == SIGNED_FORMAT and part.reasoning.redacted)
        is_taken = state.format in {SIGNED_FORMAT, REDACTED_FORMAT} and ("redacted" if redacted else "signed") in taken
        if not is_taken or (redacted and not _is_base64(state.data)):  # providers refuse it
            self._report.drop("reasoning")
            return None
        if redacted:
            return Block({"reasoningContent": {"redactedContent": state.data}})
        text = "\n\n".join(part.reasoning.texts or part.reasoning.summaries)
        return Block({"reasoningContent": {"reasoningText": {"text": text, "signature": state.data}}})

    def _encode_call(self, call_id: str, name: str, arguments: object) -> Block:
        return Block({"toolUse": {"toolUseId": call_id, "name": name, "input": arguments}})

    def _result(self, result: pb.ToolResult, at: str) -> Block:
        content, mark = list[JsonObject](), None
        for index, part in enumerate(result.parts):
            path = f"{at}.tool_result.parts[{index}]"
            if part.HasField("media") and not self._media_in_results:
                self.shown.append(self._media(part.media, path))
            elif part.HasField("media"):
                content.append(self._result_media(part.media, path))
            elif (encoded := self._text_or_opaque(part, path)) is not None:
                content.append(encoded.fields)
            if part.HasField("cache_control"):
                mark = part.cache_control  # cache points are behind a result, not in it
        if not result.parts and result.result_json:
            content.append(_json_content(result.result_json))
        blank: JsonObject = {"text": SHOWN_RESULT if self.shown else NO_RESULT}
        fields: JsonObject = {"toolUseId": self._ids.of_result(result), "content": content or [blank]}
        if result.is_error:
            fields["status"] = "error"
        return Block({"toolResult": fields}, mark)

    def _result_media(self, media: pb.MediaPart, at: str) -> JsonObject:
        encoded = self._files.encode(media, at)
        if not RESULT_MEDIA.issuperset(encoded):
            raise untranslatable(at, "the result of a tool cannot hold it in this format")
        return encoded


def _is_base64(text: str) -> bool:
    try:
        pybase64.b64decode(text, validate=True)
    except ValueError:
        return False
    return True


def _json_content(text: str) -> JsonObject:
    try:
        value = msgspec.json.decode(text, type=Raw)
    except (ValueError, RecursionError):
        return {"text": text}
    return {"json": value} if bytes(value).startswith(b"{") else {"text": text}

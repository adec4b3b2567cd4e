"""Encoding of the parts of canonical messages as content blocks of Converse requests."""

from typing import assert_never

import msgspec
import pybase64
from msgspec import Raw

from umg_grpc.knowledge.bedrock_models import BedrockModel
from umg_grpc.v1 import pb
from umg_grpc.wire.converse.cache_points import Block
from umg_grpc.wire.converse.media_blocks import MediaEncoder
from umg_grpc.wire.converse.provider_tool_names import ILLEGAL_IN_IDS, MAX_ID_CHARACTERS
from umg_grpc.wire.core.json import JsonObject, json_text
from umg_grpc.wire.core.tool_arguments import RAW_ARGUMENTS, call_arguments
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.dropped_fields_report import Report, foreign, omits, unknown_part, untranslatable
from umg_grpc.wire.messages.provider_tool_names import CallIds

NO_RESULT, SHOWN_RESULT = "(no result)", "(shown below)"
FILLER = "."
"""Text of a block that is added because providers require one; they refuse blank text."""
SIGNED, REDACTED = "messages", "converse"
"""Formats of reasoning states: a signature, which the messages format has, too, and redacted reasoning, which is of any
maker.
"""
RESULT_MEDIA = frozenset({"image", "document", "video", "searchResult"})
"""Blocks that the content of a tool result may have."""


class PartEncoder:
    """Encoder of the parts of a request's messages, in their order: tool calls without an id get one, by which their
    results are found.
    """

    def __init__(self, names: ToolNames, model: BedrockModel, report: Report, *, media_in_results: bool) -> None:
        """Create the encoder. `media_in_results`: whether the model accepts media in the results of tools."""
        self._names = names
        self._model = model
        self._report = report
        self._media_in_results = media_in_results
        self._shown = list[Block]()
        self._media = MediaEncoder(report)
        self._ids = CallIds(ILLEGAL_IN_IDS, MAX_ID_CHARACTERS)

    def begin_message(self) -> None:
        """Begin a message of the model."""
        self._ids.begin_message()

    def take_shown(self) -> list[Block]:
        """Return the media of the last result that it may not contain; they follow the results of its turn."""
        shown, self._shown = self._shown, []
        return shown

    def encode_assistant_part(self, part: pb.Part, at: str, own_id: str) -> Block | None:
        """Return a part of the model's message as a block; None for a part that is left out and reported.
        Raise UmgError(UNTRANSLATABLE) for media. `at`: canonical path of the part. `own_id`: id for a tool call without
        one.
        """
        if part.HasField("state") and not (part.HasField("reasoning") and part.state.format in {SIGNED, REDACTED}):
            self._report.drop("state")
        match part.WhichOneof("kind"):
            case _ if part.thought:
                self._report.drop("thought")
                return None
            case "reasoning":
                return self._reasoning(part)
            case "tool_call":
                return self._call(part.tool_call, own_id)
            case "refusal":
                self._report.drop("refusal", "text")
                return encode_text(part.refusal.text)
            case "server_tool_call" | "server_tool_result" as kind:
                self._report.drop(kind)
                return None
            case "media":
                raise untranslatable(at, "a turn of the model cannot hold it in this format")
            case "text" | "opaque" | "tool_result" | "compaction" | None:
                return self._text_or_opaque(part, at)
            case unhandled:
                assert_never(unhandled)

    def encode_user_part(self, part: pb.Part, at: str, message: pb.Message) -> Block | None:
        """Return a part of a user's message, or of a message with tool results, as a block; None for a part that is
        left out and reported.
        Raise UmgError(UNTRANSLATABLE) for a part that only other roles can have. `at`: canonical path of the part.
        """
        match part.WhichOneof("kind"):
            case "tool_result":
                return self._result(part.tool_result, at)
            case "media":
                return Block(self._media.encode(part.media, at))
            case "reasoning" | "server_tool_call" | "server_tool_result" as kind:
                self._report.drop(kind)
                return None
            case "tool_call" | "refusal":
                raise untranslatable(at, "only a turn of the model can hold it")
            case "text" if message.role == pb.ROLE_TOOL:
                raise untranslatable(at, "only a user's turn can hold it")
            case "text" | "opaque" | "compaction" | None:
                return self._text_or_opaque(part, at)
            case unhandled:
                assert_never(unhandled)

    def _text_or_opaque(self, part: pb.Part, at: str) -> Block | None:
        match part.WhichOneof("kind"):
            case "text":
                if part.text.citations:
                    self._report.drop("citations")
                return encode_text(part.text.text)
            case "opaque" if part.opaque.format == "converse":
                return Block(
                    msgspec.json.decode(json_text(part.opaque.json, f"{at}.opaque.json"), type=dict[str, object])
                )
            case "opaque" if omits(part.opaque, self._report):
                return None
            case "opaque":
                raise foreign(part.opaque, at)
            case _:  # any other kind is not allowed here
                raise unknown_part(at)

    def _reasoning(self, part: pb.Part) -> Block | None:
        """Return reasoning with a state that the model takes back as a block. Return None for any other, and report it,
        also for redacted reasoning that is no base64: providers refuse it.
        """
        state, taken = part.state, self._model.returned_reasoning
        redacted = state.format == REDACTED or (state.format == SIGNED and part.reasoning.redacted)
        is_taken = state.format in {SIGNED, REDACTED} and ("redacted" if redacted else "signed") in taken
        if not is_taken or (redacted and not _is_base64(state.data)):
            self._report.drop("reasoning")
            return None
        if redacted:
            return Block({"reasoningContent": {"redactedContent": state.data}})
        text = "\n\n".join(part.reasoning.texts or part.reasoning.summaries)
        return Block({"reasoningContent": {"reasoningText": {"text": text, "signature": state.data}}})

    def _call(self, call: pb.ToolCall, own_id: str) -> Block:
        arguments = call_arguments(call)
        if isinstance(arguments, dict) and RAW_ARGUMENTS in arguments:
            self._report.drop("arguments", RAW_ARGUMENTS)
        call_id = self._ids.of_call(call, own_id)
        return Block({"toolUse": {"toolUseId": call_id, "name": self._names.of_call(call), "input": arguments}})

    def _result(self, result: pb.ToolResult, at: str) -> Block:
        content, mark = list[JsonObject](), None
        for index, part in enumerate(result.parts):
            path = f"{at}.tool_result.parts[{index}]"
            if part.HasField("media") and not self._media_in_results:
                self._shown.append(Block(self._media.encode(part.media, path)))
            elif part.HasField("media"):
                content.append(self._result_media(part.media, path))
            elif (encoded := self._text_or_opaque(part, path)) is not None:
                content.append(encoded.fields)
            if part.HasField("cache_control"):
                mark = part.cache_control  # cache points are behind a result, not in it
        if not result.parts and result.result_json:
            content.append(_json_content(result.result_json))
        blank: JsonObject = {"text": SHOWN_RESULT if self._shown else NO_RESULT}
        fields: JsonObject = {"toolUseId": self._ids.of_result(result), "content": content or [blank]}
        if result.is_error:
            fields["status"] = "error"
        return Block({"toolResult": fields}, mark)

    def _result_media(self, media: pb.MediaPart, at: str) -> JsonObject:
        encoded = self._media.encode(media, at)
        if not RESULT_MEDIA.issuperset(encoded):
            raise untranslatable(at, "the result of a tool cannot hold it in this format")
        return encoded


def encode_text(text: str) -> Block | None:
    """Return a text as a block; None for a blank text, which providers refuse."""
    return Block({"text": text}) if text.strip() else None


def _is_base64(text: str) -> bool:
    try:
        pybase64.b64decode(text, validate=True)
    except ValueError:
        return False
    return True


def _json_content(text: str) -> JsonObject:
    """Return the result of a tool that is JSON: an object as JSON, any other value as text."""
    try:
        value = msgspec.json.decode(text, type=Raw)
    except (ValueError, RecursionError):
        return {"text": text}
    return {"json": value} if bytes(value).startswith(b"{") else {"text": text}

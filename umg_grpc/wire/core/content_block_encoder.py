"""Encoding of message parts as content blocks, for formats whose tool results are blocks of the user's turn."""

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar, assert_never

from umg_grpc.v1 import pb
from umg_grpc.wire.core.provider_tool_call_ids import ProviderCallIds
from umg_grpc.wire.core.tool_argument_objects import RAW_ARGUMENTS, call_arguments
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.dropped_fields_report import Report, unknown_part, untranslatable

BlockT = TypeVar("BlockT")


class PartEncoder(ABC, Generic[BlockT]):
    """Encoder of the parts of a request's messages, in their order. Tool calls without an id get one, so that their
    results find them. None in place of a block means that the part is left out, which is reported.
    """

    state_formats: ClassVar[frozenset[str]]
    """Formats of the reasoning states that providers accept back."""

    def __init__(self, names: ToolNames, ids: ProviderCallIds, report: Report) -> None:
        self._names = names
        self._ids = ids
        self._report = report
        self.shown: list[BlockT] = []
        """Blocks that follow the last part in its turn: media of a result that it may not contain."""

    def begin_message(self) -> None:
        self._ids.begin_message()

    def encode_text(self, text: str) -> BlockT | None:
        """Return a text as a block; None for a blank text, which providers refuse."""
        return self.text_block(text) if text.strip() else None

    def encode_assistant_part(self, part: pb.Part, at: str, own_id: str) -> BlockT | None:
        """Return a part of an assistant's message as a block. Raise UmgError(UNTRANSLATABLE) for media. `at`: canonical
        path of the part. `own_id`: id for a tool call that has none.
        """
        if part.HasField("state") and not (part.HasField("reasoning") and part.state.format in self.state_formats):
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
                return self.encode_text(part.refusal.text)
            case "server_tool_call" | "server_tool_result":
                return self._server_part(part, at)
            case "media":
                raise untranslatable(at, "an assistant's turn cannot hold it in this format")
            case "text" | "opaque" | "tool_result" | "compaction" | None:
                return self._text_or_opaque(part, at)
            case unhandled:
                assert_never(unhandled)

    def encode_user_part(self, part: pb.Part, at: str, message: pb.Message) -> BlockT | None:
        """Return a part of a user's message, or of a message with tool results, as a block. Raise
        UmgError(UNTRANSLATABLE) for a part that only other roles can have. `at`: canonical path of the part.
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

    def _text_or_opaque(self, part: pb.Part, at: str) -> BlockT | None:
        match part.WhichOneof("kind"):
            case "text":
                return self._cited_text(part.text)
            case "opaque":
                return self._opaque(part.opaque, at)
            case _:  # any other kind is not allowed here
                raise unknown_part(at)

    def _call(self, call: pb.ToolCall, own_id: str) -> BlockT:
        arguments = call_arguments(call)
        if isinstance(arguments, dict) and RAW_ARGUMENTS in arguments:
            self._report.drop("arguments", RAW_ARGUMENTS)
        return self._encode_call(self._ids.of_call(call, own_id), self._names.of_call(call), arguments)

    # --- the blocks of a format

    @abstractmethod
    def text_block(self, text: str) -> BlockT:
        """Return a text as a block. The text is not blank."""

    @abstractmethod
    def _cited_text(self, text: pb.TextPart) -> BlockT | None:
        """Return a text with the citations that providers accept back; None for a blank text."""

    @abstractmethod
    def _opaque(self, opaque: pb.OpaquePart, at: str) -> BlockT | None:
        """Return the raw block of an opaque part of this format. Raise UmgError(UNSUPPORTED_FIELD) for others."""

    @abstractmethod
    def _reasoning(self, part: pb.Part) -> BlockT | None:
        """Return reasoning as a block, with a state that providers accept back."""

    @abstractmethod
    def _encode_call(self, call_id: str, name: str, arguments: object) -> BlockT:
        """Return a tool call. `arguments`: a JSON object."""

    @abstractmethod
    def _result(self, result: pb.ToolResult, at: str) -> BlockT:
        """Return the result of a tool call."""

    @abstractmethod
    def _media(self, media: pb.MediaPart, at: str) -> BlockT:
        """Return media of the user. Raise UmgError(UNTRANSLATABLE) for media that providers do not accept."""

    def _server_part(self, part: pb.Part, at: str) -> BlockT | None:
        self._report.drop(part.WhichOneof("kind") or "")
        return None

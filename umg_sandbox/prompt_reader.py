"""Reader of requests for simulated text models: question, system prompt, tool results, media, and number of tokens."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.unknown_role_messages import omits_turn
from umg_grpc.wire.dropped_fields_report import Report, foreign, omits, untranslatable
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.unsupported_field_detection import note_nested, source_path
from umg_sandbox.media_inspection import FIRST_WORDS, MediaDescription, inspect_media
from umg_sandbox.words_from_prompt import digest

Count = Callable[[str], int]
"""Function that returns the number of tokens of a text."""

# Without these fields the response would differ, and the sandbox stores nothing to which they could refer.
INDISPENSABLE_FIELDS = ("previous_response_id", "conversation_id", "prompt_template")
NOT_HONOURED = ("audio_output", "moderation_json")

CONTEXT_TAGS = ("system-reminder", "environment_context")
"""Tags of the blocks that coding agents add to the user's texts."""

SYSTEM_ROLES = (pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER)


@dataclass(frozen=True)
class Result:
    """Result of a tool call: name of the tool, and the text of the result."""

    name: str
    text: str


@dataclass(frozen=True)
class Block:
    """Part of the prompt: hash of its content, and number of its tokens. A cached prefix may end at its end."""

    fingerprint: bytes
    tokens: int
    ttl: pb.CacheTtl.ValueType
    """Lifetime for which the caller wants the prompt up to the end of this block cached; unspecified for no caching."""


@dataclass
class Prompt:
    """Content of a request on which the simulated response depends."""

    system: str = ""
    question: str = ""
    """Last text part of the last user message, without the blocks of `CONTEXT_TAGS`: agents put reminders and
    descriptions of their environment before it or into it.
    """
    last_turn: str = ""
    """All texts of the user since the last response of the model."""
    recent_text: str = ""
    """Texts of the user since the model's last response or tool call; "" if only tool results follow it."""
    opening: str = ""
    """Question in the first message of the user."""
    turns: int = 0
    """Number of questions of the user, each with the responses and tool calls that follow it."""
    results: list[Result] = field(default_factory=list)
    """Tool results since the last response."""
    calls: int = 0
    media_descriptions: list[MediaDescription] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    family_fields: Sequence[str] = ()
    """Fields of the caller's body that only the models of some families accept."""

    @property
    def tokens(self) -> int:
        return min(sum(block.tokens for block in self.blocks), MAX_COUNT)

    def media_tokens(self, kind: "pb.MediaKind.ValueType") -> int:
        """Return the number of tokens of all media of one kind (image, document, audio or video)."""
        return min(sum(media.tokens for media in self.media_descriptions if media.kind == kind), MAX_COUNT)


def read_prompt(request: pb.GenerateRequest, notes: RequestNotes, count: Count, report: Report) -> Prompt:
    """Return the content of a request. `count`: returns the number of tokens of a text; `report`: gets the fields that
    have no effect. Raise UmgError: UNTRANSLATABLE or UNSUPPORTED_FIELD for content that cannot be ignored,
    INVALID_FIELD for an image that cannot be decoded, MISSING_FIELD for a message without a role.
    """
    present = {field.name for field, _ in request.ListFields()}
    unknown = [source_path(name, request.source) for name in notes.indispensable]
    for name in [*unknown, *(name for name in INDISPENSABLE_FIELDS if name in present)]:
        raise untranslatable(name, "the sandbox has no equivalent; leave it out or choose another model")
    for name in [*notes.uncarried, *(name for name in NOT_HONOURED if name in present)]:
        report.drop(name)
    note_nested(request.source, report)
    reader = _Reader(count, report)
    for index, tool in enumerate(request.tools):
        reader.tool(tool, f"tools[{index}]")
    for index, part in enumerate(request.instructions):
        reader.system.append(reader.part(part, "system", f"instructions[{index}]"))
    reader.conversation(request.messages)
    prompt = reader.prompt
    prompt.family_fields = notes.family
    prompt.system = "\n\n".join(text for text in reader.system if text)
    return prompt


class _Reader:
    """Reader of one request that adds its content to a `Prompt`, part by part."""

    def __init__(self, count: Count, report: Report) -> None:
        self._report = report
        self.prompt = Prompt()
        self.system = list[str]()
        self._count = count
        self._names = dict[str, str]()  # names of tools by call ids

    def tool(self, tool: pb.Tool, at: str) -> None:
        """Add a tool to the prompt. `at`: path of the tool. Raise UmgError for a provider's unsimulated tool."""
        match tool.WhichOneof("kind"):
            case "opaque" if omits(tool.opaque, self._report):
                return
            case "opaque":
                raise foreign(tool.opaque, at)
            case None:
                raise _unknown(at)
            case "file_search":
                self._report.drop("file_search")  # accepted without results: the sandbox stores no files
            case "function" | "custom" | "web_search":
                pass
            case unhandled:
                assert_never(unhandled)
        described = pb.Tool()
        described.CopyFrom(tool)
        described.ClearField("cache_control")
        function = tool.function
        text = f"{function.name} {function.description} {function.parameters_json}"
        if tool.HasField("custom"):
            text = f"{tool.custom.name} {tool.custom.description} {tool.custom.format_json}"
        fingerprint = digest(described.SerializeToString(deterministic=True).hex())
        self._block(fingerprint, self._count(text), _ttl(tool))

    def conversation(self, messages: Sequence[pb.Message]) -> None:
        begin, end = _last_turn(messages)
        turn_texts = list[str]()  # texts of the user since the last response
        for index, message in enumerate(messages):
            at = f"messages[{index}]"
            if omits_turn(message, "", self._report):
                continue
            if message.role == pb.ROLE_UNSPECIFIED and not any(part.HasField("opaque") for part in message.parts):
                text = f"{at}.role: say who speaks"
                raise UmgError(pb.ERROR_REASON_MISSING_FIELD, text, field=f"{at}.role")
            texts = list[str]()
            for position, part in enumerate(message.parts):
                place = f"{at}.parts[{position}]"
                text = self.part(part, str(message.role), place)
                if part.HasField("tool_result") and begin <= index < end:
                    result = part.tool_result
                    name = result.name or self._names.get(result.call_id, "")
                    self.prompt.results.append(Result(name, text))
                elif part.HasField("text"):
                    texts.append(text)
            text = "\n".join(texts)
            if message.role in SYSTEM_ROLES:
                self.system.append(text)
            elif message.role == pb.ROLE_ASSISTANT:
                turn_texts.clear()
            elif message.role == pb.ROLE_USER and text:
                self._record_user_texts(texts, turn_texts, index >= begin)

    def _record_user_texts(self, texts: list[str], turn_texts: list[str], last: bool) -> None:
        """Record the texts of a user message in the prompt. `turn_texts`: texts of the user since the last response;
        `last`: whether the message comes after the last response of the model.
        """
        prompt = self.prompt
        if not turn_texts:
            prompt.turns += 1
        turn_texts += texts
        prompt.question = next((text for text in map(_without_context, reversed(texts)) if text.strip()), texts[-1])
        prompt.last_turn = "\n".join(turn_texts)
        if prompt.turns == 1:
            prompt.opening = prompt.question
        if last:
            prompt.recent_text = prompt.last_turn

    def part(self, part: pb.Part, role: str, at: str) -> str:
        """Add a message part with its inner parts to the blocks of the prompt, and return its text. `at`: canonical
        path of the part. Raise UmgError for content that cannot be ignored.
        """
        before, seen = _ttl(part), len(self.prompt.media_descriptions)
        text, extra = self._text(part, at)
        tokens = self._count(text) if text else 0
        for description in self.prompt.media_descriptions[seen:]:
            tokens += description.tokens
            extra += description.fingerprint
        kind = part.WhichOneof("kind") or ""
        self._block(digest(role, kind, text, extra.hex()), tokens, before)
        return text

    def _text(self, part: pb.Part, at: str) -> tuple[str, bytes]:
        """Return the text of a message part, and bytes that distinguish the part from others with the same text."""
        match part.WhichOneof("kind"):
            case "text":
                return part.text.text, b""
            case "refusal":
                return part.refusal.text, b""
            case "reasoning":
                return "\n".join([*part.reasoning.texts, *part.reasoning.summaries]), part.state.data.encode()
            case "media":
                return self._media(part.media, at), b""
            case "tool_call":
                call = part.tool_call
                self.prompt.calls += 1
                self._names[call.call_id] = call.name
                return f"{call.name} {call.arguments_json or call.text}", call.call_id.encode()
            case "tool_result":
                result = part.tool_result
                inner = [self._inner(each, f"{at}.tool_result.parts[{n}]") for n, each in enumerate(result.parts)]
                text = "\n".join(inner) if result.parts else result.result_json
                return text, result.call_id.encode()
            case "server_tool_call":
                return " ".join(part.server_tool_call.queries), part.server_tool_call.call_id.encode()
            case "server_tool_result":
                results = part.server_tool_result.results
                return "\n".join(f"{result.title} {result.url}" for result in results), b""
            case "opaque":
                raise foreign(part.opaque, at)
            case "compaction" | None:
                raise _unknown(at)
            case unhandled:
                assert_never(unhandled)

    def _inner(self, part: pb.Part, at: str) -> str:
        match part.WhichOneof("kind"):
            case "text":
                return part.text.text
            case "media":
                return self._media(part.media, at)
            case "opaque" if part.opaque.text:
                return part.opaque.text
            case "opaque":
                raise foreign(part.opaque, at)
            case (
                "reasoning"
                | "tool_call"
                | "tool_result"
                | "server_tool_call"
                | "server_tool_result"
                | "refusal"
                | "compaction"
                | None
            ):
                raise _unknown(at)
            case unhandled:
                assert_never(unhandled)

    def _media(self, media: pb.MediaPart, at: str) -> str:
        """Add a medium's description to the prompt. Return the text of a text document, else "". `at`: the path."""
        if media.WhichOneof("source") != "blocks":
            description = inspect_media(media, f"{at}.media")
            self.prompt.media_descriptions.append(description)
            return description.text or ""
        parts = media.blocks.parts
        texts = [self._inner(part, f"{at}.media.blocks.parts[{index}]") for index, part in enumerate(parts)]
        text = "\n".join(texts)
        seen = MediaDescription(media.kind, f"in {len(parts)} pieces", 0, digest(text), text, len(parts), media.citable)
        self.prompt.media_descriptions.append(seen)
        return text

    def _block(self, fingerprint: bytes, tokens: int, ttl: pb.CacheTtl.ValueType) -> None:
        self.prompt.blocks.append(Block(fingerprint, tokens, ttl))


def _without_context(text: str) -> str:
    """Return a text without the blocks that coding agents add (`CONTEXT_TAGS`). A block without an end is kept."""
    for tag in CONTEXT_TAGS:
        opening, closing = f"<{tag}>", f"</{tag}>"
        pieces, rest = list[str](), 0
        while (begin := text.find(opening, rest)) >= 0 and (end := text.find(closing, begin)) >= 0:
            pieces.append(text[rest:begin])
            rest = end + len(closing)
        if rest:
            text = "".join([*pieces, text[rest:]]).strip()
    return text


def _last_turn(messages: Sequence[pb.Message]) -> tuple[int, int]:
    """Return (first, last + 1) position of the messages since the last message of the model."""
    end = len(messages)
    while end and messages[end - 1].role == pb.ROLE_ASSISTANT:
        end -= 1
    begin = end
    while begin and messages[begin - 1].role != pb.ROLE_ASSISTANT:
        begin -= 1
    return begin, end


def _ttl(marked: pb.Part | pb.Tool) -> pb.CacheTtl.ValueType:
    if marked.HasField("cache_control"):
        return marked.cache_control.ttl or pb.CACHE_TTL_FIVE_MINUTES
    if isinstance(marked, pb.Part) and marked.HasField("tool_result"):
        return next((ttl for part in marked.tool_result.parts if (ttl := _ttl(part))), pb.CACHE_TTL_UNSPECIFIED)
    return pb.CACHE_TTL_UNSPECIFIED


def _unknown(at: str) -> UmgError:
    message = f"{at}: this kind is not known here; leave it out"
    return UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=at)


def first_words(text: str) -> str:
    """Return the beginning of a text, on one line and of limited length."""
    line = " ".join(text.split())
    return line if len(line) <= FIRST_WORDS else line[:FIRST_WORDS].rsplit(" ", 1)[0] + " ..."


def numbered(media_descriptions: list[MediaDescription]) -> Iterator[tuple[str, MediaDescription]]:
    """Yield (name, medium) for each medium, numbered by kind: `Image 1`, `Image 2`, `Document 1`."""
    counted = dict[str, int]()
    for description in media_descriptions:
        counted[description.name] = counted.get(description.name, 0) + 1
        yield f"{description.name} {counted[description.name]}", description

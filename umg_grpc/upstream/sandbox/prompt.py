"""What a request says, as the sandbox reads it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from umg_grpc.errors import UmgError
from umg_grpc.upstream.sandbox.sight import FIRST_WORDS, Sight, look
from umg_grpc.upstream.sandbox.words import digest
from umg_grpc.v1 import pb
from umg_grpc.wire.opaque import leaves_turn_out
from umg_grpc.wire.report import Report, foreign, leaves_out, untranslatable
from umg_grpc.wire.unknown import note_nested

Count = Callable[[str], int]
"""Tokens of a text."""

# Without these the answer would be another, and the sandbox has nothing of its own to look them up in.
INDISPENSABLE = ("previous_response_id", "conversation_id", "prompt_template")
NOT_HONOURED = ("audio_output", "moderation_json")

SYSTEM_ROLES = (pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER)


@dataclass(frozen=True)
class Result:
    """What a tool gave."""

    name: str
    text: str


@dataclass(frozen=True)
class Block:
    """A piece of the prompt, as a prompt cache sees it."""

    fingerprint: bytes
    tokens: int
    ttl: str
    """`5m` or `1h` where the prompt up to here shall be kept; "" elsewhere."""


@dataclass
class Prompt:
    """What was read."""

    system: str = ""
    question: str = ""
    """The last text part of the last user message: agents put reminders and their environment before it."""
    last_turn: str = ""
    """All texts of the last turn in which the user spoke."""
    asked: str = ""
    """What the user said since the last answer; "" in a turn that only returns what tools gave."""
    opening: str = ""
    """The question of the first turn."""
    turns: int = 0
    """How often the user spoke."""
    results: list[Result] = field(default_factory=list)
    """What tools gave since the last answer."""
    calls: int = 0
    """How many tools the model has called before."""
    sights: list[Sight] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        """Of the whole prompt."""
        return sum(block.tokens for block in self.blocks)

    def media_tokens(self, kind: "pb.MediaKind.ValueType") -> int:
        """Of the media of one kind."""
        return sum(sight.tokens for sight in self.sights if sight.kind == kind)


def read_prompt(request: pb.GenerateRequest, count: Count, report: Report) -> Prompt:
    """The prompt; what cannot be honoured goes into the report. Raises UmgError: UNTRANSLATABLE and UNSUPPORTED_FIELD
    for what it would be wrong to leave out, INVALID_FIELD for a broken image, MISSING_FIELD for a message of nobody.
    """
    source = request.source
    said = {field.name for field, _ in request.ListFields()}
    for name in [*source.indispensable_fields, *(name for name in INDISPENSABLE if name in said)]:
        raise untranslatable(name, "the sandbox cannot be told; leave it out or choose another model")
    for name in [*source.uncarried_fields, *(name for name in NOT_HONOURED if name in said)]:
        report.drop(name)
    note_nested(source, report)
    reader = _Reader(count, report)
    for index, tool in enumerate(request.tools):
        reader.tool(tool, f"tools[{index}]")
    for index, part in enumerate(request.instructions):
        reader.system.append(reader.part(part, "system", f"instructions[{index}]"))
    reader.conversation(request.messages)
    prompt = reader.prompt
    prompt.system = "\n\n".join(text for text in reader.system if text)
    return prompt


class _Reader:
    """One request."""

    def __init__(self, count: Count, report: Report) -> None:
        self._report = report
        self.prompt = Prompt()
        self.system = list[str]()
        self._count = count
        self._names = dict[str, str]()  # of tools by the ids of their calls

    def tool(self, tool: pb.Tool, at: str) -> None:
        """A tool, which is part of the prompt. Raises UmgError for one that the sandbox does not have."""
        match tool.WhichOneof("kind"):
            case "opaque" if leaves_out(tool.opaque, self._report):
                return
            case "opaque":
                raise foreign(tool.opaque, at)
            case None:
                raise _unknown(at)
            case "file_search":
                self._report.drop("file_search")  # accepted, and finds nothing: the sandbox keeps no files
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
        """The messages in order."""
        begin, end = _last_turn(messages)
        spoken = list[str]()  # since the last answer
        for index, message in enumerate(messages):
            at = f"messages[{index}]"
            if leaves_turn_out(message, "", self._report):
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
                spoken.clear()
            elif message.role == pb.ROLE_USER and text:
                self._spoken(texts, spoken, index >= begin)

    def _spoken(self, texts: list[str], spoken: list[str], last: bool) -> None:
        """Note the texts of a user message. `spoken`: those of the turn so far."""
        prompt = self.prompt
        if not spoken:
            prompt.turns += 1
        spoken += texts
        prompt.question = next((text for text in reversed(texts) if text.strip()), texts[-1])
        prompt.last_turn = "\n".join(spoken)
        if prompt.turns == 1:
            prompt.opening = prompt.question
        if last:
            prompt.asked = prompt.last_turn

    def part(self, part: pb.Part, role: str, at: str) -> str:
        """The text of a part, and of what is in it; the part is noted as a block. Raises UmgError."""
        before, seen = _ttl(part), len(self.prompt.sights)
        text, extra = self._text(part, at)
        tokens = self._count(text) if text else 0
        for sight in self.prompt.sights[seen:]:
            tokens += sight.tokens
            extra += sight.fingerprint
        kind = part.WhichOneof("kind") or ""
        self._block(digest(role, kind, text, extra.hex()), tokens, before)
        return text

    def _text(self, part: pb.Part, at: str) -> tuple[str, bytes]:
        """Text of a part; what else tells it from others."""
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
        raise _unknown(at)

    def _inner(self, part: pb.Part, at: str) -> str:
        """A part of a tool's result or of a document. Raises UmgError for what is neither text nor a medium."""
        match part.WhichOneof("kind"):
            case "text":
                return part.text.text
            case "media":
                return self._media(part.media, at)
            case "opaque" if part.opaque.text:
                return part.opaque.text
            case "opaque":
                raise foreign(part.opaque, at)
        raise _unknown(at)

    def _media(self, media: pb.MediaPart, at: str) -> str:
        """The text that a medium holds; what was seen of it is noted."""
        if media.WhichOneof("source") != "blocks":
            sight = look(media, f"{at}.media")
            self.prompt.sights.append(sight)
            return sight.text or ""
        parts = media.blocks.parts
        texts = [self._inner(part, f"{at}.media.blocks.parts[{index}]") for index, part in enumerate(parts)]
        text = "\n".join(texts)
        seen = Sight(media.kind, f"in {len(parts)} pieces", 0, digest(text), text, len(parts), media.citable)
        self.prompt.sights.append(seen)
        return text

    def _block(self, fingerprint: bytes, tokens: int, ttl: str) -> None:
        self.prompt.blocks.append(Block(fingerprint, tokens, ttl))


def _last_turn(messages: Sequence[pb.Message]) -> tuple[int, int]:
    """The messages since the model last spoke. What it is given to go on with at the end is no turn of its own."""
    end = len(messages)
    while end and messages[end - 1].role == pb.ROLE_ASSISTANT:
        end -= 1
    begin = end
    while begin and messages[begin - 1].role != pb.ROLE_ASSISTANT:
        begin -= 1
    return begin, end


def _ttl(marked: pb.Part | pb.Tool) -> str:
    """How long the prompt up to here shall be kept. A mark inside a tool's result is one of the whole result."""
    if marked.HasField("cache_control"):
        return marked.cache_control.ttl or "5m"
    if isinstance(marked, pb.Part) and marked.HasField("tool_result"):
        return next((ttl for part in marked.tool_result.parts if (ttl := _ttl(part))), "")
    return ""


def _unknown(at: str) -> UmgError:
    message = f"{at}: this kind is not known here; leave it out"
    return UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=at)


def first_words(text: str) -> str:
    """The beginning of a text, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= FIRST_WORDS else line[:FIRST_WORDS].rsplit(" ", 1)[0] + " ..."


def numbered(sights: list[Sight]) -> Iterator[tuple[str, Sight]]:
    """Each with its name: `Image 1`, `Image 2`, `Document 1`."""
    counted = dict[str, int]()
    for sight in sights:
        counted[sight.name] = counted.get(sight.name, 0) + 1
        yield f"{sight.name} {counted[sight.name]}", sight

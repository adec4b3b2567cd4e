"""Edits of turns in a messages body for a provider of this format whose model has rules about them. All else stays."""

import msgspec
from msgspec import Raw, Struct

from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.wire.core.inserted_turn_texts import CONTINUE_TEXT, marked
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, is_present, parse
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.messages.encode_messages import BLANK_REASONING, REASONING_BLOCKS


class _TurnBlock(Struct):
    type: str = ""
    text: str = ""


class _Turn(Struct):
    role: str = ""
    content: str | list[_TurnBlock] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "\n\n".join(block.text for block in self.content or () if block.text)

    @property
    def has_calls(self) -> bool:
        return self.has("tool_use")

    def has(self, *types: str) -> bool:
        """Return whether the turn has a block of one of these types."""
        return isinstance(self.content, list) and any(block.type in types for block in self.content)


class _Blocks(Struct):
    content: list[Raw]


def fit_turns(fields: dict[str, Raw], quirks: Quirks, report: Report) -> None:
    """Change `messages` by the rules of the model, in place: instructions between turns become user turns, turns with
    calls get blank reasoning, and a user turn follows a last assistant turn that cannot be continued.
    """
    raw = fields.get("messages", ABSENT_MEMBER)
    has_rules = quirks.system_place == "first" or quirks.prefill is False or quirks.reasoning_required
    if not has_rules or not is_present(raw):
        return
    turns = parse(list[Raw], raw, "messages")
    edited = [_without_instructions(turn, report) for turn in turns] if quirks.system_place == "first" else [*turns]
    if quirks.reasoning_required:
        edited = [_with_reasoning(turn, report) for turn in edited]
    if quirks.prefill is False and edited:
        last = parse(_Turn, edited[-1], "messages")
        if last.role == "assistant" and not last.has_calls:
            report.drop("messages", "a user's turn last")
            edited.append(Raw(msgspec.json.encode({"role": "user", "content": CONTINUE_TEXT})))
    if len(edited) > len(turns) or any(new is not old for new, old in zip(edited, turns, strict=True)):
        fields["messages"] = Raw(msgspec.json.encode(edited))


def _without_instructions(raw: Raw, report: Report) -> Raw:
    if b'"system"' not in bytes(raw) or (turn := parse(_Turn, raw, "messages")).role != "system":
        return raw
    report.drop("messages.role", "user")
    return Raw(msgspec.json.encode({"role": "user", "content": marked(turn.text)}))


def _with_reasoning(raw: Raw, report: Report) -> Raw:
    """Return a turn, with a blank reasoning block at its beginning if it has calls and no reasoning."""
    if b'"tool_use"' not in bytes(raw):
        return raw
    turn = parse(_Turn, raw, "messages")
    if not turn.has_calls or turn.has(*REASONING_BLOCKS):
        return raw
    report.drop("messages.reasoning", "blank")
    members, blocks = parse(dict[str, Raw], raw, "messages"), parse(_Blocks, raw, "messages").content
    members["content"] = Raw(msgspec.json.encode([BLANK_REASONING, *blocks]))
    return Raw(msgspec.json.encode(members))

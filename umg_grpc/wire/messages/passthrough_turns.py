"""Edits of the turns in a messages body that is passed through to a provider of the same format whose model has rules
about them. All other bytes are unchanged.
"""

import msgspec
from msgspec import Raw, Struct

from umg_grpc.knowledge.quirks import Quirks
from umg_grpc.wire.core.added_turns import CONTINUE, marked
from umg_grpc.wire.core.json import ABSENT, is_present, parse
from umg_grpc.wire.dropped_fields_report import Report


class _Block(Struct):
    type: str = ""
    text: str = ""


class _Turn(Struct):
    role: str = ""
    content: str | list[_Block] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, str):
            return self.content
        return "\n\n".join(block.text for block in self.content or () if block.text)

    @property
    def has_calls(self) -> bool:
        return isinstance(self.content, list) and any(block.type == "tool_use" for block in self.content)


def fit_turns(fields: dict[str, Raw], quirks: Quirks, report: Report) -> None:
    """Change the member `messages` of a body, in place: instructions become marked turns of the user where the model
    takes none between turns, and a turn of the user follows an assistant's last turn that the model does not continue.
    `report`: collects the changes.
    """
    raw = fields.get("messages", ABSENT)
    if not is_present(raw) or (quirks.system_place != "first" and quirks.prefill is not False):
        return
    turns = parse(list[Raw], raw, "messages")
    edited = [_without_instructions(turn, report) for turn in turns] if quirks.system_place == "first" else [*turns]
    if quirks.prefill is False and edited:
        last = parse(_Turn, edited[-1], "messages")
        if last.role == "assistant" and not last.has_calls:
            report.drop("messages", "a user's turn last")
            edited.append(Raw(msgspec.json.encode({"role": "user", "content": CONTINUE})))
    if len(edited) > len(turns) or any(new is not old for new, old in zip(edited, turns, strict=True)):
        fields["messages"] = Raw(msgspec.json.encode(edited))


def _without_instructions(raw: Raw, report: Report) -> Raw:
    """Return a turn; one with instructions as a marked turn of the user."""
    if b'"system"' not in bytes(raw) or (turn := parse(_Turn, raw, "messages")).role != "system":
        return raw
    report.drop("messages.role", "user")
    return Raw(msgspec.json.encode({"role": "user", "content": marked(turn.text)}))

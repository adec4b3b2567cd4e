"""Leading lines of a system prompt that agents write for their own vendor; others get none, for prompt caches."""

import re

import msgspec
from msgspec import Raw, Struct

from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.knowledge.prompt_lines_of_agents import LINE_BEGINNINGS
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, parse
from umg_grpc.wire.dropped_fields_report import Report

_BEGINNING = re.compile("|".join(re.escape(f'"{beginning}') for beginning in LINE_BEGINNINGS).encode())
_START_BYTES = 256
"""Bytes at the beginning of raw instructions in which the first line begins: members may precede the first text."""
INSTRUCTION_ROLES = ("system", "developer")
_RAW_ROLES = tuple(msgspec.json.encode(role) for role in INSTRUCTION_ROLES)


class _Block(Struct):
    text: str = ""


def without_client_lines(text: str, quirks: Quirks, report: Report) -> str:
    """Return the first text of a system prompt without the leading lines that an agent wrote for another vendor. It is
    "" if it has no other text. `quirks`: the provider's, with the lines that it reads.
    """
    while text.startswith(LINE_BEGINNINGS):
        line, _, rest = text.partition("\n")
        name, colon, _ = line.partition(":")
        if not colon or " " in name or name.startswith(quirks.client_lines or ()):
            break
        report.omit(name)
        text = rest.lstrip("\n")
    return text


def edit_client_lines(fields: dict[str, Raw], name: str, quirks: Quirks, report: Report) -> None:
    """Remove an agent's lines for another vendor, in place, from the member `name` (a text or a list of blocks) of a
    caller's own body. A block or member without any other text is removed, too.
    """
    raw = fields.get(name, ABSENT_MEMBER)
    if not _BEGINNING.search(raw, 0, _START_BYTES):
        return
    if not bytes(raw).startswith(b"["):
        text = parse(str, raw, name)
        edited: object = without_client_lines(text, quirks, report)
        changes = edited != text
    else:
        blocks = parse(list[Raw], raw, name)
        edited, changes = _edited_blocks(blocks, quirks, report)
    if not changes:
        return
    if edited:
        fields[name] = Raw(msgspec.json.encode(edited))
    else:
        del fields[name]


def edit_first_turn(fields: dict[str, Raw], name: str, quirks: Quirks, report: Report) -> None:
    """Remove an agent's lines for another vendor from instructions that are the first turn in the member `name`."""
    raw = fields.get(name, ABSENT_MEMBER)
    if not _BEGINNING.search(raw, 0, _START_BYTES) or not bytes(raw).startswith(b"["):
        return
    first, *others = parse(list[Raw], raw, name)
    turn = parse(dict[str, Raw], first, f"{name}[0]")
    if bytes(turn.get("role", ABSENT_MEMBER)) not in _RAW_ROLES:
        return
    content = turn.get("content", ABSENT_MEMBER)
    edit_client_lines(turn, "content", quirks, report)
    if turn.get("content", ABSENT_MEMBER) is not content:
        turns = [Raw(msgspec.json.encode(turn)), *others] if "content" in turn else others
        fields[name] = Raw(msgspec.json.encode(turns))


def cut_first_turn(turns: list[object], quirks: Quirks, report: Report) -> None:
    """Remove an agent's lines for another vendor from the first encoded turn, in place; the turn if no text is left."""
    turn = turns[0] if turns else None
    if not isinstance(turn, dict) or turn.get("role") not in INSTRUCTION_ROLES:
        return
    content = turn.get("content")
    text = content[0].get("text") if isinstance(content, list) and content and isinstance(content[0], dict) else content
    if not isinstance(text, str) or (rest := without_client_lines(text, quirks, report)) == text:
        return
    if isinstance(content, list):
        turn["content"] = [{**content[0], "text": rest}, *content[1:]] if rest else content[1:]
    else:
        turn["content"] = rest
    if not turn["content"]:
        del turns[0]


def _edited_blocks(blocks: list[Raw], quirks: Quirks, report: Report) -> tuple[list[Raw], bool]:
    """Return (the blocks without an agent's lines in the first one, whether that block had any)."""
    text = parse(_Block, blocks[0], "system[0]").text
    if (rest := without_client_lines(text, quirks, report)) == text:
        return blocks, False
    if not rest:
        return blocks[1:], True
    members = parse(dict[str, Raw], blocks[0], "system[0]") | {"text": Raw(msgspec.json.encode(rest))}
    return [Raw(msgspec.json.encode(members)), *blocks[1:]], True

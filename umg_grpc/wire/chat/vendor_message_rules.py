"""Rules of single vendors for `messages`: roles, the position of instructions, order of turns, the last turn, ids of
calls.

The messages belong to a body encoded for the provider, or to the caller's own body, whose other members stay unchanged.
No rule moves a turn: a conversation begins the same in each request, so that prompt caches match.
"""

from collections.abc import Sequence
from operator import is_

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.wire.chat.document_parts import with_document_urls
from umg_grpc.wire.chat.provider_tool_names import nine_character_id
from umg_grpc.wire.chat.thought_signatures import with_placeholder_signatures
from umg_grpc.wire.core.agent_prompt_lines import INSTRUCTION_ROLES
from umg_grpc.wire.core.inserted_turn_texts import ACKNOWLEDGED_TEXT, CONTINUE_TEXT, marked
from umg_grpc.wire.core.json_decoding import JsonObject, parse
from umg_grpc.wire.core.raw_json_edits import EACH_ELEMENT, edit_texts
from umg_grpc.wire.dropped_fields_report import Report

_ID_PATHS = ((EACH_ELEMENT, "tool_calls", EACH_ELEMENT, "id"), (EACH_ELEMENT, "tool_call_id"))


def fit_raw_messages(raw: Raw, quirks: Quirks, report: Report) -> Raw:
    """Return a caller's own `messages` changed as the provider's rules require; `raw` itself if nothing changes."""
    if quirks.call_ids == "nine" and (fitted := edit_texts(raw, _ID_PATHS, nine_character_id)) is not raw:
        report.drop("call_id", "nine characters")
        raw = fitted
    if quirks.file_form == "document_url" and (fitted := with_document_urls(raw)) is not raw:
        report.drop("messages.content.file", "document_url")
        raw = fitted
    if quirks.signatures is True and (fitted := with_placeholder_signatures(raw)) is not raw:
        report.drop("state", "placeholder")
        raw = fitted
    if not _has_rules(quirks):
        return raw
    messages = list[JsonObject]()
    for message in parse(list[dict[str, Raw]], raw, "messages"):
        role = msgspec.json.decode(message["role"]) if "role" in message else ""
        messages.append({**message, "role": role})
    fitted_messages = _fit_messages(messages, quirks, report, own=True)
    unchanged = len(fitted_messages) == len(messages) and all(map(is_, fitted_messages, messages))
    return raw if unchanged else Raw(msgspec.json.encode(fitted_messages))


def fit_encoded_messages(fields: JsonObject, quirks: Quirks, report: Report) -> None:
    """Replace, in place, the `messages` of a body encoded for the provider by messages that follow its rules."""
    if _has_rules(quirks) and isinstance(messages := fields["messages"], list):
        fields["messages"] = _fit_messages(messages, quirks, report, own=False)


def _has_rules(quirks: Quirks) -> bool:
    return (
        quirks.developer is False
        or quirks.system_place == "first"
        or quirks.user_after_tool is False
        or quirks.prefill is False
        or quirks.prefix is True
        or quirks.reasoning_required is True
    )


def _fit_messages(messages: Sequence[object], quirks: Quirks, report: Report, *, own: bool) -> list[object]:
    fitted = list(messages)
    if quirks.system_place == "first":
        fitted = _with_instructions_first(fitted, report, own=own)
    if quirks.developer is False and any(_role(message) == "developer" for message in fitted):
        if own:
            report.drop("messages.role", "system")
        fitted = [_with_role(message, "system") if _role(message) == "developer" else message for message in fitted]
    if quirks.reasoning_required:
        completed = [_with_reasoning(message) for message in fitted]
        if own and any(new is not old for new, old in zip(completed, fitted, strict=True)):
            report.drop("messages.reasoning", "blank")
        fitted = completed
    if quirks.user_after_tool is False:
        fitted = _with_acknowledged_results(fitted, report)
    if fitted and _role(fitted[-1]) == "assistant" and not _has_calls(fitted[-1]):
        fitted[-1:] = _ended(fitted[-1], quirks, report, own=own)
    return fitted


def _with_instructions_first(messages: list[object], report: Report, *, own: bool) -> list[object]:
    """Return the messages with all instructions before the first user turn joined; later ones become user turns."""
    places = [index for index, message in enumerate(messages) if _role(message) in INSTRUCTION_ROLES]
    if places and len(places) == len(messages):  # templates and vendors want a turn of the user
        report.drop("messages.role", "user")
        return [{"role": "user", "content": _joined_text(messages)}]
    if not places or places == [0]:
        return messages
    start = next((index for index, message in enumerate(messages) if _role(message) == "user"), len(messages))
    leading = [index for index in places if index < start]
    fitted = list[object]()
    if leading:
        fitted.append(_joined([messages[index] for index in leading]))
        if own and leading != [0]:
            report.drop("messages.role", "one system message")
    for index, message in enumerate(messages):
        if index not in places:
            fitted.append(message)
        elif index > start:
            report.drop("messages.role", "user")
            fitted.append({"role": "user", "content": marked(_text_of(message))})
    return fitted


def _with_reasoning(message: object) -> object:
    if not isinstance(message, dict) or not _has_calls(message):
        return message
    if msgspec.json.encode(message.get("reasoning_content")) not in (b"null", b'""'):
        return message
    return {**message, "reasoning_content": " "}


def _with_acknowledged_results(messages: list[object], report: Report) -> list[object]:
    fitted = list[object]()
    for message in messages:
        if fitted and _role(fitted[-1]) == "tool" and _role(message) == "user":
            report.drop("messages", "an assistant's turn between")
            fitted.append({"role": "assistant", "content": ACKNOWLEDGED_TEXT})
        fitted.append(message)
    return fitted


def _ended(last: object, quirks: Quirks, report: Report, *, own: bool) -> list[object]:
    """Return the assistant's last message alone, marked as one to continue, or followed by a user turn."""
    if quirks.prefill is False:
        report.drop("messages", "a user's turn last")
        return [last, {"role": "user", "content": CONTINUE_TEXT}]
    if quirks.prefix is True and isinstance(last, dict) and bytes(msgspec.json.encode(last.get("prefix"))) != b"true":
        if own:
            report.drop("messages.prefix", "true")
        return [{**last, "prefix": True}]
    return [last]


def _joined(messages: list[object]) -> object:
    if len(messages) == 1:
        return messages[0]
    return {"role": "system", "content": _joined_text(messages)}


def _joined_text(messages: list[object]) -> str:
    return "\n\n".join(text for message in messages if (text := _text_of(message)))


def _role(message: object) -> object:
    return message.get("role") if isinstance(message, dict) else ""


def _with_role(message: object, role: str) -> object:
    return {**message, "role": role} if isinstance(message, dict) else message


def _has_calls(message: object) -> bool:
    if not isinstance(message, dict):
        return False
    return msgspec.json.encode([message.get("tool_calls"), message.get("function_call")]) not in (
        b"[null,null]",
        b"[[],null]",
    )


class _TextPart(msgspec.Struct):
    text: str = ""


class _Message(msgspec.Struct):
    content: str | list[_TextPart] | None = None


def _text_of(message: object) -> str:
    content = parse(_Message, msgspec.json.encode(message), "messages").content
    return content if isinstance(content, str) else "\n\n".join(part.text for part in content or ())

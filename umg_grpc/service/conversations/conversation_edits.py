"""Edits that shorten a conversation. A caller requests them, and the gateway makes them for a provider that cannot.

Callers send the whole unedited conversation with each request, so each request repeats the edits of the requests before
it. The gateway reads the conversation from its beginning, and removes results at the places where an earlier request
had to remove them. The prompt of a request therefore begins with the prompt of the request before, which prompt caches
need, until an edit removes something again.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from umg_grpc.tokens import TokenCounter
from umg_grpc.v1 import pb
from umg_grpc.wire.core.context_management_edits import (
    SUMMARY_FORMAT,
    SUMMARY_TYPE,
    ClearThinking,
    ClearToolUses,
    Compact,
    ContextEdit,
)
from umg_grpc.wire.core.json_decoding import decode_or_none
from umg_grpc.wire.core.sealed_summaries import summary_text

CLEARED_RESULT = "[The result of this tool call was removed to shorten the conversation.]"
"""Text in place of a removed result, for the model."""
NO_ARGUMENTS = "{}"

Place = tuple[int, int]
"""Index of a message, and of one of its parts."""


class EditedConversation(NamedTuple):
    """Request after its edits, with the report of the edits that changed it."""

    request: pb.GenerateRequest
    management: pb.ContextManagement


def may_edit(request: pb.GenerateRequest, edits: Sequence[ContextEdit]) -> bool:
    """Return whether one of the edits may change the conversation, so that tokens have to be counted. Claude Code
    requests with each call that all reasoning stays.
    """
    results = 0
    for edit in edits:
        if isinstance(edit, ClearThinking) and edit.keep is not None:
            return True
        if isinstance(edit, ClearToolUses):
            results = results or sum(part.HasField("tool_result") for each in request.messages for part in each.parts)
            if results > edit.keep:
                return True
    return False


def edited_conversation(
    request: pb.GenerateRequest, edits: Sequence[ContextEdit], counter: TokenCounter
) -> EditedConversation:
    """Return the request with its conversation shortened by the edits, or the request itself if they remove nothing. A
    `Compact` makes no summary here: the newest summary in the conversation replaces the messages before it.
    """
    clears_reasoning = any(isinstance(edit, ClearThinking) and edit.keep is not None for edit in edits)
    if any(isinstance(edit, Compact) for edit in edits):
        request = _compacted(request)
    editing = _Editing(request, counter, clears_reasoning=clears_reasoning)
    for edit in edits:
        if isinstance(edit, ClearThinking):
            editing.clear_thinking(edit)
        elif isinstance(edit, ClearToolUses):
            editing.clear_tool_uses(edit)
    return editing.result()


class _Editing:
    """Request whose edits are made one after the other. Each edit reads the conversation as the caller sent it, since
    the edits of earlier requests did so too.
    """

    def __init__(self, request: pb.GenerateRequest, counter: TokenCounter, *, clears_reasoning: bool) -> None:
        self._changed = request
        self._management = pb.ContextManagement()
        self._given = request
        self._counter = counter
        self._clears_reasoning = clears_reasoning
        self._without_reasoning = set[int]()

    def clear_tool_uses(self, edit: ClearToolUses) -> None:
        """Remove the results of the oldest tool calls, and the results that earlier requests have removed."""
        uses = list(_tool_uses(self._given, edit))
        if len(uses) <= edit.keep or not any(use.is_clearable for use in uses):
            return
        reader = _ClearedUses(self._given, edit, self._counter, ignores_reasoning=self._clears_reasoning)
        cleared, tokens = reader.read(uses)
        if not cleared:
            return
        messages = self._copied().messages
        for use in cleared:
            _clear_result(messages[use.result[0]].parts[use.result[1]])
            if use.call is not None:
                _clear_arguments(messages[use.call[0]].parts[use.call[1]])
        self._management.applied_edits.add(type=edit.type, cleared_tool_uses=len(cleared), cleared_input_tokens=tokens)

    def clear_thinking(self, edit: ClearThinking) -> None:
        """Remove the reasoning of all but the latest turns with reasoning."""
        if edit.keep is None:
            return
        turns = _thinking_turns(self._given)
        old = turns[: max(0, len(turns) - edit.keep)]
        if not old:
            return
        places = [index for turn in old for index in turn]
        tokens = self._counter.count_parts(
            part for index in places for part in self._given.messages[index].parts if part.HasField("reasoning")
        )
        self._without_reasoning.update(places)
        applied = self._management.applied_edits.add(type=edit.type, cleared_input_tokens=tokens)
        applied.cleared_thinking_turns = len(old)

    def result(self) -> EditedConversation:
        """Return the request after all edits. Reasoning is removed last, as this changes the indexes of parts."""
        for index in self._without_reasoning:
            parts = self._copied().messages[index].parts
            for place in reversed(range(len(parts))):
                if parts[place].HasField("reasoning"):
                    del parts[place]
        return EditedConversation(self._changed, self._management)

    def _copied(self) -> pb.GenerateRequest:
        if self._changed is self._given:
            self._changed = pb.GenerateRequest()
            self._changed.CopyFrom(self._given)
        return self._changed


# --- results of tools


@dataclass(frozen=True)
class _ToolUse:
    """Call of a tool whose result is in the conversation."""

    result: Place
    call: Place | None
    """Place of a call whose arguments are removed with the result; None if they stay."""
    is_clearable: bool


def _tool_uses(request: pb.GenerateRequest, edit: ClearToolUses) -> Iterator[_ToolUse]:
    """Yield the calls whose results are in the conversation, in the order of the results."""
    calls = dict[str, Place]()
    for index, message in enumerate(request.messages):
        for position, part in enumerate(message.parts):
            if part.HasField("tool_call"):
                calls[part.tool_call.call_id] = (index, position)
            elif part.HasField("tool_result"):
                place = calls.get(part.tool_result.call_id)
                name = part.tool_result.name
                if place is not None:
                    name = request.messages[place[0]].parts[place[1]].tool_call.name
                has_inputs = edit.clears_all_inputs or name in edit.cleared_inputs
                yield _ToolUse((index, position), place if has_inputs else None, name not in edit.excluded)


class _ClearedUses:
    """Finder of the tool calls whose results were removed by the earlier requests of a conversation."""

    def __init__(
        self, request: pb.GenerateRequest, edit: ClearToolUses, counter: TokenCounter, *, ignores_reasoning: bool
    ) -> None:
        self._ignores_reasoning = ignores_reasoning
        self._request = request
        self._edit = edit
        self._counter = counter
        self._tokens = 0  # of the prompt, after the edits so far
        self._waiting: list[_ToolUse] = []  # whose results are in the prompt
        self._cleared: list[_ToolUse] = []
        self._saved = 0
        self._savings = dict[_ToolUse, int]()

    def read(self, uses: Sequence[_ToolUse]) -> tuple[list[_ToolUse], int]:
        """Return the calls whose results are removed, and the number of tokens that this saves."""
        request, counts = self._request, self._edit.trigger_tokens is not None
        if counts:
            head = pb.GenerateRequest(instructions=request.instructions, tools=request.tools)
            self._tokens = self._counter.count_request(head)
        of_message = dict[int, list[_ToolUse]]()
        for use in uses:
            of_message.setdefault(use.result[0], []).append(use)
        for index, message in enumerate(request.messages):
            is_output = message.role == pb.ROLE_ASSISTANT
            if is_output and index and request.messages[index - 1].role != pb.ROLE_ASSISTANT:
                self._edit_prompt()  # an earlier request ended here
            if counts:
                self._tokens += self._counter.count_message(message) - self._ignored_tokens(message)
            self._waiting += of_message.get(index, ())
        self._edit_prompt()
        return self._cleared, self._saved

    def _edit_prompt(self) -> None:
        """Remove the results that the edit would remove if the conversation ended at this point."""
        edit, latest = self._edit, max(0, len(self._waiting) - self._edit.keep)
        old = [use for use in self._waiting[:latest] if use.is_clearable]
        if not old or not self._is_triggered():
            return
        saved = sum(map(self._saved_tokens, old))
        if saved < max(edit.clear_at_least, 1):
            return
        self._tokens -= saved
        self._saved += saved
        self._cleared += old
        self._waiting = [use for use in self._waiting[:latest] if not use.is_clearable] + self._waiting[latest:]

    def _ignored_tokens(self, message: pb.Message) -> int:
        if not self._ignores_reasoning:
            return 0
        return self._counter.count_parts(part for part in message.parts if part.HasField("reasoning"))

    def _is_triggered(self) -> bool:
        if self._edit.trigger_tokens is not None:
            return self._tokens > self._edit.trigger_tokens
        clearable = sum(use.is_clearable for use in self._waiting)
        return clearable > (self._edit.trigger_uses or 0)

    def _saved_tokens(self, use: _ToolUse) -> int:
        if (saved := self._savings.get(use)) is None:
            saved = self._difference(use.result, _clear_result)
            saved += 0 if use.call is None else self._difference(use.call, _clear_arguments)
            self._savings[use] = saved
        return saved

    def _difference(self, place: Place, clear: Callable[[pb.Part], None]) -> int:
        part, left = self._request.messages[place[0]].parts[place[1]], pb.Part()
        left.CopyFrom(part)
        clear(left)
        return self._counter.count_parts([part]) - self._counter.count_parts([left])


def _clear_result(part: pb.Part) -> None:
    result = part.tool_result
    result.ClearField("parts")
    result.ClearField("result_json")
    result.parts.add().text.text = CLEARED_RESULT


def _clear_arguments(part: pb.Part) -> None:
    call = part.tool_call
    if call.WhichOneof("input") == "text":
        call.text = ""
    else:
        call.arguments_json = NO_ARGUMENTS


# --- reasoning


def _thinking_turns(request: pb.GenerateRequest) -> list[list[int]]:
    """Return the indexes of the messages with reasoning, grouped by turns of the model. Messages of reasoning alone are
    left out: without their reasoning they would be empty.
    """
    turns = list[list[int]]([[]])
    for index, message in enumerate(request.messages):
        has_reasoning = any(part.HasField("reasoning") for part in message.parts)
        if message.role == pb.ROLE_ASSISTANT:
            if has_reasoning and not all(part.HasField("reasoning") for part in message.parts):
                turns[-1].append(index)
        elif message.role == pb.ROLE_USER and not any(part.HasField("tool_result") for part in message.parts):
            turns.append([])
    return [turn for turn in turns if turn]


# --- summaries


class _CompactionBlock(Struct):
    content: str | None = None


_BLOCK = msgspec.json.Decoder(_CompactionBlock)


def _compacted(request: pb.GenerateRequest) -> pb.GenerateRequest:
    """Return the request with its newest summary, as a user's text, in place of the messages before it. Without a
    summary it is the request itself. A summary without text, which its vendor failed to make, is left out.
    """
    places = [
        (index, position)
        for index, message in enumerate(request.messages)
        for position, part in enumerate(message.parts)
        if part.opaque.type == SUMMARY_TYPE and part.opaque.format == SUMMARY_FORMAT
    ]
    if not places:
        return request
    compacted = pb.GenerateRequest()
    compacted.CopyFrom(request)
    for index, position in reversed(places):
        block = decode_or_none(_BLOCK, Raw(request.messages[index].parts[position].opaque.json.encode()))
        message = compacted.messages[index]
        if block is None or not block.content:
            del message.parts[position]
            if not message.parts:
                del compacted.messages[index]
            continue
        del message.parts[: position + 1]
        rest = [each for each in compacted.messages[index:] if each.parts]
        kept = [each for each in compacted.messages[:index] if each.role in (pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER)]
        summary = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text=summary_text(block.content)))])
        del compacted.messages[:]
        compacted.messages.extend([*kept, summary, *rest])
        break
    return compacted

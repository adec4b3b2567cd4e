"""Edits by which a caller shortens a conversation before the model reads it (messages `context_management`)."""

from typing import Final, TypeAlias

from msgspec import Struct

EDITS_FIELD: Final = "context_management"
SUMMARY_FORMAT: Final = "messages"
"""Format in which summaries are readable blocks."""
SUMMARY_TYPE: Final = "compaction"


class ClearToolUses(Struct, frozen=True, kw_only=True):
    """Edit that removes the results of the oldest tool calls above a trigger: size of the prompt or number of calls."""

    type: str
    trigger_tokens: int | None = 100_000
    """Tokens of the prompt; None for a trigger that is a number of calls."""
    trigger_uses: int | None = None
    keep: int = 3
    """Number of the latest calls whose results are kept."""
    clear_at_least: int = 0
    """Tokens that an edit has to remove: with fewer it would cost more in prompt caches than it saves."""
    excluded: frozenset[str] = frozenset()
    """Names of the tools whose results are kept."""
    clears_all_inputs: bool = False
    cleared_inputs: frozenset[str] = frozenset()
    """Names of the tools whose arguments are removed, too."""


class ClearThinking(Struct, frozen=True, kw_only=True):
    """Edit that removes the model's reasoning from all but its latest turns with reasoning."""

    type: str
    keep: int | None = 1
    """Number of turns whose reasoning is kept; None for all."""


class Compact(Struct, frozen=True, kw_only=True):
    """Edit that replaces a long conversation by a summary of the model before the model answers."""

    type: str
    field: str = f"{EDITS_FIELD}.edits"
    """Path in the body that is reported if no summary can be made."""
    trigger_tokens: int = 150_000
    """Tokens of the prompt above which the summary is made."""
    instructions: str = ""
    """Text that requests the summary; "" for the gateway's default."""
    pauses: bool = False
    """Whether the response ends after the summary, without the model's response to the conversation."""
    is_sealed: bool = False
    """Whether the caller gets the summary sealed, as in the responses format; in the messages format it is readable."""


class UnknownEdit(Struct, frozen=True, kw_only=True):
    """Edit of an unknown type, which only providers of the caller's format receive."""

    type: str
    field: str


ContextEdit: TypeAlias = ClearToolUses | ClearThinking | Compact | UnknownEdit

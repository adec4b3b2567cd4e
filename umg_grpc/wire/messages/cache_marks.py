"""Marks for the provider's prompt cache, in a body whose caller has none: what stands before a mark is read from the
cache by the next call that begins alike.
"""

from collections.abc import Iterator

from umg_grpc.wire.json import JsonObject

FIELD = "cache_control"
UNMARKABLE = frozenset({"thinking", "redacted_thinking"})


def is_marked(fields: JsonObject) -> bool:
    """Return whether the caller has set a mark anywhere."""
    return FIELD in fields or any(FIELD in block for block in _blocks(fields))


def mark_prompt(fields: JsonObject) -> None:
    """Mark the last tool, the end of the system prompt and the end of the last user turn: three of the four marks that
    a provider takes.
    """
    _mark_last(fields.get("tools"))
    if "system" in fields:
        system = fields["system"] = _as_blocks(fields["system"])
        _mark_last(system)
    messages = fields.get("messages")
    for message in reversed(messages if isinstance(messages, list) else []):
        if message["role"] == "user":
            content = message["content"] = _as_blocks(message["content"])
            _mark_last(content)
            return


def _mark_last(blocks: object) -> None:
    if not isinstance(blocks, list):
        return
    for block in reversed(blocks):
        if isinstance(block, dict) and block.get("type") not in UNMARKABLE:
            block[FIELD] = {"type": "ephemeral"}
            return


def _as_blocks(content: object) -> object:
    """Return a prompt as a list of blocks, for a mark to stand on."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _blocks(fields: JsonObject) -> Iterator[JsonObject]:
    messages = fields.get("messages")
    contents = [message["content"] for message in messages] if isinstance(messages, list) else []
    for blocks in (fields.get("tools"), fields.get("system"), *contents):
        if isinstance(blocks, list):
            yield from (block for block in blocks if isinstance(block, dict))
